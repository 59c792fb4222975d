package crd_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Other packages find the parts of a CRD in its text, also after Release.
func TestParts(t *testing.T) {
	d, err := crd.Parse([]byte(edited(`"storage":true,`, `"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.a"}},"additionalPrinterColumns":[{"name":"A"},{"name":"B"}],"selectableFields":[{"jsonPath":".c"}],`)))
	if err != nil {
		t.Fatal(err)
	}
	v := d.Version("v1")
	var trees []*syntax.Schema
	for range 2 {
		doc := crdtree.Doc(d)
		for want, part := range map[string]any{
			`{"name":"v1",`: v, `{"name":"A"}`: &v.Columns[0], `{"name":"B"}`: &v.Columns[1], `{"specReplicasPath":".spec.a"}`: v.Scale, `{"jsonPath":".c"}`: &v.SelectableFields[0],
		} {
			if got := string(doc.Raw(crdtree.At(part))); !strings.HasPrefix(got, want) {
				t.Errorf("%s, not %s", got, want)
			}
		}
		s := crdtree.Parse(v)
		if s.Tree == nil || s.Tree.Type != "object" || len(s.Problems) > 0 || s.Shift != 0 {
			t.Errorf("%+v", s)
		}
		if crdtree.Parse(v).Tree != s.Tree {
			t.Error("a schema is parsed twice")
		}
		trees = append(trees, s.Tree)
		d.Release()
	}
	if trees[0] == trees[1] {
		t.Error("Release keeps the syntax tree of a schema")
	}
	if s := crdtree.Parse(&crd.Version{}); s.Tree != nil {
		t.Errorf("%+v", s)
	}
	defer func() {
		if recover() == nil {
			t.Error("a CRD is taken for one of its parts")
		}
	}()
	crdtree.At(d)
}
