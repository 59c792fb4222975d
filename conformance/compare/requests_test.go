package compare

import (
	"testing"

	"github.com/espalier-dev/espalier/conformance/forms"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// Numbers that change their type when they are stored are explained, also where only a generation or an error shows it.
func TestRequestsExplainNumberForms(t *testing.T) {
	const head = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"name":"a","namespace":"b","resourceVersion":"7"}`
	p, d := NewResources([]byte(`{"type":"object","properties":{"n":{"type":"number"},"l":{"enum":[[-0.0,1e2]],"x-kubernetes-preserve-unknown-fields":true}},"enum":[{}]}`), forms.Form{})
	if d != nil {
		t.Fatal(d)
	}
	for body, want := range map[string]string{
		`,"l":[0,100],"n":0.0}`: numberForm, `,"l":[0,100],"n":-0.0}`: numberForm, `,"l":[0,100],"n":2}`: "", `,"l":[-0.0,1e2],"n":0}`: numberForm,
	} {
		d, theirs, row := p.Request(oracle.Operation{Verb: oracle.Update, Old: []byte(head + `,"l":[0,100],"n":0}`), Body: []byte(head + body)})
		if d != nil || len(theirs.Errors) == 0 || row != want {
			t.Errorf("%s: row %q, want %q\n%v\n%s", body, row, want, d, &theirs)
		}
	}
}

func TestRequestFindsDifferences(t *testing.T) {
	pruning, _ := NewResources([]byte(`{"type":"object"}`), forms.Form{})
	preserving, _ := NewResources([]byte(`{"type":"object"}`), forms.Form{Preserve: true})
	mixed := &Resources{schema: pruning.schema, ours: preserving.ours, theirs: pruning.theirs}
	body := []byte(`{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a","namespace":"b"},"x":1}`)
	if d, _, row := mixed.Request(oracle.Operation{Body: body}); d == nil || row != "" {
		t.Errorf("a field that only one side prunes was not noticed (%s)", row)
	}
}

// A deletionTimestamp of the year 1 is explained for the object only, also where an error shows the object. Both sides
// keep one of an embedded resource.
func TestRequestsExplainNullDeletion(t *testing.T) {
	const (
		head     = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{`
		embedded = `"a":{"apiVersion":"v1","kind":"K","metadata":{"deletionTimestamp":"0001-01-01T00:00:00Z","labels":{"a":"b"}}}`
		never    = `"deletionTimestamp":"0001-01-01T00:00:00Z","name":"a","namespace":"b","resourceVersion":"7"`
		plain    = `"name":"a","namespace":"b","resourceVersion":"7"`
	)
	p, d := NewResources([]byte(`{"type":"object","properties":{"a":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}},"enum":[{}]}`), forms.Form{})
	if d != nil {
		t.Fatal(d)
	}
	for body, want := range map[string]string{
		head + never + `}}`: "null-deletion-timestamp", head + never + `},` + embedded + `}`: "null-deletion-timestamp", head + plain + `},` + embedded + `}`: "",
	} {
		d, theirs, row := p.Request(oracle.Operation{Verb: oracle.Update, Old: []byte(head + plain + `}}`), Body: []byte(body)})
		if d != nil || len(theirs.Errors) == 0 || row != want {
			t.Errorf("%s: row %q, want %q\n%v\n%s", body, row, want, d, &theirs)
		}
	}
}
