package models

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// appliedFile has the schemas of client-go's apply configurations. client-go has them as
// YAML, which takes a tenth of a second to read, in every process that writes an object.
// A test writes the file, and compares both.
//
// Each line is a type: its name, and what values of it may be.
//
//	type  = name ' ' atom '\n'
//	atom  = { 's' scalar ' ' | 'l' relationship ' ' keys ' ' ref | 'm' relationship ' ' fields unions ref } 'e '
//	keys  = count ' ' { name ' ' }
//	fields = count ' ' { name ' ' default ' ' ref }
//	unions = count ' ' { JSON ' ' }
//	ref   = ( '@' name | '(' ' ' atom ) ' ' override ' ' | '. '
//
// An override is the relationship that the reference sets, '-' if none, with a '?' in
// front if null is a value. A default is JSON, '-' if there is none. JSON has no spaces.
//
//go:embed applied.txt
var appliedFile string

// Parser returns the schemas by which the fields of built-in kinds are managed. It reads
// them once per process.
var Parser = sync.OnceValue(func() *typed.Parser {
	p := &typed.Parser{}
	r := &reader{text: appliedFile, names: map[string]*string{}}
	for r.text != "" {
		p.Schema.Types = append(p.Schema.Types, schema.TypeDef{Name: r.word(), Atom: r.atom()})
		r.text = strings.TrimPrefix(r.text, "\n")
	}
	return p
})

// reader reads appliedFile. The file is part of the program: what cannot be read is a
// panic.
type reader struct {
	text  string
	names map[string]*string // of types that others refer to
}

// word returns the text up to the next space.
func (r *reader) word() string {
	word, rest, ok := strings.Cut(r.text, " ")
	if !ok {
		panic("models: applied.txt is cut off")
	}
	r.text = rest
	return word
}

func (r *reader) count() int {
	word := r.word()
	n, err := strconv.Atoi(word)
	if err != nil {
		panic(fmt.Sprintf("models: applied.txt has %q where a number is needed", word))
	}
	return n
}

func (r *reader) atom() schema.Atom {
	var a schema.Atom
	for {
		switch word := r.word(); word[0] {
		case 's':
			a.Scalar = shared(scalars, word[1:])
		case 'l':
			l := &schema.List{ElementRelationship: schema.ElementRelationship(word[1:])}
			for range r.count() {
				l.Keys = append(l.Keys, r.word())
			}
			l.ElementType = r.ref()
			a.List = l
		case 'm':
			a.Map = r.mapping(schema.ElementRelationship(word[1:]))
		case 'e':
			return a
		default:
			panic(fmt.Sprintf("models: applied.txt has %q where a type is needed", word))
		}
	}
}

func (r *reader) mapping(relationship schema.ElementRelationship) *schema.Map {
	m := &schema.Map{ElementRelationship: relationship}
	if n := r.count(); n > 0 {
		m.Fields = make([]schema.StructField, n)
	}
	for i := range m.Fields {
		f := &m.Fields[i]
		f.Name = r.word()
		if value := r.word(); value != "-" {
			r.json(value, &f.Default)
			f.Default = wholeNumbers(f.Default)
		}
		f.Type = r.ref()
	}
	for range r.count() {
		var u schema.Union
		r.json(r.word(), &u)
		m.Unions = append(m.Unions, u)
	}
	m.ElementType = r.ref()
	return m
}

func (r *reader) ref() schema.TypeRef {
	var ref schema.TypeRef
	switch word := r.word(); word[0] {
	case '.':
		return ref
	case '@':
		if r.names[word] == nil {
			name := word[1:]
			r.names[word] = &name
		}
		ref.NamedType = r.names[word]
	case '(':
		ref.Inlined = r.atom()
	default:
		panic(fmt.Sprintf("models: applied.txt has %q where a reference is needed", word))
	}
	override := r.word()
	override, ref.Nullable = strings.CutPrefix(override, "?")
	if override != "-" {
		ref.ElementRelationship = shared(relationships, override)
	}
	return ref
}

func (r *reader) json(text string, into any) {
	if err := json.Unmarshal([]byte(text), into); err != nil {
		panic(fmt.Sprintf("models: applied.txt has %q where JSON is needed: %v", text, err))
	}
}

// The values that types share, so that references are equal that look so: the schema
// keeps what it has resolved by reference.
var (
	scalars       = []schema.Scalar{schema.Numeric, schema.String, schema.Boolean, schema.Untyped}
	relationships = []schema.ElementRelationship{schema.Associative, schema.Atomic, schema.Separable}
)

// shared returns a pointer to the value of a list that is equal to text.
func shared[T ~string](list []T, text string) *T {
	for i := range list {
		if string(list[i]) == text {
			return &list[i]
		}
	}
	panic(fmt.Sprintf("models: applied.txt has the unknown word %q", text))
}

// wholeNumbers is a value of JSON with the numbers of YAML, which has integers.
func wholeNumbers(value any) any {
	switch v := value.(type) {
	case float64:
		if n := int(v); float64(n) == v {
			return n
		}
	case []any:
		for i := range v {
			v[i] = wholeNumbers(v[i])
		}
	case map[string]any:
		out := make(map[any]any, len(v))
		for key, member := range v {
			out[key] = wholeNumbers(member)
		}
		return out
	}
	return value
}
