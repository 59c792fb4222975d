package v1beta1

import (
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/conversion"

	orchardv1 "example.com/orchard/api/v1"
)

const centimetres = 100 // in a metre

// ConvertTo writes the tree as one of v1.
func (t *Tree) ConvertTo(hub conversion.Hub) error {
	to, ok := hub.(*orchardv1.Tree)
	if !ok {
		return fmt.Errorf("a tree does not become a %T", hub)
	}
	to.ObjectMeta = t.ObjectMeta
	to.Spec = orchardv1.TreeSpec{Variety: t.Spec.Variety, Form: t.Spec.Form, HeightCentimetres: t.Spec.HeightMetres * centimetres}
	return nil
}

// ConvertFrom reads the tree from one of v1.
func (t *Tree) ConvertFrom(hub conversion.Hub) error {
	from, ok := hub.(*orchardv1.Tree)
	if !ok {
		return fmt.Errorf("a %T does not become a tree", hub)
	}
	t.ObjectMeta = from.ObjectMeta
	t.Spec = TreeSpec{Variety: from.Spec.Variety, Form: from.Spec.Form, HeightMetres: from.Spec.HeightCentimetres / centimetres}
	return nil
}
