package cel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/cel/celsize"
	"github.com/espalier-dev/espalier/finding"
)

func checked(t testing.TB, schema string, o CheckOptions) []finding.Finding {
	t.Helper()
	found, err := Check([]byte(schema), o)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCheck(t *testing.T) {
	const try = " (try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
	for _, c := range []struct {
		name, schema string
		want         []string // rule: text
	}{
		{"nothing is wrong", specWith(`"a":{"type":"integer"}`, `{"rule":"self.a > 1","messageExpression":"string(self.a)"}`), nil},
		{
			"an expression that does not parse", specWith(`"a":{"type":"integer"}`, `{"rule":"self.a >","message":"m"}`),
			[]string{`rule-expression: properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.a \u003e","Message":"m","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:9: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}` + "\n | self.a >\n | ........^"},
		},
		{
			"one of the wrong type", specWith(`"a":{"type":"integer"}`, `{"rule":"self.a"}`),
			[]string{`rule-expression: properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self.a","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool`},
		},
		{
			"a messageExpression of the wrong type", specWith(`"a":{"type":"integer"}`, `{"rule":"true","messageExpression":"self.a"}`),
			[]string{`rule-message-expression: properties[spec].x-kubernetes-validations[0].messageExpression: Invalid value: {"Rule":"true","Message":"","MessageExpression":"self.a","Reason":null,"FieldPath":"","OptionalOldSelf":null}: messageExpression must evaluate to a string`},
		},
		{
			"old values of items", specWith(`"l":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":3,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`, `{"rule":"self.l == oldSelf.l"}`),
			[]string{`rule-old-self: properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[spec].properties[l]`},
		},
		{
			"old values of lists in lists", specWith(`"l":{"type":"array","maxItems":3,"items":{"type":"array","maxItems":3,"items":{"type":"string","maxLength":3,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}}`, `{"rule":"true"}`),
			[]string{`rule-old-self: properties[spec].properties[l].items.items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[spec].properties[l]`},
		},
		{
			"old values of items of a set", specWith(`"l":{"type":"array","maxItems":3,"x-kubernetes-list-type":"set","items":{"type":"string","maxLength":3,"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`, `{"rule":"true"}`),
			[]string{`rule-old-self: properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used on the uncorrelatable portion of the schema within properties[spec].properties[l]`},
		},
		{
			"old values of items with keys", specWith(`"l":{"type":"array","maxItems":3,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string","maxLength":3}},"x-kubernetes-validations":[{"rule":"self == oldSelf"}]}}`, `{"rule":"true"}`), nil,
		},
		{
			"optionalOldSelf for nothing", specWith(`"a":{"type":"integer"}`, `{"rule":"true","optionalOldSelf":false}`),
			[]string{`rule-optional-old-self: properties[spec].x-kubernetes-validations[0].optionalOldSelf: Invalid value: false: may not be set if oldSelf is not used in rule`},
		},
		{
			"a list that is wrong itself, called like a keyword", specWith(`"items":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"},"x-kubernetes-validations":[{"rule":"self +"}]}`, ``), nil,
		},
		{
			"a list that is wrong itself, called nothing", specWith(`"":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object"},"x-kubernetes-validations":[{"rule":"self +"}]}`, ``), nil,
		},
		{
			"a default with unknown fields, and a rule that does not compile", specWith(`"a":{"type":"object","default":{"u":1},"x-kubernetes-validations":[{"rule":"self.b","message":"m"}]}`, ``),
			[]string{`rule-default: properties[spec].properties[a].default: Invalid value: "object": rule compile error: compilation failed: ERROR: <input>:1:5: undefined field 'b'` + "\n | self.b\n | ....^"},
		},
		{
			"values without a type", specWith(`"a":{"x-kubernetes-preserve-unknown-fields":true,"x-kubernetes-validations":[{"rule":"true"}]}`, ``),
			[]string{`rule-type: properties[spec].properties[a].x-kubernetes-validations: Internal error: internal error: failed to construct type information for x-kubernetes-validations rules: unable to convert structural schema to CEL declarations`},
		},
		{
			"a rule that may cost too much", specWith(`"l":{"type":"array","items":{"type":"string"}}`, `{"rule":"self.l.all(x, self.l.all(y, x == y))"}`),
			[]string{
				"rule-cost: properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x" + try,
				"rule-total-cost: properties[spec].x-kubernetes-validations[0].rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema",
				"rule-total-cost: <nil>: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema exceeds budget by factor of more than 100x" + try,
			},
		},
		{
			"a message that may", specWith(`"s":{"type":"string"}`, `{"rule":"true","messageExpression":"self.s.matches('`+strings.Repeat("x", 200)+`') ? 'a' : 'b'"}`),
			[]string{"rule-cost: properties[spec].x-kubernetes-validations[0].messageExpression: Forbidden: estimated messageExpression cost exceeds budget by factor of 1.6x" + try},
		},
		{
			"other errors at a schema or below", specWith(`"l":{"type":"array","uniqueItems":true,"items":{"type":"string","x-kubernetes-validations":[{"rule":"nope"}]}},"m":{"type":"object","x-kubernetes-validations":[{"rule":"nope"}]}`, `{"rule":"nope"}`),
			[]string{
				`rule-expression: properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"nope","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')` + "\n | nope\n | ^",
				`rule-expression: properties[spec].properties[m].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"nope","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ERROR: <input>:1:1: undeclared reference to 'nope' (in container '')` + "\n | nope\n | ^",
			},
		},
		{
			"another error below the root", `{"type":"object","properties":{"l":{"type":"array","uniqueItems":true,"items":{"type":"string"}}},"x-kubernetes-validations":[{"rule":"nope"}]}`, nil,
		},
		{
			"items of a list that is wrong itself", specWith(`"l":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"object","x-kubernetes-validations":[{"rule":"self"}]},"x-kubernetes-validations":[{"rule":"self"}]}`, ``),
			[]string{`rule-expression: properties[spec].properties[l].items.x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool`},
		},
		{
			"a key that is wrong for its list", specWith(`"l":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","properties":{"k":{"type":"string","x-kubernetes-validations":[{"rule":"self"}]}}},"x-kubernetes-validations":[{"rule":"self"}]}`, ``),
			[]string{`rule-expression: properties[spec].properties[l].items.properties[k].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: cel expression must evaluate to a bool`},
		},
		{"an optional old value", specWith(`"a":{"type":"integer"}`, `{"rule":"oldSelf.hasValue() && self.a > 1","optionalOldSelf":true}`), nil},
		{
			"a default that violates one rule, and a rule that does not compile", specWith(`"a":{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 1","message":"small"}]}`, `{"rule":"nope"}`),
			[]string{`rule-default: properties[spec].properties[a].default: Invalid value: 1: small`},
		},
		{
			"types that are too large", specWith(`"a":{"type":"integer"}`, `{"rule":"`+strings.Repeat("[", 130)+strings.Repeat("]", 130)+` == []"}`),
			[]string{`rule-expression: properties[spec].x-kubernetes-validations[0].rule: Invalid value: {"Rule":"` + strings.Repeat("[", 130) + strings.Repeat("]", 130) + ` == []","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}: compilation failed: ` + celsize.Reason},
		},
		{"values without a type, and without rules", specWith(`"l":{"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}}`, `{"rule":"true"}`), nil},
		{
			"a default with several values that violate a rule", specWith(`"m":{"type":"object","default":{"b":1,"a":1},"additionalProperties":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","message":"small"}]}}`, ``),
			[]string{`rule-default: properties[spec].properties[m].default[a]: Invalid value: 1: small`, `rule-default: properties[spec].properties[m].default[b]: Invalid value: 1: small`},
		},
		{"a schema that is not structural", `{"type":"object","properties":{"a":{},"b":{"type":"string","x-kubernetes-validations":[{"rule":"nope"}]}}}`, nil},
		{
			"a default that violates a rule", specWith(`"a":{"type":"integer","default":1,"x-kubernetes-validations":[{"rule":"self > 1","message":"small"},{"rule":"self > oldSelf","message":"grows"}]}`, `{"rule":"nope"}`),
			[]string{
				`rule-default: properties[spec].properties[a].default: Invalid value: 1: small`,
				`rule-default: properties[spec].properties[a].default: Invalid value: 1: grows`,
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range checked(t, strings.Replace(c.schema, `,"x-kubernetes-validations":[]`, "", 1), CheckOptions{}) {
				got = append(got, string(f.Check)+": "+f.Error())
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("\n got %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestCheckPointsIntoTheExpression(t *testing.T) {
	schema := specWith(`"a":{"type":"integer"}`, `{"rule":"self.a == 1 \u0026\u0026\n 'ä\ud83d\ude00' == self.b","message":"m"},{"rule":"true","messageExpression":"string(self.nope)"},{"rule":"self.a =="}`)
	found := checked(t, schema, CheckOptions{Path: "spec.schema"})
	if len(found) != 3 {
		t.Fatal(found)
	}
	for i, want := range []struct{ pointer, path, text string }{
		{"/properties/spec/x-kubernetes-validations/0/rule", "spec.schema.properties[spec].x-kubernetes-validations[0].rule", ".b\""},
		{"/properties/spec/x-kubernetes-validations/1/messageExpression", "spec.schema.properties[spec].x-kubernetes-validations[1].messageExpression", ".nope"},
		// The error is behind the end of the text.
		{"/properties/spec/x-kubernetes-validations/2/rule", "spec.schema.properties[spec].x-kubernetes-validations[2].rule", `"self.a =="`},
	} {
		f := found[i]
		if f.Pointer != want.pointer || f.Path != want.path || !strings.HasPrefix(schema[f.Offset:], want.text) {
			t.Errorf("%s %s %q", f.Pointer, f.Path, schema[f.Offset:])
		}
	}
}

// Half a pair of surrogates is a character by itself, whatever follows.
func TestOffsetsBehindEscapes(t *testing.T) {
	for _, text := range []string{`\ud83dxude00`, `\ud83d\u0041`, `\ud83d\ud83d`, `\u00e4\\\"\/`, `\ud83d\ude00`} {
		schema := specWith(`"a":{"type":"integer"}`, `{"rule":"\"`+text+`\" == self.b"}`)
		schema = strings.Replace(schema, `\"`, `'`, 1)
		schema = strings.Replace(schema, `\" == self.b`, `' == self.b`, 1)
		found := checked(t, schema, CheckOptions{Path: "s"})
		if len(found) != 1 || !strings.HasPrefix(schema[found[0].Offset:], ".b") {
			t.Errorf("%s: %v", text, found)
		}
	}
	found := checked(t, `{"type":"object","x-kubernetes-validations":[{"rule":"nope"}]}`, CheckOptions{Path: "s"})
	if len(found) != 1 || found[0].Path != "s.x-kubernetes-validations[0].rule" {
		t.Error(found)
	}
}

func TestCheckKnowsVersions(t *testing.T) {
	schema := specWith(`"s":{"type":"string","maxLength":9}`, `{"rule":"isSemver(self.s)"}`)
	if found := checked(t, schema, CheckOptions{CompatibilityVersion: "1.32"}); len(found) != 1 {
		t.Error("1.32 has no semver", found)
	}
	if found := checked(t, schema, CheckOptions{CompatibilityVersion: "1.33"}); len(found) != 0 {
		t.Error(found)
	}
	if _, err := Check([]byte(schema), CheckOptions{CompatibilityVersion: "x"}); err == nil {
		t.Error("no error for a version that is none")
	}
	if _, err := Check([]byte(`{`), CheckOptions{}); err == nil {
		t.Error("no error for what is no JSON")
	}
}

func TestCosts(t *testing.T) {
	schema := specWith(`"l":{"type":"array","items":{"type":"object","properties":{"s":{"type":"string","x-kubernetes-validations":[{"rule":"self.startsWith('x')"}]}}}},"b":{"type":"array","maxItems":10,"items":{"type":"string","maxLength":10}}`,
		`{"rule":"self.l.all(x, x.s.matches('^[a-z]+$'))"},{"rule":"self.b.all(x, x == 'a')","messageExpression":"self.b[0]"}`)
	costs, err := Costs([]byte(schema), CheckOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range costs {
		got = append(got, fmt.Sprintf("%s cost %d times %d total %d", c.Path, c.Cost, c.Times, c.Total))
		for _, b := range c.Bounds {
			got = append(got, fmt.Sprintf("  %s %d at %s (%s): %d", b.Keyword, b.Value, b.Path, b.Pointer, b.Total))
		}
	}
	want := []string{
		"properties[spec].properties[l].items.properties[s].x-kubernetes-validations[0].rule cost 2 times 1048576 total 2097152",
		"  maxItems 1024 at properties[spec].properties[l] (/properties/spec/properties/l): 2048",
		"properties[spec].x-kubernetes-validations[0].rule cost 659712009828 times 1 total 659712009828",
		"  maxItems 1024 at properties[spec].properties[l] (/properties/spec/properties/l): 644250627",
		"  maxLength 4096 at properties[spec].properties[l].items.properties[s] (/properties/spec/properties/l/items/properties/s): 3361795",
		"properties[spec].x-kubernetes-validations[1].rule cost 53 times 1 total 53",
		"properties[spec].x-kubernetes-validations[1].messageExpression cost 3 times 1 total 3",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestPartsOfCosts(t *testing.T) {
	schema := specWith(`"b":{"type":"array","maxItems":10,"items":{"type":"string","maxLength":10}}`, `{"rule":"self.b.all(x, x == 'a' || x.matches('b+')) && self.b.size() > 1"}`)
	costs, err := Costs([]byte(schema), CheckOptions{})
	if err != nil || len(costs) != 1 {
		t.Fatal(costs, err)
	}
	var whole uint64
	seen := map[string]uint64{}
	for _, p := range costs[0].Parts {
		if p.Line != 1 || schema[p.Offset-1:] == "" {
			t.Errorf("%+v", p)
		}
		seen[fmt.Sprintf("%s@%d", p.What, p.Column)] += p.Cost
		whole = max(whole, p.Cost)
	}
	if whole != costs[0].Cost {
		t.Errorf("the outermost part costs %d, the whole %d", whole, costs[0].Cost)
	}
	for part, cost := range map[string]uint64{"&&@44": costs[0].Cost, "matches@36": 10 * (1 + 5), "==@17": 10 * (1 + 1), "size@58": 3, "x@15": 10, "&&@11": 0} {
		if seen[part] != cost {
			t.Errorf("%s costs %d, want %d; all: %v", part, seen[part], cost, seen)
		}
	}
}

// TestStoredAndUnlimited checks what is not held against a changed CRD.
func TestStoredAndUnlimited(t *testing.T) {
	newer := specWith(`"a":{"type":"string"}`, `{"rule":"isSemver(self.a)","messageExpression":"string(isSemver(self.a))"}`)
	old := CheckOptions{CompatibilityVersion: "1.30"}
	if got := checked(t, newer, old); len(got) != 1 || got[0].Check != RuleExpression {
		t.Errorf("a new rule: %v", got)
	}
	old.Stored.Rules = map[string]bool{"isSemver(self.a)": true}
	if got := checked(t, newer, old); len(got) != 1 || got[0].Check != RuleMessageExpression {
		t.Errorf("a stored rule with a new message: %v", got)
	}
	old.Stored.Messages = map[string]bool{"string(isSemver(self.a))": true}
	if got := checked(t, newer, old); len(got) != 0 {
		t.Errorf("both are stored: %v", got)
	}

	costly := specWith(`"l":{"type":"array","maxItems":50,"items":{"type":"string","maxLength":10000}}`, `{"rule":"self.l.all(x, self.l.all(y, x.contains(y)))"}`)
	if got := checked(t, costly, CheckOptions{}); !slices.ContainsFunc(got, func(f finding.Finding) bool { return f.Check == RuleCost }) {
		t.Errorf("limited: %v", got)
	}
	for _, f := range checked(t, costly, CheckOptions{Unlimited: true}) {
		if f.Check == RuleCost {
			t.Errorf("unlimited: %v", f)
		}
	}
}
