package diff_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
)

// crdWith returns a CRD with one version of the given schema.
func crdWith(schema string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
		"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}}]}}`, schema)
}

// parsed is a CRD with a schema.
func parsed(schema string) *crd.CRD {
	d, err := crd.Parse(crdWith(schema))
	if err != nil {
		panic(err)
	}
	return d
}

// both parses two CRDs.
func both(old, now []byte, limits espalier.Limits) (a, b *crd.CRD, err error) {
	if a, err = crd.ParseWithin(old, limits); err == nil {
		b, err = crd.ParseWithin(now, limits)
	}
	return a, b, err
}

func compare(old, now []byte, limits ...espalier.Limits) ([]diff.Change, error) {
	a, b, err := both(old, now, append(limits, espalier.Limits{})[0])
	if err != nil {
		return nil, err
	}
	return diff.Compare(a, b)
}

func objects(old, now []byte, list [][]byte) ([]diff.Outcome, error) {
	a, b, err := both(old, now, espalier.Limits{})
	if err != nil {
		return nil, err
	}
	return diff.Objects(a, b, list, espalier.Limits{})
}

// spec returns the schema of objects with a spec of some fields.
func spec(fields string) string {
	return `{"type":"object","properties":{"spec":{"type":"object","properties":{` + fields + `}}}}`
}

func ExampleCompare() {
	old := parsed(spec(`"replicas":{"type":"integer","maximum":10}, "colour":{"type":"string","enum":["red","green"]}`))
	now := parsed(spec(`"replicas":{"type":"integer","maximum":5}, "colour":{"type":"string","enum":["red","green","blue"]}`))
	changes, err := diff.Compare(old, now)
	for _, c := range changes {
		fmt.Println(c.Level, "for", c.Breaks, "at", c.Path)
		fmt.Println(" ", c.Check, c.Old, "->", c.New)
	}
	fmt.Println(err)
	// Output:
	// risky for readers at spec.colour
	//   enum-value-added "red", "green" -> "red", "green", "blue"
	// breaking for writers, stored objects at spec.replicas
	//   maximum-lowered 10 -> 5
	// <nil>
}

func ExampleObjects() {
	old := parsed(spec(`"replicas":{"type":"integer"}, "colour":{"type":"string"}`))
	now := parsed(spec(`"replicas":{"type":"integer","maximum":5}, "size":{"type":"string","default":"small"}`))
	outcomes, err := diff.Objects(old, now, [][]byte{
		[]byte(`{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"oak"},"spec":{"replicas":9,"colour":"red"}}`),
	}, espalier.Limits{})
	for _, x := range outcomes {
		fmt.Println(x.Name, x.Fate)
		fmt.Println(x.Invalid, x.Pruned, x.Defaulted)
	}
	fmt.Println(err)
	// Output:
	// oak becomes invalid, loses fields, is newly defaulted
	// [spec.replicas: Invalid value: 9: spec.replicas in body should be less than or equal to 5] [spec.colour] [spec.size]
	// <nil>
}

func TestChecksAreSortedAndExplained(t *testing.T) {
	checks := diff.Checks()
	if !slices.IsSortedFunc(checks, func(a, b diff.CheckInfo) int { return cmp.Compare(a.ID, b.ID) }) {
		t.Error("the rules are not sorted")
	}
	for _, r := range checks {
		if string(r.ID) != strings.ToLower(string(r.ID)) || !strings.HasSuffix(r.Explanation, ".") || r.Breaks == 0 {
			t.Errorf("%+v", r)
		}
	}
	checks[0].ID = "changed"
	if diff.Checks()[0].ID == "changed" {
		t.Error("the table can be changed from outside")
	}
}

// Pointers lead to what changed, in both documents, or to what lacks it.
func TestPointers(t *testing.T) {
	base := "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/"
	for _, c := range []struct{ name, old, now, oldAt, newAt string }{
		{"bound", `"f":{"type":"integer","maximum":3}`, `"f":{"type":"integer","maximum":2}`, base + "f/maximum", base + "f/maximum"},
		{"added", `"f":{"type":"integer"}`, `"f":{"type":"integer","maximum":2}`, base + "f", base + "f/maximum"},
		{"in allOf", `"f":{"type":"integer"}`, `"f":{"type":"integer","allOf":[{"minimum":0},{"minimum":2}]}`, base + "f", base + "f/allOf/0/minimum"},
		{"removed", `"f":{"type":"integer"},"a/b~c":{"type":"string"}`, `"f":{"type":"integer"}`, base + "a~1b~0c", "/spec/versions/0/schema/openAPIV3Schema/properties/spec"},
		{"rule", `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self>1"}]}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self>1"},{"rule":"self<5"}]}`,
			base + "f/x-kubernetes-validations", base + "f/x-kubernetes-validations/1"},
	} {
		changes, err := compare(crdWith(spec(c.old)), crdWith(spec(c.now)))
		if err != nil || len(changes) != 1 {
			t.Fatalf("%s: %v %v", c.name, changes, err)
		}
		if x := changes[0]; x.OldPointer != c.oldAt || x.NewPointer != c.newAt {
			t.Errorf("%s: %s, %s", c.name, x.OldPointer, x.NewPointer)
		}
	}
}

func TestMessages(t *testing.T) {
	for _, c := range []struct{ name, old, now, want string }{
		{"an example of what is refused", `"f":{"type":"string","pattern":"^[a-z]*$"}`, `"f":{"type":"string","pattern":"^[a-z]+$"}`, `the API server accepted strings such as ""`},
		{"ratcheting", `"f":{"type":"integer"}`, `"f":{"type":"integer","maximum":2}`, "an update may keep an invalid value"},
		{"doubt", `"f":{"type":"integer"}`, `"f":{"type":"integer","not":{"maximum":2}}`, "could not prove"},
		{"names of values", `"f":{"type":"string","enum":["a","b","c"]}`, `"f":{"type":"string","enum":["b"]}`, `the API server rejects the removed values "a", "c"`},
		{"old values", `"f":{"type":"integer"}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf"}]}`, "the rule reads oldSelf"},
	} {
		changes, err := compare(crdWith(spec(c.old)), crdWith(spec(c.now)))
		if err != nil || len(changes) != 1 || !strings.Contains(changes[0].Message, c.want) || changes[0].Fix == "" {
			t.Errorf("%s: %+v %v", c.name, changes, err)
		}
	}
}

func TestErrors(t *testing.T) {
	fine := crdWith(`{"type":"object"}`)
	for _, c := range []struct {
		name     string
		old, now []byte
		want     string
	}{
		{"not a schema", fine, crdWith(`{"type":1}`), `the new CRD: version v1: `},
		{"not a schema before", crdWith(`{"type":1}`), fine, `the old CRD: version v1: `},
	} {
		_, err := compare(c.old, c.now)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	_, err := compare(fine, crdWith(`{"type":1}`))
	var syntax *espalier.SyntaxError
	if !errors.As(err, &syntax) || syntax.Pointer != "/spec/versions/0/schema/openAPIV3Schema/type" {
		t.Errorf("%v", err)
	}
}

func TestObjects(t *testing.T) {
	old := crdWith(spec(`"f":{"type":"integer","default":1,"nullable":true}`))
	object := func(version, spec string) []byte {
		return []byte(`{"apiVersion":"orchard.example/` + version + `","kind":"Tree","metadata":{"namespace":"n","name":"a"},"spec":` + spec + `}`)
	}
	for _, c := range []struct {
		name   string
		now    []byte
		object []byte
		want   diff.Fate
	}{
		{"same", old, object("v1", `{"f":1}`), 0},
		{"pruned in both", old, object("v1", `{"g":1}`), 0},
		{"default changed", crdWith(spec(`"f":{"type":"integer","default":2,"nullable":true}`)), object("v1", `{}`), diff.ChangesOtherwise},
		{"default added", crdWith(spec(`"f":{"type":"integer","default":1,"nullable":true},"g":{"type":"integer","default":2}`)), object("v1", `{}`), diff.NewlyDefaulted},
		{"kept", crdWith(spec(`"f":{"type":"integer","default":1,"nullable":true},"g":{"type":"integer"}`)), object("v1", `{"g":2}`), diff.KeepsFields},
		{"pruned", crdWith(spec(`"g":{"type":"integer"}`)), object("v1", `{"f":1}`), diff.LosesFields},
		{"invalid", crdWith(spec(`"f":{"type":"integer","default":1,"nullable":true,"x-kubernetes-validations":[{"rule":"self < 5"}]}`)), object("v1", `{"f":5}`), diff.BecomesInvalid},
		{"invalid before", crdWith(spec(`"f":{"type":"integer","default":1,"nullable":true,"maximum":3}`)), object("v1", `{"f":"x"}`), 0},
		{"no such version", old, object("v7", `{}`), diff.Unknown},
		{"another kind", old, []byte(`{"apiVersion":"v1","kind":"Pod"}`), diff.Unknown},
		{"not JSON", old, []byte(`{`), diff.Unknown},
		{"metadata that is none", old, []byte(`{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":1}}`), 0},
		{"not served", []byte(strings.Replace(string(old), `"served":true`, `"served":false`, 1)), object("v1", `{"f":1}`), diff.NotServed},
		{"version gone", []byte(strings.Replace(string(old), `"name":"v1"`, `"name":"v2"`, 1)), object("v1", `{"f":1}`), diff.NotServed},
	} {
		got, err := objects(old, c.now, [][]byte{c.object})
		if err != nil || len(got) != 1 || got[0].Fate != c.want || (c.want&(diff.Unknown|diff.NotServed|diff.ChangesOtherwise) != 0) != (got[0].Explanation != "") {
			t.Errorf("%s: %+v %v", c.name, got, err)
		}
	}
	if _, err := objects(old, crdWith(`{"properties":{"f":{}}}`), [][]byte{object("v1", `{}`)}); err == nil {
		t.Error("a schema that is not structural is compiled")
	}
}

// CRDs of v1beta1 that preserve unknown fields need no structural schema: values are validated, nothing is pruned.
func TestObjectsOfAncientCRDs(t *testing.T) {
	ancient := func(schema string) []byte {
		return []byte(`{"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},
			"spec":{"group":"orchard.example","version":"v1","names":{"plural":"trees","kind":"Tree"},"validation":{"openAPIV3Schema":` + schema + `}}}`)
	}
	object := []byte(`{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a"},"spec":{"f":7,"g":1}}`)
	got, err := objects(ancient(`{"properties":{"spec":{"properties":{"f":{"maximum":9}}}}}`), ancient(`{"properties":{"spec":{"properties":{"f":{"maximum":5}}}}}`), [][]byte{object})
	if err != nil || got[0].Fate != diff.BecomesInvalid {
		t.Errorf("%+v %v", got, err)
	}
	got, err = objects(ancient(`{}`), crdWith(spec(`"f":{"type":"integer"}`)), [][]byte{object})
	if err != nil || got[0].Fate != diff.LosesFields || !slices.Equal(got[0].Pruned, []string{"spec.g"}) {
		t.Errorf("%+v %v", got, err)
	}
}

// hostile are pairs of schemas that would take long if anything were quadratic.
var hostile = map[string]func(n int) (old, now string){
	"fields": func(n int) (string, string) {
		field := func(kind string) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,"f%d":{"type":"%s"}`, i, kind)
			}
			return spec(b.String()[1:])
		}
		return field("string"), field("integer")
	},
	"depth": func(n int) (string, string) {
		nest := func(leaf string) string {
			n := min(n, 2000)
			return strings.Repeat(`{"type":"object","properties":{"a":`, n) + leaf + strings.Repeat("}}", n)
		}
		return nest(`{"type":"string"}`), nest(`{"type":"integer"}`)
	},
	"values": func(n int) (string, string) {
		enum := func(from int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,"v%d"`, i+from)
			}
			return spec(`"f":{"type":"string","enum":[` + b.String()[1:] + `]}`)
		}
		return enum(0), enum(n / 2)
	},
	"branches": func(n int) (string, string) {
		anyOf := func(from int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,{"maximum":%d}`, i+from)
			}
			return spec(`"f":{"type":"integer","anyOf":[` + b.String()[1:] + `]}`)
		}
		return anyOf(1000), anyOf(0)
	},
	"nested branches": func(n int) (string, string) {
		nest := func(leaf string) string {
			n := min(n, 500)
			return spec(`"f":{"type":"integer",` + strings.Repeat(`"anyOf":[{"maximum":1},{`, n) + leaf + strings.Repeat("}]", n) + `}`)
		}
		return nest(`"minimum":1`), nest(`"minimum":2`)
	},
	"demands": func(n int) (string, string) {
		allOf := func(by int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,{"maximum":%d}`, i+by)
			}
			return spec(`"f":{"type":"integer","allOf":[` + b.String()[1:] + `]}`)
		}
		return allOf(2), allOf(1)
	},
	"rules": func(n int) (string, string) {
		rules := func(from int) string {
			var b strings.Builder
			for i := range n {
				fmt.Fprintf(&b, `,{"rule":"self > %d"}`, i+from)
			}
			return spec(`"f":{"type":"integer","x-kubernetes-validations":[` + b.String()[1:] + `]}`)
		}
		return rules(0), rules(n)
	},
	"required": func(n int) (string, string) {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"f%d"`, i)
		}
		return `{"type":"object"}`, `{"type":"object","required":[` + b.String()[1:] + `]}`
	},
	"patterns": func(n int) (string, string) {
		field := func(pattern string) string {
			var b strings.Builder
			for i := range n / 10 {
				fmt.Fprintf(&b, `,"f%d":{"type":"string","pattern":%q}`, i, fmt.Sprintf(pattern, i))
			}
			return spec(b.String()[1:])
		}
		return field("^(a|b)*a(a|b){12}%d$"), field("^(a|b)*a(a|b){11}a%d$")
	},
}

func TestCostIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("measures time")
	}
	for name, pair := range hostile {
		t.Run(name, func(t *testing.T) {
			const size = 10_000
			old, now := pair(size)
			began := time.Now()
			changes, err := compare(crdWith(old), crdWith(now), espalier.Limits{MaxDepth: 100_000})
			if err != nil {
				t.Fatal(err)
			}
			// Quadratic work would take minutes.
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("%v for %d bytes", took, len(old)+len(now))
			}
			if !slices.ContainsFunc(changes, func(c diff.Change) bool { return c.Level != diff.Safe }) {
				t.Error("nothing is reported")
			}
		})
	}
}

func TestTooManyChanges(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much to do: it runs without the race detector")
	}
	old, now := hostile["fields"](20_000)
	changes, err := compare(crdWith(old), crdWith(now))
	if err != nil || len(changes) > 10_001 || !slices.ContainsFunc(changes, func(c diff.Change) bool { return c.Check == "not-compared" && c.Level == diff.Risky }) {
		t.Errorf("%d changes, %v", len(changes), err)
	}
}
