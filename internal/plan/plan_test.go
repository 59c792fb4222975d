package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func leaf(b *Builder, f Flags) *Node { return b.Node(&Node{Accepts: 1, Flags: f}) }

func TestEqualContentIsOneNode(t *testing.T) {
	before := Count()
	var a, b Builder
	build := func(b *Builder) *Node {
		return b.Node(&Node{
			Accepts: AnyKind,
			Props:   NewProps([]Prop{{"y", leaf(b, 0)}, {"x", leaf(b, Nullable)}}),
			Items:   leaf(b, 0),
			Asserts: []Assert{{Op: Pattern, Text: "a+"}, {Op: AnyOf, Operands: &Operands{Nodes: []*Node{leaf(b, Whole)}}}},
			Rare:    &Rare{Default: `{}`, ListMapKeys: []string{"x"}, Unions: []Union{{"d", []UnionField{{"x", "X"}}}}, Rules: []Rule{{Rule: "true"}}},
		})
	}
	n, m := build(&a), build(&b)
	if n != m {
		t.Error("equal content, two nodes")
	}
	if got := Count() - before; got != 4 {
		t.Errorf("%d nodes, want 4", got)
	}
	Hold(n)
	a.Close()
	b.Close()
	if got := Count() - before; got != 4 {
		t.Errorf("%d nodes while one is held, want 4", got)
	}
	Release(n)
	if got := Count() - before; got != 0 {
		t.Errorf("%d nodes after the last release, want 0", got)
	}
}

// Each pair differs in one respect, and must not be taken for equal.
func TestDifferentContentDiffers(t *testing.T) {
	var b Builder
	defer b.Close()
	x, y := leaf(&b, 0), leaf(&b, Nullable)
	variants := []*Node{
		{}, {Accepts: 2}, {Flags: Nullable}, {Flags: ReadOnly}, {Items: x}, {Items: y}, {Additional: x},
		{Props: NewProps([]Prop{{"a", x}})}, {Props: NewProps([]Prop{{"b", x}})}, {Props: NewProps([]Prop{{"a", y}})},
		{Props: NewProps([]Prop{{"a", x}, {"b", x}})},
		{Asserts: []Assert{{Op: Format, Text: "a"}}}, {Asserts: []Assert{{Op: Pattern, Text: "a"}}}, {Asserts: []Assert{{Op: MaxItems, Num: 1}}},
		{Asserts: []Assert{{Op: Required, Operands: &Operands{List: []string{"a", "b"}}}}}, {Asserts: []Assert{{Op: Required, Operands: &Operands{List: []string{"ab"}}}}},
		{Asserts: []Assert{{Op: Not, Operands: &Operands{Nodes: []*Node{x}}}}}, {Asserts: []Assert{{Op: Not, Operands: &Operands{Nodes: []*Node{y}}}}},
		{Rare: &Rare{Default: "1"}}, {Rare: &Rare{Default: "2"}}, {Rare: &Rare{ListMapKeys: []string{"1"}}},
		{Rare: &Rare{Unions: []Union{{Discriminator: "d"}}}}, {Rare: &Rare{Unions: []Union{{Fields: []UnionField{{"d", ""}}}}}},
		{Rare: &Rare{Rules: []Rule{{Rule: "a"}}}}, {Rare: &Rare{Rules: []Rule{{Message: "a"}}}}, {Rare: &Rare{Rules: []Rule{{OptionalOldSelf: 1}}}},
	}
	seen := map[*Node]int{}
	for i, v := range variants {
		n := b.Node(v)
		if j, ok := seen[n]; ok {
			t.Errorf("variants %d and %d are one node", j, i)
		}
		seen[n] = i
	}
}

func TestDeepPlanIsReleased(t *testing.T) {
	before := Count()
	var b Builder
	n := leaf(&b, 0)
	for range 100_000 {
		n = b.Node(&Node{Items: n})
	}
	Hold(n)
	b.Close()
	Release(n)
	if got := Count() - before; got != 0 {
		t.Errorf("%d nodes are left", got)
	}
}

func TestLookup(t *testing.T) {
	sets := map[string]func(i int) string{
		"numbered": func(i int) string { return fmt.Sprint("field", i) },
		"short":    func(i int) string { return strings.Repeat(string(rune('a'+i%26)), i/26) },
		// Same length, same first and last eight bytes: all hash alike.
		"colliding": func(i int) string { return fmt.Sprintf("aaaaaaaa%06dzzzzzzzz", i) },
	}
	for name, key := range sets {
		for _, n := range []int{0, 1, 2, 7, 100, 5000} {
			var list []Prop
			seen := map[string]bool{}
			for i := range n {
				if k := key(i); !seen[k] {
					seen[k] = true
					list = append(list, Prop{Name: k})
				}
			}
			p := NewProps(list)
			if p.Len() != len(list) {
				t.Fatalf("%s: %d properties, want %d", name, p.Len(), len(list))
			}
			for i := range p.Len() {
				if i > 0 && p.At(i-1).Name >= p.At(i).Name {
					t.Fatalf("%s: not sorted at %d", name, i)
				}
				if got := p.Lookup([]byte(p.At(i).Name)); got != i {
					t.Fatalf("%s: Lookup(%q) = %d, want %d", name, p.At(i).Name, got, i)
				}
			}
			for _, absent := range []string{"absent", "-", "aaaaaaaaxxxxxxzzzzzzzz", strings.Repeat("q", 300)} {
				if got := p.Lookup([]byte(absent)); got != -1 {
					t.Errorf("%s: Lookup(%q) = %d", name, absent, got)
				}
			}
		}
	}
	if got := (*Props)(nil).Lookup([]byte("a")); got != -1 {
		t.Errorf("a nil Props has property %d", got)
	}
}

func TestManyProperties(t *testing.T) {
	var b Builder
	defer b.Close()
	d := b.Node(&Node{Flags: HasDefault, Rare: &Rare{Default: "1"}})
	var list []Prop
	for i := range maxRank + 10 {
		list = append(list, Prop{Name: fmt.Sprintf("p%07d", i), Node: d})
	}
	p := NewProps(list)
	if got := p.Lookup([]byte("p0065540")); got != 65540 {
		t.Errorf("rank %d, want 65540", got)
	}
	if len(p.Defaults) != len(list) {
		t.Errorf("%d defaults, want %d", len(p.Defaults), len(list))
	}
}

func BenchmarkLookup(b *testing.B) {
	var list []Prop
	var keys [][]byte
	for _, name := range strings.Fields("additionalOutputFormats commonName dnsNames duration emailAddresses encodeUsagesInRequest ipAddresses isCA issuerRef keystores literalSubject nameConstraints otherNames privateKey renewBefore renewBeforePercentage revisionHistoryLimit secretName secretTemplate signatureAlgorithm subject uris usages") {
		list = append(list, Prop{Name: name})
		keys = append(keys, []byte(name))
	}
	p := NewProps(list)
	i := 0
	for b.Loop() {
		if p.Lookup(keys[i%len(keys)]) < 0 {
			b.Fatal("not found")
		}
		i++
	}
}

func TestRequire(t *testing.T) {
	var list []Prop
	for i := range 130 {
		list = append(list, Prop{Name: fmt.Sprintf("p%03d", i)})
	}
	p := NewProps(list)
	if p.IsRequired(0) {
		t.Error("a property is required before any was")
	}
	required := map[string]bool{"p000": true, "p001": true, "p063": true, "p064": true, "p129": true}
	others := p.Require([]string{"p000", "x", "p001", "p063", "p064", "p129", "p064", "y"})
	if fmt.Sprint(others) != "[x y]" || p.Required != len(required) {
		t.Errorf("others %v, %d required", others, p.Required)
	}
	for i := range p.Len() {
		if got := p.IsRequired(i); got != required[p.At(i).Name] {
			t.Errorf("%s is required: %v", p.At(i).Name, got)
		}
	}
}

// TestLookupOfWhatIsNotThere: a search ends for any number of names, because tables have free
// places.
func TestLookupOfWhatIsNotThere(t *testing.T) {
	var list []Prop
	for i := range 70 {
		list = append(list, Prop{Name: fmt.Sprintf("p%03d", i)})
		p := NewProps(slices.Clone(list))
		for j := range 70 {
			want := j
			if j > i {
				want = -1
			}
			if got := p.Lookup(fmt.Appendf(nil, "p%03d", j)); got != want {
				t.Fatalf("%d names: p%03d is at %d", i+1, j, got)
			}
		}
		if got := p.Lookup([]byte("")); got != -1 {
			t.Fatalf("%d names: the empty one is at %d", i+1, got)
		}
	}
}

func TestDefault(t *testing.T) {
	if got := (&Node{}).Default(); got != "" {
		t.Errorf("a node without a default has %s", got)
	}
	if got := (&Node{Flags: HasDefault, Rare: &Rare{Default: `"a"`}}).Default(); got != `"a"` {
		t.Errorf("the default is %s", got)
	}
}

// TestSpecifiesMeta: a schema that leaves out any of what every resource has, or gives it
// another type, does not specify it.
func TestSpecifiesMeta(t *testing.T) {
	resource := func(kind, version, meta, name, prefix Type) *Node {
		props := func(list ...Prop) *Props {
			return NewProps(slices.DeleteFunc(list, func(p Prop) bool { return p.Node.Type == Untyped }))
		}
		return &Node{Type: Object, Props: props(Prop{"kind", &Node{Type: kind}}, Prop{"apiVersion", &Node{Type: version}},
			Prop{"metadata", &Node{Type: meta, Props: props(Prop{"name", &Node{Type: name}}, Prop{"generateName", &Node{Type: prefix}})}})}
	}
	for _, c := range []struct {
		n    *Node
		want bool
	}{
		{resource(String, String, Object, String, String), true},
		{resource(Integer, String, Object, String, String), false},
		{resource(String, Untyped, Object, String, String), false},
		{resource(String, String, Array, String, String), false},
		{resource(String, String, Untyped, String, String), false},
		{resource(String, String, Object, Integer, String), false},
		{resource(String, String, Object, String, Untyped), false},
		{resource(Untyped, Untyped, Object, Untyped, Untyped), false},
	} {
		if got := SpecifiesMeta(c.n); got != c.want {
			t.Errorf("%+v: %v", c.n, got)
		}
	}
}
