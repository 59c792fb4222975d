package compile

import (
	"strings"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// validations checks what can be said about the rules of s without compiling
// their expressions.
func (c *checker) validations(s *syntax.Schema) {
	for i := range s.Validations {
		r := &s.Validations[i]
		c.enterIndex("x-kubernetes-validations", i)
		c.ruleText(r)
		if r.Reason != nil && !knownReason(*r.Reason) {
			c.notSupported(ruleReasonUnknown, r, "reason", word(*r.Reason),
				"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
		}
		if p := r.FieldPath; p != "" {
			if strings.TrimSpace(p) == "" {
				c.invalid(ruleFieldPathEmpty, r, "fieldPath", p, "must be non-empty if specified")
			}
			if hasLines(p) {
				c.invalid(ruleFieldPathLines, r, "fieldPath", p, "must not contain line breaks")
			}
			// Of a schema that cannot be converted upstream does not know the
			// fields, and believes the path.
			if _, unsupported := c.unsupported[s]; !unsupported && !leadsToField(s, p) {
				c.invalid(ruleFieldPathInvalid, r, "fieldPath", p, "must be a valid path")
			}
		}
		c.leave()
	}
}

func (c *checker) ruleText(r *syntax.Rule) {
	rule, message := strings.TrimSpace(r.Rule), strings.TrimSpace(r.Message)
	switch {
	case rule == "":
		c.required(ruleEmpty, r, "rule", "rule is not specified")
	case r.Message != "" && message == "":
		c.invalid(ruleMessageEmpty, r, "message", r.Message, "must be non-empty if specified")
	case hasLines(message):
		c.invalid(ruleMessageLines, r, "message", r.Message, "must not contain line breaks")
	case hasLines(rule) && message == "":
		c.required(ruleMessageRequired, r, "message", "message must be specified if rule contains line breaks")
	}
	if r.MessageExpression != "" && strings.TrimSpace(r.MessageExpression) == "" {
		c.required(ruleMessageExpressionEmpty, r, "messageExpression", "messageExpression must be non-empty if specified")
	}
}

func hasLines(s string) bool { return strings.ContainsAny(s, "\n\r") }

func knownReason(s string) bool {
	switch s {
	case "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired":
		return true
	}
	return false
}

// leadsToField reports whether a rule's fieldPath, made of .name and ['name'],
// leads to a part of s. Where upstream follows a path into a map of anything
// it crashes; here such a path does not lead anywhere.
func leadsToField(s *syntax.Schema, fieldPath string) bool {
	t := fieldPathTokens{rest: fieldPath}
	for {
		token, ok := t.next()
		if !ok {
			return true
		}
		var name string
		switch token {
		case ".":
			if name, ok = t.next(); !ok {
				return false
			}
		case "[":
			if name, ok = t.next(); !ok || len(name) < 2 || name[0] != '\'' || name[len(name)-1] != '\'' {
				return false
			}
			if name, ok = unescape(name[1 : len(name)-1]); !ok {
				return false
			}
		default:
			return false
		}
		if s, ok = fieldOf(s, name); !ok {
			return false
		}
		if token == "[" {
			if end, ok := t.next(); !ok || end != "]" {
				return false
			}
		}
	}
}

// fieldOf returns the schema of a field of s: a property, or a value of the map
// that s is. It is nil for a map of anything.
func fieldOf(s *syntax.Schema, name string) (*syntax.Schema, bool) {
	switch {
	case s == nil:
		return nil, false
	case len(s.Properties) > 0:
		p := s.Property(name)
		return p, p != nil
	case s.AdditionalProperties != nil:
		return s.AdditionalProperties.Schema, true
	}
	return nil, false
}

// fieldPathTokens cuts a path into its tokens: the three delimiters, quoted
// names, and what is between them.
type fieldPathTokens struct{ rest string }

// maxToken is the length of the longest token upstream's scanner can hold; a
// longer one ends the path without an error.
const maxToken = 1<<16 - 1

func (t *fieldPathTokens) next() (string, bool) {
	n := t.width()
	if n == 0 {
		t.rest = ""
		return "", false
	}
	token := t.rest[:n]
	t.rest = t.rest[n:]
	return token, true
}

// width is the length of the next token, or 0 at the end.
func (t *fieldPathTokens) width() int {
	s := t.rest
	if s == "" {
		return 0
	}
	if s[0] == '\'' {
		for i := 1; i < len(s); i++ {
			if s[i] == '\'' && s[i-1] != '\\' {
				return atMost(i+1, maxToken+1)
			}
		}
		return atMost(len(s), maxToken)
	}
	switch i := strings.IndexAny(s, ".[]"); i {
	case -1:
		return atMost(len(s), maxToken)
	case 0:
		return 1
	default:
		return atMost(i, maxToken)
	}
}

func atMost(n, most int) int {
	if n > most {
		return 0
	}
	return n
}

var escapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v', '\'': '\'', '\\': '\\',
}

// unescape resolves the escape sequences of a quoted name. A backslash before
// a line break or at the end is no escape.
func unescape(s string) (string, bool) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, true
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) || s[i+1] == '\n' {
			b = append(b, s[i])
			continue
		}
		i++
		e, known := escapes[s[i]]
		if !known {
			return "", false
		}
		b = append(b, e)
	}
	return string(b), true
}
