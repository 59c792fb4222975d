package compile

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// CheckOptions says in which surroundings a schema is checked.
type CheckOptions struct {
	Path              *field.Path // of the schema, the prefix of all paths
	StatusSubresource bool        // the version has a status subresource
	DisallowDefaults  string      // if not empty, why there must be no defaults, appended to "must not be set"
}

// Check returns everything that is wrong with the schema, sorted by path and
// text. The schema may be accepted if no Finding is an Error.
func Check(s *syntax.Schema, o CheckOptions) []Finding { return check(s, o, maxRendered) }

// check is Check with a bound on the bytes rendered for the findings of either
// severity.
func check(s *syntax.Schema, o CheckOptions, room int) []Finding {
	if s == nil {
		return nil
	}
	c := checker{findings: findings{nilTop: o.Path == nil, room: [2]int{room, room}}}
	if o.Path != nil {
		c.prefix = o.Path.String()
	}
	convertible := !c.markUnsupported(s)

	c.root(s, o.StatusSubresource)
	at := context{root: true, noDefaults: o.DisallowDefaults != "", reason: o.DisallowDefaults}
	if !convertible {
		at.place = unseen
	}
	c.visit(s, at)

	if !convertible && c.errors == 0 {
		// Of what makes the conversion fail, only $schema has no rule of its
		// own, so this is it.
		c.findings.add(unsupportedSchemaURL, nil, fault{
			kind: field.ErrorTypeInvalid, bad: "", detail: "OpenAPIV3Schema 'schema' is not supported",
			offset: c.schemaURL.offset, in: c.schemaURL.path,
		})
	}
	if len(c.list) == 0 {
		return nil
	}
	return c.sorted()
}

// place says how upstream's structural rules see a schema.
type place uint8

const (
	atRoot place = iota
	atItem
	atField
	inJunctor
	unseen // not at all: only the rules about OpenAPI apply
)

func (p place) structural() bool { return p <= atField }

// child is the place of a child which, in a structural schema, is at q.
func (p place) child(q place) place {
	if p.structural() {
		return q
	}
	return p
}

// junctor is the place of a schema under a junctor.
func (p place) junctor() place { return p.child(inJunctor) }

// context is what a schema's ancestors say about it.
type context struct {
	place      place
	root       bool // of the whole schema; place is unseen if that cannot be converted
	noDefaults bool
	reason     string // why there must be no default
	inMeta     bool   // inside of apiVersion, kind or metadata of a resource
	skipAnyOf  bool   // the first allOf of an int-or-string: its anyOf may have types
}

type checker struct {
	findings
	path path

	// unsupported holds the schemas that cannot be converted to structural
	// ones, because of themselves or of a descendant.
	unsupported map[*syntax.Schema]struct{}
	// schemaURL is where the first $schema was found.
	schemaURL struct {
		path   path
		offset int
	}

	patterns map[string]error // of what has been compiled
}

func (c *checker) enter(keyword string) { c.path = append(c.path, step{keyword: keyword}) }

func (c *checker) enterKey(keyword, key string) {
	c.path = append(c.path, step{keyword: keyword, key: key, kind: keyed})
}

func (c *checker) enterIndex(keyword string, i int) {
	c.path = append(c.path, step{keyword: keyword, index: i, kind: indexed})
}

func (c *checker) leave() { c.path = c.path[:len(c.path)-1] }

// visit checks a schema and everything in it.
func (c *checker) visit(s *syntax.Schema, x context) {
	c.openapi(s, x)
	switch {
	case x.place.structural():
		c.structure(s, x.place)
		c.complete(s, x.place)
	case x.place == inJunctor:
		c.junctor(s)
	}
	c.documents(s, x.place)
	c.children(s, x)
}

// children visits the children of s, each in its context.
func (c *checker) children(s *syntax.Schema, x context) {
	down := x
	down.root, down.skipAnyOf = false, false

	if a := s.AdditionalProperties; a != nil && a.Schema != nil {
		sub := down
		sub.place = x.place.child(atField)
		if x.place == inJunctor {
			sub.place = unseen
		}
		if x.inMeta {
			sub.noDefaults, sub.reason = true, "inside additionalProperties applying to object metadata"
		}
		c.enter("additionalProperties")
		c.visit(a.Schema, sub)
		c.leave()
	}
	for _, p := range s.Properties {
		sub := down
		sub.place = x.place.child(atField)
		if (x.root || s.EmbeddedResource) && isMeta(p.Name) {
			sub.inMeta = true
			if x.root {
				sub.noDefaults, sub.reason = true, "in top-level "+p.Name
			}
		}
		c.enterKey("properties", p.Name)
		c.visit(p.Schema, sub)
		c.leave()
	}
	if s.Items != nil {
		sub := down
		sub.place = x.place.child(atItem)
		if s.Items.Schema != nil {
			c.enter("items")
			c.visit(s.Items.Schema, sub)
			c.leave()
		}
		sub.place = unseen
		c.visitAll("items", s.Items.Tuple, sub)
	}
	c.junctors(s, x, down)
	c.unsupportedChildren(s, down)
}

// junctors visits the schemas under the junctors of s.
func (c *checker) junctors(s *syntax.Schema, x, down context) {
	down.place = x.place.junctor()
	structural := x.place.structural()

	c.visitAll("oneOf", s.OneOf, down)
	for i, b := range s.AllOf {
		sub := down
		sub.skipAnyOf = structural && i == 0 && intOrString(b.AnyOf)
		c.enterIndex("allOf", i)
		c.visit(b, sub)
		c.leave()
	}
	if s.Not != nil {
		c.enter("not")
		c.visit(s.Not, down)
		c.leave()
	}
	if x.skipAnyOf || structural && intOrString(s.AnyOf) {
		down.place = unseen
	}
	c.visitAll("anyOf", s.AnyOf, down)
}

func (c *checker) visitAll(keyword string, list []*syntax.Schema, x context) {
	for i, s := range list {
		c.enterIndex(keyword, i)
		c.visit(s, x)
		c.leave()
	}
}

// unsupportedChildren visits what only schemas have that are refused anyway:
// upstream looks for further errors in there.
func (c *checker) unsupportedChildren(s *syntax.Schema, down context) {
	down.place = unseen
	for _, p := range s.Rare().Definitions {
		c.enterKey("definitions", p.Name)
		c.visit(p.Schema, down)
		c.leave()
	}
	for _, d := range s.Rare().Dependencies {
		if d.Schema == nil {
			continue
		}
		c.enterKey("dependencies", d.Name)
		c.visit(d.Schema, down)
		c.leave()
	}
}

func isMeta(name string) bool {
	return name == "metadata" || name == "kind" || name == "apiVersion"
}

// markUnsupported finds the schemas that upstream cannot convert to structural
// ones, and reports whether s is one of them.
func (c *checker) markUnsupported(s *syntax.Schema) bool {
	r := s.Rare()
	bad := r.ID != "" || r.SchemaURL != "" || r.Ref != nil && *r.Ref != "" ||
		len(r.PatternProperties) > 0 || len(r.Dependencies) > 0 || r.AdditionalItems != nil || len(r.Definitions) > 0 ||
		s.Items != nil && len(s.Items.Tuple) > 0 ||
		s.PreserveUnknownFields != nil && !*s.PreserveUnknownFields
	if r.SchemaURL != "" && c.schemaURL.path == nil {
		c.schemaURL.path = append(slices.Clone(c.path), step{keyword: "$schema"})
		c.schemaURL.offset = s.At("$schema")
	}
	c.eachChild(s, func(child *syntax.Schema) {
		if c.markUnsupported(child) {
			bad = true
		}
	})
	if bad {
		if c.unsupported == nil {
			c.unsupported = make(map[*syntax.Schema]struct{})
		}
		c.unsupported[s] = struct{}{}
	}
	return bad
}

// eachChild calls f for the children of s that upstream checks, with the path
// set to each.
func (c *checker) eachChild(s *syntax.Schema, f func(*syntax.Schema)) {
	one := func(child *syntax.Schema, at step) {
		if child != nil {
			c.path = append(c.path, at)
			f(child)
			c.leave()
		}
	}
	all := func(keyword string, list []*syntax.Schema) {
		for i, child := range list {
			one(child, step{keyword: keyword, index: i, kind: indexed})
		}
	}
	byName := func(keyword string, list []syntax.Property) {
		for _, p := range list {
			one(p.Schema, step{keyword: keyword, key: p.Name, kind: keyed})
		}
	}
	byName("properties", s.Properties)
	if s.AdditionalProperties != nil {
		one(s.AdditionalProperties.Schema, step{keyword: "additionalProperties"})
	}
	if s.Items != nil {
		one(s.Items.Schema, step{keyword: "items"})
		all("items", s.Items.Tuple)
	}
	all("allOf", s.AllOf)
	all("anyOf", s.AnyOf)
	all("oneOf", s.OneOf)
	one(s.Not, step{keyword: "not"})
	byName("definitions", s.Rare().Definitions)
	for _, d := range s.Rare().Dependencies {
		one(d.Schema, step{keyword: "dependencies", key: d.Name, kind: keyed})
	}
}
