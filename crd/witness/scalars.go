package witness

import (
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Scalars returns strings, numbers or booleans that a schema admits, apart from what its CEL rules say: those of its enum,
// or some of different lengths and sizes within its bounds. There are none for objects and lists, and if none is found.
func Scalars(s *syntax.Schema) []any {
	p := parts(nil).with(s, false)
	if slices.ContainsFunc(p, func(q *schema) bool { return len(q.Enum) > 0 }) {
		var list []any
		for n := range maxValues {
			v, ok := listed(p, n)
			if !ok {
				return nil
			}
			raw, isLiteral := v.(literal)
			if !isLiteral {
				continue
			}
			if value := plainValue(string(raw)); !slices.Contains(list, value) {
				list = append(list, value)
			}
		}
		return list
	}
	var list []any
	kind := p.kind()
	if kind == "string" || kind == "int-or-string" {
		x := &search{Pair: &Pair{work: maxWork, matches: map[string][]string{}}}
		for _, text := range x.candidates(p, nil) {
			if len(text) <= maxScalar && admits(p, text) {
				list = append(list, text)
			}
		}
	}
	if kind == "integer" || kind == "number" || kind == "int-or-string" {
		good, _ := numbers(p, nil)
		for _, text := range good {
			v := plainValue(text)
			if _, whole := v.(int64); whole || kind == "number" {
				list = append(list, v)
			}
		}
	}
	if kind == "boolean" {
		list = append(list, true, false)
	}
	return list
}

// maxScalar is the length of the longest string that Scalars returns.
const maxScalar = 1024

// plainValue returns the value of a scalar in JSON.
func plainValue(raw string) any {
	doc, err := jsondoc.Parse([]byte(raw), jsondoc.Limits{MaxDepth: 1})
	if err != nil {
		return nil
	}
	defer doc.Release()
	return doc.Any(jsondoc.Root)
}
