package espalier_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/finding"
)

// TestUnfoldedUnionsAgree: the published schema without x-kubernetes-unions
// admits the same objects as the keyword alone, for all combinations of
// members and discriminators.
func TestUnfoldedUnionsAgree(t *testing.T) {
	const properties = `"properties":{"a":{"type":"integer"},"b":{"type":"integer","nullable":true},"c":{"type":"integer"},"d":{"type":"string"},"e":{"type":"string"}}`
	for _, extra := range []string{``, `,"oneOf":[{"required":["a"]},{"required":["c"]}]`, `,"allOf":[{"maxProperties":3}]`} {
		for _, unions := range []string{
			`{"discriminator":"d","fields":{"a":"A","b":"B"}}`,
			`{"discriminator":"d","fields":{"a":"A"}}`,
			`{"fields":{"a":"","b":"","c":""}}`,
			`{"fields":{"c":""}}`,
			`{"discriminator":"d","fields":{"a":"A","b":"B"}},{"discriminator":"e","fields":{"c":"B"}}`,
			`{"discriminator":"d","fields":{"a":"A","b":"B"}},{"fields":{"c":"","e":""}}`,
			`{"discriminator":"d","fields":{"a":"A"}},{"discriminator":"d","fields":{"b":"B"}}`, // the second is wrong
		} {
			schema := `{"type":"object",` + properties + extra + `,"x-kubernetes-unions":[` + unions + `]}`
			published, err := espalier.UnfoldUnions([]byte(schema))
			if err != nil {
				t.Fatal(err)
			}
			compareValidations(t, schema, withoutUnions(t, published), unionObjects())
		}
	}
}

// unionObjects are all objects over the members a, b and c and the
// discriminators d and e.
func unionObjects() []string {
	parts := [][]string{{``, `"a":1`}, {``, `"b":1`, `"b":null`}, {``, `"c":1`}, nil, nil}
	for i, name := range []string{"d", "e"} {
		parts[3+i] = []string{``, `"` + name + `":"A"`, `"` + name + `":"B"`, `"` + name + `":""`, `"` + name + `":"b"`}
	}
	objects := []string{``}
	for _, choices := range parts {
		var longer []string
		for _, o := range objects {
			for _, c := range choices {
				longer = append(longer, strings.Trim(o+","+c, ","))
			}
		}
		objects = longer
	}
	for i := range objects {
		objects[i] = "{" + objects[i] + "}"
	}
	return objects
}

func withoutUnions(t *testing.T, schema []byte) string {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	if s["x-kubernetes-unions"] == nil {
		t.Fatalf("the published schema has lost its unions: %s", schema)
	}
	delete(s, "x-kubernetes-unions")
	out, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func compareValidations(t *testing.T, left, right string, objects []string) {
	t.Helper()
	validate := func(schema string) func(string) espalier.Validation {
		s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{})
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		return func(object string) espalier.Validation {
			v, err := s.Validate([]byte(object), espalier.ValidateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
	}
	a, b := validate(left), validate(right)
	valid := 0
	for _, o := range objects {
		x, y := a(o), b(o)
		if x.Valid() != y.Valid() {
			t.Fatalf("%s:\n%s says %v\n%s says %v", o, left, x.Err(), right, y.Err())
		}
		if x.Valid() {
			valid++
		}
	}
	alone := strings.Contains(left, `"fields":{"c":""}}]`) && !strings.Contains(left, "Of") // excludes nothing
	if valid == 0 || valid == len(objects) && !alone {
		t.Errorf("%s admits %d of %d objects", left, valid, len(objects))
	}
}

// TestUnionsThatAreWarnedOfHaveNoEffect: a schema all of whose unions are
// well-formed has no warnings about them; if there are some, objects that the
// rest of the unions and the schema admit are admitted.
func TestUnionsThatAreWarnedOfHaveNoEffect(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	of := func(list ...string) string { return list[r.IntN(len(list))] }
	clean, warned := 0, 0
	for range 3000 {
		discriminator, other := of("", "d", "d", "e", "x"), of("", "d", "e")
		value := func(d string) string {
			if (d == "") == (r.IntN(8) > 0) {
				return ""
			}
			return of("A", "B", "C")
		}
		u := fmt.Sprintf(`{"discriminator":%q,"fields":{"a":%q,"b":%q}}`, discriminator, value(discriminator), value(discriminator))
		if r.IntN(3) == 0 {
			u += fmt.Sprintf(`,{"discriminator":%q,"fields":{%q:%q}}`, other, of("b", "c", "e", "x"), value(other))
		}
		schema := fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"},"c":{"type":"integer"},"d":{"type":"string"%s},"e":{"type":%q}},"x-kubernetes-unions":[%s]}`,
			of("", `,"enum":["A","B"]`, `,"enum":["A"]`), of("string", "string", "integer"), u)
		findings, err := espalier.Check([]byte(schema), espalier.CheckOptions{})
		if err != nil {
			t.Fatal(err)
		}
		faulty := map[string]bool{} // unions, by the start of their path
		for _, f := range findings {
			if f.Severity != finding.Warning || !strings.HasPrefix(string(f.Check), "union-") {
				t.Fatalf("%s: %v", schema, f)
			}
			index, _, _ := strings.Cut(f.Path, "]")
			faulty[index] = true
		}
		published, err := espalier.UnfoldUnions([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		// Every union that is unfolded contributes a oneOf.
		unfolded := strings.Count(string(published), `"oneOf"`)
		if want := strings.Count(u, `"fields"`) - len(faulty); unfolded != want {
			t.Fatalf("%s: %d unions have no findings, %d are unfolded:\n%s\n%s", schema, want, unfolded, renderFindings(findings), published)
		}
		if len(faulty) == 0 {
			clean++
		} else {
			warned++
		}
	}
	if clean < 100 || warned < 100 {
		t.Errorf("%d schemas without findings, %d with", clean, warned)
	}
}

func TestUnfoldUnionsRefusesWhatIsNoSchema(t *testing.T) {
	for _, src := range []string{`{`, `{"type":1}`} {
		if out, err := espalier.UnfoldUnions([]byte(src)); err == nil {
			t.Errorf("%s unfolds to %s", src, out)
		}
	}
}
