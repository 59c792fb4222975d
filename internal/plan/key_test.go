package plan

import (
	"fmt"
	"reflect"
	"testing"
	"unsafe"

	"github.com/espalier-dev/espalier/internal/pattern"
)

// notInTheKey are the fields that cannot change an answer, by type and name, and
// why not.
var notInTheKey = map[string]string{
	"Node.refs":   "counts the users of the node",
	"Node.hash":   "is the hash of the key",
	"Node.chain":  "links the nodes of the table that have the same hash",
	"Props.table": "is computed from the names in list, to find them faster",
	"Props.shift": "is computed with table",
}

// TestEveryFieldIsInTheKey changes every field of a node alone, one after
// another, and those of everything that a node consists of. Builder.Node must
// never take two of the results for the same. It finds fields by reflection: a
// new field that appendKey does not have fails here.
func TestEveryFieldIsInTheKey(t *testing.T) {
	var b Builder
	defer b.Close()
	f := fields{t: t, seen: map[string]bool{}}
	f.node, f.other = leaf(&b, 0), leaf(&b, Nullable)
	for i, text := range []string{"a", "b"} {
		p, err := pattern.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		f.patterns[i] = p
	}
	found := map[*Node]string{}
	intern := func(what string, n *Node) {
		shared := b.Node(n)
		if with, ok := found[shared]; ok {
			t.Errorf("one node for two: %s, and %s", with, what)
		}
		found[shared] = what
	}
	intern("nothing changed", f.full())
	total := len(f.changes(f.full()))
	for i := range total {
		n := f.full()
		c := f.changes(n)[i]
		c.apply()
		intern(c.what, n)
	}
	for name := range notInTheKey {
		if !f.seen[name] {
			t.Errorf("there is no field %s", name)
		}
	}
	if total < 60 {
		t.Errorf("only %d changes: the test does not reach all fields", total)
	}
	if again := b.Node(f.full()); found[again] != "nothing changed" {
		t.Error("equal content is not shared")
	}
}

// fields finds the fields of a node and of its parts.
type fields struct {
	t           *testing.T
	seen        map[string]bool // of notInTheKey
	node, other *Node
	patterns    [2]*pattern.Pattern
}

// full returns a node in which every field is set.
func (f *fields) full() *Node {
	n := new(Node)
	f.fill(reflect.ValueOf(n).Elem())
	return n
}

// settable gives access to the unexported fields, too.
func settable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// each calls visit for the fields of a struct that belong into the key.
func (f *fields) each(v reflect.Value, visit func(name string, field reflect.Value)) {
	for i := range v.NumField() {
		name := v.Type().Name() + "." + v.Type().Field(i).Name
		if notInTheKey[name] != "" {
			f.seen[name] = true
			continue
		}
		visit(name, settable(v.Field(i)))
	}
}

func (f *fields) fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1)
	case reflect.String:
		v.SetString("s")
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		f.fill(v.Index(0))
		f.fill(v.Index(1))
	case reflect.Pointer:
		switch v.Interface().(type) {
		case *Node:
			v.Set(reflect.ValueOf(f.node))
		case *pattern.Pattern:
			v.Set(reflect.ValueOf(f.patterns[0]))
		default:
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Struct:
		f.each(v, func(_ string, field reflect.Value) { f.fill(field) })
	default:
		f.t.Fatalf("what to do with a field of type %s?", v.Type())
	}
}

// change is one field changed.
type change struct {
	what  string
	apply func()
}

// changes returns all changes of one field of n, for which one of them can be
// applied.
func (f *fields) changes(n *Node) []change {
	var list []change
	f.collect(&list, "Node", reflect.ValueOf(n).Elem())
	return list
}

func (f *fields) collect(list *[]change, at string, v reflect.Value) {
	add := func(how string, to func() reflect.Value) {
		*list = append(*list, change{at + " " + how, func() { v.Set(to()) }})
	}
	switch v.Kind() {
	case reflect.Bool:
		add("is false", func() reflect.Value { return reflect.Zero(v.Type()) })
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		for _, number := range []int{0, 2} {
			add(fmt.Sprint("is ", number), func() reflect.Value { return reflect.ValueOf(number).Convert(v.Type()) })
		}
		// The key must hold all of a number, not its lowest byte.
		add("has the highest bit set", func() reflect.Value {
			return reflect.ValueOf(uint64(1)<<(v.Type().Bits()-1) + 1).Convert(v.Type())
		})
	case reflect.String:
		for _, text := range []string{"", "t", "s0"} {
			add(fmt.Sprintf("is %q", text), func() reflect.Value { return reflect.ValueOf(text).Convert(v.Type()) })
		}
	case reflect.Slice:
		add("has an item less", func() reflect.Value { return v.Slice(0, v.Len()-1) })
		add("has an item more", func() reflect.Value {
			more := reflect.New(v.Type().Elem()).Elem()
			f.fill(more)
			return reflect.Append(v, more)
		})
		for i := range v.Len() {
			f.collect(list, fmt.Sprintf("%s[%d]", at, i), v.Index(i))
		}
	case reflect.Pointer:
		switch v.Interface().(type) {
		case *Node:
			add("is another node", func() reflect.Value { return reflect.ValueOf(f.other) })
		case *pattern.Pattern:
			add("is another pattern", func() reflect.Value { return reflect.ValueOf(f.patterns[1]) })
			add("is nil", func() reflect.Value { return reflect.Zero(v.Type()) })
		default:
			add("is nil", func() reflect.Value { return reflect.Zero(v.Type()) })
			f.collect(list, at, v.Elem())
		}
	case reflect.Struct:
		f.each(v, func(name string, field reflect.Value) {
			f.collect(list, at+" → "+name, field)
		})
	}
}
