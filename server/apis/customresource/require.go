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

// requirement is what must be true of a CRD when an object is stored by it: it has not
// changed. A request may take as long as its client likes to send it, and its replica
// may be stopped at any moment: only etcd knows at the end.
func (s *Server) requirement(e *catalog.Entry) *store.Requirement {
	return &store.Requirement{
		Key:      s.options.Backend.Key(catalog.Key + "/" + e.Name),
		Revision: int64(e.Revision),
		Changed: func(ctx context.Context, now int64) (int64, error) {
			if err := s.options.Catalog.WaitFor(ctx, uint64(now)); err != nil {
				return 0, err
			}
			latest := s.options.Catalog.Get(e.Name)
			if now == 0 || latest == nil || !interchangeable(e, latest) {
				return 0, store.NothingWritten("the CustomResourceDefinition " + e.Name + " has changed since this request began")
			}
			return int64(latest.Revision), nil
		},
	}
}

// interchangeable reports whether what is stored by one state of a CRD is what is
// stored by another. Its status changes more often than its spec.
func interchangeable(a, b *catalog.Entry) bool {
	return a.UID == b.UID && a.Generation == b.Generation && a.SpecHash == b.SpecHash && a.StorageVersion == b.StorageVersion &&
		a.Deleting == b.Deleting && a.Terminating == b.Terminating && a.Accepted.Equal(&b.Accepted)
}

// pending is what is under way, and can be waited for, whatever begins meanwhile.
type pending struct {
	mu     sync.Mutex
	open   *batch
	sealed []*batch
}

// batch is what has begun between two who wait.
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
			p.open = nil // nobody waits for it
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
