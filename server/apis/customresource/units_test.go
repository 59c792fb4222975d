package customresource

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	autoscaling "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
)

// wait waits for all that began before it, and for nothing that began later.
func TestPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pending
		if err := p.wait(t.Context()); err != nil {
			t.Error(err)
		}
		waiting := func() <-chan error {
			done := make(chan error, 1)
			go func() { done <- p.wait(t.Context()) }()
			synctest.Wait()
			return done
		}
		first, second := p.begin(), p.begin()
		both := waiting()
		third := p.begin()
		all := waiting()
		for n, end := range []func(){second, first, third} {
			if len(both) != max(n-1, 0) || len(all) != 0 {
				t.Errorf("after %d have ended: %d and %d have waited", n, len(both), len(all))
			}
			end()
			synctest.Wait()
		}
		if len(both) != 1 || len(all) != 1 || len(p.sealed) != 0 {
			t.Errorf("in the end: %d and %d have waited, %d batches are kept", len(both), len(all), len(p.sealed))
		}
		p.begin()() // no call waits for it
		if err := p.wait(t.Context()); err != nil {
			t.Error(err)
		}
		end := p.begin()
		stopped, cancel := context.WithCancel(t.Context())
		cancel()
		if err := p.wait(stopped); !errors.Is(err, context.Canceled) {
			t.Errorf("a call that is cancelled: %v", err)
		}
		end()
	})
}

// After its end a watch writes no event, so that there is no gap; its error is written.
func TestWritesAfterTheEnd(t *testing.T) {
	for _, c := range []struct {
		name                  string
		code                  int
		ended, written, known bool
	}{
		{"an event", http.StatusOK, false, true, true},
		{"an event, of a server that is always current", http.StatusOK, false, true, false},
		{"an event after the end", http.StatusOK, true, false, true},
		{"an event after the end, of a server that is always current", http.StatusOK, true, false, false},
		{"an error after the end", http.StatusInternalServerError, true, true, true},
	} {
		sent := httptest.NewRecorder()
		w := &watching{ResponseWriter: sent, cancel: func() { t.Errorf("%s: the watch is ended", c.name) }}
		if c.known {
			w.current = func() bool { return true }
		}
		w.ended.Store(c.ended)
		w.WriteHeader(c.code)
		if n, err := w.Write([]byte("data")); n != 4 || err != nil || (sent.Body.String() == "data") != c.written {
			t.Errorf("%s: %d, %v, %q", c.name, n, err, sent.Body)
		}
	}
}

// Requests are about CRDs that have their names, in a version that is served, in the
// right scope.
func TestEntryOfARequest(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"), func(d map[string]any) {
		spec := d["spec"].(map[string]any)
		spec["versions"] = append(spec["versions"].([]any), map[string]any{"name": "v0", "served": false, "storage": false, "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}})
	})
	find := func(path string) bool {
		t.Helper()
		info, err := (requestinfo.Resolver{}).NewRequestInfo(httptest.NewRequest("GET", path, nil))
		if err != nil {
			t.Fatal(err)
		}
		return e.server.entry(info) != nil
	}
	for path, want := range map[string]bool{
		boxes:                                 true,
		boxes + "/one":                        true,
		boxes + "/one/status":                 true,
		strings.Replace(boxes, "v1", "v0", 1): false,
		strings.Replace(boxes, "v1", "v9", 1): false,
		"/apis/example.com/v1/crates":         false,
		"/apis/example.org/v1/boxes":          false,
		"/apis/example.com/v1":                false,
	} {
		if find(path) != want {
			t.Errorf("%s: %v", path, !want)
		}
	}
	if e.server.entry(&apirequest.RequestInfo{APIGroup: "example.com", APIVersion: "v1", Resource: "boxes"}) != nil {
		t.Error("what is no request for a resource has one")
	}
	condition := func(kind string) func(map[string]any) {
		return func(d map[string]any) {
			d["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": kind, "status": "True"}}
		}
	}
	for kind, want := range map[string]bool{"NamesAccepted": true, "Established": true, "Other": false} {
		if e.define(boxesWith("a: {type: string}"), condition(kind)); find(boxes) != want {
			t.Errorf("%s alone: %v", kind, !want)
		}
	}
}

// The gate forbids to create what a CRD that is being deleted would leave behind, before
// plugins are asked and after.
func TestGateOfATerminatingCRD(t *testing.T) {
	g := &gate{terminating: true, plugins: &recorder{}}
	for operation, forbidden := range map[admission.Operation]bool{admission.Create: true, admission.Update: false, admission.Delete: false} {
		a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "n", "one", schema.GroupVersionResource{Group: "example.com", Resource: "boxes"}, "", operation, nil, false, nil)
		for name, err := range map[string]error{"Admit": g.Admit(t.Context(), a, nil), "Validate": g.Validate(t.Context(), a, nil)} {
			if apierrors.IsForbidden(err) != forbidden || !forbidden && err != nil {
				t.Errorf("%s of %s: %v", name, operation, err)
			}
		}
	}
	if n := g.plugins.(*recorder).admitted.Load(); n != 2 {
		t.Errorf("plugins are asked %d times", n)
	}
}

// refusing is a plugin that refuses all.
type refusing struct{ recorder }

func (*refusing) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errors.New("refused")
}

func (*refusing) Validate(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errors.New("refused")
}

func TestPluginsRefuse(t *testing.T) {
	g := &gate{plugins: &refusing{}}
	a := admission.NewAttributesRecord(nil, nil, schema.GroupVersionKind{}, "", "one", schema.GroupVersionResource{}, "", admission.Delete, nil, false, nil)
	for name, err := range map[string]error{"Admit": g.Admit(t.Context(), a, nil), "Validate": g.Validate(t.Context(), a, nil)} {
		if err == nil || err.Error() != "refused" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only a resource that is open and has no requests is idle.
func TestIdleAfterTheLastRequest(t *testing.T) {
	for name, c := range map[string]struct {
		users int
		gone  bool
		idle  bool
	}{
		"the last request":      {1, false, true},
		"not the last":          {2, false, false},
		"the last, of a closed": {1, true, false},
	} {
		server := &Server{options: Options{MaxIdle: 1}}
		s := &servedResource{server: server, users: c.users, gone: c.gone}
		before := time.Now()
		if surplus := s.left(nil, true); surplus != nil {
			t.Errorf("%s: a resource too many", name)
		}
		if (s.idleElement != nil) != c.idle || server.idle.list.Len() > 0 != c.idle || s.lastUsed.Before(before) || s.users != c.users-1 {
			t.Errorf("%s: idle %v, %d users", name, s.idleElement != nil, s.users)
		}
	}
}

// What closeIfIdle finds in use, or used lately, stays open.
func TestCloseIfIdle(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		after  time.Duration // was it used
		users  int
		gone   bool
		closed bool
	}{
		"unused":          {-time.Second, 0, false, true},
		"used then":       {0, 0, false, true},
		"used since then": {time.Second, 0, false, false},
		"in use":          {-time.Second, 1, false, false},
		"closed":          {-time.Second, 1, true, true},
	} {
		s := &servedResource{server: &Server{}, lastUsed: now.Add(c.after), users: c.users, gone: c.gone}
		if got := s.closeIfIdle(now); got != c.closed || s.gone != c.closed {
			t.Errorf("%s: %v, closed %v", name, got, s.gone)
		}
	}
}

// That nothing is left counts only if etcd says so.
func TestUnreadWithoutAnAnswer(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	entry := e.catalog.Get("boxes.example.com")
	if left, err := e.server.unread(t.Context(), entry, &purge{}); left != 0 || err != nil {
		t.Errorf("%d, %v", left, err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	p := &purge{}
	p.left.Store(3)
	if left, err := e.server.unread(stopped, entry, p); left != 3 || err == nil {
		t.Errorf("without an answer: %d, %v", left, err)
	}
	e.Do("POST", boxes, box("one", "")).Is(http.StatusCreated)
	if left, err := e.server.unread(t.Context(), entry, &purge{}); left != 1 || err == nil || !strings.Contains(err.Error(), "1 objects are in etcd and in no list") {
		t.Errorf("an object that was not listed: %d, %v", left, err)
	}
}

// updateTo answers an update of a scale with an object.
func updateTo(obj runtime.Object, err error) rest.UpdatedObjectInfo {
	return rest.DefaultUpdatedObjectInfo(nil, func(context.Context, runtime.Object, runtime.Object) (runtime.Object, error) { return obj, err })
}

func TestScaleUpdates(t *testing.T) {
	r := &scaleREST{paths: &request.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"}, version: schema.GroupVersion{Group: "example.com", Version: "v1"}}
	scale := func(replicas int32, version string) *autoscaling.Scale {
		return &autoscaling.Scale{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}, Spec: autoscaling.ScaleSpec{Replicas: replicas}}
	}
	for name, c := range map[string]struct {
		before string // the spec
		to     runtime.Object
		err    error
		want   string // of the spec, or of the error
		rv     string
	}{
		"replicas":         {`{"replicas":1}`, scale(3, ""), nil, `{"replicas":3}`, "7"},
		"a precondition":   {`{"replicas":1}`, scale(3, "5"), nil, `{"replicas":3}`, "5"},
		"the first":        {`{}`, scale(2, ""), nil, `{"replicas":2}`, "7"},
		"none":             {`{}`, scale(notSet, ""), nil, `the spec replicas field ".spec.replicas" cannot be empty`, ""},
		"no scale":         {`{"replicas":1}`, &metav1.Status{}, nil, "wrong object passed to Scale update: ", ""},
		"an error":         {`{"replicas":1}`, nil, errors.New("refused"), "refused", ""},
		"nothing to count": {`{"replicas":"x"}`, scale(3, ""), nil, ".spec.replicas accessor error", ""},
	} {
		o := objectOf(t, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"},"spec":`+c.before+`}`)
		o.SetResourceVersion("7")
		u := &scaleUpdate{UpdatedObjectInfo: updateTo(c.to, c.err), scaleREST: r}
		got, err := u.UpdatedObject(t.Context(), o)
		if err != nil {
			if got != nil || c.rv != "" || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, %v", name, got, err)
			}
			continue
		}
		changed := got.(*object.Object)
		if string(changed.Lookup("spec")) != c.want || changed.GetResourceVersion() != c.rv {
			t.Errorf("%s: %s, %s", name, changed.JSON(), changed.GetResourceVersion())
		}
		if string(o.Lookup("spec")) != c.before {
			t.Errorf("%s: the old object has become %s", name, o.JSON())
		}
	}
	if _, _, err := scaleOf(r.paths, &metav1.Status{}); err == nil {
		t.Error("a Status has a scale")
	}
}

// Nulls come back where the schema has left what is around them; what it has dropped does not.
func TestKeepNulls(t *testing.T) {
	for _, c := range []struct{ before, now, want string }{
		{`"removed":{"x":1},"spec":{"a":"1","b":null}`, `"spec":{"a":"1"}`, `"spec":{"a":"1","b":null}`},
		{`"spec":{"a":"1","b":null}`, `"spec":{"a":"1"},"status":{"filled":"in"}`, `"spec":{"a":"1","b":null},"status":{"filled":"in"}`},
		{`"none":null,"spec":{"l":[null,{"b":null},"x"]}`, `"spec":{"l":[null,{},"x"]}`, `"none":null,"spec":{"l":[null,{"b":null},"x"]}`},
	} {
		read := func(members string) *object.Object {
			o, err := object.FromJSON([]byte(`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"},` + members + `}`))
			if err != nil {
				t.Fatal(err)
			}
			return o
		}
		o := read(c.now)
		keepNulls(o, read(c.before))
		if got, want := string(o.JSON()), string(read(c.want).JSON()); got != want {
			t.Errorf("%s: got %s, want %s", c.before, got, want)
		}
	}
}

// What the schema refuses to decode is an error only for objects of its kind: of others
// the handlers say that they are of another kind.
func TestDecodeObjectsOfOtherKinds(t *testing.T) {
	f, _ := decoderOf(schemaOf(t, `{"a":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}`))
	const spec = `"metadata":{"name":"one"},"spec":{"a":{"apiVersion":"v1","kind":"Pod","metadata":{"labels":7}}}}`
	for _, c := range []struct {
		body, kind string
		decoded    bool
	}{
		{`{"apiVersion":"example.com/v1","kind":"Box",` + spec, "Box", false},
		{`{"apiVersion":"example.com/v1","kind":"Crate",` + spec, "Crate", true},
		{`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":"one"}}`, "Crate", true},
		{`{"apiVersion":"example.com/v1",` + spec, "", false},
		{`{`, "", false},
	} {
		o, gvk, strict, err := f.FromRequest([]byte(c.body), nil, true)
		if (err == nil) != c.decoded || (o != nil) != c.decoded || gvk.Kind != c.kind || strict != nil {
			t.Errorf("%s: %v, %v, %v, %v", c.body, o, gvk, strict, err)
		}
		if o != nil && o.Stamp() != nil {
			t.Errorf("%s: the schema has normalized it", c.body)
		}
	}
}

// What plugins have added is pruned and completed before anything else sees it.
func TestGateAfterPlugins(t *testing.T) {
	s := schemaOf(t, `{"a":{"type":"string","default":"x"}}`)
	f, change := decoderOf(s)
	g := &gate{strategy: &strategy{decoder: f}}
	for body, want := range map[string]string{
		box("one", `"b":1`):   `{"a":"x"}`,
		box("one", `"a":"y"`): `{"a":"y"}`,
	} {
		o := objectOf(t, body)
		if err := g.after(t.Context(), o); err != nil || string(o.Lookup("spec")) != want || o.Stamp() != any(s) {
			t.Errorf("%s became %s: %v", body, o.JSON(), err)
		}
	}
	unchanged := objectOf(t, box("one", `"b":1`))
	unchanged.SetStamp(s)
	if err := g.after(t.Context(), unchanged); err != nil || string(unchanged.Lookup("spec")) != `{"b":1}` {
		t.Errorf("what the schema has normalized is normalized again: %s, %v", unchanged.JSON(), err)
	}
	other := objectOf(t, strings.Replace(box("one", `"b":1`), "Box", "Crate", 1))
	if err := g.after(t.Context(), other); err != nil || string(other.Lookup("spec")) != `{"b":1}` {
		t.Errorf("another kind: %s, %v", other.JSON(), err)
	}
	broken := newVersionSchema(schemaKey{}, nil, "v1")
	broken.once.Do(func() { broken.err = errors.New("broken") })
	change(broken)
	if err := g.after(t.Context(), objectOf(t, box("one", ""))); !apierrors.IsInternalError(err) {
		t.Errorf("a schema that cannot be compiled: %v", err)
	}
}

// An object knows the schema that has normalized it, also before admission has reported what was pruned.
func TestSchemaMarkers(t *testing.T) {
	s := newVersionSchema(schemaKey{}, nil, "v1")
	for name, c := range map[string]struct {
		stamp any
		want  *versionSchema
	}{
		"normalized": {s, s},
		"decoded":    {&decodeResult{schema: s, pruned: []string{"spec.a"}}, s},
		"unknown":    {nil, nil},
		"another":    {"x", nil},
	} {
		o := objectOf(t, box("one", ""))
		o.SetStamp(c.stamp)
		if got := schemaMarkerOf(o); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What cannot be converted is an error, and the target stays as it is.
func TestConvertorFails(t *testing.T) {
	failure := errors.New("no webhook")
	f, _ := decoderOf(newVersionSchema(schemaKey{}, nil, "v1"))
	c := &convertor{decoder: f, convert: func(context.Context, []*object.Object, string) ([]*object.Object, error) { return nil, failure }}
	in, out := objectOf(t, box("one", "")), object.New(schema.GroupVersionKind{Group: "example.com", Version: "v2", Kind: "Box"})
	if err := c.Convert(in, out, nil); !errors.Is(err, failure) || out.GetName() != "" {
		t.Errorf("%s, %v", out.JSON(), err)
	}
	if err := c.Convert(&metav1.Status{}, out, nil); err == nil {
		t.Error("a Status is converted")
	}
	if err := c.Convert(in, &metav1.Status{}, nil); err == nil {
		t.Error("an object becomes a Status")
	}
	same := object.New(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Box"})
	if err := c.Convert(in, same, nil); err != nil || same.GetName() != "one" {
		t.Errorf("%s, %v", same.JSON(), err)
	}
}

// What a cache holds depends on schemas only if fields are selected or objects are converted.
func TestStorageKeys(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*catalog.Entry)
		depends bool
	}{
		"one version":        {func(*catalog.Entry) {}, false},
		"selectable fields":  {func(e *catalog.Entry) { e.Versions[0].SelectableFields = true }, true},
		"stored in another":  {func(e *catalog.Entry) { e.StoredVersions = []string{"v0", "v1"} }, true},
		"another is storage": {func(e *catalog.Entry) { e.StorageVersion = "v0" }, true},
	} {
		key := func(schema, storage byte) storageKey {
			e := &catalog.Entry{StorageVersion: "v1", StoredVersions: []string{"v1"}, Versions: []catalog.Version{{Name: "v1"}, {Name: "v0"}}}
			e.Versions[1].SchemaHash[0], e.Versions[0].StorageHash[0] = schema, storage
			c.change(e)
			return storageKeyOf(e, &e.Versions[0])
		}
		if (key(1, 1) != key(2, 1)) != c.depends || key(1, 1) == key(1, 2) {
			t.Errorf("%s: the key depends on the wrong things", name)
		}
	}
}

// An object of another kind, or of a version that the CRD has no more, stays as it is.
func TestRenormalizeOthers(t *testing.T) {
	s := schemaOf(t, `{"a":{"type":"string"}}`)
	f, change := decoderOf(s)
	for _, text := range []string{strings.Replace(box("one", `"b":1`), "Box", "Crate", 1), strings.Replace(box("one", `"b":1`), "/v1", "/v2", 1)} {
		for _, stamp := range []any{nil, s} {
			o := objectOf(t, text)
			o.SetStamp(stamp)
			if got := f.Renormalize(o); got != o {
				t.Errorf("%s became %s", text, got.JSON())
			}
		}
	}
	o := objectOf(t, box("one", `"b":1`))
	if got := f.Renormalize(o); string(got.Lookup("spec")) != `{}` || schemaMarkerOf(got) != s || string(o.Lookup("spec")) != `{"b":1}` {
		t.Errorf("%s became %s", o.JSON(), got.JSON())
	}
	o.SetStamp(s)
	if got := f.Renormalize(o); got != o {
		t.Errorf("what the schema has normalized became %s", got.JSON())
	}
	now := schemaOf(t, `{"c":{"type":"string"}}`)
	if change(now); schemaMarkerOf(f.Renormalize(o)) != now {
		t.Error("an object of the former schema stays as it is")
	}
}

// Requests with these verbs, and no others, store something on the condition that the CRD is unchanged.
func TestVerbsThatWrite(t *testing.T) {
	for verb, want := range map[string]bool{"create": true, "update": true, "patch": true, "delete": true, "deletecollection": true, "get": false, "list": false, "watch": false, "": false} {
		if writes(verb) != want {
			t.Errorf("%s: %t", verb, !want)
		}
	}
}

// Admission sees scales, and not what has none.
func TestAdmissionOfScales(t *testing.T) {
	r := &scaleREST{paths: &request.Scale{SpecReplicas: ".spec.replicas", StatusReplicas: ".status.replicas"}}
	with := func(replicas string) *object.Object {
		return objectOf(t, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"},"spec":{"replicas":`+replicas+`}}`)
	}
	failure := errors.New("refused")
	for name, c := range map[string]struct {
		obj, old string
		err      error
		says     string
	}{
		"both":        {"3", "1", nil, ""},
		"refused":     {"3", "1", failure, "refused"},
		"no count":    {`"x"`, "1", nil, ".spec.replicas accessor error"},
		"none before": {"3", `"x"`, nil, ".spec.replicas accessor error"},
	} {
		update := r.updateValidation(func(_ context.Context, obj, old runtime.Object) error {
			if now, before := obj.(*autoscaling.Scale), old.(*autoscaling.Scale); now.Spec.Replicas != 3 || before.Spec.Replicas != 1 || now.Name != "one" {
				t.Errorf("%s: %v, %v", name, now, before)
			}
			return c.err
		})
		if err := update(t.Context(), with(c.obj), with(c.old)); (err != nil) != (c.says != "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		create := r.createValidation(func(_ context.Context, obj runtime.Object) error {
			if obj.(*autoscaling.Scale).Spec.Replicas != 3 {
				t.Errorf("%s: %v", name, obj)
			}
			return c.err
		})
		if err := create(t.Context(), with(c.obj)); (err != nil) != (c.says != "" && name != "none before") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A version that is not named is the one that the object has.
func TestConvertToNoVersion(t *testing.T) {
	f, _ := decoderOf(newVersionSchema(schemaKey{}, nil, "v1"))
	c := &convertor{decoder: f}
	o := objectOf(t, box("one", ""))
	for version, wanted := range map[schema.GroupVersion]bool{{}: true, {Group: "example.com", Version: "v1"}: true, {Group: "example.org", Version: "v1"}: false} {
		if got, err := c.toVersion(o, version); (got == o) != wanted || (err == nil) != wanted {
			t.Errorf("%v: %v, %v", version, got, err)
		}
	}
}

// A resource that the server does not know yet may be known to another replica.
func TestFindReadsEtcd(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"))
	info := &apirequest.RequestInfo{IsResourceRequest: true, APIGroup: "example.com", APIVersion: "v1", Resource: "crates", Verb: "list"}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if found, err := e.server.find(stopped, info); found != nil || err == nil {
		t.Errorf("without an answer: %v, %v", found, err)
	}
	if found, err := e.server.find(t.Context(), info); found != nil || err != nil {
		t.Errorf("%v, %v", found, err)
	}
	info.Resource = "boxes"
	for _, ctx := range []context.Context{t.Context(), stopped} {
		if found, err := e.server.find(ctx, info); found == nil || err != nil {
			t.Errorf("%v, %v", found, err)
		}
	}
}

// Values at the end of a path are what the API says: strings, whole numbers, and lists of them.
func TestValuesOfPaths(t *testing.T) {
	for text, want := range map[string]any{
		`""`: "", `"a"`: "a", `"a\n"`: "a\n", `7`: int64(7), `1.5`: 1.5, `["a"]`: []any{"a"}, `{"a":"b"}`: map[string]any{"a": "b"}, `true`: true, `null`: nil,
	} {
		if got, err := decode([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is %#v, %v", text, got, err)
		}
	}
	for _, text := range []string{``, `"`, `[`} {
		if got, err := decode([]byte(text)); err == nil {
			t.Errorf("%s is %#v", text, got)
		}
	}
}

// A version that is neither served nor stored has a status, and no storage.
func TestStatusBesideVersionsWithoutStorage(t *testing.T) {
	e := start(t)
	e.define(boxesWith("a: {type: string}"), func(d map[string]any) {
		spec := d["spec"].(map[string]any)
		v1 := spec["versions"].([]any)[0].(map[string]any)
		v1["subresources"] = map[string]any{"status": map[string]any{}}
		v0 := maps.Clone(v1)
		v0["name"], v0["served"], v0["storage"] = "v0", false, false
		spec["versions"] = []any{v1, v0}
	})
	e.Do("POST", boxes, box("one", "")).Is(http.StatusCreated)
	e.Patch("apply", boxes+"/one/status?fieldManager=m", box("one", "")).Is(http.StatusOK)
}
