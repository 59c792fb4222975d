package openapi

import (
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// encoder writes JSON that people can read, one member or item per line, unless
// it is compact.
type encoder struct {
	b       []byte
	depth   int
	empty   bool // nothing has been written into the innermost object or array
	compact bool
}

// maxIndent bounds the indentation, without which the size of the output would
// be quadratic in the depth of the input.
const maxIndent = 50

func (e *encoder) object(fill func()) { e.nest('{', '}', fill) }
func (e *encoder) array(fill func())  { e.nest('[', ']', fill) }

func (e *encoder) nest(first, last byte, fill func()) {
	e.b = append(e.b, first)
	e.depth++
	e.empty = true
	fill()
	e.depth--
	if !e.empty {
		e.line()
	}
	e.empty = false
	e.b = append(e.b, last)
}

func (e *encoder) line() {
	if e.compact {
		return
	}
	e.b = append(e.b, '\n')
	for range min(e.depth, maxIndent) {
		e.b = append(e.b, ' ', ' ')
	}
}

func (e *encoder) space() {
	if !e.compact {
		e.b = append(e.b, ' ')
	}
}

// items writes a member that is an array of n items, unless there are none.
func (e *encoder) items(name string, n int, item func(i int)) {
	if n == 0 {
		return
	}
	e.key(name)
	e.array(func() {
		for i := range n {
			e.next()
			item(i)
		}
	})
}

// next begins an item of an array.
func (e *encoder) next() {
	if !e.empty {
		e.b = append(e.b, ',')
	}
	e.empty = false
	e.line()
}

// key begins a member of an object.
func (e *encoder) key(name string) {
	e.next()
	e.b = append(jsondoc.AppendString(e.b, name), ':')
	e.space()
}

func (e *encoder) raw(json []byte)         { e.b = append(e.b, json...) }
func (e *encoder) text(name, value string) { e.key(name); e.b = jsondoc.AppendString(e.b, value) }
func (e *encoder) flag(name string)        { e.key(name); e.b = append(e.b, "true"...) }
func (e *encoder) bool(name string, value bool) {
	e.key(name)
	e.b = strconv.AppendBool(e.b, value)
}

// optional writes a text that is there.
func (e *encoder) optional(name, value string) {
	if value != "" {
		e.text(name, value)
	}
}

func (e *encoder) integer(name string, value *int64) {
	if value != nil {
		e.key(name)
		e.b = strconv.AppendInt(e.b, *value, 10)
	}
}

func (e *encoder) number(name string, value *float64) {
	if value == nil {
		return
	}
	e.key(name)
	// A float64 that was read from JSON is finite and so has a JSON form.
	e.b, _ = jsondoc.AppendAny(e.b, *value)
}

// texts writes a list of strings on one line.
func (e *encoder) texts(name string, list []string) {
	e.key(name)
	e.b = append(e.b, '[')
	for i, s := range list {
		if i > 0 {
			e.b = append(e.b, ',')
			e.space()
		}
		e.b = jsondoc.AppendString(e.b, s)
	}
	e.b = append(e.b, ']')
}

// finish returns what was written.
func (e *encoder) finish() []byte { return append(e.b, '\n') }
