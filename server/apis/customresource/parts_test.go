package customresource

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	autoscaling "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
)

// Tests of single parts, most of them without a server.

// schemaOf returns a compiled schema whose spec has the properties.
func schemaOf(t *testing.T, properties string) *versionSchema {
	t.Helper()
	s := newVersionSchema(schemaKey{}, nil, "v1")
	s.once.Do(func() {
		s.Schema, s.err = request.Compile(&crd.Version{Name: "v1", Schema: []byte(
			`{"type":"object","properties":{"spec":{"type":"object","properties":` + properties + `}}}`)}, false)
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s
}

// decoderOf returns a decoder of boxes in version v1, and a function that changes its
// schema.
func decoderOf(s *versionSchema) (f *Decoder, change func(*versionSchema)) {
	f = &Decoder{kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"}, schemas: &atomic.Pointer[schemaSet]{}}
	change = func(s *versionSchema) { f.schemas.Store(&schemaSet{"v1": s}) }
	change(s)
	return f, change
}

func objectOf(t *testing.T, text string) *object.Object {
	t.Helper()
	o, err := object.FromJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestNamesThatAreAccepted(t *testing.T) {
	all := catalog.Names{Plural: "boxes", Singular: "box", Kind: "Box", ListKind: "BoxList"}
	for wanted, without := range map[string]func(*catalog.Names){
		"": func(*catalog.Names) {},
		"the server could not properly serve the resource":  func(n *catalog.Names) { n.Plural = "" },
		"the server could not properly serve the resource ": func(n *catalog.Names) { n.Singular = "" },
		"the server could not properly serve the kind":      func(n *catalog.Names) { n.Kind = "" },
		"the server could not properly serve the list kind": func(n *catalog.Names) { n.ListKind = "" },
	} {
		e := &catalog.Entry{Accepted: all}
		without(&e.Accepted)
		got := ""
		if err := checkNames(e); err != nil {
			got = err.Error()
		}
		if got != strings.TrimSpace(wanted) {
			t.Errorf("%+v: %q, not %q", e.Accepted, got, wanted)
		}
	}
}

// Only a change that objects do not depend on lets a request go on that began before it.
func TestInterchangeableRevisions(t *testing.T) {
	for name, change := range map[string]func(*catalog.Entry){
		"UID":             func(e *catalog.Entry) { e.UID = "other" },
		"generation":      func(e *catalog.Entry) { e.Generation++ },
		"spec":            func(e *catalog.Entry) { e.SpecHash[0]++ },
		"storage version": func(e *catalog.Entry) { e.StorageVersion = "v2" },
		"deleting":        func(e *catalog.Entry) { e.Deleting = true },
		"terminating":     func(e *catalog.Entry) { e.Terminating = true },
		"accepted names":  func(e *catalog.Entry) { e.Accepted.Kind = "Crate" },
	} {
		a := &catalog.Entry{UID: "u", Generation: 1, StorageVersion: "v1", Accepted: catalog.Names{Kind: "Box"}, Revision: 1}
		b := *a
		b.Revision, b.StoredVersions = 2, []string{"v1"}
		if !interchangeable(a, &b) {
			t.Fatal("a change of the status counts")
		}
		change(&b)
		if interchangeable(a, &b) {
			t.Errorf("a change of this does not count: %s", name)
		}
	}
}

func TestEquivalentResources(t *testing.T) {
	q := equivalents{&catalog.Entry{
		Group: "example.com", Accepted: catalog.Names{Plural: "boxes", Kind: "Box"},
		Versions: []catalog.Version{{Name: "v1", Status: true}, {Name: "v2", Scale: true}},
	}}
	for _, c := range []struct{ group, version, resource, subresource, kind, versions string }{
		{"example.com", "v1", "boxes", "", "example.com/v1, Kind=Box", "v1 v2"},
		{"example.com", "v2", "boxes", "", "example.com/v2, Kind=Box", "v1 v2"},
		{"example.com", "v1", "boxes", "status", "example.com/v1, Kind=Box", "v1"},
		{"example.com", "v2", "boxes", "scale", "autoscaling/v1, Kind=Scale", "v2"},
		{"example.com", "v1", "boxes", "scale", "/, Kind=", "v2"},
		{"example.com", "v1", "boxes", "log", "/, Kind=", ""},
		{"example.com", "v3", "boxes", "", "/, Kind=", "v1 v2"},
		{"example.com", "v1", "crates", "", "/, Kind=", ""},
		{"example.org", "v1", "boxes", "", "/, Kind=", ""},
	} {
		resource := schema.GroupVersionResource{Group: c.group, Version: c.version, Resource: c.resource}
		if kind := q.KindFor(resource, c.subresource).String(); kind != c.kind {
			t.Errorf("%s %s is of kind %s, not %s", resource, c.subresource, kind, c.kind)
		}
		var versions []string
		for _, r := range q.EquivalentResourcesFor(resource, c.subresource) {
			if r.Group != c.group || r.Resource != c.resource {
				t.Errorf("%s is the same as %s", resource, r)
			}
			versions = append(versions, r.Version)
		}
		if got := strings.Join(versions, " "); got != c.versions {
			t.Errorf("%s %s is the same in %q, not %q", resource, c.subresource, got, c.versions)
		}
	}
}

// Encoded events are shared under identifiers that differ by schema.
func TestIdentifiersOfEncodings(t *testing.T) {
	a, b := newVersionSchema(schemaKey{}, nil, "v1"), newVersionSchema(schemaKey{}, nil, "v1")
	f, change := decoderOf(a)
	before := f.Identifier()
	change(b)
	if after := f.Identifier(); before == "" || after == "" || before == after {
		t.Errorf("two schemas have the identifiers %q and %q", before, after)
	}
	if a.encodingID("json") == b.encodingID("json") || a.encodingID("json") == a.encodingID("yaml") {
		t.Error("two encodings have the same identifier")
	}
	for range 2 {
		for i := range 2 * maxEncodingIDs {
			of := runtime.Identifier(strconv.Itoa(i))
			if got, want := a.encodingID(of), of+" by schema "+runtime.Identifier(a.id); got != want {
				t.Errorf("%s, not %s", got, want)
			}
		}
	}
	if n := len(*a.ids.known.Load()); n != maxEncodingIDs {
		t.Errorf("%d identifiers are kept", n)
	}
	if n := testing.AllocsPerRun(10, func() { a.encodingID("json") }); n > 0 {
		t.Errorf("an identifier that is known takes %v allocations", n)
	}
}

func TestDecodeStoredObjects(t *testing.T) {
	f, _ := decoderOf(schemaOf(t, `{"a":{"type":"string"}}`))
	o, err := f.FromStorage([]byte(`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"},"spec":{"a":"1","b":1}}`))
	if err != nil || string(o.Lookup("spec")) != `{"a":"1"}` || schemaMarkerOf(o) != f.current("v1") {
		t.Errorf("%v, %v", o, err)
	}
	for _, bad := range []string{
		`{"apiVersion":"example.com/v1","kind":"Box","metadata":`,
		`{"apiVersion":"example.com/v2","kind":"Box","metadata":{}}`,
		`{"apiVersion":"v1","kind":"Box","metadata":{}}`,
	} {
		if o, err := f.FromStorage([]byte(bad)); err == nil || o != nil {
			t.Errorf("%s is decoded: %v, %v", bad, o, err)
		}
	}
}

// A path finds nothing in an object with a number that Go has no type for, and says so.
func TestPathInAnObjectThatCannotBeDecoded(t *testing.T) {
	p, err := parsePath(".spec.list[0]")
	if err != nil {
		t.Fatal(err)
	}
	good := objectOf(t, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{},"spec":{"list":[7]}}`)
	if value, found, err := p.find(&subject{object: good}); value != int64(7) || !found || err != nil {
		t.Errorf("%v, %v, %v", value, found, err)
	}
	bad := objectOf(t, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{},"spec":{"list":[1e999]}}`)
	if value, found, err := p.find(&subject{object: bad}); found || err == nil {
		t.Errorf("%v, %v, %v", value, found, err)
	}
}

// An event by a new schema is encoded only after those by the former one are sent.
func TestEventsOfTheFormerSchemaAreSentFirst(t *testing.T) {
	old, now := newVersionSchema(schemaKey{}, nil, "v1"), newVersionSchema(schemaKey{}, nil, "v1")
	f, change := decoderOf(old)
	sent := httptest.NewRecorder()
	w := &watching{ResponseWriter: sent, left: make(chan struct{})}
	for range 2 {
		if w.encode(f) != old || sent.Flushed {
			t.Fatal("events by the same schema do not wait for each other")
		}
	}
	change(now)
	if !w.behind(f) || w.encode(f) != now || !sent.Flushed || w.behind(f) {
		t.Error("an event by the former schema may be sent after the acknowledgement")
	}
	change(old)
	sent.Flushed, w.compressed = false, true
	if w.encode(f) != old || sent.Flushed || !w.behind(f) {
		t.Error("what is compressed counts as sent before its handler has flushed")
	}
	w.leave()
	if w.behind(f) {
		t.Error("a handler that has returned has events to send")
	}
}

// A replica that may be behind ends watches that have an event to write. Errors are
// written all the same.
func TestWritesOfAReplicaThatMayBeBehind(t *testing.T) {
	for _, c := range []struct {
		code          int
		current, ends bool
	}{
		{http.StatusOK, true, false}, {http.StatusOK, false, true}, {http.StatusGone, false, false},
	} {
		sent, ended := httptest.NewRecorder(), false
		w := &watching{ResponseWriter: sent, current: func() bool { return c.current }, cancel: func() { ended = true }}
		w.WriteHeader(c.code)
		if n, err := w.Write([]byte("data")); n != 4 || err != nil {
			t.Errorf("%+v: %d, %v", c, n, err)
		}
		if written := sent.Body.Len() > 0; ended != c.ends || written == c.ends {
			t.Errorf("%+v: ended %v, written %v", c, ended, written)
		}
	}
}

// partial is a plugin that handles one operation.
type partial struct {
	recorder
	only      admission.Operation
	validated int
}

func (p *partial) Handles(o admission.Operation) bool { return o == p.only }

func (p *partial) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	p.validated++
	return nil
}

// Plugins are asked about the operations that they handle.
func TestPluginsAreAskedWhatTheyHandle(t *testing.T) {
	p := &partial{only: admission.Delete}
	g := &gate{plugins: p}
	for _, operation := range []admission.Operation{admission.Connect, admission.Delete} {
		a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "", schema.GroupVersionResource{}, "", operation, nil, false, nil)
		if err := errors.Join(g.Admit(t.Context(), a, nil), g.Validate(t.Context(), a, nil)); err != nil {
			t.Error(err)
		}
		wanted := 0
		if operation == p.only {
			wanted = 1
		}
		if int(p.admitted.Load()) != wanted || p.validated != wanted {
			t.Errorf("%s: %d and %d calls", operation, p.admitted.Load(), p.validated)
		}
	}
	for operation, wanted := range map[admission.Operation]bool{admission.Create: true, admission.Update: true, admission.Delete: true, admission.Connect: false} {
		if g.Handles(operation) != wanted {
			t.Errorf("%s: %v", operation, !wanted)
		}
	}
	if (&gate{}).Handles(admission.Delete) {
		t.Error("a gate without plugins looks at deletions")
	}
}

// sharedEvent is an event as the watch cache has it.
type sharedEvent struct{ *object.Object }

func (s sharedEvent) GetObject() runtime.Object { return s.Object }

func (s sharedEvent) CacheEncode(id runtime.Identifier, _ func(runtime.Object, io.Writer) error, w io.Writer) error {
	_, err := io.WriteString(w, string(id))
	return err
}

func TestDeliveredObjects(t *testing.T) {
	o := objectOf(t, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"}}`)
	s := newVersionSchema(schemaKey{}, nil, "v1")
	f, _ := decoderOf(s)
	to := &delivery{decoder: f, to: &watching{ResponseWriter: httptest.NewRecorder(), left: make(chan struct{})}}
	encode := func(obj runtime.Object, w io.Writer) error {
		_, err := w.Write(obj.(*object.Object).JSON())
		return err
	}
	for _, c := range []struct {
		inner  runtime.Object
		shared bool
		wanted string
	}{
		{o, false, string(o.JSON())}, {sharedEvent{o}, true, "json by schema " + s.id},
	} {
		d := &delivered{c.inner, to}
		got := d.GetObject()
		if (got == runtime.Object(o)) != c.shared || got.(*object.Object).GetName() != "one" || d.GetObjectMeta().GetName() != "one" {
			t.Errorf("%T: %v", c.inner, got)
		}
		var text strings.Builder
		if err := d.CacheEncode("json", encode, &text); err != nil || text.String() != c.wanted {
			t.Errorf("%T: %s, %v", c.inner, text.String(), err)
		}
	}
	if (&delivered{&metav1.Status{}, to}).GetObjectMeta() != nil {
		t.Error("a Status has the metadata of an object")
	}
}

// Managed fields that cannot be read fail an update of the scale, not the server.
func TestScaleWithUnreadableManagedFields(t *testing.T) {
	update := func(fields string) (runtime.Object, error) {
		o := objectOf(t, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"managedFields":[`+
			`{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":`+fields+`,"manager":"m","operation":"Update"}],"name":"one"},"spec":{"replicas":1}}`)
		u := &scaleUpdate{
			UpdatedObjectInfo: rest.DefaultUpdatedObjectInfo(&autoscaling.Scale{Spec: autoscaling.ScaleSpec{Replicas: 3}}),
			scaleREST: &scaleREST{
				paths: &request.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"}, version: schema.GroupVersion{Group: "example.com", Version: "v1"},
			},
		}
		return u.UpdatedObject(t.Context(), o)
	}
	if o, err := update(`{"f:spec":{}}`); err != nil || string(o.(*object.Object).Lookup("spec")) != `{"replicas":3}` {
		t.Errorf("%v, %v", o, err)
	}
	if o, err := update(`{"x":7}`); err == nil || o != nil {
		t.Errorf("%v, %v", o, err)
	}
}

func TestFailedDeletionsAreCounted(t *testing.T) {
	p := purge{store: &genericregistry.Store{KeyFunc: func(_ context.Context, name string) (string, error) {
		return "", errors.New("no key for " + name)
	}}}
	if err := p.err(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"a", "b"} {
		p.delete(t.Context(), objectOf(t, box(name, "")))
	}
	if err := p.err(); err == nil || err.Error() != "2 objects could not be deleted, the first because: no key for a" || p.left.Load() != 2 {
		t.Errorf("%v, %d are left", err, p.left.Load())
	}
}

// Replaced storage is closed when the last request that began before has ended.
func TestReplacedStorageIsClosedByTheLastRequest(t *testing.T) {
	closed := make(chan struct{})
	v := &crdInfo{users: 2, replaced: func() { close(closed) }}
	s := &servedResource{server: &Server{}, users: 4}
	s.leave(v, false)
	s.leave(v, true) // a watch ends otherwise
	select {
	case <-closed:
		t.Fatal("it is closed under a request")
	case <-time.After(20 * time.Millisecond):
	}
	s.leave(v, false)
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("it is not closed")
	}
}

// A request goes on after a change of the CRD's status, with the revision that etcd has.
func TestRequirementAfterAChangeOfTheStatus(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	before := e.catalog.Get("boxes.example.com")
	r := e.server.requirement(before)
	if r.Revision != int64(before.Revision) {
		t.Errorf("revision %d, not %d", r.Revision, before.Revision)
	}
	e.define(boxesWith("a: {type: string}"), func(d map[string]any) { d["status"].(map[string]any)["note"] = "x" })
	now := int64(e.catalog.Get("boxes.example.com").Revision)
	if got, err := r.Changed(t.Context(), now); now == r.Revision || got != now || err != nil {
		t.Errorf("revision %d, not %d: %v", got, now, err)
	}
	if _, err := r.Changed(t.Context(), 0); err == nil {
		t.Error("a request goes on without its CRD")
	}
	e.define(boxesWith("b: {type: string}"))
	now = int64(e.catalog.Get("boxes.example.com").Revision)
	if _, err := r.Changed(t.Context(), now); err == nil || !strings.Contains(err.Error(), "the CustomResourceDefinition boxes.example.com has changed since this request began") {
		t.Errorf("a request goes on with another schema: %v", err)
	}
}

// Storage that is closed before its first use is not opened any more.
func TestClosedStorageIsNotOpened(t *testing.T) {
	e := start(t)
	e.define(twoVersions)
	e.Do("GET", boxesPath, "").Is(http.StatusOK)
	value, _ := e.server.servedResources.Load(e.catalog.Get("boxes.example.com").UID)
	unused := value.(*servedResource).current.storages["v2"]
	unused.close()
	if _, _, err := unused.options.Decorator(nil, "", nil, nil, nil, nil, nil, nil); !errors.Is(err, errGone) {
		t.Error(err)
	}
}
