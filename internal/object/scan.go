package object

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unsafe"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

var (
	errNotObject    = errors.New("not a JSON object")
	errNotCanonical = errors.New("not canonical JSON: keys are not sorted, or something is between the tokens")
)

// stringEnd returns the offset after the string that begins at i, or -1. A
// string is read at most twice, however many escapes it has.
func stringEnd(b []byte, i int) int {
	i++
	quote := bytes.IndexByte(b[i:], '"')
	if quote < 0 {
		return -1
	}
	if end := i + quote; b[end-1] != '\\' {
		return end + 1
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// valueEnd returns the offset after the value that begins at i, or -1 if there
// is none or it does not end. It keeps count of brackets and does not recurse.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
	default:
		return scalarEnd(b, i)
	}
	for depth := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return -1
}

// scalarEnd returns the offset after a number or a literal.
func scalarEnd(b []byte, i int) int {
	for end := i; end < len(b); end++ {
		switch c := b[end]; {
		case c == '-' || c == '+' || c == '.' || c == 'E',
			'0' <= c && c <= '9', 'a' <= c && c <= 'z':
		case end == i:
			return -1
		default:
			return end
		}
	}
	return -1
}

// cursor goes from member to member of an object.
type cursor struct {
	b                        []byte
	key, keyEnd, value, next int // offsets of the current member
	begun                    bool
	end                      int // after the object, once all members have been seen
}

// within returns a cursor before the first member of the object at start.
func within(b []byte, start int) cursor { return cursor{b: b, next: start + 1} }

// advance goes to the next member. It reports false after the last one, and if
// the bytes are no object; then end stays zero.
func (c *cursor) advance() bool {
	p := c.next
	if p >= len(c.b) {
		return false
	}
	switch {
	case c.b[p] == '}':
		c.end = p + 1
		return false
	case c.begun && c.b[p] == ',':
		p++
	case c.begun:
		return false
	}
	if p >= len(c.b) || c.b[p] != '"' {
		return false
	}
	colon := stringEnd(c.b, p)
	if colon < 0 || colon >= len(c.b) || c.b[colon] != ':' {
		return false
	}
	end := valueEnd(c.b, colon+1)
	if end < 0 {
		return false
	}
	c.key, c.keyEnd, c.value, c.next, c.begun = p, colon, colon+1, end, true
	return true
}

// name returns the current member's key as written, without its quotes.
func (c *cursor) name() string {
	name := c.b[c.key+1 : c.keyEnd-1]
	return unsafe.String(unsafe.SliceData(name), len(name))
}

// raw returns the current member's value.
func (c *cursor) raw() []byte { return c.b[c.value:c.next:c.next] }

// compareKeys orders keys, given as they are written, by what they mean.
func compareKeys(a, b string) int {
	if strings.IndexByte(a, '\\') < 0 && strings.IndexByte(b, '\\') < 0 {
		return strings.Compare(a, b)
	}
	return strings.Compare(unescaped(a), unescaped(b))
}

// locate finds the members with the given names, which are sorted, in the
// object at start. A place is the offset of a member's value or, if there is no
// such member, the complement of the offset where it would be inserted.
func locate(b []byte, start int, names []string, places []int32) (end int, err error) {
	c := within(b, start)
	previous, first := "", true
	for c.advance() {
		key := c.name()
		if !first && compareKeys(previous, key) >= 0 {
			return 0, errNotCanonical
		}
		previous, first = key, false
		for len(names) > 0 {
			order := compareKeys(key, names[0])
			if order < 0 {
				break
			}
			places[0] = ^int32(c.key)
			if order == 0 {
				places[0] = int32(c.value)
			}
			names, places = names[1:], places[1:]
		}
	}
	if c.end == 0 {
		return 0, errNotCanonical
	}
	for i := range names {
		places[i] = ^int32(c.end - 1)
	}
	return c.end, nil
}

// find returns the value of the member that is written with the given key, or
// nil.
func find(c cursor, key string) []byte {
	for c.advance() {
		if c.name() == key {
			return c.raw()
		}
	}
	return nil
}

// textOf returns what a JSON string means, and "" for any other value. Where it
// can, the result is part of the bytes: those of an object never change.
func textOf(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	text := value[1 : len(value)-1]
	return unescaped(unsafe.String(unsafe.SliceData(text), len(text)))
}

// unescaped returns what the text between the quotes of a string means.
func unescaped(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var text string
	if json.Unmarshal([]byte(`"`+s+`"`), &text) != nil {
		return ""
	}
	return text
}

// plain reports whether a string is written as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return false
		}
	}
	return true
}

// escaped returns how a string is written, without the quotes.
func escaped(s string) string {
	if plain(s) {
		return s
	}
	quoted := jsondoc.AppendString(nil, s)
	return string(quoted[1 : len(quoted)-1])
}
