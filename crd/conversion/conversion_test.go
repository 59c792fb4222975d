package conversion_test

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/finding"
)

// widgets is a CRD with two versions and nearly all kinds of rules.
const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: widgets.example.com
  annotations:
    conversion.espalier.dev/rules: |
      conversions:
      - between: [v1alpha1, v1]
        rules:
        - move: {from: spec.size, to: spec.capacity.size}
        - move: {from: "spec.ports[].nr", to: "spec.ports[].number"}
        - move: {from: spec.image, to: spec.image.name}
        - move: {from: "metadata.annotations[example.com/team]", to: spec.team}
        - move: {from: spec.retries, to: spec.retries}
        - wrap: {from: spec.host, to: spec.hosts}
        - split: {from: spec.address, separator: ":", to: [spec.server, spec.port]}
        - listToMap: {list: spec.env, key: name, map: spec.environment, value: value}
        - enum: {from: spec.mode, values: {A: a, B: b, B2: b}}
        - enum: {from: spec.active, to: spec.state, values: [{from: true, to: "On"}, {from: false, to: "Off"}]}
        - constant: {in: v1, path: spec.kind, value: Simple}
        - cel: {from: spec.seconds, to: spec.millis, value: self.spec.seconds * 1000, back: self.spec.millis / 1000}
        preserve: everything
        lost: {v1alpha1: [spec.useless]}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, kind: Widget}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              capacity: {type: object, properties: {unit: {type: string}, old: {type: string}}}
              ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, nr: {type: integer}, legacy: {type: string}}}}
              rules: {type: array, items: {type: object, properties: {a: {type: string}, old: {type: string}}}}
              image: {type: string}
              retries: {type: string}
              host: {type: string}
              address: {type: string}
              env: {type: array, items: {type: object, properties: {name: {type: string}, value: {type: string}, note: {type: string}}}}
              mode: {type: string}
              active: {type: boolean}
              seconds: {type: integer}
              useless: {type: string}
              limits: {type: object, additionalProperties: {type: object, properties: {max: {type: integer}, soft: {type: integer}}}}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true, properties: {a: {type: string}}}
              onlyOld: {type: object, properties: {x: {type: string}}}
          status: {type: object, properties: {ready: {type: boolean}}}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              capacity: {type: object, properties: {unit: {type: string}, size: {type: integer}, new: {type: string}}}
              ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [name], items: {type: object, required: [name], properties: {name: {type: string}, number: {type: integer}, tls: {type: boolean}}}}
              rules: {type: array, items: {type: object, properties: {a: {type: string}, new: {type: string}}}}
              image: {type: object, properties: {name: {type: string}, tag: {type: string}}}
              team: {type: string}
              retries: {type: integer}
              hosts: {type: array, items: {type: string}}
              server: {type: string}
              port: {type: integer}
              environment: {type: object, additionalProperties: {type: string}}
              mode: {type: string}
              state: {type: string}
              kind: {type: string}
              millis: {type: integer}
              limits: {type: object, additionalProperties: {type: object, properties: {max: {type: integer}, burst: {type: integer}}}}
              free: {type: object, properties: {a: {type: string}}}
              onlyNew: {type: array, items: {type: string}}
          status: {type: object, properties: {ready: {type: boolean}}}
`

func parse(t testing.TB, text string) *crd.CRD {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	d, err := crd.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func compile(t testing.TB, text string) *conversion.Plan {
	t.Helper()
	p, found, err := conversion.Compile(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		t.Error(f.Error(), f.Fix)
	}
	if p == nil {
		t.Fatal("no plan")
	}
	return p
}

// object returns canonical JSON of an object in a version.
func object(t testing.TB, version, rest string) string {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(rest))
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	m["apiVersion"], m["kind"] = "example.com/"+version, "Widget"
	if m["metadata"] == nil {
		m["metadata"] = map[string]any{"name": "w"}
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func convert(t testing.TB, p *conversion.Plan, object, version string) string {
	t.Helper()
	out, err := p.Convert(nil, []byte(object), version)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(out) {
		t.Fatalf("no JSON: %s", out)
	}
	return string(out)
}

// Objects come back byte for byte.
func TestRoundTrips(t *testing.T) {
	p := compile(t, widgets)
	for _, c := range []struct{ name, version, in, want string }{
		{"move", "v1alpha1", `{spec: {size: 5}}`, `"spec":{"capacity":{"size":5},"kind":"Simple"}`},
		{"empty", "v1alpha1", `{spec: {}}`, `"spec":{"kind":"Simple"}`},
		{"nothing", "v1alpha1", `{}`, `"metadata":{"name":"w"}}`},
		{"empty object beside a move", "v1alpha1", `{spec: {size: 5, capacity: {}}}`, ``},
		{"object created by a move", "v1", `{spec: {capacity: {size: 5}}}`, ``},
		{"empty object", "v1", `{spec: {capacity: {}}}`, ``},
		{"preserved", "v1alpha1", `{spec: {capacity: {old: x}, onlyOld: {x: o}}}`, ``},
		{"null", "v1alpha1", `{spec: {size: 5, capacity: null}}`, ``},
		{"list by key", "v1alpha1", `{spec: {ports: [{name: a, nr: 1, legacy: x}, {name: b, nr: 2}]}}`, `"ports":[{"name":"a","number":1},{"name":"b","number":2}]`},
		{"list by key back", "v1", `{spec: {ports: [{name: a, tls: true}, {name: b, number: 2}]}}`, `"ports":[{"name":"a"},{"name":"b","nr":2}]`},
		{"plain list", "v1alpha1", `{spec: {rules: [{a: x, old: o}, {a: z}]}}`, `"rules":[{"a":"x"},{"a":"z"}]`},
		{"plain list unchanged", "v1alpha1", `{spec: {rules: [{a: x}, {a: z}]}}`, ``},
		{"image", "v1alpha1", `{spec: {image: x}}`, `"image":{"name":"x"}`},
		{"image back", "v1", `{spec: {image: {name: x, tag: t}}}`, `"image":"x"`},
		{"image empty", "v1", `{spec: {image: {}}}`, ``},
		{"annotation", "v1alpha1", `{metadata: {name: w, annotations: {example.com/team: red, other: x}}, spec: {}}`, `"team":"red"`},
		{"annotation in the other version", "v1", `{metadata: {name: w, annotations: {example.com/team: red, other: x}}, spec: {team: blue}}`, `"example.com/team":"blue"`},
		{"number", "v1alpha1", `{spec: {retries: "5"}}`, `"retries":5`},
		{"no number", "v1alpha1", `{spec: {retries: "05"}}`, ``},
		{"host", "v1alpha1", `{spec: {host: x}}`, `"hosts":["x"]`},
		{"hosts", "v1", `{spec: {hosts: [x, z]}}`, `"host":"x"`},
		{"no hosts", "v1", `{spec: {hosts: []}}`, ``},
		{"split", "v1alpha1", `{spec: {address: "a:80"}}`, `"port":80,"server":"a"`},
		{"split fails", "v1alpha1", `{spec: {address: "a"}}`, ``},
		{"join", "v1", `{spec: {server: "::1", port: 80}}`, `"address":"::1:80"`},
		{"join fails", "v1", `{spec: {server: "a"}}`, ``},
		{"env", "v1alpha1", `{spec: {env: [{name: a, value: x}, {name: b, value: v}]}}`, `"environment":{"a":"x","b":"v"}`},
		{"env in another order", "v1alpha1", `{spec: {env: [{name: b, value: x}, {name: a, value: v}]}}`, `"environment":{"a":"v","b":"x"}`},
		{"env with more", "v1alpha1", `{spec: {env: [{name: a, value: x, note: m}, {name: b, value: v}]}}`, `"environment":{"a":"x","b":"v"}`},
		{"env twice", "v1alpha1", `{spec: {env: [{name: a, value: x, note: m}, {name: a, value: v}]}}`, `"environment":{"a":"x"}`},
		{"env without value", "v1alpha1", `{spec: {env: [{name: a}, {name: b, value: v}]}}`, `"environment":{"b":"v"}`},
		{"env empty", "v1alpha1", `{spec: {env: []}}`, `"environment":{}`},
		{"environment", "v1", `{spec: {environment: {b: x, a: v}}}`, `"env":[{"name":"a","value":"v"},{"name":"b","value":"x"}]`},
		{"enum", "v1alpha1", `{spec: {mode: A}}`, `"mode":"a"`},
		{"enum many to one", "v1alpha1", `{spec: {mode: B2}}`, `"mode":"b"`},
		{"enum unlisted", "v1alpha1", `{spec: {mode: b}}`, `"mode":"b"`},
		{"boolean", "v1alpha1", `{spec: {active: false}}`, `"state":"Off"`},
		{"constant", "v1", `{spec: {kind: Other}}`, `"spec":{}`},
		{"no constant", "v1", `{spec: {}}`, `"spec":{}`},
		{"no spec", "v1", `{status: {ready: true}}`, `"status":{"ready":true}`},
		{"cel", "v1alpha1", `{spec: {seconds: 2}}`, `"millis":2000`},
		{"cel back", "v1", `{spec: {millis: 2500}}`, `"seconds":2`},
		{"map", "v1", `{spec: {limits: {a: {max: 1, burst: 2}, b: {max: 1}, c: {}}}}`, `"limits":{"a":{"max":1},"b":{"max":1},"c":{}}`},
		{"unknown", "v1alpha1", `{spec: {free: {a: x, b: {c: 1}, z: 2}}}`, `"free":{"a":"x"}`},
		{"new", "v1", `{spec: {onlyNew: [x]}}`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := object(t, c.version, c.in)
			other := map[string]string{"v1": "v1alpha1", "v1alpha1": "v1"}[c.version]
			there := convert(t, p, in, other)
			if !strings.Contains(there, c.want) {
				t.Errorf("got %s, want %s in it", there, c.want)
			}
			back := convert(t, p, there, c.version)
			if back != in {
				t.Errorf("%s\nbecame %s\nand came back as %s", in, there, back)
			}
			if again := convert(t, p, back, other); again != there {
				t.Errorf("%s\nthen %s", there, again)
			}
		})
	}
}

func TestFindings(t *testing.T) {
	for _, c := range []struct {
		name, old, new string
		check          finding.ID
		want           string
	}{
		{"unaccounted", "preserve: everything", "preserve: {}", "conversion-rules-incomplete", "spec.onlyOld of v1alpha1 is not converted to v1, preserved or declared lost"},
		{"unknown field", "from: spec.size", "from: spec.sizes", "conversion-rules-invalid", `spec of v1alpha1 has no field "sizes"`},
		{"twice", "from: spec.host,", "from: spec.size,", "conversion-rules-invalid", "another rule converts spec.size"},
		{"unknown key", "lost:", "loost:", "conversion-rules-invalid", "loost"},
		{"unknown version", "between: [v1alpha1, v1]", "between: [v1alpha1, v2]", "conversion-rules-invalid", `no version "v2"`},
		{"out of a list", `to: "spec.ports[].number"`, `to: spec.port`, "conversion-rules-invalid", "must be in items of the same list"},
		{"bad CEL", "self.spec.millis / 1000", "self.spec.millis /", "conversion-rules-invalid", "CEL expression"},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(widgets, c.old, c.new, 1)
			p, found, err := conversion.Compile(parse(t, text))
			if err != nil || p != nil {
				t.Fatalf("%v, %v", p, err)
			}
			for _, f := range found {
				if f.Check == c.check && strings.Contains(f.Detail, c.want) {
					return
				}
			}
			t.Errorf("got %v", found)
		})
	}
}
