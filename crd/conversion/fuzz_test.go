package conversion_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/costtest"
)

// Objects of any content, with any annotation, convert to valid JSON in the version asked for, or not at all.
func FuzzConvert(f *testing.F) {
	p := compile(f, widgets)
	f.Add(large(f))
	for _, rest := range []string{
		`{"spec":{"capacity":null,"size":{},"ports":[null,{"name":1},[]],"env":[{"name":"b"},1,{"name":"b"}],"rules":{"digest":1}}}`,
		`{"metadata":{"annotations":{"conversion.espalier.dev/preserved":"{\"v1\":{\"spec\":[1],\"~\":[]}}"}},"spec":{"limits":[],"free":"x","address":5}}`,
		`{"metadata":[],"spec":{"ports":{},"env":null}}`,
	} {
		f.Add(`{"apiVersion":"example.com/v1alpha1","kind":"Widget",` + rest[1:])
		f.Add(`{"apiVersion":"example.com/v1","kind":"Widget",` + rest[1:])
	}
	f.Fuzz(func(t *testing.T, object string) {
		for _, version := range p.Versions() {
			out, err := p.Convert(nil, []byte(object), version)
			if err != nil {
				continue
			}
			var m struct {
				APIVersion string `json:"apiVersion"`
			}
			if err := json.Unmarshal(out, &m); err != nil || m.APIVersion != "example.com/"+version {
				t.Fatalf("%v: %s became %s", err, object, out)
			}
			if _, err := p.Convert(nil, out, "v1alpha1"); err != nil && !strings.Contains(err.Error(), "annotations") {
				t.Fatalf("%v: %s became %s", err, object, out)
			}
		}
	})
}

// Rules of any content compile or are refused.
func FuzzCompile(f *testing.F) {
	d := parse(f, widgets)
	f.Add(d.Annotations[conversion.Annotation])
	f.Fuzz(func(t *testing.T, rules string) {
		annotated := *d
		annotated.Annotations = map[string]string{conversion.Annotation: rules}
		p, found, err := conversion.Compile(&annotated)
		if err != nil || (p == nil) == (len(found) == 0) {
			t.Errorf("%v, %v, %v", p, found, err)
		}
		if p != nil {
			_, _ = p.Convert(nil, []byte(large(t)), "v1")
		}
	})
}

// Large lists and maps, and payloads in another order, cost in proportion to their size.
func TestLargeObjects(t *testing.T) {
	p := compile(t, widgets)
	var ports, entries, env []string
	for i := range 2000 {
		ports = append(ports, fmt.Sprintf(`{"name":"p%d","number":%d}`, i, i))
		entries = append(entries, fmt.Sprintf(`{"name":"p%d","legacy":"x"}`, 1999-i))
		env = append(env, fmt.Sprintf(`"e%d":"x"`, 1999-i))
	}
	payload, _ := json.Marshal(`{"v1alpha1":{"spec":{"ports":[` + strings.Join(entries, ",") + `]}}}`)
	in := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w","annotations":{"conversion.espalier.dev/preserved":` + string(payload) + `}},"spec":{"ports":[` +
		strings.Join(ports, ",") + `],"environment":{` + strings.Join(env, ",") + `}}}`
	var out string
	costtest.Within(t, 5*time.Second, func() { out = convert(t, p, in, "v1alpha1") })
	if n := strings.Count(out, `"legacy":"x"`); n != 2000 {
		t.Errorf("%d of 2000 saved fields came back", n)
	}
}

// An annotation that API servers would refuse is an error that names the object.
func TestTooMuchToPreserve(t *testing.T) {
	p := compile(t, widgets)
	in := object(t, "v1alpha1", `{spec: {onlyOld: {x: `+strings.Repeat("x", 256<<10)+`}}}`)
	_, err := p.Convert(nil, []byte(in), "v1")
	if err == nil || !strings.Contains(err.Error(), `converting "w" from v1alpha1 to v1 failed: its annotations would have`) {
		t.Error(err)
	}
}

// What a client of the other version deletes stays deleted.
func TestDeleted(t *testing.T) {
	p := compile(t, widgets)
	in := object(t, "v1alpha1", `{spec: {capacity: {unit: Gi, old: x}, mode: B2, ports: [{name: a, nr: 1, legacy: x}, {name: b, legacy: z}], rules: [{a: x, old: o}], onlyOld: {x: o}}}`)
	there := convert(t, p, in, "v1")
	for _, c := range []struct{ name, old, new, want string }{
		{"object", `"capacity":{"unit":"Gi"},`, ``, `"spec":{"mode":"B2","onlyOld":{"x":"o"},"ports":[{"legacy":"x","name":"a","nr":1},{"legacy":"z","name":"b"}],"rules":[{"a":"x","old":"o"}]}`},
		{"item", `{"name":"a","number":1},`, ``, `"ports":[{"legacy":"z","name":"b"}]`},
		{"renamed item", `"name":"b"`, `"name":"c"`, `"ports":[{"legacy":"x","name":"a","nr":1},{"name":"c"}]`},
		{"item of a list without keys", `{"a":"x"}`, `{"a":"z"}`, `"rules":[{"a":"z"}]`},
		{"value", `"mode":"b"`, `"mode":"a"`, `"mode":"A"`},
		{"field", `{"unit":"Gi"}`, `{}`, `"capacity":{"old":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := strings.Replace(there, c.old, c.new, 1)
			if changed == there {
				t.Fatalf("%s has no %s", there, c.old)
			}
			if got := convert(t, p, changed, "v1alpha1"); !strings.Contains(got, c.want) {
				t.Errorf("got %s, want %s in it", got, c.want)
			}
		})
	}
}

func ExampleCompile() {
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.org",
		"annotations":{"conversion.espalier.dev/rules":"conversions: [{between: [v1beta1, v1], rules: [{move: {from: hostname, to: host}}]}]"}},
		"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"webs","kind":"Web"},"versions":[
		{"name":"v1beta1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"hostname":{"type":"string"}}}}},
		{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"host":{"type":"string"}}}}}]}}`))
	if err != nil {
		panic(err)
	}
	plan, findings, err := conversion.Compile(d)
	if err != nil || len(findings) > 0 {
		panic(fmt.Sprint(findings, err))
	}
	out, err := plan.Convert(nil, []byte(`{"apiVersion":"example.org/v1beta1","kind":"Web","hostname":"www"}`), "v1")
	fmt.Println(string(out), err)
	// Output: {"apiVersion":"example.org/v1","host":"www","kind":"Web"} <nil>
}
