package fix

import (
	"slices"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// typeOf gives s a type, or something that takes its place.
func (f *fixer) typeOf(s *node, mentions []mention, groups []group, at place) {
	switch {
	case at.root:
		certain(s, "object", true, reason{"root-type-object", "It is an object in any case."})
	case s.is(embedded):
		if certain(s, "object", false, reason{"embedded-type", "A resource is an object."}) {
			f.inferred("object")
		}
	case at.meta != "":
		want, rule := "string", finding.ID("type-meta-string")
		if at.meta == "metadata" {
			want, rule = "object", "metadata-object"
		}
		if certain(s, want, at.own, reason{rule, at.meta + " of a resource is of this type in any case."}) && !at.own {
			f.inferred(want)
		}
	case typed(s) || s.is(preserve):
	default:
		f.infer(s, mentions, groups, at)
	}
}

// certain gives s the only type that its values can have, and reports whether
// it had none. Another one that is stated goes only if no value could have had
// it.
func certain(s *node, typ string, never bool, why reason) bool {
	t := s.get("type")
	switch {
	case t == nil:
		s.set("type", text(typ), why, subjects...)
		return true
	case never && t.kind == jsondoc.String && t.text() != typ:
		s.set("type", text(typ), why)
	}
	return false
}

// subjects are the keywords before which the type is put.
var subjects = []string{"properties", "required", "additionalProperties", "items", "allOf", "anyOf", "oneOf", "not"}

// inferred notes that a type was not stated.
func (f *fixer) inferred(typ string) {
	f.note(Narrower, "/type", "type-required", "the type "+typ+" is inferred from what is said about the value; values of other types, which were accepted for want of a type, are refused from now on")
}

// evidence is what the branches say about a type.
type evidence struct {
	types    []string // sorted, without duplicates
	nullable bool
	implied  bool // no other value was accepted
}

func (e *evidence) add(s *node) {
	t := s.string("type")
	if s.is(intOrString) {
		t = "integer"
		e.insert("string")
	}
	if t == "" {
		t, _ = listed(s)
	}
	if t != "" {
		e.insert(t)
		e.nullable = e.nullable || s.is("nullable")
	}
}

// certainly reports whether s admits values of the types that add takes from it
// only.
func certainly(s *node) bool {
	_, implied := listed(s)
	return typed(s) || implied
}

func (e *evidence) insert(t string) {
	if i, found := slices.BinarySearch(e.types, t); !found {
		e.types = slices.Insert(e.types, i, t)
	}
}

// collect asks the branches: those that always hold first, then those of which
// one always holds, then all.
func collect(mentions []mention, groups []group) evidence {
	var e evidence
	for _, m := range mentions {
		if m.always && certainly(m.schema) && len(e.types) == 0 {
			e.add(m.schema)
			e.implied = true
		}
	}
	if e.implied {
		return e
	}
	for _, g := range groups {
		if slices.ContainsFunc(g, func(b *node) bool { return !certainly(b) }) {
			continue
		}
		for _, b := range g {
			e.add(b)
		}
		e.implied = true
		return e
	}
	for _, m := range mentions {
		if !m.mute {
			e.add(m.schema)
		}
	}
	return e
}

// infer finds a type for s.
func (f *fixer) infer(s *node, mentions []mention, groups []group, at place) {
	e := collect(mentions, groups)
	const required = "Every field, item and value of a map has a type outside of junctors."
	why := reason{"type-required", required}
	t := ""
	if e.nullable {
		s.set("nullable", truth(), reason{"junctor-nullable", "nullable is stated outside of junctors."})
	}
	switch {
	case len(e.types) == 1:
		t = e.types[0]
	case slices.Equal(e.types, []string{"integer", "number"}):
		t = "number"
	case slices.Equal(e.types, []string{"integer", "string"}):
		s.set(intOrString, truth(), why, subjects...)
		if !e.implied {
			f.note(Narrower, "/"+intOrString, "type-required", "the branches that mention this field say integer or string; values of other types, which were accepted where no such branch applied, are refused from now on")
		} else {
			f.nulls(s, at, "/"+intOrString)
		}
	case len(e.types) == 0:
		t, e.implied = listed(s)
		if t == "" {
			t = subject(s, mentions)
		}
	}
	switch {
	case s.is(intOrString):
	case t == "":
		s.set(preserve, truth(), reason{"type-required", "Nothing says what this is: anything is accepted and kept."}, subjects...)
		if len(e.types) > 1 {
			f.note(Wider, "", "type-required", "a value has one type or none: which of several it is, is no longer checked")
		}
	default:
		s.set("type", text(t), why, subjects...)
		if !e.implied {
			f.inferred(t)
		} else {
			f.nulls(s, at, "/type")
		}
	}
}

// nulls notes that null was accepted: clusters do not apply junctors to it, and
// only those gave the value a type.
func (f *fixer) nulls(s *node, at place, pointer string) {
	if !at.optional && !s.is("nullable") && !s.has("enum") {
		f.note(Narrower, pointer, "type-required", "null was accepted here, since clusters do not apply junctors to it, and is refused from now on; add nullable: true if it is to be accepted")
	}
}

// listed returns the type that all values of an enum have. It is implied unless
// clusters find other values in the enum, too: they take the string A for 65.
func listed(s *node) (typ string, implied bool) {
	implied = true
	for _, v := range s.items("enum") {
		t := ""
		switch v.kind {
		case jsondoc.String:
			t = "string"
			implied = implied && utf8.RuneCountInString(v.text()) != 1
		case jsondoc.True, jsondoc.False:
			t = "boolean"
		case jsondoc.Number:
			t = "number"
		}
		if t == "" || typ != "" && t != typ {
			return "", false
		}
		typ = t
	}
	return typ, implied && typ != ""
}

// subject returns the type that the keywords of s, and of its branches, are
// about, if it is only one.
func subject(s *node, mentions []mention) string {
	found := ""
	schemas := []*node{s}
	for _, m := range mentions {
		if !m.mute {
			schemas = append(schemas, m.schema)
		}
	}
	for _, about := range []struct {
		typ      string
		keywords []string
	}{
		{"object", aboutObjects}, {"array", aboutArrays}, {"string", aboutStrings}, {"number", aboutNumbers},
	} {
		says := func(x *node) bool {
			return slices.ContainsFunc(about.keywords, func(k string) bool {
				return x.has(k) && !(k == "additionalProperties" && x.is(k)) // true says nothing
			})
		}
		if !slices.ContainsFunc(schemas, says) {
			continue
		}
		if found != "" {
			return ""
		}
		found = about.typ
	}
	return found
}

// maps keeps the fields of an object apart from the values of a map. What was
// said of the values is returned among the mentions: fields that only branches
// name were values, too.
func (f *fixer) maps(s *node, mentions []mention, at place) []mention {
	fields := len(s.object("properties").members()) > 0
	more := s.get("additionalProperties")
	for _, m := range mentions {
		fields = fields || more == nil && len(m.schema.object("properties").members()) > 0
	}
	if more == nil {
		liftMap(s, mentions, fields, at)
		return mentions
	}
	rule := finding.ID("properties-or-additional-properties")
	switch {
	case at.root:
		rule = "root-additional-properties"
	case s.is(embedded):
		rule = "embedded-additional-properties"
	case !fields || more.kind == jsondoc.True:
		return mentions
	}
	if more.kind == jsondoc.False {
		s.del("additionalProperties", reason{rule, "Unknown fields are pruned; that is what it was for."})
		return mentions
	}
	why := reason{rule, "An object has given fields or is a map, not both: unknown fields are kept instead."}
	s.del("additionalProperties", why)
	if !s.is(preserve) {
		s.set(preserve, truth(), why)
	}
	if more.kind != jsondoc.Object || empty(more) {
		return mentions
	}
	f.note(Wider, "/additionalProperties", rule, "an object has given fields or is a map, not both: the other fields are kept, but no longer checked")
	was := object()
	was.set("additionalProperties", more, why)
	was.set("properties", object(), why)
	for _, name := range s.object("properties").members() {
		was.get("properties").set(name, object(), why)
	}
	return append(mentions, mention{was, false, true})
}

// liftMap states outside of junctors that an object is a map.
func liftMap(s *node, mentions []mention, fields bool, at place) {
	i := slices.IndexFunc(mentions, func(m mention) bool { return m.schema.object("additionalProperties") != nil })
	if i < 0 {
		return
	}
	if fields || at.root || s.is(embedded) {
		if !s.is(preserve) {
			s.set(preserve, truth(), reason{"junctor-additional-properties", "A branch calls this a map, and it has fields of its own: all are kept."})
		}
		return
	}
	s.set("additionalProperties", object(), reason{"junctor-additional-properties", "additionalProperties is stated outside of junctors."}, lists...)
}

// members returns the keys of an object that may be nil.
func (n *node) members() []string {
	if n == nil {
		return nil
	}
	return n.keys
}
