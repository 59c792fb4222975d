package kinds

import (
	"bytes"
	"reflect"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"go.yaml.in/yaml/v3"
)

// TestKeys finds keys that the files have and the format does not.
func TestKeys(t *testing.T) {
	for _, name := range files() {
		var node yaml.Node
		if err := yaml.Unmarshal(read(name), &node); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		known(t, name, node.Content[0], reflect.TypeFor[file]())
		if head, _, ok := bytes.Cut(read(name), []byte("\ntypes:\n")); ok && bytes.Contains(head, []byte("rules:")) {
			t.Errorf("%s: rules before types", name)
		}
	}
}

// known complains about the keys of a node that a Go type has no field for.
func known(t *testing.T, at string, node *yaml.Node, as reflect.Type) {
	for as.Kind() == reflect.Pointer {
		as = as.Elem()
	}
	switch {
	case as.Kind() == reflect.Slice && strings.Contains(as.Name(), "ordered["):
		item := reflect.Zero(as.Elem()).FieldByName("value").Type()
		for i := 0; i+1 < len(node.Content); i += 2 {
			known(t, at+"."+node.Content[i].Value, node.Content[i+1], item)
		}
	case as.Kind() == reflect.Slice && node.Kind == yaml.SequenceNode:
		for _, item := range node.Content {
			known(t, at, item, as.Elem())
		}
	case as.Kind() == reflect.Struct && node.Kind == yaml.MappingNode && as.NumField() > 3:
		for i := 0; i+1 < len(node.Content); i += 2 {
			key := node.Content[i].Value
			field, ok := as.FieldByNameFunc(func(name string) bool {
				f, _ := as.FieldByName(name)
				return f.Tag.Get("yaml") == key
			})
			if !ok {
				t.Errorf("%s: line %d: unknown key %q", at, node.Content[i].Line, key)
				continue
			}
			known(t, at+"."+key, node.Content[i+1], field.Type)
		}
	}
}

// TestKinds looks at the kinds as a whole.
func TestKinds(t *testing.T) {
	seen := map[string]bool{}
	for _, k := range All() {
		name := k.Group + "/" + k.Version + "/" + k.Plural
		if seen[name] || k.Plural == "" || k.Singular == "" || k.Kind == "" || k.Version == "" {
			t.Errorf("%s: a name is missing, or is there twice", name)
		}
		seen[name] = true
		if k.object() == nil {
			t.Errorf("%s: types.json has no type %q", name, k.Type)
		}
		if nameFormats[k.Name] == nil {
			t.Errorf("%s: there is no format %q for names", name, k.Name)
		}
	}
}

// TestExpressions checks the types of all expressions.
func TestExpressions(t *testing.T) {
	loadAll(t)
	c := newChecker(t)
	for _, k := range All() {
		root := types.NewObjectType(k.Type)
		for i := range k.Columns {
			if k.Columns[i].Cell == nil {
				t.Errorf("%s: column %s has no cell", k.Plural, k.Columns[i].Name)
				continue
			}
			c.check(k.Plural+": column "+k.Columns[i].Name, k.Columns[i].Cell, nil, vars{"self": root})
		}
		for _, s := range k.Selectors {
			c.check(k.Plural+": selector "+s.name, s.value, cel.StringType, vars{"self": root})
		}
		for _, p := range k.Prepares {
			v := vars{"self": root, "old": root}
			c.check(k.Plural+": prepare", p.If, cel.BoolType, v)
			c.check(k.Plural+": prepare", p.Value, nil, v)
		}
	}
	for _, t := range readTypes() {
		if t.data == nil {
			continue
		}
		self := types.NewObjectType(t.name)
		v := vars{"self": self, "old": self, "parent": cel.DynType}
		for _, f := range t.data.Fields {
			c.field(t.name+"."+f.name, f.value, t.fields[f.name], v)
		}
		for _, r := range t.data.Rules {
			c.rule(t.name, r, v, false)
		}
		for _, r := range t.data.Warnings {
			c.rule(t.name, r, v, true)
		}
	}
}

// vars are the types of variables.
type vars map[string]*cel.Type

// with adds a variable.
func (v vars) with(name string, t *cel.Type) vars {
	out := vars{name: t}
	for key, value := range v {
		if key != name {
			out[key] = value
		}
	}
	return out
}

type exprChecker struct {
	t    *testing.T
	base *cel.Env
}

func newChecker(t *testing.T) *exprChecker {
	t.Helper()
	p := provider{language().CELTypeProvider(), readTypes()}
	base, err := language().Extend(cel.CustomTypeProvider(p),
		cel.Variable("root", cel.DynType), cel.Variable("oldRoot", cel.DynType), cel.Variable("update", cel.BoolType),
		cel.Variable("kind", cel.StringType), cel.Variable("path", cel.StringType),
		cel.Variable("failed", cel.MapType(cel.StringType, cel.BoolType)))
	if err != nil {
		t.Fatal(err)
	}
	return &exprChecker{t, base}
}

// check checks an expression, and returns its type.
func (c *exprChecker) check(at string, e *expr, want *cel.Type, v vars) *cel.Type {
	if e == nil {
		return cel.DynType
	}
	var options []cel.EnvOption
	for name, t := range v {
		options = append(options, cel.Variable(name, t))
	}
	env, err := c.base.Extend(options...)
	if err != nil {
		c.t.Fatal(err)
	}
	ast, issues := env.Compile(e.source)
	if issues.Err() != nil {
		c.t.Errorf("%s: %v", at, issues.Err())
		return cel.DynType
	}
	out := ast.OutputType()
	if want != nil && !want.IsAssignableType(out) && out != cel.DynType && !out.IsExactType(cel.DynType) {
		c.t.Errorf("%s: %s gives a %s and not a %s", at, e.source, out, want)
	}
	return out
}

func (c *exprChecker) field(at string, d *fieldData, t *fieldType, parent vars) {
	if d == nil {
		return
	}
	c.check(at+": defaultExpression", d.DefaultExpression, nil, parent)
	c.check(at+": defaultIf", d.DefaultIf, cel.BoolType, parent)
	c.check(at+": clearIf", d.ClearIf, cel.BoolType, parent)
	c.check(at+": skipIf", d.SkipIf, cel.BoolType, parent)
	if d.Format != "" && formats[d.Format] == nil && shapes[d.Format] == nil {
		c.t.Errorf("%s: there is no format %q", at, d.Format)
	}
	own := vars{"self": celType(t), "old": celType(t), "parent": parent["self"]}
	for _, r := range d.Rules {
		c.rule(at, r, own, false)
	}
	for _, r := range d.Warnings {
		c.rule(at, r, own, true)
	}
	if t.items != nil {
		c.field(at+"[]", d.Items, t.items, own.with("self", celType(t.items)))
		c.field(at+" key", d.Keys, keyType, own.with("self", cel.StringType))
	} else if d.Items != nil || d.Keys != nil || d.Distinct.set || d.MaxItems > 0 {
		c.t.Errorf("%s: keywords of lists and maps for another type", at)
	}
}

var reasons = map[string]bool{
	"": true, "invalid": true, "required": true, "forbidden": true, "duplicate": true, "notSupported": true,
	"notFound": true, "tooLong": true, "tooMany": true, "typeInvalid": true, "internal": true,
}

func (c *exprChecker) rule(at string, r *rule, v vars, warning bool) {
	at += ": rule"
	for _, let := range r.Let {
		v = v.with(let.name, c.check(at+" let "+let.name, let.value, nil, v))
	}
	if r.Each != nil {
		list := c.check(at+" each", r.Each, nil, v)
		item := cel.DynType
		if list.Kind() == types.ListKind {
			item = list.Parameters()[0]
		}
		v = v.with("item", item).with("index", cel.IntType)
		if r.Inner != nil {
			list = c.check(at+" inner", r.Inner, nil, v)
			v = v.with("outer", item).with("item", cel.DynType)
			if list.Kind() == types.ListKind {
				v = v.with("item", list.Parameters()[0])
			}
		}
	}
	c.check(at+" if", r.If, cel.BoolType, v)
	c.check(at, r.Rule, cel.BoolType, v)
	c.check(at+" messages", r.Messages, cel.ListType(cel.StringType), v)
	c.check(at+" messageExpression", r.MessageExpression, cel.StringType, v)
	c.check(at+" pathExpression", r.PathExpression, cel.StringType, v)
	c.check(at+" value", r.Value, nil, v)
	c.check(at+" supported", r.Supported.expression, nil, v)
	switch {
	case !warning && (r.Rule == nil) == (r.Messages == nil):
		c.t.Errorf("%s: one of rule and messages is needed", at)
	case warning && (r.Rule != nil || r.Message == "" && r.MessageExpression == nil && r.Messages == nil):
		c.t.Errorf("%s: a warning has a text and no rule", at)
	case !reasons[r.Reason]:
		c.t.Errorf("%s: unknown reason %q", at, r.Reason)
	case r.When != "" && r.When != "create" && r.When != "update":
		c.t.Errorf("%s: when is create or update", at)
	}
}

// celType is a type as CEL has it.
func celType(t *fieldType) *cel.Type {
	switch t.form {
	case stringForm, quantityForm:
		return cel.StringType
	case integerForm:
		return cel.IntType
	case floatForm:
		return cel.DoubleType
	case boolForm:
		return cel.BoolType
	case objectForm:
		return types.NewObjectType(t.object.name)
	case listForm:
		return cel.ListType(celType(t.items))
	case mapForm:
		return cel.MapType(cel.StringType, celType(t.items))
	default:
		return cel.DynType
	}
}

// provider tells the type checker of structs.
type provider struct {
	types.Provider
	all map[string]*objectType
}

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if p.all[name] != nil {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	t := p.all[name]
	if t == nil {
		return p.Provider.FindStructFieldType(name, field)
	}
	_, ft := (&object{t: t}).field(types.String(field))
	if ft == nil {
		return nil, false
	}
	return &types.FieldType{Type: celType(ft)}, true
}
