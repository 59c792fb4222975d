package compile

import (
	"math"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// LowerOptions are the choices in the meaning of a schema.
type LowerOptions struct {
	// InheritPreserve reads x-kubernetes-preserve-unknown-fields as KEP-2332
	// does in its examples 7 and 9: it also covers specified children that
	// have no properties of their own.
	InheritPreserve bool
}

// Lower makes the plan of a schema in which Check finds no errors. The caller
// holds the returned node and has to give it back with plan.Release.
func Lower(s *syntax.Schema, o LowerOptions) (*plan.Node, error) {
	l := lowerer{inherit: o.InheritPreserve}
	defer l.builder.Close()
	n, err := l.schema(s, false, nil)
	if err != nil {
		return nil, err
	}
	plan.Hold(n)
	return n, nil
}

type lowerer struct {
	builder plan.Builder
	inherit bool
}

// metaPlace is where in the metadata or type information of an embedded resource
// a schema applies; nil everywhere else. Defaults there have to fit ObjectMeta.
type metaPlace struct {
	parent *metaPlace
	key    string // a field; "" for an item of an array
}

func (p *metaPlace) child(key string) *metaPlace {
	if p == nil {
		return nil
	}
	return &metaPlace{p, key}
}

func (l *lowerer) schema(s *syntax.Schema, inherited bool, at *metaPlace) (*plan.Node, error) {
	n := &plan.Node{Accepts: accepts(s), Flags: flags(s)}
	if inherited && len(s.Properties) == 0 {
		n.Flags |= plan.PreserveUnknown
	}
	inherits := l.inherit && n.Flags&plan.PreserveUnknown != 0
	if err := l.children(n, s, inherits, at); err != nil {
		return nil, err
	}
	if err := l.asserts(n, s); err != nil {
		return nil, err
	}
	rare := plan.Rare{ListMapKeys: s.ListMapKeys, Unions: unions(s), Rules: rules(s)}
	if s.Default != nil {
		value, err := prepareDefault(n, s.Default, at)
		if err != nil {
			return nil, err
		}
		if value != nil {
			rare.Default = string(value)
			n.Flags |= plan.HasDefault | plan.DefaultsBelow
		}
	}
	if rare.Default != "" || len(rare.ListMapKeys)+len(rare.Unions)+len(rare.Rules) > 0 {
		n.Rare = &rare
	}
	return l.builder.Node(n), nil
}

// children lowers the schemas of the values within a value.
func (l *lowerer) children(n *plan.Node, s *syntax.Schema, inherits bool, at *metaPlace) error {
	if items := s.ItemSchema(); items != nil {
		child, err := l.schema(items, inherits, at.child(""))
		if err != nil {
			return err
		}
		n.Items = child
		n.Flags |= child.Flags & plan.DefaultsBelow
	}
	if ap := s.AdditionalProperties; ap != nil && ap.Schema != nil {
		child, err := l.schema(ap.Schema, inherits, at.child("*"))
		if err != nil {
			return err
		}
		n.Additional = child
		n.Flags |= child.Flags & plan.DefaultsBelow
	}
	if len(s.Properties) == 0 {
		return nil
	}
	list := make([]plan.Prop, 0, len(s.Properties))
	for _, p := range s.Properties {
		below := at.child(p.Name)
		if s.EmbeddedResource && (p.Name == "metadata" || p.Name == "apiVersion" || p.Name == "kind") {
			below = &metaPlace{nil, p.Name}
		}
		child, err := l.schema(p.Schema, inherits, below)
		if err != nil {
			return err
		}
		n.Flags |= child.Flags & plan.DefaultsBelow
		list = append(list, plan.Prop{Name: p.Name, Node: child})
	}
	n.Props = plan.NewProps(list)
	return nil
}

// accepts returns the kinds of values that the type of s admits.
func accepts(s *syntax.Schema) plan.Kinds {
	var k plan.Kinds
	switch {
	case s.IntOrString:
		k = plan.KindsOf(jsondoc.Number, jsondoc.String)
	case s.Type == "":
		return plan.AnyKind
	case s.Type == "object":
		k = plan.KindsOf(jsondoc.Object)
	case s.Type == "array":
		k = plan.KindsOf(jsondoc.Array)
	case s.Type == "string":
		k = plan.KindsOf(jsondoc.String)
	case s.Type == "boolean":
		k = plan.KindsOf(jsondoc.False, jsondoc.True)
	case s.Type == "integer", s.Type == "number":
		k = plan.KindsOf(jsondoc.Number)
	}
	if s.Nullable {
		k |= plan.KindsOf(jsondoc.Null)
	}
	if s.Format != "" && !s.IntOrString && s.Type != "integer" && s.Type != "number" {
		// Upstream does not look at the type of strings and arrays once a
		// format is given. What clusters accept is no mismatch.
		k |= plan.KindsOf(jsondoc.String, jsondoc.Array)
	}
	return k
}

func flags(s *syntax.Schema) plan.Flags {
	var f plan.Flags
	set := func(flag plan.Flags, on bool) {
		if on {
			f |= flag
		}
	}
	set(plan.PreserveUnknown, s.PreserveUnknownFields != nil && *s.PreserveUnknownFields)
	set(plan.Embedded, s.EmbeddedResource)
	set(plan.Nullable, s.Nullable)
	set(plan.IntOrString, s.IntOrString)
	set(plan.Integer, s.IntOrString || s.Type == "integer")
	set(plan.Additional, s.AdditionalProperties != nil)
	set(plan.AdditionalFalse, s.AdditionalProperties != nil && !s.AdditionalProperties.Allows)
	set(plan.ReadOnly, s.Rare().ReadOnly)
	if s.ListType != nil {
		set(plan.ListSet, *s.ListType == "set")
		set(plan.ListMap, *s.ListType == "map")
		set(plan.ListAtomic, *s.ListType == "atomic")
	}
	if s.MapType != nil {
		set(plan.MapAtomic, *s.MapType == "atomic")
		set(plan.MapGranular, *s.MapType == "granular")
	}
	return f
}

func unions(s *syntax.Schema) []plan.Union {
	var list []plan.Union
	for _, u := range s.Rare().Unions {
		union := plan.Union{Discriminator: u.Discriminator}
		for _, f := range u.Fields {
			union.Fields = append(union.Fields, plan.UnionField{Name: f.Name, Value: f.Value})
		}
		list = append(list, union)
	}
	return list
}

func rules(s *syntax.Schema) []plan.Rule {
	var list []plan.Rule
	for _, r := range s.Validations {
		rule := plan.Rule{Rule: r.Rule, Message: r.Message, MessageExpression: r.MessageExpression, FieldPath: r.FieldPath}
		if r.Reason != nil {
			rule.Reason = *r.Reason
		}
		if r.OptionalOldSelf != nil {
			rule.OptionalOldSelf = 1
			if *r.OptionalOldSelf {
				rule.OptionalOldSelf = 2
			}
		}
		list = append(list, rule)
	}
	return list
}

// asserts lowers the value validations of s.
func (l *lowerer) asserts(n *plan.Node, s *syntax.Schema) error {
	var list []plan.Assert
	text := func(op plan.Op, value string) {
		if value != "" {
			list = append(list, plan.Assert{Op: op, Text: value})
		}
	}
	number := func(op plan.Op, value *float64) {
		if value != nil {
			list = append(list, plan.Assert{Op: op, Num: math.Float64bits(*value)})
		}
	}
	count := func(op plan.Op, value *int64) {
		if value != nil {
			list = append(list, plan.Assert{Op: op, Num: uint64(*value)})
		}
	}
	maximum, minimum := plan.Maximum, plan.Minimum
	if s.ExclusiveMaximum {
		maximum = plan.ExclusiveMaximum
	}
	if s.ExclusiveMinimum {
		minimum = plan.ExclusiveMinimum
	}
	text(plan.Format, s.Format)
	number(maximum, s.Maximum)
	number(minimum, s.Minimum)
	number(plan.MultipleOf, s.MultipleOf)
	count(plan.MaxLength, s.MaxLength)
	count(plan.MinLength, s.MinLength)
	count(plan.MaxItems, s.MaxItems)
	count(plan.MinItems, s.MinItems)
	count(plan.MaxProperties, s.MaxProperties)
	count(plan.MinProperties, s.MinProperties)
	text(plan.Pattern, s.Pattern)
	if len(s.Enum) > 0 {
		values := make([]string, len(s.Enum))
		for i, e := range s.Enum {
			values[i] = string(e.Raw)
		}
		list = append(list, plan.Assert{Op: plan.Enum, List: values})
	}
	if len(s.Required) > 0 {
		list = append(list, plan.Assert{Op: plan.Required, List: s.Required})
	}
	junctors := []struct {
		op       plan.Op
		branches []*syntax.Schema
	}{{plan.AllOf, s.AllOf}, {plan.AnyOf, s.AnyOf}, {plan.OneOf, s.OneOf}, {plan.Not, nil}}
	if s.Not != nil {
		junctors[3].branches = []*syntax.Schema{s.Not}
	}
	for _, j := range junctors {
		if len(j.branches) == 0 {
			continue
		}
		a := plan.Assert{Op: j.op}
		for _, b := range j.branches {
			child, err := l.schema(b, false, nil)
			if err != nil {
				return err
			}
			a.Nodes = append(a.Nodes, child)
		}
		list = append(list, a)
	}
	if len(list) > 0 {
		n.Asserts = append(make([]plan.Assert, 0, len(list)), list...)
	}
	return nil
}

// prepareDefault returns a default as it is going to be inserted, nil if
// nothing is left of it.
func prepareDefault(n *plan.Node, value *syntax.JSON, at *metaPlace) ([]byte, error) {
	if at == nil {
		return exec.PrepareDefault(n, value.Written)
	}
	raw, err := fitMetadata(value.Raw, at)
	if err != nil || raw == nil {
		return nil, err
	}
	return exec.FillDefaults(n, raw)
}

// fitMetadata returns what ObjectMeta leaves of a default at its place in an
// embedded resource.
func fitMetadata(raw []byte, at *metaPlace) ([]byte, error) {
	var keys []string
	for p := at; p != nil; p = p.parent {
		keys = append(keys, p.key)
	}
	last := len(keys) - 1 // the outermost: apiVersion, kind or metadata
	if keys[last] != "metadata" {
		if raw[0] != '"' {
			return nil, nil
		}
		return raw, nil
	}
	keys = keys[:last]
	var doc []byte
	for i := len(keys) - 1; i >= 0; i-- {
		if keys[i] == "" {
			doc = append(doc, '[')
		} else {
			doc = append(jsondoc.AppendString(append(doc, '{'), keys[i]), ':')
		}
	}
	doc = append(doc, raw...)
	for _, k := range keys {
		if k == "" {
			doc = append(doc, ']')
		} else {
			doc = append(doc, '}')
		}
	}
	if doc[0] != '{' {
		return raw, nil // not an object: validation of the CRD refuses it
	}
	out, err := exec.CoerceMetadata(doc)
	if err != nil {
		return nil, err
	}
	d, err := jsondoc.Parse(out, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return nil, err
	}
	defer d.Release()
	v := jsondoc.Root
	for i := len(keys) - 1; i >= 0; i-- {
		var ok bool
		if keys[i] == "" {
			v, ok = d.Index(v, 0)
		} else {
			v, ok = d.Get(v, keys[i])
		}
		if !ok {
			return nil, nil
		}
	}
	return d.AppendCanonical(nil, v), nil
}
