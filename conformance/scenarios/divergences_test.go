package scenarios

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// Every test of this file is named by a row of DIVERGENCES.md; that the rows name tests that there are is checked beside it.
func TestDivergencesAreListed(t *testing.T) {
	table, err := os.ReadFile("../DIVERGENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("divergences_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		if m[1] != "TestDivergencesAreListed" && !strings.Contains(string(table), "| scenarios."+m[1]+" |") {
			t.Errorf("%s is not in DIVERGENCES.md", m[1])
		}
	}
}

// sides are the servers whose behaviours differ.
func sides(t *testing.T) map[string]launch.Kind {
	t.Helper()
	if against == launch.Upstream {
		t.Skip("compares the two servers; SCENARIO_SERVER selects one")
	}
	return map[string]launch.Kind{"ours": launch.Espalier, "theirs": launch.Upstream}
}

// A watch of one version and a new version beside it: upstream ends the watch, ours goes on.
func TestWatchOutlivesChange(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			server := alike(t, kind, prefix())
			c := dial(t, server)
			post(t, c, crdsPath, boatsCRD(t))
			served(t, c)

			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			ready, seen := make(chan struct{}), false
			ended := make(chan error, 1)
			go func() {
				ended <- dial(t, server).Watch(ctx, boatsPath+"?watch=true", func() { close(ready) }, func(line []byte) bool {
					seen = bytes.Contains(line, []byte(`"after"`))
					return seen
				})
			}()
			<-ready
			patch(t, c, crdsPath+"/"+boats, `[{"op":"add","path":"/spec/versions/-","value":{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}]`)
			if kind == launch.Espalier {
				post(t, c, boatsPath, `{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"after"},"spec":{"owner":"ada"}}`)
			}
			if err := <-ended; seen != (kind == launch.Espalier) || ctx.Err() != nil {
				t.Errorf("an object that was created after the change was seen: %v; the watch ended with %v", seen, err)
			}
		})
	}
}

// CRDs are stored as v1, where upstream stores v1beta1.
func TestCRDsAreStoredAsV1(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			prefix := prefix()
			c := dial(t, alike(t, kind, prefix))
			post(t, c, crdsPath, boatsCRD(t))
			stored, err := etcdClient(t).Get(t.Context(), prefix+"/apiextensions.k8s.io/customresourcedefinitions/"+boats)
			if err != nil || len(stored.Kvs) != 1 {
				t.Fatal(stored, err)
			}
			var object struct{ APIVersion string }
			decode(t, stored.Kvs[0].Value, &object)
			want := map[launch.Kind]string{launch.Espalier: "apiextensions.k8s.io/v1", launch.Upstream: "apiextensions.k8s.io/v1beta1"}[kind]
			if object.APIVersion != want {
				t.Errorf("stored as %s", object.APIVersion)
			}
		})
	}
}

// CBOR, an alpha feature that is off, cannot be turned on.
func TestOnlyJSON(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			s, err := launch.StartServer(t.Context(), launch.Spec{Kind: kind, Binary: binaries[kind], Etcd: etcd.URL, Prefix: prefix(), Flags: []string{"--feature-gates=CBORServingAndStorage=true"}})
			if err == nil {
				s.Stop()
			}
			if refused := err != nil && strings.Contains(err.Error(), "objects are served and stored as JSON"); refused != (kind == launch.Espalier) {
				t.Errorf("started with: %v", err)
			}
		})
	}
}

// The status of a CRD says, when a change of it is answered, that the change is in force; so changes can follow each other without a conflict.
func TestCRDIsSettledWhenAnswered(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, boatsCRD(t))
			served(t, c)
			path := crdsPath + "/" + boats
			for i := range 20 {
				before := strings.Replace(string(get(t, c, path)), fmt.Sprintf("Who pays for the berth %d.", i-1), "Who pays for the berth.", 1)
				expect(t, c, http.StatusOK, http.MethodPut, path, strings.Replace(before, "Who pays for the berth.", fmt.Sprintf("Who pays for the berth %d.", i), 1))
				var after struct {
					Metadata struct{ Generation int64 }
					Status   struct{ ObservedGeneration int64 }
				}
				decode(t, get(t, c, path), &after)
				want := after.Metadata.Generation
				if kind == launch.Upstream {
					want = 0
				}
				if after.Metadata.Generation != int64(i+2) || after.Status.ObservedGeneration != want {
					t.Errorf("the status speaks of generation %d, and %d is there", after.Status.ObservedGeneration, after.Metadata.Generation)
				}
			}
		})
	}
}
