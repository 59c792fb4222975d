package answer

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func side(code int, body string, request ...string) *Side {
	n := NewNormalizer(now)
	for _, r := range request {
		n.Asked(Decode([]byte(r)))
	}
	return NewSide(&Answer{Code: code, Body: Decode([]byte(body))}, n)
}

const service = `{"metadata":{"name":"a","uid":"%s","resourceVersion":"%d","creationTimestamp":"2026-03-01T12:00:0%dZ","managedFields":[
{"manager":"b","operation":"Update","time":"2026-03-01T12:00:01Z"},{"manager":"a","operation":"Update","time":"2026-03-01T12:00:0%dZ"}]},
"spec":{"clusterIP":"10.0.0.%d","clusterIPs":["10.0.0.%d"],"ports":[{"nodePort":3000%d,"port":80}],"since":"2020-01-01T00:00:00Z"}}`

func TestValuesThatServersChoose(t *testing.T) {
	request := `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`
	there := side(201, fmt.Sprintf(service, "u1", 5, 0, 1, 7, 7, 1), request)
	here := side(201, fmt.Sprintf(service, "u2", 9, 3, 2, 8, 8, 2), request)
	o := Compare(there, here)
	if !o.Equal || len(o.Misses) != 0 {
		t.Errorf("misses: %v", o.Misses)
	}
	// A request about the object has the values of the server that it goes to.
	filled := here.Normalizer.Fill(there.Normal).(map[string]any)["spec"].(map[string]any)
	if filled["clusterIP"] != "10.0.0.8" || filled["since"] != "2020-01-01T00:00:00Z" {
		t.Errorf("filled: %v", filled)
	}
}

func TestValuesThatWereAskedFor(t *testing.T) {
	request := `{"metadata":{"name":"a"},"spec":{"clusterIP":"10.0.0.7","ports":[{"port":80}]}}`
	o := Compare(side(201, fmt.Sprintf(service, "u1", 5, 0, 1, 7, 7, 1), request), side(201, fmt.Sprintf(service, "u2", 9, 3, 2, 8, 8, 2), request))
	if o.Equal {
		t.Error("another cluster IP than the one asked for was taken for equal")
	}
}

// A request may have a value of the server in another field: each server stores its own.
func TestValuesThatRequestsMove(t *testing.T) {
	request := `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`
	there := side(201, fmt.Sprintf(service, "u1", 5, 0, 1, 7, 7, 1), request)
	here := side(201, fmt.Sprintf(service, "u2", 9, 3, 2, 8, 8, 2), request)
	next := generator.Copy(there.Normal).(map[string]any)
	spec := next["spec"].(map[string]any)
	spec["externalIPs"] = []any{spec["clusterIP"]}
	port := spec["ports"].([]any)[0].(map[string]any)
	port["port"] = port["nodePort"]
	stored := func(s *Side) *Side {
		return NewSide(&Answer{Code: 200, Body: s.Normalizer.Fill(next)}, s.Normalizer)
	}
	if o := Compare(stored(there), stored(here)); !o.Equal {
		t.Errorf("misses: %v", o.Misses)
	}
	wrong := stored(here)
	wrong.Normal["spec"].(map[string]any)["externalIPs"] = []any{"10.0.0.9"}
	if o := Compare(stored(there), wrong); o.Equal {
		t.Error("another address than the one asked for was taken for equal")
	}
}

func TestGeneratedName(t *testing.T) {
	body := `{"metadata":{"name":"gen-%s","generateName":"gen-"},"spec":{"labels":{"job":"gen-%s"}}}`
	request := `{"metadata":{"generateName":"gen-"}}`
	o := Compare(side(201, fmt.Sprintf(body, "x1", "x1"), request), side(201, fmt.Sprintf(body, "y2", "y2"), request))
	if !o.Equal {
		t.Errorf("misses: %v", o.Misses)
	}
}

// A request that names another object does not make the name of this one the client's.
func TestGeneratedNameStays(t *testing.T) {
	n := NewNormalizer(time.Now())
	object := map[string]any{"metadata": map[string]any{"name": "gen-x1", "generateName": "gen-"}}
	first := n.Object(object)
	n.Asked(map[string]any{"metadata": map[string]any{"name": "other"}})
	if second := n.Object(object); !reflect.DeepEqual(first, second) {
		t.Errorf("%v, then %v", first, second)
	}
}

func TestStoredMisses(t *testing.T) {
	o := Compare(side(200, `{"a":{"b":[{"c":1},{"c":2}],"d":"x"},"m":{"k/x":1}}`), side(200, `{"a":{"b":[{"c":1},{"c":3}],"e":true},"m":{}}`))
	var rules []string
	for _, m := range o.Misses {
		rules = append(rules, m.What+" "+m.Rule)
	}
	want := []string{"stored a.b[].c differs", "stored a.d missing here", "stored a.e only here", "stored m.* missing here"}
	if !reflect.DeepEqual(rules, want) {
		t.Errorf("got  %q\nwant %q", rules, want)
	}
}

func refusing(field, message string) string {
	return fmt.Sprintf(`{"kind":"Status","reason":"Invalid","message":"X is invalid: %[1]s: %[2]s","details":{"causes":[{"reason":"FieldValueInvalid","field":%[1]q,"message":%[2]q}]}}`, field, message)
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name              string
		there, here       *Side
		sameField, sameTx bool
		rule              string
	}{
		{"same", side(422, refusing("spec.a[0]", "Invalid value: 1: no")), side(422, refusing("spec.a[0]", "Invalid value: 1: no")), true, true, ""},
		{"text", side(422, refusing("spec.a[0]", "Invalid value: 1: no")), side(422, refusing("spec.a[0]", "Invalid value: 1: never")), true, false,
			"text: there FieldValueInvalid spec.a[]: Invalid value: …: no; here FieldValueInvalid spec.a[]: Invalid value: …: never"},
		{"field", side(422, refusing("spec.a[0]", "Invalid value: 1: no")), side(422, refusing("spec.b", "Invalid value: 1: no")), false, false,
			"field: missing here: FieldValueInvalid spec.a[]: Invalid value: …: no"},
		{"code", side(400, `{"reason":"BadRequest","message":"json: 7"}`), side(422, refusing("a", "b")), false, false,
			"field: there 400 BadRequest: json: N, here 422 FieldValueInvalid a: b"},
		{"accepted", side(422, refusing("spec.a[3]", "Required value")), side(201, `{}`), false, false, "accepted here: FieldValueInvalid spec.a[]: Required value"},
		{"refused", side(201, `{}`), side(422, refusing("spec.a[3]", "Required value")), false, false, "refused here: FieldValueInvalid spec.a[]: Required value"},
	} {
		o := Compare(c.there, c.here)
		got := ""
		if len(o.Misses) > 0 {
			got = o.Misses[0].What + ": " + o.Misses[0].Rule
		}
		if o.SameField != c.sameField || o.SameText != c.sameTx || got != c.rule {
			t.Errorf("%s: same field %t, same text %t, rule %q", c.name, o.SameField, o.SameText, got)
		}
	}
}

func TestSignature(t *testing.T) {
	for in, want := range map[string]string{
		`Invalid value: "a: \"b": must be x`:                   `Invalid value: …: must be x`,
		`Invalid value: {"a":{"b":"}: "}}: field is immutable`: `Invalid value: …: field is immutable`,
		`Unsupported value: "x": supported values: "A", "B"`:   `Unsupported value: …: supported values: "…", "…"`,
		`must be between 0 and 65535, inclusive`:               `must be between N and N, inclusive`,
		`Invalid value: [`:                                     `Invalid value: …`,
		`Too long: may not be more than 63 bytes`:              `Too long: may not be more than N bytes`,
		strings.Repeat("x", 3000):                              strings.Repeat("x", maxRule) + "…",
	} {
		if got := signature(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

func TestWarnings(t *testing.T) {
	there, here := side(201, `{}`), side(201, `{}`)
	there.Warnings, here.Warnings = []string{`unknown field "spec.a[1].b"`}, []string{"another"}
	o := Compare(there, here)
	if len(o.Misses) != 2 || o.Misses[0].Rule != `missing here: unknown field "…"` || o.Misses[1].Rule != "only here: another" {
		t.Errorf("misses: %v", o.Misses)
	}
}

func TestTables(t *testing.T) {
	table := `{"columnDefinitions":[{"name":"Name"},{"name":"Ready"},{"name":"Age"}],"rows":[{"cells":["a",%s,"%s"]}]}`
	if m := Rows(side(200, fmt.Sprintf(table, "1", "0s")), side(200, fmt.Sprintf(table, "1", "2s"))); len(m) != 0 {
		t.Errorf("ages: %v", m)
	}
	m := Rows(side(200, fmt.Sprintf(table, "1", "0s")), side(200, fmt.Sprintf(table, "2", "<unknown>")))
	if len(m) != 2 || m[0].Rule != "cell Ready" || m[1].Rule != "cell Age" {
		t.Errorf("cells: %v", m)
	}
}

func TestSchemas(t *testing.T) {
	there := Decode([]byte(`{"A":{"properties":{"b":{"$ref":"#/components/schemas/x.B"},"c":{"type":"string"}}},"x.B":{"type":"object","description":"one"},"unused":{}}`)).(map[string]any)
	here := Decode([]byte(`{"A":{"properties":{"b":{"$ref":"#/components/schemas/x.B"}}},"x.B":{"type":"object","description":"two"}}`)).(map[string]any)
	m := Schemas("A", there, here)
	if len(m) != 2 || m[0].Rule != "A.c missing here" || m[1].Rule != "B.description differs" {
		t.Errorf("misses: %v", m)
	}
}

// TestHostileBodies checks that no answer makes the comparison panic.
func TestHostileBodies(t *testing.T) {
	bodies := []string{"", "null", "[]", "1", "text", `{"metadata":[]}`, `{"metadata":{"name":1,"uid":[]}}`, `{"details":{"causes":[1,{}]}}`, `{"rows":[1,{"cells":{}}],"columnDefinitions":[1]}`}
	for _, a := range bodies {
		for _, b := range bodies {
			for _, codes := range [][2]int{{200, 200}, {200, 422}, {422, 422}, {422, 200}, {422, Closed}} {
				there, here := side(codes[0], a), side(codes[1], b)
				o := Compare(there, here)
				if a == b && codes[0] == 200 && codes[1] == 200 && len(o.Misses) > 0 {
					t.Errorf("%q differs from itself: %v", a, o.Misses)
				}
				Rows(there, here)
			}
		}
	}
	if got := NewNormalizer(now).Fill(generator.Slot{}); got != nil {
		t.Errorf("a slot without a value was filled with %v", got)
	}
}
