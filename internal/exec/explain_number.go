package exec

import (
	"fmt"
	"math"
	"strconv"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// bounds says how upstream calls the bounds of numbers.
var bounds = map[plan.Op]struct{ keyword, name, should string }{
	plan.Maximum:          {"maximum", "Maximum boundary", "should be less than or equal to"},
	plan.ExclusiveMaximum: {"exclusiveMaximum", "Maximum boundary", "should be less than"},
	plan.Minimum:          {"minimum", "Minimum boundary", "should be greater than or equal to"},
	plan.ExclusiveMinimum: {"exclusiveMinimum", "Minimum boundary", "should be greater than"},
	plan.MultipleOf:       {"multipleOf", "MultipleOf", "should be a multiple of"},
}

func (e *explainer) number(v jsondoc.Value, n *plan.Node) {
	i, isInt := e.whole(v)
	f := float64(i)
	if !isInt {
		f = e.d.Float64(v)
	}
	name := numberFormat(n)
	w := wayOf(n)
	if e.exact {
		w = literal
	}
	if !numberInRange(n, name, i, isInt, f) {
		e.outOfRange(v, n, "Checked", "format", name)
	}
	for k := range n.Asserts {
		a := &n.Asserts[k]
		bound := math.Float64frombits(a.Num)
		b, ok := bounds[a.Op]
		switch {
		case !ok:
		case a.OutOfRange:
			e.outOfRange(v, n, b.name, b.keyword, name)
			if !keepsBound(a.Op, bound, 0, false, f) {
				e.beyond(v, a.Op, bound, f, bound <= 0)
			}
		case withinBound(a.Op, bound, i, isInt, f, w):
		case isInt && w != strict:
			e.beyond(v, a.Op, truncated(bound), i, truncated(bound) <= 0)
		case isInt:
			e.beyond(v, a.Op, bound, i, bound <= 0)
		default:
			e.beyond(v, a.Op, bound, f, bound <= 0)
		}
	}
}

// numberInRange reports whether a number is one of the type and format beside
// it. With several types every number is.
func numberInRange(n *plan.Node, format string, i int64, isInt bool, f float64) bool {
	if n.Flags&plan.IntOrString != 0 {
		return true
	}
	if isInt {
		return Representable(n.Type, format, strconv.FormatInt(i, 10))
	}
	return Representable(n.Type, format, strconv.FormatFloat(f, 'f', -1, 64))
}

// numberFormat returns the format that errors about ranges name. Only int32 and
// int64 limit integers; others are not sorted out before in defaults.
func numberFormat(n *plan.Node) string {
	f := formatOf(n).Text
	if n.Type == plan.Integer && f != "int32" && f != "int64" {
		return ""
	}
	return f
}

// Representable reports whether a number, written without an exponent, is one
// of a type and format.
func Representable(t plan.Type, format, number string) bool {
	var err error
	switch {
	case t == plan.Integer && format == "int32":
		_, err = strconv.ParseInt(number, 10, 32)
	case t == plan.Integer:
		_, err = strconv.ParseInt(number, 10, 64)
	case t == plan.Number && format == "float":
		_, err = strconv.ParseFloat(number, 32)
	}
	return err == nil
}

// outOfRange notes that a number, or a bound, is none of the type and format.
// Upstream gives no path besides the one in the text.
func (e *explainer) outOfRange(v jsondoc.Value, n *plan.Node, what, keyword, format string) {
	text := fmt.Sprintf("%s value must be of type %s (default format) in %s", what, types(n), e.body())
	if format != "" {
		text = fmt.Sprintf("%s value must be of type %s with format %s in %s", what, types(n), format, e.body())
	}
	e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: "", Keyword: keyword}, "", v, text)
}

// beyond notes that value, an integer or a float, is beyond a bound of the same
// type.
func (e *explainer) beyond(v jsondoc.Value, op plan.Op, bound, value any, unusable bool) {
	at := e.body()
	b := bounds[op]
	if op == plan.MultipleOf && unusable {
		e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: bound, Keyword: b.keyword}, at, v,
			fmt.Sprintf("factor MultipleOf declared for %s must be positive: %v", at, bound))
		return
	}
	e.add(Violation{Type: field.ErrorTypeInvalid, BadValue: value, Keyword: b.keyword}, at, v,
		fmt.Sprintf("%s in body %s %v", at, b.should, bound))
}
