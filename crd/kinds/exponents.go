package kinds

import (
	"bytes"
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/quantities"
)

// protobufPrefix is what objects in protobuf begin with.
var protobufPrefix = []byte{'k', '8', 's', 0}

// withoutBinary returns a copy of protobuf in which texts with large exponents have none, nil
// if there are none. Only whole texts count, with their length before them: what looks like
// a part of one can be the length of a text, the number of a field or an integer.
func withoutBinary(data []byte) []byte {
	var changed []byte
	for at := nextExponent(data, 0); at >= 0; at = nextExponent(data, at+1) {
		if !inNumber(data, at) {
			continue
		}
		if changed == nil {
			changed = bytes.Clone(data)
		}
		changed[at+quantities.ExponentEnd(data[at:])-1] = 'x'
	}
	return changed
}

// inNumber reports whether an exponent is part of a text of protobuf that is a number. The
// length of the text can look like one of its digits, so that there are several places
// where the text may begin.
func inNumber(data []byte, exponent int) bool {
	for start := exponent; start > 0 && exponent-start <= quantities.MaxLength+1; start-- {
		end := start + lengthBefore(data, start)
		if end > exponent && end <= len(data) && quantities.Costly(string(data[start:end])) {
			return true
		}
		if bytes.IndexByte([]byte("+-.0123456789"), data[start-1]) < 0 {
			return false
		}
	}
	return false
}

// lengthBefore is the number that ends before an index, as protobuf writes it. What is
// before a length is another number, whose last byte has no high bit.
func lengthBefore(data []byte, at int) int {
	length := int(data[at-1])
	for i := at - 2; i >= max(0, at-10) && data[i] >= 0x80; i-- {
		length = length<<7 | int(data[i]&0x7f)
	}
	return length
}

// withoutTokens returns JSON whose values with large exponents, or of many digits, are texts
// that are no numbers, nil if there are none. It has the length of data, unless that is
// YAML.
func withoutTokens(data []byte) []byte {
	text := bytes.TrimSpace(data)
	flow := len(text) > 0 && (text[0] == '{' || text[0] == '[')
	// A tag of YAML can make base64 a text, and a backslash can join lines.
	if flow && len(data) <= quantities.MaxLength && !bytes.ContainsAny(data, `\!`) && nextExponent(data, 0) < 0 {
		return nil
	}
	if flow {
		if changed, ok := maskTokens(data); ok {
			return changed
		}
	}
	converted, err := yaml.YAMLToJSON(data)
	if err != nil {
		return nil // decoding the data itself tells
	}
	changed, _ := maskTokens(converted)
	return changed
}

// maskTokens is [withoutTokens] for JSON. It reports whether data has only tokens of JSON:
// YAML has other quotes, in which these tokens are something else.
func maskTokens(data []byte) (changed []byte, ok bool) {
	for at := 0; at < len(data); {
		start := at
		switch c := data[at]; c {
		case '"':
			if at = endOfText(data, at); at < 0 {
				return nil, false
			}
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			for at < len(data) && bytes.IndexByte([]byte("+-.0123456789eE"), data[at]) >= 0 {
				at++
			}
		case ' ', '\t', '\r', '\n', '{', '}', '[', ']', ':', ',':
			at++
			continue
		default:
			n := literal(data[at:])
			if n == 0 {
				return nil, false
			}
			at += n
			continue
		}
		length := costlyLength(data[start:at])
		if length == 0 || isKey(data[at:]) {
			continue
		}
		if changed == nil {
			changed = bytes.Clone(data)
		}
		spoil(changed[start:at], length)
	}
	return changed, true
}

// spoil replaces a token by a text of a length. A text that is as long can still be base64.
func spoil(token []byte, length int) {
	for i := range token {
		token[i] = ' '
		if i <= length {
			token[i] = 'x'
		}
	}
	token[0], token[min(length+1, len(token)-1)] = '"', '"'
}

// literal is the length of the literal that data begins with.
func literal(data []byte) int {
	for _, name := range []string{"true", "false", "null"} {
		if len(data) >= len(name) && string(data[:len(name)]) == name {
			return len(name)
		}
	}
	return 0
}

// costlyLength is the length of what a token says, zero if that is not costly as a quantity.
func costlyLength(token []byte) int {
	if len(token) <= quantities.MaxLength && bytes.IndexByte(token, '\\') < 0 && nextExponent(token, 0) < 0 {
		return 0
	}
	text := strings.TrimSpace(string(unquoted(token)))
	if !quantities.Costly(text) {
		return 0
	}
	return len(text)
}

// endOfText is where the text ends that begins at a quote, -1 if JSON has no such text.
func endOfText(data []byte, at int) int {
	for at++; at < len(data) && data[at] != '"'; at++ {
		switch c := data[at]; {
		case c < ' ':
			return -1
		case c == '\\':
			if at++; at == len(data) || bytes.IndexByte([]byte(`"\/bfnrtu`), data[at]) < 0 {
				return -1
			}
		}
	}
	if at >= len(data) {
		return -1
	}
	return at + 1
}

// isKey reports whether what comes after a text makes it a key.
func isKey(rest []byte) bool {
	rest = bytes.TrimLeft(rest, " \t\r\n")
	return len(rest) > 0 && rest[0] == ':'
}

// unquoted is what a token of JSON says.
func unquoted(token []byte) []byte {
	if len(token) < 2 || token[0] != '"' {
		return token
	}
	if bytes.IndexByte(token, '\\') < 0 {
		return token[1 : len(token)-1]
	}
	var text string
	if json.Unmarshal(token, &text) != nil {
		return nil
	}
	return []byte(text)
}

// nextExponent is where the next large exponent begins, -1 if there is none.
func nextExponent(data []byte, at int) int {
	for ; at < len(data)-quantities.MaxExponent-1; at++ {
		if c := data[at]; (c == 'e' || c == 'E') && quantities.ExponentEnd(data[at:]) > 0 {
			return at
		}
	}
	return -1
}
