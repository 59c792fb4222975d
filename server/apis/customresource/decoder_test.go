package customresource

import (
	"context"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/util/jsonpath"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// put writes an object into etcd as it is.
func (e *env) put(key, value string) {
	e.TB.Helper()
	if _, err := e.etcd.Put(context.Background(), e.prefix+key, value); err != nil {
		e.TB.Fatal(err)
	}
}

// Objects that other servers have stored are normalized when they are read, and
// written only when a client changes them.
func TestStoredObjects(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}, d: {type: string, default: x}, n: {type: string}"))
	e.put("/example.com/boxes/old", `{"kind":"Box","spec":{"n":null,"gone":1,"a":"1"},"metadata":{"name":"old","uid":"u","labels":7,"bogus":1},"apiVersion":"example.com/v1"}`+"\n")
	got := e.Do("GET", boxes+"/old", "").Is(http.StatusOK).Has("spec", map[string]any{"a": "1", "d": "x"}).Has("metadata.generation", 1).
		Has("metadata.labels", nil).Has("metadata.bogus", nil)
	if stored := e.stored("/example.com/boxes/old"); !strings.Contains(stored, "gone") {
		t.Errorf("a read has written: %s", stored)
	}
	e.Do("GET", boxes+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.spec", map[string]any{"a": "1", "d": "x"})
	e.Do("PUT", boxes+"/old", strings.Replace(string(got.Body), `"a":"1"`, `"a":"2"`, 1)).Is(http.StatusOK).Has("metadata.generation", 2)
	if stored := e.stored("/example.com/boxes/old"); strings.Contains(stored, "gone") {
		t.Errorf("what was pruned is stored: %s", stored)
	}
	e.put("/example.com/boxes/broken", "no JSON")
	e.Do("GET", boxes+"/broken", "").Is(http.StatusInternalServerError)
}

// An object whose version was removed from the CRD cannot be read: no schema describes
// it.
func TestVersionThatIsGone(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	e.put("/example.com/boxes/old", `{"apiVersion":"example.com/v0","kind":"Box","metadata":{"name":"old","uid":"u"},"spec":{"a":"1","secret":1}}`+"\n")
	for _, request := range []string{"GET", "DELETE"} {
		answer := e.Do(request, boxes+"/old", "").Is(http.StatusInternalServerError)
		if !strings.Contains(string(answer.Body), "request to convert CR from an invalid group/version: example.com/v0") {
			t.Errorf("%s: %s", request, answer.Body)
		}
	}
}

// What rules that came later have against a stored CRD does not keep it
// from being served.
func TestRulesThatCameLater(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: foo}, set: {type: array, x-kubernetes-list-type: set, items: {type: object, properties: {b: {type: string}}}}," +
		" map: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [k], items: {type: object, nullable: true, properties: {k: {type: string, nullable: true}}}}"))
	e.Do("POST", boxes, box("one", `"a":1`)).Is(http.StatusUnprocessableEntity).
		Says(`Box.example.com "one" is invalid: spec.a: Invalid value: "integer": spec.a in body must be of type foo: "integer"`)
	e.Do("POST", boxes, box("two", `"set":[{"b":"x"}],"map":[{"k":"x"}]`)).Is(http.StatusCreated)
}

// CRDs with preserveUnknownFields keep all fields.
func TestPreserveUnknownFields(t *testing.T) {
	e := start(t)
	preserve := func(d map[string]any) { d["spec"].(map[string]any)["preserveUnknownFields"] = true }
	e.define(strings.Replace(boxesWith("a: {type: string}"), "type: object\n", "", 1), preserve) // not structural
	e.Do("POST", boxes, box("one", `"a":"1","b":null`)).Is(http.StatusCreated).Has("spec", map[string]any{"a": "1", "b": nil}).Warns()
	e.Do("POST", boxes, box("two", `"a":1`)).Is(http.StatusUnprocessableEntity)
	e.Patch("apply", boxes+"/one?fieldManager=m", box("one", `"c":1`)).Is(http.StatusOK).Has("spec.c", 1)

	e.define(strings.ReplaceAll(boxesYAML[:strings.Index(boxesYAML, "    schema")], "example.com", "bare.com"), preserve)
	bare := strings.Replace(boxes, "example.com", "bare.com", 1)
	e.Do("POST", bare, strings.Replace(box("one", `"a":1`), "example.com", "bare.com", 1)).Is(http.StatusCreated).Has("spec.a", 1)
}

// A schema that cannot be compiled is an error of the server for one resource,
// and no end of it.
func TestSchemaThatCannotBeCompiled(t *testing.T) {
	e := start(t)
	e.define(strings.Replace(boxesWith("a: {type: string}"), "type: object\n", "", 1))
	e.Do("GET", boxes, "").Is(http.StatusInternalServerError).Says("Internal error occurred: error resolving resource")
	e.define(boxesWith("a: {type: string}"))
	e.Do("GET", boxes, "").Is(http.StatusOK)
}

// Requests and watches go on while the CRD changes all the time.
func TestChangesUnderLoad(t *testing.T) {
	e := start(t)
	schema := boxesWith("a: {type: string}, b: {type: string}")
	e.define(schema)
	e.Do("POST", boxes, box("one", `"a":"1"`)).Is(http.StatusCreated)
	stop := make(chan struct{})
	var running sync.WaitGroup
	for i := range 4 {
		running.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				name := fmt.Sprintf("box-%d-%d", i, n)
				for _, send := range []func() apitest.Answer{
					func() apitest.Answer { return e.Do("POST", boxes, box(name, `"a":"1","b":"2"`)) },
					func() apitest.Answer { return e.Do("GET", boxes+"/"+name, "") },
					func() apitest.Answer { return e.Do("GET", boxes+"?resourceVersion=0&limit=3", "") },
					func() apitest.Answer { return e.Patch("merge", boxes+"/"+name, `{"spec":{"a":"3"}}`) },
					func() apitest.Answer {
						return e.Patch("apply", boxes+"/"+name+"?fieldManager=m&force=true", box(name, `"a":"4"`))
					},
				} {
					// A request that meets a replaced storage is told to retry. A write by a
					// replaced schema is told that nothing was written.
					a := send()
					for a.Code == http.StatusTooManyRequests || a.Code == http.StatusServiceUnavailable && strings.Contains(string(a.Body), string(store.CauseNothingWritten)) {
						a = send()
					}
					if a.Code >= 400 {
						t.Errorf("%d %s", a.Code, a.Body)
						return
					}
				}
			}
		})
	}
	running.Go(func() {
		for {
			w, code := e.TryWatch(boxes + "?watch=1&resourceVersion=0")
			if w == nil && code != http.StatusTooManyRequests {
				t.Errorf("watch: %d", code)
				return
			}
			for open := w != nil; open; {
				select {
				case _, open = <-w.Lines:
				case <-stop:
					return
				}
			}
		}
	})
	for i := range 20 {
		text := schema
		if i%2 == 0 {
			text = boxesWith("a: {type: string}, c: {type: string, default: new}")
		}
		e.define(text, func(d map[string]any) {
			version := d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
			if i%5 == 0 {
				version["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.a"}}
			}
			if i%3 == 0 {
				version["additionalPrinterColumns"] = []any{map[string]any{"name": "A", "type": "string", "jsonPath": ".spec.a"}}
			}
		})
		time.Sleep(20 * time.Millisecond)
	}
	close(stop)
	running.Wait()
}

func TestPathsOfTables(t *testing.T) {
	for text, simple := range map[string]bool{
		".a": true, ".spec.a-b.c_d": true, ".spec.a[0]": false, `.metadata.labels.a\.b`: false, ".spec['a']": false,
		`.status.conditions[?(@.type=="Ready")].status`: false, "..name": false,
	} {
		p, err := parsePath(text)
		if err != nil || (p.names != nil) != simple {
			t.Errorf("%s: names %v, %v", text, p.names, err)
		}
	}
	if _, err := parsePath(".a["); err == nil {
		t.Error(".a[ is accepted")
	}
	for _, text := range []string{".....", "..a..b"} {
		if p, err := parsePath(text); err == nil && !p.costly {
			t.Errorf("%s is followed", text)
		}
	}
}

// FuzzPath has the short way to a value lead where the library goes.
func FuzzPath(f *testing.F) {
	for _, path := range []string{".spec.a", ".metadata.name", ".spec", ".a.b.c", ".spec.a.b", ".spec.list.x"} {
		f.Add(`{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"spec":{"a":"1","list":[1],"n":null}}`, path)
	}
	f.Fuzz(func(t *testing.T, content, text string) {
		var o object.Object
		if o.UnmarshalJSON([]byte(content)) != nil || len(text) > 100 {
			return
		}
		p, err := parsePath(text)
		if err != nil || p.names == nil {
			return
		}
		value, found, err := p.find(&subject{object: &o})
		if err != nil {
			t.Fatal(err)
		}
		j := jsonpath.New("").AllowMissingKeys(true)
		if j.Parse("{"+text+"}") != nil {
			t.Fatalf("the library does not accept %q", text)
		}
		s := subject{object: &o}
		decoded, err := s.decoded()
		if err != nil {
			return
		}
		results, err := j.FindResults(decoded)
		if err != nil {
			t.Fatal(err)
		}
		wanted := len(results) > 0 && len(results[0]) > 0
		if found != wanted || found && !reflect.DeepEqual(value, results[0][0].Interface()) {
			t.Errorf("%s in %s is %v (%v), the library says %v", text, content, value, found, results)
		}
	})
}
