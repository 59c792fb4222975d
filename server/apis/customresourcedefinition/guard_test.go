package customresourcedefinition

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// instance writes an object of the CRD into etcd, where the guard counts.
func (s *testServer) instance(t *testing.T, key string) {
	t.Helper()
	if _, err := s.backend.Client().Put(t.Context(), s.prefix+key, "{}"); err != nil {
		t.Fatal(err)
	}
}

func protected(t *testing.T) *testServer {
	t.Helper()
	return serve(t, func(o *Options) { o.ProtectInstances = true })
}

func TestInstancesAreProtected(t *testing.T) {
	s := protected(t)
	const path = "v1/customresourcedefinitions/widgets.example.com"
	s.created(t, widgets)
	s.created(t, gadgets)
	// Names that begin alike are other resources.
	s.instance(t, "/example.com/widgetsandmore/a")
	s.instance(t, "/example.com.au/widgets/a")
	for i := range 3 {
		s.instance(t, fmt.Sprintf("/example.com/widgets/ns%d/a", i))
	}
	for _, query := range []string{"", "?dryRun=All"} {
		a := s.do(t, http.MethodDelete, path+query, "", nil)
		if a.code != http.StatusConflict || !strings.Contains(a.body, "there are 3 instances") ||
			!strings.Contains(a.body, "kubectl annotate crd widgets.example.com espalier.dev/allow-deletion=true") ||
			!strings.Contains(a.body, `"reason":"HasInstances"`) {
			t.Fatalf("deletion%s: %d %s", query, a.code, a.body)
		}
	}
	if a := s.do(t, http.MethodDelete, "v1/customresourcedefinitions?fieldSelector=metadata.name%3Dwidgets.example.com", "", nil); a.code != http.StatusConflict {
		t.Fatalf("deletion of a collection: %d %s", a.code, a.body)
	}
	if a := s.do(t, http.MethodGet, path, "", nil); strings.Contains(a.body, "deletionTimestamp") {
		t.Fatalf("marked all the same: %s", a.body)
	}
	if a := s.do(t, http.MethodDelete, "v1/customresourcedefinitions/gadgets.example.com", "", nil); a.code != http.StatusOK {
		t.Fatalf("one without instances: %d %s", a.code, a.body)
	}
}

func TestDeletionWithInstancesOnDemand(t *testing.T) {
	s := protected(t)
	s.created(t, widgets)
	s.instance(t, "/example.com/widgets/a/a")
	const path = "v1/customresourcedefinitions/widgets.example.com"
	annotate := func(value string) {
		a := s.do(t, http.MethodPatch, path, "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"espalier.dev/allow-deletion":`+value+`}}}`))
		if a.code != http.StatusOK {
			t.Fatalf("%d %s", a.code, a.body)
		}
	}
	annotate(`"false"`)
	if a := s.do(t, http.MethodDelete, path, "", nil); a.code != http.StatusConflict || !strings.Contains(a.body, "there is 1 instance,") {
		t.Fatalf("%d %s", a.code, a.body)
	}
	annotate(`"true"`)
	if a := s.do(t, http.MethodDelete, path, "", nil); a.code != http.StatusOK || !strings.Contains(a.body, "deletionTimestamp") {
		t.Fatalf("%d %s", a.code, a.body)
	}
	// One that is being deleted already is not affected.
	annotate(`null`)
	if a := s.do(t, http.MethodDelete, path, "", nil); a.code != http.StatusOK {
		t.Fatalf("the second deletion: %d %s", a.code, a.body)
	}
}
