package diff

import (
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// around is what the new definition has around a place.
type around struct {
	root    bool
	item    bool // the value is an item of a list, where nulls are not dropped
	watched bool // junctors, enums or unions above may look at what is added here
	ruled   bool // so may rules
	branch  bool // in a proof: the value that the junctor is about, of which nulls are not judged
}

const (
	objectKind = plan.Kinds(1 << jsondoc.Object)
	arrayKind  = plan.Kinds(1 << jsondoc.Array)
	stringKind = plan.Kinds(1 << jsondoc.String)
	numberKind = plan.Kinds(1 << jsondoc.Number)
	boolKind   = plan.Kinds(1<<jsondoc.True | 1<<jsondoc.False)
)

// compare compares what two definitions say about the values of a place.
func (c *comparer) compare(o, n value, at *place, in around) {
	if !c.spend(len(o.parts)+len(n.parts)) || c.proving > 0 && c.refuted {
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
	if o.frame != nil && n.frame != nil {
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
	gained := n.frame != nil && o.frame != nil && (n.kinds(true)&^null&^had != 0 || o.whole() && has&numberKind != 0 && !n.whole())
	if lost == 0 && !narrowed && !gained {
		return
	}
	x := Change{Old: typeName(&o), New: typeName(&n), OldPointer: o.at(typeKeyword(&o)), NewPointer: n.at(typeKeyword(&n))}
	switch {
	case lost != 0 || narrowed:
		x.Rule, x.Level, x.Breaks = "type-changed", Breaking, Everybody
		if o.intOrString() && !n.intOrString() {
			x.Rule = "int-or-string-removed"
		}
		x.Message = fmt.Sprintf("the type changes from %s to %s: values of the old type are refused, and readers get others than they decode", x.Old, x.New)
		c.report(at, x)
	default:
		x.Rule, x.Level, x.Breaks = "type-widened", Risky, Readers
		if n.intOrString() && !o.intOrString() {
			x.Rule = "int-or-string-added"
		}
		x.Message = fmt.Sprintf("the type is widened from %s to %s: what was written before stays valid, but readers may get values that they do not decode", x.Old, x.New)
		if in.ruled {
			x.Breaks |= Writers | Stored
			x.Message += ", and rules see the value as another type"
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
	had, has := o.nulls(in.item), n.nulls(in.item)
	if n.frame == nil {
		has = n.kinds(false)&null != 0
	}
	if had == has {
		return
	}
	x := Change{OldPointer: o.at("nullable"), NewPointer: n.at("nullable"), Old: yes(had), New: yes(has)}
	switch {
	case had:
		x.Rule, x.Level, x.Breaks = "nullable-removed", Breaking, Writers|Stored
		x.Message = "null is no longer a value: where it was sent or stored, the field is dropped or gets its default, and a list with it, or an object that requires the field, is refused"
		c.report(at, x)
	case o.frame != nil && n.frame != nil:
		x.Rule, x.Level, x.Breaks = "nullable-added", Risky, Readers
		x.Message = "null becomes a value: where writers send it, it used to be dropped and now readers get it"
		if o.frame.s.Default != nil || len(n.frame.s.Enum) > 0 {
			x.Breaks |= Writers
			x.Message += "; writers who send it used to get the default, or are refused because the enum does not list null"
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
	if o.frame == nil || n.frame == nil {
		return
	}
	c.unnamed(o, n, at, in)
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

// field compares one field; parent is what is around it in the new definition.
func (c *comparer) field(was, is value, before, after treatment, parent *value, at *place, in around) {
	switch {
	case before == dropped:
		if after == specified && is.frame != nil {
			c.added(is, parent, at, in)
		}
	case parent.frame == nil: // a branch of a junctor, which may have something against it
		if len(is.parts) > 0 {
			c.compare(was, is, at, in)
		}
	case after == dropped:
		if before == specified {
			c.report(at, Change{Rule: "field-removed", Level: Breaking, Breaks: Everybody,
				OldPointer: was.frame.at.String(), NewPointer: parent.frame.at.String(), Old: typeName(&was),
				Message: "the field is gone: it is pruned from what writers send and from stored objects as they are read, and readers no longer get it"})
		}
	case before != specified && after == specified:
		c.specified(was, is, at, in)
	case before == specified && after == preserved:
		c.report(at, Change{Rule: "field-unspecified", Level: Safe, Breaks: Readers,
			OldPointer: was.frame.at.String(), NewPointer: is.frame.at.String(), Old: typeName(&was), New: "any",
			Message: "the field has no schema any more and is kept as it comes: nothing is refused, but readers may get any value, and no default is filled in"})
		c.defaults(was, is, at)
	default:
		c.compare(was, is, at, in)
	}
}

// added reports a field that old objects do not have.
func (c *comparer) added(is value, parent *value, at *place, in around) {
	c.report(at, Change{Rule: "field-added", Level: Safe, Breaks: Readers,
		OldPointer: "", NewPointer: is.frame.at.String(), New: typeName(&is),
		Message: "the field is new: objects written before do not have it, and clients that write back what they decoded into older types drop it"})
	d := is.frame.s.Default
	if d == nil || is.meta {
		return
	}
	x := Change{Rule: "default-added", Level: Safe, Breaks: Readers | Stored, NewPointer: is.frame.at.to("default").String(), New: shorten(string(d.Raw)),
		Message: "the new field has a default: it appears in every object, stored ones included, where clients that compare what they sent with what they get see it"}
	if in.watched || in.ruled || watches(parent) {
		x.Level, x.Breaks = Risky, Writers|Stored
		x.Message = "the new field has a default, which appears in every object: a junctor, an enum, a rule or a limit on properties around it may refuse that"
	}
	c.report(at, x)
}

// specified compares values that no schema described with those of a schema:
// one change says it all.
func (c *comparer) specified(was, is value, at *place, in around) {
	if c.proves(was, is, at, in) {
		return
	}
	c.report(at, Change{Rule: "field-specified", Level: Breaking, Breaks: Writers | Stored,
		OldPointer: was.frame.at.String(), NewPointer: is.frame.at.String(), Old: "any", New: typeName(&is),
		Message: "the field was kept whatever its value and now has a schema: values that do not fit are refused, and fields that it does not specify are pruned"})
}

// unnamed compares what becomes of fields that are not among the properties.
func (c *comparer) unnamed(o, n value, at *place, in around) {
	was, before := c.others(&o, demandsOn(&o, additional))
	is, after := c.others(&n, demandsOn(&n, additional))
	x := Change{Level: Breaking, Breaks: Everybody, Old: how(before, &was), New: how(after, &is)}
	switch {
	case before == dropped:
		if after != dropped && !n.all {
			x.Rule, x.Level, x.Breaks = "additional-properties-opened", Safe, Readers
			x.OldPointer, x.NewPointer = o.at("additionalProperties"), n.at("additionalProperties")
			x.Message = "fields that are not specified used to be dropped and are now kept: readers may get fields that they do not know"
			if after == preserved {
				x.Rule = "preserve-added"
				x.OldPointer, x.NewPointer = o.at(preserveKeyword), n.at(preserveKeyword)
			}
			c.report(at, x)
		}
	case before == preserved && after != preserved:
		if after == specified && c.proves(was, is, at.values(), in) {
			return
		}
		x.Rule, x.OldPointer, x.NewPointer = "preserve-removed", o.at(preserveKeyword), n.at(preserveKeyword)
		x.Message = "unknown fields are no longer preserved: they are pruned from what writers send and from stored objects as they are read, or have to fit a schema"
		c.report(at, x)
	case after == dropped && n.frame.s.AdditionalProperties != nil: // a demand like others, and reported with them
	case after == dropped:
		x.Rule, x.OldPointer, x.NewPointer = "additional-properties-closed", o.at("additionalProperties"), n.at("additionalProperties")
		x.Message = "only specified fields are left: all others are pruned from what writers send and from stored objects as they are read, or refused"
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
		c.report(at, Change{Rule: "preserve-removed", Level: Breaking, Breaks: Everybody, Old: "preserved", New: "pruned",
			OldPointer: o.at(preserveKeyword), NewPointer: n.at(preserveKeyword),
			Message: "unknown fields of the items are no longer preserved: they are pruned from what writers send and from stored objects as they are read"})
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
