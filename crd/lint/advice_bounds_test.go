package lint

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// realField is a string field and the longest value of it that is real.
type realField struct {
	name, schema string // the schema without its type
	longest      string
}

func realFields() []realField {
	arn := "arn:aws:iam::123456789012:role/" + strings.Repeat("path/", 396)
	dns := strings.Repeat(strings.Repeat("a", 49)+".", 5) + "abc"
	return []realField{
		{"roleArn", ``, arn},
		{"target", `,"description":"The ARN of the target."`, arn},
		{"callbackURL", ``, "https://example.org/" + strings.Repeat("p", 2028)},
		{"x", `,"format":"uri"`, "https://example.org/" + strings.Repeat("p", 2028)},
		{"hosts", ``, dns},
		{"domainName", ``, dns},
		{"secretName", ``, dns},
		{"namespace", ``, strings.Repeat("n", 63)},
		{"image", ``, dns + "/" + strings.Repeat("n", 255) + ":" + strings.Repeat("t", 128) + "@sha256:" + strings.Repeat("0", 64)},
		{"mountPath", ``, "/" + strings.Repeat("d", 4095)},
		{"caBundle", ``, "-----BEGIN CERTIFICATE-----" + strings.Repeat("A", 200_000)},
		{"x", `,"format":"byte"`, strings.Repeat("QUJD", 50_000)},
		{"x", `,"format":"ipv6"`, "0000:0000:0000:0000:0000:ffff:255.255.255.255"},
		{"x", `,"format":"uuid"`, "123e4567-e89b-12d3-a456-426614174000"},
		{"x", `,"pattern":"^[a-z]{3,700}$"`, strings.Repeat("z", 700)},
		{"x", `,"pattern":"^(prod|test)-[0-9]{1,9}$"`, "prod-123456789"},
		{"x", `,"default":"` + strings.Repeat("d", 900) + `"`, strings.Repeat("d", 900)},
		{"x", `,"example":"` + strings.Repeat("e", 1900) + `"`, strings.Repeat("e", 1900)},
		{"x", `,"minLength":777`, strings.Repeat("m", 777)},
		{"x", `,"description":"At most 5,000 characters."`, strings.Repeat("c", 5000)},
		{"message", ``, strings.Repeat("m", 32768)},
		{"email", ``, strings.Repeat("l", 64) + "@" + dns},
		{"topologyKey", ``, dns + "/" + strings.Repeat("k", 63)},
	}
}

// costlyRules are rules about a list l of objects with a text and a second list.
var costlyRules = []string{
	"self.l.all(x, self.l.exists_one(y, x.%[1]s == y.%[1]s))",
	"self.l.all(x, x.%[1]s.matches('^[a-z]+$'))",
	"self.l.all(x, self.k.exists(y, y == x.%[1]s || x.%[1]s.contains(y)))",
	"self.l.map(x, x.%[1]s).all(y, self.k.all(z, z != y))",
	"self.k.all(x, self.k.all(y, x == y || self.l.exists(z, z.%[1]s == x)))",
	"self.l.all(x, x.%[1]s.startsWith('a') || x.%[1]s.endsWith('b') || x.%[1]s.contains('c') || x.%[1]s.find('[a-z]+') == 'd')",
	"self.m.all(k, self.m[k].all(y, self.m[k].all(z, y == z)))",
}

// TestAdviceForBounds applies the bounds that are proposed for generated schemas. With
// them the schema compiles, costs less, and accepts every real value.
func TestAdviceForBounds(t *testing.T) {
	fields := realFields()
	schemas, sets, bounds, values, unreachable := 0, 0, 0, 0, 0
	for seed := uint64(1); sets < *advised/3; seed++ {
		r := rand.New(rand.NewPCG(seed, 21))
		f, k := fields[r.IntN(len(fields))], fields[r.IntN(len(fields))]
		rules := []map[string]string{}
		for range 1 + r.IntN(3) {
			rule := costlyRules[r.IntN(len(costlyRules))]
			if strings.Contains(rule, "%") {
				rule = fmt.Sprintf(rule, f.name)
			}
			rules = append(rules, map[string]string{"rule": rule})
		}
		raw, err := json.Marshal(rules)
		if err != nil {
			t.Fatal(err)
		}
		schema := fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object","required":["l","k","m"],"properties":{`+
			`"l":{"type":"array","items":{"type":"object","required":[%q],"properties":{%[1]q:{"type":"string"%s}}}},`+
			`"k":{"type":"array","items":{"type":"string"%s}},`+
			`"m":{"type":"object","additionalProperties":{"type":"array","items":{"type":"string","maxLength":10}}}},"x-kubernetes-validations":%s}}}`, f.name, f.schema, k.schema, raw)
		// Values of the format byte are no strings to rules.
		if found, err := crd.Check([]byte(schema), crd.CheckOptions{}); err != nil || slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Check == cel.RuleExpression }) {
			continue
		}
		schemas++
		remedy, err := cel.Remedies([]byte(schema), cel.CheckOptions{})
		if err != nil {
			t.Fatal(schema, err)
		}
		if remedy == nil {
			continue
		}
		if len(remedy.Bounds) == 0 {
			unreachable++
			continue
		}
		sets++
		bounds += len(remedy.Bounds)
		after := withBounds(t, schema, remedy.Bounds)
		found, err := crd.Check([]byte(after), crd.CheckOptions{})
		if err != nil || len(finding.Errors(found)) > 0 {
			t.Fatalf("with %+v\n%s\nhas errors: %v %v", remedy.Bounds, after, found, err)
		}
		if remedy.After >= remedy.Before {
			t.Errorf("%+v do not help: %d to %d", remedy.Bounds, remedy.Before, remedy.After)
		}
		for i := range remedy.Bounds {
			fewer := append(append([]cel.Bound{}, remedy.Bounds[:i]...), remedy.Bounds[i+1:]...)
			if found, err := crd.Check([]byte(withBounds(t, schema, fewer)), crd.CheckOptions{}); err != nil || len(finding.Errors(found)) == 0 {
				t.Errorf("%+v is too many: it does without %+v", remedy.Bounds, remedy.Bounds[i])
			}
		}
		// A field of a list has the evidence of its own name, items that of the list.
		object := map[string]any{"spec": map[string]any{"l": []any{map[string]any{f.name: f.longest}}, "k": []any{}, "m": map[string]any{}}}
		values++
		accepts(t, schema, after, object)
		lists := map[string]any{"l": []any{}, "k": []any{}, "m": map[string]any{}}
		for range 8 { // a list that nothing is known about has a few items at least
			lists["l"] = append(lists["l"].([]any), map[string]any{f.name: f.longest})
		}
		if k.schema != "" && k.name == "x" {
			lists["k"] = []any{k.longest}
		}
		values++
		accepts(t, schema, after, map[string]any{"spec": lists})
		if t.Failed() {
			t.FailNow()
		}
	}
	t.Logf("advice: %d schemas, %d sets of %d bounds, %d values: 0 real values refused; no set for %d schemas", schemas, sets, bounds, values, unreachable)
}

// withBounds adds bounds to a schema, the last first.
func withBounds(t *testing.T, schema string, bounds []cel.Bound) string {
	t.Helper()
	var document map[string]any
	if err := json.Unmarshal([]byte(schema), &document); err != nil {
		t.Fatal(err)
	}
	for _, b := range bounds {
		at := document
		for token := range strings.SplitSeq(strings.TrimPrefix(b.Pointer, "/"), "/") {
			at = at[token].(map[string]any)
		}
		at[b.Keyword] = b.Value
	}
	raw, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// accepts demands that a schema with bounds accepts what the schema before did, apart
// from its rules.
func accepts(t *testing.T, before, after string, object any) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	valid := func(schema string) espalier.Validation {
		s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, v, err := s.Admit(raw, espalier.AdmitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	if v := valid(before); !v.Valid() {
		t.Fatalf("%.300s is not real: %v", raw, v.Errors)
	}
	if v := valid(after); !v.Valid() {
		t.Errorf("bounds refuse %.300s: %.300v\n%s", raw, v.Errors[0].Error(), after)
	}
}
