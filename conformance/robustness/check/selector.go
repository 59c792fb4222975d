package check

import (
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A selector selects items by labels and by metadata.name and metadata.namespace.
type selector struct {
	terms []term
	// labels: it needs labels of items.
	labels bool
	// unknown: it cannot be evaluated.
	unknown bool
}

type term struct {
	key    string
	values []string // nil: it is enough that the label is there
	not    bool
}

// parseSelector reads the forms of label selectors and field selectors that Kubernetes
// has: k=v, k==v, k!=v, k in (a,b), k notin (a,b), k, !k.
func parseSelector(text string) selector {
	var s selector
	for text = strings.TrimSpace(text); text != ""; {
		end, depth := len(text), 0
		for i, c := range text {
			if c == '(' {
				depth++
			} else if c == ')' {
				depth--
			} else if c == ',' && depth == 0 {
				end = i
				break
			}
		}
		part := strings.TrimSpace(text[:end])
		text = strings.TrimSpace(strings.TrimPrefix(text[end:], ","))
		t, known := parseTerm(part)
		s.unknown = s.unknown || !known
		s.labels = s.labels || !field(t.key)
		s.terms = append(s.terms, t)
	}
	return s
}

func field(key string) bool { return key == "metadata.name" || key == "metadata.namespace" }

func parseTerm(part string) (term, bool) {
	if name, rest, found := strings.Cut(part, "("); found {
		words := strings.Fields(name)
		if len(words) != 2 || words[1] != "in" && words[1] != "notin" || !strings.HasSuffix(rest, ")") {
			return term{}, false
		}
		t := term{key: words[0], not: words[1] == "notin", values: []string{}}
		for value := range strings.SplitSeq(strings.TrimSuffix(rest, ")"), ",") {
			t.values = append(t.values, strings.TrimSpace(value))
		}
		return t, true
	}
	for _, operator := range []string{"!=", "==", "="} {
		if key, value, found := strings.Cut(part, operator); found {
			return term{key: strings.TrimSpace(key), values: []string{strings.TrimSpace(value)}, not: operator == "!="}, true
		}
	}
	key, not := strings.CutPrefix(part, "!")
	return term{key: strings.TrimSpace(key), not: not}, key != "" && !strings.ContainsAny(key, " ")
}

// selects reports whether an item is selected; nil never is.
func (s *selector) selects(item *history.Item) bool {
	if item == nil {
		return false
	}
	for _, t := range s.terms {
		value, there := item.Labels[t.key], false
		switch t.key {
		case "metadata.name":
			value, there = item.Name[strings.LastIndex(item.Name, "/")+1:], true
		case "metadata.namespace":
			value, there = namespaceOf(item.Name), true
		default:
			_, there = item.Labels[t.key]
		}
		holds := there && (t.values == nil || slices.Contains(t.values, value))
		if holds == t.not {
			return false
		}
	}
	return true
}
