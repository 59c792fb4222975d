package customresource

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
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

	a := e.Do("POST", widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"spec":{"size":"xl","bogus":1},"status":{"phase":"New"}}`).Is(http.StatusCreated)
	a.Has("spec", map[string]any{"color": "red", "size": "xl"}).Has("status", nil).Has("metadata.generation", 1).Has("metadata.namespace", "default")
	a.Warns(`unknown field "spec.bogus"`)
	if a.At("metadata.uid") == nil || a.At("metadata.creationTimestamp") == nil || a.At("metadata.resourceVersion") == nil {
		t.Fatalf("metadata is not complete: %s", a.Body)
	}
	a.Has("metadata.managedFields.0.operation", "Update").Has("metadata.managedFields.0.apiVersion", "example.com/v1")

	e.Do("POST", widgets, widget("a", "")).Is(http.StatusConflict).Says(`widgets.example.com "a" already exists`)
	got := e.Do("GET", widgets+"/a", "").Is(http.StatusOK)
	if string(got.Body) != string(a.Body) {
		t.Errorf("what is read is not what was written:\n%s\n%s", got.Body, a.Body)
	}
	stored := e.stored("/example.com/widgets/default/a")
	if strings.Contains(stored, "resourceVersion") || !strings.HasPrefix(stored, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{`) {
		t.Errorf("stored is %s", stored)
	}

	// Updates need the resourceVersion, and count in generation if anything but
	// metadata changes.
	e.Do("PUT", widgets+"/a", widget("a", `"size":"s"`)).Is(http.StatusUnprocessableEntity).
		Says(`widgets.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update`)
	body := strings.Replace(string(got.Body), `"size":"xl"`, `"size":"s"`, 1)
	updated := e.Do("PUT", widgets+"/a", body).Is(http.StatusOK).Has("spec.size", "s").Has("metadata.generation", 2)
	e.Do("PUT", widgets+"/a", body).Is(http.StatusConflict)
	body = strings.Replace(string(updated.Body), `"name":"a"`, `"labels":{"x":"y"},"name":"a"`, 1)
	labelled := e.Do("PUT", widgets+"/a", body).Is(http.StatusOK).Has("metadata.generation", 2).Has("metadata.labels.x", "y")

	// An update without changes is not written.
	again := e.Do("PUT", widgets+"/a", string(labelled.Body)).Is(http.StatusOK)
	again.Has("metadata.resourceVersion", labelled.At("metadata.resourceVersion"))

	e.Do("DELETE", widgets+"/a", "").Is(http.StatusOK).Has("status", "Success")
	e.Do("GET", widgets+"/a", "").Is(http.StatusNotFound).Says(`widgets.example.com "a" not found`)
}

// stored returns what etcd has.
func (e *env) stored(key string) string {
	e.TB.Helper()
	resp, err := e.etcd.Get(context.Background(), e.prefix+key)
	if err != nil || len(resp.Kvs) != 1 {
		e.TB.Fatalf("%s: %v, %v", key, resp, err)
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
			e.TB = t
			e.Do("POST", widgets, c.body).Is(c.code).Says(c.message)
		})
	}
	e.Do("POST", widgets, `{"apiVersion":`).Is(http.StatusBadRequest)
	e.Do("POST", widgets, `[]`).Is(http.StatusBadRequest)
	e.Do("POST", widgets, widget("a", `"size":"`+strings.Repeat("x", endpoints.DefaultMaxRequestBodyBytes)+`"`)).Is(http.StatusRequestEntityTooLarge)
	e.Do("POST", widgets, widget("a", ""), "Content-Type: text/plain").Is(http.StatusUnsupportedMediaType)
	e.Do("GET", widgets, "", "Accept: text/plain").Is(http.StatusNotAcceptable)
	e.Do("GET", widgets, "", "Accept: application/vnd.kubernetes.protobuf").Is(http.StatusNotAcceptable)
}

// Values of the wrong type are refused before any admission plugin sees them,
// all together.
func TestMismatchesAreRefusedBeforeAdmission(t *testing.T) {
	plugin := &recorder{}
	e := start(t, func(o *Options) { o.Admission = plugin })
	e.define(widgetsYAML)
	a := e.Do("POST", widgets, widget("a", `"color":7,"replicas":"three"`)).Is(http.StatusUnprocessableEntity)
	message := a.At("message").(string)
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
	// Pruned fields may be of any type.
	e.Do("POST", widgets, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"status":{"phase":1}}`).Is(http.StatusCreated)
	if n := plugin.admitted.Load(); n != 1 {
		t.Errorf("%d objects were shown to admission", n)
	}
}

// An object that was stored with a value of another type may keep it.
func TestMismatchesOfTheOldObjectAreRatcheted(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"size":"xl"`)).Is(http.StatusCreated)
	e.define(strings.Replace(widgetsYAML, "size: {type: string, maxLength: 5}", "size: {type: integer}", 1), func(d map[string]any) {
		dropRules(d)
	})
	apitest.Eventually(t, func() bool {
		return e.Patch("merge", widgets+"/a", `{"spec":{"size":"xxl"}}`).Code == http.StatusUnprocessableEntity
	})
	e.Patch("merge", widgets+"/a", `{"spec":{"color":"blue"}}`).Is(http.StatusOK).Has("spec.size", "xl")
}

// dropRules removes the rules of a CRD's only version.
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
		e.Do("POST", strings.Replace(widgets, "default", namespace, 1), body).Is(http.StatusCreated)
	}
	count := func(path string) int {
		t.Helper()
		a := e.Do("GET", path, "").Is(http.StatusOK).Has("kind", "WidgetList").Has("apiVersion", "example.com/v1")
		items, _ := a.At("items").([]any)
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
	e.Do("GET", widgets+"?fieldSelector=spec.size%3Dxl", "").Is(http.StatusBadRequest).
		Says("field label not supported: spec.size")

	// Pages add up.
	total, next := 0, ""
	for pages := 0; ; pages++ {
		a := e.Do("GET", widgets+"?limit=2&continue="+next, "").Is(http.StatusOK)
		total += len(a.At("items").([]any))
		if next, _ = a.At("metadata.continue").(string); next == "" {
			if pages != 2 {
				t.Errorf("%d pages", pages+1)
			}
			break
		}
	}
	if total != 5 {
		t.Errorf("the pages have %d items", total)
	}
	e.Do("DELETE", widgets+"?labelSelector=n%3D0", "").Is(http.StatusOK).Has("kind", "WidgetList")
	if got := count(widgets); got != 3 {
		t.Errorf("%d items are left", got)
	}
}

func TestYAMLAndNameGeneration(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	a := e.Do("POST", widgets, "apiVersion: example.com/v1\nkind: Widget\nmetadata: {generateName: w-}\nspec: {size: s}\n",
		"Content-Type: application/yaml", "Accept: application/yaml").Is(http.StatusCreated)
	if !strings.Contains(string(a.Body), "name: w-") || !strings.Contains(string(a.Body), "size: s\n") {
		t.Errorf("answer is %s", a.Body)
	}
}

func TestDryRunWritesNothing(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets+"?dryRun=All", widget("a", "")).Is(http.StatusCreated).Has("spec.color", "red")
	e.Do("GET", widgets+"/a", "").Is(http.StatusNotFound)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	e.Do("PATCH", widgets+"/a?dryRun=All", `{"spec":{"color":"blue"}}`, "Content-Type: application/merge-patch+json").Is(http.StatusOK).Has("spec.color", "blue")
	e.Do("DELETE", widgets+"/a?dryRun=All", "").Is(http.StatusOK)
	e.Do("GET", widgets+"/a", "").Is(http.StatusOK).Has("spec.color", "red")
}

func TestFinalizersAndWarnings(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","finalizers":["mine","foregroundDeletion","a.b","example.com/x"]}}`
	e.Do("POST", widgets, body).Is(http.StatusCreated).Warns(
		`metadata.finalizers: "a.b": prefer a domain-qualified finalizer name including a path (/) to avoid accidental conflicts with other finalizer writers`,
		`metadata.finalizers: "mine": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers`)
	e.Do("DELETE", widgets+"/a", "").Is(http.StatusOK)
	if e.Do("GET", widgets+"/a", "").Is(http.StatusOK).At("metadata.deletionTimestamp") == nil {
		t.Error("the object is not marked as deleted")
	}
	e.Patch("merge", widgets+"/a", `{"metadata":{"finalizers":null}}`).Is(http.StatusOK)
	e.Do("GET", widgets+"/a", "").Is(http.StatusNotFound)
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
		e.Do("POST", strings.Replace(widgets, "default", fmt.Sprintf("ns%d", i%3), 1), body).Is(http.StatusCreated)
	}
	entry := e.catalog.Get("widgets.example.com")
	for want := 1; want >= 0; want-- {
		left, err := e.server.DeleteInstances(context.Background(), entry)
		if err != nil || left != want {
			t.Errorf("%d are left, not %d; %v", left, want, err)
		}
		if want == 1 {
			e.Patch("merge", "/apis/example.com/v1/namespaces/ns1/widgets/w7", `{"metadata":{"finalizers":null}}`).Is(http.StatusOK)
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
	e.Do("POST", planets, `{"apiVersion":"example.com/v1","kind":"Planet","metadata":{"name":"mars"},"any":1}`).Is(http.StatusCreated)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)

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
		if a := e.Do(c.method, c.path, ""); a.Code != http.StatusNotFound {
			t.Errorf("%s %s is %d: %s", c.method, c.path, a.Code, a.Body)
		}
	}
	e.Do("POST", "/apis/example.com/v1/widgets", widget("b", "")).Is(http.StatusNotFound)
	e.Do("PUT", "/apis/example.com/v1/namespaces/default/planets/mars", "{}").Is(http.StatusNotFound)
	e.Do("GET", planets+"/mars/status", "").Is(http.StatusNotFound).Says(`planets.example.com "mars" not found`)
	e.Do("GET", planets+"/mars/scale", "").Is(http.StatusNotFound)
	e.Do("GET", planets+"/mars/log", "").Is(http.StatusNotFound)
	e.Do("POST", widgets+"/a/status", widget("a", "")).Is(http.StatusMethodNotAllowed).Says(`create is not supported on resources of kind "widgets.example.com"`)
	e.Do("DELETE", widgets+"/a/scale", "").Is(http.StatusMethodNotAllowed)

	// Deprecated versions say so.
	e.Do("GET", planets+"/mars", "").Is(http.StatusOK).Warns()
	e.Do("GET", "/apis/example.com/v1beta1/planets/mars", "").Is(http.StatusOK).Has("apiVersion", "example.com/v1beta1").Has("any", 1).
		Warns("example.com/v1beta1 Planet is deprecated; use example.com/v1 Planet")
	e.Do("GET", "/apis/example.com/v1alpha1/planets/mars", "").Is(http.StatusOK).Has("any", nil).Warns("go away")

	// Not accepted, not yet established: not there.
	e.define(strings.ReplaceAll(widgetsYAML, "example.com", "waiting.com"), func(d map[string]any) { d["status"].(map[string]any)["conditions"] = []any{} })
	e.Do("GET", "/apis/waiting.com/v1/widgets", "").Is(http.StatusNotFound)
}

func TestTerminating(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	e.define(widgetsYAML, func(d map[string]any) {
		d["metadata"].(map[string]any)["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	})
	e.Do("POST", widgets, widget("b", "")).Is(http.StatusForbidden).
		Says(`widgets.example.com "b" is forbidden: create not allowed while custom resource definition is terminating`)
	e.Patch("apply", widgets+"/b?fieldManager=m", widget("b", "")).Is(http.StatusForbidden)
	e.Patch("merge", widgets+"/a", `{"spec":{"color":"blue"}}`).Is(http.StatusOK)
	e.Do("DELETE", widgets+"/a", "").Is(http.StatusOK)
}

func TestIdleResourcesAreForgotten(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	w := e.Watch(widgets + "?watch=1&resourceVersion=0")
	w.Next()
	value, _ := e.server.servedResources.Load(e.catalog.Get("widgets.example.com").UID)
	s := value.(*servedResource)
	future := s.lastUsed.Add(DefaultIdle * 2)
	if s.closeIfIdle(future) {
		t.Fatal("given up under a watch")
	}
	w.Close()
	apitest.Eventually(t, func() bool { return s.closeIfIdle(future.Add(DefaultIdle)) })
	e.Do("GET", widgets+"/a", "").Is(http.StatusOK)
	if again, _ := e.server.servedResources.Load(e.catalog.Get("widgets.example.com").UID); again == value || e.server.Len() != 1 {
		t.Error("what was given up is still in use")
	}
}

func TestDeletedCRD(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	w := e.Watch(widgets + "?watch=1&resourceVersion=0")
	w.Next()
	resp, err := e.etcd.Delete(context.Background(), e.prefix+catalog.Key+"/widgets.example.com")
	if err != nil {
		t.Fatal(err)
	}
	e.waitFor(resp.Header.Revision)
	e.Do("GET", widgets+"/a", "").Is(http.StatusNotFound)
	if event, ok := w.Next(); ok {
		t.Errorf("the watch goes on: %s", event.Body)
	}
	apitest.Eventually(t, func() bool { return e.server.Len() == 0 })
}
