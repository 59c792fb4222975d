package customresource

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/apiserver/pkg/admission"

	"github.com/espalier-dev/espalier/internal/object"
)

const boxes = "/apis/example.com/v1/boxes"

// boxesYAML is a resource whose storage survives changes of its schema: it has
// one version and nothing to select by. PROPERTIES stands for those of spec.
const boxesYAML = `
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {PROPERTIES}}}
`

func boxesWith(properties string) string {
	return strings.Replace(boxesYAML, "PROPERTIES", properties, 1)
}

func box(name, spec string) string {
	return `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"` + name + `"},"spec":{` + spec + `}}`
}

// A change of the schema alone leaves watches open, and everything that is read
// afterwards, from the watch cache too, is in the new form.
func TestSchemaChangeUnderAWatch(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}, b: {type: string}"))
	e.Do("POST", boxes, box("one", `"a":"1","b":"2"`)).Is(http.StatusCreated)
	w := e.Watch(boxes + "?watch=1&resourceVersion=0")
	first, _ := w.Next()
	first.Has("type", "ADDED").Has("object.spec", map[string]any{"a": "1", "b": "2"})

	narrow := boxesWith(`a: {type: string}, c: {type: string, default: new}`)
	e.define(narrow)
	pruned := map[string]any{"a": "1", "c": "new"}
	e.Do("GET", boxes+"/one", "").Is(http.StatusOK).Has("spec", pruned)
	e.Do("GET", boxes+"/one?resourceVersion=0", "").Is(http.StatusOK).Has("spec", pruned).Has("metadata.resourceVersion", first.At("object.metadata.resourceVersion"))
	e.Do("GET", boxes+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.spec", pruned)
	e.Do("POST", boxes, box("two", `"a":"1","b":"2"`)).Is(http.StatusCreated).Has("spec", pruned).Warns(`unknown field "spec.b"`)
	event, ok := w.Next()
	if !ok {
		t.Fatal("the watch was closed")
	}
	event.Has("type", "ADDED").Has("object.metadata.name", "two").Has("object.spec", pruned)

	// Fields that were pruned in responses are still stored, and are shown again.
	e.define(boxesWith("a: {type: string}, b: {type: string}"))
	e.Do("GET", boxes+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.spec", map[string]any{"a": "1", "b": "2"})
	e.Do("GET", boxes+"/one", "").Is(http.StatusOK).Has("spec", map[string]any{"a": "1", "b": "2"})

	// An update works on what the new schema shows.
	e.define(narrow)
	e.Patch("merge", boxes+"/one", `{"metadata":{"labels":{"x":"y"}}}`).Is(http.StatusOK).Has("spec", pruned).Has("metadata.generation", 1)
	event, ok = w.Next()
	if !ok {
		t.Fatal("the watch was closed")
	}
	event.Has("type", "MODIFIED").Has("object.spec", pruned)
}

// Changes that make the watch cache wrong end watches. Clients open new ones.
func TestStorageChangeEndsWatches(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	e.Do("POST", boxes, box("one", `"a":"1"`)).Is(http.StatusCreated)
	w := e.Watch(boxes + "?watch=1&resourceVersion=0")
	w.Next()
	e.define(boxesWith("a: {type: string}"), func(d map[string]any) {
		version := d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		version["selectableFields"] = []any{map[string]any{"jsonPath": ".spec.a"}}
	})
	if event, ok := w.Next(); ok {
		t.Fatalf("the watch goes on: %s", event.Body)
	}
	a := e.Do("GET", boxes+"?fieldSelector=spec.a%3D1", "").Is(http.StatusOK)
	if len(a.At("items").([]any)) != 1 {
		t.Errorf("not selected: %s", a.Body)
	}
}

// Subresources come and go without the storage noticing.
func TestStatusIsTurnedOn(t *testing.T) {
	e := start(t)
	text := strings.Replace(boxesWith("a: {type: string}"), "properties: {spec:", "properties: {status: {type: object, properties: {p: {type: string}}}, spec:", 1)
	e.define(text)
	body := strings.Replace(box("one", `"a":"1"`), `"spec"`, `"status":{"p":"x"},"spec"`, 1)
	e.Do("POST", boxes, body).Is(http.StatusCreated).Has("status.p", "x")
	e.Do("GET", boxes+"/one/status", "").Is(http.StatusNotFound)
	w := e.Watch(boxes + "?watch=1&resourceVersion=0")
	w.Next()
	e.define(text, func(d map[string]any) {
		version := d["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
		version["subresources"] = map[string]any{"status": map[string]any{}}
	})
	e.Do("GET", boxes+"/one/status", "").Is(http.StatusOK)
	e.Patch("merge", boxes+"/one", `{"status":{"p":"y"}}`).Is(http.StatusOK).Has("status.p", "x")
	e.Patch("merge", boxes+"/one/status", `{"status":{"p":"y"}}`).Is(http.StatusOK).Has("status.p", "y").Has("metadata.generation", 1)
	if event, ok := w.Next(); !ok {
		t.Error("the watch was closed")
	} else {
		event.Has("object.status.p", "y")
	}
}

// Versions without conversion are the same objects, each in its own schema.
func TestVersions(t *testing.T) {
	e := start(t)
	e.define(`
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, kind: Box}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}, b: {type: string, default: fromv1}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}, c: {type: string, default: fromv2}}}}}
`)
	v2 := strings.Replace(boxes, "v1", "v2", 1)
	e.Do("POST", v2, `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"one"},"a":"1"}`).Is(http.StatusCreated).
		Has("apiVersion", "example.com/v2").Has("a", "1")
	if stored := e.stored("/example.com/boxes/one"); !strings.HasPrefix(stored, `{"a":"1","apiVersion":"example.com/v1"`) {
		t.Errorf("stored is %s", stored)
	}
	e.Do("GET", boxes+"/one", "").Is(http.StatusOK).Has("apiVersion", "example.com/v1").Has("b", "fromv1").Has("c", nil)
	e.Do("GET", v2+"/one", "").Is(http.StatusOK).Has("apiVersion", "example.com/v2").Has("b", nil)
	w := e.Watch(v2 + "?watch=1&resourceVersion=0")
	event, _ := w.Next()
	event.Has("object.apiVersion", "example.com/v2")
	e.Patch("merge", boxes+"/one", `{"a":"2"}`).Is(http.StatusOK)
	event, _ = w.Next()
	event.Has("object.apiVersion", "example.com/v2").Has("object.a", "2")

	// Managed fields of one version are known in the other.
	e.Patch("apply", v2+"/one?fieldManager=m", `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"one"},"a":"3"}`).
		Is(http.StatusConflict)
	e.Patch("apply", v2+"/one?fieldManager=m&force=true", `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"one"},"a":"3"}`).
		Is(http.StatusOK).Has("a", "3")
}

// recorder is an admission plugin that counts, and may change objects.
type recorder struct {
	admitted atomic.Int64
	change   func(*object.Object)
}

func (*recorder) Handles(admission.Operation) bool { return true }
func (*recorder) Idle() bool                       { return false }

func (r *recorder) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	r.admitted.Add(1)
	if o, ok := a.GetObject().(*object.Object); ok && r.change != nil {
		r.change(o)
	}
	return nil
}

// What plugins add is pruned and defaulted like what clients send.
func TestPruningAfterAdmission(t *testing.T) {
	plugin := &recorder{change: func(o *object.Object) { o.SetMember("spec", []byte(`{"bogus":1,"size":"xl"}`)) }}
	e := start(t, func(o *Options) { o.Admission = plugin })
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", "")).Is(http.StatusCreated).Has("spec", map[string]any{"color": "red", "size": "xl"}).
		Warns(`unknown field "spec.bogus"`)
}

func TestFieldValidation(t *testing.T) {
	e := start(t)
	e.define(widgetsYAML)
	body := `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","foo":1},"zzz":1,"spec":{"b":1,"size":"s","size":"m"}}`
	const strict = `strict decoding error: duplicate field "spec.size", unknown field "metadata.foo", unknown field "spec.b", unknown field "zzz"`
	e.Do("POST", widgets+"?fieldValidation=Strict", body).Is(http.StatusBadRequest).
		Says(`Widget in version "v1" cannot be handled as a Widget: ` + strict)
	e.Do("POST", widgets+"?dryRun=All", body).Is(http.StatusCreated).Has("spec.size", "m").
		Warns(`duplicate field "spec.size"`, `unknown field "metadata.foo"`, `unknown field "spec.b"`, `unknown field "zzz"`)
	// Even clients that do not want to know are in the audit log.
	for len(e.audited) > 0 {
		<-e.audited
	}
	e.Do("POST", widgets+"?fieldValidation=Ignore", body).Is(http.StatusCreated).Warns()
	if got := (<-e.audited)[prunedAnnotation]; got != "metadata.foo,spec.b,zzz" {
		t.Errorf("audited is %q", got)
	}
	e.Patch("merge", widgets+"/a?fieldValidation=Strict", `{"spec":{"b":1}}`).Is(http.StatusUnprocessableEntity)
	e.Patch("merge", widgets+"/a", `{"spec":{"b":1}}`).Is(http.StatusOK).Warns(`unknown field "spec.b"`)

	// The CRD sets the default of fieldValidation.
	annotate := func(value string) func(map[string]any) {
		return func(d map[string]any) {
			d["metadata"].(map[string]any)["annotations"] = map[string]any{fieldValidationAnnotation: value}
		}
	}
	e.define(widgetsYAML, annotate("strict"))
	e.Do("POST", widgets, body).Is(http.StatusBadRequest)
	e.Do("POST", widgets+"?dryRun=All&fieldValidation=Warn", strings.Replace(body, `"a"`, `"c"`, 1)).Is(http.StatusCreated)
	e.define(widgetsYAML, annotate("ignore"))
	e.Do("POST", widgets+"?dryRun=All", strings.Replace(body, `"a"`, `"c"`, 1)).Is(http.StatusCreated).Warns()
}

func TestFieldValidationOfTheServer(t *testing.T) {
	e := start(t, func(o *Options) { o.FieldValidation = "Strict" })
	e.define(widgetsYAML)
	e.Do("POST", widgets, widget("a", `"b":1`)).Is(http.StatusBadRequest)
	e.Do("POST", widgets+"?fieldValidation=Warn", widget("a", `"b":1`)).Is(http.StatusCreated)
}

// A webhook converts what is stored in another version, and its answer is
// pruned with the schema of the version asked for.
func TestWebhookConversion(t *testing.T) {
	var calls atomic.Int64
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		var review struct {
			Request struct {
				UID               string           `json:"uid"`
				DesiredAPIVersion string           `json:"desiredAPIVersion"`
				Objects           []map[string]any `json:"objects"`
			} `json:"request"`
		}
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, o := range review.Request.Objects {
			from, to := "a", "c"
			if review.Request.DesiredAPIVersion == "example.com/v1" {
				from, to = to, from
			}
			o["apiVersion"] = review.Request.DesiredAPIVersion
			o[to], o["bogus"] = o[from], true
			delete(o, from)
		}
		_ = json.NewEncoder(w).Encode(map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
			"response": map[string]any{"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"}},
		})
	}))
	defer hook.Close()
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})

	e := start(t)
	e.define(`
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, kind: Box}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {c: {type: string}}}}}
`, func(d map[string]any) {
		d["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"url": hook.URL, "caBundle": bundle},
		}}
	})
	v2 := strings.Replace(boxes, "v1", "v2", 1)
	e.Do("POST", boxes, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"},"a":"1"}`).Is(http.StatusCreated)
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls for what is in the stored version", n)
	}
	e.Do("GET", v2+"/one", "").Is(http.StatusOK).Has("c", "1").Has("a", nil).Has("bogus", nil)
	e.Do("POST", v2, `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"two"},"c":"2"}`).Is(http.StatusCreated).Has("c", "2")
	e.Do("GET", boxes+"/two", "").Is(http.StatusOK).Has("a", "2").Has("c", nil).Has("bogus", nil)
	e.Patch("apply", v2+"/one?fieldManager=m&force=true", `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"one"},"c":"3"}`).
		Is(http.StatusOK).Has("c", "3")
	e.Do("GET", v2+"?resourceVersion=0", "").Is(http.StatusOK).Has("items.0.c", "3").Has("items.1.c", "2")
}
