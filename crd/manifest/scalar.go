package manifest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubectl "sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// scalars turns scalars into JSON the way kubectl does. Most are recognised at
// a glance; the others are given to kubectl's library, and remembered.
type scalars struct {
	known map[string][]byte
}

// maxKnown bounds what is remembered.
const maxKnown = 4096

// append writes a value.
func (s *scalars) append(dst []byte, n *yaml.Node) []byte {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style&quoted != 0 || onlyText(n.Value) {
			return jsondoc.AppendString(dst, n.Value)
		}
		if plainJSON(n.Value) {
			return append(dst, n.Value...)
		}
	}
	return append(dst, s.ask(source(n), func(text string) []byte { return resolve(text, n.Value) })...)
}

// appendKey writes a key, which is a string whatever it looks like, unless it
// is null.
func (s *scalars) appendKey(dst []byte, n *yaml.Node) ([]byte, bool) {
	if n.Style&yaml.TaggedStyle == 0 && (n.Style&quoted != 0 || onlyText(n.Value)) {
		return jsondoc.AppendString(dst, n.Value), true
	}
	key := s.ask("? "+source(n), func(text string) []byte { return resolveKey(text, n.Value) })
	return append(dst, key...), len(key) > 0
}

const quoted = yaml.SingleQuotedStyle | yaml.DoubleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// source returns YAML that means what the scalar means.
func source(n *yaml.Node) string {
	if n.Style&(quoted|yaml.TaggedStyle) == 0 {
		return n.Value
	}
	return n.Tag + " " + string(jsondoc.AppendString(nil, n.Value))
}

// ask answers from memory where it can.
func (s *scalars) ask(text string, resolve func(string) []byte) []byte {
	known, ok := s.known[text]
	if !ok {
		known = resolve(text)
		if s.known == nil || len(s.known) >= maxKnown {
			s.known = make(map[string][]byte)
		}
		s.known[text] = known
	}
	return known
}

// resolveKey asks kubectl's library for the only key of a mapping.
func resolveKey(text, value string) []byte {
	var keys map[string]json.RawMessage
	out, err := kubectl.YAMLToJSON([]byte(text))
	if err != nil {
		return nil
	}
	if json.Unmarshal(out, &keys) == nil && len(keys) == 1 {
		for k := range keys {
			return jsondoc.AppendString(nil, k)
		}
	}
	return jsondoc.AppendString(nil, value)
}

// resolve asks kubectl's library. What it cannot read, or takes for something
// other than a scalar, is a string.
func resolve(text, value string) []byte {
	if out, err := kubectl.YAMLToJSON([]byte(text)); err == nil {
		out = bytes.TrimSpace(out)
		if len(out) > 0 && out[0] != '{' && out[0] != '[' {
			return out
		}
	}
	return jsondoc.AppendString(nil, value)
}

// onlyText reports whether a plain scalar can be nothing but a string, by its
// first character and by white space in it: numbers, booleans and null begin
// with others and have none.
func onlyText(s string) bool {
	if s == "" {
		return false
	}
	switch s[0] {
	case '+', '-', '.', '~', '<', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return strings.ContainsAny(s, " \n\t")
	case 'y', 'Y', 'n', 'N', 't', 'T', 'f', 'F', 'o', 'O':
		return len(s) > len("false") || !slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, s) })
	}
	return true
}

// words are what YAML 1.1 takes for something else than strings.
var words = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// plainJSON reports whether a plain scalar is the same in JSON: the booleans
// and short decimal integers.
func plainJSON(s string) bool {
	switch s {
	case "true", "false", "null", "0":
		return true
	}
	if len(s) == 0 || len(s) > 18 || s[0] < '1' || s[0] > '9' {
		return false
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
