package customresource

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// The number of idle resources is bounded; the most recently used ones stay.
func TestIdleResourcesAreBounded(t *testing.T) {
	e := start(t, func(o *Options) { o.MaxIdle = 2 })
	path := func(i int) string { return fmt.Sprintf("/apis/g%d.example.com/v1/boxes", i) }
	served := func(i int) bool {
		_, ok := e.server.servedResources.Load(e.catalog.Get(fmt.Sprintf("boxes.g%d.example.com", i)).UID)
		return ok
	}
	for i := range 5 {
		e.define(strings.Replace(boxesWith("a: {type: string}"), "example.com", fmt.Sprintf("g%d.example.com", i), 1))
	}
	w := e.Watch(path(0) + "?watch=1")
	for _, i := range []int{1, 2, 1, 3} {
		e.Do("GET", path(i), "").Is(http.StatusOK)
	}
	// An answer is there before its request has been left.
	apitest.Eventually(t, func() bool { return served(0) && served(1) && !served(2) && served(3) && e.server.Len() == 3 })
	e.Do("POST", path(0), strings.Replace(box("b", ""), "example.com", "g0.example.com", 1)).Is(http.StatusCreated)
	if event, ok := w.Next(); !ok || event.At("object.metadata.name") != "b" {
		t.Errorf("the watch saw %s", event.Body)
	}
	e.Do("GET", path(2), "").Is(http.StatusOK)
	apitest.Eventually(t, func() bool { return !served(1) && served(2) && e.server.Len() == 3 })

	w.Close()
	e.Do("GET", path(4), "").Is(http.StatusOK)
	apitest.Eventually(t, func() bool { return e.server.Len() == 2 })
}

// Without watch caches everything is served from etcd.
func TestUncached(t *testing.T) {
	e := start(t, func(o *Options) { o.Uncached = true })
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"color":"red"`)).Is(http.StatusCreated)
	w := e.Watch(widgets + "?watch=1&resourceVersion=0&fieldSelector=spec.color%3Dblue")
	e.Do("POST", widgets, widget("b", `"color":"blue"`)).Is(http.StatusCreated)
	if event, ok := w.Next(); !ok || event.At("object.metadata.name") != "b" {
		t.Errorf("the watch saw %s", event.Body)
	}
	e.Patch("merge", widgets+"/a", `{"spec":{"color":"blue"}}`).Is(http.StatusOK)
	if event, ok := w.Next(); !ok || event.At("type") != "ADDED" || event.At("object.metadata.name") != "a" {
		t.Errorf("the watch saw %s", event.Body)
	}
	for range 3 {
		e.Do("GET", widgets+"?resourceVersion=0&fieldSelector=spec.color%3Dblue", "").Is(http.StatusOK).Has("items.1.metadata.name", "b")
	}
}

// A null that is applied where the schema allows none is refused. Other ways to
// write drop it.
func TestAppliedNull(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: object, properties: {b: {type: string}}}, c: {type: string, default: x}, d: {type: object, nullable: true}, l: {type: array, items: {type: object, properties: {m: {type: string}}}}"))
	apply := func(spec string) apitest.Answer {
		return e.Patch("apply", boxes+"/one?fieldManager=m&force=true", box("one", spec))
	}
	apply(`"a":{"b":"1"}`).Is(http.StatusCreated).Has("spec", map[string]any{"a": map[string]any{"b": "1"}, "c": "x"})
	apply(`"a":null`).Is(http.StatusUnprocessableEntity).
		Says(`Box.example.com "one" is invalid: spec.a: Invalid value: "null": spec.a in body must be of type object: "null"`)
	apply(`"l":[{"m":null}]`).Is(http.StatusUnprocessableEntity).
		Says(`Box.example.com "one" is invalid: spec.l[0].m: Invalid value: "null": spec.l[0].m in body must be of type string: "null"`)
	apply(`"l":[{"m":null},{"m":"x"}]`).Is(http.StatusUnprocessableEntity).
		Says(`Box.example.com "one" is invalid: spec.l[0].m: Invalid value: "null": spec.l[0].m in body must be of type string: "null"`)
	apply(`"c":null,"d":null`).Is(http.StatusOK).Has("spec", map[string]any{"c": "x", "d": nil})
	e.Do("POST", boxes, box("two", `"a":null`)).Is(http.StatusCreated).Has("spec", map[string]any{"c": "x"})
}
