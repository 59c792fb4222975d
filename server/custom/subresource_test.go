package custom

import (
	"net/http"
	"strings"
	"testing"
)

func TestStatus(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	created := e.do("POST", widgets, widget("a", `"size":"s"`)).is(http.StatusCreated)

	// Status takes nothing but the status.
	body := strings.Replace(string(created.body), `"spec":{`, `"status":{"phase":"Up","extra":1},"spec":{"ratio":0.5,`, 1)
	body = strings.Replace(body, `"name":"a"`, `"labels":{"x":"y"},"name":"a"`, 1)
	status := e.do("PUT", widgets+"/a/status", body).is(http.StatusOK).
		has("status", map[string]any{"phase": "Up"}).has("spec.ratio", nil).has("metadata.labels", nil).has("metadata.generation", 1)
	status.has("metadata.managedFields.1.subresource", "status")

	// The resource itself takes everything else.
	body = strings.Replace(string(status.body), `"Up"`, `"Down"`, 1)
	body = strings.Replace(body, `"size":"s"`, `"size":"m"`, 1)
	e.do("PUT", widgets+"/a", body).is(http.StatusOK).has("status.phase", "Up").has("spec.size", "m").has("metadata.generation", 2)

	e.patch("merge", widgets+"/a/status", `{"status":{"phase":"far too long"}}`).is(http.StatusUnprocessableEntity).
		says(`Widget.example.com "a" is invalid: [status.phase: Too long: may not be more than 8 bytes, <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`)
	e.patch("merge", widgets+"/a/status", `{"status":{"phase":1}}`).is(http.StatusUnprocessableEntity).
		says(`Widget.example.com "a" is invalid: [status.phase: Invalid value: "integer": phase in body must be of type string: "integer", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`)
	e.patch("json", widgets+"/a/status", `[{"op":"remove","path":"/status"}]`).is(http.StatusOK).has("status", nil)
	e.patch("apply", widgets+"/a/status?fieldManager=m", `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"},"status":{"phase":"On"}}`).
		is(http.StatusOK).has("status.phase", "On")
}

// What is wrong with the rest of an object does not keep its status from being
// written.
func TestStatusOfAnInvalidObject(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", `"size":"12345"`)).is(http.StatusCreated)
	e.define(strings.Replace(widgetsYAML, "maxLength: 5}", "maxLength: 3}", 1), dropRules)
	e.patch("merge", widgets+"/a/status", `{"status":{"phase":"Up"}}`).is(http.StatusOK)
	e.patch("merge", widgets+"/a", `{"spec":{"size":"54321"}}`).is(http.StatusUnprocessableEntity)
}

func TestScale(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	scale := widgets + "/a/scale"
	e.do("GET", scale, "").is(http.StatusNotFound)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	e.do("GET", scale, "").is(http.StatusInternalServerError).
		says(`Internal error occurred: the spec replicas field ".spec.replicas" does not exist`)
	e.patch("merge", scale, `{"metadata":{"labels":{"x":"y"}}}`).is(http.StatusBadRequest).says(`the spec replicas field ".spec.replicas" cannot be empty`)
	e.patch("merge", scale, `{"spec":{"replicas":3}}`).is(http.StatusOK).has("kind", "Scale").has("apiVersion", "autoscaling/v1").has("spec.replicas", 3)
	e.patch("merge", widgets+"/a/status", `{"status":{"replicas":2,"selector":"app=a"}}`).is(http.StatusOK)
	got := e.do("GET", scale, "").is(http.StatusOK).has("status", map[string]any{"replicas": 2, "selector": "app=a"})
	e.do("GET", widgets+"/a", "").is(http.StatusOK).has("spec.replicas", 3).has("spec.color", "red").has("metadata.generation", 2)

	body := strings.Replace(string(got.body), `"replicas":3`, `"replicas":5`, 1)
	e.do("PUT", scale, body).is(http.StatusOK).has("spec.replicas", 5)
	e.do("PUT", scale, body).is(http.StatusConflict)
	e.patch("merge", scale, `{"spec":{"replicas":-1}}`).is(http.StatusUnprocessableEntity)
	e.do("GET", widgets+"/a", "").is(http.StatusOK).has("spec.replicas", 5)

	// Who sets the replicas manages them, through either door.
	e.patch("apply", scale+"?fieldManager=scaler&force=true", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"a"},"spec":{"replicas":7}}`).
		is(http.StatusOK).has("spec.replicas", 7)
	e.patch("apply", widgets+"/a?fieldManager=other", widget("a", `"replicas":1`)).is(http.StatusConflict)
	e.do("GET", scale, "", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1").is(http.StatusOK).
		has("rows.0.cells.1", 7).has("rows.0.cells.2", 2).has("columnDefinitions.1.name", "Desired")
}

func TestPatches(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", `"parts":[{"name":"x","count":1}]`)).is(http.StatusCreated)
	e.patch("json", widgets+"/a", `[{"op":"replace","path":"/spec/parts/0/count","value":2},{"op":"add","path":"/spec/size","value":"s"}]`).
		is(http.StatusOK).has("spec.parts.0.count", 2).has("spec.size", "s").has("metadata.generation", 2)
	e.patch("merge", widgets+"/a", `{"spec":{"size":null,"color":"blue"}}`).is(http.StatusOK).has("spec.size", nil).has("spec.color", "blue")
	e.patch("strategic", widgets+"/a", `{}`).is(http.StatusUnsupportedMediaType)
	e.patch("json", widgets+"/a", `[{"op":"test","path":"/spec/color","value":"red"}]`).is(http.StatusUnprocessableEntity)
	e.patch("json", widgets+"/a", `nonsense`).is(http.StatusBadRequest)
	e.patch("merge", widgets+"/b", `{}`).is(http.StatusNotFound)
}

func TestApply(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	one := widgets + "/a?fieldManager=one"
	e.patch("apply", one, widget("a", `"color":"blue","parts":[{"name":"x","count":1}]`)).is(http.StatusCreated).has("spec.color", "blue").
		has("metadata.managedFields.0.operation", "Apply").has("metadata.managedFields.0.manager", "one")
	e.patch("apply", one, widget("a", `"color":"blue","parts":[{"name":"x","count":1}]`)).is(http.StatusOK).has("metadata.generation", 1)

	// Another manager adds to the list and conflicts on the color.
	two := widgets + "/a?fieldManager=two"
	e.patch("apply", two, widget("a", `"parts":[{"name":"y"}]`)).is(http.StatusOK).has("spec.parts.1.name", "y")
	e.patch("apply", two, widget("a", `"color":"green"`)).is(http.StatusConflict).
		says(`Apply failed with 1 conflict: conflict with "one": .spec.color`)
	e.patch("apply", two+"&force=true", widget("a", `"color":"green"`)).is(http.StatusOK).has("spec.color", "green").has("spec.parts", []any{map[string]any{"count": 1, "name": "x"}})

	// What the first no longer applies is removed; the default takes its place.
	e.patch("apply", one, widget("a", `"replicas":1`)).is(http.StatusOK).has("spec", map[string]any{"color": "green", "replicas": 1})
	e.patch("apply", two, widget("a", "")).is(http.StatusOK).has("spec", map[string]any{"color": "red", "replicas": 1})
	e.patch("apply", one, widget("a", `"bogus":1`)).is(http.StatusInternalServerError).
		says(`failed to create typed patch object (/a; example.com/v1, Kind=Widget): .spec.bogus: field not declared in schema`)
	e.patch("apply", widgets+"/a", widget("a", "")).is(http.StatusUnprocessableEntity) // no manager
}

func TestTable(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", `"replicas":3,"ratio":2,"broken":true,"parts":[{"name":"x"}]`)).is(http.StatusCreated)
	e.do("POST", widgets, widget("b", "")).is(http.StatusCreated)
	accept := "Accept: application/json;as=Table;g=meta.k8s.io;v=v1"
	a := e.do("GET", widgets, "", accept).is(http.StatusOK).has("kind", "Table").has("apiVersion", "meta.k8s.io/v1")
	a.has("columnDefinitions.0.name", "Name").has("columnDefinitions.1.description", "Custom resource definition column (in JSONPath format): .spec.color")
	a.has("columnDefinitions.3.priority", 1)
	for i, want := range []any{"a", "red", 3, 2, true, "x", nil} {
		a.has("rows.0.cells."+string(rune('0'+i)), want)
	}
	for i, want := range []any{"b", "red", nil, nil, nil, nil, nil} {
		a.has("rows.1.cells."+string(rune('0'+i)), want)
	}
	if age, _ := a.at("rows.0.cells.7").(string); !strings.HasSuffix(age, "s") {
		t.Errorf("age is %v", a.at("rows.0.cells.7"))
	}
	a.has("rows.0.object.kind", "PartialObjectMetadata").has("rows.0.object.metadata.name", "a")
	e.do("GET", widgets+"?includeObject=None", "", accept).is(http.StatusOK).has("rows.0.object", nil)
	e.do("GET", widgets+"?includeObject=Object", "", accept).is(http.StatusOK).has("rows.0.object.spec.replicas", 3)
	e.do("GET", widgets+"/a", "", accept).is(http.StatusOK).has("rows.0.cells.0", "a")
	partial := "Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
	e.do("GET", widgets+"/a", "", partial).is(http.StatusOK).has("kind", "PartialObjectMetadata").has("spec", nil)
	e.do("GET", widgets, "", "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").is(http.StatusOK).has("items.1.metadata.name", "b")

	// Without columns there is the age.
	e.define(boxesWith("a: {type: string}"))
	e.do("POST", boxes, box("one", "")).is(http.StatusCreated)
	e.do("GET", boxes, "", accept).is(http.StatusOK).has("columnDefinitions.1.name", "Age").has("rows.0.cells.0", "one")
}

func TestWatch(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	w := e.watch(widgets + "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true")
	event, _ := w.next()
	event.has("type", "ADDED").has("object.kind", "Widget")
	event, _ = w.next()
	event.has("type", "BOOKMARK").has("object.kind", "Widget").has("object.metadata.annotations", map[string]any{"k8s.io/initial-events-end": "true"})

	green := e.watch(widgets + "?watch=1&resourceVersion=0&fieldSelector=spec.color%3Dgreen")
	e.patch("merge", widgets+"/a", `{"spec":{"color":"green"}}`).is(http.StatusOK)
	event, _ = w.next()
	event.has("type", "MODIFIED").has("object.spec.color", "green")
	event, _ = green.next()
	event.has("type", "ADDED")
	e.do("DELETE", widgets+"/a", "").is(http.StatusOK)
	event, _ = w.next()
	event.has("type", "DELETED").has("object.metadata.name", "a")
	event, _ = green.next()
	event.has("type", "DELETED")
}

func TestWatchOfATable(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.do("POST", widgets, widget("a", `"replicas":3`)).is(http.StatusCreated)
	w := e.watch(widgets+"?watch=1&resourceVersion=0&includeObject=Object", "Accept: application/json;as=Table;g=meta.k8s.io;v=v1")
	event, _ := w.next()
	event.has("type", "ADDED").has("object.kind", "Table").has("object.rows.0.cells.2", 3).has("object.rows.0.object.spec.replicas", 3)
	e.patch("merge", widgets+"/a", `{"spec":{"replicas":4}}`).is(http.StatusOK)
	event, _ = w.next()
	event.has("type", "MODIFIED").has("object.rows.0.cells.2", 4).has("object.columnDefinitions", nil)
}

// Names that lead elsewhere in etcd are no names.
func TestNamesAreNoPaths(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	e.define(strings.NewReplacer("widgets", "widget", "singular: widget", "singular: w", "Widget", "W").Replace(widgetsYAML))
	e.do("POST", widgets, widget("a", "")).is(http.StatusCreated)
	for _, path := range []string{
		widgets + "/..%2fdefault%2fa", widgets + "/%2e%2e", widgets + "/..%2f..%2fwidget", strings.TrimSuffix(widgets, "s") + "/..%2fwidgets",
		strings.Replace(widgets, "default", "..%2fwidgets%2fdefault", 1), strings.Replace(widgets, "default", "..", 1) + "/a",
	} {
		a := e.do("GET", path, "")
		if items, _ := a.at("items").([]any); a.code == http.StatusOK && len(items) > 0 || a.at("spec") != nil {
			t.Errorf("%s is %d: %s", path, a.code, a.body)
		}
	}
	// A resource whose name begins like another's has its own objects.
	if items := e.do("GET", strings.TrimSuffix(widgets, "s"), "").is(http.StatusOK).at("items"); len(items.([]any)) != 0 {
		t.Errorf("%v", items)
	}
	e.do("GET", widgets+"?limit=1&continue=nonsense", "").is(http.StatusBadRequest)
}
