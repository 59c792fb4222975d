package docgen

import (
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// limit is something that a schema demands of values, in words.
type limit struct {
	Name  string // length, say
	Value string // at most 253; empty if the name says it all
	Of    string // "each item" or "each value" if not of the field itself
	Code  bool   // the value is written in some language
}

// String is the limit on one line.
func (l limit) String() string {
	text := l.Name
	if l.Value != "" {
		text += ": " + l.Value
	}
	if l.Of != "" {
		text = l.Of + ": " + text
	}
	return text
}

// limits puts what a schema demands into words.
func limits(s *syntax.Schema) []limit {
	var list []limit
	add := func(name, value string) {
		if value != "" {
			list = append(list, limit{Name: name, Value: value})
		}
	}
	code := func(name, value string) {
		if value != "" {
			list = append(list, limit{Name: name, Value: value, Code: true})
		}
	}
	mark := func(is bool, name string) {
		if is {
			list = append(list, limit{Name: name})
		}
	}
	mark(s.Nullable, "nullable")
	code("format", s.Format)
	add("length", between(s.MinLength, s.MaxLength))
	add("value", valueRange(s))
	if s.MultipleOf != nil {
		add("multiple of", number(*s.MultipleOf))
	}
	code("pattern", s.Pattern)
	add("items", between(s.MinItems, s.MaxItems))
	add("entries", between(s.MinProperties, s.MaxProperties))
	add("list", listType(s))
	mark(s.MapType != nil && *s.MapType == "atomic", "atomic")
	mark(s.EmbeddedResource, "embedded resource")
	mark(s.PreserveUnknownFields != nil && *s.PreserveUnknownFields, "unknown fields kept")
	for _, u := range syntax.WellFormedUnions(s) {
		var names []string
		for _, f := range u.Fields {
			names = append(names, f.Name)
		}
		if u.Discriminator == "" {
			code("at most one of", strings.Join(names, ", "))
		} else {
			code("one of, as "+u.Discriminator+" says", strings.Join(names, ", "))
		}
	}
	return append(list, logical(s)...)
}

// between says how many there may be.
func between(low, high *int64) string {
	text := func(n *int64) string { return strconv.FormatInt(*n, 10) }
	switch {
	case low != nil && *low > 0 && high != nil && *low == *high:
		return "exactly " + text(low)
	case low != nil && *low > 0 && high != nil:
		return text(low) + " to " + text(high)
	case low != nil && *low > 0:
		return "at least " + text(low)
	case high != nil:
		return "at most " + text(high)
	}
	return ""
}

func valueRange(s *syntax.Schema) string {
	if s.Minimum != nil && s.Maximum != nil && !s.ExclusiveMinimum && !s.ExclusiveMaximum {
		return number(*s.Minimum) + " to " + number(*s.Maximum)
	}
	var parts []string
	if s.Minimum != nil {
		word := "at least "
		if s.ExclusiveMinimum {
			word = "more than "
		}
		parts = append(parts, word+number(*s.Minimum))
	}
	if s.Maximum != nil {
		word := "at most "
		if s.ExclusiveMaximum {
			word = "less than "
		}
		parts = append(parts, word+number(*s.Maximum))
	}
	return strings.Join(parts, ", ")
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func listType(s *syntax.Schema) string {
	if s.ListType == nil {
		return ""
	}
	switch *s.ListType {
	case "set":
		return "set, no duplicates"
	case "map":
		return "one item per " + strings.Join(s.ListMapKeys, ", ")
	}
	return *s.ListType
}

// maxLogical bounds the text of an allOf, anyOf, oneOf or not that is shown as written.
const maxLogical = 240

// logical says what allOf, anyOf, oneOf and not demand: in words if they are
// about which fields there are, otherwise as written.
func logical(s *syntax.Schema) []limit {
	var list []limit
	add := func(words, keyword string, subs []*syntax.Schema) {
		if len(subs) == 0 || s.IntOrString && keyword == "anyOf" {
			return
		}
		if names := onlyRequired(subs); names != nil {
			list = append(list, limit{Name: words, Value: strings.Join(names, ", "), Code: true})
			return
		}
		var texts []string
		size := 0
		for _, sub := range subs {
			text := string(sub.AppendJSON(nil))
			if size += len(text); size > maxLogical {
				list = append(list, limit{Name: keyword, Value: strconv.Itoa(len(subs)) + " schemas"})
				return
			}
			texts = append(texts, text)
		}
		list = append(list, limit{Name: keyword, Value: strings.Join(texts, ", "), Code: true})
	}
	add("exactly one of", "oneOf", s.OneOf)
	add("at least one of", "anyOf", s.AnyOf)
	add("all of", "allOf", s.AllOf)
	if s.Not != nil {
		add("not all of", "not", []*syntax.Schema{s.Not})
	}
	return list
}

// onlyRequired returns the names of fields, if each of the schemas demands just
// that one or more are there.
func onlyRequired(subs []*syntax.Schema) []string {
	var names []string
	for _, sub := range subs {
		if len(sub.Required) == 0 || string(sub.AppendJSON(nil)) != requiredJSON(sub.Required) {
			return nil
		}
		names = append(names, strings.Join(sub.Required, " with "))
	}
	return names
}
