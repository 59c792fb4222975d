package customresource

import (
	"net/http"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	created := e.Do("POST", widgets, widget("a", `"size":"s"`)).Is(http.StatusCreated)

	// Status takes nothing but the status.
	body := strings.Replace(string(created.Body), `"spec":{`, `"status":{"phase":"Up","extra":1},"spec":{"ratio":0.5,`, 1)
	body = strings.Replace(body, `"name":"a"`, `"labels":{"x":"y"},"name":"a"`, 1)
	status := e.Do("PUT", widgets+"/a/status", body).Is(http.StatusOK).
		Has("status", map[string]any{"phase": "Up"}).Has("spec.ratio", nil).Has("metadata.labels", nil).Has("metadata.generation", 1)
	status.Has("metadata.managedFields.1.subresource", "status")

	// The resource itself takes everything else.
	body = strings.Replace(string(status.Body), `"Up"`, `"Down"`, 1)
	body = strings.Replace(body, `"size":"s"`, `"size":"m"`, 1)
	e.Do("PUT", widgets+"/a", body).Is(http.StatusOK).Has("status.phase", "Up").Has("spec.size", "m").Has("metadata.generation", 2)

	e.Patch("merge", widgets+"/a/status", `{"status":{"phase":"far too long"}}`).Is(http.StatusUnprocessableEntity).
		Says(`Widget.example.com "a" is invalid: [status.phase: Too long: may not be more than 8 bytes, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`)
	e.Patch("merge", widgets+"/a/status", `{"status":{"phase":1}}`).Is(http.StatusUnprocessableEntity).
		Says(`Widget.example.com "a" is invalid: [status.phase: Invalid value: "integer": phase in body must be of type string: "integer", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`)
	e.Patch("json", widgets+"/a/status", `[{"op":"remove","path":"/status"}]`).Is(http.StatusOK).Has("status", nil)
	e.Patch("apply", widgets+"/a/status?fieldManager=m", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"status":{"phase":"On"}}`).
		Is(http.StatusOK).Has("status.phase", "On")
}

// What is wrong with the rest of an object does not keep its status from being
// written.
func TestStatusOfAnInvalidObject(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"size":"12345"`)).Is(http.StatusCreated)
	e.define(strings.Replace(widgetsYAML, "maxLength: 5}", "maxLength: 3}", 1), dropRules)
	e.Patch("merge", widgets+"/a/status", `{"status":{"phase":"Up"}}`).Is(http.StatusOK)
	e.Patch("merge", widgets+"/a", `{"spec":{"size":"54321"}}`).Is(http.StatusUnprocessableEntity)
}

func TestScale(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	scale := widgets + "/a/scale"
	e.Do("GET", scale, "").Is(http.StatusNotFound)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	e.Do("GET", scale, "").Is(http.StatusInternalServerError).
		Says(`Internal error occurred: the spec replicas field ".spec.replicas" does not exist`)
	e.Patch("merge", scale, `{"metadata":{"labels":{"x":"y"}}}`).Is(http.StatusBadRequest).Says(`the spec replicas field ".spec.replicas" cannot be empty`)
	e.Patch("merge", scale, `{"spec":{"replicas":3}}`).Is(http.StatusOK).Has("kind", "Scale").Has("apiVersion", "autoscaling/v1").Has("spec.replicas", 3)
	e.Patch("merge", widgets+"/a/status", `{"status":{"replicas":2,"selector":"app=a"}}`).Is(http.StatusOK)
	got := e.Do("GET", scale, "").Is(http.StatusOK).Has("status", map[string]any{"replicas": 2, "selector": "app=a"})
	e.Do("GET", widgets+"/a", "").Is(http.StatusOK).Has("spec.replicas", 3).Has("spec.color", "red").Has("metadata.generation", 2)

	body := strings.Replace(string(got.Body), `"replicas":3`, `"replicas":5`, 1)
	e.Do("PUT", scale, body).Is(http.StatusOK).Has("spec.replicas", 5)
	e.Do("PUT", scale, body).Is(http.StatusConflict)
	e.Patch("merge", scale, `{"spec":{"replicas":-1}}`).Is(http.StatusUnprocessableEntity)
	e.Do("GET", widgets+"/a", "").Is(http.StatusOK).Has("spec.replicas", 5)

	// The client that sets the replicas manages them, through the scale or the object.
	e.Patch("apply", scale+"?fieldManager=scaler&force=true", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":7}}`).
		Is(http.StatusOK).Has("spec.replicas", 7)
	e.Patch("apply", widgets+"/a?fieldManager=other", widget("a", `"replicas":1`)).Is(http.StatusConflict)
	e.Do("GET", scale, "", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1").Is(http.StatusOK).
		Has("rows.0.cells.1", 7).Has("rows.0.cells.2", 2).Has("columnDefinitions.1.name", "Desired")
}

func TestPatches(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"parts":[{"name":"x","count":1}]`)).Is(http.StatusCreated)
	e.Patch("json", widgets+"/a", `[{"op":"replace","path":"/spec/parts/0/count","value":2},{"op":"add","path":"/spec/size","value":"s"}]`).
		Is(http.StatusOK).Has("spec.parts.0.count", 2).Has("spec.size", "s").Has("metadata.generation", 2)
	e.Patch("merge", widgets+"/a", `{"spec":{"size":null,"color":"blue"}}`).Is(http.StatusOK).Has("spec.size", nil).Has("spec.color", "blue")
	e.Patch("strategic", widgets+"/a", `{}`).Is(http.StatusUnsupportedMediaType)
	e.Patch("json", widgets+"/a", `[{"op":"test","path":"/spec/color","value":"red"}]`).Is(http.StatusUnprocessableEntity)
	e.Patch("json", widgets+"/a", `nonsense`).Is(http.StatusBadRequest)
	e.Patch("merge", widgets+"/b", `{}`).Is(http.StatusNotFound)
}

func TestApply(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	one := widgets + "/a?fieldManager=one"
	e.Patch("apply", one, widget("a", `"color":"blue","parts":[{"name":"x","count":1}]`)).Is(http.StatusCreated).Has("spec.color", "blue").
		Has("metadata.managedFields.0.operation", "Apply").Has("metadata.managedFields.0.manager", "one")
	e.Patch("apply", one, widget("a", `"color":"blue","parts":[{"name":"x","count":1}]`)).Is(http.StatusOK).Has("metadata.generation", 1)

	// Another manager adds to the list and conflicts on the color.
	two := widgets + "/a?fieldManager=two"
	e.Patch("apply", two, widget("a", `"parts":[{"name":"y"}]`)).Is(http.StatusOK).Has("spec.parts.1.name", "y")
	e.Patch("apply", two, widget("a", `"color":"green"`)).Is(http.StatusConflict).
		Says(`Apply failed with 1 conflict: conflict with "one": .spec.color`)
	e.Patch("apply", two+"&force=true", widget("a", `"color":"green"`)).Is(http.StatusOK).Has("spec.color", "green").Has("spec.parts", []any{map[string]any{"count": 1, "name": "x"}})

	// What the first no longer applies is removed; the default takes its place.
	e.Patch("apply", one, widget("a", `"replicas":1`)).Is(http.StatusOK).Has("spec", map[string]any{"color": "green", "replicas": 1})
	e.Patch("apply", two, widget("a", "")).Is(http.StatusOK).Has("spec", map[string]any{"color": "red", "replicas": 1})
	e.Patch("apply", one, widget("a", `"bogus":1`)).Is(http.StatusInternalServerError).
		Says(`failed to create typed patch object (/a; example.com/v1, Kind=Widget): .spec.bogus: field not declared in schema`)
	e.Patch("apply", widgets+"/a", widget("a", "")).Is(http.StatusUnprocessableEntity) // no manager
}

func TestTable(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"replicas":3,"ratio":2,"broken":true,"parts":[{"name":"x"}]`)).Is(http.StatusCreated)
	e.Do("POST", widgets, widget("b", "")).Is(http.StatusCreated)
	accept := "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"
	a := e.Do("GET", widgets, "", accept).Is(http.StatusOK).Has("kind", "Table").Has("apiVersion", "meta.k8s.io/v1")
	a.Has("columnDefinitions.0.name", "Name").Has("columnDefinitions.1.description", "Custom resource definition column (in JSONPath format): .spec.color")
	a.Has("columnDefinitions.3.priority", 1)
	for i, want := range []any{"a", "red", 3, 2, true, "x", nil} {
		a.Has("rows.0.cells."+string(rune('0'+i)), want)
	}
	for i, want := range []any{"b", "red", nil, nil, nil, nil, nil} {
		a.Has("rows.1.cells."+string(rune('0'+i)), want)
	}
	if age, _ := a.At("rows.0.cells.7").(string); !strings.HasSuffix(age, "s") {
		t.Errorf("age is %v", a.At("rows.0.cells.7"))
	}
	a.Has("rows.0.object.kind", "PartialObjectMetadata").Has("rows.0.object.metadata.name", "a")
	e.Do("GET", widgets+"?includeObject=None", "", accept).Is(http.StatusOK).Has("rows.0.object", nil)
	e.Do("GET", widgets+"?includeObject=Object", "", accept).Is(http.StatusOK).Has("rows.0.object.spec.replicas", 3)
	e.Do("GET", widgets+"/a", "", accept).Is(http.StatusOK).Has("rows.0.cells.0", "a")
	partial := "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	e.Do("GET", widgets+"/a", "", partial).Is(http.StatusOK).Has("kind", "PartialObjectMetadata").Has("spec", nil)
	e.Do("GET", widgets, "", "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Is(http.StatusOK).Has("items.1.metadata.name", "b")

	// Without columns there is the age.
	e.define(boxesWith("a: {type: string}"))
	e.Do("POST", boxes, box("one", "")).Is(http.StatusCreated)
	e.Do("GET", boxes, "", accept).Is(http.StatusOK).Has("columnDefinitions.1.name", "Age").Has("rows.0.cells.0", "one")
}

func TestWatch(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	w := e.Watch(widgets + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	event, _ := w.Next()
	event.Has("type", "ADDED").Has("object.kind", "Widget")
	event, _ = w.Next()
	event.Has("type", "BOOKMARK").Has("object.kind", "Widget").Has("object.metadata.annotations", map[string]any{"k8s.io/initial-events-end": "true"})

	green := e.Watch(widgets + "?watch=1&resourceVersion=0&fieldSelector=spec.color%3Dgreen")
	e.Patch("merge", widgets+"/a", `{"spec":{"color":"green"}}`).Is(http.StatusOK)
	for event, _ = w.Next(); event.At("type") == "BOOKMARK"; event, _ = w.Next() { // sent at times of its own
	}
	event.Has("type", "MODIFIED").Has("object.spec.color", "green")
	event, _ = green.Next()
	event.Has("type", "ADDED")
	e.Do("DELETE", widgets+"/a", "").Is(http.StatusOK)
	for event, _ = w.Next(); event.At("type") == "BOOKMARK"; event, _ = w.Next() { // sent at times of its own
	}
	event.Has("type", "DELETED").Has("object.metadata.name", "a")
	event, _ = green.Next()
	event.Has("type", "DELETED")
}

func TestWatchOfATable(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"replicas":3`)).Is(http.StatusCreated)
	w := e.Watch(widgets+"?watch=1&resourceVersion=0&includeObject=Object", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1")
	event, _ := w.Next()
	event.Has("type", "ADDED").Has("object.kind", "Table").Has("object.rows.0.cells.2", 3).Has("object.rows.0.object.spec.replicas", 3)
	e.Patch("merge", widgets+"/a", `{"spec":{"replicas":4}}`).Is(http.StatusOK)
	event, _ = w.Next()
	event.Has("type", "MODIFIED").Has("object.rows.0.cells.2", 4).Has("object.columnDefinitions", nil)
}

// Names that lead elsewhere in etcd are no names.
func TestNamesAreNoPaths(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.define(strings.NewReplacer("widgets", "widget", "singular: widget", "singular: w", "Widget", "W").Replace(widgetsYAML))
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated)
	for _, path := range []string{
		widgets + "/..%2fdefault%2fa", widgets + "/%2e%2e", widgets + "/..%2f..%2fwidget", strings.TrimSuffix(widgets, "s") + "/..%2fwidgets",
		strings.Replace(widgets, "default", "..%2fwidgets%2fdefault", 1), strings.Replace(widgets, "default", "..", 1) + "/a",
	} {
		a := e.Do("GET", path, "")
		if items, _ := a.At("items").([]any); a.Code == http.StatusOK && len(items) > 0 || a.At("spec") != nil {
			t.Errorf("%s is %d: %s", path, a.Code, a.Body)
		}
	}
	// A resource whose name begins like another's has its own objects.
	if items := e.Do("GET", strings.TrimSuffix(widgets, "s"), "").Is(http.StatusOK).At("items"); len(items.([]any)) != 0 {
		t.Errorf("%v", items)
	}
	e.Do("GET", widgets+"?limit=1&continue=nonsense", "").Is(http.StatusBadRequest)
}
