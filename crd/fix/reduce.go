package fix

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// reduce takes everything out of the logical keywords of s, a finished schema of the
// core, that is not value validation.
func (f *fixer) reduce(s *node) {
	r := reducer{fixer: f}
	for _, keyword := range lists {
		r.list(s, s, keyword, false, true)
	}
	r.not(s, s, false)
}

type reducer struct {
	*fixer
	quiet bool // the branches are those of a oneOf that gets one note as a whole
}

// keywords that go from branches without a change of what is valid, and the
// checks that require it.
var idle = map[string]finding.ID{
	"default": "junctor-default", "title": "junctor-title", "description": "junctor-description",
	preserve: "junctor-preserve-unknown-fields", embedded: "junctor-embedded-resource",
	listType: "junctor-list-type", "x-kubernetes-list-map-keys": "junctor-list-map-keys",
	"x-kubernetes-map-type": "junctor-map-type", "x-kubernetes-validations": "junctor-validations",
	"uniqueItems": "unique-items",
}

// exact reports whether branch b can be reduced without a change of its result
// on values that o, the schema of the core beside it, accepts. o is nil where
// the core accepts everything.
func exact(b, o *node) bool {
	if b.kind != jsondoc.Object {
		return false
	}
	if b.is("uniqueItems") {
		return false // no other keyword compares items
	}
	admits := kindsOf(b)
	if b.string("format") != o.string("format") && b.string("type") == "string" {
		admits &^= kindArray
	}
	if typed(b) && kindsOf(o)&^admits != 0 {
		return false
	}
	if t := b.string("type"); (t == "integer" || t == "number") && b.has("format") && b.string("format") != o.string("format") {
		return false
	}
	if more := b.get("additionalProperties"); more != nil {
		switch more.kind {
		case jsondoc.False:
			if len(b.object("properties").members()) > 0 {
				return false
			}
		case jsondoc.Object:
			if !vacuous(more, valuesOf(o)) {
				return false
			}
		}
	}
	if p := b.object("properties"); p != nil {
		for i, name := range p.keys {
			if name == "metadata" && !vacuous(p.kids[i], fieldOf(o, name)) || !exact(p.kids[i], fieldOf(o, name)) {
				return false
			}
		}
	}
	if items := b.object("items"); items != nil && !exact(items, itemsOf(o)) {
		return false
	}
	for _, keyword := range lists {
		if slices.ContainsFunc(b.items(keyword), func(x *node) bool { return !exact(x, o) }) {
			return false
		}
	}
	not := b.get("not")
	return not == nil || exact(not, o)
}

// vacuous reports whether b accepts all values that o does, for no other reason
// than its type.
func vacuous(b, o *node) bool {
	for _, key := range b.keys {
		if _, ok := idle[key]; !ok && key != "type" && key != "nullable" && key != intOrString {
			return false
		}
	}
	return exact(b, o)
}

func fieldOf(o *node, name string) *node {
	if field := o.object("properties").object(name); field != nil {
		return field
	}
	if o.object("properties") != nil && len(o.object("properties").keys) > 0 {
		return nil
	}
	return valuesOf(o)
}

func valuesOf(o *node) *node { return o.object("additionalProperties") }

func itemsOf(o *node) *node { return o.object("items") }

// branch reduces b. Unless exactly, it may accept more than before, and a note says so.
// What is exact loses nothing that needs one. It reports whether something was changed.
func (r *reducer) branch(b, o *node, exactly bool) bool {
	if b.kind != jsondoc.Object {
		return false
	}
	changed := r.branchType(b, o)
	for _, key := range slices.Clone(b.keys) {
		check, ok := idle[key]
		if !ok {
			continue
		}
		if key == "x-kubernetes-validations" {
			r.note(Wider, "/"+key, check, "CEL rules inside allOf, anyOf, oneOf and not are not supported and are removed")
		}
		if key == "default" && !b.get(key).sameAs(o.get(key)) {
			r.note(Advice, "/default", check, "defaults inside allOf, anyOf, oneOf and not are not supported and never had an effect; set the default outside if it applies to all objects")
		}
		if key == "uniqueItems" && b.is(key) {
			r.note(Wider, "/"+key, check, "uniqueItems is not supported inside allOf, anyOf, oneOf and not; the API server no longer checks that the items are unique")
		}
		b.del(key, reason{check, key + " must be outside allOf, anyOf, oneOf and not."})
		changed = true
	}
	changed = r.branchMap(b, o) || changed
	changed = r.branchProperties(b, o, exactly) || changed
	if items := b.object("items"); items != nil {
		leave := r.enter("items")
		if r.branch(items, itemsOf(o), exactly) {
			changed = true
			if empty(items) {
				b.del("items", reason{"junctor-type", "No condition on the items is left."})
			}
		}
		leave()
	}
	for _, keyword := range lists {
		changed = r.list(b, o, keyword, exactly, false) || changed
	}
	return r.not(b, o, exactly) || changed
}

func (n *node) sameAs(other *node) bool {
	return n != nil && other != nil && string(n.appendJSON(nil)) == string(other.appendJSON(nil))
}

func (r *reducer) branchType(b, o *node) bool {
	if !typed(b) {
		if b.index("nullable") >= 0 {
			b.del("nullable", reason{"junctor-nullable", "Without a type it has no effect."})
			return true
		}
		return false
	}
	if !r.quiet && kindsOf(o)&^kindsOf(b) != 0 {
		r.note(Wider, "", "junctor-type", "the branch applied to values of one type, and the schema outside accepts other types: types must be outside allOf, anyOf, oneOf and not, so the branch no longer distinguishes them")
	}
	why := reason{"junctor-type", "The type must be outside allOf, anyOf, oneOf and not."}
	b.del("type", why)
	b.del(intOrString, reason{"junctor-int-or-string", "It must be outside allOf, anyOf, oneOf and not."})
	b.del("nullable", reason{"junctor-nullable", "It must be outside allOf, anyOf, oneOf and not."})
	return true
}

func (r *reducer) branchMap(b, o *node) bool {
	more := b.get("additionalProperties")
	if more == nil || more.kind == jsondoc.False && len(b.object("properties").members()) == 0 {
		return false
	}
	why := reason{"junctor-additional-properties", "additionalProperties must be outside allOf, anyOf, oneOf and not."}
	if more.kind == jsondoc.False {
		why = reason{"properties-or-additional-properties", "A schema must not have both properties and additionalProperties."}
	}
	if more.kind == jsondoc.False || more.kind == jsondoc.Object && !vacuous(more, valuesOf(o)) {
		r.note(Wider, "/additionalProperties", why.check, "additionalProperties must be outside allOf, anyOf, oneOf and not; the branch no longer checks additional fields")
	}
	b.del("additionalProperties", why)
	return true
}

func (r *reducer) branchProperties(b, o *node, exactly bool) bool {
	p := b.object("properties")
	if p == nil {
		return false
	}
	changed := false
	left := map[string]bool{} // fields without a remaining condition
	for i, name := range p.keys {
		leave := r.enter("properties", name)
		field := fieldOf(o, name)
		if name == "metadata" {
			if !vacuous(p.kids[i], field) {
				r.note(Wider, "", "junctor-metadata", "a field named metadata is forbidden inside allOf, anyOf, oneOf and not: the API server no longer checks the condition of the branch on it")
			}
			left[name] = true
		} else if r.branch(p.kids[i], field, exactly) {
			changed = true
			left[name] = empty(p.kids[i])
		}
		leave()
	}
	before := len(p.keys)
	p.filter(func(name string, _ *node) bool { return !left[name] }, reason{"junctor-type", "No condition on the field is left here."})
	if len(p.keys) == before {
		return changed
	}
	if len(p.keys) == 0 {
		b.del("properties", reason{"junctor-type", "No condition is left here: types and field names are specified outside allOf, anyOf, oneOf and not."})
	}
	return true
}

// list reduces the branches of a logical keyword of b. core says that b is a schema of
// the core itself, whose int-or-string form stays.
func (r *reducer) list(b, o *node, keyword string, exactly, core bool) bool {
	branches := b.get(keyword)
	if branches == nil || branches.kind != jsondoc.Array {
		return false
	}
	if core && keyword == "anyOf" && isForm(branches) {
		return false
	}
	keep := exactly
	if keyword == "oneOf" && !exactly {
		keep = !slices.ContainsFunc(branches.kids, func(x *node) bool { return !exact(x, o) })
	}
	changed := false
	before := r.quiet
	r.quiet = before || keyword == "oneOf" // exact branches get no notes anyway
	defer func() { r.quiet = before }()
	for i, x := range branches.kids {
		leave := r.enter(keyword, strconv.Itoa(i))
		if core && keyword == "allOf" && i == 0 && x.kind == jsondoc.Object && x.has("anyOf") && isForm(x.get("anyOf")) {
			form := x.get("anyOf")
			at := x.index("anyOf")
			x.kids[at] = &node{kind: jsondoc.Null}
			changed = r.branch(x, o, keep) || changed
			x.kids[x.index("anyOf")] = form
		} else {
			changed = r.branch(x, o, keep) || changed
		}
		leave()
	}
	if !changed {
		return false
	}
	r.tidy(b, keyword, branches, keep)
	return true
}

// isForm reports whether branches are the ones that servers permit for
// int-or-string.
func isForm(branches *node) bool {
	return string(branches.appendJSON(nil)) == `[{"type":"integer"},{"type":"string"}]`
}

// tidy completes a logical keyword whose branches were reduced: exactly, or else it may
// accept more.
func (r *reducer) tidy(b *node, keyword string, branches *node, exactly bool) {
	why := reason{"junctor-type", "No condition is left here."}
	switch keyword {
	case "allOf":
		branches.kids = slices.DeleteFunc(slices.Clone(branches.kids), empty)
		if len(branches.kids) == 0 {
			b.del(keyword, why)
		}
	case "anyOf":
		if slices.ContainsFunc(branches.kids, empty) {
			b.del(keyword, reason{"junctor-type", "One of the branches now accepts every value, and so does the anyOf."})
		}
	case "oneOf":
		if exactly {
			return
		}
		why = reason{"junctor-type", "The branches no longer differ by type, so a value may match more than one."}
		left := "the API server no longer checks that a value matches only one"
		if slices.ContainsFunc(branches.kids, empty) {
			left = "the API server no longer checks it"
		}
		r.note(Wider, "/oneOf", "junctor-type", "the branches differed in keywords that a structural schema must not have inside oneOf: "+left)
		if !slices.ContainsFunc(branches.kids, empty) {
			if b.index("anyOf") < 0 {
				b.set("anyOf", branches.clone(), why, keyword)
			} else {
				either := object()
				either.set("anyOf", branches.clone(), why)
				if all := b.get("allOf"); all != nil {
					all.kids = append(all.kids, either)
					b.because("allOf", why)
				} else {
					b.set("allOf", array(either), why, keyword)
				}
			}
		}
		b.del(keyword, why)
	}
}

// not reduces the not of b, or removes it if that cannot be done exactly.
func (r *reducer) not(b, o *node, exactly bool) bool {
	not := b.object("not")
	if not == nil {
		return false
	}
	leave := r.enter("not")
	defer leave()
	if exactly || exact(not, o) {
		return r.branch(not, o, true)
	}
	r.note(Wider, "", "junctor-type", "the condition needs keywords that a structural schema must not have inside not: the API server no longer checks it")
	b.del("not", reason{"junctor-type", "A structural schema must not have these keywords inside not."})
	return true
}
