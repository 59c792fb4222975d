package modes

import (
	"bytes"
	"strings"
	"testing"
)

// KEP-2332: a specified field without properties of its own inherits the keyword, and one with properties ends it.
func TestInherited(t *testing.T) {
	const preserved = `"x-kubernetes-preserve-unknown-fields":true`
	got, err := Inherited([]byte(`{"type":"object",` + preserved + `,"properties":{"a":{"type":"object"},"b":{"type":"object","properties":{"c":{"type":"object"}}},` +
		`"d":{"type":"array","items":{"type":"object"}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"type":"object",` + preserved + `,"properties":{"a":{"type":"object",` + preserved + `},"b":{"type":"object","properties":{"c":{"type":"object"}}},` +
		`"d":{"type":"array","items":{"type":"object",` + preserved + `},` + preserved + `}}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := Inherited([]byte("{")); err == nil {
		t.Error("what is no JSON was rewritten")
	}
}

func TestStrict(t *testing.T) {
	s, err := NewStrict([]byte(`{"type":"object","properties":{"e":{"type":"integer","enum":[1,2.0]},"l":{"enum":[[2.0],{"a":"x"},null]},"n":{"type":"number","minimum":1.5,"maximum":2.5,"exclusiveMaximum":true},` +
		`"s":{"type":"string","format":"date"},"a":{"type":"number","anyOf":[{"minimum":0.5},{"multipleOf":0.1}]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for object, want := range map[string]bool{
		`{"e":1}`: true, `{"e":1.0}`: true, `{"e":1.5}`: false, `{"e":2}`: true, `{"e":"1"}`: false,
		`{"l":[2]}`: true, `{"l":{"a":"x"}}`: true, `{"l":{"a":"y"}}`: false, `{"l":null}`: true, `{"l":{"a":"x","b":1}}`: false,
		`{"n":1}`: false, `{"n":2}`: true, `{"n":2.5}`: false, `{"n":1.5}`: true, `{"none":7}`: true, `{`: false,
	} {
		if got := s.Valid([]byte(object)); got != want {
			t.Errorf("%s: %t", object, got)
		}
	}
	if text := string(s.Reference); strings.Contains(text, "enum") || strings.Contains(text, "1.5") || !strings.Contains(text, `"allOf":[{"format":"date"}]`) {
		t.Errorf("the reference gets %s", text)
	}
	if text := string(s.Schema); strings.Contains(text, "0.5") || strings.Contains(text, "0.1") || !strings.Contains(text, `"enum":[1,2.0]`) {
		t.Errorf("Espalier gets %s", text)
	}
	if _, err := NewStrict([]byte("[")); err == nil {
		t.Error("what is no JSON was rewritten")
	}
}

func TestVersionedRepeats(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(2000) {
		doc, rules := Versioned(seed)
		if again, _ := Versioned(seed); !bytes.Equal(doc, again) || len(rules) == 0 {
			t.Fatalf("seed %d gives two CRDs", seed)
		}
		for _, r := range rules {
			seen[r] = true
		}
	}
	for _, r := range versioned {
		if !seen[r] {
			t.Errorf("%s is never used", r)
		}
	}
}
