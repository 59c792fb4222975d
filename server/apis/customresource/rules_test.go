package customresource

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// rulesYAML is a resource with conversion rules. RULE stands for the first of them.
const rulesYAML = `
metadata:
  annotations:
    conversion.espalier.dev/rules: |
      conversions:
      - between: [v1alpha1, v1]
        rules:
        - RULE
        - split: {from: spec.address, separator: ":", to: [spec.host, spec.port]}
        preserve: everything
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1alpha1
    served: true
    storage: false
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {size: {type: integer}, depth: {type: integer}, address: {type: string}, legacy: {type: string}}}}
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {width: {type: integer}, host: {type: string}, port: {type: integer}, level: {type: string, default: low}}}}
`

func rulesWith(rule string) string { return strings.Replace(rulesYAML, "RULE", rule, 1) }

// Clients of two versions share objects that rules convert, and nothing is lost.
func TestConversionRules(t *testing.T) {
	e := start(t)
	e.define(rulesWith("move: {from: spec.size, to: spec.width}"))
	alpha := strings.Replace(boxes, "v1", "v1alpha1", 1)
	old, current := e.Watch(alpha+"?watch=1"), e.Watch(boxes+"?watch=1")
	defer old.Close()
	defer current.Close()

	created := map[string]any{"size": 5, "address": "db:5432", "legacy": "x", "depth": 3}
	e.Do("POST", alpha, `{"apiVersion":"example.com/v1alpha1","kind":"Box","metadata":{"name":"one"},"spec":{"size":5,"depth":3,"address":"db:5432","legacy":"x"}}`).
		Is(http.StatusCreated).Has("spec", created).Has("apiVersion", "example.com/v1alpha1")
	e.Do("GET", alpha+"/one", "").Is(http.StatusOK).Has("spec", created)
	got := e.Do("GET", boxes+"/one", "").Is(http.StatusOK).Has("spec.width", 5).Has("spec.host", "db").Has("spec.port", 5432)
	if !strings.Contains(string(got.Body), `\"legacy\":\"x\"`) {
		t.Errorf("%s", got.Body)
	}
	event, _ := old.Next()
	event.Has("type", "ADDED").Has("object.spec", created)
	event, _ = current.Next()
	event.Has("type", "ADDED").Has("object.spec.width", 5)

	// An update in v1 keeps what only v1alpha1 has.
	e.Patch("merge", boxes+"/one", `{"spec":{"width":6,"port":5433,"level":"high"}}`).Is(http.StatusOK).Has("metadata.generation", 2)
	updated := map[string]any{"size": 6, "address": "db:5433", "legacy": "x", "depth": 3}
	e.Do("GET", alpha+"/one", "").Is(http.StatusOK).Has("spec", updated)
	e.Do("GET", alpha, "").Is(http.StatusOK).Has("items.0.spec", updated)
	e.Do("GET", alpha+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.spec", updated)
	event, _ = old.Next()
	event.Has("type", "MODIFIED").Has("object.spec", updated)

	// And the other way round: a client of v1alpha1 that writes back what it has read keeps level.
	read := e.Do("GET", alpha+"/one", "")
	e.Do("PUT", alpha+"/one", strings.Replace(string(read.Body), `"size":6`, `"size":7`, 1)).Is(http.StatusOK)
	e.Do("GET", boxes+"/one", "").Is(http.StatusOK).Has("spec", map[string]any{"width": 7, "host": "db", "port": 5433, "level": "high"})

	stored, err := e.etcd.Get(context.Background(), e.prefix+"/example.com/boxes/one")
	if err != nil || len(stored.Kvs) != 1 || !strings.Contains(string(stored.Kvs[0].Value), `"apiVersion":"example.com/v1"`) {
		t.Errorf("%v: %v", err, stored.Kvs)
	}
	e.Do("DELETE", alpha+"/one", "").Is(http.StatusOK)
	e.Do("GET", boxes+"/one", "").Is(http.StatusNotFound)
}

// Caches and watches have nothing of rules that have been replaced.
func TestChangedRules(t *testing.T) {
	e := start(t)
	e.define(rulesWith("move: {from: spec.size, to: spec.width}"))
	alpha := strings.Replace(boxes, "v1", "v1alpha1", 1)
	e.Do("POST", boxes, box("one", `"width":5`)).Is(http.StatusCreated)
	w := e.Watch(alpha + "?watch=1&resourceVersion=0")
	defer w.Close()
	event, _ := w.Next()
	event.Has("object.spec", map[string]any{"size": 5})
	e.Do("GET", alpha+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.spec", map[string]any{"size": 5})

	e.define(rulesWith("move: {from: spec.depth, to: spec.width}"))
	e.Do("GET", alpha+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.spec", map[string]any{"depth": 5})
	e.Do("GET", alpha+"/one?resourceVersion=0", "").Is(http.StatusOK).Has("spec", map[string]any{"depth": 5})
	if event, ok := w.Next(); ok {
		t.Errorf("the watch goes on: %s", event.Body)
	}
}

// Rules that are wrong, in a CRD that was stored before they were checked, do not keep objects in their stored
// version from clients.
func TestInvalidRules(t *testing.T) {
	e := start(t)
	e.define(rulesWith("move: {from: spec.sizes, to: spec.width}"))
	e.Do("POST", boxes, box("one", `"width":5`)).Is(http.StatusCreated)
	e.Do("GET", boxes+"/one", "").Is(http.StatusOK)
	e.Do("GET", strings.Replace(boxes, "v1", "v1alpha1", 1)+"/one", "").Is(http.StatusInternalServerError).
		Mentions(`the conversion rules of CRD boxes.example.com are invalid`).Mentions(`has no field "sizes"`)
}
