package crd

import (
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/internal/compile"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// ratchet is the errors that an API server tolerates in an update of a CRD,
// because the old CRD already had them. The zero value is for new CRDs.
type ratchet struct {
	names           bool // kind and scope may still change
	reviewVersions  bool // the webhook need not understand a known ConversionReview
	withoutSchema   bool // versions need no schema
	nonStructural   bool
	tolerance       compile.Tolerance
	stored          cel.Expressions
	invalidBundle   bool
	unchangedSchema map[string]bool // by version
	tooManyFields   map[string]bool // by version; "" if all have the same
	warned          map[string]bool // what servers warn of when it is new
}

// newCRD is the ratchet of a CRD that is created.
func newCRD() ratchet { return ratchet{names: true, invalidBundle: true} }

// changed is the ratchet of a CRD that takes the place of old. before134 is that of compile.CheckOptions.
func changed(m, old *model, before134 bool) ratchet {
	r := ratchet{
		names:          !old.established,
		reviewVersions: len(old.Conversion.ReviewVersions) > 0 && !understoodAny(old.Conversion.ReviewVersions),
		withoutSchema:  !old.everySchema(),
		invalidBundle:  !old.established || old.Conversion.Webhook != nil && len(old.Conversion.Webhook.CABundle) > 0 && bundleProblem(old.Conversion.Webhook.CABundle) != "",
		stored:         cel.Expressions{Rules: map[string]bool{}, Messages: map[string]bool{}},
		warned:         map[string]bool{},
	}
	old.trees(func(s *syntax.Schema) {
		v := compile.Validate(s, compile.CheckOptions{Pruning: true, FormatsBefore134: before134})
		r.nonStructural = r.nonStructural || v.Unstructural
		r.tolerance.UnprunedDefaults = r.tolerance.UnprunedDefaults || v.Unpruned
		for i := range v.Findings {
			if f := &v.Findings[i]; f.Check == "format-unrecognized" || f.Check == "list-set-objects" {
				r.warned[f.Detail] = true
			}
		}
		eachSchema(s, r.look)
	})
	r.unchangedSchema = unchangedSchemas(m, old)
	r.tooManyFields = tooManyBefore(m, old)
	return r
}

// look notes what one schema of the old CRD has.
func (r *ratchet) look(s *syntax.Schema) {
	r.tolerance.Types = r.tolerance.Types || !compile.KnownType(s.Type)
	r.tolerance.ListSets = r.tolerance.ListSets || nonAtomicSet(s)
	r.tolerance.ListKeys = r.tolerance.ListKeys || looseKeys(s)
	for i := range s.Validations {
		v := &s.Validations[i]
		r.stored.Rules[v.Rule] = true
		if v.MessageExpression != "" {
			r.stored.Messages[v.MessageExpression] = true
		}
	}
}

func nonAtomicSet(s *syntax.Schema) bool {
	item := s.ItemSchema()
	if item == nil || s.ListType == nil || *s.ListType != "set" {
		return false
	}
	switch item.Type {
	case "array":
		return item.ListType != nil && *item.ListType != "atomic"
	case "object":
		return item.MapType == nil || *item.MapType != "atomic"
	}
	return false
}

// looseKeys reports whether items of a set or map, or keys of a map, may be null
// or, the keys, left out.
func looseKeys(s *syntax.Schema) bool {
	item := s.ItemSchema()
	if item == nil || s.ListType == nil || *s.ListType != "set" && *s.ListType != "map" {
		return false
	}
	if item.Nullable {
		return true
	}
	if *s.ListType == "set" {
		return false
	}
	required := sets.New(item.Required...)
	for _, name := range s.ListMapKeys {
		if key := item.Property(name); key != nil && (key.Nullable || key.Default == nil && !required.Has(name)) {
			return true
		}
	}
	return false
}

// everySchema reports whether all versions have a schema.
func (m *model) everySchema() bool {
	if !m.common().missing() {
		return true
	}
	for i := range m.versions {
		if m.schema(&m.versions[i]).missing() {
			return false
		}
	}
	return true
}

// unchangedSchemas returns the versions whose schema is what it was. Where all
// versions share one, API servers find it under any name.
func unchangedSchemas(m, old *model) map[string]bool {
	type pair struct{ now, before *validation }
	equal := map[pair]bool{}
	now, before := m.byName(), old.byName()
	list := map[string]bool{}
	for i := range m.versions {
		name := m.versions[i].Name
		a, ok := m.find(now, name)
		b, there := old.find(before, name)
		if !ok || !there {
			continue
		}
		p := pair{a, b}
		same, known := equal[p]
		if !known {
			same = equalValidations(a, b)
			equal[p] = same
		}
		if same {
			list[name] = true
		}
	}
	return list
}

// byName returns the versions by name, the first of each.
func (m *model) byName() map[string]*version {
	list := make(map[string]*version, len(m.versions))
	for i := range m.versions {
		if v := &m.versions[i]; list[v.Name] == nil {
			list[v.Name] = v
		}
	}
	return list
}

// find returns the schema of the version called name.
func (m *model) find(byName map[string]*version, name string) (*validation, bool) {
	if m.same.schema || len(m.versions) == 0 {
		return m.common(), true
	}
	v := byName[name]
	if v == nil {
		return nil, false
	}
	return v.schema, true
}

// tooManyBefore returns the versions whose selectable fields are what they were: there may be
// more than a version may have.
func tooManyBefore(m, old *model) map[string]bool {
	list := map[string]bool{}
	if old.same.selectable {
		list[""] = m.same.selectable && equalSelectables(m.versions[0].SelectableFields, old.versions[0].SelectableFields)
		return list
	}
	before := map[string]*version{}
	for i := range old.versions {
		before[old.versions[i].Name] = &old.versions[i]
	}
	for i := range m.versions {
		v := &m.versions[i]
		if o := before[v.Name]; o != nil && !m.same.selectable && equalSelectables(v.SelectableFields, o.SelectableFields) {
			list[v.Name] = true
		}
	}
	return list
}

// eachSchema calls f for s and every schema in it, those under keywords that
// are not supported too.
func eachSchema(s *syntax.Schema, f func(*syntax.Schema)) {
	if s == nil {
		return
	}
	f(s)
	all := func(list []*syntax.Schema) {
		for _, sub := range list {
			eachSchema(sub, f)
		}
	}
	named := func(list []syntax.Property) {
		for _, p := range list {
			eachSchema(p.Schema, f)
		}
	}
	orBool := func(x *syntax.SchemaOrBool) {
		if x != nil {
			eachSchema(x.Schema, f)
		}
	}
	if s.Items != nil {
		eachSchema(s.Items.Schema, f)
		all(s.Items.Tuple)
	}
	all(s.AllOf)
	all(s.AnyOf)
	all(s.OneOf)
	eachSchema(s.Not, f)
	named(s.Properties)
	orBool(s.AdditionalProperties)
	r := s.Rare()
	named(r.PatternProperties)
	orBool(r.AdditionalItems)
	named(r.Definitions)
	for _, d := range r.Dependencies {
		eachSchema(d.Schema, f)
	}
}

// hasDefaults reports whether there is a default anywhere.
func hasDefaults(s *syntax.Schema) bool {
	found := false
	eachSchema(s, func(s *syntax.Schema) { found = found || s.Default != nil })
	return found
}

// hasExtensions reports whether a schema uses extensions that only structural
// schemas may have.
func hasExtensions(s *syntax.Schema) bool {
	found := false
	eachSchema(s, func(s *syntax.Schema) {
		found = found || s.EmbeddedResource || s.PreserveUnknownFields != nil || s.IntOrString ||
			len(s.ListMapKeys) > 0 || s.ListType != nil || len(s.Validations) > 0
	})
	return found
}
