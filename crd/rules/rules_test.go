package rules_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/offline"
	"github.com/espalier-dev/espalier/crd/rules"
)

// Clients can leave out everything. What a kind with a status keeps and drops is the same
// for all.
func TestEmptyObjects(t *testing.T) {
	for _, r := range rules.All() {
		t.Run(r.GroupVersionKind.String(), func(t *testing.T) {
			empty := func() runtime.Object {
				obj := offline.Find(r.GroupVersionKind).New()
				if r.Default != nil {
					r.Default(obj)
				}
				return obj
			}
			obj, old := empty(), empty()
			if r.Prepare != nil {
				r.Prepare(obj, nil)
				r.Prepare(obj, old)
			}
			if r.Validate != nil {
				r.Validate(obj, nil)
				if errs, again := r.Validate(old, nil), r.Validate(old, obj); len(again) > len(errs) {
					t.Errorf("an update without a change: %v, as a new object %v", again, errs)
				}
			}
			if r.Warn != nil {
				r.Warn(obj)
			}
			if r.Status != nil {
				r.Status.Prepare(obj, old)
				if errs := r.Status.Validate(obj, old); len(errs) > 0 {
					t.Errorf("an empty status: %v", errs)
				}
			}
			if len(r.Name("a", false)) > 0 || len(r.Name("a/b", false)) == 0 {
				t.Error("names are not validated")
			}
		})
	}
}
