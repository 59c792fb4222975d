package conformance

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// Every line of DIVERGENCES.md names a test of this file, and every test of this file is named.
func TestDivergencesArePinned(t *testing.T) {
	table, err := os.ReadFile("DIVERGENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("divergences_test.go")
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^\| [a-z-]+ \|.*\| (Test\w+) \|$`).FindAllStringSubmatch(string(table), -1) {
		named[m[1]] = true
		if !strings.Contains(string(source), "func "+m[1]+"(") {
			t.Errorf("there is no %s", m[1])
		}
	}
	for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(source), -1) {
		if m[1] != "TestDivergencesArePinned" && !named[m[1]] {
			t.Errorf("%s is not in DIVERGENCES.md", m[1])
		}
	}
	if len(named) == 0 {
		t.Error("the table is empty or has another form")
	}
}

func both(t *testing.T, schema string) (*engine.Schema, *oracle.Schema) {
	t.Helper()
	ours, err := engine.Compile([]byte(schema))
	if err != nil {
		t.Fatal("ours:", err)
	}
	theirs, err := oracle.Compile([]byte(schema))
	if err != nil {
		t.Fatal("theirs:", err)
	}
	return ours, theirs
}

func TestMetadataUnknownLimit(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"metadata":{"name":"x"`)
	for i := range 150 {
		fmt.Fprintf(&b, `,"u%03d":1`, i)
	}
	b.WriteString(`}}`)
	ours, theirs := both(t, `{"type":"object"}`)
	if n := len(ours.Normalize([]byte(b.String()), oracle.Request).Unknown); n != 150 {
		t.Errorf("ours lists %d", n)
	}
	if n := len(theirs.Normalize([]byte(b.String()), oracle.Request).Unknown); n != 100 {
		t.Errorf("theirs lists %d", n)
	}
}

// The oracle skips the step in which the reference would crash, so only our side is asked.
func TestStorageWithoutMetadata(t *testing.T) {
	ours, _ := both(t, `{"type":"object"}`)
	if got := ours.Normalize([]byte(`{"kind":"Tree"}`), oracle.Storage); string(got.Bytes) != `{"kind":"Tree"}` {
		t.Error(got)
	}
}

// The oracle puts the schema as written back into the error before it renders it; here it must equal ours.
func TestSchemaDumpDefaults(t *testing.T) {
	schema := []byte(`{"type":"object","default":{"metadata":null}}`)
	ours, theirs := engine.Check(schema, true), oracle.Check(schema, true)
	if len(ours.Errors) != 1 || len(theirs.Errors) != 1 || ours.Errors[0] != theirs.Errors[0] {
		t.Errorf("ours: %v\ntheirs: %v", ours, theirs)
	}
	if !strings.Contains(ours.String(), `"Default":{"metadata":null}`) {
		t.Error(ours)
	}
}

func TestDuplicateSchemaKeys(t *testing.T) {
	ours, theirs := both(t, `{"type":"object","properties":{"a":{"type":"string"}},"properties":{"b":{"type":"string"}}}`)
	object := []byte(`{"a":"1","b":"2"}`)
	if got := ours.Normalize(object, oracle.Request); string(got.Bytes) != `{"b":"2"}` {
		t.Error("ours:", got)
	}
	if got := theirs.Normalize(object, oracle.Request); string(got.Bytes) != `{"a":"1","b":"2"}` {
		t.Error("theirs:", got)
	}
}

func TestReferenceCrash(t *testing.T) {
	schema := []byte(`{"type":"object","x-kubernetes-validations":[{"rule":"true"}],"properties":{"a":{"type":"string","items":{"type":"object","properties":{"b":{"type":"string","x-kubernetes-validations":[{"rule":"true"}]}}}}}}`)
	if v := oracle.Check(schema, false); v.Panic == nil {
		t.Error("theirs:", v)
	}
	if v := engine.Check(schema, false); !v.Accepted() {
		t.Error("ours:", v)
	}
}

func TestSchemaNumberRange(t *testing.T) {
	schema := []byte(`{"type":"object","x-foo":1e400}`)
	if v := oracle.Check(schema, false); !v.Accepted() {
		t.Error("theirs:", v)
	}
	if v := engine.Check(schema, false); v.Undecodable == nil {
		t.Error("ours:", v)
	}
}

func TestEmbeddedRootTwice(t *testing.T) {
	ours, theirs := both(t, `{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"a":{"type":"string"}}}`)
	object := []byte(`{"metadata":{"u":1}}`)
	if got := ours.Normalize(object, oracle.Request).Unknown; len(got) != 1 {
		t.Error("ours:", got)
	}
	if got := theirs.Normalize(object, oracle.Request).Unknown; len(got) != 2 {
		t.Error("theirs:", got)
	}
}

func TestUnreachableRootDefault(t *testing.T) {
	for _, schema := range []string{`{"type":"object","default":1}`, `{"type":"object","items":{"type":"string","default":"a"}}`} {
		if _, err := oracle.Compile([]byte(schema)); err == nil {
			t.Errorf("theirs compiles %s", schema)
		}
		ours, err := engine.Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if got := ours.Normalize([]byte(`{}`), oracle.Request); string(got.Bytes) != `{}` {
			t.Errorf("ours: %s", got.Bytes)
		}
	}
}

func TestValueNegativeZero(t *testing.T) {
	ours, _ := both(t, `{"type":"object","properties":{"a":{"type":"number"}}}`)
	object := map[string]any{"a": math.Copysign(0, -1), "b": true}
	if err := ours.Value(object, oracle.Request); err != nil {
		t.Fatal(err)
	}
	if got := oracle.Marshal(object); string(got) != `{"a":0}` {
		t.Errorf("ours: %s", got)
	}
}
