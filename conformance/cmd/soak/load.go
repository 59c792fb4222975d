package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	crdsPath   = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	group      = "/apis/soak.espalier.dev/v1"
	everything = group + "/things"
	names      = 500 // objects that come and go
)

// makeCRD returns a CRD whose schema differs with n.
func makeCRD(plural, kind string, n int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.soak.espalier.dev"},
"spec":{"group":"soak.espalier.dev","scope":"Namespaced","names":{"plural":"%[1]s","kind":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{}},"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object",
"x-kubernetes-validations":[{"rule":"self.size >= 0 && self.size < %[3]d"}],
"properties":{"size":{"type":"integer","default":1},"text":{"type":"string","maxLength":%[3]d},"extra%[4]d":{"type":"string","default":"d%[3]d"},
"tags":{"type":"array","maxItems":20,"items":{"type":"string","maxLength":100}}}},"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}]}}`,
		plural, kind, 100000+n, n%7)
}

// A load is everything that works on the server at the same time.
type load struct {
	pause                          time.Duration // between two requests of a writer
	writes, reads, changes, churns atomic.Int64
	fail                           func(error)
	patient                        bool // whether a server may ask to come again later: upstream's does so after a change of schema
}

// accept fails on an answer that is neither wanted nor normal under load: other writers change the same objects.
func (l *load) accept(ctx context.Context, what string, status int, answer []byte, err error, want ...int) {
	if ctx.Err() != nil {
		return
	}
	for _, w := range want {
		if err == nil && status == w {
			return
		}
	}
	if err == nil {
		if l.patient && status == http.StatusTooManyRequests {
			return
		}
		// client-go sends such a request again: the schema has changed between its validation and its write.
		if status == http.StatusServiceUnavailable && bytes.Contains(answer, []byte(`"reason":"NothingWritten"`)) {
			return
		}
		err = fmt.Errorf("%d: %.300s", status, answer)
	}
	l.fail(fmt.Errorf("%s: %w", what, err))
}

// write makes, changes and deletes objects at random.
func (l *load) write(ctx context.Context, c *wire.Conn) {
	for ; ctx.Err() == nil; time.Sleep(l.pause) {
		namespace, name := fmt.Sprintf("ns-%d", rand.IntN(3)), fmt.Sprintf("thing-%d", rand.IntN(names))
		collection := group + "/namespaces/" + namespace + "/things"
		body := fmt.Appendf(nil, `{"apiVersion":"soak.espalier.dev/v1","kind":"Thing","metadata":{"name":%q},"spec":{"size":%d,"text":"%0*d","tags":["a","b"]}}`,
			name, rand.IntN(1000), rand.IntN(2000), 7)
		l.writes.Add(1)
		switch rand.IntN(5) {
		case 0, 1:
			status, _, answer, err := c.Do(ctx, http.MethodPost, collection, body)
			l.accept(ctx, "create", status, answer, err, http.StatusCreated, http.StatusConflict)
		case 2:
			status, _, answer, err := c.Do(ctx, http.MethodGet, collection+"/"+name, nil)
			if status == http.StatusOK && err == nil {
				changed := bytes.Replace(answer, []byte(`"tags":["a",`), []byte(`"tags":["c",`), 1)
				status, _, answer, err = c.Do(ctx, http.MethodPut, collection+"/"+name, changed)
			}
			l.accept(ctx, "update", status, answer, err, http.StatusOK, http.StatusNotFound, http.StatusConflict)
		case 3:
			patch := fmt.Appendf(nil, `{"spec":{"size":%d}}`, rand.IntN(1000))
			status, _, answer, err := c.Do(ctx, http.MethodPatch, collection+"/"+name, patch, wire.Header{Name: "Content-Type", Value: "application/merge-patch+json"})
			l.accept(ctx, "patch", status, answer, err, http.StatusOK, http.StatusNotFound, http.StatusConflict)
		case 4:
			status, _, answer, err := c.Do(ctx, http.MethodDelete, collection+"/"+name, nil)
			l.accept(ctx, "delete", status, answer, err, http.StatusOK, http.StatusNotFound, http.StatusConflict)
		}
	}
}

// read lists in every way there is.
func (l *load) read(ctx context.Context, c *wire.Conn) {
	paths := []string{everything, everything + "?limit=100", everything + "?resourceVersion=0", group + "/namespaces/ns-1/things?labelSelector=a%3Db", group, "/openapi/v3", "/apis"}
	for i := 0; ctx.Err() == nil; i++ {
		status, _, answer, err := c.Do(ctx, http.MethodGet, paths[i%len(paths)], nil)
		// Upstream's server has no /apis.
		l.accept(ctx, paths[i%len(paths)], status, answer, err, http.StatusOK, http.StatusNotFound)
		status, _, answer, err = c.Do(ctx, http.MethodGet, everything, nil, wire.Header{Name: "Accept", Value: "application/json;as=Table;v=v1;g=meta.k8s.io"})
		l.accept(ctx, "table", status, answer, err, http.StatusOK)
		l.reads.Add(2)
		launch.Pause(ctx, 500*time.Millisecond)
	}
}

// change alters the schema of the objects that are written all the while.
func (l *load) change(ctx context.Context, c *wire.Conn) {
	for n := 1; ctx.Err() == nil; n++ {
		launch.Pause(ctx, 3*time.Second)
		patch := makeCRD("things", "Thing", n)
		status, _, answer, err := c.Do(ctx, http.MethodPatch, crdsPath+"/things.soak.espalier.dev", patch, wire.Header{Name: "Content-Type", Value: "application/merge-patch+json"})
		l.accept(ctx, "change of schema", status, answer, err, http.StatusOK)
		l.changes.Add(1)
	}
}

// passing is how many names CRDs have that are made and deleted. A name that has been used leaves its series in the metrics of
// k8s.io/apiserver, some 40 KB, until the process ends: with new names all the time, that would be all there is to see.
const passing = 20

// churn makes a CRD with objects and deletes it with them.
func (l *load) churn(ctx context.Context, c *wire.Conn) {
	for n := 0; ctx.Err() == nil; n++ {
		plural, kind := fmt.Sprintf("passing%ds", n%passing), fmt.Sprintf("Passing%d", n%passing)
		status, _, answer, err := c.Do(ctx, http.MethodPost, crdsPath, makeCRD(plural, kind, n))
		l.accept(ctx, "create of a CRD", status, answer, err, http.StatusCreated)
		collection := group + "/namespaces/default/" + plural
		_ = c.Until(ctx, 10*time.Second, http.StatusOK, http.MethodGet, collection, nil) // if it is not served, the next create says so
		for i := range 20 {
			body := fmt.Appendf(nil, `{"apiVersion":"soak.espalier.dev/v1","kind":%q,"metadata":{"name":"o%d"},"spec":{"size":1}}`, kind, i)
			status, _, answer, err := c.Do(ctx, http.MethodPost, collection, body)
			l.accept(ctx, "create of a passing object", status, answer, err, http.StatusCreated)
		}
		launch.Pause(ctx, 2*time.Second)
		status, _, answer, err = c.Do(ctx, http.MethodDelete, crdsPath+"/"+plural+".soak.espalier.dev", nil)
		l.accept(ctx, "delete of a CRD", status, answer, err, http.StatusOK)
		l.churns.Add(1)
		launch.Pause(ctx, 3*time.Second)
	}
}
