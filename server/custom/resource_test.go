package custom

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/lifecycle"
)

const (
	widgetsYAML = `
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, listKind: WidgetList, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas, labelSelectorPath: .status.selector}
    selectableFields:
    - jsonPath: .spec.color
    - jsonPath: .spec.replicas
    additionalPrinterColumns:
    - {name: Color, type: string, jsonPath: .spec.color}
    - {name: Replicas, type: integer, jsonPath: .spec.replicas}
    - {name: Ratio, type: number, jsonPath: .spec.ratio, priority: 1}
    - {name: Broken, type: boolean, jsonPath: .spec.broken}
    - {name: First, type: string, jsonPath: ".spec.parts[0].name"}
    - {name: Labels, type: string, jsonPath: .metadata.labels}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              color: {type: string, default: red, enum: [red, green, blue]}
              replicas: {type: integer}
              ratio: {type: number}
              broken: {type: boolean}
              size: {type: string, maxLength: 5}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, count: {type: integer}}
            x-kubernetes-validations:
            - {rule: "!has(self.size) || self.size != 'huge'", message: too large}
          status:
            type: object
            properties:
              replicas: {type: integer}
              selector: {type: string}
              phase: {type: string, maxLength: 8}
`
	widgets = "/apis/example.com/v1/namespaces/default/widgets"
)

// widget returns the JSON of a widget; spec is what is between its braces.
func widget(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q},"spec":{%s}}`, name, spec)
}

func TestLifeOfAnObject(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)

	a := e.do("POST", widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":"xl","bogus":1},"status":{"phase":"New"}}`).is(http.StatusCreated)
	a.has("spec", map[string]any{"color": "red", "size": "xl"}).has("status", nil).has("metadata.generation", 1).has("metadata.namespace", "default")
	a.warns(`unknown field "spec.bogus"`)
	if a.at("metadata.uid") == nil || a.at("metadata.creationTimestamp") == nil || a.at("metadata.resourceVersion") == nil {
		t.Fatalf("metadata is not complete: %s", a.body)
	}
	a.has("metadata.managedFields.0.operation", "Update").has("metadata.managedFields.0.apiVersion", "example.com/v1")

	e.do("POST", widgets, widget("a", "")).is(http.StatusConflict).says(`widgets.example.com "a" already exists`)
	got := e.do("GET", widgets+"/a", "").is(http.StatusOK)
	if string(got.body) != string(a.body) {
		t.Errorf("what is read is not what was written:\n%s\n%s", got.body, a.body)
	}
	stored := e.stored("/example.com/widgets/default/a")
	if strings.Contains(stored, "resourceVersion") || !strings.HasPrefix(stored, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{`) {
		t.Errorf("stored is %s", stored)
	}

	// Updates need the resourceVersion, and count in generation if anything but
	// metadata changes.
	e.do("PUT", widgets+"/a", widget("a", `"size":"s"`)).is(http.StatusUnprocessableEntity).
		says(`widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
	body := strings.Replace(string(got.body), `"size":"xl"`, `"size":"s"`, 1)
	updated := e.do("PUT", widgets+"/a", body).is(http.StatusOK).has("spec.size", "s").has("metadata.generation", 2)
	e.do("PUT", widgets+"/a", body).is(http.StatusConflict)
	body = strings.Replace(string(updated.body), `"name":"a"`, `"labels":{"x":"y"},"name":"a"`, 1)
	labelled := e.do("PUT", widgets+"/a", body).is(http.StatusOK).has("metadata.generation", 2).has("metadata.labels.x", "y")

	// What changes nothing is not written.
	again := e.do("PUT", widgets+"/a", string(labelled.body)).is(http.StatusOK)
	again.has("metadata.resourceVersion", labelled.at("metadata.resourceVersion"))

	e.do("DELETE", widgets+"/a", "").is(http.StatusOK).has("status", "Success")
	e.do("GET", widgets+"/a", "").is(http.StatusNotFound).says(`widgets.example.com "a" not found`)
}

// stored returns what etcd has.
func (e *env) stored(key string) string {
	e.tb.Helper()
	resp, err := e.etcd.Get(context.Background(), e.prefix+key)
	if err != nil || len(resp.Kvs) != 1 {
		e.tb.Fatalf("%s: %v, %v", key, resp, err)
	}
	return string(resp.Kvs[0].Value)
}

func TestRefusedBodies(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	for name, c := range map[string]struct {
		body, message string
		code          int
	}{
		"no kind":       {`{"metadata":{"name":"a"}}`, `the object provided is unrecognized (must be of type Widget): Object 'Kind' is missing in '{"metadata":{"name":"a"}}' ({"metadata":{"name":"a"}})`, 400},
		"other version": {`{"apiVersion":"example.com/v2","kind":"Widget","metadata":{"name":"a"}}`, `the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)`, 400},
		"other kind":    {`{"apiVersion":"example.com/v1","kind":"Gadget","metadata":{"name":"a"}}`, `Gadget.example.com "a" is invalid: kind: Invalid value: "Gadget": must be Widget`, 422},
		"metadata":      {`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":1}}`, `Widget in version "v1" cannot be handled as a Widget: json: cannot unmarshal number into Go struct field ObjectMeta.name of type string`, 400},
		"name":          {widget("A_", ""), `Widget.example.com "A_" is invalid: metadata.name: Invalid value: "A_": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')`, 422},
		"value":         {widget("a", `"color":"pink"`), `Widget.example.com "a" is invalid: [spec.color: Unsupported value: "pink": supported values: "red", "green", "blue", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`, 422},
		"rule":          {widget("a", `"size":"huge"`), `Widget.example.com "a" is invalid: spec: Invalid value: too large`, 422},
		"scale":         {widget("a", `"replicas":-1`), `Widget.example.com "a" is invalid: .spec.replicas: Invalid value: -1: should be a non-negative integer`, 422},
		"order": {widget("a", `"replicas":-1,"size":"huge","ratio":1,"parts":[{"name":"x"},{"name":"x"}]`),
			`Widget.example.com "a" is invalid: [.spec.replicas: Invalid value: -1: should be a non-negative integer, spec.parts[1]: Duplicate value: {"name":"x"}, spec: Invalid value: too large]`, 422},
		"scale too big": {widget("a", `"replicas":3000000000`), `Widget.example.com "a" is invalid: .spec.replicas: Invalid value: 3000000000: should be less than or equal to 2147483647`, 422},
	} {
		t.Run(name, func(t *testing.T) {
			e := *e
			e.tb = t
			e.do("POST", widgets, c.body).is(c.code).says(c.message)
		})
	}
	e.do("POST", widgets, `{"apiVersion":`).is(http.StatusBadRequest)
	e.do("POST", widgets, `[]`).is(http.StatusBadRequest)
	e.do("POST", widgets, widget("a", `"size":"`+strings.Repeat("x", DefaultMaxRequestBodyBytes)+`"`)).is(http.StatusRequestEntityTooLarge)
	e.do("POST", widgets, widget("a", ""), "Content-Type: text/plain").is(http.StatusUnsupportedMediaType)
	e.do("GET", widgets, "", "Accept: text/plain").is(http.StatusNotAcceptable)
	e.do("GET", widgets, "", "Accept: application/vnd.kubernetes.protobuf").is(http.StatusNotAcceptable)
}

// Values of the wrong type are refused before any admission plugin sees them,
// all together.
func TestMismatchesAreRefusedBeforeAdmission(t *testing.T) {
	plugin := &recorder{}
	e := start(t, func(o *Options) { o.Admission = plugin })
	e.define(widgetsYAML)
	a := e.do("POST", widgets, widget("a", `"color":7,"replicas":"three"`)).is(http.StatusUnprocessableEntity)
	message := a.at("message").(string)
	for _, part := range []string{
		`spec.color: Invalid value: "integer": spec.color in body must be of type string: "integer"`,
		`spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string"`,
	} {
		if !strings.Contains(message, part) {
			t.Errorf("%s is not in %s", part, message)
		}
	}
	if n := plugin.admitted.Load(); n != 0 {
		t.Errorf("%d objects of the wrong type were shown to admission", n)
	}
	// What is dropped anyway may be of any type.
	e.do("POST", widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"status":{"phase":1}}`).is(http.StatusCreated)
	if n := plugin.admitted.Load(); n != 1 {
		t.Errorf("%d objects were shown to admission", n)
	}
}

// An object that was stored with a value of another type may keep it.
func TestMismatchesOfTheOldObjectAreForgiven(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", `"size":"xl"`)).is(http.StatusCreated)
	e.define(strings.Replace(widgetsYAML, "size: {type: string, maxLength: 5}", "size: {type: integer}", 1), func(d map[string]any) {
		dropRules(d)
	})
	eventually(t, func() bool {
		return e.patch("merge", widgets+"/a", `{"spec":{"size":"xxl"}}`).code == http.StatusUnprocessableEntity
	})
	e.patch("merge", widgets+"/a", `{"spec":{"color":"blue"}}`).is(http.StatusOK).has("spec.size", "xl")
}

// dropRules removes the rules of a definition's only version.
func dropRules(d map[string]any) {
	version := d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	properties := version["schema"].(map[string]any)["openAPIV3Schema"].(map[string]any)["properties"].(map[string]any)
	delete(properties["spec"].(map[string]any), "x-kubernetes-validations")
}

func TestLists(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	for i := range 7 {
		color := []string{"red", "green"}[i%2]
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d","labels":{"n":"%d"}},"spec":{"color":%q,"replicas":%d}}`, i, i%3, color, i)
		namespace := []string{"default", "other"}[i/5]
		e.do("POST", strings.Replace(widgets, "default", namespace, 1), body).is(http.StatusCreated)
	}
	count := func(path string) int {
		t.Helper()
		a := e.do("GET", path, "").is(http.StatusOK).has("kind", "WidgetList").has("apiVersion", "example.com/v1")
		items, _ := a.at("items").([]any)
		return len(items)
	}
	for path, want := range map[string]int{
		widgets:                                       5,
		"/apis/example.com/v1/widgets":                7,
		widgets + "?labelSelector=n%3D0":              2,
		widgets + "?fieldSelector=metadata.name%3Dw1": 1,
		"/apis/example.com/v1/widgets?fieldSelector=metadata.namespace=other": 2,
		widgets + "?fieldSelector=spec.color%3Dgreen":                         2,
		widgets + "?fieldSelector=spec.replicas%3D4":                          1,
		widgets + "?fieldSelector=spec.color!%3Dgreen":                        3,
		widgets + "?resourceVersion=0":                                        5,
	} {
		// Once from etcd, then from the watch cache.
		for range 3 {
			if got := count(path); got != want {
				t.Errorf("%s has %d items, not %d", path, got, want)
			}
		}
	}
	e.do("GET", widgets+"?fieldSelector=spec.size%3Dxl", "").is(http.StatusBadRequest).
		says("field label not supported: spec.size")

	// Pages add up.
	total, next := 0, ""
	for pages := 0; ; pages++ {
		a := e.do("GET", widgets+"?limit=2&continue="+next, "").is(http.StatusOK)
		total += len(a.at("items").([]any))
		if next, _ = a.at("metadata.continue").(string); next == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
	}
	if total != 5 {
		t.Errorf("the pages have %d items", total)
	}
	e.do("DELETE", widgets+"?labelSelector=n%3D0", "").is(http.StatusOK).has("kind", "WidgetList")
	if got := count(widgets); got != 3 {
		t.Errorf("%d items are left", got)
	}
}

func TestYAMLAndNameGeneration(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	a := e.do("POST", widgets, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {generateName: w-}\nspec: {size: s}\n",
		"Content-Type: application/yaml", "Accept: application/yaml").is(http.StatusCreated)
	if !strings.Contains(string(a.body), "name: w-") || !strings.Contains(string(a.body), "size: s\n") {
		t.Errorf("answer is %s", a.body)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets+"?dryRun=All", widget("a", "")).is(http.StatusCreated).has("spec.color", "red")
	e.do("GET", widgets+"/a", "").is(http.StatusNotFound)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	e.do("PATCH", widgets+"/a?dryRun=All", `{"spec":{"color":"blue"}}`, "Content-Type: application/merge-patch+json").is(http.StatusOK).has("spec.color", "blue")
	e.do("DELETE", widgets+"/a?dryRun=All", "").is(http.StatusOK)
	e.do("GET", widgets+"/a", "").is(http.StatusOK).has("spec.color", "red")
}

func TestFinalizersAndWarnings(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","finalizers":["mine","foregroundDeletion","a.b","example.com/x"]}}`
	e.do("POST", widgets, body).is(http.StatusCreated).warns(
		`metadata.finalizers: "a.b": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
		`metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`)
	e.do("DELETE", widgets+"/a", "").is(http.StatusOK)
	if e.do("GET", widgets+"/a", "").is(http.StatusOK).at("metadata.deletionTimestamp") == nil {
		t.Error("the object is not marked as deleted")
	}
	e.patch("merge", widgets+"/a", `{"metadata":{"finalizers":null}}`).is(http.StatusOK)
	e.do("GET", widgets+"/a", "").is(http.StatusNotFound)
}

func TestDeleteInstances(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	for i := range 20 {
		finalizers := ""
		if i == 7 {
			finalizers = `,"finalizers":["example.com/x"]`
		}
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w%d"%s}}`, i, finalizers)
		e.do("POST", strings.Replace(widgets, "default", fmt.Sprintf("ns%d", i%3), 1), body).is(http.StatusCreated)
	}
	entry := e.catalog.Get("widgets.example.com")
	for want := 1; want >= 0; want-- {
		left, err := e.server.DeleteInstances(context.Background(), entry)
		if err != nil || left != want {
			t.Errorf("%d are left, not %d; %v", left, want, err)
		}
		if want == 1 {
			e.patch("merge", "/apis/example.com/v1/namespaces/ns1/widgets/w7", `{"metadata":{"finalizers":null}}`).is(http.StatusOK)
		}
	}
	if resp, err := e.etcd.Get(context.Background(), e.prefix+"/example.com/widgets/ns0/w0"); err != nil || resp.Count != 0 {
		t.Errorf("%v, %v", resp, err)
	}
}

func TestRouting(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.define(`
spec:
  group: example.com
  scope: Cluster
  names: {plural: planets, kind: Planet}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1beta1, served: true, storage: false, deprecated: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v1alpha1, served: true, storage: false, deprecated: true, deprecationWarning: "go away", schema: {openAPIV3Schema: {type: object}}}
  - {name: v2, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
`)
	planets := "/apis/example.com/v1/planets"
	e.do("POST", planets, `{"apiVersion":"example.com/v1","kind":"Planet","metadata":{"name":"mars"},"any":1}`).is(http.StatusCreated)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)

	// No resource is reached by a path that is not its own.
	for _, c := range []struct{ method, path string }{
		{"GET", "/apis/example.com/v1/namespaces/default/planets/mars"},
		{"GET", "/apis/example.com/v1/namespaces/default/planets"},
		{"GET", "/apis/example.com/v1/namespaces/default/planets?watch=1"},
		{"DELETE", "/apis/example.com/v1/namespaces/default/planets/mars"},
		{"DELETE", "/apis/example.com/v1/namespaces/default/planets"},
		{"GET", "/apis/example.com/v1/widgets/a"},
		{"GET", "/apis/example.com/v1/widgets/a/status"},
		{"DELETE", "/apis/example.com/v1/widgets/a"},
		{"DELETE", "/apis/example.com/v1/widgets"},
		{"GET", "/apis/example.com/v2/planets"},
		{"GET", "/apis/example.com/v3/planets"},
		{"GET", "/apis/example.com/v1/nothing"},
		{"GET", "/apis/other.com/v1/planets"},
	} {
		if a := e.do(c.method, c.path, ""); a.code != http.StatusNotFound {
			t.Errorf("%s %s is %d: %s", c.method, c.path, a.code, a.body)
		}
	}
	e.do("POST", "/apis/example.com/v1/widgets", widget("b", "")).is(http.StatusNotFound)
	e.do("PUT", "/apis/example.com/v1/namespaces/default/planets/mars", "{}").is(http.StatusNotFound)
	e.do("GET", planets+"/mars/status", "").is(http.StatusNotFound).says(`planets.example.com "mars" not found`)
	e.do("GET", planets+"/mars/scale", "").is(http.StatusNotFound)
	e.do("GET", planets+"/mars/log", "").is(http.StatusNotFound)
	e.do("POST", widgets+"/a/status", widget("a", "")).is(http.StatusMethodNotAllowed).says(`create is not supported on resources of kind "widgets.example.com"`)
	e.do("DELETE", widgets+"/a/scale", "").is(http.StatusMethodNotAllowed)

	// Deprecated versions say so.
	e.do("GET", planets+"/mars", "").is(http.StatusOK).warns()
	e.do("GET", "/apis/example.com/v1beta1/planets/mars", "").is(http.StatusOK).has("apiVersion", "example.com/v1beta1").has("any", 1).
		warns("example.com/v1beta1 Planet is deprecated; use example.com/v1 Planet")
	e.do("GET", "/apis/example.com/v1alpha1/planets/mars", "").is(http.StatusOK).has("any", nil).warns("go away")

	// Not accepted, not yet established: not there.
	e.define(strings.ReplaceAll(widgetsYAML, "example.com", "waiting.com"), func(d map[string]any) { d["status"].(map[string]any)["conditions"] = []any{} })
	e.do("GET", "/apis/waiting.com/v1/widgets", "").is(http.StatusNotFound)
}

// Whoever deletes a definition is told that its objects could not be listed: an
// object that cannot be read is one of them.
func TestDeleteInstancesUnread(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	if _, err := e.etcd.Put(context.Background(), e.prefix+"/example.com/widgets/default/a", "nonsense"); err != nil {
		t.Fatal(err)
	}
	_, err := e.server.DeleteInstances(context.Background(), e.catalog.Get("widgets.example.com"))
	if listing := (*lifecycle.ListError)(nil); !errors.As(err, &listing) {
		t.Errorf("the error is %v", err)
	}
}

func TestTerminating(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	e.define(widgetsYAML, func(d map[string]any) {
		d["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
	e.do("POST", widgets, widget("b", "")).is(http.StatusForbidden).
		says(`widgets.example.com "b" is forbidden: create not allowed while custom resource definition is terminating`)
	e.patch("apply", widgets+"/b?fieldManager=m", widget("b", "")).is(http.StatusForbidden)
	e.patch("merge", widgets+"/a", `{"spec":{"color":"blue"}}`).is(http.StatusOK)
	e.do("DELETE", widgets+"/a", "").is(http.StatusOK)
}

func TestIdleResourcesAreForgotten(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	w := e.watch(widgets + "?watch=1&resourceVersion=0")
	w.next()
	value, _ := e.server.servings.Load(e.catalog.Get("widgets.example.com").UID)
	s := value.(*serving)
	future := s.lastUsed.Add(DefaultIdle * 2)
	if s.closeIfIdle(future) {
		t.Fatal("given up under a watch")
	}
	w.cancel()
	eventually(t, func() bool { return s.closeIfIdle(future.Add(DefaultIdle)) })
	e.do("GET", widgets+"/a", "").is(http.StatusOK)
	if again, _ := e.server.servings.Load(e.catalog.Get("widgets.example.com").UID); again == value || e.server.Len() != 1 {
		t.Error("what was given up is still in use")
	}
}

func TestDeletedDefinition(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	w := e.watch(widgets + "?watch=1&resourceVersion=0")
	w.next()
	resp, err := e.etcd.Delete(context.Background(), e.prefix+catalog.Key+"/widgets.example.com")
	if err != nil {
		t.Fatal(err)
	}
	e.waitFor(resp.Header.Revision)
	e.do("GET", widgets+"/a", "").is(http.StatusNotFound)
	if event, ok := w.next(); ok {
		t.Errorf("the watch goes on: %s", event.body)
	}
	eventually(t, func() bool { return e.server.Len() == 0 })
}
