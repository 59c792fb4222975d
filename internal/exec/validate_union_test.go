package exec

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

func unionNode(unions ...plan.Union) *plan.Node {
	return &plan.Node{Rare: &plan.Rare{Unions: unions, UnionNames: plan.NewUnionNames(unions)}}
}

// volume is the union of the KEP's litmus test.
var volume = plan.Union{Discriminator: "type", Fields: []plan.UnionField{{Name: "emptyDir", Value: "EmptyDir"}, {Name: "hostPath", Value: "HostPath"}}}

// source is a union without a discriminator.
var source = plan.Union{Fields: []plan.UnionField{{Name: "git"}, {Name: "http"}, {Name: "oci"}}}

func TestUnions(t *testing.T) {
	for _, c := range []struct {
		object string
		want   []string
	}{
		{`{"emptyDir":{}}`, nil},
		{`{"type":"HostPath","hostPath":{},"git":null,"other":1}`, nil},
		{`{"type":"Host\u0050ath","hostPath":false}`, nil},
		{`{"emptyDir":null}`, nil},
		{`[]`, nil},
		{`null`, nil},
		{`{}`, []string{`spec: Required value: one of the fields "emptyDir", "hostPath" must be set, found none: set one; the discriminator "type" says which`}},
		{`{"type":"HostPath"}`, []string{`spec: Required value: one of the fields "emptyDir", "hostPath" must be set, found none: "type" is "HostPath", set "hostPath"`}},
		{`{"type":"NFS"}`, []string{`spec: Required value: one of the fields "emptyDir", "hostPath" must be set, found none: set one, and set the discriminator "type" to its value`}},
		{`{"type":null}`, []string{`spec: Required value: one of the fields "emptyDir", "hostPath" must be set, found none: set one, and set the discriminator "type" to its value`}},
		{`{"hostPath":1,"emptyDir":2}`, []string{`spec: Forbidden: at most one of the fields "emptyDir", "hostPath" may be set, found "hostPath", "emptyDir": keep one, and set the discriminator "type" to its value`}},
		{`{"type":"HostPath","hostPath":1,"emptyDir":null}`, []string{`spec: Forbidden: at most one of the fields "emptyDir", "hostPath" may be set, found "hostPath", "emptyDir": "type" is "HostPath", keep only "hostPath"`}},
		{`{"type":"EmptyDir","hostPath":1}`, []string{`spec.type: Invalid value: "EmptyDir": must be "HostPath", because the field "hostPath" is set; for "EmptyDir" set "emptyDir" instead`}},
		{`{"type":"","hostPath":1}`, []string{`spec.type: Invalid value: "": must be "HostPath", because the field "hostPath" is set`}},
		{`{"type":7,"hostPath":1}`, []string{`spec.type: Invalid value: 7: must be "HostPath", because the field "hostPath" is set`}},
		{`{"hostPath":1,"git":{},"oci":{}}`, []string{`spec: Forbidden: at most one of the fields "git", "http", "oci" may be set, found "git", "oci": keep one`}},
		{`{"git":1,"http":2,"oci":3}`, []string{
			`spec: Required value: one of the fields "emptyDir", "hostPath" must be set, found none: set one; the discriminator "type" says which`,
			`spec: Forbidden: at most one of the fields "git", "http", "oci" may be set, found "git", "http", "oci": keep one`,
		}},
	} {
		d := parse(t, c.object)
		n := unionNode(volume, source)
		list := unionErrors(d, jsondoc.Root, n, path{{key: []byte("spec")}})
		if got := render(list); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", c.object, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
		if valid := unionsValid(d, jsondoc.Root, n); valid != (len(c.want) == 0) {
			t.Errorf("%s: valid is %v", c.object, valid)
		}
		for _, v := range list {
			if v.Keyword != "x-kubernetes-unions" || v.At != v.Path {
				t.Errorf("%s: %+v", c.object, v)
			}
			if v.Path == "spec.type" && d.Offset(jsondoc.Root+2) != v.Offset || v.Path == "spec" && v.Offset != 0 {
				t.Errorf("%s: %s points to byte %d", c.object, v.Path, v.Offset)
			}
		}
	}
	list := unionErrors(parse(t, `{}`), jsondoc.Root, unionNode(volume), nil)
	if len(list) != 1 || list[0].Path != "<nil>" || list[0].At != "" {
		t.Errorf("at the root: %+v", list)
	}
}

// TestUnionsBySpecification compares with the specification, word for word and slow,
// on all combinations of members and discriminators of several unions.
func TestUnionsBySpecification(t *testing.T) {
	unions := []plan.Union{
		{Discriminator: "d", Fields: []plan.UnionField{{Name: "a", Value: "A"}, {Name: "b", Value: "B"}}},
		{Fields: []plan.UnionField{{Name: "p"}, {Name: "q"}}},
		{Discriminator: "e", Fields: []plan.UnionField{{Name: "x", Value: "A"}, {Name: "y", Value: "Y"}}},
	}
	values := []string{"", `"A"`, `"B"`, `"Y"`, `"\u0041"`, `""`, `null`, `{}`}
	members := []string{"a", "p", "x", "b", "q", "y"} // those of one union are not side by side
	for count := 1; count <= len(unions); count++ {
		n := unionNode(unions[:count]...)
		valid := 0
		for set := range 1 << len(members) {
			for _, d := range values {
				for _, e := range values {
					var list []string
					for i, m := range members {
						if set>>i&1 != 0 {
							list = append(list, fmt.Sprintf("%q:%d", m, i))
						}
					}
					for name, value := range map[string]string{"d": d, "e": e} {
						if value != "" {
							list = append(list, fmt.Sprintf("%q:%s", name, value))
						}
					}
					src := "{" + strings.Join(list, ",") + "}"
					doc := parse(t, src)
					want := bySpecification(doc, unions[:count])
					if got := unionsValid(doc, jsondoc.Root, n); got != want {
						t.Fatalf("%s: valid is %v", src, got)
					}
					if errs := unionErrors(doc, jsondoc.Root, n, nil); (len(errs) == 0) != want {
						t.Fatalf("%s: %v", src, render(errs))
					}
					if want {
						valid++
					}
				}
			}
		}
		if valid == 0 {
			t.Errorf("%d unions: nothing is valid", count)
		}
	}
}

func bySpecification(d *jsondoc.Doc, unions []plan.Union) bool {
	for _, u := range unions {
		set := 0
		for _, f := range u.Fields {
			if _, ok := d.Get(jsondoc.Root, f.Name); !ok {
				continue
			}
			set++
			if v, ok := d.Get(jsondoc.Root, u.Discriminator); u.Discriminator != "" && ok && (d.Kind(v) != jsondoc.String || d.Text(v) != f.Value) {
				return false
			}
		}
		if set > 1 || set == 0 && u.Discriminator != "" {
			return false
		}
	}
	return true
}

func TestUnionsAllocateNothing(t *testing.T) {
	n := unionNode(volume, source)
	for _, src := range []string{`{"type":"HostPath","hostPath":{},"git":{}}`, `{"emptyDir":{},"a":1,"b":2}`, `{"hostPath":1,"emptyDir":2}`, `{}`} {
		d := parse(t, src)
		if allocs := testing.AllocsPerRun(100, func() { unionsValid(d, jsondoc.Root, n) }); allocs > 0 {
			t.Errorf("%s: %v allocations", src, allocs)
		}
	}
}

// TestManyUnions: unions, members and objects of any number, in time that
// depends on the object's size alone.
func TestManyUnions(t *testing.T) {
	const many = 10_000
	wide := plan.Union{Discriminator: "d"}
	var unions []plan.Union
	var members, nested strings.Builder
	for i := range many {
		name := fmt.Sprintf("m%05d", i)
		wide.Fields = append(wide.Fields, plan.UnionField{Name: name, Value: "V" + name})
		unions = append(unions, plan.Union{Discriminator: "d" + name, Fields: []plan.UnionField{{Name: name, Value: "V"}, {Name: "x" + name, Value: "W"}}})
		fmt.Fprintf(&members, `,%q:1,"d%s":"V"`, name, name)
		fmt.Fprintf(&nested, `,{"d%s":"V",%q:1}`, name, name)
	}
	all := parse(t, "{"+members.String()[1:]+"}")
	if unionsValid(all, jsondoc.Root, unionNode(wide)) {
		t.Error("all members of a union together are valid")
	}
	if !unionsValid(all, jsondoc.Root, unionNode(unions...)) {
		t.Error("one member of each union is not valid")
	}
	list := unionErrors(all, jsondoc.Root, unionNode(wide), nil)
	if len(list) != 1 || len(list[0].Detail) > 2000 || !strings.Contains(list[0].Detail, "and 9990 more") {
		t.Errorf("%d errors: %v", len(list), render(list))
	}
	// Many small objects. None satisfies any of the many unions.
	node, objects := unionNode(unions...), parse(t, "["+nested.String()[1:]+"]")
	for _, item := range objects.Items(jsondoc.Root) {
		if unionsValid(objects, item, node) {
			t.Fatal("one member of ten thousand unions is enough")
		}
	}
	if errs := unionErrors(objects, jsondoc.Root+1, node, path{{key: []byte(strings.Repeat("k", 100_000))}}); len(errs) == 0 || len(errs) > 1000 {
		t.Errorf("%d errors with long paths", len(errs))
	}
	// Both the paths and the texts of errors count: these are 9 KB each.
	long := plan.Union{Discriminator: "d"}
	for range maxListed {
		long.Fields = append(long.Fields, plan.UnionField{Name: strings.Repeat("n", maxQuoted)})
	}
	errs := unionErrors(parse(t, "{}"), jsondoc.Root, unionNode(slices.Repeat([]plan.Union{long}, 2200)...), path{{key: bytes.Repeat([]byte("k"), 8000)}})
	if len(errs) < 1700 || len(errs) > 1900 {
		t.Errorf("%d errors with long paths and texts", len(errs))
	}
}

// FuzzUnions: no panic, and errors if and only if not valid.
func FuzzUnions(f *testing.F) {
	f.Add([]byte(`{"type":"HostPath","hostPath":{},"git":null}`), uint64(1))
	f.Add([]byte(`{"a":1,"b":2,"\u0061":3}`), uint64(2))
	f.Fuzz(func(t *testing.T, object []byte, seed uint64) {
		d, ok := canonicalDoc(t, object)
		if !ok {
			return
		}
		r := rand.New(rand.NewPCG(seed, 1))
		names := []string{"a", "b", "type", "hostPath", "git", "", "x"}
		r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		unions := []plan.Union{
			{Discriminator: names[0], Fields: []plan.UnionField{{Name: names[1], Value: "A"}, {Name: names[2], Value: "HostPath"}}},
			{Fields: []plan.UnionField{{Name: names[3]}, {Name: names[4]}}},
		}
		n := unionNode(unions...)
		valid := unionsValid(d, jsondoc.Root, n)
		if errs := unionErrors(d, jsondoc.Root, n, nil); valid != (len(errs) == 0) {
			t.Fatalf("%s: valid is %v, errors %v", object, valid, render(errs))
		}
		if d.Kind(jsondoc.Root) == jsondoc.Object && valid != bySpecification(d, unions) {
			t.Fatalf("%s: valid is %v", object, valid)
		}
	})
}
