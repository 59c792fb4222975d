package diff_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/diff"
)

// Changes that only objects decide: breaking with a witness, safe by proof.
func TestDecides(t *testing.T) {
	const fields = `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	const more = `"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"},"c":{"type":"string"},"d":{"type":"string"}}`
	const text = `"type":"string"`
	const small = `"type":"object","properties":{"a":{"type":"integer","minimum":1},"b":{"type":"integer","minimum":1}}`
	const needed = `"type":"object","required":["a","b"],"properties":{"a":{"type":"integer","minimum":1},"b":{"type":"string"}}`
	rule := func(text string) string { return `,"x-kubernetes-validations":[{"rule":"` + text + `"}]` }
	for _, c := range []struct {
		name, old, now string
		level          diff.Level
		witness        string // spec.f of the witness
	}{
		{"oneOf of required", fields, fields + `,"oneOf":[{"required":["a"]},{"required":["b"]}]`, diff.Breaking, `{}`},
		{"anyOf of required", fields, fields + `,"anyOf":[{"required":["a"]},{"required":["b"]}]`, diff.Breaking, `{}`},
		{"not of required", fields, fields + `,"not":{"required":["a","b"]}`, diff.Breaking, `{"a":"a","b":"a"}`},
		{"oneOf with a required field and a new one", fields + `,"required":["a"]`, more + `,"required":["a"],"oneOf":[{"required":["a"]},{"required":["c"]}]`, diff.Safe, ""},
		{"oneOf with two required fields", fields + `,"required":["a","b"]`, fields + `,"required":["a","b"],"oneOf":[{"required":["a"]},{"required":["b"]}]`, diff.Breaking, `{"a":"a","b":"a"}`},
		{"not of a new field", fields, more + `,"not":{"required":["c"]}`, diff.Safe, ""},
		{"not of new fields", fields, more + `,"not":{"required":["a","c"]}`, diff.Safe, ""},
		{"not of a new field with a default", fields, strings.Replace(more, `"c":{"type":"string"`, `"c":{"type":"string","default":"x"`, 1) + `,"not":{"required":["c","a"]}`, diff.Breaking, `{"a":"a"}`},
		{"anyOf without what is required", fields + `,"required":["a"]`, fields + `,"required":["a"],"anyOf":[{"not":{"required":["a"]}},{"required":["b"]}]`, diff.Breaking, `{"a":"a"}`},

		{"a rule about new fields", fields, more + rule("!has(self.c) || has(self.d)"), diff.Safe, ""},
		{"a rule about two new fields", fields, more + rule("!(has(self.c) && has(self.d))"), diff.Safe, ""},
		{"a rule about new fields, as a condition", fields, more + rule("has(self.c) ? self.c != 'x' : true"), diff.Safe, ""},
		{"a new field that an old one needs", fields, more + rule("!has(self.a) || has(self.c)"), diff.Breaking, `{"a":"a"}`},
		{"a new field that is filled in", fields, strings.Replace(more, `"c":{"type":"string"`, `"c":{"type":"string","default":"x"`, 1) + rule("!has(self.c) || self.c != 'x'"), diff.Breaking, ""},
		{"a rule about old fields", fields, fields + rule("!has(self.a) || self.a != 'z'"), diff.Breaking, `{"a":"z"}`},
		{"a rule that a bound implies", `"type":"integer","maximum":5`, `"type":"integer","maximum":5` + rule("self <= 5"), diff.Safe, ""},
		{"a rule that a bound does not imply", `"type":"integer","maximum":5`, `"type":"integer","maximum":5` + rule("self <= 4"), diff.Breaking, `5`},
		{"a rule that maxLength implies", `"type":"string","maxLength":5`, `"type":"string","maxLength":5` + rule("self.size() < 6"), diff.Safe, ""},
		{"a rule that maxLength does not imply", `"type":"string","maxLength":5`, `"type":"string","maxLength":5` + rule("self.size() < 5"), diff.Breaking, `"aaaaa"`},
		{"a rule that minItems implies", `"type":"array","minItems":1,"items":{"type":"string"}`, `"type":"array","minItems":1,"items":{"type":"string"}` + rule("size(self) > 0"), diff.Safe, ""},
		{"a rule that an enum implies", `"type":"string","enum":["a","b"]`, `"type":"string","enum":["a","b"]` + rule("self in ['a', 'b', 'c']"), diff.Safe, ""},
		{"a rule that an enum does not imply", `"type":"string","enum":["a","b"]`, `"type":"string","enum":["a","b"]` + rule("self in ['a', 'c']"), diff.Breaking, `"b"`},
		{"a rule that a pattern implies", `"type":"string","pattern":"^[a-c]+$"`, `"type":"string","pattern":"^[a-c]+$"` + rule("self.matches('^[a-z]+$')"), diff.Safe, ""},
		{"a rule that a pattern does not imply", `"type":"string","pattern":"^[a-z]+$"`, `"type":"string","pattern":"^[a-z]+$"` + rule("self.matches('^[a-c]+$')"), diff.Breaking, ""},
		{"a rule that required implies", fields + `,"required":["a"]`, fields + `,"required":["a"]` + rule("has(self.a)"), diff.Safe, ""},
		{"a rule that reads an optional field", fields, fields + rule("self.a != ''"), diff.Breaking, `{}`},
		{"a guard and a bound", `"type":"object","properties":{"a":{"type":"integer","minimum":1}}`, `"type":"object","properties":{"a":{"type":"integer","minimum":1}}` + rule("!has(self.a) || self.a > 0"), diff.Safe, ""},
		{"a rule about updates", `"type":"string"`, `"type":"string"` + rule("self == oldSelf"), diff.Breaking, ""},
		{"a rule about updates of new fields", fields, more + rule("!has(self.c) || self.c == oldSelf.c"), diff.Safe, ""},

		{"a rule about an optional field", fields, fields + rule("has(self.a)"), diff.Breaking, `{}`},
		{"a rule that reads a bounded optional field", small, small + rule("self.a >= 1"), diff.Breaking, `{}`},
		{"a size of an optional field", fields, fields + rule("size(self.a) >= 0"), diff.Breaking, `{}`},
		{"a size of a field of the old object", fields, fields + rule("size(oldSelf.a) >= 0"), diff.Risky, ""},
		{"items that may be null", `"type":"array","items":{"x-kubernetes-preserve-unknown-fields":true}`, `"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true}`, diff.Breaking, ""},
		{"a size of what may fail", fields, fields + rule("size(self.a + self.b) >= 0"), diff.Breaking, `{}`},
		{"a size of a bounded text", text + `,"maxLength":5,"allOf":[{"maxLength":9}]`, text + `,"maxLength":5,"allOf":[{"maxLength":9}]` + rule("size(self) <= 5"), diff.Safe, ""},
		{"one of two fields is present", small, small + rule("(has(self.a) || has(self.b)) ? self.a >= 1 : true"), diff.Breaking, `{"b":1}`},
		{"both fields are present", small, small + rule("(has(self.a) && has(self.b)) ? self.a + 0 == self.a && self.b >= 1 : true"), diff.Risky, ""},
		{"two fields are present", small, small + rule("(has(self.a) && has(self.b)) ? self.a >= 1 && self.b >= 1 : true"), diff.Safe, ""},
		{"two fields are not absent", small, small + rule("(!has(self.a) || !has(self.b)) ? true : self.a >= 1 && self.b >= 1"), diff.Safe, ""},
		{"a condition with a constant", small, small + rule("(has(self.a) && true) ? true : true"), diff.Safe, ""},
		{"a condition with another constant", small, small + rule("(has(self.a) || false) ? true : true"), diff.Safe, ""},
		{"a condition that may fail", small, small + rule("(self.a == 1 || has(self.b)) ? true : true"), diff.Breaking, `{}`},
		{"a condition that may fail after another", small, small + rule("(has(self.b) && self.a == 1) ? true : true"), diff.Breaking, `{"b":1}`},
		{"a new field of an optional one", `"type":"object","properties":{"o":{"type":"object","properties":{"p":{"type":"string"}}}}`,
			`"type":"object","properties":{"o":{"type":"object","properties":{"p":{"type":"string"},"q":{"type":"string"}}}}` + rule("!has(self.o.q)"), diff.Breaking, `{}`},
		{"a rule without a field", fields, fields + rule("has(self) || has(self.a)"), diff.Breaking, ""},
		{"a rule without an argument", fields, fields + rule("has() || has(self.a)"), diff.Breaking, ""},
		{"a rule with a costly pattern", text + `,"pattern":"^[a-c]+$"`, text + `,"pattern":"^[a-c]+$"` + rule("self.matches('^[a-cxyz0-9]+$')"), diff.Risky, ""},
		{"a costly pattern beside maxLength", text + `,"pattern":"^[a-c]+$","maxLength":2000000`, text + `,"pattern":"^[a-c]+$","maxLength":2000000` + rule("self.matches('^[a-cxyz0-9]+$')"), diff.Safe, ""},
		{"a costly pattern beside a bounded one", text + `,"pattern":"^[a-c]{1,9}$"`, text + `,"pattern":"^[a-c]{1,9}$"` + rule("self.matches('^[a-cxyz0-9]+$')"), diff.Safe, ""},
		{"a costly pattern that decides nothing", needed, needed + rule("self.b.matches('^[a-cxyz0-9]+$') || self.a >= 1"), diff.Risky, ""},
		{"a costly pattern that is not compared", needed, needed + rule("self.a >= 1 || self.b.matches('^[a-cxyz0-9]+$')"), diff.Safe, ""},
		{"a costly pattern after what is false", needed, needed + rule("!(!(self.a >= 1) && self.b.matches('^[a-cxyz0-9]+$'))"), diff.Safe, ""},
		{"a costly condition", needed, needed + rule("self.a >= 1 ? 1 <= self.a || self.a >= 1 : self.b.matches('^[a-cxyz0-9]+$')"), diff.Safe, ""},
		{"a costly comparison", needed, needed + rule("self.b == self.b + 'x' || self.a >= 1"), diff.Risky, ""},
		{"a comparison with a constant", needed, needed + rule("self.b == 'x' || self.b in ['x', 'y'] || !(self.a != 2) || self.a >= 1"), diff.Safe, ""},
		{"a length that a format changes", text + `,"minLength":4,"enum":["aaaa"]`, text + `,"minLength":4,"enum":["aaaa"],"format":"byte"` + rule("size(self) >= 4"), diff.Breaking, `"aaaa"`},

		{"minLength beside a captured pattern", text + `,"pattern":"(^[a-z]{2}$)"`, text + `,"pattern":"(^[a-z]{2}$)","maxLength":2`, diff.Safe, ""},
		{"maxLength beside repetitions", text + `,"pattern":"^a+b$"`, text + `,"pattern":"^a+b$","maxLength":2`, diff.Breaking, `"aab"`},
		{"a pattern beside a large minLength", text + `,"minLength":100`, text + `,"minLength":100,"pattern":"^(?s:.+)$"`, diff.Safe, ""},
		{"a pattern beside a larger minLength", text + `,"minLength":101`, text + `,"minLength":101,"pattern":"^(?s:.+)$"`, diff.Risky, ""},
		{"maxLength beside two enums", text + `,"enum":["a","bbb"],"allOf":[{"enum":["a","ccc"]}]`, text + `,"enum":["a","bbb"],"allOf":[{"enum":["a","ccc"]}],"maxLength":1`, diff.Safe, ""},

		{"minLength beside a pattern", `"type":"string","pattern":"^[a-z]+$"`, `"type":"string","pattern":"^[a-z]+$","minLength":1`, diff.Safe, ""},
		{"a larger minLength", `"type":"string","pattern":"^[a-z]+$"`, `"type":"string","pattern":"^[a-z]+$","minLength":2`, diff.Breaking, `"a"`},
		{"minLength beside an optional pattern", `"type":"string","pattern":"^[a-z]*$"`, `"type":"string","pattern":"^[a-z]*$","minLength":1`, diff.Breaking, `""`},
		{"minLength beside a format", `"type":"string","format":"date"`, `"type":"string","format":"date","minLength":1`, diff.Safe, ""},
		{"maxLength beside a pattern", `"type":"string","pattern":"^[a-z]{2,4}(-[0-9])?$"`, `"type":"string","pattern":"^[a-z]{2,4}(-[0-9])?$","maxLength":6`, diff.Safe, ""},
		{"a smaller maxLength", `"type":"string","pattern":"^[a-z]{2,4}(-[0-9])?$"`, `"type":"string","pattern":"^[a-z]{2,4}(-[0-9])?$","maxLength":5`, diff.Breaking, ""},
		{"maxLength beside a pattern without an end", `"type":"string","pattern":"^[a-z]{2,4}"`, `"type":"string","pattern":"^[a-z]{2,4}","maxLength":6`, diff.Breaking, ""},
		{"a pattern beside minLength", `"type":"string","minLength":1`, `"type":"string","minLength":1,"pattern":"^(?s:.+)$"`, diff.Safe, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			old, now := crdWith(spec(`"f":{`+c.old+`}`)), crdWith(spec(`"f":{`+c.now+`}`))
			changes, err := compare(old, now)
			if err != nil {
				t.Fatal(err)
			}
			worst := diff.Safe
			for _, x := range changes {
				if x.Breaks&(diff.Writers|diff.Stored) == 0 || x.Check == "default-added" {
					continue
				}
				worst = max(worst, x.Level)
				if x.Level != diff.Breaking {
					continue
				}
				if x.Witness.Object == "" || x.Witness.Refusal == "" {
					t.Errorf("%s: no witness", x.Check)
					continue
				}
				var object struct {
					Spec struct{ F json.RawMessage }
				}
				if err := json.Unmarshal([]byte(x.Witness.Object), &object); err != nil {
					t.Fatal(err)
				}
				if c.witness != "" && string(object.Spec.F) != c.witness {
					t.Errorf("witness %s, expected %s", object.Spec.F, c.witness)
				}
				if x.Witness.Before == "" {
					outcomes, err := objects(old, now, [][]byte{[]byte(x.Witness.Object)})
					if err != nil || outcomes[0].WasInvalid || outcomes[0].Fate&(diff.BecomesInvalid|diff.LosesFields) == 0 {
						t.Errorf("%s is no witness: %+v %v", x.Witness.Object, outcomes, err)
					}
				}
			}
			if worst != c.level {
				t.Errorf("%s, expected %s: %+v", worst, c.level, changes)
			}
		})
	}
}
