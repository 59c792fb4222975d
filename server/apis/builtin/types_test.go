package builtin

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	known "k8s.io/client-go/kubernetes/scheme"

	"github.com/espalier-dev/espalier/server/apis/builtin/models"
)

// Every kind whose fields client-go can manage has its schema in models: a write would
// fail without it.
func TestEveryKindHasFieldTypes(t *testing.T) {
	ours, theirs := managedfields.NewSchemeTypeConverter(known.Scheme, models.Parser()), applyconfigurations.NewTypeConverter(known.Scheme)
	compared := 0
	for _, r := range slices.Concat(Standard(), Events(0), Policies(PolicyOptions{}), Roles(), Data()) {
		kind := r.version().WithKind(r.Kind)
		obj := r.New()
		obj.GetObjectKind().SetGroupVersionKind(kind)
		if _, err := theirs.ObjectToTyped(obj); err != nil {
			continue // it has deduced types, as it would with client-go's
		}
		if _, err := ours.ObjectToTyped(obj); err != nil {
			t.Errorf("%v: %v", kind, err)
		}
		compared++
	}
	if compared < 55 {
		t.Errorf("only %d kinds were compared", compared)
	}
}
