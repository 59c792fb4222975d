package splice

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// style is how a document is written.
type style struct {
	newline []byte
	step    int  // by which mappings are indented
	hanging bool // sequences in mappings are indented, too
	json    bool // the document is JSON
	compact bool // and has no blanks
}

// detect finds the style that most of the document is written in.
func (d *document) detect() style {
	s := style{newline: d.newline, step: 2}
	var steps [9]int
	hanging := 0
	var walk func(*spot)
	walk = func(x *spot) {
		for _, k := range x.kids {
			if k.key != nil && k.start > d.lineEnd(k.key.start) {
				by := k.column - k.key.column
				switch {
				case k.node.Kind == yaml.MappingNode && !k.flow && by > 0 && by < len(steps), x.flow && by > 0 && by < len(steps):
					steps[by]++
				case k.node.Kind == yaml.SequenceNode && !k.flow && by > 0:
					hanging++
				case k.node.Kind == yaml.SequenceNode && !k.flow:
					hanging--
				}
			}
			if x.flow {
				// In JSON children are on their own lines, brackets are not.
				if begin, err := d.begin(k); err == nil && d.atLineStart(begin) {
					if by := begin - d.lineStart(begin) - len(d.indentation(x.start)); by > 0 && by < len(steps) {
						steps[by]++
					}
				}
			}
			walk(k)
		}
	}
	walk(d.root)
	for by, n := range steps {
		if n > steps[s.step] {
			s.step = by
		}
	}
	s.hanging = hanging > 0
	s.json = d.root.node.Style&yaml.FlowStyle != 0 && d.source.json()
	s.compact = s.json && !d.several && !bytes.Contains(d.text, []byte(`": `))
	return s
}

// value is JSON whose members keep their order, or a piece of the document's
// own text.
type value struct {
	kind   byte   // the first byte of the JSON; '0' stands for all numbers
	text   string // of a string or number
	names  []string
	inside []value

	lines []byte // a block collection as it is written, without the first indentation
	shift int    // its column there
}

// parseValue reads JSON.
func parseValue(text []byte) (value, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	v, err := readValue(decoder)
	if err != nil {
		return v, fmt.Errorf("the new value is not JSON: %w", err)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return v, fmt.Errorf("the new value is not JSON: there is more than one value")
	}
	return v, nil
}

func readValue(decoder *json.Decoder) (value, error) {
	token, err := decoder.Token()
	if err != nil {
		return value{}, err
	}
	switch x := token.(type) {
	case json.Delim:
		v := value{kind: byte(x)}
		for decoder.More() {
			if x == '{' {
				name, err := decoder.Token()
				if err != nil {
					return v, err
				}
				v.names = append(v.names, name.(string))
			}
			child, err := readValue(decoder)
			if err != nil {
				return v, err
			}
			v.inside = append(v.inside, child)
		}
		_, err := decoder.Token()
		return v, err
	case string:
		return value{kind: '"', text: x}, nil
	case json.Number:
		return value{kind: '0', text: string(x)}, nil
	case bool:
		if x {
			return value{kind: 't'}, nil
		}
		return value{kind: 'f'}, nil
	}
	return value{kind: 'n'}, nil
}

// node makes the YAML node of a scalar or an empty collection.
func (v value) node() *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode}
	switch v.kind {
	case '{':
		n.Kind, n.Tag, n.Style = yaml.MappingNode, "!!map", yaml.FlowStyle
	case '[':
		n.Kind, n.Tag, n.Style = yaml.SequenceNode, "!!seq", yaml.FlowStyle
	case '"':
		n.SetString(v.text)
		switch {
		case strings.ContainsAny(v.text, "\r\u0085\u2028\u2029\t"):
			n.Style = yaml.DoubleQuotedStyle
		case n.Style == 0 && n.Encode(v.text) != nil: // it knows the booleans of YAML 1.1
			n.Style = yaml.DoubleQuotedStyle
		}
	case '0':
		n.Tag, n.Value = "!!float", v.text
		if !strings.ContainsAny(v.text, ".eE") {
			n.Tag = "!!int"
		}
	case 't':
		n.Tag, n.Value = "!!bool", "true"
	case 'f':
		n.Tag, n.Value = "!!bool", "false"
	default:
		n.Tag, n.Value = "!!null", "null"
	}
	return n
}

// collection reports whether a value takes lines of its own.
func (v value) collection() bool { return v.lines != nil || len(v.inside) > 0 }

// encode renders a node, its lines indented by column but for the first.
func (d *document) encode(n *yaml.Node, column int) ([]byte, error) {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(d.style.step)
	if err := encoder.Encode(n); err != nil {
		return nil, err
	}
	if err := encoder.Close(); err != nil {
		return nil, err
	}
	return d.indent(bytes.TrimSuffix(out.Bytes(), []byte("\n")), column), nil
}

// indent moves all lines but the first to the right, or, if by is negative, to
// the left as far as they go, and gives them the document's line breaks.
func (d *document) indent(text []byte, by int) []byte {
	var out []byte
	for i, line := range bytes.Split(text, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		if i > 0 {
			out = append(out, d.style.newline...)
			switch {
			case len(line) == 0:
			case by > 0:
				out = append(out, bytes.Repeat([]byte(" "), by)...)
			default:
				blanks := len(line) - len(bytes.TrimLeft(line, " "))
				line = line[min(-by, blanks):]
			}
		}
		out = append(out, line...)
	}
	return out
}

// scalar renders a key, or a scalar on one line.
func (d *document) scalar(v value) ([]byte, error) {
	if d.style.json {
		return appendJSON(nil, v, d.style, nil), nil
	}
	n := v.node()
	if strings.Contains(n.Value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return d.encode(n, 0)
}

// maxColumn bounds how far what is new is indented: each of its lines takes as
// many blanks.
const maxColumn = 2000

var errColumn = fmt.Errorf("the new value would be indented by more than %d columns", maxColumn)

// appendBlock renders a value at a column.
func (d *document) appendBlock(dst []byte, v value, column int) ([]byte, error) {
	switch {
	case column > maxColumn:
		return nil, errColumn
	case v.lines != nil:
		return append(dst, d.indent(v.lines, column-v.shift)...), nil
	case len(v.inside) == 0:
		text, err := d.encode(v.node(), column)
		return append(dst, text...), err
	}
	for i, child := range v.inside {
		name := ""
		if v.kind == '{' {
			name = v.names[i]
		}
		if i > 0 {
			dst = append(append(dst, d.style.newline...), bytes.Repeat([]byte(" "), column)...)
		}
		var err error
		if dst, err = d.appendChild(dst, v.kind, name, child, column); err != nil {
			return nil, err
		}
	}
	return dst, nil
}

// appendMember renders what comes after the colon of a key at a column.
func (d *document) appendMember(dst []byte, v value, column int) ([]byte, error) {
	if column > maxColumn {
		return nil, errColumn
	}
	if !v.collection() {
		// A block scalar is indented by what is around it.
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{{Kind: yaml.ScalarNode, Tag: "!!str", Value: "k"}, v.node()}}
		text, err := d.encode(n, column)
		if err != nil {
			return nil, err
		}
		return append(dst, text[len("k:"):]...), nil
	}
	inner := column + d.style.step
	if v.kind == '[' && !d.style.hanging {
		inner = column
	}
	dst = append(append(dst, d.style.newline...), bytes.Repeat([]byte(" "), inner)...)
	return d.appendBlock(dst, v, inner)
}

// appendChild renders a new child of a block collection, { or [, at a column.
func (d *document) appendChild(dst []byte, kind byte, name string, v value, column int) ([]byte, error) {
	if kind == '[' {
		return d.appendBlock(append(dst, "- "...), v, column+2)
	}
	key, err := d.scalar(value{kind: '"', text: name})
	if err != nil {
		return nil, err
	}
	return d.appendMember(append(append(dst, key...), ':'), v, column)
}

// written returns the value of a member as it is written, if that is a block
// collection, so that its comments come along.
func (d *document) written(s *spot) (value, error) {
	if s.end < 0 {
		return value{}, errUnclear(s)
	}
	if s.flow || s.node.Kind == yaml.ScalarNode || s.start <= d.lineEnd(s.key.start) {
		return d.decoded(s)
	}
	v, err := d.decoded(s) // for a place in flow style
	if err != nil {        // an alias, which can move with the text
		v = value{kind: v.kind}
	}
	v.shift = s.column
	from := d.commentsAbove(s.start, s.column)
	v.lines = bytes.TrimLeft(d.text[from:d.lineEnd(s.end)], " ")
	return v, nil
}

// decoded returns a value by what it means.
func (d *document) decoded(s *spot) (value, error) {
	v := value{kind: '{'}
	switch s.node.Kind {
	case yaml.MappingNode:
		for _, k := range s.kids {
			inner, err := d.decoded(k)
			if err != nil {
				return v, err
			}
			v.names = append(v.names, k.key.node.Value)
			v.inside = append(v.inside, inner)
		}
		return v, nil
	case yaml.SequenceNode:
		v.kind = '['
		for _, k := range s.kids {
			inner, err := d.decoded(k)
			if err != nil {
				return v, err
			}
			v.inside = append(v.inside, inner)
		}
		return v, nil
	case yaml.ScalarNode:
		switch s.node.Tag {
		case "!!int", "!!float":
			return value{kind: '0', text: s.node.Value}, nil
		case "!!bool":
			return value{kind: s.node.Value[0] | 0x20}, nil
		case "!!null":
			return value{kind: 'n'}, nil
		}
		return value{kind: '"', text: s.node.Value}, nil
	}
	return v, aliasError(s)
}
