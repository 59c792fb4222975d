package conversion

import (
	"bytes"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// transform calculates the values of some fields from those of others. All are canonical JSON; nil is a value that
// is absent. A transform is a function: it depends on nothing else. If it has no value for a field, conversion
// saves the input.
type transform interface {
	// apply sets out. Its bytes may be those of in, or appended to buf, which it returns.
	apply(b *budget, buf []byte, in, out [][]byte) []byte
}

// budget is what the CEL expressions of one conversion may cost. An expression is evaluated for each item of a list: a
// bound for each evaluation bounds nothing.
type budget struct {
	left     uint64
	exceeded bool
}

// Costs are in the units of CEL rules of schemas.
const (
	// costOfObject and costOfByte are what an object may cost in addition to its first evaluations: in proportion to its
	// size, as all of a conversion.
	costOfObject, costOfByte = maxCost, 10
)

func newBudget(size int) budget { return budget{left: costOfObject + costOfByte*uint64(size)} } //nolint:gosec // sizes are not negative

// spend takes a cost from the budget.
func (b *budget) spend(cost uint64) {
	if cost > b.left {
		b.left, b.exceeded = 0, true
		return
	}
	b.left -= cost
}

// wrapper makes a list of one value.
type wrapper struct{}

func (wrapper) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if in[0] == nil {
		return buf
	}
	from := len(buf)
	buf = append(append(append(buf, '['), in[0]...), ']')
	out[0] = buf[from:len(buf):len(buf)]
	return buf
}

// unwrapper takes the first item of a list.
type unwrapper struct{}

func (unwrapper) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if in[0] == nil {
		return buf
	}
	if n := len(in[0]) - 2; n > 2 && in[0][0] == '[' && in[0][1] == '"' && bytes.IndexByte(in[0][2:], '"') == n-2 {
		out[0] = in[0][1 : n+1] // one string, as mostly
		return buf
	}
	doc, err := jsondoc.Parse(in[0], jsondoc.Limits{})
	if err != nil {
		return buf
	}
	defer doc.Release()
	if first, ok := doc.Index(jsondoc.Root, 0); ok {
		out[0] = in[0][doc.Offset(first):doc.End(first)]
	}
	return buf
}

// splitter divides a string.
type splitter struct {
	separator string
	numbers   []bool // which parts are integers
}

func (s splitter) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if in[0] == nil || in[0][0] != '"' {
		return buf
	}
	text := in[0][1 : len(in[0])-1]
	if bytes.IndexByte(text, '\\') >= 0 {
		text = []byte(jsondoc.Unquote(in[0]))
	}
	// The last parts are found from the end: an address may have colons before the port.
	for i := len(out) - 1; i >= 0; i-- {
		part := text
		if i > 0 {
			at := bytes.LastIndex(text, []byte(s.separator))
			if at < 0 {
				clear(out)
				return buf
			}
			part, text = text[at+len(s.separator):], text[:at]
		}
		from := len(buf)
		if s.numbers[i] {
			n, err := strconv.ParseInt(string(part), 10, 64)
			if err != nil {
				clear(out)
				return buf
			}
			buf = strconv.AppendInt(buf, n, 10)
		} else {
			buf = jsondoc.AppendString(buf, part)
		}
		out[i] = buf[from:len(buf):len(buf)]
	}
	return buf
}

// joiner is the inverse of splitter.
type joiner splitter

func (s joiner) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	var text []byte
	for i, part := range in {
		if part == nil {
			return buf
		}
		if i > 0 {
			text = append(text, s.separator...)
		}
		switch {
		case part[0] == '"' && !s.numbers[i]:
			text = append(text, jsondoc.Unquote(part)...)
		case isInteger(part) && s.numbers[i]:
			text = append(text, part...)
		default:
			return buf
		}
	}
	from := len(buf)
	buf = jsondoc.AppendString(buf, text)
	out[0] = buf[from:len(buf):len(buf)]
	return buf
}

func isInteger(raw []byte) bool {
	_, err := strconv.ParseInt(string(raw), 10, 64)
	return err == nil
}

// enumeration maps scalars. What it does not list stays as it is.
type enumeration map[string]string

func (e enumeration) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if to, ok := e[string(in[0])]; ok && in[0] != nil {
		from := len(buf)
		buf = append(buf, to...)
		out[0] = buf[from:len(buf):len(buf)]
		return buf
	}
	out[0] = in[0]
	return buf
}

// constant is a value in canonical JSON.
type constant string

func (c constant) apply(_ *budget, buf []byte, _, out [][]byte) []byte {
	from := len(buf)
	buf = append(buf, c...)
	out[0] = buf[from:len(buf):len(buf)]
	return buf
}

// nothing has no values: the inverse of a constant, and of a calculation in one way.
type nothing struct{}

func (nothing) apply(_ *budget, buf []byte, _, _ [][]byte) []byte { return buf }

// parser reads a number or boolean that is written in a string.
type parser struct{ want func(jsondoc.Kind) bool }

func (p parser) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if in[0] == nil || in[0][0] != '"' {
		return buf
	}
	text := in[0][1 : len(in[0])-1]
	doc, err := jsondoc.Parse(text, jsondoc.Limits{MaxDepth: 1})
	if err != nil {
		return buf
	}
	defer doc.Release()
	if p.want(doc.Kind(jsondoc.Root)) && doc.Canonical() && doc.Settled() {
		out[0] = text
	}
	return buf
}

// printer writes a number or boolean in a string.
type printer struct{}

func (printer) apply(_ *budget, buf []byte, in, out [][]byte) []byte {
	if in[0] == nil {
		return buf
	}
	switch in[0][0] {
	case '"', '{', '[', 'n':
		return buf
	}
	from := len(buf)
	buf = append(append(append(buf, '"'), in[0]...), '"')
	out[0] = buf[from:len(buf):len(buf)]
	return buf
}

// coercion returns what makes a value of b of a value of a, nil if there is no such thing.
func coercion(a, b *field) transform {
	from, to := a.scalar(), b.scalar()
	switch {
	case from == "" || to == "" || from == to:
		return nil
	case from == "string" && to == "boolean":
		return parser{func(k jsondoc.Kind) bool { return k == jsondoc.True || k == jsondoc.False }}
	case from == "string":
		return parser{func(k jsondoc.Kind) bool { return k == jsondoc.Number }}
	case to == "string":
		return printer{}
	}
	return nil
}
