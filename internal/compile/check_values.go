package compile

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/format"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// values warns of value validations that do not do what they seem to. The first
// two are upstream's own warnings.
func (c *checker) values(s *syntax.Schema) {
	if s.Format != "" {
		c.format(s)
	}
	if item := s.ItemSchema(); item != nil && s.ListType != nil && *s.ListType == "set" && (item.Type == "object" || item.Type == "array") {
		c.invalid(listSetObjects, s, "x-kubernetes-list-type", "set",
			fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", item.Type))
	}
	if len(s.Enum) > 0 {
		c.enum(s)
	}
	if s.IntOrString || s.Type == "" || s.Type == "integer" || s.Type == "number" {
		c.bound(s, "minimum", s.Minimum)
		c.bound(s, "maximum", s.Maximum)
		c.bound(s, "multipleOf", s.MultipleOf)
	}
}

func (c *checker) format(s *syntax.Schema) {
	if !formatKnown(s) || c.older && format.Lookup(s.Format).Since134() {
		c.invalid(formatUnrecognized, s, "format", s.Format, fmt.Sprintf("unrecognized format %q", s.Format))
		return
	}
	if c.strict && s.Type == "string" && !s.IntOrString {
		c.invalid(formatArrays, s, "format", s.Format, "API servers accept arrays in place of strings with a format")
	}
}

// formatKnown reports whether clusters know the format of s for its type.
func formatKnown(s *syntax.Schema) bool {
	switch s.Type {
	case "", "string":
		return format.Lookup(s.Format) != 0
	case "integer":
		return s.Format == "int32" || s.Format == "int64"
	case "number":
		return s.Format == "float" || s.Format == "double"
	}
	return false
}

// enum warns of listed values that no value is equal to, and of those that are
// found to be equal to others.
func (c *checker) enum(s *syntax.Schema) {
	converted := false
	for i := range s.Enum {
		e := &s.Enum[i]
		switch kind := kindOf(e.Raw); {
		case kind == jsondoc.Null && s.Nullable:
			c.listed(enumNull, i, e, "API servers refuse null even if the enum lists it")
		case !listable(s, kind, e):
			c.listed(enumType, i, e, "is not of type "+typeOf(s)+": no value of that type is equal to it")
		}
		converted = converted || convertible(s, e)
	}
	if converted {
		c.forbidden(enumConversion, s, "enum", "API servers accept numbers that the enum does not list, because they convert values before they compare")
	}
}

// convertible reports whether clusters find a number equal to e that is not:
// they cut off fractions, and make characters of integers.
func convertible(s *syntax.Schema, e *syntax.JSON) bool {
	if kindOf(e.Raw) == jsondoc.String {
		numeric := s.IntOrString || s.Type == "integer" || s.Type == "number"
		return numeric && utf8.RuneCountInString(jsondoc.Unquote(e.Raw)) == 1
	}
	return s.Type == "number" && !s.IntOrString && isInteger(e)
}

// listed warns of the value i of an enum.
func (c *checker) listed(r checkID, i int, e *syntax.JSON, detail string) {
	at := path{{keyword: "enum", index: i, kind: indexed}}
	c.add(r, c.path, fault{kind: field.ErrorTypeInvalid, bad: json.RawMessage(slices.Clone(e.Raw)), detail: detail, offset: e.Offset, at: at, in: at})
}

// typeOf names the type of s.
func typeOf(s *syntax.Schema) string {
	if s.IntOrString {
		return "integer or string"
	}
	return s.Type
}

// listable reports whether a value of the type of s can be equal to a listed
// one. Of types that are unknown nothing can be said.
func listable(s *syntax.Schema, kind jsondoc.Kind, e *syntax.JSON) bool {
	if s.IntOrString {
		return kind == jsondoc.String || kind == jsondoc.Number && isWhole(e)
	}
	switch s.Type {
	case "integer":
		return kind == jsondoc.Number && isWhole(e)
	case "number":
		return kind == jsondoc.Number
	case "string":
		return kind == jsondoc.String
	case "boolean":
		return kind == jsondoc.True || kind == jsondoc.False
	case "array":
		return kind == jsondoc.Array
	case "object":
		return kind == jsondoc.Object
	}
	return true
}

// kindOf returns the kind of canonical JSON.
func kindOf(raw []byte) jsondoc.Kind {
	switch raw[0] {
	case 'n':
		return jsondoc.Null
	case 't':
		return jsondoc.True
	case 'f':
		return jsondoc.False
	case '"':
		return jsondoc.String
	case '[':
		return jsondoc.Array
	case '{':
		return jsondoc.Object
	}
	return jsondoc.Number
}

// isInteger reports whether a number is written as an integer; clusters then
// hold it as one.
func isInteger(e *syntax.JSON) bool {
	_, err := strconv.ParseInt(string(e.Written), 10, 64)
	return err == nil
}

func isWhole(e *syntax.JSON) bool {
	f, err := strconv.ParseFloat(string(e.Written), 64)
	return err == nil && f == math.Trunc(f)
}

// bound warns of a bound that clusters do not keep to.
func (c *checker) bound(s *syntax.Schema, keyword string, bound *float64) {
	if bound == nil {
		return
	}
	number := strconv.FormatFloat(*bound, 'f', -1, 64)
	switch {
	case !s.IntOrString && !exec.Representable(plan.TypeOf(s.Type), s.Format, number):
		of := "of type " + s.Type
		if formatKnown(s) {
			of += " with format " + s.Format
		}
		c.invalid(boundOutOfRange, s, keyword, *bound, "is no number "+of+": API servers refuse every value")
	case *bound != math.Trunc(*bound):
		c.invalid(boundFraction, s, keyword, *bound, "API servers drop the fraction before they compare an integer with it")
	}
}
