package compile

import (
	"github.com/espalier-dev/espalier/internal/format"
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
	// Strict validates values as JSON Schema does where clusters are mistaken and
	// accept more.
	Strict bool
	// ValidationOnly is for schemas that are not structural: there are no
	// defaults.
	ValidationOnly bool
	// Defaults is for validating defaults. Upstream does that with another
	// translation of the schema than the one for objects: see [exec.ValidateDefault].
	// All formats count, int-or-string means nothing, and neither does
	// additionalProperties in logical keywords.
	Defaults bool
}

// Lower makes the plan of a schema in which Check finds no errors. The caller
// holds the returned node and has to give it back with plan.Release.
func Lower(s *syntax.Schema, o LowerOptions) (*plan.Node, error) {
	l := lowerer{LowerOptions: o}
	defer l.builder.Close()
	n, err := l.schema(s, position{root: true})
	if err != nil {
		return nil, err
	}
	plan.Hold(n)
	return n, nil
}

type lowerer struct {
	LowerOptions
	builder plan.Builder
}

// position is where in the whole schema a schema is.
type position struct {
	root      bool
	inherited bool // unknown fields are preserved above, and that is inherited
	// validated says that types count as value validations, because
	// normalization does not check them: in logical keywords and in metadata.
	validated bool
	nested    bool // in a logical keyword
	kept      bool // an item of an array whose unknown fields are preserved, which counts for its items
	namesOnly bool // the metadata of a resource: CEL rules see only its names
	meta      *metaPlace
}

func (l *lowerer) schema(s *syntax.Schema, at position) (*plan.Node, error) {
	n := &plan.Node{Accepts: Accepts(s, l.Strict), Type: plan.TypeOf(s.Type), Flags: flags(s)}
	if at.nested {
		// Upstream checks resources and lists apart from values, and does not
		// look into logical keywords. Only schemas that are not structural have them there.
		n.Flags &^= plan.Embedded | plan.ListSet | plan.ListMap
	}
	if l.Defaults {
		n.Flags = flagsForDefaults(n.Flags, at)
	}
	if at.inherited && len(s.Properties) == 0 {
		n.Flags |= plan.PreserveUnknown
	}
	if err := l.children(n, s, at); err != nil {
		return nil, err
	}
	if err := l.asserts(n, s, at); err != nil {
		return nil, err
	}
	rare := plan.Rare{ListMapKeys: s.ListMapKeys}
	if !l.Defaults {
		rare.Unions, rare.Rules = unions(s), rules(s)
	}
	if s.Default != nil && !l.ValidationOnly && !l.Defaults {
		value, err := prepareDefault(n, s.Default, at)
		if err != nil {
			return nil, err
		}
		if value != nil {
			rare.Default = string(value)
			n.Flags |= plan.HasDefault | plan.DefaultsBelow
		}
	}
	if len(rare.Unions) > 0 {
		rare.UnionNames = plan.NewUnionNames(rare.Unions)
	}
	if rare.Default != "" || len(rare.ListMapKeys)+len(rare.Unions)+len(rare.Rules) > 0 {
		n.Rare = &rare
	}
	n.Flags |= derived(n, at)
	return l.builder.Node(n), nil
}

// inheritable are the flags that say something about a node or one below it.
const inheritable = plan.DefaultsBelow | plan.ListsBelow | plan.EmbeddedBelow | plan.UnionsBelow | plan.ReadOnlyBelow | plan.AssertsBelow

// derived returns the flags that follow from the others and from what n has.
func derived(n *plan.Node, at position) plan.Flags {
	var f plan.Flags
	set := func(flag plan.Flags, on bool) {
		if on {
			f |= flag
		}
	}
	lists := n.Flags&(plan.ListSet|plan.ListMap) != 0
	set(plan.ListsBelow, lists)
	set(plan.EmbeddedBelow, n.Flags&plan.Embedded != 0)
	set(plan.ReadOnlyBelow, n.Flags&plan.ReadOnly != 0)
	hasUnions := n.Rare != nil && len(n.Rare.Unions) > 0
	set(plan.UnionsBelow, hasUnions)
	set(plan.AssertsBelow, len(n.Asserts) > 0 || lists || hasUnions ||
		n.Flags&(plan.Embedded|plan.AdditionalFalse) != 0 || at.validated && n.Accepts != plan.AnyKind)
	set(plan.Exposed, exposed(n))
	set(plan.RulesBelow, n.Rare != nil && len(n.Rare.Rules) > 0)
	return f
}

// exposed reports whether rules can see a value: upstream declares to CEL only
// what has a type all the way down through items and values of maps.
func exposed(n *plan.Node) bool {
	switch {
	case n.Flags&plan.IntOrString != 0:
		return true
	case n.Type == plan.Array:
		return n.Items != nil && n.Items.Flags&plan.Exposed != 0
	case n.Type == plan.Object:
		return n.Additional == nil || n.Additional.Flags&plan.Exposed != 0
	}
	return n.Type != plan.Untyped
}

// children lowers the schemas of the values within a value.
func (l *lowerer) children(n *plan.Node, s *syntax.Schema, at position) error {
	within := position{validated: at.validated, nested: at.nested, inherited: l.InheritPreserve && n.Flags&plan.PreserveUnknown != 0}
	lower := func(s *syntax.Schema, key string, declared bool) (*plan.Node, error) {
		p := within
		p.meta = at.meta.child(key)
		p.kept = key == "" && (at.kept || n.Flags&plan.PreserveUnknown != 0)
		return l.child(n, s, p, declared)
	}
	var err error
	if items := s.ItemSchema(); items != nil {
		if n.Items, err = lower(items, "", n.Type == plan.Array); err != nil {
			return err
		}
	}
	if ap := s.AdditionalProperties; ap != nil && ap.Schema != nil && n.Flags&plan.Additional != 0 {
		if n.Additional, err = lower(ap.Schema, "*", n.Type == plan.Object); err != nil {
			return err
		}
	}
	if len(s.Properties) == 0 {
		return nil
	}
	list := make([]plan.Prop, 0, len(s.Properties))
	for _, p := range s.Properties {
		below := within
		below.meta = at.meta.child(p.Name)
		if (s.EmbeddedResource || at.root) && (p.Name == "metadata" || p.Name == "apiVersion" || p.Name == "kind") {
			below.validated = true
			if s.EmbeddedResource {
				below.meta = &metaPlace{nil, p.Name}
			}
		}
		below.namesOnly = (s.EmbeddedResource || at.root) && p.Name == "metadata" && !specifiesMeta(s)
		seen := n.Flags & plan.RulesBelow
		child, err := l.child(n, p.Schema, below, true)
		if err != nil {
			return err
		}
		if n.Type != plan.Object || n.Additional != nil || at.namesOnly && p.Name != "name" && p.Name != "generateName" {
			n.Flags = n.Flags&^plan.RulesBelow | seen
		}
		list = append(list, plan.Prop{Name: p.Name, Node: child})
	}
	n.Props = plan.NewProps(list)
	return nil
}

// specifiesMeta is plan.SpecifiesMeta for a schema as written.
func specifiesMeta(s *syntax.Schema) bool {
	is := func(s *syntax.Schema, t string) bool { return s != nil && s.Type == t }
	meta := s.Property("metadata")
	return is(s.Property("kind"), "string") && is(s.Property("apiVersion"), "string") && is(meta, "object") &&
		is(meta.Property("name"), "string") && is(meta.Property("generateName"), "string")
}

// child lowers a schema of something within what n describes, and tells n what
// it needs to know about it. declared says that rules can get from n there.
func (l *lowerer) child(n *plan.Node, s *syntax.Schema, at position, declared bool) (*plan.Node, error) {
	child, err := l.schema(s, at)
	if err != nil {
		return nil, err
	}
	n.Flags |= child.Flags & inheritable
	switch {
	case declared && child.Flags&plan.Exposed != 0:
		n.Flags |= child.Flags & plan.RulesBelow
	case !declared && compiles(child):
		n.Flags |= plan.RulesBelow
	}
	return child, nil
}

// compiles reports whether upstream tries, and fails, to compile rules of what
// it has no type for: it then follows items and values of maps, not properties.
func compiles(n *plan.Node) bool {
	return n != nil && (n.Rare != nil && len(n.Rare.Rules) > 0 || compiles(n.Items) || compiles(n.Additional))
}

// Accepts returns the kinds of values that the type of s admits; strictly, without
// those that clusters admit by mistake.
func Accepts(s *syntax.Schema, strict bool) plan.Kinds {
	var k plan.Kinds
	formatted := s.Format != "" && (s.Type == "" || s.Type == "string") && format.Lookup(s.Format) != 0
	switch {
	case s.IntOrString:
		k = plan.KindsOf(jsondoc.Number, jsondoc.String)
	case s.Type == "" && formatted:
		k = plan.KindsOf(jsondoc.String, jsondoc.Array, jsondoc.Null)
	case s.Type == "":
		return plan.AnyKind
	case s.Type == "string" && formatted && !strict:
		// Upstream does not look at the type of arrays once there is a format.
		k = plan.KindsOf(jsondoc.String, jsondoc.Array)
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
	set(plan.Whole, s.IntOrString || s.Type == "integer")
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

// flagsForDefaults returns the flags that count for a default.
func flagsForDefaults(f plan.Flags, at position) plan.Flags {
	f &^= plan.IntOrString
	if at.root {
		f |= plan.Embedded // upstream takes the object as a whole for one
	}
	if at.nested {
		f &^= plan.Additional | plan.AdditionalFalse
	}
	return f
}

func unions(s *syntax.Schema) []plan.Union {
	var list []plan.Union
	for _, u := range syntax.WellFormedUnions(s) {
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
