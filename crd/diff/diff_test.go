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
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/costtest"
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
	if first := checks[0].Check(); first.ID != checks[0].ID || first.Severity != finding.Error || first.Explanation != checks[0].Explanation || first.Source == "" {
		t.Errorf("%+v", first)
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
		{"rule removed", `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self>1"},{"rule":"self<5"}]}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self>1"}]}`,
			base + "f/x-kubernetes-validations/1", base + "f/x-kubernetes-validations"},
		{"raised", `"f":{"type":"integer","maximum":3}`, `"f":{"type":"integer","allOf":[{"maximum":4}]}`, base + "f/maximum", base + "f/allOf/0/maximum"},
		{"no longer there", `"f":{"type":"integer","allOf":[{"maximum":3}]}`, `"f":{"type":"integer"}`, base + "f/allOf/0/maximum", base + "f"},
		{"items", `"f":{"type":"array","items":{"type":"string"}}`, `"f":{"type":"array","items":{"type":"string","maxLength":1}}`, base + "f/items", base + "f/items/maxLength"},
		{"values", `"f":{"type":"object","additionalProperties":{"type":"string"}}`, `"f":{"type":"object","additionalProperties":{"type":"string","maxLength":1}}`,
			base + "f/additionalProperties", base + "f/additionalProperties/maxLength"},
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

// TestMessages has messages as users read them. What is cut off repeats what others say.
func TestMessages(t *testing.T) {
	const later = "; an update may keep an invalid value that it does not change (ratcheting, Kubernetes 1.30 and later)"
	for _, c := range []struct{ name, old, now, want string }{
		{"an example of what is refused", `"f":{"type":"string","pattern":"^[a-z]*$"}`, `"f":{"type":"string","pattern":"^[a-z]+$"}`,
			`pattern changed from ^[a-z]*$ to ^[a-z]+$: the API server accepted strings such as "" and now rejects them` + later},
		{"no example", `"f":{"type":"string","format":"date"}`, `"f":{"type":"string","format":"date","pattern":"^1"}`,
			"pattern: ^1 was added: the API server rejects strings that do not match" + later},
		{"large pattern", `"f":{"type":"string"}`, `"f":{"type":"string","pattern":"^a{900}b{900}$"}`,
			"pattern: ^a{900}b{900}$ was added: the API server rejects strings that do not match" + later},
		{"added", `"f":{"type":"integer"}`, `"f":{"type":"integer","maximum":2}`, "maximum: 2 was added: the API server rejects larger numbers" + later},
		{"lowered", `"f":{"type":"integer","maximum":3}`, `"f":{"type":"integer","maximum":2}`, "maximum was lowered from 3 to 2: the API server rejects larger numbers" + later},
		{"bound of another type", `"f":{"type":"integer"}`, `"f":{"type":"integer","maximum":2.5}`,
			"maximum: 2.5 was added: kube-apiserver cannot compare numbers of this type with the bound, and rejects all numbers or none" + later},
		{"range", `"f":{"type":"integer"}`, `"f":{"type":"integer","format":"int32"}`, "format: int32 was added: the API server rejects numbers outside its range" + later},
		{"anyOf added", `"f":{"type":"integer"}`, `"f":{"type":"integer","anyOf":[{"maximum":2},{"minimum":5}]}`,
			"anyOf was added: the API server rejects values that match no branch" + later},
		{"oneOf added", `"f":{"type":"integer"}`, `"f":{"type":"integer","oneOf":[{"maximum":2},{"minimum":5}]}`,
			"oneOf was added: the API server rejects values that match no branch or several" + later},
		{"not changed", `"f":{"type":"integer","not":{"maximum":1}}`, `"f":{"type":"integer","not":{"maximum":2}}`,
			"not changed: the API server rejects values that match its schema" + later},
		{"names of values", `"f":{"type":"string","enum":["a","b","c"]}`, `"f":{"type":"string","enum":["b"]}`,
			`enum changed from "a", "b", "c" to "b": the API server rejects the removed values "a", "c"` + later},
		{"values added", `"f":{"type":"string","enum":["b"]}`, `"f":{"type":"string","enum":["a","b","c"]}`,
			`the API server accepts more values: readers that handle each value may get one that they do not handle (new values: "a", "c")`},
		{"required", `"f":{"type":"object","properties":{"a":{"type":"string"}}}`, `"f":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
			"the field is now required: the API server rejects objects without it" + later},
		{"raised", `"f":{"type":"integer","maximum":2}`, `"f":{"type":"integer","maximum":3}`,
			"maximum was raised or removed: all valid objects stay valid, but readers may get values that they did not get before"},
		{"typed format", `"f":{"type":"string","format":"date","x-kubernetes-validations":[{"rule":"true"}]}`, `"f":{"type":"string","x-kubernetes-validations":[{"rule":"true"}]}`,
			"format was relaxed or removed: all valid objects stay valid, but readers may get values that they did not get before; CEL rules now see the value as a string"},
		{"type below rules", `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"true"}]}`, `"f":{"type":"number","x-kubernetes-validations":[{"rule":"true"}]}`,
			"the type was widened from integer to number: all valid objects stay valid, but readers may get values that they cannot decode, and CEL rules see the value as another type"},
		{"null and defaults", `"f":{"type":"integer","default":1}`, `"f":{"type":"integer","default":1,"nullable":true}`,
			"null is now a value: the API server dropped it before, and now readers get it; writers that send null got the default before, or are now rejected because the enum does not list null"},
		{"list type", `"f":{"type":"array","items":{"type":"string"}}`, `"f":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`,
			"the list type changed from atomic to set: the API server rejects lists in which two items are now duplicates, and server-side apply merges lists differently"},
		{"rule added", `"f":{"type":"integer"}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 5"}]}`,
			`the CEL rule "self < 5" was added: the API server rejects objects that violate it` + later},
		{"rule tightened", `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 6"}]}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 5"}]}`,
			`the CEL rule "self < 6" was tightened to "self < 5": the API server may reject objects that satisfied the old rule` + later},
		{"rule relaxed", `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 5"}]}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self < 6"}]}`,
			`the CEL rule "self < 5" was relaxed to "self < 6": all valid objects stay valid, but readers may get objects that the old rule rejected`},
		{"old values", `"f":{"type":"integer"}`, `"f":{"type":"integer","x-kubernetes-validations":[{"rule":"self >= oldSelf"}]}`,
			`the CEL rule "self >= oldSelf" was added: the API server rejects objects that violate it; the rule reads oldSelf, so it applies to updates, also of stored objects`},
	} {
		changes, err := compare(crdWith(spec(c.old)), crdWith(spec(c.now)))
		if err != nil || len(changes) != 1 {
			t.Fatalf("%s: %+v %v", c.name, changes, err)
		}
		x := changes[0]
		if x.Message != c.want {
			t.Errorf("%s:\n%s\nexpected:\n%s", c.name, x.Message, c.want)
		}
		// What breaks writers says what to do instead; what is safe needs no advice.
		if x.Fix == "" && x.Level == diff.Breaking || x.Fix != "" && x.Level == diff.Safe {
			t.Errorf("%s: %s, fix %q", c.name, x.Level, x.Fix)
		}
	}
}

// Changes of names quote what the check explains, as the second half of a sentence.
func TestMessagesOfNames(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"kind":"Tree"`, `"kind":"Plant"`, `spec.names.kind changed from "Tree" to "Plant": manifests, clients and stored objects contain the kind. The API server rejects or cannot read objects with the old kind`},
		{`"trees.orchard.example"`, `"plants.orchard.example"`, `metadata.name changed from "trees.orchard.example" to "plants.orchard.example": a CRD with another name is another CRD. Deleting the old CRD deletes all its objects`},
		{`["tr"]`, `["tr","te"]`, `"te" was added: kubectl accepts the new short name, unless another resource already uses it`},
		{`["tr"]`, `[]`, `"tr" was removed: commands and scripts that use the short name fail`},
	} {
		changes, err := compare([]byte(orchard), []byte(strings.Replace(orchard, c.from, c.to, 1)))
		if err != nil || len(changes) != 1 || changes[0].Message != c.want {
			t.Errorf("%+v %v, expected %s", changes, err, c.want)
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
			var changes []diff.Change
			var err error
			costtest.Within(t, 30*time.Second, func() { // quadratic work would take minutes
				changes, err = compare(crdWith(old), crdWith(now), espalier.Limits{MaxDepth: 100_000})
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(changes, func(c diff.Change) bool { return c.Level != diff.Safe }) {
				t.Error("nothing is reported")
			}
			if name == "demands" && !isIncomplete(changes, "the schemas are too complex to compare completely: changes that were not compared may be breaking") {
				t.Error("nothing says that the comparison is incomplete")
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
	if err != nil || len(changes) != 10_001 || !isIncomplete(changes, "the CRDs differ in too many places: further changes are not listed") {
		t.Errorf("%d changes, %v", len(changes), err)
	}
	// Long paths are cut off sooner.
	field := func(kind string) string {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, `,"f%d":{"type":"%s"}`, i, kind)
		}
		return spec(`"` + strings.Repeat("p", 3000) + `":{"type":"object","properties":{` + b.String()[1:] + `}}`)
	}
	changes, err = compare(crdWith(field("string")), crdWith(field("integer")))
	if err != nil || len(changes) < 1000 || len(changes) > 2500 || !isIncomplete(changes, "the CRDs differ in too many places: further changes are not listed") {
		t.Errorf("%d changes with long paths, %v", len(changes), err)
	}
}

// isIncomplete reports whether one change says that there may be others, and why.
func isIncomplete(changes []diff.Change, why string) bool {
	var list []diff.Change
	for _, x := range changes {
		if x.Check == "not-compared" {
			list = append(list, x)
		}
	}
	return len(list) == 1 && list[0].Message == why && list[0].Level == diff.Risky && list[0].Breaks == diff.AllAudiences && list[0].Version == "v1"
}

// A large schema is walked to its end: what proofs may cost does not limit the walk.
func TestLastOfManyFields(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much to do: it runs without the race detector")
	}
	var b strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&b, `"f%d":{"type":"string"},`, i)
	}
	compareOnly(t, "many fields", crdWith(spec(b.String()+`"z":{"type":"integer","maximum":2}`)), crdWith(spec(b.String()+`"z":{"type":"integer","maximum":1}`)),
		only("breaking WS maximum-lowered spec.z 2 → 1"))
}
