package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/conversion"
)

// saved adds what is preserved of other versions to an object.
func saved(t *testing.T, in, payload string) string {
	t.Helper()
	text, err := json.Marshal(payload)
	if err != nil {
		t.Fatal(err)
	}
	out := strings.Replace(in, `"metadata":{`, `"metadata":{"annotations":{"`+conversion.Preserved+`":`+string(text)+`},`, 1)
	if out == in {
		t.Fatalf("%s has no metadata", in)
	}
	return out
}

const (
	keyedItems = "l: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, x: {type: string}%s}}}"
	oldField   = ", old: {type: string}"
)

func keyedItemsRules() string {
	return between("  preserve: everything", strings.Replace(keyedItems, "%s", oldField, 1), strings.Replace(keyedItems, "%s", "", 1))
}

// What was saved of an item came back in another one if items had no keys, or the same ones.
func TestItemsWithoutDistinctKeys(t *testing.T) {
	p := compile(t, keyedItemsRules())
	for _, list := range []string{
		`[{"name":"a"},{"name":"a","old":"1"}]`,
		`[{"old":"1"},{"name":"a"}]`,
		`[{"name":"a"},{},{"old":"1"}]`,
		`[{"name":"a","old":"1"},{"name":"a","old":"2"},{"name":"b","old":"3"}]`,
		`[{"name":"b","old":"3"},{"name":"a","old":"1"},{"name":"c"},{"name":"a","old":"2"}]`,
		`[null,{"name":"a","old":"1"}]`,
		`[{"name":null},{"name":null,"old":"1"}]`,
	} {
		returns(t, p, "v1", `{"l":`+list+`}`)
	}
	for _, c := range []struct{ name, list, edited, want string }{
		{"order of the same keys", `[{"name":"a","x":"1"},{"name":"a","x":"2","old":"2"}]`, `[{"name":"a","x":"2"},{"name":"a","x":"1"}]`, `[{"name":"a","x":"2"},{"name":"a","x":"1"}]`},
		{"the first is deleted", `[{"name":"a","old":"1"},{"name":"a","old":"2"}]`, `[{"name":"a"}]`, `[{"name":"a"}]`},
		{"an item gets the key of another", `[{"name":"a","old":"1"},{"name":"b"}]`, `[{"name":"a"},{"name":"a"}]`, `[{"name":"a"},{"name":"a"}]`},
		{"an item loses its key", `[{"name":"a","old":"1"},{"name":"b","old":"2"}]`, `[{"name":"b"},{}]`, `[{"name":"b"},{}]`},
		{"keys are distinct again", `[{"name":"a","old":"1"},{"name":"a"}]`, `[{"name":"a"},{"name":"b"}]`, `[{"name":"a"},{"name":"b"}]`},
		{"another order", `[{"name":"b","old":"1"},{"name":"a","old":"2"}]`, `[{"name":"a"},{"name":"b"}]`, `[{"name":"a","old":"2"},{"name":"b","old":"1"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			there := convert(t, p, object(t, "v1", `{"l":`+c.list+`}`), "v2")
			start := strings.Index(there, `"l":`)
			edited := there[:start] + `"l":` + c.edited + there[strings.Index(there, `,"metadata"`):]
			if got := convert(t, p, edited, "v1"); !strings.Contains(got, `"l":`+c.want+`,`) {
				t.Errorf("%s\nbecame %s, which has not %s", edited, got, c.want)
			}
		})
	}
}

// Users may write what was saved: of entries with the same keys, none is that of the item.
func TestForgedKeys(t *testing.T) {
	p := compile(t, keyedItemsRules())
	for payload, want := range map[string]string{
		`{"v1":{"l":[{"name":"a","old":"1"},{"name":"a","old":"2"}]}}`:                          `[{"name":"a"},{"name":"b"}]`,
		`{"v1":{"l":[{"name":"a","old":"1"},{"name":"a","old":"2"},{"name":"b","old":"3"}]}}`:   `[{"name":"a"},{"name":"b","old":"3"}]`,
		`{"v1":{"l":[{"old":"1"},{"name":null,"old":"1"},7,null,{"name":"b","old":"3"}]}}`:      `[{"name":"a"},{"name":"b","old":"3"}]`,
		`{"v1":{"l":{"digest":"x","value":[{"name":"a","old":"1"}]}}}`:                          `[{"name":"a"},{"name":"b"}]`,
		`{"v1":{"l":[{"name":"b","old":"3"},{"name":"a","old":"1"}]}}`:                          `[{"name":"a","old":"1"},{"name":"b","old":"3"}]`,
		`{"v1":{"l":[{"name":"z","old":"0"},{"name":"a","old":"1"},{"name":"b","old":["3"]}]}}`: `[{"name":"a","old":"1"},{"name":"b"}]`,
	} {
		in := saved(t, object(t, "v2", `{"l":[{"name":"a"},{"name":"b"}]}`), payload)
		if got := convert(t, p, in, "v1"); !strings.Contains(got, `"l":`+want+`,`) {
			t.Errorf("%s\nbecame %s, which has not %s", in, got, want)
		}
	}
}

// A list that rules make a map has items with the same key: what was saved belongs to none of them.
func TestMapKeysThatAreNotDistinct(t *testing.T) {
	p := compile(t, between("  rules:\n  - mapToList: {map: m, list: l, key: k}\n  preserve: everything",
		"m: {type: object, additionalProperties: {type: object, properties: {x: {type: string}, old: {type: string}}}}",
		"l: {type: array, items: {type: object, properties: {k: {type: string}, x: {type: string}}}}"))
	there := convert(t, p, object(t, "v1", `{"m":{"a":{"x":"1","old":"o"},"b":{"old":"p"}}}`), "v2")
	twice := strings.Replace(there, `{"k":"a","x":"1"}`, `{"k":"a","x":"2"},{"k":"a","x":"1"}`, 1)
	if twice == there {
		t.Fatal(there)
	}
	if got := convert(t, p, twice, "v1"); !strings.Contains(got, `"m":{"a":{"x":"2"},"b":{"old":"p"}}`) {
		t.Errorf("%s\nbecame %s", twice, got)
	}
}

// New rules move what the rules before them have preserved. It comes back unless the object has another value now.
func TestValuesThatFormerRulesHavePreserved(t *testing.T) {
	p := compile(t, between(`  rules:
  - move: {from: spec.legacy, to: spec.note}
  - move: {from: spec.parts, to: spec.pieces}
  - split: {from: spec.address, separator: ":", to: [spec.host, spec.port]}
  - move: {from: 'metadata.annotations[example.com/old]', to: 'metadata.annotations[example.com/new]'}
  - move: {from: 'metadata.labels[count]', to: spec.count}
`,
		"spec: {type: object, properties: {legacy: {type: string}, address: {type: string}, parts: {type: array, items: {type: string}}}}",
		"spec: {type: object, properties: {note: {type: string}, host: {type: string}, port: {type: string}, pieces: {type: array, items: {type: string}}, count: {type: integer}}}"))
	const payload = `{"v1":{"metadata":{"annotations":{"example.com/old":"n"},"labels":{"count":"3"}},"spec":{"address":"db:5432","legacy":"x","parts":["p"]}}}`
	for _, c := range []struct{ spec, v1, v2 string }{
		{`{}`, `"metadata":{"annotations":{"example.com/old":"n"},"labels":{"count":"3"},"name":"w"},"spec":{"address":"db:5432","legacy":"x","parts":["p"]}`, `"spec":{"count":3,"host":"db","note":"x","pieces":["p"],"port":"5432"}`},
		{`{"note":"live","pieces":[],"port":"1"}`, `"spec":{"legacy":"live","parts":[]}`, `"spec":{"count":3,"note":"live","pieces":[],"port":"1"}`},
		{`{"host":"h","port":"1","count":1}`, `"spec":{"address":"h:1","legacy":"x","parts":["p"]}`, `"spec":{"count":1,"host":"h","note":"x","pieces":["p"],"port":"1"}`},
	} {
		got := convert(t, p, saved(t, object(t, "v2", `{"spec":`+c.spec+`}`), payload), "v1")
		if !strings.Contains(got, c.v1) {
			t.Errorf("%s: got %s, want %s in it", c.spec, got, c.v1)
		}
		if again := convert(t, p, got, "v2"); !strings.Contains(again, c.v2) {
			t.Errorf("%s: again in v2: %s, want %s in it", c.spec, again, c.v2)
		}
	}
	// Without the object that held it, it is gone, as all that was saved below it.
	if got := convert(t, p, saved(t, object(t, "v2", `{}`), payload), "v1"); strings.Contains(got, `"legacy"`) {
		t.Errorf("got %s", got)
	}
}
