package diff

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// around is what the new CRD has around a place.
type around struct {
	root    bool
	item    bool // the value is an item of a list, where nulls are not dropped
	watched bool // logical keywords, enums or unions above may look at what is added here
	ruled   bool // so may rules
	branch  bool // in a proof: the value that the logical keyword applies to; its nulls are not validated
}

const (
	objectKind = plan.Kinds(1 << jsondoc.Object)
	arrayKind  = plan.Kinds(1 << jsondoc.Array)
	stringKind = plan.Kinds(1 << jsondoc.String)
	numberKind = plan.Kinds(1 << jsondoc.Number)
	boolKind   = plan.Kinds(1<<jsondoc.True | 1<<jsondoc.False)
)

// compare compares what two CRDs say about the values of a place. The old one always gives
// them a structure.
func (c *comparer) compare(o, n value, at *place, in around) {
	if !c.spend(len(o.parts) + len(n.parts)) {
		return
	}
	if o.own && n.own && o.keep == n.keep && o.meta == n.meta && o.all == n.all && c.digest(o.frame.s) == c.digest(n.frame.s) {
		return
	}
	if n.frame != nil {
		in.ruled = in.ruled || len(n.frame.s.Validations) > 0
	}
	had, has := o.kinds(true), n.kinds(false)
	c.types(o, n, had&^null, has&^null, at, in)
	c.nulls(o, n, at, in)
	both := had & has &^ null
	if both == 0 {
		return
	}
	c.demands(o, n, both, at, in)
	if n.frame != nil {
		c.frames(o, n, both, at, in)
	}
	root := in.root
	in.watched = in.watched || watches(&n)
	in.root, in.item, in.branch = false, false, false
	if both&objectKind != 0 {
		c.fields(o, n, at, in, root)
	}
	if both&arrayKind != 0 {
		c.lists(o, n, at, in)
	}
}

// watches reports whether a value's own demands look at fields within it.
func watches(n *value) bool {
	return slices.ContainsFunc(n.parts, func(p part) bool {
		s := p.s
		return len(s.AnyOf)+len(s.OneOf)+len(s.Enum) > 0 || s.Not != nil || s.MaxProperties != nil || len(s.Rare().Unions) > 0
	})
}

// types compares what kinds of values there may be, null aside.
func (c *comparer) types(o, n value, had, has plan.Kinds, at *place, in around) {
	lost := had &^ has
	narrowed := had&has&numberKind != 0 && (n.whole() || n.intOrString()) && !o.whole() && !o.intOrString()
	gained := n.frame != nil && (n.kinds(true)&^null&^had != 0 || o.whole() && has&numberKind != 0 && !n.whole())
	if lost == 0 && !narrowed && !gained {
		return
	}
	x := Change{Old: typeName(&o), New: typeName(&n), OldPointer: o.at(typeKeyword(&o)), NewPointer: n.at(typeKeyword(&n))}
	switch {
	case lost != 0 || narrowed:
		x.Check, x.Level, x.Breaks = "type-changed", Breaking, AllAudiences
		if o.intOrString() && !n.intOrString() {
			x.Check = "int-or-string-removed"
		}
		x.Message = fmt.Sprintf("the type changed from %s to %s: the API server rejects values of the old type, and readers get values that they cannot decode", x.Old, x.New)
		c.report(at, x)
	default:
		x.Check, x.Level, x.Breaks = "type-widened", Risky, Readers
		if n.intOrString() && !o.intOrString() {
			x.Check = "int-or-string-added"
		}
		x.Message = fmt.Sprintf("the type was widened from %s to %s: all valid objects stay valid, but readers may get values that they cannot decode", x.Old, x.New)
		if in.ruled {
			x.Breaks |= Writers | Stored
			x.Message += ", and CEL rules see the value as another type"
		}
		c.report(at, x)
	}
}

func typeName(v *value) string {
	for i := range v.parts {
		switch s := v.parts[i].s; {
		case s.IntOrString:
			return "int-or-string"
		case s.Type != "":
			return s.Type
		}
	}
	return "any"
}

func typeKeyword(v *value) string {
	if v.intOrString() {
		return "x-kubernetes-int-or-string"
	}
	return "type"
}

func (c *comparer) nulls(o, n value, at *place, in around) {
	if in.branch {
		return
	}
	had, has := o.nulls(in.item), n.kinds(false)&null != 0
	if n.frame != nil {
		has = n.nulls(in.item)
	}
	if had == has {
		return
	}
	x := Change{OldPointer: o.at("nullable"), NewPointer: n.at("nullable"), Old: yes(had), New: yes(has)}
	switch {
	case had:
		x.Check, x.Level, x.Breaks = "nullable-removed", Breaking, Writers|Stored
		x.Message = "null is no longer a value: the API server drops the field or fills in its default; it rejects a list that contains null, and an object that requires the field"
		c.report(at, x)
	case n.frame != nil:
		x.Check, x.Level, x.Breaks = "nullable-added", Risky, Readers
		x.Message = "null is now a value: the API server dropped it before, and now readers get it"
		if o.frame.s.Default != nil || len(n.frame.s.Enum) > 0 {
			x.Breaks |= Writers
			x.Message += "; writers that send null got the default before, or are now rejected because the enum does not list null"
		}
		c.report(at, x)
	}
}

func yes(b bool) string {
	if b {
		return "true"
	}
	return ""
}

// fields compares what becomes of the fields of objects.
func (c *comparer) fields(o, n value, at *place, in around, root bool) {
	for _, name := range names(&o, &n) {
		if !c.spend(len(o.parts) + len(n.parts)) {
			return
		}
		was, before := c.property(&o, name, root)
		is, after := c.property(&n, name, root)
		c.field(was, is, before, after, &n, at.property(name), in)
	}
	if n.frame != nil {
		c.unnamed(o, n, at, in)
		return
	}
	// A branch of a logical keyword, which may reject values that the old CRD keeps.
	is := value{fills: valuesOf(n.fills)}
	for _, d := range demandsOn(&n, additional) {
		is.parts = c.flatten(is.parts, d)
	}
	if was, before := c.others(&o, demandsOn(&o, additional)); before != dropped && len(is.parts) > 0 {
		c.compare(was, is, at.values(), in)
	}
}

// names returns the names of all properties, sorted.
func names(o, n *value) []string {
	var list []string
	for _, v := range []*value{o, n} {
		for i := range v.parts {
			for _, p := range v.parts[i].s.Properties {
				list = append(list, p.Name)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// field compares one field; parent is what is around it in the new CRD.
func (c *comparer) field(was, is value, before, after treatment, parent *value, at *place, in around) {
	switch {
	case before == dropped:
		if after == specified && is.frame != nil {
			c.added(is, parent, at, in)
		}
	case parent.frame == nil: // a branch of a logical keyword, which may reject the field
		if len(is.parts) > 0 {
			c.compare(was, is, at, in)
		}
	case after == dropped:
		if before == specified {
			c.report(at, Change{Check: "field-removed", Level: Breaking, Breaks: AllAudiences,
				OldPointer: was.frame.at.String(), NewPointer: parent.frame.at.String(), Old: typeName(&was),
				Message: "the field was removed: the API server prunes it from requests, and from stored objects when it reads them; readers no longer get it"})
		}
	case before != specified && after == specified:
		c.specified(was, is, at, in)
	case before == specified && after == preserved:
		c.report(at, Change{Check: "field-unspecified", Level: Safe, Breaks: Readers,
			OldPointer: was.frame.at.String(), NewPointer: is.frame.at.String(), Old: typeName(&was), New: "any",
			Message: "the field no longer has a schema: the API server accepts and keeps any value, and fills in no default"})
		c.defaults(was, is, at)
	default:
		c.compare(was, is, at, in)
	}
}

// added reports a field that old objects do not have.
func (c *comparer) added(is value, parent *value, at *place, in around) {
	c.report(at, Change{Check: "field-added", Level: Safe, Breaks: Readers,
		OldPointer: "", NewPointer: is.frame.at.String(), New: typeName(&is),
		Message: "the field was added: existing objects do not have it, and clients with older types drop it when they write an object back"})
	d := is.frame.s.Default
	if d == nil || is.meta {
		return
	}
	x := Change{Check: "default-added", Level: Safe, Breaks: Readers | Stored, NewPointer: is.frame.at.to("default").String(), New: shorten(string(d.Raw)),
		Message: "the new field has a default: the API server fills it in for every object, also stored ones; clients that compare their request with the response see a difference"}
	// API servers compare the default with the schema of the field, not with what an allOf above says about it.
	if in.watched || in.ruled || watches(parent) || !is.own {
		x.Level, x.Breaks = Risky, Writers|Stored
		x.Message = "the new field has a default, which appears in every object: an allOf, anyOf, oneOf, not, enum, CEL rule or maxProperties around it may reject the object"
	}
	c.report(at, x)
}

// specified compares values that no schema described with those of a schema:
// one change says it all.
func (c *comparer) specified(was, is value, at *place, in around) {
	if c.proves(was, is, at, in) {
		return
	}
	c.report(at, Change{Check: "field-specified", Level: Breaking, Breaks: Writers | Stored,
		OldPointer: was.frame.at.String(), NewPointer: is.frame.at.String(), Old: "any", New: typeName(&is),
		Message: "the field now has a schema, and any value was kept before: the API server rejects values that do not match, and prunes unspecified fields"})
}

// unnamed compares what becomes of fields that are not among the properties.
func (c *comparer) unnamed(o, n value, at *place, in around) {
	was, before := c.others(&o, demandsOn(&o, additional))
	is, after := c.others(&n, demandsOn(&n, additional))
	x := Change{Level: Breaking, Breaks: AllAudiences, Old: how(before, &was), New: how(after, &is)}
	switch {
	case before == dropped:
		if after != dropped && !n.all {
			x.Check, x.Level, x.Breaks = "additional-properties-opened", Safe, Readers
			x.OldPointer, x.NewPointer = o.at("additionalProperties"), n.at("additionalProperties")
			x.Message = "the API server now keeps unspecified fields, which it dropped before: readers may get fields that they do not know"
			if after == preserved {
				x.Check = "preserve-added"
				x.OldPointer, x.NewPointer = o.at(preserveKeyword), n.at(preserveKeyword)
			}
			c.report(at, x)
		}
	case before == preserved && after != preserved:
		if after == specified && c.proves(was, is, at.values(), in) {
			return
		}
		x.Check, x.OldPointer, x.NewPointer = "preserve-removed", o.at(preserveKeyword), n.at(preserveKeyword)
		x.Message = "unknown fields are no longer preserved: the API server prunes them from requests, and from stored objects when it reads them, or validates them against a schema"
		c.report(at, x)
	case after == dropped && n.frame.s.AdditionalProperties != nil: // a demand like others, and reported with them
	case after == dropped:
		x.Check, x.OldPointer, x.NewPointer = "additional-properties-closed", o.at("additionalProperties"), n.at("additionalProperties")
		x.Message = "only specified fields are kept: the API server rejects all others, or prunes them from requests, and from stored objects when it reads them"
		c.report(at, x)
	case before == emptied && after == specified:
		c.specified(was, is, at.values(), in)
	default:
		c.compare(was, is, at.values(), in)
	}
}

const preserveKeyword = "x-kubernetes-preserve-unknown-fields"

func how(t treatment, v *value) string {
	return [...]string{dropped: "pruned", preserved: "preserved", emptied: "any", specified: typeName(v)}[t]
}

// lists compares the items of lists.
func (c *comparer) lists(o, n value, at *place, in around) {
	in.item = true
	was, before := c.items(&o)
	is, after := c.items(&n)
	switch {
	case n.frame == nil:
		if len(is.parts) > 0 {
			c.compare(was, is, at.items(), in)
		}
	case before != specified && after == specified:
		c.specified(was, is, at.items(), in)
	case before == preserved && after == emptied:
		c.report(at, Change{Check: "preserve-removed", Level: Breaking, Breaks: AllAudiences, Old: "preserved", New: "pruned",
			OldPointer: o.at(preserveKeyword), NewPointer: n.at(preserveKeyword),
			Message: "unknown fields of the items are no longer preserved: the API server prunes them from requests, and from stored objects when it reads them"})
	default:
		c.compare(was, is, at.items(), in)
	}
}

// proves reports whether every value of o is one of n.
func (c *comparer) proves(o, n value, at *place, in around) bool {
	const maxDepth = 16
	if c.proving >= maxDepth {
		return false
	}
	before := c.refuted
	c.proving++
	c.refuted = false
	c.compare(o, n, at, in)
	ok := !c.refuted
	c.proving--
	c.refuted = before
	return ok
}
