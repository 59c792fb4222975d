package custom

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/util/webhook"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/internal/etcdtest"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/codec"
	"github.com/espalier-dev/espalier/server/convert"
	"github.com/espalier-dev/espalier/server/object"
	"github.com/espalier-dev/espalier/server/store"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// env is a server for custom resources over etcd, reached by HTTP. Definitions
// are written into etcd by the test.
type env struct {
	tb      testing.TB
	url     string
	handler http.Handler
	server  *Server
	catalog *catalog.Catalog
	etcd    *clientv3.Client
	prefix  string
	audited chan map[string]string // annotations of audit events, if a test listens
}

// definitionForm reads definitions as the test has written them.
type definitionForm struct{}

func (definitionForm) Kind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
}

func (f definitionForm) FromRequest(data []byte, _ *schema.GroupVersionKind, _ bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	o, err := object.FromJSON(data)
	return o, f.Kind(), nil, err
}
func (definitionForm) FromStorage(data []byte) (*object.Object, error) { return object.FromJSON(data) }
func (definitionForm) Fresh(o *object.Object) *object.Object           { return o }

func start(tb testing.TB, change ...func(*Options)) *env {
	tb.Helper()
	etcd, prefix := etcdtest.Client(tb)
	ctx, cancel := context.WithCancel(context.Background())
	backend, err := store.Open(ctx, store.Config{Config: storagebackend.Config{
		Prefix: prefix, Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(tb)}},
	}})
	if err != nil {
		tb.Fatal(err)
	}
	definitions, destroy, err := backend.Storage(store.Spec{
		Resource:       schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		ResourcePrefix: catalog.Key,
		Codec:          codec.Storage(definitionForm{}),
		NewFunc:        func() runtime.Object { return object.New(definitionForm{}.Kind()) },
		NewListFunc:    func() runtime.Object { return &object.List{} },
	})
	if err != nil {
		tb.Fatal(err)
	}
	conversion, err := convert.NewFactory(webhook.NewDefaultServiceResolver(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	e := &env{tb: tb, catalog: catalog.New(definitions), etcd: etcd, prefix: prefix, audited: make(chan map[string]string, 100)}
	o := Options{
		Catalog: e.catalog, Backend: backend, Conversion: conversion, NotFound: http.NotFoundHandler(),
		Authorizer: authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
			return authorizer.DecisionAllow, "", nil
		}),
	}
	for _, f := range change {
		f(&o)
	}
	e.server = New(o)
	done := make(chan struct{}, 2)
	go func() { _ = e.catalog.Run(ctx); done <- struct{}{} }()
	go func() { _ = e.server.Run(ctx); done <- struct{}{} }()
	<-e.catalog.Synced()

	e.handler = e.filters(e.server)
	web := httptest.NewServer(e.handler)
	e.url = web.URL
	tb.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		cancel()
		<-done
		<-done
		destroy()
		if err := backend.Close(); err != nil {
			tb.Error(err)
		}
	})
	return e
}

// filters are those of a server that handlers rely on.
func (e *env) filters(h http.Handler) http.Handler {
	inner := h
	h = http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		ctx := request.WithUser(req.Context(), &user.DefaultInfo{Name: "tester", Groups: []string{user.SystemPrivilegedGroup}})
		ctx = audit.WithAuditContext(ctx)
		inner.ServeHTTP(w, req.WithContext(ctx))
		if annotation, ok := audit.AuditContextFrom(ctx).GetEventAnnotation(prunedAnnotation); ok {
			e.audited <- map[string]string{prunedAnnotation: annotation}
		}
	})
	h = filters.WithWarningRecorder(h)
	return filters.WithRequestInfo(h, &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	})
}

// define writes a definition, as YAML, into etcd, established and with the
// names that it asks for, and waits until the server knows.
func (e *env) define(text string, change ...func(definition map[string]any)) {
	e.tb.Helper()
	var d map[string]any
	if err := yaml.Unmarshal([]byte(text), &d); err != nil {
		e.tb.Fatal(err)
	}
	spec := d["spec"].(map[string]any)
	names := spec["names"].(map[string]any)
	name := fmt.Sprintf("%s.%s", names["plural"], spec["group"])
	accepted := map[string]any{"singular": strings.ToLower(names["kind"].(string)), "listKind": names["kind"].(string) + "List"}
	maps.Copy(accepted, names)
	metadata, ok := d["metadata"].(map[string]any)
	if !ok {
		metadata = map[string]any{}
		d["metadata"] = metadata
	}
	maps.Copy(metadata, map[string]any{"name": name, "uid": "uid-of-" + name, "generation": 1})
	stored := []any{}
	for _, v := range spec["versions"].([]any) {
		if v := v.(map[string]any); v["storage"] == true {
			stored = append(stored, v["name"])
		}
	}
	d["apiVersion"], d["kind"] = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
	d["status"] = map[string]any{
		"acceptedNames": accepted, "storedVersions": stored,
		"conditions": []any{
			map[string]any{"type": "NamesAccepted", "status": "True"},
			map[string]any{"type": "Established", "status": "True"},
		},
	}
	for _, f := range change {
		f(d)
	}
	data, err := json.Marshal(d)
	if err != nil {
		e.tb.Fatal(err)
	}
	put, err := e.etcd.Put(context.Background(), e.prefix+catalog.Key+"/"+name, string(data))
	if err != nil {
		e.tb.Fatal(err)
	}
	e.waitFor(put.Header.Revision)
}

func (e *env) waitFor(revision int64) {
	e.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := e.catalog.WaitFor(ctx, uint64(revision)); err != nil {
		e.tb.Fatal(err)
	}
}

// answer is what the server says.
type answer struct {
	tb       testing.TB
	code     int
	warnings []string
	body     []byte
	object   map[string]any
}

// do sends a request. Headers are given as "Name: value".
func (e *env) do(method, path, body string, headers ...string) answer {
	e.tb.Helper()
	req, err := http.NewRequest(method, e.url+path, strings.NewReader(body))
	if err != nil {
		e.tb.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	setHeaders(req, headers)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.tb.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := answer{tb: e.tb, code: resp.StatusCode}
	for _, w := range resp.Header.Values("Warning") {
		a.warnings = append(a.warnings, strings.TrimPrefix(w, "299 - "))
	}
	if a.body, err = io.ReadAll(resp.Body); err != nil {
		e.tb.Fatal(err)
	}
	if bytes.HasPrefix(a.body, []byte("{")) {
		if err := json.Unmarshal(a.body, &a.object); err != nil {
			e.tb.Fatalf("%v: %s", err, a.body)
		}
	}
	return a
}

func setHeaders(req *http.Request, headers []string) {
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
}

// patch sends a patch: json, merge or apply.
func (e *env) patch(kind, path, body string) answer {
	e.tb.Helper()
	types := map[string]string{
		"json": "application/json-patch+json", "merge": "application/merge-patch+json", "apply": "application/apply-patch+yaml",
		"strategic": "application/strategic-merge-patch+json",
	}
	return e.do(http.MethodPatch, path, body, "Content-Type: "+types[kind])
}

// is fails the test unless the answer has the code, and returns it.
func (a answer) is(code int) answer {
	a.tb.Helper()
	if a.code != code {
		a.tb.Fatalf("the answer is %d, not %d: %s", a.code, code, a.body)
	}
	return a
}

// says fails the test unless the answer is an error with the message.
func (a answer) says(message string) answer {
	a.tb.Helper()
	if got := a.at("message"); got != message {
		a.tb.Fatalf("the message is\n%v\nnot\n%s", got, message)
	}
	return a
}

// warns fails the test unless the answer has exactly these warnings.
func (a answer) warns(texts ...string) answer {
	a.tb.Helper()
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
	}
	if strings.Join(a.warnings, "\n") != strings.Join(quoted, "\n") {
		a.tb.Fatalf("the warnings are %q, not %q", a.warnings, quoted)
	}
	return a
}

// at returns the value at a dotted path, nil if there is none.
func (a answer) at(path string) any {
	var value any = a.object
	for _, name := range strings.Split(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			var i int
			if _, err := fmt.Sscan(name, &i); err != nil || i >= len(v) {
				return nil
			}
			value = v[i]
		default:
			return nil
		}
	}
	return value
}

// has fails the test unless there is the value at a dotted path.
func (a answer) has(path string, want any) answer {
	a.tb.Helper()
	got := a.at(path)
	if n, ok := got.(float64); ok {
		if w, isInt := want.(int); isInt && float64(w) == n {
			return a
		}
	}
	gotJSON, _ := json.Marshal(got)
	wantJSON, _ := json.Marshal(want)
	if !bytes.Equal(gotJSON, wantJSON) {
		a.tb.Fatalf("%s is %s, not %s, in %s", path, gotJSON, wantJSON, a.body)
	}
	return a
}

// events is an open watch.
type events struct {
	tb     testing.TB
	lines  chan map[string]any
	cancel context.CancelFunc
}

// watch opens a watch.
func (e *env) watch(path string, headers ...string) *events {
	e.tb.Helper()
	w, code := e.tryWatch(path, headers...)
	if w == nil {
		e.tb.Fatalf("watch: %d", code)
	}
	return w
}

// tryWatch opens a watch, or returns the code of the answer.
func (e *env) tryWatch(path string, headers ...string) (*events, int) {
	e.tb.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e.tb.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
	if err != nil {
		e.tb.Fatal(err)
	}
	setHeaders(req, headers)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		e.tb.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, resp.StatusCode
	}
	w := &events{tb: e.tb, lines: make(chan map[string]any, 1000), cancel: cancel}
	go func() {
		defer close(w.lines)
		defer func() { _ = resp.Body.Close() }()
		scanner := bufio.NewScanner(resp.Body)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			var event map[string]any
			if json.Unmarshal(scanner.Bytes(), &event) == nil {
				w.lines <- event
			}
		}
	}()
	return w, resp.StatusCode
}

// next returns the next event; ok is false if the watch has ended.
func (w *events) next() (event answer, ok bool) {
	w.tb.Helper()
	select {
	case line, ok := <-w.lines:
		body, _ := json.Marshal(line)
		return answer{tb: w.tb, object: line, body: body}, ok
	case <-time.After(10 * time.Second):
		w.tb.Fatal("no event after 10 s")
		return answer{}, false
	}
}

// eventually waits until a condition holds.
func eventually(tb testing.TB, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("the condition does not hold after 10 s")
		}
	}
}
