package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/wire"
)

// Two servers over one etcd: what one accepts the other serves, and once a change of a CRD is acknowledged by its observedGeneration neither
// serves the old schema.
func TestReplicas(t *testing.T) {
	needsDiscovery(t)
	prefix := prefix()
	a, b := dial(t, alike(t, against, prefix)), dial(t, alike(t, against, prefix))
	post(t, a, crdsPath, boatsCRD(t))
	eventually(t, 30*time.Second, "the CRD is established", func() bool {
		return strings.Contains(string(get(t, a, crdsPath+"/"+boats)), `"status":"True","type":"Established"`)
	})
	// Established on one means servable on the other.
	get(t, b, boatsPath)
	for i := range 10 {
		name := fmt.Sprintf("boat-%d", i)
		post(t, a, boatsPath, fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":%q},"spec":{"owner":"ada"}}`, name))
		if got, want := string(get(t, b, boatsPath+"/"+name)), string(get(t, a, boatsPath+"/"+name)); got != want {
			t.Errorf("one serves\n%s\nthe other\n%s", want, got)
		}
		if got := string(get(t, b, boatsPath)); !strings.Contains(got, name) {
			t.Errorf("a list of the other has no %s", name)
		}
	}
	for i := range 100 {
		field := fmt.Sprintf("field%d", i)
		var crd struct {
			Metadata struct{ Generation int64 }
			Status   struct{ ObservedGeneration int64 }
		}
		patch(t, a, crdsPath+"/"+boats, fmt.Sprintf(`[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/%s","value":{"type":"string","default":"d"}}]`, field))
		eventually(t, 30*time.Second, "the generation is observed", func() bool {
			decode(t, get(t, a, crdsPath+"/"+boats), &crd)
			return crd.Status.ObservedGeneration == crd.Metadata.Generation
		})
		post(t, b, boatsPath, fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"with-%s"},"spec":{"owner":"ada"}}`, field))
		if got := string(get(t, b, boatsPath+"/with-"+field)); !strings.Contains(got, `"`+field+`":"d"`) {
			t.Errorf("generation %d is observed, and the other server makes an object without %s: %s", crd.Metadata.Generation, field, got)
		}
		if got := string(get(t, b, boatsPath+"/boat-0")); !strings.Contains(got, `"`+field+`":"d"`) {
			t.Errorf("generation %d is observed, and the other server reads an object without %s: %s", crd.Metadata.Generation, field, got)
		}
	}
}

// What one server says is established the other serves at once, and tells of: it does not say "not found" because its own watch is behind.
func TestEstablishedEverywhere(t *testing.T) {
	needsDiscovery(t)
	prefix := prefix()
	a, b := dial(t, alike(t, against, prefix)), dial(t, alike(t, against, prefix))
	for i := range 200 {
		group := fmt.Sprintf("harbour-%d.example.com", i)
		post(t, a, crdsPath, strings.ReplaceAll(boatsCRD(t), "harbour.example.com", group))
		eventually(t, 30*time.Second, "the CRD is established", func() bool {
			return strings.Contains(string(get(t, a, crdsPath+"/boats."+group)), `"status":"True","type":"Established"`)
		})
		switch i % 4 {
		case 1:
			get(t, b, "/apis/"+group)
		case 2:
			if got := string(get(t, b, "/apis/"+group+"/v1")); !strings.Contains(got, `"name":"boats"`) {
				t.Errorf("there are no boats in /apis/%s/v1: %s", group, got)
			}
		case 3:
			get(t, b, "/openapi/v3/apis/"+group+"/v1")
		}
		post(t, b, strings.Replace(boatsPath, "harbour.example.com", group, 1),
			fmt.Sprintf(`{"apiVersion":%q,"kind":"Boat","metadata":{"name":"first"},"spec":{"owner":"ada"}}`, group+"/v1"))
	}
}

func patch(t *testing.T, c *wire.Conn, path, body string) {
	t.Helper()
	status, _, answer, err := c.Do(t.Context(), http.MethodPatch, path, []byte(body), wire.Header{Name: "Content-Type", Value: "application/json-patch+json"})
	if err != nil || status != http.StatusOK {
		t.Fatalf("PATCH %s: %d, %v: %.500s", path, status, err, answer)
	}
}
