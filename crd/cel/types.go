package cel

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"

	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/espalier-dev/espalier/internal/plan"
)

// selfType is the name of the type of self. Types below it are named after the
// path to them, as in selfType.spec.ports.@idx. It contains a character that no
// expression can, because rules must not be able to name it: the API server
// uses a different name each time. See plainTypes for how it looks in texts.
const selfType = "selfType\x01"

// plainTypes removes what makes the names of types unutterable from a text.
func plainTypes(text string) string { return strings.ReplaceAll(text, selfType, "selfType") }

// schemaTypes is the type system of the rules of one node. It declares nothing
// in advance: an object type is known from the moment that an expression
// reaches it.
type schemaTypes struct {
	types.Provider // of everything that is not a part of the schema

	views    *resources
	self     *types.Type            // of the node's values
	objects  map[string]*plan.Node  // the object types found so far, by name
	found    map[string]*types.Type // and their types
	keywords bool
}

func newSchemaTypes(l *language, n *plan.Node, resource bool, views *resources) *schemaTypes {
	t := &schemaTypes{
		Provider: l.provider, views: views, keywords: l.keywords,
		objects: map[string]*plan.Node{}, found: map[string]*types.Type{},
	}
	t.self = t.typeOf(n, resource, &typeName{part: selfType})
	return t
}

// typeName is the path to a type. Most types are not objects and have no name;
// it is written out only for those that have.
type typeName struct {
	parent *typeName
	part   string
}

func (n *typeName) String() string {
	var parts []string
	for at := n; at != nil; at = at.parent {
		parts = append(parts, at.part)
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// exposed reports whether rules can see values of n: the values themselves have
// a type, and so have their items or the values of the map they are.
func exposed(n *plan.Node) bool {
	for n != nil {
		switch {
		case n.Flags&plan.IntOrString != 0:
			return true
		case n.Type == plan.Array:
			n = n.Items
		case n.Type == plan.Object && n.Additional != nil:
			n = n.Additional
		default:
			return n.Type != plan.Untyped
		}
	}
	return false
}

// typeOf returns the type of n's values, nil if rules cannot see them.
func (t *schemaTypes) typeOf(n *plan.Node, resource bool, name *typeName) *types.Type {
	if n.Flags&plan.IntOrString != 0 {
		return types.DynType
	}
	if resource {
		n = t.views.view(n)
	}
	switch n.Type {
	case plan.Object:
		if n.Additional == nil {
			return t.object(n, name.String())
		}
		if !exposed(n.Additional) {
			return nil
		}
		return types.NewMapType(types.StringType, t.typeOf(n.Additional, isEmbedded(n.Additional), &typeName{name, "@elem"}))
	case plan.Array:
		if !exposed(n.Items) {
			return nil
		}
		return types.NewListType(t.typeOf(n.Items, isEmbedded(n.Items), &typeName{name, "@idx"}))
	case plan.String:
		return stringType(formatOf(n))
	case plan.Integer:
		return types.IntType
	case plan.Number:
		return types.DoubleType
	case plan.Boolean:
		return types.BoolType
	}
	return nil
}

func isEmbedded(n *plan.Node) bool { return n.Flags&plan.Embedded != 0 }

func formatOf(n *plan.Node) string {
	if a := assertion(n, plan.Format); a != nil {
		return a.Text
	}
	return ""
}

func stringType(format string) *types.Type {
	switch format {
	case "byte":
		return types.BytesType
	case "duration":
		return types.DurationType
	case "date", "date-time":
		return types.TimestampType
	}
	return types.StringType
}

func (t *schemaTypes) object(n *plan.Node, name string) *types.Type {
	if known := t.found[name]; known != nil {
		return known
	}
	o := types.NewObjectType(name)
	t.objects[name], t.found[name] = n, o
	return o
}

// FindStructType implements types.Provider.
func (t *schemaTypes) FindStructType(name string) (*types.Type, bool) {
	if o := t.found[name]; o != nil {
		return types.NewTypeTypeWithParam(o), true
	}
	return t.Provider.FindStructType(name)
}

// FindStructFieldNames implements types.Provider. The names only serve to
// suggest others for one that is wrong, which the API server does not do.
func (t *schemaTypes) FindStructFieldNames(string) ([]string, bool) { return nil, false }

// FindStructFieldType implements types.Provider.
func (t *schemaTypes) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	n := t.objects[name]
	if n == nil {
		return t.Provider.FindStructFieldType(name, field)
	}
	child := t.field(n, field)
	if child == nil {
		return nil, false
	}
	// Whatever the field was called, its type is named by the escaped form.
	return &types.FieldType{Type: t.typeOf(child.Node, isEmbedded(child.Node), &typeName{&typeName{part: name}, escape(child.Name)})}, true
}

// field returns the property of n that rules call by the given name, nil if
// there is none or rules cannot see it.
func (t *schemaTypes) field(n *plan.Node, name string) *plan.Prop {
	plain, ok := unescape(name)
	if !ok {
		return nil
	}
	switch escaped := escape(plain); {
	case escaped == name:
	case t.keywords && escaped == "__"+name+"__":
	default:
		return nil
	}
	rank := n.Props.Lookup([]byte(plain))
	if rank < 0 {
		return nil
	}
	if p := n.Props.At(rank); exposed(p.Node) {
		return p
	}
	return nil
}

// escape returns the name that rules call a field by, "" if they cannot.
func escape(name string) string {
	escaped, ok := apiservercel.Escape(name)
	if !ok {
		return ""
	}
	return escaped
}

// unescape is the inverse of escape.
func unescape(name string) (string, bool) {
	if !strings.Contains(name, "__") {
		return name, true
	}
	return apiservercel.Unescape(name)
}
