package syntax

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Problem is a reason why a document is no schema: upstream's decoder would
// refuse it as a whole.
type Problem struct {
	Pointer string // RFC 6901, from the schema's root
	Offset  int
	Message string
}

// Error implements error.
func (p Problem) Error() string {
	return fmt.Sprintf("schema at byte %d (%q): %s", p.Offset, p.Pointer, p.Message)
}

// maxProblems bounds the list: a document with any is refused, and a hostile
// one could have a long path to report for each byte.
const maxProblems = 100

// Parse reads the value v of d as a schema. With Problems, the schema is still
// a valid tree, made of what could be read.
func Parse(d *jsondoc.Doc, v jsondoc.Value) (*Schema, []Problem) {
	p := parser{d: d}
	s := p.schema(v)
	return s, p.problems
}

type parser struct {
	d        *jsondoc.Doc
	problems []Problem

	path  []step          // where the parser is, for Problems
	todo  []jsondoc.Value // values of the open schemas' keywords, still to be read
	slab  []Schema        // schemas not yet handed out
	marks []mark          // all marks; each schema holds a part of it
	raw   []byte          // canonical values; each JSON holds a part of one
	utf8  []byte          // the string being decoded
}

// step is one token of a JSON pointer.
type step struct {
	name  string
	index int // if name is empty and index is not negative
}

func (p *parser) enter(name string) { p.path = append(p.path, step{name, -1}) }
func (p *parser) enterItem(i int)   { p.path = append(p.path, step{"", i}) }
func (p *parser) leave()            { p.path = p.path[:len(p.path)-1] }

func (p *parser) wrong(v jsondoc.Value, want string) {
	p.problem(v, "must be "+want+", but is "+Article(p.d.Kind(v)))
}

// Article names a kind of value, with its article.
func Article(k jsondoc.Kind) string {
	switch k {
	case jsondoc.Null:
		return "null"
	case jsondoc.Array, jsondoc.Object:
		return "an " + k.String()
	}
	return "a " + k.String()
}

func (p *parser) problem(v jsondoc.Value, message string) {
	if len(p.problems) >= maxProblems {
		return
	}
	var b []byte
	for _, s := range p.path {
		if s.index >= 0 {
			b = strconv.AppendInt(append(b, '/'), int64(s.index), 10)
		} else {
			b = AppendToken(b, s.name)
		}
	}
	p.problems = append(p.problems, Problem{string(b), p.d.Offset(v), message})
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// AppendToken appends a slash and name as a token of a JSON pointer.
func AppendToken(dst []byte, name string) []byte {
	dst = append(dst, '/')
	if strings.ContainsAny(name, "~/") {
		name = escaper.Replace(name)
	}
	return append(dst, name...)
}

// schema reads a schema at a place where null stands for an empty one.
func (p *parser) schema(v jsondoc.Value) *Schema {
	s := p.newSchema()
	p.fill(s, v)
	return s
}

const (
	slabSize = 32
	rawSize  = 1024
)

func (p *parser) newSchema() *Schema {
	if len(p.slab) == 0 {
		p.slab = make([]Schema, slabSize)
	}
	s := &p.slab[0]
	p.slab = p.slab[1:]
	return s
}

// fill reads v into the empty schema s.
func (p *parser) fill(s *Schema, v jsondoc.Value) {
	s.Offset = p.d.Offset(v)
	switch p.d.Kind(v) {
	case jsondoc.Object:
	case jsondoc.Null:
		return
	default:
		p.wrong(v, "a schema")
		return
	}
	// All marks first, so that they lie together; then the values, which may
	// contain schemas with marks of their own.
	firstMark, firstTodo := len(p.marks), len(p.todo)
	p.members(v, func(key jsondoc.Value, duplicate bool) {
		p.note(s, key)
		if duplicate {
			s.newRare().Duplicates = append(s.rare.Duplicates, Duplicate{"", p.d.Text(key), p.d.Offset(key)})
		}
	})
	s.marks = p.marks[firstMark:len(p.marks):len(p.marks)]
	for i, m := range s.marks {
		value := p.todo[firstTodo+i]
		if p.d.Kind(value) == jsondoc.Null {
			continue
		}
		s.written |= 1 << m.keyword
		k := &keywords[m.keyword]
		p.enter(k.name)
		k.read(p, s, value)
		p.leave()
	}
	p.todo = p.todo[:firstTodo]
}

// note remembers that the value after key has to be read.
func (p *parser) note(s *Schema, key jsondoc.Value) {
	value := key + 1
	k, known := lookup(p.d.Key(key))
	if !known {
		r := s.newRare()
		r.Unknown = append(r.Unknown, Unknown{p.d.Text(key), p.value(value)})
		return
	}
	p.marks = append(p.marks, mark{k, uint32(p.d.Offset(value))})
	p.todo = append(p.todo, value)
}

// members calls f for the effective members of the object v, sorted by key;
// a member's value is at key+1.
func (p *parser) members(v jsondoc.Value, f func(key jsondoc.Value, duplicate bool)) {
	if p.d.Sorted(v) {
		for k, end := v+1, p.d.Next(v); k < end; k = p.d.Next(k + 1) {
			f(k, false)
		}
		return
	}
	keys := p.d.SortedKeys(v)
	for i := range keys.Len() {
		f(keys.At(i))
	}
	keys.Release()
}

func (p *parser) value(v jsondoc.Value) JSON {
	// A new buffer rather than a larger one: the values in the old one stay.
	if n := p.d.End(v) - p.d.Offset(v); cap(p.raw)-len(p.raw) < n {
		p.raw = make([]byte, 0, max(n, rawSize))
	}
	from := len(p.raw)
	p.raw = p.d.AppendCanonical(p.raw, v)
	return JSON{Raw: p.raw[from:len(p.raw):len(p.raw)], Written: p.d.Raw(v), Offset: p.d.Offset(v)}
}

// words are strings that occur so often that they are worth sharing, by length.
var words [longestWord + 1][]string

const longestWord = len("apiVersion")

func init() {
	for _, w := range []string{
		"string", "number", "integer", "boolean", "array", "object",
		"int32", "int64", "double", "date-time", "atomic", "granular", "set", "map",
		"name", "namespace", "key", "kind", "apiVersion", "metadata", "spec", "status", "type", "value",
	} {
		words[len(w)] = append(words[len(w)], w)
	}
}

// string returns the decoded string or key v.
func (p *parser) string(v jsondoc.Value) string {
	if !p.d.Plain(v) {
		// Through the buffer, because descriptions have escapes and are long.
		p.utf8 = p.d.AppendText(p.utf8[:0], v)
		return string(p.utf8)
	}
	raw := p.d.Raw(v)
	raw = raw[1 : len(raw)-1]
	if len(raw) <= longestWord {
		for _, w := range words[len(raw)] {
			if w == string(raw) {
				return w
			}
		}
	}
	return string(raw)
}

func (p *parser) text(dst *string, v jsondoc.Value) {
	switch p.d.Kind(v) {
	case jsondoc.String:
		*dst = p.string(v)
	case jsondoc.Null:
	default:
		p.wrong(v, "a string")
	}
}

func (p *parser) flag(dst *bool, v jsondoc.Value) {
	switch p.d.Kind(v) {
	case jsondoc.True:
		*dst = true
	case jsondoc.False, jsondoc.Null:
	default:
		p.wrong(v, "a boolean")
	}
}

func (p *parser) texts(v jsondoc.Value) []string {
	if p.d.Kind(v) != jsondoc.Array {
		p.wrong(v, "an array of strings")
		return nil
	}
	list := make([]string, p.d.Len(v))
	for i, item := range p.d.Items(v) {
		p.enterItem(i)
		p.text(&list[i], item)
		p.leave()
	}
	return list
}

func (p *parser) schemas(v jsondoc.Value) []*Schema {
	if p.d.Kind(v) != jsondoc.Array {
		p.wrong(v, "an array of schemas")
		return nil
	}
	list := make([]*Schema, 0, p.d.Len(v))
	for i, item := range p.d.Items(v) {
		p.enterItem(i)
		list = append(list, p.schema(item))
		p.leave()
	}
	return list
}

// properties reads a map of schemas, the value of the given keyword of s.
func (p *parser) properties(s *Schema, keyword string, v jsondoc.Value) []Property {
	if p.d.Kind(v) != jsondoc.Object {
		p.wrong(v, "an object of schemas")
		return nil
	}
	n := p.d.Len(v)
	list := make([]Property, 0, n)
	block := make([]Schema, n)
	p.members(v, func(key jsondoc.Value, duplicate bool) {
		m := Property{p.string(key), p.d.Offset(key), &block[len(list)]}
		p.duplicate(s, duplicate, keyword, m.Name, m.Offset)
		p.enter(m.Name)
		p.fill(m.Schema, key+1)
		p.leave()
		list = append(list, m)
	})
	return list
}

func (p *parser) duplicate(s *Schema, yes bool, keyword, name string, offset int) {
	if yes {
		r := s.newRare()
		r.Duplicates = append(r.Duplicates, Duplicate{keyword, name, offset})
	}
}
