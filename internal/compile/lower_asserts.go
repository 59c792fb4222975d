package compile

import (
	"math"
	"strconv"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/format"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/pattern"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// assertions collects the value validations of a schema.
type assertions struct {
	list    []plan.Assert
	of      *syntax.Schema
	special bool // there is one that clusters validate in a way of their own

	defaults bool // LowerOptions.Defaults
	strict   bool // LowerOptions.Strict
}

func (a *assertions) add(x plan.Assert) { a.list = append(a.list, x) }

// asserts lowers the value validations of s.
func (l *lowerer) asserts(n *plan.Node, s *syntax.Schema, at position) error {
	a := assertions{of: s, defaults: l.Defaults, strict: l.Strict}
	a.format()
	maximum, minimum := plan.Maximum, plan.Minimum
	if s.ExclusiveMaximum {
		maximum = plan.ExclusiveMaximum
	}
	if s.ExclusiveMinimum {
		minimum = plan.ExclusiveMinimum
	}
	// Violations are reported in this order, which is upstream's.
	a.number(plan.MultipleOf, s.MultipleOf)
	a.number(minimum, s.Minimum)
	a.number(maximum, s.Maximum)
	a.count(plan.MaxLength, s.MaxLength)
	a.count(plan.MinLength, s.MinLength)
	a.count(plan.MinItems, s.MinItems)
	a.count(plan.MaxItems, s.MaxItems)
	a.count(plan.MinProperties, s.MinProperties)
	a.count(plan.MaxProperties, s.MaxProperties)
	if s.Pattern != "" {
		// The pattern of a schema that is not structural may be none: it then
		// matches nothing.
		p, err := pattern.Compile(s.Pattern)
		if err != nil {
			p = nil
		}
		a.add(plan.Assert{Op: plan.Pattern, Text: s.Pattern, Operands: &plan.Operands{Match: p}})
	}
	a.enum()
	if len(s.Required) > 0 {
		o := &plan.Operands{List: s.Required}
		others := s.Required
		if n.Props != nil {
			others = n.Props.Require(s.Required)
		}
		if len(others) > 0 {
			o.Names = plan.NewNames(others)
		}
		a.add(plan.Assert{Op: plan.Required, Operands: o})
	}
	if err := l.logical(&a); err != nil {
		return err
	}
	if n.Type == plan.Untyped && s.Type != "" { // only schemas from before types were checked have such
		a.add(plan.Assert{Op: plan.OtherType, Text: s.Type})
	}
	if l.Defaults {
		a.refused()
	}
	if len(a.list) > 0 {
		n.Asserts = append(make([]plan.Assert, 0, len(a.list)), a.list...)
	}
	switch {
	case !a.special:
	case l.Strict:
		n.Flags |= plan.Strict
	case at.nested:
		n.Flags |= plan.Literal
	}
	return nil
}

// format lowers a format. Rules know every format that is stated; values are
// validated against those that upstream knows for their type: Form is set for
// formats of strings, Num for those of numbers.
func (a *assertions) format() {
	s := a.of
	if s.Format == "" {
		return
	}
	x := plan.Assert{Op: plan.Format, Text: s.Format}
	switch {
	case a.defaults:
		x.Form, x.Num = format.Lookup(s.Format), 1
	case s.IntOrString, s.Type == "", s.Type == "string":
		x.Form = format.Lookup(s.Format)
		a.special = a.special || x.Form != 0
	case s.Type == "integer" && (s.Format == "int32" || s.Format == "int64"),
		s.Type == "number" && (s.Format == "float" || s.Format == "double"):
		x.Num = 1
	}
	a.add(x)
}

// refused lowers what only schemas have that are refused.
func (a *assertions) refused() {
	if a.of.UniqueItems {
		a.add(plan.Assert{Op: plan.UniqueItems})
	}
}

func (a *assertions) number(op plan.Op, value *float64) {
	if value == nil {
		return
	}
	a.special = a.special || *value != math.Trunc(*value) || math.Abs(*value) >= 1<<63
	a.add(plan.Assert{Op: op, Num: math.Float64bits(*value), OutOfRange: !a.inRange(*value)})
}

// inRange reports whether a bound is a number of the type and format beside it.
func (a *assertions) inRange(bound float64) bool {
	if a.of.IntOrString && !a.defaults {
		return true
	}
	return exec.Representable(plan.TypeOf(a.of.Type), a.of.Format, strconv.FormatFloat(bound, 'f', -1, 64))
}

func (a *assertions) count(op plan.Op, value *int64) {
	if value != nil {
		a.add(plan.Assert{Op: op, Num: uint64(*value)})
	}
}

func (a *assertions) enum() {
	if len(a.of.Enum) == 0 {
		return
	}
	o := &plan.Operands{}
	var texts, keys []string
	keyOf := exec.EnumKey
	if a.strict {
		keyOf = exec.StrictEnumKey
	}
	for _, e := range a.of.Enum {
		listed := exec.EnumText(e.Written, e.Raw)
		o.List = append(o.List, listed)
		keys = append(keys, keyOf(listed))
		if e.Raw[0] == '"' {
			texts = append(texts, jsondoc.Unquote(e.Raw))
		}
	}
	if o.Mixed = len(texts) < len(keys); o.Mixed {
		o.Names = plan.NewNames(keys)
	} else {
		o.Names = plan.NewNames(texts)
	}
	a.special = a.special || a.of.Type != "string" || len(texts) < len(keys)
	a.add(plan.Assert{Op: plan.Enum, Operands: o})
}

func (l *lowerer) logical(a *assertions) error {
	s := a.of
	for _, j := range []struct {
		op       plan.Op
		branches []*syntax.Schema
	}{{plan.AnyOf, s.AnyOf}, {plan.OneOf, s.OneOf}, {plan.AllOf, s.AllOf}, {plan.Not, not(s)}} {
		if len(j.branches) == 0 {
			continue
		}
		x := plan.Assert{Op: j.op, Operands: new(plan.Operands)}
		for _, b := range j.branches {
			child, err := l.schema(b, position{validated: true, nested: true})
			if err != nil {
				return err
			}
			x.Nodes = append(x.Nodes, child)
		}
		a.add(x)
	}
	return nil
}

func not(s *syntax.Schema) []*syntax.Schema {
	if s.Not == nil {
		return nil
	}
	return []*syntax.Schema{s.Not}
}
