package request

import (
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/internal/object"
)

// FuzzReplicas reads a number back from where it was written, and wants everything else to stay.
func FuzzReplicas(f *testing.F) {
	f.Add(`{"spec":{"a":{"b":1},"c":[]}}`, ".spec.a.b", int64(7))
	f.Add(`{"spec":{"<":"\u0026"},"status":1}`, ".spec.x.y", int64(-1))
	f.Fuzz(func(t *testing.T, content, path string, n int64) {
		var o object.Object
		member := Steps(path)[0]
		if o.UnmarshalJSON([]byte(content)) != nil || slices.Contains([]string{"apiVersion", "kind", "metadata"}, member) {
			return
		}
		before, s := o.DeepCopy(), Scale{SpecReplicas: path}
		if err := s.SetDesired(&o, n); err != nil {
			return
		}
		got, found, err := s.Desired(&o)
		if err != nil || !found || got != n {
			t.Fatalf("%d, %v, %v at %s of %s", got, found, err, path, o.JSON())
		}
		if !o.SameBody(before, member) {
			t.Errorf("%s has become %s", before.JSON(), o.JSON())
		}
		var again object.Object
		if err := again.UnmarshalJSON(o.JSON()); err != nil || string(again.JSON()) != string(o.JSON()) {
			t.Errorf("%s is not canonical, %v", o.JSON(), err)
		}
	})
}
