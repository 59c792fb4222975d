package builtin

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

const unsafely = `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}`

// One object that cannot be decoded does not make a built-in resource unavailable. For
// resources whose objects forbid something, lists and watches fail instead, so that no
// client believes the prohibition to be gone. All resources allow to delete the object.
func TestUnreadableObject(t *testing.T) {
	all := slices.Concat(Standard(), Events(0), Policies(PolicyOptions{}))
	e := start(t, all...)
	e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`).Is(http.StatusCreated)
	values := map[string]string{
		"garbage":       "garbage",
		"protobuf":      "k8s\x00\xff\xff\xff\xff",
		"envelope":      "k8s\x00\n\x0e\n\x02v1\x12\x08Nonsense\x12\x03\n\x01\x08",
		"nothing":       "",
		"another kind":  `{"apiVersion":"v1","kind":"PodTemplate","metadata":{"name":"bad","namespace":"n"}}`,
		"another type":  `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"bad","namespace":"n"}}`,
		"a list":        `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}`,
		"deep":          strings.Repeat("[", 1<<20),
		"another space": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"bad","namespace":"o"}}`,
	}
	// A watch cache that begins anew asks for patience, as clients know it.
	list := func(t *testing.T, path string) (a apitest.Answer) {
		apitest.Eventually(t, func() bool {
			a = e.Do("GET", path, "")
			return a.Code != http.StatusTooManyRequests
		})
		return a
	}
	tried, refused := 0, map[string]bool{}
	for i := range all {
		one := &all[i]
		prefix, ok := one.Key()
		if !ok {
			continue
		}
		key, path := e.prefix+prefix+"/bad", "/apis/"+one.version().String()+"/"+one.Plural
		if one.Group == "" {
			path = "/api/v1/" + one.Plural
		}
		if one.Namespaced {
			key, path = e.prefix+prefix+"/n/bad", strings.TrimSuffix(path, one.Plural)+"namespaces/n/"+one.Plural
		}
		for what, value := range values {
			if what == "another type" && one.Plural == "leases" {
				continue // it is one
			}
			tried++
			t.Run(one.Plural+" "+what, func(t *testing.T) {
				e.Caller.TB = t
				if _, err := e.etcd.Put(context.Background(), key, value); err != nil {
					t.Fatal(err)
				}
				for _, query := range []string{"", "?resourceVersion=0", "?limit=1"} {
					if one.Complete {
						refused[one.Group+"/"+one.Plural] = true
						list(t, path+query).Is(http.StatusInternalServerError).Has("reason", "StorageReadError").
							Mentions("failed to read one or more " + one.resource().String() + " from the storage: " + key)
						continue
					}
					list(t, path+query).Is(http.StatusOK)
				}
				for _, method := range []string{"GET", "DELETE"} {
					e.Do(method, path+"/bad", "").Is(http.StatusInternalServerError).Has("reason", "StorageReadError").Mentions(key)
				}
				e.Do("DELETE", path+"/bad", unsafely).Is(http.StatusOK)
				e.Do("DELETE", path+"/bad", unsafely).Is(http.StatusNotFound)
				list(t, path).Is(http.StatusOK)
			})
		}
	}
	want := []string{"/resourcequotas"}
	for _, plural := range []string{
		"mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "mutatingwebhookconfigurations",
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "validatingwebhookconfigurations",
	} {
		want = append(want, "admissionregistration.k8s.io/"+plural)
	}
	if got := slices.Sorted(maps.Keys(refused)); !slices.Equal(got, want) {
		t.Errorf("lists fail of %v", got)
	}
	if tried < 100 {
		t.Errorf("%d combinations", tried)
	}
}
