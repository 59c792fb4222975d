package conformance

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/engine"
	"github.com/espalier-dev/espalier/conformance/forms"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// Every line of DIVERGENCES.md names a test of this file or, with its folder, one of another package, and every test of
// this file is named.
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
	rows := regexp.MustCompile(`(?m)^\| [a-z0-9-]+ \|.*$`).FindAllString(string(table), -1)
	pinned := regexp.MustCompile(`\| (?:([a-z/]+)\.)?(Test\w+) \|$`)
	for _, row := range rows {
		m := pinned.FindStringSubmatch(row)
		switch {
		case strings.HasPrefix(row, "| id |"):
		case m == nil:
			t.Errorf("no test is named by %s", row)
		case m[1] != "":
			if !testExists(t, m[1], m[2]) {
				t.Errorf("there is no %s in %s", m[2], m[1])
			}
		default:
			named[m[2]] = true
			if !strings.Contains(string(source), "func "+m[2]+"(") {
				t.Errorf("there is no %s", m[2])
			}
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

// testExists reports whether a package has a test of that name.
func testExists(t *testing.T, folder, name string) bool {
	t.Helper()
	if module, _, _ := strings.Cut(folder, "/"); module == "server" || module == "crd" {
		folder = "../" + folder // of another module
	}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		source, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(source), "func "+name+"(")
	})
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
	if len(theirs.Errors) != 1 || !slices.Equal(ours.Errors, theirs.All()) {
		t.Errorf("ours: %v\ntheirs: %v", ours, theirs)
	}
	if !strings.Contains(ours.String(), `"Default":{"metadata":null}`) {
		t.Error(ours)
	}
}

// resources builds the resource of a schema in a form on both sides.
func resources(t *testing.T, schema string, form forms.Form) (*engine.Resource, *oracle.Resource) {
	t.Helper()
	doc, err := form.Wrap([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	ours, err := engine.NewResource(doc, forms.Version)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := oracle.NewResource(doc, forms.Version)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func TestPreservedEmbeddedMetadata(t *testing.T) {
	const schema = `{"type":"object","properties":{"e":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`
	doc := strings.Replace(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},"spec":{"group":"orchard.example",
		"scope":"Namespaced","preserveUnknownFields":true,"names":{"plural":"trees","kind":"Tree"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":$}}]}}`, "$", schema, 1)
	ours, err := engine.NewResource([]byte(doc), "v1")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := oracle.NewResource([]byte(doc), "v1")
	if err != nil {
		t.Fatal(err)
	}
	const object = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"a","namespace":"b"},"e":{"apiVersion":"v1","kind":"K","metadata":$}}`
	unknown := oracle.Operation{Body: []byte(strings.Replace(object, "$", `{"name":"n","foo":1}`, 1))}
	a, b := ours.Do(unknown), theirs.Do(unknown)
	if !strings.Contains(string(a.Stored), `"foo":1`) || len(a.Errors) > 0 {
		t.Errorf("ours: %s", &a)
	}
	if strings.Contains(string(b.Stored), `"foo":1`) || len(b.Strict) != 1 {
		t.Errorf("theirs: %s", &b)
	}
	malformed := oracle.Operation{Body: []byte(strings.Replace(object, "$", `{"name":3}`, 1))}
	a, b = ours.Do(malformed), theirs.Do(malformed)
	if a.Refused != "" || len(a.Errors) == 0 || b.Refused == "" {
		t.Errorf("ours: %s\ntheirs: %s", &a, &b)
	}
}

func TestNullDeletionTimestamp(t *testing.T) {
	ours, theirs := resources(t, `{"type":"object"}`, forms.Form{})
	const object = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z",$"generation":1,"name":"a","namespace":"b","resourceVersion":"7","uid":"u"}}`
	old := []byte(strings.Replace(object, "$", "", 1))
	q := oracle.Operation{Verb: oracle.Update, Old: old, Body: []byte(strings.Replace(object, "$", `"deletionTimestamp":"0001-01-01T00:00:00Z",`, 1))}
	q.Body = []byte(strings.Replace(string(q.Body), `"generation":1,`, ``, 1))
	if a := ours.Do(q); string(a.Stored) != string(old) {
		t.Errorf("ours: %s", &a)
	}
	if b := theirs.Do(q); string(b.Stored) != strings.Replace(object, "$", `"deletionTimestamp":null,`, 1) {
		t.Errorf("theirs: %s", &b)
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
	if v := engine.Check(schema, false); len(v.Errors) != 1 || !strings.Contains(v.Errors[0], "failed to convert to declType for CEL validation rules") {
		t.Error("ours:", v)
	}
}

func TestRuleLiteralCrash(t *testing.T) {
	schema := []byte(`{"type":"object","x-kubernetes-validations":[{"rule":"{b'a': 1}.size() == 1"}]}`)
	if v := oracle.Check(schema, false); v.Panic == nil {
		t.Error("theirs:", v)
	}
	if v := engine.Check(schema, false); len(v.Errors) != 1 || !strings.Contains(v.Errors[0], "program instantiation failed: ") {
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

// accepts returns whether each side accepts an object of a schema with one field, x.
func accepts(t *testing.T, x, value string) (ours, theirs bool) {
	t.Helper()
	a, b := both(t, `{"type":"object","properties":{"x":`+x+`}}`)
	object := []byte(`{"x":` + value + `}`)
	u, v := a.Validate(object, oracle.ValidateOptions{}), b.Validate(object, oracle.ValidateOptions{})
	return u.Valid(), v.Valid()
}

// strictly returns whether Espalier accepts an object with the option Strict.
func strictly(t *testing.T, x, value string) bool {
	t.Helper()
	s, err := espalier.Compile([]byte(`{"type":"object","properties":{"x":`+x+`}}`), espalier.CompileOptions{Strict: true})
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Validate([]byte(`{"x":`+value+`}`), espalier.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return v.Valid()
}

func TestNumberForm(t *testing.T) {
	const x = `{"type":"number","minimum":2.5}`
	for value, want := range map[string][2]bool{`2`: {true, true}, `2.0`: {true, false}} {
		ours, theirs := accepts(t, x, value)
		if got := [2]bool{ours, theirs}; got != want {
			t.Errorf("%s is accepted by us and them: %v, want %v", value, got, want)
		}
	}
	const nested = `{"type":"array","items":{"type":"number"},"enum":[[2.0]]}`
	for value, want := range map[string][2]bool{`[2]`: {false, false}, `[2.0]`: {false, true}} {
		ours, theirs := accepts(t, nested, value)
		if got := [2]bool{ours, theirs}; got != want || !strictly(t, nested, value) {
			t.Errorf("%s is accepted by us and them: %v, want %v, and strictly", value, got, want)
		}
	}
	resource, reference := resources(t, `{"type":"object","properties":{"n":{"type":"number"}}}`, forms.Form{})
	const object = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"creationTimestamp":"2026-01-02T03:04:05Z","generation":1,"name":"a","namespace":"b","resourceVersion":"7"},"n":2`
	q := oracle.Operation{Verb: oracle.Update, Old: []byte(object + "}"), Body: []byte(object + ".0}")}
	if a, b := resource.Do(q), reference.Do(q); string(a.Stored) != object+"}" || string(b.Stored) != strings.Replace(object, `"generation":1`, `"generation":2`, 1)+"}" {
		t.Errorf("ours: %s\ntheirs: %s", &a, &b)
	}
}

func TestFractionalBounds(t *testing.T) {
	for _, c := range []struct {
		x, value             string
		ours, theirs, strict bool
	}{
		{`{"type":"number","maximum":2.5,"exclusiveMaximum":true}`, `2`, true, false, true},
		{`{"type":"number","multipleOf":0.5}`, `3`, true, false, true},
		{`{"type":"number","maximum":1e300}`, `3`, true, false, true},
		{`{"type":"number","minimum":2.5}`, `2`, true, true, false},
		{`{"type":"number","minimum":2.5}`, `1`, false, false, false},
		{`{"type":"number","not":{"maximum":1e300}}`, `3`, true, true, false},
		{`{"type":"number","oneOf":[{},{"multipleOf":0.5}]}`, `3`, true, true, false},
	} {
		ours, theirs := accepts(t, c.x, c.value)
		if strict := strictly(t, c.x, c.value); ours != c.ours || theirs != c.theirs || strict != c.strict {
			t.Errorf("%s on %s: ours %v, theirs %v, strict %v", c.x, c.value, ours, theirs, strict)
		}
	}
}

func TestEnumNull(t *testing.T) {
	for _, c := range []struct {
		x            string
		ours, theirs bool
	}{
		{`{"type":"string","nullable":true,"enum":["a",null]}`, true, false},
		{`{"type":"string","nullable":true,"enum":["a"]}`, false, false},
		{`{"type":"string","enum":["a",null]}`, false, false},
	} {
		if ours, theirs := accepts(t, c.x, `null`); ours != c.ours || theirs != c.theirs {
			t.Errorf("%s on null: ours %v, theirs %v", c.x, ours, theirs)
		}
	}
}

func TestEnumConversion(t *testing.T) {
	for x, value := range map[string]string{`{"type":"number","enum":[1]}`: `1.5`, `{"x-kubernetes-int-or-string":true,"enum":["A"]}`: `65`} {
		if ours, theirs := accepts(t, x, value); !ours || !theirs || strictly(t, x, value) {
			t.Errorf("%s on %s: ours %v, theirs %v, strict %v", x, value, ours, theirs, strictly(t, x, value))
		}
	}
}

func TestFormatArrays(t *testing.T) {
	const x, value = `{"type":"string","format":"date"}`, `["whatever"]`
	if ours, theirs := accepts(t, x, value); !ours || !theirs || strictly(t, x, value) {
		t.Errorf("ours %v, theirs %v, strict %v", ours, theirs, strictly(t, x, value))
	}
}

func TestErrorLimit(t *testing.T) {
	ours, theirs := both(t, `{"type":"object","properties":{"x":{"type":"array","items":{"type":"string","maxLength":0}}}}`)
	object := []byte(`{"x":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 10_010), ",") + `]}`)
	if got := ours.Validate(object, oracle.ValidateOptions{}); len(got.Errors) != 10_001 { // one of them says how many are omitted
		t.Errorf("ours has %d errors", len(got.Errors))
	}
	if got := theirs.Validate(object, oracle.ValidateOptions{}); len(got.Errors) != 10_010 {
		t.Errorf("theirs has %d errors", len(got.Errors))
	}
}

func TestListMapKeyCrash(t *testing.T) {
	ours, theirs := both(t, `{"type":"object","x-kubernetes-validations":[{"rule":"self.x == self.x"}],"properties":{"x":{"type":"array","items":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],`+
		`"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"}}}}}}}`)
	object := []byte(`{"x":[[{"k":{}}]]}`)
	o := oracle.ValidateOptions{Old: object, Ratchet: true}
	if got := theirs.Validate(object, o); len(got.Errors) != 1 || !strings.Contains(got.Errors[0], "hash of unhashable type") {
		t.Error("theirs:", got.String())
	}
	if got := ours.Validate(object, o); strings.Contains(got.String(), "unhashable") {
		t.Error("ours:", got.String())
	}
}

func TestUnions(t *testing.T) {
	ours, theirs := both(t, `{"type":"object","x-kubernetes-unions":[{"fields":{"a":"","b":""}}],"properties":{"a":{"type":"string"},"b":{"type":"string"}}}`)
	object := []byte(`{"a":"","b":""}`)
	if got := theirs.Validate(object, oracle.ValidateOptions{}); !got.Valid() {
		t.Error("theirs:", got.String())
	}
	if got := ours.Validate(object, oracle.ValidateOptions{}); got.Valid() {
		t.Error("ours accepts both members of a union")
	}
}

func TestRuleTypeName(t *testing.T) {
	findings, err := cel.Check([]byte(`{"type":"object","properties":{"x":{"type":"object","x-kubernetes-validations":[{"rule":"self == 1"}]}}}`), cel.CheckOptions{})
	if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Detail, "'selfType'") && !strings.Contains(findings[0].Detail, "(selfType, int)") {
		t.Error(findings, err)
	}
}

func TestRuleKeyText(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":"object","properties":{"l":{"type":"array","maxItems":4,"items":{"type":"integer"}}},
		"x-kubernetes-validations":[{"rule":"self.l.transformMapEntry(k, v, {%s: v}).size() == 1"}]}}}`
	object := []byte(`{"a":{"l":[2,1]}}`)
	for key, want := range map[string]string{"self": `insert failed: key {"l":[2,1]} already exists`, "'x'": `insert failed: key x already exists`} {
		compiled, err := espalier.Compile(fmt.Appendf(nil, schema, key), espalier.CompileOptions{})
		if err != nil {
			t.Fatal(err)
		}
		rules, err := cel.Compile(compiled)
		if err != nil {
			t.Fatal(err)
		}
		got, err := compiled.Validate(object, espalier.ValidateOptions{Rules: rules})
		if err != nil || len(got.Errors) != 1 || !strings.HasPrefix(got.Errors[0].Detail, want) {
			t.Error("ours:", got.Errors, err)
		}
		ours, theirs := both(t, fmt.Sprintf(schema, key))
		a, b := ours.Validate(object, oracle.ValidateOptions{}), theirs.Validate(object, oracle.ValidateOptions{})
		if a.String() != b.String() {
			t.Errorf("%s\n%s", &a, &b)
		}
	}
}

func TestRuleTypeSize(t *testing.T) {
	nested := func(depth int) []byte {
		rule := "true"
		for i := depth; i > 0; i-- {
			rule = fmt.Sprintf("[{a%d: a%d}].all(a%d, %s)", i-1, i-1, i, rule)
		}
		rule = strings.ReplaceAll(rule, "a0", "self.a")
		return whole(`{"type":"object","properties":{"spec":{"type":"object","properties":{"a":{"type":"string"}},"x-kubernetes-validations":[{"rule":"`+rule+`"}]}}}`, "")
	}
	if v := oracle.CRD(nested(8), oracle.CRDOptions{}); len(v.Errors) > 0 { // with 16 it is busy for a minute
		t.Errorf("the reference: %v", v)
	}
	for depth, refused := range map[int]bool{4: false, 8: true, 16: true, 40: true} {
		v := engine.CRD(nested(depth), oracle.CRDOptions{})
		if got := slices.ContainsFunc(v.Errors, func(e string) bool { return strings.Contains(e, "the types of its parts are too large") }); got != refused {
			t.Errorf("ours, %d: %.300v", depth, v)
		}
	}
}

// whole puts a schema and more into a CRD.
func whole(schema, more string) []byte {
	return []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},` +
		`"spec":{"group":"orchard.example","scope":"Namespaced","names":{"plural":"trees","kind":"Tree"},` +
		`"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}` + more + `}]}}`)
}

func TestSelectableFieldsCrash(t *testing.T) {
	for _, c := range []struct{ schema, path string }{
		{`null`, ".spec"},
		{`{"type":"object","properties":{"spec":{"type":"string","$ref":"x"}}}`, ".spec"},
		{`{"type":"object","properties":{"m":{"type":"object","additionalProperties":true}}}`, ".m.k.x"},
		{`{"type":"object"}`, "." + strings.Repeat("a", 1<<16)},
	} {
		doc := whole(c.schema, `,"selectableFields":[{"jsonPath":"`+c.path+`"}]`)
		if v := oracle.CRD(doc, oracle.CRDOptions{}); v.Panic == nil && len(c.path) < 100 {
			t.Errorf("%.50s: the reference does not crash: %v", c.path, v)
		}
		v := engine.CRD(doc, oracle.CRDOptions{})
		if !slices.ContainsFunc(v.Errors, func(e string) bool { return strings.Contains(e, "is an invalid path") }) {
			t.Errorf("%.50s: ours: %.200v", c.path, v)
		}
	}
}

func TestFindingOrder(t *testing.T) {
	doc := whole(`{"type":"object"}`, `,"additionalPrinterColumns":[{"name":"x","type":"string","jsonPath":"x"}],"subresources":{"scale":{"specReplicasPath":"x","statusReplicasPath":".status.x"}}`)
	const column, scale = "spec.additionalPrinterColumns[0].JSONPath", "spec.subresources.scale.specReplicasPath"
	for name, tt := range map[string]struct {
		got  oracle.CRDResult
		want []string
	}{
		"ours":   {engine.CRD(doc, oracle.CRDOptions{}), []string{column, scale}},
		"theirs": {oracle.CRD(doc, oracle.CRDOptions{}), []string{scale, column}},
	} {
		var fields []string
		for _, e := range tt.got.Ordered {
			field, _, _ := strings.Cut(e, ": ")
			fields = append(fields, field)
		}
		if !slices.Equal(fields, tt.want) {
			t.Errorf("%s: %q, want errors of %q", name, tt.got.Ordered, tt.want)
		}
	}
}

func TestDuplicateCRDKeys(t *testing.T) {
	doc := whole(`{"type":"object"}`, `,"subresources":{"status":{}},"subresources":{"scale":{"specReplicasPath":".spec.n","statusReplicasPath":".status.n"}}`)
	other := []byte(strings.Replace(string(doc), `{"type":"object"}`, `{"type":"object","nullable":false,"anyOf":[]}`, 1))
	if v := oracle.CRD(other, oracle.CRDOptions{}); len(v.Errors) == 0 {
		t.Errorf("the reference does not see the first status: %v", v)
	}
	if v := engine.CRD(other, oracle.CRDOptions{}); len(v.Errors) > 0 {
		t.Errorf("ours: %v", v)
	}
}

func TestCRDLimit(t *testing.T) {
	doc := strings.Replace(string(whole(`{"type":"object"}`, "")), `"metadata":{`, `"metadata":{"ownerReferences":[`+strings.Repeat(`{},`, 400)+`{}],`, 1)
	theirs := oracle.CRD([]byte(doc), oracle.CRDOptions{})
	d, err := crd.Parse([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	findings, err := crd.Validate(d, crd.ValidateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	noted := slices.ContainsFunc(findings, func(f finding.Finding) bool { return f.Check == "too-many-findings" })
	if n := len(findings) - 1; !noted || n >= len(theirs.Errors) || n < 200 {
		t.Errorf("%d findings, said so: %v; the reference has %d", n, noted, len(theirs.Errors))
	}
}
