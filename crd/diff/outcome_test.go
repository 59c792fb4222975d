package diff_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/diff"
)

// TestOutcomes has objects, the change of spec, and all that is said about them.
func TestOutcomes(t *testing.T) {
	const head = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"namespace":"n","name":"a"},"spec":`
	const limited = `"f":{"type":"integer","maximum":5},"g":{"type":"integer"}`
	for _, c := range []struct{ name, old, now, object, want string }{
		{"stays", limited, limited, head + `{"f":1}}`, "n/a v1: "},
		{"without a namespace", limited, limited, `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a"}}`, "a v1: "},
		{"invalid in both", limited, limited, head + `{"f":6}}`, "n/a v1: ; was invalid"},
		{"invalid in another way", limited, `"f":{"type":"integer","maximum":5},"g":{"type":"integer","maximum":1}`, head + `{"f":6,"g":2}}`,
			"n/a v1: becomes invalid; was invalid; invalid [spec.g: Invalid value: 2: spec.g in body should be less than or equal to 1]"},
		{"pruned", limited, `"f":{"type":"integer"}`, head + `{"g":1,"h":1}}`, "n/a v1: loses fields; pruned [spec.g]"},
		{"kept", limited, limited + `,"h":{"type":"integer"}`, head + `{"h":1,"i":1}}`, "n/a v1: keeps fields; kept [spec.h]"},
		{"defaulted", `"f":{"type":"integer","default":1}`, `"f":{"type":"integer","default":1},"g":{"type":"integer","default":1}`, head + `{}}`, "n/a v1: is newly defaulted; defaulted [spec.g]"},
		{"another default", `"f":{"type":"integer","default":1}`, `"f":{"type":"integer","default":2}`, head + `{}}`,
			"n/a v1: changes otherwise; explained: the stored object differs: a default changed or was removed, or the API server drops or keeps a null"},
		{"pruned and another default", `"f":{"type":"integer","default":1},"g":{"type":"integer"}`, `"f":{"type":"integer","default":2}`, head + `{"g":1}}`, "n/a v1: loses fields; pruned [spec.g]"},
		{"another group", limited, limited, `{"apiVersion":"other.example/v1","kind":"Tree"}`, ` v1: is not an object of the resource; explained: it is a Tree of "other.example/v1", not a Tree of orchard.example`},
		{"another kind", limited, limited, `{"apiVersion":"orchard.example/v1","kind":"Plant","metadata":{"name":"a"}}`,
			`a v1: is not an object of the resource; explained: it is a Plant of "orchard.example/v1", not a Tree of orchard.example`},
		{"no group", limited, limited, `{"apiVersion":"v1","kind":"Tree"}`, ` : is not an object of the resource; explained: it is a Tree of "v1", not a Tree of orchard.example`},
		{"no version", limited, limited, `{"apiVersion":"orchard.example/v7","kind":"Tree"}`, ` v7: is not an object of the resource; explained: the old CRD has no version "v7"`},
		{"not JSON", limited, limited, `{"a":}`, " : is not an object of the resource; explained: not JSON: "},
		{"a kind that is no text", limited, limited, `{"apiVersion":"orchard.example/v1","kind":["Tree"]}`,
			` v1: is not an object of the resource; explained: it is a  of "orchard.example/v1", not a Tree of orchard.example`},
	} {
		outcomes, err := objects(crdWith(spec(c.old)), crdWith(spec(c.now)), [][]byte{[]byte(c.object)})
		if err != nil || len(outcomes) != 1 {
			t.Fatalf("%s: %v %v", c.name, outcomes, err)
		}
		if got := told(outcomes[0]); got != c.want && (c.name != "not JSON" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s:\n%s\nexpected:\n%s", c.name, got, c.want)
		}
	}
}

// told writes all members of an outcome.
func told(x diff.Outcome) string {
	text := fmt.Sprintf("%s %s: %s", x.Name, x.Version, x.Fate)
	if x.WasInvalid {
		text += "; was invalid"
	}
	if len(x.Invalid) > 0 {
		text += fmt.Sprintf("; invalid %v", x.Invalid)
	}
	for _, list := range []struct {
		what  string
		paths []string
	}{{"pruned", x.Pruned}, {"defaulted", x.Defaulted}, {"kept", x.Kept}} {
		if len(list.paths) > 0 {
			text += fmt.Sprintf("; %s %v", list.what, list.paths)
		}
	}
	if x.Explanation != "" {
		text += "; explained: " + x.Explanation
	}
	return text
}

// TestOutcomesOfCRDs changes what is around the schema.
func TestOutcomesOfCRDs(t *testing.T) {
	const object = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a"},"spec":{"f":7}}`
	old := string(crdWith(spec(`"f":{"type":"integer"}`)))
	limited := strings.Replace(old, `"type":"integer"`, `"type":"integer","maximum":5`, 1)
	const tooLarge = `becomes invalid, is not served; invalid [spec.f: Invalid value: 7: spec.f in body should be less than or equal to 5]; explained: the new CRD does not serve `
	for _, c := range []struct{ name, now, want string }{
		{"withdrawn", strings.Replace(limited, `"served":true`, `"served":false`, 1), "a v1: " + tooLarge + "Tree of v1"},
		{"stored objects are read as the storage version", strings.Replace(limited, `"name":"v1"`, `"name":"v2"`, 1), "a v1: " + tooLarge + "Tree of v1"},
		{"another kind", strings.Replace(limited, `"kind":"Tree"`, `"kind":"Plant"`, 1), "a v1: " + tooLarge + "Plant of v1"},
		{"another group", strings.Replace(limited, `"group":"orchard.example"`, `"group":"other.example"`, 1), "a v1: " + tooLarge + "Tree of v1"},
		{"without a schema every object is valid", strings.NewReplacer(`,"schema":`, `,"unknown":`).Replace(limited), "a v1: "},
		{"no storage version", strings.NewReplacer(`"name":"v1"`, `"name":"v2"`, `"storage":true`, `"storage":false`).Replace(limited), "a v1: is not served; explained: the new CRD does not serve Tree of v1"},
	} {
		outcomes, err := objects([]byte(old), []byte(c.now), [][]byte{[]byte(`{}`), []byte(object)})
		if err != nil || len(outcomes) != 2 {
			t.Fatalf("%s: %v %v", c.name, outcomes, err)
		}
		if got := told(outcomes[1]); got != c.want || outcomes[1].Object != 1 {
			t.Errorf("%s:\n%s\nexpected:\n%s", c.name, got, c.want)
		}
	}
}

// An object that exceeds a limit is refused, and which CRD refuses it is told apart.
func TestOutcomesWithinLimits(t *testing.T) {
	d := parsed(spec(`"f":{"type":"integer"}`))
	outcomes, err := diff.Objects(d, d, [][]byte{[]byte(`{"apiVersion":"orchard.example/v1","kind":"Tree","spec":{"f":{"g":{"h":1}}}}`)}, espalier.Limits{MaxDepth: 3})
	if err != nil || outcomes[0].Fate != diff.Unknown || outcomes[0].Explanation == "" {
		t.Errorf("%+v %v", outcomes, err)
	}
	const broken = `{"properties":{"f":{}}}`
	for _, c := range []struct{ old, now, want string }{
		{broken, spec(`"f":{"type":"integer"}`), "the old CRD: version v1: "},
		{spec(`"f":{"type":"integer"}`), broken, "the new CRD: version v1: "},
	} {
		_, err := objects(crdWith(c.old), crdWith(c.now), [][]byte{[]byte(`{"apiVersion":"orchard.example/v1","kind":"Tree"}`)})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v, expected %s", err, c.want)
		}
	}
}

func TestNamesOfSets(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{diff.AllAudiences.String(), "writers, readers, stored objects"},
		{(diff.Writers | diff.Stored).String(), "writers, stored objects"},
		{(diff.KeepsFields | diff.ChangesOtherwise).String(), "keeps fields, changes otherwise"},
		{diff.Safe.Severity().String() + diff.Risky.Severity().String() + diff.Breaking.Severity().String(), "infowarningerror"},
	} {
		if c.got != c.want {
			t.Errorf("%q, expected %q", c.got, c.want)
		}
	}
}
