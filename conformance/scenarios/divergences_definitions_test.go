package scenarios

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// Every test of the files beside divergences_test.go is named by a row of DIVERGENCES.md, too.
func TestMoreDivergencesAreListed(t *testing.T) {
	table, err := os.ReadFile("../DIVERGENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("divergences_*_test.go")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
			if m[1] != "TestMoreDivergencesAreListed" && !strings.Contains(string(table), "| scenarios."+m[1]+" |") {
				t.Errorf("%s is not in DIVERGENCES.md", m[1])
			}
		}
	}
}

const (
	betaPath  = "/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions"
	reedsPath = "/apis/pond.example.com/v1/namespaces/default/reeds"
)

// reeds is a CRD with names and parts of a version of the caller's.
func reeds(names, version, schema string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"reeds.pond.example.com"},
"spec":{"group":"pond.example.com","scope":"Namespaced","names":{"plural":"reeds","kind":"Reed"%s},
"versions":[{"name":"v1","served":true,"storage":true%s,"schema":{"openAPIV3Schema":%s}}]}}`, names, version, schema)
}

// CRDs of v1beta1, as the documents have them, are taken, with defaults if they prune. Upstream has no such endpoint any more.
func TestCRDsOfV1beta1(t *testing.T) {
	const body = `{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"reeds.pond.example.com"},
"spec":{"group":"pond.example.com","version":"v1","scope":"Namespaced","names":{"plural":"reeds","kind":"Reed"},"preserveUnknownFields":%t,
"validation":{"openAPIV3Schema":{"type":"object","properties":{"colour":{"type":"string","default":"green"}}}}}}`
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			if kind == launch.Upstream {
				expect(t, c, http.StatusNotFound, http.MethodPost, betaPath, fmt.Sprintf(body, false))
				return
			}
			expect(t, c, http.StatusUnprocessableEntity, http.MethodPost, betaPath, fmt.Sprintf(body, true))
			post(t, c, betaPath, fmt.Sprintf(body, false))
			var reed struct{ Colour string }
			decode(t, grow(t, c), &reed)
			if reed.Colour != "green" {
				t.Errorf("%+v", reed)
			}
		})
	}
}

// grow makes a reed, as soon as there may be some, and returns it.
func grow(t *testing.T, c *wire.Conn) []byte {
	t.Helper()
	var reed []byte
	eventually(t, 30*time.Second, "a reed is made", func() bool {
		status, _, answer, err := c.Do(t.Context(), http.MethodPost, reedsPath,
			[]byte(`{"apiVersion":"pond.example.com/v1","kind":"Reed","metadata":{"name":"a"},"spec":{"owner":"ada"}}`))
		reed = append(reed[:0], answer...)
		return err == nil && status == http.StatusCreated
	})
	return reed
}

// CRDs that are deleted together take their objects with them. Upstream forgets its finalizer there, and with it the objects.
func TestCRDsAreDeletedWithObjects(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			prefix := prefix()
			c := dial(t, alike(t, kind, prefix))
			post(t, c, crdsPath, reeds("", "", `{"type":"object"}`))
			grow(t, c)
			expect(t, c, http.StatusOK, http.MethodDelete, crdsPath, "")
			eventually(t, 30*time.Second, "the CRD is gone", func() bool {
				return len(stored(t, prefix+"/apiextensions.k8s.io/customresourcedefinitions/")) == 0
			})
			if left := len(stored(t, prefix+"/pond.example.com/reeds/")); left != map[launch.Kind]int{launch.Espalier: 0, launch.Upstream: 1}[kind] {
				t.Errorf("%d objects are left", left)
			}
		})
	}
}

// What nested schemas cost is bounded: each level is scanned with all that is below it.
func TestCostlyCRD(t *testing.T) {
	schema := `{"type":"string","description":"` + strings.Repeat("x", 100<<10) + `"}`
	for range 700 {
		schema = `{"type":"array","items":` + schema + `}`
	}
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			status, _, answer, err := c.Do(t.Context(), http.MethodPost, crdsPath, []byte(reeds("", "", `{"type":"object","properties":{"spec":`+schema+`}}`)))
			if err != nil {
				t.Fatal(err)
			}
			if kind == launch.Upstream {
				if status != http.StatusCreated {
					t.Errorf("%d: %.500s", status, answer)
				}
			} else if status != http.StatusBadRequest || !strings.Contains(string(answer), "too large for how deeply it is nested") {
				t.Errorf("%d: %.500s", status, answer)
			}
		})
	}
}

// A condition that has much to say is cut off.
func TestConditionMessageIsCut(t *testing.T) {
	const limit = 32 << 10
	var short []string
	for i := range 2000 {
		short = append(short, fmt.Sprintf(`"r%04d"`, i))
	}
	first := reeds(`,"shortNames":[`+strings.Join(short, ",")+`]`, "", `{"type":"object"}`)
	second := strings.NewReplacer("reeds", "rushes", "Reed", "Rush").Replace(first)
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, first)
			grow(t, c)
			post(t, c, crdsPath, second)
			var message string
			eventually(t, 30*time.Second, "names are refused", func() bool {
				message = condition(t, c, "rushes.pond.example.com", "NamesAccepted", "False")
				return message != ""
			})
			if cut := len(message) <= limit && strings.HasSuffix(message, " …"); cut != (kind == launch.Espalier) {
				t.Errorf("%d bytes, which end with %s", len(message), message[max(0, len(message)-40):])
			}
		})
	}
}

// condition returns the message of a condition that has a status.
func condition(t *testing.T, c *wire.Conn, name, kind, status string) string {
	t.Helper()
	var crd struct {
		Status struct {
			Conditions []struct{ Type, Status, Message string }
		}
	}
	decode(t, get(t, c, crdsPath+"/"+name), &crd)
	for _, x := range crd.Status.Conditions {
		if x.Type == kind && x.Status == status {
			return x.Message
		}
	}
	return ""
}

// Objects can be made as soon as their CRD is established. Upstream has requests in the first two seconds wait
// (pkg/apiserver/customresource_handler.go:385), in case that another replica has not heard of it; here all have.
func TestFirstObjectDoesNotWait(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, reeds("", "", `{"type":"object"}`))
			eventually(t, 30*time.Second, "the CRD is established", func() bool {
				return condition(t, c, "reeds.pond.example.com", "Established", "True") != ""
			})
			began := time.Now()
			grow(t, c)
			if waited := time.Since(began) >= time.Second; waited != (kind == launch.Upstream) {
				t.Errorf("the first object took %v", time.Since(began))
			}
		})
	}
}

// Two keywords of KEP-2335 that upstream's types do not have stay in schemas.
func TestKeywordsStay(t *testing.T) {
	const schema = `{"type":"object","properties":{"owner":{"type":"string","readOnly":true},
"either":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"}},"x-kubernetes-unions":[{"fields":{"x":"","y":""}}]}}}`
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			want := map[launch.Kind]int{launch.Espalier: http.StatusCreated, launch.Upstream: http.StatusBadRequest}[kind]
			expect(t, c, want, http.MethodPost, crdsPath+"?dryRun=All&fieldValidation=Strict", reeds("", "", schema))
			post(t, c, crdsPath, reeds("", "", schema))
			crd := string(get(t, c, crdsPath+"/reeds.pond.example.com"))
			for _, keyword := range []string{`"readOnly":true`, `"x-kubernetes-unions":[`} {
				if strings.Contains(crd, keyword) != (kind == launch.Espalier) {
					t.Errorf("%s in %s", keyword, crd)
				}
			}
		})
	}
}
