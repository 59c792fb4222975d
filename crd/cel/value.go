package cel

import (
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"

	"k8s.io/kube-openapi/pkg/validation/strfmt"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// The errors that values are whose JSON does not fit their schema. Validation
// finds such values first; here they can come from an old object.
var (
	errNull        = types.NewErr("invalid data, got null for schema with nullable=false")
	errIntOrString = types.NewErr("invalid data, expected XIntOrString value to be either a string or integer")
	errNoObject    = types.NewErr("invalid data, expected a map for the provided schema with type=object")
	errNoArray     = types.NewErr("invalid data, expected an array for the provided schema with type=array")
	errNoItems     = types.NewErr("invalid array type, expected Items with a non-empty Schema")
	errNoType      = types.NewErr("invalid type, expected object, array, number, integer, boolean or string, or no type with x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ")
)

// root returns the value v of a node with rules.
func (r *reader) root(v jsondoc.Value, n *plan.Node, resource bool) ref.Val {
	if resource && n.Flags&plan.IntOrString == 0 {
		n = r.views.view(n)
	}
	return r.value(v, n)
}

// value returns the value v as its schema n says that rules see it.
func (r *reader) value(v jsondoc.Value, n *plan.Node) ref.Val {
	kind := r.doc.Kind(v)
	if kind == jsondoc.Null {
		if n.Flags&plan.Nullable != 0 {
			return types.NullValue
		}
		return errNull
	}
	if n.Flags&plan.IntOrString != 0 {
		return r.intOrString(v, kind)
	}
	switch n.Type {
	case plan.Object:
		if kind != jsondoc.Object {
			return errNoObject
		}
		if isEmbedded(n) {
			n = r.views.view(n)
		}
		o := r.objects.next()
		*o = object{reader: r, at: v, node: n}
		return o
	case plan.Array:
		return r.array(v, kind, n)
	case plan.String:
		if kind != jsondoc.String {
			return types.NewErr("invalid data, expected string, got %s", goType(r.doc, v))
		}
		return formatted(r.text(v), formatOf(n))
	case plan.Number, plan.Integer:
		return r.number(v, kind, n.Type)
	case plan.Boolean:
		if kind != jsondoc.True && kind != jsondoc.False {
			return types.NewErr("invalid data, expected bool, got %s", goType(r.doc, v))
		}
		return types.Bool(kind == jsondoc.True)
	}
	if n.Flags&plan.PreserveUnknown != 0 {
		return &unknown{reader: r, at: v}
	}
	return errNoType
}

func (r *reader) intOrString(v jsondoc.Value, kind jsondoc.Kind) ref.Val {
	switch kind {
	case jsondoc.String:
		return types.String(r.text(v))
	case jsondoc.Number:
		if i, ok := r.doc.Int64(v); ok {
			return types.Int(i)
		}
	}
	return errIntOrString
}

func (r *reader) number(v jsondoc.Value, kind jsondoc.Kind, t plan.Type) ref.Val {
	if kind == jsondoc.Number {
		i, whole := r.doc.Int64(v)
		switch {
		case t == plan.Integer && whole:
			return types.Int(i)
		case t == plan.Number && whole:
			return types.Double(i)
		case t == plan.Number:
			return types.Double(r.doc.Float64(v))
		}
	}
	if t == plan.Number {
		return types.NewErr("invalid data, expected float, got %s", goType(r.doc, v))
	}
	return types.NewErr("invalid data, expected int, got %s", goType(r.doc, v))
}

func (r *reader) array(v jsondoc.Value, kind jsondoc.Kind, n *plan.Node) ref.Val {
	if kind != jsondoc.Array {
		return errNoArray
	}
	if n.Items == nil {
		return errNoItems
	}
	l := r.lists.next()
	*l = list{reader: r, at: v, node: n}
	switch {
	case n.Flags&plan.ListMap != 0:
		return &mapList{list: l}
	case n.Flags&plan.ListSet != 0:
		return &setList{list: l}
	}
	return l
}

// formatted returns the value that a string stands for.
func formatted(text, format string) ref.Val {
	switch format {
	case "duration":
		d, err := strfmt.ParseDuration(text)
		if err != nil {
			return types.NewErr("Invalid duration %s: %v", text, err)
		}
		return types.Duration{Duration: d}
	case "date":
		d, err := time.Parse(strfmt.RFC3339FullDate, text)
		if err != nil {
			return types.NewErr("Invalid date formatted string %s: %v", text, err)
		}
		return types.Timestamp{Time: d}
	case "date-time":
		d, err := strfmt.ParseDateTime(text)
		if err != nil {
			return types.NewErr("Invalid date-time formatted string %s: %v", text, err)
		}
		return types.Timestamp{Time: time.Time(d)}
	case "byte":
		var b strfmt.Base64
		if err := b.UnmarshalText([]byte(text)); err != nil {
			return types.NewErr("Invalid byte formatted string %s: %v", text, err)
		}
		return types.Bytes(b)
	}
	return types.String(text)
}

// goType names the Go type that a decoder makes of v: errors have it.
func goType(d *jsondoc.Doc, v jsondoc.Value) string {
	switch d.Kind(v) {
	case jsondoc.True, jsondoc.False:
		return "bool"
	case jsondoc.Number:
		if _, ok := d.Int64(v); ok {
			return "int64"
		}
		return "float64"
	case jsondoc.String:
		return "string"
	case jsondoc.Array:
		return "[]interface {}"
	case jsondoc.Object:
		return "map[string]interface {}"
	}
	return "<nil>"
}

// sameJSON reports whether two values are the same JSON. Numbers are the same if
// a decoder makes the same of them: 1 and 1.0 are not.
func sameJSON(a *reader, v jsondoc.Value, b *reader, w jsondoc.Value) bool {
	kind := a.doc.Kind(v)
	if kind != b.doc.Kind(w) {
		return false
	}
	switch kind {
	case jsondoc.Number:
		i, whole := a.doc.Int64(v)
		j, too := b.doc.Int64(w)
		return whole == too && i == j && (whole || a.doc.Float64(v) == b.doc.Float64(w))
	case jsondoc.String:
		return a.text(v) == b.text(w)
	case jsondoc.Array:
		if a.doc.Len(v) != b.doc.Len(w) {
			return false
		}
		c := w + 1
		for _, item := range a.doc.Items(v) {
			if !sameJSON(a, item, b, c) {
				return false
			}
			c = b.doc.Next(c)
		}
	case jsondoc.Object:
		if a.size(v) != b.size(w) {
			return false
		}
		for k, end := v+1, a.doc.Next(v); k < end; k = a.doc.Next(k + 1) {
			c, ok := b.member(w, view(a.doc.Key(k)))
			if !ok || !sameJSON(a, k+1, b, c) {
				return false
			}
		}
	}
	return true
}
