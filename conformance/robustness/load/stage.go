package load

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A Stage is a run that its caller plays, request by request. It records as other runs do.
type Stage struct {
	Site *Site
	// Number is different for each run of a site.
	Number int
	run    *run
	seen   *observers
	begun  []*Client
}

// Stage begins a run with a namespace, a record of etcd's log, and a watch at each replica.
func (s *Site) Stage(ctx context.Context) (*Stage, error) {
	s.runs++
	r := &run{site: s, ctx: ctx, number: s.runs, ns: fmt.Sprintf("run%d", s.runs), rec: newRecord(0), extras: map[string]bool{}}
	if err := r.prepare(); err != nil {
		return nil, err
	}
	o, err := r.observe()
	if err != nil {
		return nil, err
	}
	st := &Stage{Site: s, Number: s.runs, run: r, seen: o}
	var plain []*watcher
	for _, w := range r.watchers(o.from) {
		if !w.initial && w.selector == "" {
			plain = append(plain, w)
		}
	}
	o.watch(plain)
	return st, nil
}

// Client returns a client with a timeout.
func (st *Stage) Client(timeout time.Duration) (*Client, error) {
	c, err := newClient(st.Site.Environment, st.run.rec, 1+len(st.begun), timeout)
	if err != nil {
		return nil, err
	}
	st.begun = append(st.begun, c)
	return c, nil
}

// Thing is a thing of the run at a replica.
func (st *Stage) Thing(replica int, name string) Target {
	return Target{Replica: replica, Resource: Things, Version: "v1", Key: st.run.key(name)}
}

// Namespace is that of the run.
func (st *Stage) Namespace() string { return st.run.ns }

// Now is the time of the run.
func (st *Stage) Now() int64 { return st.run.rec.now() }

// Fault notes that a fault begins. The checkers then know why a watch is silent. The
// function that it returns notes the end.
func (st *Stage) Fault(name string) (end func()) {
	begin := st.Now()
	return func() {
		st.run.rec.with(func(h *history.History) {
			h.Faults = append(h.Faults, history.Fault{Name: name, Begin: begin, End: st.Now()})
		})
	}
}

// Limit makes a namespace in which a quota is in force, and returns its name and how many crates it may have.
func (st *Stage) Limit(ctx context.Context, c *Client) (namespace string, hard int, err error) {
	namespace = st.run.ns + "-quota"
	if err := st.Site.namespace(ctx, c, namespace); err != nil {
		return "", 0, err
	}
	if !st.run.limit(ctx, c, namespace, st.run.random(0)) {
		return "", 0, ctx.Err()
	}
	return namespace, quotaHard, nil
}

// ChangeSchema gives things the next schema.
func (st *Stage) ChangeSchema(ctx context.Context, c *Client, replica int, patience time.Duration) *history.Ack {
	st.Site.things.Schema++
	d := st.Site.things
	return c.ChangeCRD(ctx, &d, replica, replica, patience)
}

// Sync waits until all watches have seen a revision.
func (st *Stage) Sync(revision int64) {
	st.run.arrive(st.seen.watchers, nil, &history.Operation{Got: history.Item{Revision: revision}})
}

// Watch watches at a replica for a while, from the last revision that the watch of the stage has seen there.
func (st *Stage) Watch(ctx context.Context, replica int, lasts time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, lasts)
	defer cancel()
	w := *st.seen.watchers[replica]
	st.run.rec.with(func(*history.History) {
		w.from = st.seen.watchers[replica].reached
		w.reached = w.from
	})
	_ = w.run(ctx)
}

// Operations returns a copy of what is recorded so far.
func (st *Stage) Operations() []history.Operation {
	var out []history.Operation
	st.run.rec.with(func(h *history.History) { out = append(out, h.Operations...) })
	return out
}

// End ends the run and returns its record.
func (st *Stage) End() (*history.History, []Finding, error) {
	defer st.seen.cancel()
	for _, c := range st.begun {
		c.Close()
	}
	if err := st.seen.end(); err != nil {
		return nil, nil, err
	}
	st.run.complete()
	return st.run.rec.h, st.run.rec.findings, nil
}

// Drop ends a run whose record cannot be completed, because etcd's own log was taken away.
func (st *Stage) Drop() (*history.History, []Finding) {
	st.seen.look()
	st.seen.watching.Wait()
	st.seen.cancel()
	st.seen.following.Wait()
	for _, c := range st.begun {
		c.Close()
	}
	st.run.complete()
	return st.run.rec.h, st.run.rec.findings
}

// Inform starts an informer at each replica.
func (st *Stage) Inform() error { return st.seen.inform() }

// Holds reports whether the informer at a replica has a thing.
func (st *Stage) Holds(replica int, name string) bool {
	return st.seen.informers[replica].has(st.run.key(name))
}

// CreateSlowly is Create with a request whose second half is sent only when release is closed.
func (c *Client) CreateSlowly(ctx context.Context, t Target, release <-chan struct{}) *history.Operation {
	o := c.operation(t.Replica, history.Create, t.Resource, t.Key)
	o.ID = c.id()
	o.Sent = history.Item{Resource: t.Resource, Name: t.Key, Log: []string{o.ID}, Schema: -1, APIVersion: t.apiVersion()}
	text := body(&o.Sent, nil)
	reader, writer := io.Pipe()
	go func() {
		_, _ = writer.Write(text[:len(text)/2])
		<-release
		_, _ = writer.Write(text[len(text)/2:])
		_ = writer.Close()
	}()
	path, _ := place(t.Resource, t.Version, t.Key)
	return c.finish(o, c.stream(ctx, o, http.MethodPost, path, asJSON, reader))
}

// Probe reads a thing, or writes it, and does not record that.
func (c *Client) Probe(ctx context.Context, t Target, write bool) *Answer {
	path, name := place(t.Resource, t.Version, t.Key)
	if write {
		return c.Ask(ctx, t.Replica, http.MethodPatch, path+"/"+name+"-probe"+fmt.Sprint(t.Replica)+"?fieldManager=probe&force=true", asApply, bytes.NewReader(encode(map[string]any{
			"apiVersion": t.apiVersion(), "kind": Kind(t.Resource), "metadata": map[string]any{
				"name": fmt.Sprintf("%s-probe%d", name, t.Replica), "annotations": map[string]string{"at": time.Now().String()},
			},
		})))
	}
	return c.Ask(ctx, t.Replica, http.MethodGet, path+"/"+name, "", nil)
}
