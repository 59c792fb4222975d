package rules

import (
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"

	"k8s.io/apimachinery/pkg/runtime"
)

// made returns an empty object of a kind.
func made(tb testing.TB, r *Rules) runtime.Object {
	tb.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionv1.AddToScheme, apiregistrationv1.AddToScheme, certificatesv1.AddToScheme, coordinationv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme,
		flowv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(s); err != nil {
			tb.Fatal(err)
		}
	}
	obj, err := s.New(r.GroupVersionKind)
	if err != nil {
		tb.Fatal(err)
	}
	return obj
}

// Clients can leave out everything. What a kind with a status keeps and drops is the same
// for all.
func TestEmptyObjects(t *testing.T) {
	for _, r := range All() {
		t.Run(r.GroupVersionKind.String(), func(t *testing.T) {
			empty := func() runtime.Object {
				obj := made(t, r)
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
