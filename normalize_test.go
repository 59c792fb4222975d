package espalier_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/costtest"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

func compile(t testing.TB, schema string) *espalier.Schema {
	t.Helper()
	// Some defaults are such as only stored CRDs have.
	s, err := espalier.Compile([]byte(schema), espalier.CompileOptions{Stored: true})
	if err != nil {
		t.Fatalf("%s: %v", schema, err)
	}
	return s
}

// object wraps the schema of one field, x, into that of a resource.
func object(x string) string { return `{"type":"object","properties":{"x":` + x + `}}` }

func TestNormalize(t *testing.T) {
	const embedded = `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`
	tests := []struct {
		name, schema, in, want string
		source                 espalier.Source
		changes                espalier.Changes
	}{
		{name: "nothing to do", schema: object(`{"type":"string"}`), in: `{"kind":"K","x":"a"}`, want: `{"kind":"K","x":"a"}`},
		{name: "only the form changes", schema: object(`{"type":"string"}`), in: " {\"x\" : \"\\u0061<\"}\n", want: `{"x":"a\u003c"}`},
		{name: "numbers", schema: object(`{"type":"array","items":{"type":"number"}}`), in: `{"x":[1.0,-0,1e3,0.50,1e21,12345678901234567890]}`, want: `{"x":[1,0,1000,0.5,1e+21,12345678901234567000]}`},
		{name: "duplicates", schema: object(`{"type":"string"}`), in: `{"x":"a","x":"b"}`, want: `{"x":"b"}`, changes: espalier.Duplicated},
		{name: "duplicates by escape", schema: object(`{"type":"string"}`), in: `{"x":"a","\u0078":"b"}`, want: `{"x":"b"}`, changes: espalier.Duplicated},
		{name: "duplicates in what is preserved", schema: object(`{"x-kubernetes-preserve-unknown-fields":true}`), in: `{"x":{"a":1,"a":{"b":1,"b":2}}}`, want: `{"x":{"a":{"b":2}}}`, changes: espalier.Duplicated},
		{name: "unknown at the root", schema: object(`{"type":"string"}`), in: `{"a":1,"x":"a","z":{}}`, want: `{"x":"a"}`, changes: espalier.Pruned},
		{name: "unknown below an unspecified array", schema: object(`{"type":"object","additionalProperties":true}`), in: `{"x":{"a":[[{"b":1}],2]}}`, want: `{"x":{"a":[[{}],2]}}`, changes: espalier.Pruned},
		{name: "preserving reaches items, not fields", schema: object(`{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","properties":{"a":{"type":"object"}}}}`),
			in: `{"x":[{"u":{"v":1},"a":{"w":1}}]}`, want: `{"x":[{"a":{},"u":{"v":1}}]}`, changes: espalier.Pruned},
		{name: "null dropped", schema: object(`{"type":"string"}`), in: `{"x":null}`, want: `{}`, changes: espalier.NullDropped},
		{name: "null kept", schema: object(`{"type":"string","nullable":true}`), in: `{"x":null}`, want: `{"x":null}`},
		{name: "nullable null keeps off the default", schema: object(`{"type":"string","nullable":true,"default":"d"}`), in: `{"x":null}`, want: `{"x":null}`},
		{name: "null replaced", schema: object(`{"type":"string","default":"d"}`), in: `{"x":null}`, want: `{"x":"d"}`, changes: espalier.Defaulted},
		{name: "null item replaced", schema: object(`{"type":"array","items":{"type":"string","default":"d"}}`), in: `{"x":[null,"a"]}`, want: `{"x":["d","a"]}`, changes: espalier.Defaulted},
		{name: "null item kept", schema: object(`{"type":"array","items":{"type":"string"}}`), in: `{"x":[null]}`, want: `{"x":[null]}`, changes: espalier.Mismatched},
		{name: "missing filled in", schema: object(`{"type":"object","properties":{"a":{"type":"integer","default":1},"c":{"type":"integer","default":3}},"additionalProperties":true}`),
			in: `{"x":{"b":2}}`, want: `{"x":{"a":1,"b":2,"c":3}}`, changes: espalier.Defaulted},
		{name: "nothing is filled in after conversion", schema: object(`{"type":"object","properties":{"a":{"type":"integer","default":1},"b":{"type":"integer","default":2},"c":{"type":"integer"}}}`), source: espalier.Converted,
			in: `{"x":{"b":null,"c":null,"u":1}}`, want: `{"x":{"b":null}}`, changes: espalier.Pruned | espalier.NullDropped | espalier.Mismatched},
		{name: "missing parent stays missing", schema: object(`{"type":"object","properties":{"a":{"type":"integer","default":1}}}`), in: `{}`, want: `{}`},
		{name: "default of a default", schema: object(`{"type":"object","default":{},"properties":{"a":{"type":"integer","default":1}}}`), in: `{}`, want: `{"x":{"a":1}}`, changes: espalier.Defaulted},
		{name: "default is pruned", schema: object(`{"type":"object","default":{"u":1},"properties":{"a":{"type":"integer"}}}`), in: `{}`, want: `{"x":{}}`, changes: espalier.Defaulted},
		{name: "mismatch", schema: object(`{"type":"integer"}`), in: `{"x":"1"}`, want: `{"x":"1"}`, changes: espalier.Mismatched},
		{name: "integral float", schema: object(`{"type":"integer"}`), in: `{"x":1.0}`, want: `{"x":1}`},
		{name: "fraction", schema: object(`{"type":"integer"}`), in: `{"x":1.5}`, want: `{"x":1.5}`, changes: espalier.Mismatched},
		{name: "int or string", schema: object(`{"x-kubernetes-int-or-string":true}`), in: `{"x":true}`, want: `{"x":true}`, changes: espalier.Mismatched},
		{name: "metadata", schema: object(`{"type":"string"}`), in: `{"metadata":{"name":"n","labels":{},"creationTimestamp":null,"huh":1,"finalizers":["a"]}}`, want: `{"metadata":{"finalizers":["a"],"name":"n"}}`, changes: espalier.Coerced | espalier.Pruned},
		{name: "metadata is null", schema: object(`{"type":"string"}`), in: `{"metadata":null}`, want: `{"metadata":{}}`, changes: espalier.Coerced},
		{name: "metadata with a null label", schema: object(`{"type":"string"}`), in: `{"metadata":{"labels":{"a":null}}}`, want: `{"metadata":{"labels":{"a":""}}}`, changes: espalier.Coerced},
		{name: "metadata with another time", schema: object(`{"type":"string"}`), in: `{"metadata":{"creationTimestamp":"2024-01-01T02:00:00.5+02:00"}}`, want: `{"metadata":{"creationTimestamp":"2024-01-01T00:00:00Z"}}`, changes: espalier.Coerced},
		{name: "stored malformed metadata", source: espalier.Storage, schema: object(`{"type":"string"}`), in: `{"metadata":{"name":1,"generation":2,"labels":{"a":"b"}}}`, want: `{"metadata":{"generation":2,"labels":{"a":"b"}}}`, changes: espalier.Coerced},
		{name: "stored without generation", source: espalier.Storage, schema: object(`{"type":"string"}`), in: `{"metadata":{"name":"n"}}`, want: `{"metadata":{"generation":1,"name":"n"}}`, changes: espalier.Coerced},
		{name: "embedded", schema: object(embedded), in: `{"x":{"kind":"K","spec":{"a":1},"metadata":{"name":"n","huh":1}}}`, want: `{"x":{"kind":"K","metadata":{"name":"n"},"spec":{"a":1}}}`, changes: espalier.Pruned},
		{name: "embedded, stored, malformed", source: espalier.Storage, schema: object(embedded), in: `{"x":{"kind":1,"metadata":"m"}}`, want: `{"x":{"metadata":"m"}}`, changes: espalier.Coerced},
		{name: "embedded with a schema of metadata",
			schema: object(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string"},"labels":{"type":"object","additionalProperties":{"type":"string"}},"namespace":{"type":"string","default":"ns"}}}}}`),
			in:     `{"x":{"metadata":{"name":null,"labels":{"a":null,"b":"c"},"huh":1}}}`, want: `{"x":{"metadata":{"labels":{"b":"c"},"namespace":"ns"}}}`, changes: espalier.NullDropped | espalier.Pruned | espalier.Defaulted},
		{name: "embedded default that ObjectMeta refuses",
			schema: object(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"finalizers":{"type":"string","default":"f"}}}}}`),
			in:     `{"x":{"metadata":{}}}`, want: `{"x":{"metadata":{}}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := compile(t, test.schema)
			report := new(espalier.Report)
			res, err := s.Normalize([]byte(test.in), espalier.NormalizeOptions{Source: test.source, Report: report})
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Bytes) != test.want || res.Changes != test.changes {
				t.Errorf("got  %s %v\nwant %s %v", res.Bytes, res.Changes, test.want, test.changes)
			}
			var reported espalier.Changes
			for _, c := range report.Changes {
				reported |= c.What
				if c.Detail == "" || c.Offset < 0 || c.Offset > len(test.in) {
					t.Errorf("change says too little: %+v", c)
				}
			}
			if reported != res.Changes {
				t.Errorf("changes %v, but the report has %v", res.Changes, reported)
			}
			plain, err := s.Normalize([]byte(test.in), espalier.NormalizeOptions{Source: test.source})
			if err != nil || !bytes.Equal(plain.Bytes, res.Bytes) || plain.Changes != res.Changes {
				t.Errorf("without a report: %s %v %v", plain.Bytes, plain.Changes, err)
			}
			var m map[string]any
			if err := json.Unmarshal([]byte(test.in), &m); err != nil {
				t.Fatal(err)
			}
			if _, err := s.NormalizeValue(m, espalier.NormalizeOptions{Source: test.source}); err != nil {
				t.Fatal(err)
			}
			if got, _ := json.Marshal(m); !sameJSON(got, []byte(test.want)) {
				t.Errorf("NormalizeValue gives %s", got)
			}
		})
	}
}

func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

func TestNormalizeErrors(t *testing.T) {
	const embedded = `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`
	tests := []struct{ name, schema, in, path, want string }{
		{"kind", object(`{"type":"string"}`), `{"kind":1,"apiVersion":2}`, "kind", `.kind accessor error: 1 is of the type int64, expected string`},
		{"apiVersion", object(`{"type":"string"}`), `{"apiVersion":null}`, "apiVersion", `.apiVersion accessor error: <nil> is of the type <nil>, expected string`},
		{"group version", object(`{"type":"string"}`), `{"apiVersion":"a/b/c"}`, "apiVersion", `unexpected GroupVersion string: a/b/c`},
		{"metadata", object(`{"type":"string"}`), `{"metadata":{"name":1}}`, "metadata", `json: cannot unmarshal number into Go struct field ObjectMeta.name of type string`},
		{"metadata before embedded", object(embedded), `{"metadata":[],"x":{"kind":1}}`, "metadata", `json: cannot unmarshal array into Go value of type v1.ObjectMeta`},
		{"embedded kind", object(embedded), `{"x":{"kind":1}}`, "x.kind", `x.kind: Invalid value: 1: must be a string`},
		{"embedded in a map", object(`{"type":"object","additionalProperties":` + embedded + `}`), `{"x":{"k":{"metadata":{"labels":1}}}}`, "x[k].metadata",
			`x[k].metadata: Invalid value: {"labels":1}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type map[string]string`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := compile(t, test.schema).Normalize([]byte(test.in), espalier.NormalizeOptions{})
			var oe *espalier.ObjectError
			if !errors.As(err, &oe) || oe.Path != test.path || oe.Error() != test.want {
				t.Errorf("got %#v\n%v\nwant %s: %s", err, err, test.path, test.want)
			}
		})
	}
	for _, in := range []string{``, `{`, `[]`, `null`, `{"x":1e999}`, `{} {}`} {
		if _, err := compile(t, object(`{"type":"string"}`)).Normalize([]byte(in), espalier.NormalizeOptions{}); err == nil {
			t.Errorf("%q is accepted", in)
		}
	}
	_, err := compile(t, object(`{"type":"string"}`)).Normalize([]byte(`{"x":{}}`), espalier.NormalizeOptions{Limits: espalier.Limits{MaxDepth: 1}})
	var se *espalier.SyntaxError
	if !errors.As(err, &se) || se.Offset != 5 {
		t.Errorf("depth limit: %v", err)
	}
}

func TestReport(t *testing.T) {
	s := compile(t, object(`{"type":"array","items":{"type":"object","properties":{"replicas":{"type":"integer"},"name":{"type":"string","default":"n"}}}}`))
	report := new(espalier.Report)
	in := `{"x":[{},{"replica":1,"Name":"a","replicas":"b","zzzzzz":{}}]}`
	if _, err := s.Normalize([]byte(in), espalier.NormalizeOptions{Report: report}); err != nil {
		t.Fatal(err)
	}
	if got, want := report.Pruned(), []string{"x[1].Name", "x[1].replica", "x[1].zzzzzz"}; !reflect.DeepEqual(got, want) {
		t.Errorf("pruned %q, want %q", got, want)
	}
	want := map[string]espalier.Change{
		"x[1].replica":  {What: espalier.Pruned, Offset: strings.Index(in, `"replica"`), Nearest: "replicas"},
		"x[1].Name":     {What: espalier.Pruned, Offset: strings.Index(in, `"Name"`), Nearest: "name"},
		"x[1].zzzzzz":   {What: espalier.Pruned, Offset: strings.Index(in, `"zzzzzz"`)},
		"x[1].replicas": {What: espalier.Mismatched, Offset: strings.Index(in, `"b"`)},
		"x[0].name":     {What: espalier.Defaulted, Offset: strings.Index(in, `{}`)},
		"x[1].name":     {What: espalier.Defaulted, Offset: strings.Index(in, `{"replica"`)},
	}
	for _, c := range report.Changes {
		w := want[c.Path]
		if c.What != w.What || c.Offset != w.Offset || c.Nearest != w.Nearest {
			t.Errorf("%+v, want %+v", c, w)
		}
		delete(want, c.Path)
	}
	if len(want) > 0 {
		t.Errorf("not reported: %v", want)
	}
}

func TestCanonicalInputIsReturnedWithoutAllocating(t *testing.T) {
	s := compile(t, object(`{"type":"object","properties":{"a":{"type":"integer","default":1},"l":{"type":"array","items":{"type":"string"}},"m":{"type":"object","additionalProperties":{"type":"string"}}}}`))
	in := []byte(`{"apiVersion":"g/v1","kind":"K","metadata":{"creationTimestamp":"2024-02-29T00:00:00Z","generation":2,"labels":{"a":"b"},"managedFields":[{"fieldsV1":{"f:x":{}},"manager":"m","time":"2024-01-01T00:00:00Z"}],"name":"n","ownerReferences":[{"apiVersion":"v1","controller":true,"kind":"P","name":"p","uid":"u"}]},"x":{"a":3,"l":["x","y"],"m":{"k":"v"}}}`)
	for _, source := range []espalier.Source{espalier.Request, espalier.Storage} {
		allocs := testing.AllocsPerRun(200, func() {
			res, err := s.Normalize(in, espalier.NormalizeOptions{Source: source})
			if err != nil || res.Changes != 0 || &res.Bytes[0] != &in[0] || len(res.Bytes) != len(in) {
				t.Fatalf("%s %v %v", res.Bytes, res.Changes, err)
			}
		})
		if allocs != 0 && !costtest.Race {
			t.Errorf("%v allocations", allocs)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	s := compile(t, object(`{"type":"object","properties":{"a":{"type":"integer","default":1}}}`))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				res, err := s.Normalize([]byte(`{"x":{"b":1},"kind":"K","metadata":{"labels":{"z":null}}}`), espalier.NormalizeOptions{})
				if err != nil || string(res.Bytes) != `{"kind":"K","metadata":{"labels":{"z":""}},"x":{"a":1}}` {
					t.Errorf("%s %v", res.Bytes, err)
					return
				}
				compile(t, object(`{"type":"string"}`))
			}
		})
	}
	wg.Wait()
}

func TestSchemasShareAndRelease(t *testing.T) {
	// Cleanups of schemas that other tests left behind run as they please.
	settle := func() int {
		for range 20 {
			runtime.GC()
			before := plan.Count()
			runtime.GC()
			if plan.Count() == before {
				return before
			}
		}
		return plan.Count()
	}
	before := settle()
	const podSpec = `{"type":"object","properties":{"shared-only-by-this-test":{"type":"string","maxLength":77},"b":{"type":"array","items":{"type":"string","maxLength":78}}}}`
	first := compile(t, object(podSpec))
	alone := plan.Count() - before
	second := compile(t, `{"type":"object","properties":{"y":`+podSpec+`}}`)
	if got := plan.Count() - before - alone; got != 1 {
		t.Errorf("the second schema adds %d nodes, want 1: its root", got)
	}
	runtime.KeepAlive(first)
	runtime.KeepAlive(second)
	deadline := 200
	for plan.Count() > before && deadline > 0 {
		runtime.GC()
		deadline--
	}
	if got := plan.Count() - before; got > 0 {
		t.Errorf("%d nodes are left after the last schema is gone", got)
	}
}

var fuzzSchemas = []string{
	object(`{"type":"string"}`),
	hostileSchema,
	object(`{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`),
	object(`{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":{"type":"object","properties":{"name":{"type":"string","default":"d"},"labels":{"type":"object","additionalProperties":{"type":"string"}}}}}}`),
	object(`{"type":"array","x-kubernetes-preserve-unknown-fields":true,"items":{"type":"object","nullable":true,"default":{"a":{}},"properties":{"a":{"type":"object","default":{},"properties":{"b":{"x-kubernetes-int-or-string":true,"default":5}}}}}}`),
}

// FuzzNormalize looks for panics and for the properties that hold for every
// object: a report changes nothing, the result is stable, and it is canonical.
func FuzzNormalize(f *testing.F) {
	for i := range fuzzSchemas {
		for _, family := range hostileObjects {
			f.Add(uint8(i), []byte(family(3)), i%2 == 0)
		}
		f.Add(uint8(i), []byte(`{"apiVersion":"a/b","kind":"K","metadata":{"name":"n","generation":1,"ownerReferences":[{"uid":"u"}],"managedFields":[{"fieldsV1":{"f:a":{}},"time":null}]},"x":{"apiVersion":1,"metadata":{"name":null,"labels":{"a":1}}}}`), true)
		f.Add(uint8(i), []byte(`{"x":-0.0}`), false)
		f.Add(uint8(i), []byte(`{"x":[null,{"a":null,"c":{"c":[{}]}},{"a":{"b":null}}]}`), false)
	}
	schemas := make([]*espalier.Schema, len(fuzzSchemas))
	for i, s := range fuzzSchemas {
		schemas[i] = compile(f, s)
	}
	f.Fuzz(func(t *testing.T, which uint8, in []byte, stored bool) {
		s := schemas[int(which)%len(schemas)]
		o := espalier.NormalizeOptions{}
		if stored {
			o.Source = espalier.Storage
		}
		original := bytes.Clone(in)
		res, err := s.Normalize(in, o)
		if !bytes.Equal(in, original) {
			t.Fatalf("the input was modified: %q", in)
		}
		o.Report = new(espalier.Report)
		reported, errReported := s.Normalize(in, o)
		if (err == nil) != (errReported == nil) {
			t.Fatalf("error %v, with a report %v", err, errReported)
		}
		if err != nil {
			if err.Error() != errReported.Error() {
				t.Fatalf("error %v, with a report %v", err, errReported)
			}
			return
		}
		if !bytes.Equal(res.Bytes, reported.Bytes) || res.Changes != reported.Changes {
			t.Fatalf("%q %v, with a report %q %v", res.Bytes, res.Changes, reported.Bytes, reported.Changes)
		}
		again, err := s.Normalize(res.Bytes, espalier.NormalizeOptions{Source: o.Source})
		if err != nil || settled(t, in) && !bytes.Equal(again.Bytes, res.Bytes) || again.Changes&^espalier.Mismatched != 0 {
			t.Fatalf("%q normalizes again to %q, %v, %v", res.Bytes, again.Bytes, again.Changes, err)
		}
		var x any
		if err := json.Unmarshal(res.Bytes, &x); err != nil {
			t.Fatalf("%q: %v", res.Bytes, err)
		}
	})
}

// settled reports whether in says the same once it is canonical: -0.0 is stored
// as -0, as upstream does, and read back as 0.
func settled(t *testing.T, in []byte) bool {
	t.Helper()
	d, err := jsondoc.Parse(in, jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	return d.Settled()
}

// FuzzCompile looks for panics in reading, checking and lowering schemas, and
// in running what comes out.
func FuzzCompile(f *testing.F) {
	for _, s := range fuzzSchemas {
		f.Add([]byte(s))
	}
	for _, family := range hostileSchemas {
		f.Add([]byte(family(3)))
	}
	f.Add([]byte(`{"type":"object","x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}],"properties":{"a":{"type":"integer"},"d":{"type":"string","enum":["A"]}},"oneOf":[{"required":["a"]}],"x-kubernetes-validations":[{"rule":"true"}]}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		findings, err := espalier.Check(schema, espalier.CheckOptions{StatusSubresource: true})
		s, compileErr := espalier.Compile(schema, espalier.CompileOptions{InheritPreserve: true})
		if err != nil {
			if compileErr == nil {
				t.Fatalf("%q compiles, although %v", schema, err)
			}
			return
		}
		for _, finding := range findings {
			if finding.Check == "" || finding.Detail == "" || finding.Offset < 0 || finding.Offset > len(schema) || finding.Error() == "" {
				t.Fatalf("%q: a finding says too little: %+v", schema, finding)
			}
		}
		if compileErr != nil {
			return
		}
		for _, in := range []string{`{"a":{"a":{"a":null}},"metadata":{},"x":[{}],"d":"A"}`, `{"a":[[{}]],"x":{"metadata":{"name":1},"kind":2}}`} {
			if _, err := s.Normalize([]byte(in), espalier.NormalizeOptions{Source: espalier.Storage, Report: new(espalier.Report)}); err != nil {
				t.Fatalf("%q on %s: %v", schema, in, err)
			}
		}
	})
}
