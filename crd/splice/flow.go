package splice

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// flowText renders a value inside a flow collection.
func (d *document) flowText(v value, in *spot) ([]byte, error) {
	if d.style.json {
		return appendJSON(nil, v, d.style, d.pretty(in)), nil
	}
	return d.appendFlow(nil, v)
}

func (d *document) appendFlow(dst []byte, v value) ([]byte, error) {
	if v.kind == '"' && strings.ContainsAny(v.text, ",[]{}") {
		return append(dst, quote(v.text)...), nil // plain in a block, not in here
	}
	if len(v.inside) == 0 {
		text, err := d.scalar(v)
		return append(dst, text...), err
	}
	dst = append(dst, v.kind)
	for i, child := range v.inside {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		var err error
		if v.kind == '{' {
			if dst, err = d.appendFlow(dst, value{kind: '"', text: v.names[i]}); err != nil {
				return nil, err
			}
			dst = append(dst, ": "...)
		}
		if dst, err = d.appendFlow(dst, child); err != nil {
			return nil, err
		}
	}
	return append(dst, v.kind+2), nil // the brackets are two apart
}

// flowChild renders a new child of a flow collection.
func (d *document) flowChild(s *spot, a addition) ([]byte, error) {
	text, err := d.flowText(a.value, s)
	if err != nil || s.node.Kind == yaml.SequenceNode {
		return text, err
	}
	key := quote(a.name)
	colon := []byte(": ")
	if d.style.compact {
		colon = colon[:1]
	}
	if !d.style.json {
		if key, err = d.flowText(value{kind: '"', text: a.name}, s); err != nil {
			return nil, err
		}
	}
	return slices.Concat(key, colon, text), nil
}

// flowChildren renders all children of a flow collection that had none, or
// loses those that it had.
func (d *document) flowChildren(s *spot, added []addition) ([]byte, error) {
	var out []byte
	pad := d.pretty(s)
	for i, a := range added {
		text, err := d.flowChild(s, a)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
			if pad == nil && !d.style.compact {
				out = append(out, ' ')
			}
		}
		out = append(append(out, pad...), text...)
	}
	if len(pad) > 0 && len(out) > 0 {
		out = append(out, pad[:len(pad)-d.style.step]...)
	}
	return out, nil
}

// pretty returns the line break and indentation of the children of a collection
// in JSON that is written on many lines, or nil.
func (d *document) pretty(s *spot) []byte {
	if !d.style.json || !d.several {
		return nil
	}
	if len(s.kids) > 0 {
		begin, err := d.begin(s.kids[0])
		if err != nil || !d.atLineStart(begin) {
			return nil
		}
		return slices.Concat(d.style.newline, d.text[d.lineStart(begin):begin])
	}
	return slices.Concat(d.style.newline, d.indentation(s.start), bytes.Repeat([]byte(" "), d.style.step))
}

func quote(s string) []byte {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil { // strings always encode
		return nil
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// appendJSON renders a value as JSON. pad is the line break and indentation
// around it, nil to have it on one line.
func appendJSON(dst []byte, v value, s style, pad []byte) []byte {
	switch v.kind {
	case '"':
		return append(dst, quote(v.text)...)
	case '0':
		return append(dst, v.text...)
	case 't':
		return append(dst, "true"...)
	case 'f':
		return append(dst, "false"...)
	case 'n':
		return append(dst, "null"...)
	}
	var inner []byte
	if pad != nil {
		inner = slices.Clone(pad)
		if len(pad) < maxColumn {
			inner = append(inner, bytes.Repeat([]byte(" "), s.step)...)
		}
	}
	dst = append(dst, v.kind)
	for i, child := range v.inside {
		if i > 0 {
			dst = append(dst, ',')
			if pad == nil && !s.compact {
				dst = append(dst, ' ')
			}
		}
		dst = append(dst, inner...)
		if v.kind == '{' {
			dst = append(append(dst, quote(v.names[i])...), ':')
			if !s.compact {
				dst = append(dst, ' ')
			}
		}
		dst = appendJSON(dst, child, s, inner)
	}
	if len(v.inside) > 0 {
		dst = append(dst, pad...)
	}
	if v.kind == '{' {
		return append(dst, '}')
	}
	return append(dst, ']')
}
