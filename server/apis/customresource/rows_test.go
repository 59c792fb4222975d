package customresource

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints"
)

// Lists and single objects become rows with the columns of the CRD.
func TestRows(t *testing.T) {
	f, _ := decoderOf(schemaOf(t, `{"a":{"type":"string","default":"x"}}`))
	table, err := newTable(f, []crd.Column{{Name: "A", Type: "string", JSONPath: ".spec.a"}, {Name: "B", Type: "integer", JSONPath: ".spec.b"}})
	if err != nil {
		t.Fatal(err)
	}
	one, two := objectOf(t, box("one", "")), objectOf(t, box("two", `"a":"y"`))
	list := &object.List{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "next", SelfLink: "x"}, Items: []object.Object{*one, *two}}
	got, err := table.ConvertToTable(t.Context(), list, nil)
	if err != nil || len(got.Rows) != 2 || len(got.ColumnDefinitions) != 3 || got.ResourceVersion != "7" || got.Continue != "next" || got.SelfLink != "" {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{"[one x <nil>]", "[two y <nil>]"} {
		if cells := fmt.Sprint(got.Rows[i].Cells); cells != want || got.Rows[i].Object.Object.(*object.Object).GetName() != got.Rows[i].Cells[0] {
			t.Errorf("%s, want %s", cells, want)
		}
	}
	two.SetResourceVersion("9")
	got, err = table.ConvertToTable(t.Context(), two, &metav1.TableOptions{NoHeaders: true})
	if err != nil || len(got.Rows) != 1 || got.ColumnDefinitions != nil || got.ResourceVersion != "9" || fmt.Sprint(got.Rows[0].Cells) != "[two y <nil>]" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err = table.ConvertToTable(t.Context(), two, &metav1.TableOptions{}); err != nil || len(got.ColumnDefinitions) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := table.ConvertToTable(t.Context(), &metav1.ListOptions{}, nil); err == nil {
		t.Error("options are a row")
	}
}

// A cell has a value that its column's type shows, or nothing.
func TestCells(t *testing.T) {
	for _, c := range []struct {
		kind  string
		value any
		want  any
	}{
		{"string", "x", "x"}, {"string", int64(7), "7"}, {"string", true, "true"},
		{"integer", int64(7), int64(7)}, {"integer", 7.9, int64(7)}, {"integer", "7", nil},
		{"number", int64(7), 7.0}, {"number", 7.5, 7.5}, {"number", "7", nil},
		{"boolean", true, true}, {"boolean", false, false}, {"boolean", "true", nil},
		{"date", "yesterday", "<invalid>"}, {"date", int64(7), nil}, {"date", time.Now().Add(-2*time.Hour - time.Minute).UTC().Format(time.RFC3339), "121m"},
		{"object", "x", nil},
	} {
		if got := cell(c.kind, c.value); got != c.want {
			t.Errorf("%s of %v: %v, want %v", c.kind, c.value, got, c.want)
		}
	}
}

// The columns before one that cannot be read are shown, and a costly one is named.
func TestColumns(t *testing.T) {
	table, err := newTable(nil, []crd.Column{{Name: "A", JSONPath: ".a", Description: "d"}, {Name: "B", JSONPath: "..a..b"}, {Name: "C", JSONPath: ".c["}, {Name: "D", JSONPath: ".d"}})
	if err == nil || err.Error() != `unrecognized column definition ".c["` || len(table.headers) != 3 || len(table.columns) != 2 {
		t.Fatalf("%+v, %v", table, err)
	}
	if a, b := table.headers[1].Description, table.headers[2].Description; a != "d" || b != "Custom resource definition column (in JSONPath format): ..a..b (It is always empty: paths with more than one .. are not followed.)" {
		t.Errorf("%q, %q", a, b)
	}
	for path, costly := range map[string]bool{".a": false, "..a": false, "..a..b": true} {
		if p, err := parsePath(path); err != nil || p.costly != costly {
			t.Errorf("%s: %v, %v", path, p.costly, err)
		}
	}
}

// What a path leads to may be a number that Go has no type for: that is an error, not nothing.
func TestSelectedFields(t *testing.T) {
	s := newSelection(&versionDetails{selectable: []crd.SelectableField{{JSONPath: ".spec.a"}}}, true)
	for spec, want := range map[string]string{`"a":"x"`: "x", `"a":7`: "7", `"a":null`: "", `"b":1`: ""} {
		_, set, err := s.attributes(objectOf(t, box("one", spec)))
		if err != nil || set["spec.a"] != want || set["metadata.name"] != "one" || len(set) != 3 {
			t.Errorf("%s: %v, %v", spec, set, err)
		}
	}
	if _, set, err := s.attributes(objectOf(t, box("one", `"a":1e999`))); err == nil || set != nil {
		t.Errorf("%v, %v", set, err)
	}
	if _, _, err := s.attributes(&metav1.Status{}); err == nil {
		t.Error("a Status has fields")
	}
	for label, want := range map[string]bool{"metadata.name": true, "metadata.namespace": true, "spec.a": true, "spec.b": false, ".spec.a": false} {
		if _, _, err := s.term(label, "x"); (err == nil) != want {
			t.Errorf("%s: %v", label, err)
		}
	}
	if _, _, err := (&selection{}).term("metadata.namespace", "x"); err == nil {
		t.Error("objects without a namespace are selected by it")
	}
	broken := newSelection(&versionDetails{selectable: []crd.SelectableField{{JSONPath: ".spec["}}}, false)
	if _, _, err := broken.attributes(objectOf(t, box("one", ""))); err == nil {
		t.Error("a path that cannot be read selects objects")
	}
}

// Options that are left out have defaults, others stay.
func TestOptionsOfTheServer(t *testing.T) {
	left := New(Options{Catalog: catalog.New(nil)}).options
	if left.RequestTimeout != defaultRequestTimeout || left.MinRequestTimeout != endpoints.DefaultMinRequestTimeout || left.MaxRequestBodyBytes != endpoints.DefaultMaxRequestBodyBytes ||
		left.Idle != DefaultIdle || left.MaxIdle != DefaultMaxIdle {
		t.Errorf("%+v", left)
	}
	set := New(Options{Catalog: catalog.New(nil), RequestTimeout: 1, MinRequestTimeout: 2, MaxRequestBodyBytes: 3, Idle: 4, MaxIdle: 5}).options
	if set.RequestTimeout != 1 || set.MinRequestTimeout != 2 || set.MaxRequestBodyBytes != 3 || set.Idle != 4 || set.MaxIdle != 5 {
		t.Errorf("%+v", set)
	}
}

// hijacked is a writer whose connection is given away, or not.
type hijacked struct {
	*httptest.ResponseRecorder
	conn net.Conn
	err  error
}

func (h hijacked) Hijack() (net.Conn, *bufio.ReadWriter, error) { return h.conn, nil, h.err }

// The connection of a websocket is closed at the end of its watch, unless the handler has returned.
func TestHijackedWatches(t *testing.T) {
	for name, over := range map[string]bool{"the end": false, "after the handler": true} {
		conn, client := net.Pipe()
		w := &watching{ResponseWriter: hijacked{httptest.NewRecorder(), conn, nil}, left: make(chan struct{})}
		if got, _, err := w.Hijack(); got != conn || err != nil || !w.direct {
			t.Fatalf("%v, %v", got, err)
		}
		w.unsent.Store(newVersionSchema(schemaKey{}, nil, "v1"))
		if w.encoded(); w.unsent.Load() != nil {
			t.Errorf("%s: what is written counts as unsent", name)
		}
		if over {
			w.leave()
		}
		w.abort()
		_ = conn.SetDeadline(time.Now())
		_, err := conn.Write([]byte("x"))
		if closed := errors.Is(err, net.ErrClosed) || err.Error() == "io: read/write on closed pipe"; closed == over {
			t.Errorf("%s: %v", name, err)
		}
		_ = client.Close()
	}
	refused := errors.New("refused")
	w := &watching{ResponseWriter: hijacked{httptest.NewRecorder(), nil, refused}}
	if _, _, err := w.Hijack(); !errors.Is(err, refused) || w.direct {
		t.Error(err)
	}
	if _, _, err := (&watching{ResponseWriter: httptest.NewRecorder()}).Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Error(err)
	}
}

// That a resource does not exist counts only if etcd says so.
func TestFindWithoutAnAnswer(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	info := func(resource string) *apirequest.RequestInfo {
		return &apirequest.RequestInfo{IsResourceRequest: true, Verb: "list", APIGroup: "example.com", APIVersion: "v1", Namespace: "", Resource: resource}
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := e.server.find(stopped, info("crates")); got != nil || err == nil {
		t.Errorf("without an answer: %v, %v", got, err)
	}
	if got, err := e.server.find(t.Context(), info("crates")); got != nil || err != nil {
		t.Errorf("a resource that does not exist: %v, %v", got, err)
	}
	if got, err := e.server.find(stopped, info("boxes")); got == nil || err != nil {
		t.Errorf("a resource that is known: %v, %v", got, err)
	}
	if got, err := e.server.find(stopped, &apirequest.RequestInfo{}); got != nil || err != nil {
		t.Errorf("no resource: %v, %v", got, err)
	}
}

// A schema that cannot be compiled fails what needs it.
func TestBrokenSchemas(t *testing.T) {
	failure := errors.New("broken")
	s := newVersionSchema(schemaKey{}, nil, "v1")
	s.once.Do(func() { s.err = failure })
	f, _ := decoderOf(s)
	body := []byte(box("one", ""))
	if o, err := f.FromStorage(body); o != nil || !errors.Is(err, failure) {
		t.Errorf("FromStorage: %v, %v", o, err)
	}
	if o, gvk, _, err := f.FromRequest(body, nil, false); o != nil || !errors.Is(err, failure) || gvk != f.Kind() {
		t.Errorf("FromRequest: %v, %v", o, err)
	}
	if o, ok := f.FromWritten(body, nil); o != nil || ok {
		t.Errorf("FromWritten: %v", o)
	}
	o := objectOf(t, string(body))
	if got := f.Renormalize(o); got != o {
		t.Errorf("Renormalize: %v", got)
	}
	g := &gate{strategy: &strategy{decoder: f}}
	if err := g.refuse(o, nil); err == nil {
		t.Error("an object is accepted that cannot be validated")
	}
}

// What was written by the current schema is read without it; all else is not.
func TestFromWritten(t *testing.T) {
	s := schemaOf(t, `{"a":{"type":"string"}}`)
	f, _ := decoderOf(s)
	const written = `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"generation":1,"name":"one"},"spec":{"b":1}}`
	if o, ok := f.FromWritten([]byte(written), s.Normalize); !ok || string(o.Lookup("spec")) != `{"b":1}` || o.Stamp() != any(s) {
		t.Errorf("%v, %v", o, ok)
	}
	for name, c := range map[string]struct {
		data string
		by   any
	}{
		"another schema":  {written, schemaOf(t, `{}`).Normalize},
		"no generation":   {box("one", ""), s.Normalize},
		"another version": {`{"apiVersion":"example.com/v2","kind":"Box","metadata":{"generation":1}}`, s.Normalize},
		"no object":       {`{"apiVersion":"example.com/v1","kind":`, s.Normalize},
	} {
		if o, ok := f.FromWritten([]byte(c.data), c.by); ok || o != nil {
			t.Errorf("%s: %v", name, o)
		}
	}
	if (&Decoder{kind: schema.GroupVersionKind{Group: "other.com"}, schemas: f.schemas}).storedSchema([]byte(written)) != nil {
		t.Error("an object of another group has a schema")
	}
}

// The decoder's answer about an object goes with it to admission; one that has nothing to report has only its schema.
func TestStampsOfRequests(t *testing.T) {
	s := schemaOf(t, `{"a":{"type":"string"},"c":{"type":"string","default":"x"}}`)
	f, _ := decoderOf(s)
	for spec, want := range map[string]string{
		`"a":"1","c":"2"`: "schema", `"a":"1"`: "schema", `"a":"1","a":"2"`: "schema", `"a":1`: "mismatched []", `"b":1`: "pruned [spec.b]", `"a":1,"b":1`: "mismatched [spec.b]",
	} {
		o, _, strict, err := f.FromRequest([]byte(box("one", spec)), nil, false)
		if err != nil || strict != nil {
			t.Fatalf("%s: %v, %v", spec, strict, err)
		}
		got := fmt.Sprintf("%T", o.Stamp())
		switch stamp := o.Stamp().(type) {
		case *versionSchema:
			if got = "schema"; stamp != s {
				got = "another schema"
			}
		case *decodeResult:
			got = "pruned"
			if stamp.mismatched {
				got = "mismatched"
			}
			got += fmt.Sprint(" ", stamp.pruned)
		}
		if got != want || schemaMarkerOf(o) != s {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	if _, _, strict, err := f.FromRequest([]byte(box("one", `"b":1,"a":"1","a":"2"`)), nil, true); err != nil || len(strict) != 2 {
		t.Errorf("%v, %v", strict, err)
	}
}
