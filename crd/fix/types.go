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
		certain(s, "object", true, reason{"root-type-object", "The root is always an object."})
	case s.is(embedded):
		if certain(s, "object", false, reason{"embedded-type", "A resource is always an object."}) {
			f.inferred("object")
		}
	case at.meta != "":
		want, check := "string", finding.ID("type-meta-string")
		if at.meta == "metadata" {
			want, check = "object", "metadata-object"
		}
		if certain(s, want, at.own, reason{check, at.meta + " of a resource always has this type."}) && !at.own {
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
	f.note(Narrower, "/type", "type-required", "the type "+typ+" is inferred from the other keywords; the API server now rejects values of other types, which it accepted while the type was missing")
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

// collect asks the branches: first those that always hold, then groups with one
// branch that always holds, then all.
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
	const required = "Every field, array item and map value must have a type outside allOf, anyOf, oneOf and not."
	why := reason{"type-required", required}
	t := ""
	if e.nullable && !s.is("nullable") {
		s.set("nullable", truth(), reason{"junctor-nullable", "nullable must be outside allOf, anyOf, oneOf and not."})
	}
	switch {
	case len(e.types) == 1:
		t = e.types[0]
	case slices.Equal(e.types, []string{"integer", "number"}):
		t = "number"
	case slices.Equal(e.types, []string{"integer", "string"}):
		s.set(intOrString, truth(), why, subjects...)
		if !e.implied {
			f.note(Narrower, "/"+intOrString, "type-required", "the branches with this field allow an integer or a string; the API server now rejects values of other types, which it accepted where no such branch applied")
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
		s.set(preserve, truth(), reason{"type-required", "No keyword implies a type: any value is accepted and kept."}, subjects...)
		if len(e.types) > 1 {
			f.note(Wider, "", "type-required", "a schema can have only one type: the API server no longer checks which of several types the value has")
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

// nulls notes that null was accepted: clusters do not apply logical keywords to it, and
// only those gave the value a type.
func (f *fixer) nulls(s *node, at place, pointer string) {
	if !at.optional && !s.is("nullable") && !s.has("enum") {
		f.note(Narrower, pointer, "type-required", "kube-apiserver accepted null here, because it does not apply allOf, anyOf, oneOf and not to null; it now rejects null; to accept it, add nullable: true")
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
	check := finding.ID("properties-or-additional-properties")
	switch {
	case at.root:
		check = "root-additional-properties"
	case s.is(embedded):
		check = "embedded-additional-properties"
	case !fields || more.kind == jsondoc.True:
		return mentions
	}
	if more.kind == jsondoc.False {
		s.del("additionalProperties", reason{check, "The API server prunes unknown fields anyway."})
		return mentions
	}
	why := reason{check, "A schema must not have both properties and additionalProperties. Unknown fields are kept instead."}
	s.del("additionalProperties", why)
	if !s.is(preserve) {
		s.set(preserve, truth(), why)
	}
	if more.kind != jsondoc.Object || empty(more) {
		return mentions
	}
	f.note(Wider, "/additionalProperties", check, "a schema must not have both properties and additionalProperties: the API server keeps the other fields, but no longer validates them")
	was := object()
	was.set("additionalProperties", more, why)
	was.set("properties", object(), why)
	for _, name := range s.object("properties").members() {
		was.get("properties").set(name, object(), why)
	}
	return append(mentions, mention{was, false, true})
}

// liftMap states outside logical keywords that an object is a map.
func liftMap(s *node, mentions []mention, fields bool, at place) {
	i := slices.IndexFunc(mentions, func(m mention) bool { return m.schema.object("additionalProperties") != nil })
	if i < 0 {
		return
	}
	if fields || at.root || s.is(embedded) {
		if !s.is(preserve) {
			s.set(preserve, truth(), reason{"junctor-additional-properties", "A branch has additionalProperties, and the schema has properties: all fields are kept."})
		}
		return
	}
	s.set("additionalProperties", object(), reason{"junctor-additional-properties", "additionalProperties must be outside allOf, anyOf, oneOf and not."}, lists...)
}

// members returns the keys of an object that may be nil.
func (n *node) members() []string {
	if n == nil {
		return nil
	}
	return n.keys
}
