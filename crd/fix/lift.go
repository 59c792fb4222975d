package fix

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// place is where in the core a schema is.
type place struct {
	root bool
	meta string // its name, if it is apiVersion, kind or metadata of a resource
	own  bool   // and that is the object itself, not an embedded resource
	// optional says that it is a field that may be left out. Servers then drop
	// a null in its place, and accept it so.
	optional bool
}

// mention is a branch that says something about the same values as a schema of
// the core.
type mention struct {
	schema *node
	always bool // it holds whenever the core does: allOf all the way
	mute   bool // what it says of types is no evidence: it is inside a not
}

// group is the branches of one anyOf or oneOf. At least one of them accepts each
// value that the core accepts.
type group []*node

// gather adds the branches of a schema's logical keywords, at any depth of logical keywords.
func gather(all []mention, groups []group, s *node, always, mute bool) ([]mention, []group) {
	for _, keyword := range lists {
		branches := s.items(keyword)
		if len(branches) == 0 {
			continue
		}
		if always && keyword != "allOf" {
			groups = append(groups, branches)
		}
		for _, b := range branches {
			if b.kind != jsondoc.Object {
				continue
			}
			holds := always && (keyword == "allOf" || len(branches) == 1)
			all = append(all, mention{b, holds, mute})
			all, groups = gather(all, groups, b, holds, mute)
		}
	}
	if not := s.object("not"); not != nil {
		all = append(all, mention{not, false, true})
		all, groups = gather(all, groups, not, false, true)
	}
	return all, groups
}

// core makes s, a schema of the core, structural. mentions and groups are the
// branches around it that speak of the same values.
func (f *fixer) core(s *node, mentions []mention, groups []group, at place) {
	if s.kind != jsondoc.Object || f.failed {
		return
	}
	if at.own && at.meta == "metadata" {
		f.rootMetadata(s)
		mentions, groups = nil, nil
	}
	f.intOrString(s, at)
	for _, m := range slices.Clone(mentions) {
		mentions, groups = gather(mentions, groups, m.schema, m.always, m.mute)
	}
	mentions, groups = gather(mentions, groups, s, true, false)
	f.texts(s, mentions)
	f.typeOf(s, mentions, groups, at)
	f.unknown(s, mentions)
	mentions = f.maps(s, mentions, at)
	f.below(s, mentions, groups, at)
	f.arrays(s)
	f.resource(s, at)
	f.reduce(s)
}

// intOrString recognises a value that is an integer or a string.
func (f *fixer) intOrString(s *node, at place) {
	why := reason{"type-required", "x-kubernetes-int-or-string marks a value that is an integer or a string."}
	if s.has("type") || s.is(intOrString) || s.is(preserve) || s.is(embedded) {
		return
	}
	if s.string("format") == "int-or-string" {
		s.set(intOrString, truth(), why, "format")
		s.del("format", reason{"type-required", "x-kubernetes-int-or-string replaces the format."})
		f.note(Narrower, "/"+intOrString, "type-required", "the API server never checked the format int-or-string; it now rejects values of other types")
		return
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		integer, text := either(s.items(keyword))
		if integer == nil || !onlyAbout(integer, aboutNumbers) || !onlyAbout(text, aboutStrings) {
			continue
		}
		if len(integer.keys)+len(text.keys) > 2 && !movable(s, integer, text) {
			continue
		}
		for _, b := range []*node{integer, text} {
			for i, key := range b.keys {
				if key != "type" {
					s.set(key, b.kids[i].clone(), reason{"junctor-type", "It applies to only one of the two types, so it can move out of " + keyword + "."}, keyword)
				}
			}
		}
		form := array(literal(`{"type":"integer"}`), literal(`{"type":"string"}`))
		known := keyword == "anyOf" && string(s.get(keyword).appendJSON(nil)) == string(form.appendJSON(nil))
		s.set(intOrString, truth(), why, keyword)
		f.nulls(s, at, "/"+intOrString)
		switch {
		case known:
		case keyword == "oneOf" && s.has("anyOf"):
			s.del(keyword, why)
		default:
			s.set("anyOf", form, reason{"junctor-type", "The API server accepts only this form."}, keyword)
			if keyword == "oneOf" {
				s.del(keyword, reason{"junctor-type", "The API server accepts only the form with anyOf."})
			}
		}
		return
	}
}

// either returns the branches for integers and strings, if these are the two.
func either(branches []*node) (integer, text *node) {
	if len(branches) != 2 {
		return nil, nil
	}
	integer, text = branches[0], branches[1]
	if integer.string("type") == "string" {
		integer, text = text, integer
	}
	if integer.string("type") != "integer" || text.string("type") != "string" {
		return nil, nil
	}
	return integer, text
}

var (
	aboutNumbers = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
	aboutStrings = []string{"minLength", "maxLength", "pattern"}
	aboutObjects = []string{"properties", "additionalProperties", "required", "minProperties", "maxProperties", "x-kubernetes-map-type", embedded}
	aboutArrays  = []string{"items", "minItems", "maxItems", "uniqueItems", listType, "x-kubernetes-list-map-keys"}
)

// onlyAbout reports whether a branch has, besides its type, only keywords of a
// list.
func onlyAbout(s *node, keywords []string) bool {
	return !slices.ContainsFunc(s.keys, func(k string) bool { return k != "type" && !slices.Contains(keywords, k) })
}

// movable reports whether no keyword of the branches is in s.
func movable(s *node, branches ...*node) bool {
	for _, b := range branches {
		for _, k := range b.keys {
			if k != "type" && s.index(k) >= 0 {
				return false
			}
		}
	}
	return true
}

// texts moves a description or title out of the branches if there is only one,
// and a default if it stands in an allOf.
func (f *fixer) texts(s *node, mentions []mention) {
	for _, keyword := range []string{"title", "description", "default"} {
		if s.has(keyword) {
			continue
		}
		var only *node
		different := false
		for _, m := range mentions {
			value := m.schema.get(keyword)
			if value == nil || m.mute || keyword == "default" && !(m.always && f.defaults) {
				continue
			}
			if only != nil && string(only.appendJSON(nil)) != string(value.appendJSON(nil)) {
				different = true
			}
			only = value
		}
		if only != nil && !different {
			s.set(keyword, only.clone(), reason{finding.ID("junctor-" + keyword), "It must be outside allOf, anyOf, oneOf and not."}, "type", "properties", "items")
		}
	}
}

// unknown preserves unknown fields where a branch asks for it.
func (f *fixer) unknown(s *node, mentions []mention) {
	if s.is(preserve) || s.is(intOrString) {
		return
	}
	for _, m := range mentions {
		more := m.schema.get("additionalProperties")
		switch {
		case m.schema.is(preserve) || more != nil && more.kind == jsondoc.True:
		case m.schema.is(embedded):
			f.note(Wider, "", "junctor-embedded-resource", "a branch marks this as an embedded resource: the API server keeps all its fields, but does not validate its metadata. If it is always an embedded resource, set x-kubernetes-embedded-resource outside allOf, anyOf, oneOf and not")
		default:
			continue
		}
		s.set(preserve, truth(), reason{"junctor-preserve-unknown-fields", "x-kubernetes-preserve-unknown-fields must be outside allOf, anyOf, oneOf and not."})
		return
	}
}

// below makes the schemas of what is within the values structural, adding those
// that only branches have.
func (f *fixer) below(s *node, mentions []mention, groups []group, at place) {
	f.properties(s, mentions, groups, at)
	if more := s.object("additionalProperties"); more != nil {
		sub := within(mentions, func(m *node) *node { return m.object("additionalProperties") })
		for _, m := range mentions { // of a map, branches may mention fields by name
			if p := m.schema.object("properties"); p != nil {
				for _, k := range p.kids {
					sub = append(sub, mention{k, false, true})
				}
			}
		}
		leave := f.enter("additionalProperties")
		f.core(more, sub, sides(groups, func(b *node) *node { return b.object("additionalProperties") }), place{})
		leave()
	}
	sub := within(mentions, func(m *node) *node { return m.object("items") })
	if len(sub) > 0 && !s.has("items") {
		s.set("items", object(), reason{"incomplete", "Items inside allOf, anyOf, oneOf or not must also be specified outside it."}, lists...)
	}
	if items := s.object("items"); items != nil {
		leave := f.enter("items")
		f.core(items, sub, sides(groups, func(b *node) *node { return b.object("items") }), place{})
		leave()
	}
}

// within follows mentions to what they say of something within the values.
func within(mentions []mention, step func(*node) *node) []mention {
	var sub []mention
	for _, m := range mentions {
		if child := step(m.schema); child != nil {
			sub = append(sub, mention{child, m.always, m.mute})
		}
	}
	return sub
}

// sides follows the groups whose branches all lead there in the same way.
func sides(groups []group, step func(*node) *node) []group {
	var sub []group
	for _, g := range groups {
		if list := along(g, step); list != nil {
			sub = append(sub, list)
		}
	}
	return sub
}

// along follows a group, if all of its branches lead there.
func along(g group, step func(*node) *node) group {
	list := make(group, 0, len(g))
	for _, b := range g {
		child := step(b)
		if child == nil {
			return nil
		}
		list = append(list, child)
	}
	return list
}

// fields follows groups to the properties that all of their branches have.
func fields(groups []group) map[string][]group {
	byName := map[string][]group{}
	for _, g := range groups {
		for _, name := range g[0].object("properties").members() {
			if list := along(g, func(b *node) *node { return b.object("properties").object(name) }); list != nil {
				byName[name] = append(byName[name], list)
			}
		}
	}
	return byName
}

// properties visits the properties, those of branches included.
func (f *fixer) properties(s *node, mentions []mention, groups []group, at place) {
	byName := map[string][]mention{}
	var names []string
	for _, m := range mentions {
		p := m.schema.object("properties")
		if p == nil {
			continue
		}
		for i, name := range p.keys {
			if p.kids[i].kind != jsondoc.Object {
				continue
			}
			if _, seen := byName[name]; !seen {
				names = append(names, name)
			}
			byName[name] = append(byName[name], mention{p.kids[i], m.always, m.mute})
		}
	}
	if s.has("additionalProperties") && len(s.object("properties").members()) == 0 {
		return // a map; what it holds is visited with that
	}
	for _, name := range names {
		if s.object("properties").has(name) || (at.root || s.is(embedded)) && name == "metadata" {
			continue
		}
		why := reason{"incomplete", "A field inside allOf, anyOf, oneOf or not must also be specified outside it. Otherwise the API server prunes it."}
		if s.object("properties") == nil {
			s.set("properties", object(), why, lists...)
		}
		s.object("properties").set(name, object(), why)
	}
	p := s.object("properties")
	if p == nil {
		return
	}
	sideways := fields(groups)
	required := requiredBy(s, mentions)
	open := slices.DeleteFunc(slices.Clone(mentions), func(m mention) bool {
		more := m.schema.object("additionalProperties")
		return more == nil || empty(more)
	})
	for i, name := range slices.Clone(p.keys) {
		if p.kids[i].kind == jsondoc.Null {
			p.set(name, object(), reason{"type-required", "A schema must not be null."})
		}
		sub := place{own: at.root, optional: required != nil && !required[name]}
		if (at.root || s.is(embedded)) && (name == "apiVersion" || name == "kind" || name == "metadata") {
			sub.meta = name
		}
		leave := f.enter("properties", name)
		f.core(p.kids[i], f.inMaps(byName[name], open, name), sideways[name], sub)
		leave()
	}
}

// inMaps adds what branches that call the object a map say of the field called
// name: all fields but the branch's own are values of that map.
func (f *fixer) inMaps(list, open []mention, name string) []mention {
	for _, m := range open {
		more := m.schema.object("additionalProperties")
		if f.failed || m.schema.object("properties").has(name) {
			continue
		}
		// The same branch counts for many fields, and so do maps inside it.
		if f.budget -= more.size(); f.budget < 0 {
			f.cannot("", "junctor-additional-properties", "the branches of this schema combine in more than "+strconv.Itoa(maxInlined)+" ways")
			return list
		}
		list = append(list, mention{more, false, true})
	}
	return list
}

// requiredBy returns the fields that s or a branch requires, nil if there may be
// others because of their number.
func requiredBy(s *node, mentions []mention) map[string]bool {
	names := map[string]bool{}
	count := func(x *node) bool {
		for _, name := range x.items("required") {
			names[name.text()] = true
		}
		return x.has("minProperties")
	}
	bounded := count(s)
	for _, m := range mentions {
		bounded = count(m.schema) || bounded
	}
	if bounded {
		return nil
	}
	return names
}

// arrays completes arrays.
func (f *fixer) arrays(s *node) {
	if s.string("type") == "array" && s.object("items") == nil {
		s.set("items", literal(`{"`+preserve+`":true}`), reason{"items-required", "An array must have items. These accept any value."})
	}
	if !s.is("uniqueItems") {
		return
	}
	why := reason{"unique-items", "uniqueItems takes quadratic time. x-kubernetes-list-type: set replaces it."}
	lost := ""
	switch s.object("items").string("type") {
	case "string", "integer", "number", "boolean":
		switch {
		case s.string(listType) == "set":
		case s.has(listType):
			lost = "the list already has another x-kubernetes-list-type"
		case s.object("items").is("nullable"):
			lost = "the items of a set must not be nullable"
		default:
			s.set(listType, text("set"), why, "uniqueItems")
			f.note(Advice, "", "unique-items", "the list is now a set: items must be unique, and server-side apply merges them one by one")
		}
	default:
		lost = "the items are not scalars"
	}
	if lost != "" {
		why.text = "uniqueItems takes quadratic time and is not supported."
		f.note(Wider, "/uniqueItems", "unique-items", lost+", so no keyword can replace uniqueItems; the API server no longer checks that the items are unique")
	}
	s.del("uniqueItems", why)
}

// resource keeps to the rules for the root and for embedded resources.
func (f *fixer) resource(s *node, at place) {
	if s.is(embedded) && !s.is(preserve) && (s.object("properties") == nil || len(s.object("properties").keys) == 0) {
		s.set(preserve, truth(), reason{"embedded-properties", "An embedded resource without properties keeps all fields."})
	}
	if s.is(intOrString) {
		s.del(preserve, reason{"int-or-string-exclusive", "An integer or a string has no fields."})
	}
	if !at.root {
		return
	}
	s.del("nullable", reason{"root-nullable", "A whole object cannot be null."})
	for _, name := range []string{"apiVersion", "kind", "metadata"} {
		if field := s.object("properties").object(name); field != nil {
			field.del("default", reason{"default-forbidden", name + " of the object must not have a default."})
		}
	}
}

// rootMetadata leaves of the object's metadata what may be specified.
func (f *fixer) rootMetadata(meta *node) {
	why := reason{"root-metadata", "A schema may restrict only name and generateName of the object's metadata."}
	before := len(meta.keys)
	meta.filter(func(key string, _ *node) bool { return key == "type" || key == "properties" }, why)
	lost := before > len(meta.keys)
	if p := meta.object("properties"); p != nil {
		before := len(p.keys)
		p.filter(func(key string, _ *node) bool { return key == "name" || key == "generateName" }, why)
		lost = lost || before > len(p.keys)
		if len(p.keys) == 0 {
			meta.del("properties", why)
		}
	}
	if lost {
		f.note(Wider, "", why.check, "all keywords about metadata of the object are removed, except for name and generateName")
	}
}
