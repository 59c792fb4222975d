package sample

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/witness"
	"github.com/espalier-dev/espalier/internal/crdtree"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// Options say what objects are like.
type Options struct {
	// Size is about how many values an object has.
	Size int
	// Annotations and Labels are names that objects have more often than others.
	Annotations, Labels []string
}

// Generator makes objects of one version. It is not safe for concurrent use.
type Generator struct {
	options    Options
	apiVersion string
	kind       string
	namespaced bool
	root       *syntax.Schema
	scalars    map[*syntax.Schema][]any
}

const (
	defaultSize = 60
	maxDepth    = 32
)

// New returns a generator of objects of a version.
func New(d *crd.CRD, v *crd.Version, o Options) (*Generator, error) {
	s := crdtree.Parse(v)
	if s.Tree == nil || len(s.Problems) > 0 {
		return nil, fmt.Errorf("version %q has no valid schema", v.Name)
	}
	if o.Size <= 0 {
		o.Size = defaultSize
	}
	return &Generator{
		options: o, apiVersion: d.Group + "/" + v.Name, kind: d.Kind, namespaced: d.Namespaced, root: s.Tree,
		scalars: map[*syntax.Schema][]any{},
	}, nil
}

// Object returns a new object, made of maps, slices, strings, int64, float64, booleans and nil.
func (g *Generator) Object(r *rand.Rand) map[string]any {
	b := &builder{Generator: g, r: r}
	size := 1 + r.IntN(2*g.options.Size)
	o := b.object(g.root, size, 0)
	for _, name := range headers {
		delete(o, name)
	}
	o["apiVersion"], o["kind"], o["metadata"] = g.apiVersion, g.kind, b.metadata()
	return o
}

var headers = []string{"apiVersion", "kind", "metadata"}

// builder makes one object.
type builder struct {
	*Generator
	r *rand.Rand
}

func (b *builder) one(n int) bool { return b.r.IntN(n) == 0 }

func pick[T any](b *builder, list []T) T { return list[b.r.IntN(len(list))] }

func (b *builder) metadata() map[string]any {
	m := map[string]any{"name": "object-" + strconv.Itoa(b.r.IntN(1000))}
	if b.namespaced {
		m["namespace"] = "default"
	}
	notes := func(field string, named []string) {
		all := map[string]any{}
		for _, name := range named {
			if b.one(2) {
				all[name] = b.note()
			}
		}
		if b.one(4) {
			all["example.com/note"+strconv.Itoa(b.r.IntN(10))] = b.note()
		}
		if len(all) > 0 {
			m[field] = all
		}
	}
	notes("annotations", b.options.Annotations)
	notes("labels", b.options.Labels)
	if b.one(8) {
		m["finalizers"] = []any{"example.com/part" + strconv.Itoa(b.r.IntN(10))}
	}
	if b.one(8) {
		m["generation"] = int64(b.r.IntN(9) + 1)
	}
	return m
}

// note returns the value of an annotation or label. Rules may expect numbers.
func (b *builder) note() string {
	if b.one(2) {
		return strconv.Itoa(b.r.IntN(100))
	}
	return pick(b, []string{"", "true", "false", "a", "b", "1.5", "10x"})
}

// value returns a value of a schema with about size values.
func (b *builder) value(s *syntax.Schema, size, depth int) any {
	switch {
	case s == nil:
		return b.anything(size, depth)
	case s.Nullable && b.one(12):
		return nil
	case s.IntOrString:
		return b.scalar(s)
	}
	switch s.Type {
	case "object":
		return b.object(s, size, depth)
	case "array":
		return b.list(s, size, depth)
	case "string", "integer", "number", "boolean":
		return b.scalar(s)
	}
	if len(s.Properties) > 0 || s.AdditionalProperties != nil || s.EmbeddedResource {
		return b.object(s, size, depth)
	}
	if len(s.Enum) > 0 {
		return b.scalar(s)
	}
	return b.anything(size, depth)
}

// anything returns a value that no schema restricts.
func (b *builder) anything(size, depth int) any {
	switch n := b.r.IntN(8); {
	case n < 3:
		return b.word()
	case n == 3:
		return int64(b.r.IntN(1000))
	case n == 4:
		return b.one(2)
	case depth >= maxDepth || size <= 1:
		return b.word()
	case n == 5:
		return []any{b.anything(size/2, depth+1), b.anything(size/2, depth+1)}
	}
	return map[string]any{b.key(): b.anything(size/2, depth+1), b.key(): b.anything(size/2, depth+1)}
}

// scalar returns a scalar that the schema admits.
func (b *builder) scalar(s *syntax.Schema) any {
	list, known := b.scalars[s]
	if !known {
		list = witness.Scalars(s)
		b.scalars[s] = list
	}
	free := len(s.Enum) == 0 && len(s.AllOf) == 0 && s.Pattern == "" && s.Format == "" && s.MinLength == nil && s.MaxLength == nil &&
		s.Minimum == nil && s.Maximum == nil && s.MultipleOf == nil
	if s.Type == "string" && free && !b.one(3) || len(list) == 0 && (s.Type == "string" || s.Type == "" || s.IntOrString) {
		return b.word()
	}
	if s.Type == "integer" && free && !b.one(3) || len(list) == 0 && s.Type == "integer" {
		return int64(b.r.IntN(100_000))
	}
	switch {
	case len(list) > 0:
		return pick(b, list)
	case s.Type == "boolean":
		return b.one(2)
	}
	return float64(b.r.IntN(1000)) / 4
}

// words are strings that conversion might mistake for something else.
var words = []string{"", "a", "b", "null", "true", "1", "-1", "1.0", "1e3", "a:1", "host:80", ":", "a:b:2", "[::1]:443", "x/y", "ü", "\"", "\\", "\n", "\u2028", "{}", "[]", "a,b", " ", "01", "~"}

func (b *builder) word() string {
	if b.one(3) {
		return pick(b, words)
	}
	n := 1 + b.r.IntN(10)
	text := make([]byte, n)
	for i := range text {
		text[i] = "abcdefghijklmnopqrstuvwxyz:-./0123456789"[b.r.IntN(40)]
	}
	return string(text)
}

var keys = []string{"a", "b", "c", "name", "~", "", "app.kubernetes.io/name", "x y", "ü", "spec", "digest", "value", "image", "values", "0"}

func (b *builder) key() string {
	if b.one(2) {
		return pick(b, keys)
	}
	return b.word()
}
