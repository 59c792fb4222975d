package compile

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/internal/syntax"
)

// validations checks what can be said about the rules of s without compiling
// their expressions.
func (c *checker) validations(s *syntax.Schema) {
	for i := range s.Validations {
		r := &s.Validations[i]
		c.enterIndex("x-kubernetes-validations", i)
		c.ruleText(r)
		if r.Reason != nil && !slices.Contains(knownReasons, *r.Reason) {
			c.notSupported(ruleReasonUnknown, r, "reason", word(*r.Reason), knownReasons...)
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
			if _, unsupported := c.unsupported[s]; !unsupported {
				if _, _, err := FollowPath(s, p, true); err != nil {
					c.invalid(ruleFieldPathInvalid, r, "fieldPath", p, "must be a valid path")
				}
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

var knownReasons = []string{"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"}

var (
	errNoField = errors.New("does not refer to a valid field")
	errPathEnd = errors.New("unexpected end of JSON path")
)

// FollowPath follows a path as [EachName] does and returns the field path and the
// schema that it leads to, nil for a value in a map of anything. Where upstream
// follows a path into a map of anything it crashes; here such a path does not lead
// anywhere.
func FollowPath(s *syntax.Schema, path string, brackets bool) (at *field.Path, found *syntax.Schema, err error) {
	err = EachName(path, brackets, func(name string) bool {
		switch {
		case s != nil && len(s.Properties) > 0:
			at, s = at.Child(name), s.Property(name)
			return s != nil
		case s != nil && s.AdditionalProperties != nil:
			at, s = at.Key(name), s.AdditionalProperties.Schema
			return true
		}
		return false
	})
	if err != nil {
		return nil, nil, err
	}
	return at, s, nil
}

// EachName calls enter for the names in a path made of .name and, if brackets are
// allowed, ['name']. It fails if enter reports that there is no field of the name.
func EachName(path string, brackets bool, enter func(name string) bool) error {
	t := fieldPathTokens{rest: path}
	for {
		token, ok := t.next()
		if !ok {
			return nil
		}
		name, err := t.name(token, brackets)
		if err != nil {
			return err
		}
		if !enter(name) {
			return errNoField
		}
		if token == "[" {
			if end, ok := t.next(); !ok {
				return errPathEnd
			} else if end != "]" {
				return fmt.Errorf("expected ] but got %s", end)
			}
		}
	}
}

// name returns the name after a delimiter.
func (t *fieldPathTokens) name(delimiter string, brackets bool) (string, error) {
	switch {
	case delimiter != "." && delimiter != "[":
		return "", fmt.Errorf("expected [ or . but got: %s", delimiter)
	case delimiter == "[" && !brackets:
		return "", errors.New("array notation is not allowed")
	}
	name, ok := t.next()
	if !ok {
		return "", errPathEnd
	}
	if delimiter == "." {
		return name, nil
	}
	if len(name) < 2 || name[0] != '\'' || name[len(name)-1] != '\'' {
		return "", fmt.Errorf("expected single quoted string but got %s", name)
	}
	if name, ok = unescape(name[1 : len(name)-1]); !ok {
		return "", errors.New("invalid string literal")
	}
	return name, nil
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
