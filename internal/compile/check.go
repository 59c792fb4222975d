package compile

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// CheckOptions says in which surroundings a schema is checked.
type CheckOptions struct {
	Path              *field.Path // of the schema, the prefix of all paths
	StatusSubresource bool        // the version has a status subresource
	NonStructural     bool        // the schema need not be structural
	DisallowDefaults  string      // if not empty, why there must be no defaults, appended to "must not be set"
	UncheckedDefaults bool        // defaults need not fit their schemas
	Strict            bool        // warn of all that LowerOptions.Strict validates otherwise
	Tolerance         Tolerance   // for what the CRD before a change had already
	Pruning           bool        // find out whether anything of a default would be pruned
	FormatsBefore134  bool        // know the formats of Kubernetes before 1.34 only
}

// Tolerance turns off checks of an updated CRD: upstream ratchets errors that the
// old CRD already had.
type Tolerance struct {
	Types            bool // types may be unknown
	UnprunedDefaults bool // defaults may have fields that would be pruned
	ListSets         bool // items of sets need not be atomic
	ListKeys         bool // keys may be optional; keys, and items of sets and maps, may be nullable
}

// Result is the result of Validate.
type Result struct {
	// Findings are sorted by path and text. Upstream accepts the schema if none
	// is an Error.
	Findings []finding.Finding
	// Sound says that the schema is structural and that its defaults are valid,
	// CEL rules aside. Only then, and if the defaults also satisfy the CEL rules,
	// upstream checks the expressions of the rules; other errors do not matter.
	Sound bool
	// Defaults are the defaults to evaluate the CEL rules on. Upstream does so
	// for each valid default, even if another is invalid.
	Defaults []Default
	// Unstructural says that the schema is not structural.
	Unstructural bool
	// Rules says that there are CEL rules outside logical keywords.
	Rules bool
	// Unpruned says that pruning would change a default. It is set only with
	// CheckOptions.Pruning and for structural schemas.
	Unpruned bool
}

// Check returns the findings of Validate.
func Check(s *syntax.Schema, o CheckOptions) []finding.Finding { return Validate(s, o).Findings }

// Validate checks a schema as kube-apiserver does when a CRD is created or updated.
func Validate(s *syntax.Schema, o CheckOptions) Result { return validate(s, o, maxRendered) }

// validate is Validate with a bound on the bytes rendered for the findings of either
// severity.
func validate(s *syntax.Schema, o CheckOptions, room int) Result {
	if s == nil {
		return Result{Sound: true}
	}
	c := checker{findings: findings{nilTop: o.Path == nil, room: [2]int{room, room}}, strict: o.Strict, tolerance: o.Tolerance, pruning: o.Pruning, older: o.FormatsBefore134}
	if o.Path != nil {
		c.prefix = o.Path.String()
	}
	convertible := !c.markUnsupported(s)

	c.root(s, o.StatusSubresource)
	at := context{root: true, noDefaults: o.DisallowDefaults != "", reason: o.DisallowDefaults}
	if !convertible || o.NonStructural {
		at.place = unseen
	}
	c.visit(s, at)
	v := Result{Unstructural: !convertible || c.unstructural, Rules: c.ruled}
	v.Sound = !v.Unstructural && !o.NonStructural
	if v.Sound && c.defaulted && !o.UncheckedDefaults {
		v.Sound, v.Defaults = c.checkDefaults(s)
		v.Unpruned = c.unpruned && !c.unprunable
	}

	if !convertible && !o.NonStructural && c.errors == 0 {
		// Of the keywords that make the conversion fail, only $schema has no
		// check of its own, so it is the cause.
		c.findings.add(unsupportedSchemaURL, nil, fault{
			kind: field.ErrorTypeInvalid, bad: "", detail: "OpenAPIV3Schema 'schema' is not supported",
			offset: c.schemaURL.offset, in: c.schemaURL.path,
		})
	}
	if len(c.list) > 0 {
		v.Findings = c.sorted()
	}
	return v
}

// place says which of upstream's structural checks apply to a schema.
type place uint8

const (
	atRoot place = iota
	atItem
	atField
	inLogical
	unseen // none: only the checks of OpenAPI apply
)

func (p place) structural() bool { return p <= atField }

// child is the place of a child which, in a structural schema, is at q.
func (p place) child(q place) place {
	if p.structural() {
		return q
	}
	return p
}

// logical is the place of a schema under a logical keyword.
func (p place) logical() place { return p.child(inLogical) }

// context is what a schema's ancestors say about it.
type context struct {
	place      place
	root       bool // of the whole schema; place is unseen if that cannot be converted
	noDefaults bool
	reason     string // why there must be no default
	inMeta     bool   // inside apiVersion, kind or metadata of a resource
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

	strict       bool // CheckOptions.Strict
	older        bool // CheckOptions.FormatsBefore134
	tolerance    Tolerance
	pruning      bool // CheckOptions.Pruning
	unpruned     bool // something of a default would be pruned
	unprunable   bool // and cannot be
	unstructural bool // a rule about structural schemas is violated
	defaulted    bool // there are defaults outside logical keywords
	ruled        bool // there are validation rules
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
	before := c.errors
	switch {
	case x.place.structural():
		c.structure(s, x.place)
		c.complete(s, x.place)
		c.defaulted = c.defaulted || s.Default != nil
		c.ruled = c.ruled || s.Validations != nil
	case x.place == inLogical:
		c.branch(s)
	}
	c.unstructural = c.unstructural || c.errors > before
	c.values(s)
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
		if x.place == inLogical {
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
	c.logical(s, x, down)
	c.unsupportedChildren(s, down)
}

// logical visits the schemas under the logical keywords of s.
func (c *checker) logical(s *syntax.Schema, x, down context) {
	down.place = x.place.logical()
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

// ConversionProblem says why upstream cannot convert a schema to a structural one,
// or nothing. Of several reasons it is the first, by the names of properties;
// upstream's choice is random.
func ConversionProblem(s *syntax.Schema) string {
	r := s.Rare()
	const unsupported = "OpenAPIV3Schema '%s' is not supported"
	for _, k := range []struct {
		name    string
		present bool
	}{
		{"id", r.ID != ""}, {"schema", r.SchemaURL != ""}, {"$ref", r.Ref != nil && *r.Ref != ""}, {"patternProperties", len(r.PatternProperties) > 0},
		{"dependencies", len(r.Dependencies) > 0}, {"additionalItems", r.AdditionalItems != nil}, {"definitions", len(r.Definitions) > 0},
	} {
		if k.present {
			return fmt.Sprintf(unsupported, k.name)
		}
	}
	problem := ""
	look := func(list ...*syntax.Schema) {
		for _, child := range list {
			if problem == "" && child != nil {
				problem = ConversionProblem(child)
			}
		}
	}
	look(s.AllOf...)
	look(s.AnyOf...)
	look(s.OneOf...)
	look(s.Not)
	if problem == "" && s.PreserveUnknownFields != nil && !*s.PreserveUnknownFields {
		return "internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined"
	}
	if problem == "" && s.Items != nil && len(s.Items.Tuple) > 0 {
		return "OpenAPIV3Schema 'items' must be a schema, but is an array"
	}
	look(s.ItemSchema())
	for _, p := range s.Properties {
		look(p.Schema)
	}
	if s.AdditionalProperties != nil {
		look(s.AdditionalProperties.Schema)
	}
	return problem
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
