package fix_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/crd/splice"
)

// fieldCase is a schema, what becomes of it, and the notes: kind, pointer below the schema,
// check.
type fieldCase struct{ in, want, notes string }

const (
	keep    = `"x-kubernetes-preserve-unknown-fields":true`
	either  = `"x-kubernetes-int-or-string":true`
	intText = `"anyOf":[{"type":"integer"},{"type":"string"}]`
)

// A set has unique items for the API server, if they are scalars that cannot be null. Where
// it cannot take the place of uniqueItems, a note must say that a condition is lost.
func TestUniqueItems(t *testing.T) {
	const lost = "wider /uniqueItems unique-items"
	testFields(t, []fieldCase{
		{`{"type":"array","items":{"type":"string"},"uniqueItems":true}`, `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, "advice  unique-items"},
		{`{"type":"array","items":{"type":"integer"},"uniqueItems":true}`, `{"type":"array","items":{"type":"integer"},"x-kubernetes-list-type":"set"}`, "advice  unique-items"},
		{`{"type":"array","items":{"type":"string","nullable":true},"uniqueItems":true}`, `{"type":"array","items":{"type":"string","nullable":true}}`, lost},
		{`{"type":"array","items":{"type":"string","nullable":false},"uniqueItems":true}`, `{"type":"array","items":{"type":"string","nullable":false},"x-kubernetes-list-type":"set"}`, "advice  unique-items"},
		{`{"type":"array","items":{"type":["number","null"]},"uniqueItems":true}`, `{"type":"array","items":{"type":"number","nullable":true}}`, lost},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic","uniqueItems":true}`, `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"atomic"}`, lost},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set","uniqueItems":true}`, `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, ""},
		{`{"type":"array","items":{"type":"object"},"uniqueItems":true}`, `{"type":"array","items":{"type":"object"}}`, lost},
		{`{"type":"array","uniqueItems":true}`, `{"type":"array","items":{` + keep + `}}`, lost},
		{`{"type":"array","items":{"type":"string"},"allOf":[{"uniqueItems":true}]}`, `{"type":"array","items":{"type":"string"}}`, "wider /allOf/0/uniqueItems unique-items"},
		{`{"type":"array","items":{},"uniqueItems":false,"allOf":[{"uniqueItems":false,"minItems":1}]}`, `{"type":"array","items":{` + keep + `},"uniqueItems":false,"allOf":[{"minItems":1}]}`, ""},
		// Without uniqueItems, this not would refuse lists of equal items, too.
		{`{"type":"array","items":{"type":"string"},"not":{"minItems":2,"uniqueItems":true}}`, `{"type":"array","items":{"type":"string"}}`, "wider /not junctor-type"},
	})
}

// testFields fixes the schemas of fields. The fields are not required.
func testFields(t *testing.T, cases []fieldCase) {
	t.Helper()
	const at = inCRD + "/properties/f"
	for _, c := range cases {
		r := fixed(t, `{"type":"object","properties":{"f":`+c.in+`}}`)
		if got, notes := resultAt(t, r, at); got != compact(t, c.want) || notes != c.notes {
			t.Errorf("%s\n got %s %q\nwant %s %q", c.in, got, notes, compact(t, c.want), c.notes)
		}
	}
}

// testRoots fixes whole schemas.
func testRoots(t *testing.T, cases []fieldCase) {
	t.Helper()
	for _, c := range cases {
		r := fixed(t, c.in)
		if got, notes := resultAt(t, r, inCRD); got != compact(t, c.want) || notes != c.notes {
			t.Errorf("%s\n got %s %q\nwant %s %q", c.in, got, notes, compact(t, c.want), c.notes)
		}
	}
}

func fixed(t *testing.T, schema string) fix.Result {
	t.Helper()
	document := fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":%s}}]}}`, schema)
	r, err := fix.CRD(document)
	if err != nil {
		t.Fatal(err)
	}
	check(t, document, r)
	before := patched(t, document, r.Edits[:0])
	for i, e := range r.Edits {
		after := patched(t, document, r.Edits[:i+1])
		if after == before {
			t.Errorf("%s: an edit changes nothing: %+v", schema, e)
		}
		before = after
	}
	record(t, schema, r)
	return r
}

// patched is the document after some edits.
func patched(t *testing.T, document []byte, edits []fix.Edit) string {
	t.Helper()
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		t.Fatal(err)
	}
	value, err := splice.Patch(value, splices(edits))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// resultAt returns the value at a pointer after the edits, and the notes.
func resultAt(t *testing.T, r fix.Result, pointer string) (value, notes string) {
	t.Helper()
	text := json.RawMessage(r.JSON)
	for token := range strings.SplitSeq(pointer[1:], "/") {
		if text[0] == '[' {
			text = text[1 : len(text)-1] // of one item
			continue
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(text, &members); err != nil {
			t.Fatal(err)
		}
		text = members[token]
	}
	var list []string
	for _, n := range r.Notes {
		list = append(list, fmt.Sprintf("%s %s %s", n.Kind, strings.TrimPrefix(n.Pointer, pointer), n.Check))
	}
	return compact(t, string(text)), strings.Join(list, "; ")
}

// compact is JSON with sorted keys.
func compact(t *testing.T, text string) string {
	t.Helper()
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}
