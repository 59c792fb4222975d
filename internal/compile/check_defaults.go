package compile

import (
	"bytes"
	"slices"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Default is a default that is in order as far as can be said without
// evaluating rules.
type Default struct {
	Schema     *syntax.Schema // whose default it is
	Value      []byte         // without duplicate keys, metadata coerced, numbers as written
	Resource   bool           // it is the default of the root or of an embedded resource: rules see apiVersion, kind and metadata
	InMetadata bool           // it is inside the metadata or type information of a resource

	prefix string
	at     *trail
}

// trail is the way to a schema. Those to the schemas within one share their
// beginnings: as paths, n defaults that are nested would take n² steps.
type trail struct {
	up   *trail
	step step
}

// path returns the way from the root.
func (t *trail) path() path {
	var p path
	for ; t != nil; t = t.up {
		p = append(p, t.step)
	}
	slices.Reverse(p)
	return p
}

var defaultStep = path{{keyword: "default"}}

// Path returns upstream's field path of the default, as findings have it.
func (d *Default) Path() string {
	return string(defaultStep.appendField(d.at.path().appendField([]byte(d.prefix))))
}

// Pointer returns the RFC 6901 pointer to the default in the schema document.
func (d *Default) Pointer() string {
	return string(defaultStep.appendPointer(d.at.path().appendPointer(nil)))
}

// In finds what the schema of the default has been lowered to; root is the plan
// of the whole schema.
func (d *Default) In(root *plan.Node) *plan.Node {
	n := root
	for _, s := range d.at.path() {
		if s.kind == keyed {
			n = propertyOf(n, s.key)
		} else {
			n = n.Items
		}
	}
	return n
}

// checkDefaults validates the defaults of a structural schema. It returns those
// that are in order, if there are rules to evaluate on them, and whether all
// are.
func (c *checker) checkDefaults(s *syntax.Schema) (sound bool, list []Default) {
	before := c.errors
	d := defaultsCheck{checker: c, lower: lowerer{LowerOptions: LowerOptions{Defaults: true}}}
	defer d.lower.builder.Close()
	d.schema(s, nil, defaultPlace{root: true})
	return c.errors == before, d.sound
}

// defaultsCheck walks a structural schema in search of defaults.
type defaultsCheck struct {
	*checker
	lower lowerer
	sound []Default
}

// defaultPlace is where a schema is.
type defaultPlace struct {
	root bool
	meta *metaPlace // nil outside metadata
	// fit is where pruning takes a default to be. An embedded resource inside
	// metadata, which no new schema may have, does not end the metadata for it.
	fit *metaPlace
	// unchecked is set below additionalProperties. Upstream fills in defaults
	// there and does not look at them.
	unchecked bool
	kept      bool   // an item of an array whose unknown fields are preserved
	astray    bool   // an item of the object as a whole, which is no array
	trail     *trail // kept if there are rules
}

// schema validates the default of s and those below it. n is the plan of s, nil
// if no default above has asked for it: each part of the schema is lowered
// once, and only if a default needs it.
func (c *defaultsCheck) schema(s *syntax.Schema, n *plan.Node, at defaultPlace) {
	if s.EmbeddedResource {
		at.meta = nil
	}
	if s.Default != nil {
		if n == nil {
			n = c.plan(s, at)
		}
		c.validate(s, n, at)
	}
	if items := s.ItemSchema(); items != nil {
		c.enter("items")
		sub := c.below(at, at.meta.child(""), at.fit.child(""))
		sub.kept = at.kept || s.PreserveUnknownFields != nil
		sub.astray = at.astray || at.root
		c.schema(items, itemsOf(n), sub)
		c.leave()
	}
	for _, p := range s.Properties {
		meta, fit := at.meta.child(p.Name), at.fit.child(p.Name)
		if (at.root || s.EmbeddedResource) && isMeta(p.Name) {
			meta = &metaPlace{nil, p.Name}
			if at.fit == nil { // else the outer metadata has no place for it
				fit = meta
			}
		}
		c.enterKey("properties", p.Name)
		c.schema(p.Schema, propertyOf(n, p.Name), c.below(at, meta, fit))
		c.leave()
	}
	// Inside metadata there must be no default below additionalProperties.
	if a := s.AdditionalProperties; a != nil && a.Schema != nil && at.meta == nil {
		c.enter("additionalProperties")
		c.schema(a.Schema, additionalOf(n), defaultPlace{unchecked: true, astray: at.astray})
		c.leave()
	}
}

// below returns the place of a child, whose path is the current one.
func (c *defaultsCheck) below(at defaultPlace, meta, fit *metaPlace) defaultPlace {
	sub := defaultPlace{meta: meta, fit: fit, unchecked: at.unchecked, astray: at.astray}
	if c.ruled && !at.unchecked {
		sub.trail = &trail{at.trail, c.path[len(c.path)-1]}
	}
	return sub
}

// plan lowers s. The node lives as long as the check.
func (c *defaultsCheck) plan(s *syntax.Schema, at defaultPlace) *plan.Node {
	n, err := c.lower.schema(s, position{root: at.root})
	if err != nil {
		// Only preparing defaults can fail, and nothing is prepared here.
		panic("compile: " + err.Error())
	}
	return n
}

func itemsOf(n *plan.Node) *plan.Node {
	if n == nil {
		return nil
	}
	return n.Items
}

func additionalOf(n *plan.Node) *plan.Node {
	if n == nil {
		return nil
	}
	return n.Additional
}

func propertyOf(n *plan.Node, name string) *plan.Node {
	if n == nil {
		return nil
	}
	return n.Props.At(n.Props.Lookup([]byte(name))).Node
}

// validate reports what is wrong with the default of s.
func (c *defaultsCheck) validate(s *syntax.Schema, n *plan.Node, at defaultPlace) {
	if severity := at.severity(); c.full(severity) {
		return // there are enough findings to refuse the schema, or to look at
	}
	var v exec.DefaultResult
	var err error
	if at.meta != nil {
		v, err = exec.ValidateMetaDefault(n, s.Default.Written, resourceAround(s.Default.Written, at.meta))
	} else {
		v, err = exec.ValidateDefault(n, s.Default.Written)
	}
	if c.pruning {
		// Upstream gives up on a schema with defaults that have no place in any
		// object.
		c.unprunable = c.unprunable || at.astray || at.root && kindOf(s.Default.Raw) != jsondoc.Object
		c.unpruned = c.unpruned || shrinks(n, s.Default, at)
	}
	switch {
	case err != nil: // it has been parsed before, as part of the schema
	case at.unchecked:
		c.unchecked(s, &v)
	default:
		if v.Unknown != nil && !c.tolerance.UnprunedDefaults {
			c.violation(defaultUnknownFields, s, v.Unknown)
		}
		for i := range v.Metadata {
			c.violation(defaultMetadata, s, &v.Metadata[i])
		}
		for i := range v.Values {
			c.violation(defaultValue, s, &v.Values[i])
		}
		if len(v.Metadata)+len(v.Values) == 0 { // rules do not mind unknown fields
			c.inOrder(s, &v, at)
		}
	}
}

// shrinks reports whether less is left of a default than was written when it is
// pruned and fitted into metadata. The plan has no defaults that would be filled
// in.
func shrinks(n *plan.Node, written *syntax.JSON, at defaultPlace) bool {
	left, err := prepareDefault(n, written, position{kept: at.kept, meta: at.fit})
	return err == nil && !bytes.Equal(left, written.Raw)
}

// severity is that of the findings about a default.
func (at defaultPlace) severity() finding.Severity {
	if at.unchecked {
		return finding.Warning
	}
	return finding.Error
}

// resourceAround returns the resource that has nothing but a default in its
// metadata or type information. Upstream gives it this type.
func resourceAround(value []byte, at *metaPlace) []byte {
	keys := at.keys()
	doc := wrap(value, keys)
	doc = doc[:len(doc)-1]
	if outermost := keys[len(keys)-1]; outermost != "apiVersion" {
		doc = append(doc, `,"apiVersion":"validation/v1"`...)
	}
	if outermost := keys[len(keys)-1]; outermost != "kind" {
		doc = append(doc, `,"kind":"Validation"`...)
	}
	return append(doc, '}')
}

// violation reports a violation in the default of s.
func (c *defaultsCheck) violation(r checkID, s *syntax.Schema, x *exec.Violation) {
	c.add(r, c.path, fault{
		kind: x.Type, bad: x.BadValue, detail: x.Detail,
		offset: s.Default.Offset + x.Offset, at: path{{keyword: x.Path}}, in: defaultStep,
	})
}

// unchecked warns of a default that clusters fill in although it does not fit.
func (c *defaultsCheck) unchecked(s *syntax.Schema, v *exec.DefaultResult) {
	var first *exec.Violation
	switch {
	case v.Unknown != nil:
		first = v.Unknown
	case len(v.Metadata) > 0:
		first = &v.Metadata[0]
	case len(v.Values) > 0:
		first = &v.Values[0]
	default:
		return
	}
	c.invalid(defaultUnchecked, s, "default", first.BadValue,
		"API servers do not validate defaults below additionalProperties, and fill in this invalid one: "+first.Error())
}

// inOrder keeps a default for the rules.
func (c *defaultsCheck) inOrder(s *syntax.Schema, v *exec.DefaultResult, at defaultPlace) {
	if !c.ruled {
		return
	}
	c.sound = append(c.sound, Default{
		Schema: s, Value: v.Value, Resource: at.root || s.EmbeddedResource, InMetadata: at.meta != nil,
		prefix: c.prefix, at: at.trail,
	})
}
