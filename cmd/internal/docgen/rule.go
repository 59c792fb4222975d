package docgen

import (
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// rule is a validation rule.
type rule struct {
	Text      string
	Message   string // what is said if the rule is broken, or empty
	Of        string // as of a limit
	Immutable bool   // the rule says that the value cannot be changed
}

func newRule(r syntax.Rule, of string) rule {
	text := strings.TrimSpace(r.Rule)
	out := rule{Text: text, Message: r.Message, Of: of}
	left, right, ok := equation(text)
	out.Immutable = ok && (left == "self" && right == "oldSelf" || left == "oldSelf" && right == "self")
	return out
}

// immutableFields returns the fields that rules about s say cannot be changed.
func immutableFields(s *syntax.Schema) map[string]bool {
	var names map[string]bool
	for _, r := range s.Validations {
		left, right, ok := equation(r.Rule)
		if !ok {
			continue
		}
		if strings.HasPrefix(left, "oldSelf.") {
			left, right = right, left
		}
		name, own := strings.CutPrefix(left, "self.")
		if own && right == "oldSelf."+name {
			if names == nil {
				names = map[string]bool{}
			}
			names[name] = true
		}
	}
	return names
}

// equation splits an expression that only compares two others.
func equation(text string) (left, right string, ok bool) {
	left, right, ok = strings.Cut(text, "==")
	return strings.TrimSpace(left), strings.TrimSpace(right), ok
}

// requiredJSON is a schema that demands the given fields and nothing else.
func requiredJSON(names []string) string {
	b := []byte(`{"required":[`)
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = jsondoc.AppendString(b, name)
	}
	return string(append(b, "]}"...))
}
