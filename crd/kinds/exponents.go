package kinds

import (
	"bytes"
	"encoding/json"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/quantities"
)

// protobufPrefix is what objects in protobuf begin with.
var protobufPrefix = []byte{'k', '8', 's', 0}

// withoutExponents returns a copy of data in which texts and numbers with large exponents
// are none, nil if there are none. As quantities, they are errors. The copy is as long as
// data, unless that is YAML.
func withoutExponents(data []byte) []byte {
	escaped := bytes.Contains(data, []byte(`\u`)) || bytes.Contains(data, []byte(`\x`)) || bytes.Contains(data, []byte(`\U`))
	if !escaped && nextExponent(data, 0) < 0 {
		return nil
	}
	if bytes.HasPrefix(data, protobufPrefix) {
		return withoutBinary(data)
	}
	if text := bytes.TrimSpace(data); len(text) > 0 && text[0] != '{' {
		converted, err := yaml.YAMLToJSON(data)
		if err != nil {
			return nil // decoding the data itself tells
		}
		data = converted
	}
	return withoutTokens(data)
}

// withoutBinary spoils everything that looks like a large exponent in protobuf. It changes
// the last digit that makes an exponent large, which is part of a text: of the bytes before
// it, each can also be the length of a text, the number of a field or an integer.
func withoutBinary(data []byte) []byte {
	changed := bytes.Clone(data)
	for at := nextExponent(data, 0); at >= 0; at = nextExponent(data, at+1) {
		changed[at+quantities.ExponentEnd(data[at:])-1] = 'x'
	}
	return changed
}

// withoutTokens replaces the values of JSON that have large exponents by texts.
func withoutTokens(data []byte) []byte {
	var changed []byte
	for at := 0; at < len(data); {
		start := at
		switch c := data[at]; {
		case c == '"':
			at = endOfText(data, at)
		case c == '-' || c >= '0' && c <= '9':
			for at < len(data) && bytes.IndexByte([]byte("+-.0123456789eE"), data[at]) >= 0 {
				at++
			}
		default:
			at++
			continue
		}
		if !quantities.Costly(string(unquoted(data[start:at]))) || isKey(data[at:]) {
			continue
		}
		if changed == nil {
			changed = bytes.Clone(data)
		}
		for i := start; i < at; i++ {
			changed[i] = 'x'
		}
		changed[start], changed[at-1] = '"', '"'
	}
	return changed
}

// endOfText is where the text ends that begins at a quote.
func endOfText(data []byte, at int) int {
	for at++; at < len(data) && data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return min(at+1, len(data))
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
		if quantities.ExponentEnd(data[at:]) > 0 {
			return at
		}
	}
	return -1
}
