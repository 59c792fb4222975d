package customresource

import (
	"context"
	"slices"
	"sync"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// writes reports whether requests with a verb store objects. A deletion does where
// there are finalizers.
func writes(verb string) bool {
	switch verb {
	case "create", "update", "patch", "delete", "deletecollection":
		return true
	}
	return false
}

// requirement is the condition for storing an object: its CRD has not changed since the
// request began. A client may send its request slowly, and the replica may be paused at
// any moment, so only a transaction in etcd can check it.
func (s *Server) requirement(e *catalog.Entry) *store.Requirement {
	key, from := s.options.Backend.Key(catalog.Key+"/"+e.Name), s.options.Catalog
	if e.Loan != nil {
		key, from = e.Loan.Key, e.Loan.From
	}
	if key == "" { // it is built in
		return nil
	}
	r := &store.Requirement{
		Key:      key,
		Revision: int64(e.Revision),
		Changed: func(ctx context.Context, now int64) (int64, error) {
			if err := from.WaitFor(ctx, uint64(now)); err != nil {
				return 0, err
			}
			latest := from.Get(e.Name)
			if now == 0 || latest == nil || !interchangeable(e, latest) {
				return 0, store.NothingWritten("the CustomResourceDefinition " + e.Name + " has changed since this request began")
			}
			return int64(latest.Revision), nil
		},
	}
	if e.Loan != nil { // the CRD of the other tenant does not change when it is no longer lent
		r.Bond, r.BondRevision = e.Loan.Note, e.Loan.NoteRevision
		r.Unbound = store.NothingWritten(e.Name + " is no longer bound as it was when this request began")
	}
	return r
}

// interchangeable reports whether two revisions of a CRD store the same bytes for an
// object. The status of a CRD changes more often than its spec.
func interchangeable(a, b *catalog.Entry) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.SpecHash == b.SpecHash && a.StorageVersion == b.StorageVersion &&
		a.Deleting == b.Deleting && a.Terminating == b.Terminating && a.Accepted.Equal(&b.Accepted)
}

// pending counts operations under way. wait does not wait for operations that begin
// after the call.
type pending struct {
	mu     sync.Mutex
	open   *batch
	sealed []*batch
}

// batch is the operations that have begun between two calls of wait.
type batch struct {
	n    int
	over chan struct{} // closed when it is sealed and nothing of it is under way
}

// begin notes that something is under way until the function is called.
func (p *pending) begin() (end func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = &batch{over: make(chan struct{})}
	}
	b := p.open
	b.n++
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if b.n--; b.n > 0 {
			return
		}
		if b == p.open {
			p.open = nil // no call waits for it
			return
		}
		p.sealed = slices.DeleteFunc(p.sealed, func(other *batch) bool { return other == b })
		close(b.over)
	}
}

// wait returns when all that had begun before the call has ended.
func (p *pending) wait(ctx context.Context) error {
	p.mu.Lock()
	if p.open != nil {
		p.sealed = append(p.sealed, p.open)
		p.open = nil
	}
	waiting := slices.Clone(p.sealed)
	p.mu.Unlock()
	for _, b := range waiting {
		select {
		case <-b.over:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
