package conversion_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd/conversion"
)

var seeds = flag.Int("seeds", 200, "how many random objects of each version are converted")

// generator makes random objects of a schema.
type generator struct{ *rand.Rand }

func (g generator) text() string {
	return []string{"", "a", "b", "B2", "A", "a:1", "x:y:02", "5", "05", "1e3", "true", "ü<", `q"\`, "On", "Simple"}[g.IntN(15)]
}

func (g generator) value(schema map[string]any, depth int) any {
	if schema["x-kubernetes-int-or-string"] == true {
		if g.IntN(2) == 0 {
			return g.text()
		}
		return g.IntN(5)
	}
	switch schema["type"] {
	case "string":
		if values, ok := schema["enum"].([]any); ok {
			return values[g.IntN(len(values))]
		}
		return g.text()
	case "integer":
		return g.IntN(4000) - 10
	case "number":
		return []any{0.5, 1, -2.25, 1e30}[g.IntN(4)]
	case "boolean":
		return g.IntN(2) == 0
	case "array":
		list := []any{}
		for i := range g.IntN(4) {
			v := g.value(schema["items"].(map[string]any), depth+1)
			if keys, ok := schema["x-kubernetes-list-map-keys"].([]any); ok {
				for _, k := range keys {
					v.(map[string]any)[k.(string)] = fmt.Sprint("k", (i*7+3)%5)
				}
			}
			list = append(list, v)
		}
		return list
	}
	out := map[string]any{}
	props, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if g.IntN(3) > 0 {
			out[name] = g.value(props[name].(map[string]any), depth+1)
		}
	}
	if each, ok := schema["additionalProperties"].(map[string]any); ok {
		for range g.IntN(4) {
			out[g.text()] = g.value(each, depth+1)
		}
	}
	if schema["x-kubernetes-preserve-unknown-fields"] == true {
		for range g.IntN(3) {
			out["u"+g.text()] = []any{1, "x", map[string]any{"y": 1}}[g.IntN(3)]
		}
	}
	return out
}

// object makes an object of a version, as canonical JSON.
func (g generator) object(t testing.TB, group, kind, version string, schema map[string]any) string {
	m := g.value(schema, 0).(map[string]any)
	m["apiVersion"], m["kind"] = group+"/"+version, kind
	meta := map[string]any{"name": "w", "labels": map[string]any{"l": "1"}}
	if g.IntN(2) == 0 {
		meta["annotations"] = map[string]any{"example.com/team": g.text(), "z": "1"}
	}
	m["metadata"] = meta
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// mutate changes a value of an object somewhere, or removes it.
func (g generator) mutate(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 {
			return v
		}
		keys := slices.Sorted(maps.Keys(v))
		k := keys[g.IntN(len(keys))]
		if g.IntN(3) == 0 {
			delete(v, k)
		} else {
			v[k] = g.mutate(v[k])
		}
		return v
	case []any:
		switch n := len(v); {
		case n == 0:
			return v
		case g.IntN(3) == 0:
			return v[1:]
		case g.IntN(3) == 0:
			slices.Reverse(v)
			return v
		default:
			i := g.IntN(n)
			v[i] = g.mutate(v[i])
			return v
		}
	case string:
		return g.text()
	case float64:
		return v + 1
	case bool:
		return !v
	}
	return v
}

// body returns an object without its preserved annotation.
func body(t testing.TB, text string) string {
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatal(err, text)
	}
	meta := m["metadata"].(map[string]any)
	if notes, ok := meta["annotations"].(map[string]any); ok {
		if delete(notes, conversion.Preserved); len(notes) == 0 {
			delete(meta, "annotations")
		}
	}
	out, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func schemas(t testing.TB, text string) (group, kind string, all map[string]map[string]any) {
	var d struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					OpenAPIV3Schema map[string]any `json:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	all = map[string]map[string]any{}
	for _, v := range d.Spec.Versions {
		all[v.Name] = v.Schema.OpenAPIV3Schema
	}
	return d.Spec.Group, d.Spec.Names.Kind, all
}

// Random objects come back as they were, from each version to each other. What a user changes in the other version
// stays changed.
func TestRandomObjects(t *testing.T) {
	for name, text := range map[string]string{"widgets": strings.Replace(widgets, "lost: {v1alpha1: [spec.useless]}", "", 1), "three versions": gadgets} {
		t.Run(name, func(t *testing.T) {
			p := compile(t, text)
			group, kind, versions := schemas(t, text)
			for seed := range uint64(*seeds) {
				g := generator{rand.New(rand.NewPCG(seed, 1))}
				for from, schema := range versions {
					for to := range versions {
						if from != to && !roundTrip(t, p, g, g.object(t, group, kind, from, schema), from, to) {
							t.Fatalf("seed %d", seed)
						}
					}
				}
			}
		})
	}
}

func roundTrip(t *testing.T, p *conversion.Plan, g generator, in, from, to string) bool {
	there := convert(t, p, in, to)
	if back := convert(t, p, there, from); back != in {
		t.Errorf("%s\nbecame %s\nand came back as %s", in, there, back)
		return false
	}
	var m map[string]any
	if err := json.Unmarshal([]byte(there), &m); err != nil {
		t.Fatal(err)
	}
	m["spec"] = g.mutate(m["spec"])
	if m["spec"] == nil {
		delete(m, "spec")
	}
	data, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	mutated := string(data)
	back := convert(t, p, mutated, from)
	again := convert(t, p, back, to)
	if body(t, again) != body(t, mutated) {
		t.Errorf("%s\nbecame %s\nwas changed to %s\nwent back as %s\nand came again as %s", in, there, mutated, back, again)
		return false
	}
	if third := convert(t, p, again, from); third != back {
		t.Errorf("%s\nbecame %s\nthen %s\nthen %s\nthen %s", in, mutated, back, again, third)
		return false
	}
	return true
}

// gadgets is a CRD with three versions in a row, in an order in which conversions go through the middle one.
const gadgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: gadgets.example.com
  annotations:
    conversion.espalier.dev/rules: |
      conversions:
      - between: [v1, v1beta1]
        rules:
        - move: {from: spec.box, to: spec.container}
        - move: {from: spec.container.width, to: spec.width}
        - mapToList: {list: spec.list, key: id, map: spec.map}
        preserve: everything
      - between: [v1beta1, v1alpha1]
        rules:
        - move: {from: "spec.names[]", to: "spec.names[].name"}
        - join: {from: [spec.first, spec.last], separator: " ", to: spec.full}
        - cel: {from: spec.total, to: spec.half, value: self.spec.total / 2}
        preserve: everything
spec:
  group: example.com
  scope: Cluster
  names: {plural: gadgets, kind: Gadget}
  versions:
  - name: v1alpha1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              container: {type: object, properties: {a: {type: string}, c: {type: array, items: {type: object, properties: {x: {type: string}}}}}}
              names: {type: array, items: {type: object, properties: {name: {type: string}, rank: {type: integer}}}}
              full: {type: string}
              half: {type: integer}
              deep: {type: object, properties: {er: {type: object, properties: {y: {type: string}}}}}
  - name: v1beta1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              container: {type: object, properties: {a: {type: string}, b: {type: string}, c: {type: array, items: {type: object, properties: {x: {type: string}, "y": {type: string}}}}}}
              width: {type: integer}
              list: {type: array, items: {type: object, properties: {id: {type: string}, v: {type: string}, old: {type: string}}}}
              names: {type: array, items: {type: string}}
              first: {type: string}
              last: {type: string}
              total: {type: integer}
              deep: {type: object, properties: {er: {type: object, properties: {x: {type: string}}}}}
  - name: v1
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              box: {type: object, properties: {a: {type: string}, b: {type: string}, d: {type: string}, c: {type: array, items: {type: object, properties: {"y": {type: string}}}}}}
              container: {type: object, properties: {width: {type: integer}, color: {type: string}}}
              map: {type: object, additionalProperties: {type: object, properties: {v: {type: string}, new: {type: integer}}}}
              names: {type: array, items: {type: string}}
              total: {type: integer}
              last: {type: string}
              deep: {type: object, properties: {er: {type: object, properties: {z: {type: string}}}}}
`
