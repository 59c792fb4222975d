package diff_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/diff"
)

// A change of the schema of spec.f, and what is reported about it.
type fieldCase struct {
	name, old, now string // schemas of spec.f, without braces
	// broken is a value of spec.f that the old CRD stores as it is, and that the new
	// one rejects or changes. It proves that the change is breaking; what has none
	// must not be called so.
	broken string
	want   []string // as written by shown
}

// noValue is for changes that break, but do not break a new object of v1: only updates,
// or objects of schemas that v1 does not accept.
const noValue = "-"

// shown writes a change as "level audience check path old → new". The letters of the
// audience are Writers, Readers and Stored. The path is left out for spec.f itself,
// and begins there otherwise.
func shown(x diff.Change) string {
	audience := ""
	for i, letter := range "WRS" {
		if x.Breaks>>i&1 != 0 {
			audience += string(letter)
		}
	}
	words := []string{x.Level.String(), audience, string(x.Check)}
	if path := strings.TrimPrefix(strings.TrimPrefix(x.Path, "spec.f"), "."); path != "" {
		words = append(words, path)
	}
	if x.Old != "" || x.New != "" {
		words = append(words, strings.TrimSpace(x.Old+" → "+x.New))
	}
	return strings.Join(words, " ")
}

// only makes a list of what is expected.
func only(want ...string) []string { return want }

func runFieldCases(t *testing.T, cases []fieldCase) {
	var told reports
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			old, now := crdWith(spec(`"f":{`+c.old+`}`)), crdWith(spec(`"f":{`+c.now+`}`))
			changes, err := compare(old, now)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, x := range changes {
				got = append(got, shown(x))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("reported:\n\t%s\nexpected:\n\t%s", strings.Join(got, "\n\t"), strings.Join(c.want, "\n\t"))
			}
			checkDetails(t, old, now, changes)
			checkBroken(t, old, now, c.broken, changes)
			told.add(c.name, changes)
		})
	}
	told.check(t, len(cases))
}

// checkDetails checks what holds for every change: the pointers lead somewhere, the
// message is complete, and what breaks says what to do.
func checkDetails(t *testing.T, old, now []byte, changes []diff.Change) {
	t.Helper()
	known := map[string]diff.CheckInfo{}
	for _, info := range diff.Checks() {
		known[string(info.ID)] = info
	}
	for _, x := range changes {
		if !resolves(old, x.OldPointer) || !resolves(now, x.NewPointer) {
			t.Errorf("%s: a pointer leads nowhere: %q, %q", x.Check, x.OldPointer, x.NewPointer)
		}
		if x.Message == "" || strings.HasPrefix(x.Message, ":") || strings.HasSuffix(x.Message, ": ") || strings.Contains(x.Message, "  ") {
			t.Errorf("%s: %q", x.Check, x.Message)
		}
		if info := known[string(x.Check)]; x.Level > info.Level || x.Breaks&^info.Breaks != 0 && x.Level == info.Level && x.Level != diff.Safe {
			t.Errorf("%s is worse than its table says: %s %s", x.Check, x.Level, x.Breaks)
		}
	}
}

// checkBroken runs the value that breaks through both CRDs.
func checkBroken(t *testing.T, old, now []byte, value string, changes []diff.Change) {
	t.Helper()
	if value == noValue {
		return
	}
	breaking := slices.ContainsFunc(changes, func(x diff.Change) bool { return x.Level == diff.Breaking })
	if value == "" {
		if breaking {
			t.Error("breaking changes need a value that proves it")
		}
		return
	}
	object := `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a"},"spec":{"f":` + value + `}}`
	outcomes, err := objects(old, now, [][]byte{[]byte(object)})
	if err != nil {
		t.Fatal(err)
	}
	if x := outcomes[0]; x.WasInvalid || x.Fate == 0 {
		t.Errorf("%s does not break: invalid before: %t, now: %q", value, x.WasInvalid, x.Fate)
	}
	if !slices.ContainsFunc(changes, func(x diff.Change) bool {
		return x.Level != diff.Safe && x.Breaks&(diff.Writers|diff.Stored) != 0
	}) {
		t.Errorf("%s breaks, and no change says so", value)
	}
}

// resolves reports whether an RFC 6901 pointer leads to a value of a document.
func resolves(document []byte, pointer string) bool {
	var at any
	if err := json.Unmarshal(document, &at); err != nil {
		return false
	}
	tokens := strings.Split(pointer, "/")[min(1, len(pointer)):]
	if !slices.Contains(tokens, "schema") && len(tokens) > 0 {
		tokens = tokens[:len(tokens)-1] // what is around the schemas is pointed to also where it is absent
	}
	for _, token := range tokens {
		token = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			next, ok := v[token]
			if !ok {
				return false
			}
			at = next
		case []any:
			var i int
			if _, err := fmt.Sscanf(token, "%d", &i); err != nil || i >= len(v) {
				return false
			}
			at = v[i]
		default:
			return false
		}
	}
	return true
}

func TestNumbers(t *testing.T) {
	const whole, number, either = `"type":"integer"`, `"type":"number"`, `"x-kubernetes-int-or-string":true,`
	runFieldCases(t, []fieldCase{
		{"lowered", whole + `,"maximum":10`, whole + `,"maximum":5`, "10", only("breaking WS maximum-lowered 10 → 5")},
		{"raised", whole + `,"maximum":5`, whole + `,"maximum":10`, "", only("safe R maximum-raised 5 → 10")},
		{"added", whole, whole + `,"maximum":5`, "6", only("breaking WS maximum-lowered → 5")},
		{"removed", whole + `,"minimum":1`, whole, "", only("safe R minimum-lowered 1 →")},
		{"minimum raised", whole + `,"minimum":1`, whole + `,"minimum":2`, "1", only("breaking WS minimum-raised 1 → 2")},
		{"minimum lowered", whole + `,"minimum":2`, whole + `,"minimum":1`, "", only("safe R minimum-lowered 2 → 1")},
		{"integers below 5 are at most 4", whole + `,"maximum":5,"exclusiveMaximum":true`, whole + `,"maximum":4`, "", nil},
		{"and the other way round", whole + `,"maximum":4`, whole + `,"maximum":5,"exclusiveMaximum":true`, "", nil},
		{"integers below 5 may be more than 3", whole + `,"maximum":5,"exclusiveMaximum":true`, whole + `,"maximum":3`, "4", only("breaking WS maximum-lowered 5 (exclusive) → 3")},
		{"integers above 0 are at least 1", whole + `,"minimum":0,"exclusiveMinimum":true`, whole + `,"minimum":1`, "", nil},
		{"now exclusive", whole + `,"maximum":5`, whole + `,"maximum":5,"exclusiveMaximum":true`, "5", only("breaking WS maximum-lowered 5 → 5 (exclusive)")},
		{"no longer exclusive", number + `,"maximum":5,"exclusiveMaximum":true`, number + `,"maximum":5`, "", only("safe R maximum-raised 5 (exclusive) → 5")},
		{"numbers below 5 may be more than 4", number + `,"maximum":5,"exclusiveMaximum":true`, number + `,"maximum":4`, "4.5", only("breaking WS maximum-lowered 5 (exclusive) → 4")},
		{"numbers up to 4 are below 5", number + `,"maximum":4`, number + `,"maximum":5,"exclusiveMaximum":true`, "", only("safe R maximum-raised 4 → 5 (exclusive)")},
		{"the tighter of two bounds counts", number + `,"maximum":9,"allOf":[{"maximum":4},{"maximum":7}]`, number + `,"maximum":4`, "", nil},
		{"the exclusive of two bounds counts", number + `,"maximum":4,"allOf":[{"maximum":4,"exclusiveMaximum":true}]`, number + `,"maximum":4,"exclusiveMaximum":true`, "", nil},

		{"two bounds removed", whole + `,"allOf":[{"maximum":3},{"maximum":4}]`, whole, "", only("safe R maximum-raised 3 →")},
		{"two bounds added", whole, whole + `,"allOf":[{"maximum":4},{"maximum":3}]`, "5", only("breaking WS maximum-lowered → 4")},

		{"int32 has a maximum", whole + `,"format":"int32"`, whole + `,"format":"int32","maximum":2147483647`, "", nil},
		{"and not a lower one", whole + `,"format":"int32"`, whole + `,"format":"int32","maximum":2147483646`, "2147483647", only("breaking WS maximum-lowered the range of int32 → 2147483646")},
		{"int32 has a minimum", whole + `,"format":"int32"`, whole + `,"format":"int32","minimum":-2147483648`, "", nil},
		{"and not a higher one", whole + `,"format":"int32"`, whole + `,"format":"int32","minimum":-2147483647`, "-2147483648", only("breaking WS minimum-raised the range of int32 → -2147483647")},
		{"int32 for numbers in its range", whole + `,"minimum":-2147483648,"maximum":2147483647`, whole + `,"format":"int32","minimum":-2147483648,"maximum":2147483647`, "", nil},
		{"int32 for numbers above its range", whole + `,"minimum":0,"maximum":2147483648`, whole + `,"format":"int32","minimum":0,"maximum":2147483647`, "2147483648",
			only("breaking WS maximum-lowered 2147483648 → 2147483647", "breaking WS format-added → int32")},
		{"int32 for numbers below its range", whole + `,"minimum":-2147483649,"maximum":0`, whole + `,"format":"int32","maximum":0`, "-2147483649",
			only("breaking WS format-added → int32")},
		{"int32 without a minimum", whole + `,"maximum":0`, whole + `,"format":"int32","maximum":0`, "-2147483649", only("breaking WS format-added → int32")},
		{"int32 without a maximum", whole + `,"minimum":0`, whole + `,"format":"int32","minimum":0`, "2147483648", only("breaking WS format-added → int32")},
		{"int64 to int32", whole + `,"format":"int64"`, whole + `,"format":"int32"`, "2147483648", only("breaking WS format-changed int64 → int32")},
		{"int32 to int64", whole + `,"format":"int32"`, whole + `,"format":"int64"`, "", only("safe R format-removed int32 → int64")},
		{"int64 says nothing", whole, whole + `,"format":"int64"`, "", nil},
		{"float", number, number + `,"format":"float"`, "1e39", only("breaking WS format-added → float")},
		{"double says nothing", number, number + `,"format":"double"`, "", nil},
		{"float for numbers between bounds", number + `,"minimum":0,"maximum":1`, number + `,"format":"float","minimum":0,"maximum":1`, "", nil},
		{"float for numbers without a maximum", number + `,"minimum":0`, number + `,"format":"float","minimum":0`, "1e39", only("breaking WS format-added → float")},
		{"float for integers", whole + `,"allOf":[{"type":"number"}]`, whole + `,"allOf":[{"type":"number","format":"float"}]`, "", nil},

		{"an enum has a maximum", whole + `,"enum":[1,3,2]`, whole + `,"enum":[1,3,2],"maximum":3`, "", nil},
		{"and not a lower one", whole + `,"enum":[1,3,2]`, whole + `,"enum":[1,3,2],"maximum":2`, "3", only("breaking WS maximum-lowered an enum → 2")},
		{"an enum has a minimum", whole + `,"enum":[2,1,3]`, whole + `,"enum":[2,1,3],"minimum":1`, "", nil},
		{"and not a higher one", whole + `,"enum":[2,1,3]`, whole + `,"enum":[2,1,3],"minimum":2`, "1", only("breaking WS minimum-raised an enum → 2")},

		{"an enum with numbers that floats do not have", whole + `,"enum":[9007199254740993]`, whole + `,"enum":[9007199254740993],"maximum":1`, "9007199254740993", only("breaking WS maximum-lowered → 1")},

		{"multiples of 4 are multiples of 2", whole + `,"multipleOf":4`, whole + `,"multipleOf":2`, "", only("safe R multiple-of-relaxed 4 → 2")},
		{"multiples of 2 may be none of 4", whole + `,"multipleOf":2`, whole + `,"multipleOf":4`, "2", only("breaking WS multiple-of-changed 2 → 4")},
		{"multiples of 6 may be none of 4", whole + `,"multipleOf":6`, whole + `,"multipleOf":4`, "6", only("breaking WS multiple-of-changed 6 → 4")},
		{"multiples of one added", whole, whole + `,"multipleOf":1`, "", nil},
		{"multiples of two added", whole, whole + `,"multipleOf":2`, "1", only("breaking WS multiple-of-changed → 2")},
		{"numbers may be no multiples of one", number, number + `,"multipleOf":1`, "0.5", only("breaking WS multiple-of-changed → 1")},
		{"the same fraction", number + `,"multipleOf":0.5`, number + `,"multipleOf":0.5,"description":"now explained"`, "", nil},
		{"one of two stays", number + `,"multipleOf":0.5,"minimum":0`, number + `,"multipleOf":0.5,"minimum":1`, "0", only("breaking WS minimum-raised 0 → 1")},

		{"a bound that is no integer", whole, whole + `,"maximum":2.5`, "1", only("breaking WS maximum-lowered → 2.5")},
		{"a bound that is no integer above one that is", whole + `,"maximum":2`, whole + `,"maximum":2.5`, "1", only("breaking WS maximum-lowered 2 → 2.5")},
		{"a small bound", number, number + `,"maximum":0.00001`, "1", only("breaking WS maximum-lowered → 1e-05")},
		{"a large bound", number, number + `,"maximum":1e21`, "1e22", only("breaking WS maximum-lowered → 1e+21")},
		{"a bound of int-or-string beside a type", either + whole + `,"maximum":3.5`, either + whole + `,"maximum":2.5`, noValue, only("breaking WS maximum-lowered 3.5 → 2.5")},
		{"int-or-string beside a type is no integer", either + whole + `,"maximum":5,"exclusiveMaximum":true`, either + whole + `,"maximum":4`, noValue, only("risky WS maximum-lowered 5 (exclusive) → 4")},
		// The API server cuts off the fraction of a bound before it compares integers.
		{"a fraction of a minimum", number + `,"minimum":4.5`, number + `,"minimum":4,"exclusiveMinimum":true`, "4", only("breaking WS minimum-raised 4.5 → 4 (exclusive)")},
		{"a fraction of a maximum", number + `,"maximum":-4.5`, number + `,"maximum":-4,"exclusiveMaximum":true`, "-4", only("breaking WS maximum-lowered -4.5 → -4 (exclusive)")},
		{"a fraction of an exclusive maximum", number + `,"maximum":4`, number + `,"maximum":4.5,"exclusiveMaximum":true`, noValue, // Espalier accepts 4
			only("risky WS maximum-lowered 4 → 4.5 (exclusive)")},
		{"a fraction within the same integer", number + `,"maximum":4.5`, number + `,"maximum":5,"exclusiveMaximum":true`, "", only("safe R maximum-raised 4.5 → 5 (exclusive)")},
		{"a fraction stays", number + `,"minimum":0,"maximum":4.5`, number + `,"minimum":1,"maximum":4.5`, "0", only("breaking WS minimum-raised 0 → 1")},
		{"a bound that is no integer stays", whole + `,"minimum":0,"maximum":4.5`, whole + `,"minimum":1,"maximum":4.5`, noValue, only("breaking WS minimum-raised 0 → 1")},
		{"a factor that is no integer", whole + `,"multipleOf":4`, whole + `,"multipleOf":0.5`, "4", only("breaking WS multiple-of-changed 4 → 0.5")},
		{"a bound beyond the range without gaps", whole, whole + `,"maximum":9007199254740992`, "9223372036854775807", only("breaking WS maximum-lowered → 9007199254740992")},
		{"the last bound in that range", whole + `,"maximum":9007199254740991`, whole + `,"maximum":9007199254740990`, "9007199254740991",
			only("breaking WS maximum-lowered 9007199254740991 → 9007199254740990")},
	})
}

func TestStrings(t *testing.T) {
	const text = `"type":"string"`
	const sized = `"x-kubernetes-validations":[{"rule":"size(self) > 3"}]`
	runFieldCases(t, []fieldCase{
		{"maxLength lowered", text + `,"maxLength":5`, text + `,"maxLength":4`, `"abcde"`, only("breaking WS max-length-lowered 5 → 4")},
		{"maxLength raised", text + `,"maxLength":4`, text + `,"maxLength":5`, "", only("safe R max-length-raised 4 → 5")},
		{"maxLength added", text, text + `,"maxLength":4`, `"abcde"`, only("breaking WS max-length-lowered → 4")},
		{"maxLength 0 added", text, text + `,"maxLength":0`, `"a"`, only("breaking WS max-length-lowered → 0")},
		{"minLength raised", text + `,"minLength":1`, text + `,"minLength":2`, `"a"`, only("breaking WS min-length-raised 1 → 2")},
		{"minLength lowered", text + `,"minLength":2`, text + `,"minLength":1`, "", only("safe R min-length-lowered 2 → 1")},
		{"minLength 0 says nothing", text, text + `,"minLength":0`, "", nil},
		{"minLength 1 added", text, text + `,"minLength":1`, `""`, only("breaking WS min-length-raised → 1")},
		{"the least of several maxLength counts", text + `,"maxLength":9,"allOf":[{"maxLength":7},{"maxLength":8}]`, text + `,"maxLength":6`, `"abcdefg"`,
			only("breaking WS max-length-lowered 7 → 6")},
		{"the greatest of several minLength counts", text + `,"minLength":1,"allOf":[{"minLength":3},{"minLength":2}]`, text + `,"minLength":4`, `"abc"`,
			only("breaking WS min-length-raised 3 → 4")},

		{"listed values are short enough", text + `,"enum":["éé","c"]`, text + `,"enum":["éé","c"],"maxLength":2`, "", nil},
		{"one is too long", text + `,"enum":["ab","c"]`, text + `,"enum":["ab","c"],"maxLength":1`, `"ab"`, only("breaking WS max-length-lowered → 1")},
		{"listed values are long enough", text + `,"enum":["éé","c"]`, text + `,"enum":["éé","c"],"minLength":1`, "", nil},
		{"one is too short", text + `,"enum":["éé","c"]`, text + `,"enum":["éé","c"],"minLength":2`, `"c"`, only("breaking WS min-length-raised → 2")},
		{"listed values match", text + `,"enum":["ab","c"]`, text + `,"enum":["ab","c"],"pattern":"^[abc]+$"`, "", nil},
		{"one does not match", text + `,"enum":["ab","c"]`, text + `,"enum":["ab","c"],"pattern":"^[ab]+$"`, `"c"`, only("breaking WS pattern-added → ^[ab]+$")},
		{"the only one does not match", text + `,"enum":["c"]`, text + `,"enum":["c"],"pattern":"^[ab]+$"`, `"c"`, only("breaking WS pattern-added → ^[ab]+$")},
		{"listed values have the format", text + `,"enum":["2020-01-01"]`, text + `,"enum":["2020-01-01"],"format":"date"`, "", nil},
		{"one does not have it", text + `,"enum":["2020-01-01","x"]`, text + `,"enum":["2020-01-01","x"],"format":"date"`, `"x"`, only("breaking WS format-added → date")},
		{"the shorter of two enums counts", text + `,"enum":["a","bb","ccc"],"allOf":[{"enum":["a","bb"]}]`, text + `,"enum":["a","bb","ccc"],"allOf":[{"enum":["a","bb"]}],"maxLength":2`, "", nil},

		{"format changed", text + `,"format":"date"`, text + `,"format":"date-time"`, `"2020-01-01"`, only("breaking WS format-changed date → date-time")},
		{"format with another spelling", text + `,"format":"datetime"`, text + `,"format":"date-time"`, "", nil},
		{"uuid4 is a uuid", text + `,"format":"uuid4"`, text + `,"format":"uuid"`, "", only("safe R format-removed uuid4 → uuid")},
		{"a uuid may be none of version 4", text + `,"format":"uuid"`, text + `,"format":"uuid4"`, `"6ba7b810-9dad-11d1-80b4-00c04fd430c8"`, only("breaking WS format-changed uuid → uuid4")},
		{"an unknown format says nothing", text, text + `,"format":"orchard"`, "", nil},
		{"a password is any string", text, text + `,"format":"password"`, "", nil},
		{"a format of numbers says nothing about strings", text, text + `,"format":"int32"`, "", nil},
		{"a format of strings says nothing about numbers", `"type":"number"`, `"type":"number","format":"date"`, "", nil},
		{"int-or-string", `"x-kubernetes-int-or-string":true`, `"x-kubernetes-int-or-string":true,"maxLength":2`, `"abc"`, only("breaking WS max-length-lowered → 2")},
		{"rules see a date as a timestamp", text + `,"format":"date","x-kubernetes-validations":[{"rule":"true"}]`, text + `,"x-kubernetes-validations":[{"rule":"true"}]`, "",
			only("risky WRS format-removed date →")},
		{"rules see a uuid as a string", text + `,"format":"uuid","x-kubernetes-validations":[{"rule":"true"}]`, text + `,"x-kubernetes-validations":[{"rule":"true"}]`, "",
			only("safe R format-removed uuid →")},
		{"rules see bytes", text + `,"enum":["aaaa"],` + sized, text + `,"enum":["aaaa"],"format":"byte",` + sized, `"aaaa"`, only("risky WS format-changed → byte")},
		{"rules see bytes where a format leaves allOf", text + `,"allOf":[{"format":"byte"}],` + sized, text + `,"format":"byte",` + sized, `"aaaa"`, only("risky WS format-changed → byte")},
		{"rules see a string where a format moves into allOf", text + `,"format":"byte",` + sized, text + `,"allOf":[{"format":"byte"}],` + sized, "", only("risky WS format-changed byte →")},
		{"rules see a uuid as a string also if it is new", text + `,"enum":["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],` + sized, text + `,"enum":["6ba7b810-9dad-11d1-80b4-00c04fd430c8"],"format":"uuid",` + sized, "", nil},
		{"without rules a date is a string", text + `,"format":"date"`, text, "", only("safe R format-removed date →")},
	})
}

// TestPatterns has changes of patterns. aa is the shortest string that ^a*$ matches and
// ^a?$ does not: the other constraints of the field decide whether a value can be one.
func TestPatterns(t *testing.T) {
	const text, many, few = `"type":"string"`, `,"pattern":"^a*$"`, `,"pattern":"^a?$"`
	large := `,"pattern":"^` + strings.Repeat("[ab]", 600) + `$"`
	shortened := "^" + strings.Repeat("[ab]", 600)
	shortened = shortened[:80] + "…"
	runFieldCases(t, []fieldCase{
		{"added", text, text + few, `"aa"`, only("breaking WS pattern-added → ^a?$")},
		{"changed", text + many, text + few, `"aa"`, only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"relaxed", text + few, text + many, "", only("safe R pattern-relaxed ^a?$ → ^a*$")},
		{"removed", text + few, text, "", only("safe R pattern-relaxed ^a?$ →")},
		{"the same strings", text + `,"pattern":"^a?a*$"`, text + many, "", nil},
		{"every string matches", text, text + `,"pattern":"a*"`, "", nil},
		{"the shortest is of exactly maxLength", text + `,"maxLength":2` + many, text + `,"maxLength":2` + few, `"aa"`, only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"the shortest is longer than maxLength", text + `,"maxLength":1` + many, text + `,"maxLength":1` + few, "", nil},
		{"the shortest is longer than one of two maxLength", text + `,"maxLength":2,"allOf":[{"maxLength":1}]` + many, text + `,"maxLength":2,"allOf":[{"maxLength":1}]` + few, "", nil},
		{"the shortest has as many runes as maxLength", text + `,"maxLength":1,"pattern":"^é?$"`, text + `,"maxLength":1,"pattern":"^$"`, `"é"`, only("breaking WS pattern-changed ^é?$ → ^$")},
		{"the shortest is of exactly minLength", text + `,"minLength":2` + many, text + `,"minLength":2` + few, `"aa"`, only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"a longer one breaks", text + `,"minLength":3` + many, text + `,"minLength":3` + few, `"aaa"`, only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"another pattern excludes the shortest", text + `,"pattern":"a","allOf":[{"pattern":"b"}]`, text + `,"pattern":"a","allOf":[{"pattern":"b"},{"pattern":"^b"}]`, `"ab"`, only("breaking WS pattern-changed b → ^b")},
		{"a format excludes the shortest", text + `,"format":"date"`, text + `,"format":"date","pattern":"^1"`, `"2020-01-01"`, only("breaking WS pattern-added → ^1")},
		{"one of two patterns implies it", text + `,"pattern":"^a+$","allOf":[{"pattern":"b*"}]`, text + many, "", only("safe R pattern-relaxed ^a+$ → ^a*$")},
		{"an anyOf may exclude the shortest", text + many + `,"anyOf":[{"maxLength":3},{"minLength":9}]`, text + few + `,"anyOf":[{"maxLength":3},{"minLength":9}]`, `"aa"`,
			only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"a oneOf may exclude the shortest", text + many + `,"oneOf":[{"maxLength":3},{"minLength":9}]`, text + few + `,"oneOf":[{"maxLength":3},{"minLength":9}]`, `"aa"`,
			only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"a not may exclude the shortest", text + many + `,"not":{"minLength":9}`, text + few + `,"not":{"minLength":9}`, `"aa"`, only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"a single branch is no choice", text + many + `,"oneOf":[{"maxLength":3}],"anyOf":[{"maxLength":3}]`, text + few + `,"oneOf":[{"maxLength":3}],"anyOf":[{"maxLength":3}]`, `"aa"`, only("breaking WS pattern-changed ^a*$ → ^a?$")},
		{"the first rune after the surrogates", text + `,"pattern":"^[\\x{d000}-\\x{e000}]$"`, text + `,"pattern":"^[\\x{d000}-\\x{d7ff}]$"`, `"\ue000"`,
			only(`breaking WS pattern-changed ^[\x{d000}-\x{e000}]$ → ^[\x{d000}-\x{d7ff}]$`)},
		{"too large to compare", text, text + large, `"c"`, only("breaking WS pattern-added → " + shortened)},
	})
}
