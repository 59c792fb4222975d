package crd

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// model is a CRD as an API server has it after decoding and defaulting.
type model struct {
	*CRD
	meta     metav1.ObjectMeta
	versions []version

	accepted    Names
	established bool
	stored      []string
	hasStored   bool // the list is written, or was filled in

	// What API servers take out of the versions because all of them say the
	// same. With one version, it is everything.
	same struct{ schema, subresources, columns, selectable bool }
}

type version struct {
	*Version
	schema *validation // nil if it is left out
}

// validation is the schema of a version and what is around it.
type validation struct {
	raw   []byte         // the schema as written
	tree  *syntax.Schema // nil if there is none
	shift int            // to be added to the offsets of tree
}

// newModel reads what an API server has of a CRD whose shape has been checked. With rest
// it goes on after what no server can decode.
func newModel(d *CRD, rest func(*espalier.SyntaxError)) (*model, error) {
	m := &model{
		CRD: d, versions: make([]version, len(d.Versions)), accepted: d.Status.AcceptedNames, established: d.Status.True("Established"),
		stored: d.Status.StoredVersions, hasStored: d.Status.hasStored,
	}
	doc := d.index.get()
	if v, ok := doc.Get(jsondoc.Root, "metadata"); ok {
		if err := json.UnmarshalCaseSensitivePreserveInts(doc.Raw(v), &m.meta); err != nil {
			err := &espalier.SyntaxError{Offset: doc.Offset(v), Pointer: "/metadata", Msg: err.Error()}
			if rest == nil {
				return nil, err
			}
			// What its shape shows is reported already.
			if s := (shaper{doc: doc}); s.check(v, metadataShape) == nil {
				rest(err)
			}
		}
	}
	for i := range d.Versions {
		v := &d.Versions[i]
		m.versions[i].Version = v
		if !v.hasSchema {
			continue
		}
		s := v.schema()
		for _, p := range s.Problems {
			err := &espalier.SyntaxError{Offset: p.Offset + s.Shift, Pointer: v.Pointer + p.Pointer, Msg: p.Message}
			if rest == nil {
				return nil, err
			}
			rest(err)
		}
		m.versions[i].schema = &validation{raw: v.Schema, tree: s.Tree, shift: s.Shift}
	}
	if len(m.stored) == 0 {
		m.addStored()
	}
	m.compareVersions()
	return m, nil
}

// addStored adds the storage version to the stored ones.
func (m *model) addStored() {
	if v := m.StorageVersion(); v != nil && !slices.Contains(m.stored, v.Name) {
		m.stored, m.hasStored = append(slices.Clip(m.stored), v.Name), true
	}
}

// compareVersions finds out what all versions say alike.
func (m *model) compareVersions() {
	if len(m.versions) == 0 {
		return
	}
	first := &m.versions[0]
	all := func(equal func(v *version) bool) bool {
		for i := range m.versions {
			if !equal(&m.versions[i]) {
				return false
			}
		}
		return true
	}
	m.same.schema = all(func(v *version) bool { return equalValidations(v.schema, first.schema) })
	m.same.subresources = all(func(v *version) bool { return equalSubresources(v.Version, first.Version) })
	m.same.columns = all(func(v *version) bool { return slices.EqualFunc(v.Columns, first.Columns, equalColumns) })
	m.same.selectable = all(func(v *version) bool { return equalSelectables(v.SelectableFields, first.SelectableFields) })
}

// schema returns the schema that a version has for itself.
func (m *model) schema(v *version) *validation {
	if m.same.schema {
		return nil
	}
	return v.schema
}

// common returns the schema of all versions, nil if there is none.
func (m *model) common() *validation {
	if !m.same.schema {
		return nil
	}
	return m.versions[0].schema
}

func (v *validation) missing() bool { return v == nil || v.tree == nil }

// trees calls f for each schema, once for those that all versions share.
func (m *model) trees(f func(*syntax.Schema)) {
	if v := m.common(); !v.missing() {
		f(v.tree)
		return
	}
	for i := range m.versions {
		if v := m.schema(&m.versions[i]); !v.missing() {
			f(v.tree)
		}
	}
}

// anyTree reports whether f holds for a schema.
func (m *model) anyTree(f func(*syntax.Schema) bool) bool {
	found := false
	m.trees(func(s *syntax.Schema) { found = found || f(s) })
	return found
}
