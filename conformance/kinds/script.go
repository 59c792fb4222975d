package kinds

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds/answer"
	"github.com/espalier-dev/espalier/conformance/kinds/generator"
)

// An Exchange is a request and what both servers answered.
type Exchange struct {
	Request     *Request
	There, Here *answer.Side
	Outcome     answer.Outcome
	Table       bool     // the answers are tables
	Panic       bool     // kube-apiserver gave no answer
	Intended    []string // differences that were left out: rows of DIVERGENCES.md
}

// A script is the requests about one object.
type script struct {
	kind        *Kind
	index       int
	src         *generator.Source
	there, here *Client
	normalThere *answer.Normalizer
	normalHere  *answer.Normalizer
	exchanges   []*Exchange
	stored      map[string]any // the object as kube-apiserver has it, with slots; nil if there is none
	name        any            // of the stored object
	seed        map[string]any // as it was before it was mutated
}

func newScript(there, here *Client, seed uint64, k *Kind, index int) *script {
	now := time.Now()
	return &script{
		kind: k, index: index, src: generator.NewSource(seed, k.ID, index), there: there, here: here,
		normalThere: answer.NewNormalizer(now), normalHere: answer.NewNormalizer(now),
	}
}

// run sends all requests. What is left of the object is deleted on both servers.
func (s *script) run(ctx context.Context) error {
	defer s.clean(context.WithoutCancel(ctx))
	if err := s.create(ctx); err != nil {
		return err
	}
	if s.stored == nil || !s.kind.can("get") {
		return nil
	}
	if s.src.Chance(25) && !s.kind.unsettled {
		if err := s.table(ctx); err != nil {
			return err
		}
	}
	for range []int{0, 0, 0, 1, 1, 1, 1, 2, 2, 3}[s.src.IntN(10)] {
		more, err := s.follow(ctx)
		if err != nil || !more {
			return err
		}
	}
	if s.src.Chance(15) && !s.kind.unsettled {
		if err := s.table(ctx); err != nil {
			return err
		}
	}
	if s.src.Chance(12) {
		return s.end(ctx)
	}
	return nil
}

// end deletes the object. In some cases a finalizer holds it, and further requests are about an object that is being deleted.
func (s *script) end(ctx context.Context) error {
	if s.kind.can("patch") && s.src.Chance(40) {
		hold := map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/hold"}}}
		if more, err := s.write(ctx, s.request(http.MethodPatch, "application/merge-patch+json", "merge patch", hold)); err != nil || !more {
			return err
		}
	}
	if err := s.delete(ctx); err != nil {
		return err
	}
	meta, _ := s.stored["metadata"].(map[string]any)
	if meta["deletionTimestamp"] == nil {
		return nil
	}
	for range s.src.IntN(3) {
		if more, err := s.follow(ctx); err != nil || !more {
			return err
		}
	}
	release := map[string]any{"metadata": map[string]any{"finalizers": nil}}
	_, err := s.write(ctx, s.request(http.MethodPatch, "application/merge-patch+json", "merge patch", release))
	return err
}

// ask sends a request to both servers at the same time.
func (s *script) ask(ctx context.Context, r *Request) (*Exchange, error) {
	s.normalThere.Asked(r.Body)
	s.normalHere.Asked(r.Body)
	type result struct {
		answer *answer.Answer
		err    error
	}
	other := make(chan result, 1)
	go func() {
		a, err := s.here.do(ctx, r, s.normalHere)
		other <- result{a, err}
	}()
	there, err := s.there.do(ctx, r, s.normalThere)
	here := <-other
	if err := errors.Join(err, here.err); err != nil {
		return nil, err
	}
	x := &Exchange{Request: r, There: answer.NewSide(there, s.normalThere), Here: answer.NewSide(here.answer, s.normalHere)}
	s.exchanges = append(s.exchanges, x)
	return x, nil
}

// write sends a request that changes the object, and takes note of it. It returns false if the servers hold different objects now.
func (s *script) write(ctx context.Context, r *Request) (bool, error) {
	x, err := s.ask(ctx, r)
	if err != nil {
		return false, err
	}
	if x.There.Code == answer.Closed {
		// A panic of kube-apiserver says nothing about what is right.
		x.Panic = true
		return false, nil
	}
	if s.kind.unsettled {
		settle(x.There.Normal)
		settle(x.Here.Normal)
	}
	if r.Purpose == "delete" {
		arrange(x.There.Normal)
		arrange(x.Here.Normal)
	}
	x.Outcome = answer.Compare(x.There, x.Here)
	apart := x.Outcome.There != x.Outcome.Here
	x.Intended = leaveOut(s.kind, r, &x.Outcome)
	if apart {
		return false, nil
	}
	if !x.Outcome.There || r.Query.Has("dryRun") || x.There.Normal["kind"] != s.kind.Resource.Kind {
		return true, nil
	}
	s.stored = x.There.Normal
	return similar(x.Outcome), nil
}

// settle removes what a controller of kube-apiserver writes: the status, its managed fields, and the version, so that updates do not
// conflict with it.
func settle(object map[string]any) {
	delete(object, "status")
	meta, _ := object["metadata"].(map[string]any)
	delete(meta, "resourceVersion")
	fields, ok := meta["managedFields"].([]any)
	if !ok {
		return
	}
	meta["managedFields"] = slices.DeleteFunc(fields, func(e any) bool {
		entry, _ := e.(map[string]any)
		delete(entry, "time") // a slot whose place depends on the entries that are removed
		return entry["subresource"] == "status"
	})
}

// arrange sorts finalizers: those that a deletion leaves come from a Go map.
func arrange(object map[string]any) {
	meta, _ := object["metadata"].(map[string]any)
	finalizers, _ := meta["finalizers"].([]any)
	slices.SortFunc(finalizers, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
}

// similar reports whether the servers hold objects that further requests can be compared on.
func similar(o answer.Outcome) bool {
	return len(o.Misses) < 6
}

// fieldManagers own what requests write.
var fieldManagers = []string{"kinds", "kinds", "other"}

func (s *script) query() url.Values {
	q := url.Values{"fieldManager": {fieldManagers[s.src.IntN(len(fieldManagers))]}}
	switch s.src.IntN(5) {
	case 0:
		q.Set("fieldValidation", "Strict")
	case 1:
		q.Set("fieldValidation", "Ignore")
	case 2:
		q.Set("fieldValidation", "Warn")
	}
	if s.src.Chance(4) {
		q.Set("dryRun", "All")
	}
	return q
}

func (s *script) create(ctx context.Context) error {
	which, changes := s.src.IntN(len(s.kind.Seeds)), generator.Number(s.src)
	if n := len(s.kind.Seeds); s.kind.fixed {
		which, changes = s.index%n, s.index/n
	}
	s.seed = s.kind.seed(which, s.index)
	object, _ := generator.Mutate(s.src, s.seed, s.kind.Schema, s.kind.Known, changes)
	query := s.query()
	r := &Request{Method: http.MethodPost, Path: s.kind.path(), Query: query, Type: "application/json", Body: object, Purpose: "create"}
	if name := answer.Name(object); name != "" && s.kind.can("patch") && s.src.Chance(12) {
		r = s.applyRequest(object, name)
		r.Purpose = "create by apply"
	}
	if _, err := s.write(ctx, r); err != nil {
		return err
	}
	s.call(object)
	return nil
}

// call decides how the object is called from now on.
func (s *script) call(object map[string]any) {
	if s.stored == nil {
		return
	}
	meta, _ := s.stored["metadata"].(map[string]any)
	s.name = meta["name"]
	if s.name == nil {
		s.name = answer.Name(object)
	}
}

func (s *script) table(ctx context.Context) error {
	x, err := s.ask(ctx, &Request{
		Method: http.MethodGet, Path: s.kind.path(), Name: s.name, Accept: tableType, Purpose: "table",
	})
	if err != nil {
		return err
	}
	x.Table = true
	x.Outcome.Misses = answer.Rows(x.There, x.Here)
	return nil
}

func (s *script) delete(ctx context.Context) error {
	q := url.Values{}
	body := map[string]any{"apiVersion": "v1", "kind": "DeleteOptions"}
	switch s.src.IntN(6) {
	case 0:
		body["propagationPolicy"] = "Foreground"
	case 1:
		body["propagationPolicy"] = "Orphan"
	case 2:
		body["gracePeriodSeconds"] = int64(s.src.IntN(3))
	case 3:
		body["preconditions"] = map[string]any{"uid": "0f1c4f0a-5f0e-4f6c-9f8d-0a1b2c3d4e5f"}
	case 4:
		q.Set("dryRun", "All")
	}
	_, err := s.write(ctx, &Request{Method: http.MethodDelete, Path: s.kind.path(), Name: s.name, Query: q, Type: "application/json", Body: body, Purpose: "delete"})
	return err
}

// clean removes the object where it may exist. Nothing of it is compared.
func (s *script) clean(ctx context.Context) {
	if !s.kind.can("delete") {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	created := s.exchanges
	if len(created) == 0 {
		return
	}
	done := make(chan struct{})
	go func() {
		s.remove(ctx, s.here, s.normalHere, created[0].Here)
		close(done)
	}()
	s.remove(ctx, s.there, s.normalThere, created[0].There)
	<-done
}

func (s *script) remove(ctx context.Context, c *Client, n *answer.Normalizer, created *answer.Side) {
	name := answer.Name(created.Object())
	if !created.Accepted() || name == "" || s.exchanges[0].Request.Query.Has("dryRun") {
		return
	}
	r := &Request{Method: http.MethodDelete, Path: s.kind.path(), Name: name, Query: url.Values{"gracePeriodSeconds": {"0"}, "propagationPolicy": {"Background"}}}
	a, err := c.do(ctx, r, n)
	if err != nil || !a.Accepted() {
		return
	}
	meta, _ := a.Object()["metadata"].(map[string]any)
	if list, _ := meta["finalizers"].([]any); len(list) > 0 {
		_, _ = c.do(ctx, &Request{
			Method: http.MethodPatch, Path: s.kind.path(), Name: name, Type: "application/merge-patch+json",
			Body: map[string]any{"metadata": map[string]any{"finalizers": nil}},
		}, n)
	}
}

// misses returns what the exchanges have found; what an earlier request of the script has found already is left out.
func (s *script) misses() []answer.Miss {
	var out []answer.Miss
	seen := map[string]bool{}
	for _, x := range s.exchanges {
		var now []string
		for _, m := range x.Outcome.Misses {
			key := m.What + " " + m.Rule
			if seen[key] || slices.Contains(now, key) {
				continue
			}
			now = append(now, key)
			m.Rule = scope(x.Request, m.What) + m.Rule
			out = append(out, m)
		}
		for _, key := range now {
			seen[key] = true
		}
	}
	return out
}

// scope is the part of a rule that says which request it is about. All requests validate alike, so most refusals need none.
func scope(r *Request, what string) string {
	switch {
	case r.Sub != "":
		return r.Sub + ": "
	case r.Purpose == "delete", what == answer.StoredMiss && r.Purpose != "create" && r.Purpose != "create by apply":
		return r.Purpose + ": "
	}
	return ""
}
