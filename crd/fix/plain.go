package fix

import (
	"slices"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// maxInlined bounds the values that inlining references adds to a schema.
const maxInlined = 100_000

// plain takes the keywords out of s, and of all schemas in it, that structural
// schemas cannot have in any place.
func (f *fixer) plain(s *node) {
	if s.kind != jsondoc.Object {
		return
	}
	if ref := s.get("$ref"); ref != nil {
		defer f.inline(s)()
	}
	f.plainTypes(s)
	f.plainNull(s)
	f.plainItems(s)
	f.plainMaps(s)
	f.dependencies(s)
	s.del("$schema", reason{"unsupported-schema", "$schema is not supported."})
	s.del("id", reason{"unsupported-id", "id is not supported."})
	if s.index("definitions") >= 0 {
		s.del("definitions", reason{"unsupported-definitions", "The definitions are inlined where they are used."})
	}
	if p := s.get(preserve); p != nil && p.kind == jsondoc.False {
		s.del(preserve, reason{"preserve-unknown-fields-false", "false has the same meaning as no value, and only the latter is allowed."})
	}
	f.children(s, f.plain)
}

// children visits the schemas in s.
func (f *fixer) children(s *node, visit func(*node)) {
	one := func(child *node, tokens ...string) {
		if child == nil {
			return
		}
		leave := f.enter(tokens...)
		visit(child)
		leave()
	}
	if properties := s.object("properties"); properties != nil {
		for i, name := range slices.Clone(properties.keys) {
			one(properties.kids[i], "properties", name)
		}
	}
	for _, keyword := range []string{"additionalProperties", "items", "not"} {
		one(s.get(keyword), keyword)
	}
	for _, keyword := range lists {
		for i, branch := range s.items(keyword) {
			one(branch, keyword, strconv.Itoa(i))
		}
	}
}

// inline puts what a reference refers to in its place. The function returned is
// to be called when s is done.
func (f *fixer) inline(s *node) func() {
	why := reason{"unsupported-ref", "Schemas must be self-contained: the referenced schema replaces the reference."}
	ref := s.string("$ref")
	name, local := strings.CutPrefix(ref, "#/definitions/")
	target := f.definitions.object(strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	switch {
	case ref == "":
		s.del("$ref", why)
		return func() {}
	case !local || target == nil:
		f.cannot("/$ref", "unsupported-ref", "$ref is not supported, and "+strconv.Quote(ref)+" is not in the definitions of this schema")
		return func() {}
	case f.open[ref]:
		s.filter(func(key string, _ *node) bool { return key == "description" || key == "title" }, why)
		s.set(preserve, truth(), reason{"unsupported-ref", "A schema must not contain itself: any value is accepted and kept from here on."})
		f.note(Wider, "", "unsupported-ref", "the schema contains itself through "+ref+"; the API server neither validates nor prunes values from here on")
		return func() {}
	}
	if f.budget -= target.size(); f.budget < 0 {
		if !f.failed {
			f.cannot("/$ref", "unsupported-ref", "the references of this schema expand to more than "+strconv.Itoa(maxInlined)+" values")
		}
		return func() {}
	}
	s.del("$ref", why)
	both := object() // keywords that both have: both conditions hold
	for i, key := range target.keys {
		switch {
		case !s.has(key):
			s.set(key, target.kids[i].clone(), why)
		case !slices.Contains(remarks, key) && !s.get(key).sameAs(target.kids[i]):
			both.set(key, target.kids[i].clone(), why)
		}
	}
	if !empty(both) {
		s.alsoAllOf(both, why)
	}
	if f.open == nil {
		f.open = make(map[string]bool)
	}
	f.open[ref] = true
	if s.has("$ref") { // a reference to a reference
		done := f.inline(s)
		return func() { done(); delete(f.open, ref) }
	}
	return func() { delete(f.open, ref) }
}

// plainTypes makes one type of several, and corrects obvious slips.
func (f *fixer) plainTypes(s *node) {
	t := s.get("type")
	switch {
	case t == nil:
	case t.kind == jsondoc.String:
		if word := t.text(); kindsOfType[word] == 0 && kindsOfType[strings.ToLower(word)] != 0 {
			s.set("type", text(strings.ToLower(word)), reason{"type-unknown", "Types must be in lower case."})
		}
	case t.kind == jsondoc.Array:
		f.typeList(s, t)
	}
}

func (f *fixer) typeList(s, t *node) {
	why := reason{"type-unknown", "A schema must have one type. nullable replaces null, and x-kubernetes-int-or-string replaces integer or string."}
	var types []string
	for _, item := range t.kids {
		word := item.text()
		if word == "null" {
			s.set("nullable", truth(), why)
			continue
		}
		if kindsOfType[word] == 0 {
			f.cannot("/type", "type-unknown", "type lists an unknown type")
			return
		}
		if !slices.Contains(types, word) {
			types = append(types, word)
		}
	}
	slices.Sort(types)
	switch {
	case len(types) == 1:
		s.set("type", text(types[0]), why)
	case slices.Equal(types, []string{"integer", "number"}):
		s.set("type", text("number"), why)
	case slices.Equal(types, []string{"integer", "string"}):
		s.set(intOrString, truth(), why, "type")
		s.del("type", why)
	case len(types) > 1:
		s.set(preserve, truth(), why, "type")
		s.del("type", why)
		f.note(Wider, "/type", "type-unknown", "a schema can have only one type: the API server no longer checks that the value is one of "+strings.Join(types, ", "))
	default:
		f.cannot("/type", "type-null", "type null is not supported, and no other type is listed")
	}
}

// plainNull says with nullable what a branch of type null says.
func (f *fixer) plainNull(s *node) {
	for _, keyword := range []string{"anyOf", "oneOf"} {
		isNull := func(b *node) bool { return len(b.keys) == 1 && b.string("type") == "null" }
		branches := s.items(keyword)
		if len(branches) < 2 || !slices.ContainsFunc(branches, isNull) {
			continue
		}
		why := reason{"type-null", "Type null is not supported. nullable replaces it."}
		list := s.get(keyword)
		list.kids = slices.DeleteFunc(slices.Clone(branches), isNull)
		s.because(keyword, why)
		s.set("nullable", truth(), why, keyword)
	}
}

// plainItems makes one schema of a list of them.
func (f *fixer) plainItems(s *node) {
	why := reason{"items-tuple", "items must be one schema for all items."}
	items := s.get("items")
	more := s.get("additionalItems")
	s.del("additionalItems", reason{"unsupported-additional-items", "additionalItems is not supported."})
	if items == nil || items.kind != jsondoc.Array {
		return
	}
	closed := more != nil && more.kind == jsondoc.False
	bounded := false
	if most := s.get("maxItems"); most != nil {
		n, err := strconv.Atoi(string(most.raw))
		bounded = err == nil && n <= len(items.kids)
	}
	// A schema for the items after the listed ones.
	other := more != nil && more.kind == jsondoc.Object && !empty(more) && !bounded
	switch {
	case len(items.kids) == 0 && other:
		s.set("items", more.clone(), why)
		return
	case len(items.kids) == 0:
		s.del("items", why)
	case same(items.kids):
		s.set("items", items.kids[0].clone(), why)
		continues := more.sameAs(items.kids[0])
		other = other && !continues
		if !closed && !bounded && !continues {
			f.note(Narrower, "/items", "items-tuple", "the schema applied to the first items and now applies to all items")
		}
	default:
		s.set("items", literal(`{"`+preserve+`":true}`), why)
		f.note(Wider, "/items", "items-tuple", "an array must have one schema for all items: the API server no longer checks the schemas of single positions")
	}
	if other {
		f.note(Wider, "/additionalItems", "unsupported-additional-items", "an array must have one schema for all items: the API server no longer checks the schema of the items after the listed ones")
	}
	if closed && !bounded {
		s.set("maxItems", &node{kind: jsondoc.Number, raw: []byte(strconv.Itoa(len(items.kids)))}, why)
	}
}

// same reports whether all schemas are the same.
func same(list []*node) bool {
	first := string(list[0].appendJSON(nil))
	return !slices.ContainsFunc(list[1:], func(n *node) bool { return string(n.appendJSON(nil)) != first })
}

// plainMaps makes a map of an object that names its fields by patterns.
func (f *fixer) plainMaps(s *node) {
	patterns := s.get("patternProperties")
	if patterns == nil {
		return
	}
	why := reason{"unsupported-pattern-properties", "patternProperties is not supported."}
	more := s.get("additionalProperties")
	others := more == nil || more.kind != jsondoc.False
	s.del("patternProperties", why)
	if patterns.kind != jsondoc.Object || len(patterns.keys) == 0 {
		return
	}
	everything := slices.Contains([]string{"", ".*", "^.*$", "^.*", ".*$"}, patterns.keys[0])
	if len(patterns.keys) == 1 && !s.has("properties") && (everything && more == nil || !others) {
		s.set("additionalProperties", patterns.kids[0].clone(), why)
		if !everything {
			f.note(Wider, "/patternProperties", why.check, "the API server no longer checks the names of the fields")
		}
		return
	}
	s.del("additionalProperties", why)
	s.set(preserve, truth(), why)
	f.note(Wider, "/patternProperties", why.check, "the API server keeps fields that match the patterns, but no longer validates them")
	if more != nil && more.kind == jsondoc.Object && !empty(more) {
		f.note(Wider, "/additionalProperties", why.check, "the API server keeps the other fields, but no longer validates them")
	}
}

// dependencies replaces dependencies with anyOf: the field is absent, or the
// schema that depends on it matches.
func (f *fixer) dependencies(s *node) {
	all := s.get("dependencies")
	if all == nil {
		s.del("dependencies", reason{"unsupported-dependencies", "dependencies is not supported."})
		return
	}
	why := reason{"unsupported-dependencies", "dependencies is not supported. allOf has the same meaning."}
	s.del("dependencies", why)
	if all.kind != jsondoc.Object {
		return
	}
	for i, name := range all.keys {
		then := all.kids[i].clone()
		if then.kind == jsondoc.Array {
			list := object()
			list.set("required", then, why)
			then = list
		}
		without := literal(`{"not":{"required":[]}}`)
		without.get("not").get("required").kids = []*node{text(name)}
		either := object()
		either.set("anyOf", array(without, then), why)
		s.alsoAllOf(either, why)
	}
}

// alsoAllOf adds a branch to allOf. One that is no array stays: the schema cannot be read.
func (n *node) alsoAllOf(branch *node, why reason) {
	switch list := n.get("allOf"); {
	case list == nil:
		n.set("allOf", array(branch), why)
	case list.kind == jsondoc.Array:
		list.kids = append(list.kids, branch)
		n.because("allOf", why)
	}
}

// remarks are keywords without a condition: what is nearer to the value counts.
var remarks = []string{"title", "description", "default", "example", "externalDocs", "nullable", "id", "$schema", "definitions"}
