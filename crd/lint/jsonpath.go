package lint

import (
	"fmt"
	"strings"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// follow returns the schema that a JSONPath leads to, or nil if it is unknown. If
// the path certainly leads to nothing, lost says why.
func follow(s *syntax.Schema, path string) (f *syntax.Schema, lost string) {
	steps, ok := steps(path)
	if !ok {
		return nil, ""
	}
	for i, st := range steps {
		if i == 0 && typeMeta(st.name) {
			return nil, "" // every object has them
		}
		switch {
		case s == nil || s.PreserveUnknownFields != nil || s.Type == "" || s.EmbeddedResource:
			return nil, ""
		case st.item:
			if s.Type != "array" {
				if st.name == "*" {
					return nil, ""
				}
				return nil, fmt.Sprintf("the value before %s has type %s and no items", st.text, s.Type)
			}
			s = s.ItemSchema()
		case s.Type != "object":
			return nil, fmt.Sprintf("a value of type %[2]s has no field %[1]s", st.name, s.Type)
		case s.Property(st.name) != nil:
			s = s.Property(st.name)
		case s.AdditionalProperties != nil:
			s = s.AdditionalProperties.Schema
		default:
			return nil, fmt.Sprintf("the schema has no field %s", written(steps[:i+1]))
		}
	}
	return s, ""
}

// step is a part of a JSONPath: a field, or items of a list.
type step struct {
	name string
	item bool
	text string
}

func written(list []step) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(s.text)
	}
	return b.String()
}

// steps cuts a JSONPath. It reports false for what is not a plain path.
func steps(path string) ([]step, bool) {
	path = strings.TrimPrefix(path, "$")
	var list []step
	for path != "" {
		switch path[0] {
		case '.':
			name, rest := fieldName(path[1:])
			if name == "" || name == "*" {
				return nil, false
			}
			list = append(list, step{name: name, text: "." + name})
			path = rest
		case '[':
			end := bracket(path)
			if end < 0 {
				return nil, false
			}
			inside := path[1:end]
			st := step{text: path[:end+1]}
			if n := len(inside); n >= 2 && (inside[0] == '\'' || inside[0] == '"') && inside[n-1] == inside[0] {
				st.name = inside[1 : n-1]
				if strings.ContainsAny(st.name, `'",\`) {
					return nil, false
				}
			} else if st.item, st.name = true, inside; strings.Contains(inside, ",") && !strings.HasPrefix(inside, "?") {
				return nil, false
			}
			list = append(list, st)
			path = path[end+1:]
		default:
			return nil, false
		}
	}
	return list, len(list) > 0
}

// fieldName reads up to the next dot or bracket; a backslash takes its meaning.
func fieldName(s string) (name, rest string) {
	var b []byte
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '.' || s[i] == '[':
			return string(b), s[i:]
		case s[i] == '\\' && i+1 < len(s):
			i++
		}
		b = append(b, s[i])
	}
	return string(b), ""
}

// bracket returns the index of the bracket that closes the first one.
func bracket(s string) int {
	depth := 0
	var quoted byte
	for i := range len(s) {
		switch ch := s[i]; {
		case quoted != 0:
			if ch == quoted {
				quoted = 0
			}
		case ch == '\'' || ch == '"':
			quoted = ch
		case ch == '[':
			depth++
		case ch == ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}
