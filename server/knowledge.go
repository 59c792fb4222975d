package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// knowledge is how well this replica knows the CRDs, and what that means for
// requests.
//
//	the lease holds                ▶ the acknowledgement of a change waits for this replica: it knows them
//	it may have run out            ▶ etcd is asked, for every request, whether there are changes
//	and etcd does not answer       ▶ discovery goes on
//	  and no other replica is known ▶ so do reads and watches that may be stale
//	                                ▶ all else is refused, with the reason
//
// With other replicas a stale read is refused although the client allows it: the
// others may have acknowledged a change of the schema that this one does not know.
type knowledge struct {
	index   *catalog.Catalog
	adopted func(context.Context) error // waits until all watches follow what the catalog knows
	member  atomic.Pointer[replica.Member]

	silent   atomic.Int64 // since when etcd does not answer, for people to read, in nanoseconds; 0 if it does
	asked    atomic.Int64 // when it was last asked in vain, by replica.Clock
	verified atomic.Int64 // when it was last asked with success, by replica.Clock
	answered atomic.Int64 // when it last answered, by replica.Clock
	asking   atomic.Bool  // in the background
}

const (
	// patience is how long etcd is not asked again after it did not answer.
	patience = 300 * time.Millisecond
	// fresh is how long an answer is good for events of watches, whose replica has no
	// lease although etcd answers: one that is full. CRDs hardly change then.
	fresh = 200 * time.Millisecond
)

// errUnread is that the CRDs have not been read yet.
var errUnread = errors.New("the CRDs have not been read from etcd yet")

// silentError is that etcd does not answer.
type silentError struct{ since time.Time }

// Error implements error.
func (e *silentError) Error() string {
	return fmt.Sprintf("etcd has not answered since %s (%v)", e.since.UTC().Format(time.RFC3339), time.Since(e.since).Round(time.Second))
}

// check returns nil if this replica knows all changes of CRDs that were acknowledged
// before the call, errUnread or a *silentError.
func (k *knowledge) check(ctx context.Context) error {
	if !k.index.HasSynced() {
		return errUnread
	}
	if m := k.member.Load(); m != nil && m.Current() {
		return nil
	}
	began, now := replica.Clock(), time.Now().UnixNano()
	if since := k.silent.Load(); since != 0 && int64(began)-k.asked.Load() < int64(patience) {
		return &silentError{time.Unix(0, since)}
	}
	if err := k.catchUp(ctx); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if k.answered.Load() < int64(began) { // no other request has had an answer since
			k.asked.Store(int64(replica.Clock()))
			k.silent.CompareAndSwap(0, now)
		}
		return &silentError{time.Unix(0, cmp.Or(k.silent.Load(), now))}
	}
	return nil
}

// catchUp returns when this replica serves, and sends, all changes of CRDs that were made
// before the call. Success resets silent, whether a request or the renewal of this replica's
// lease called it: the lease may be renewed long before the next request comes.
func (k *knowledge) catchUp(ctx context.Context) error {
	began := replica.Clock()
	if err := k.index.CatchUp(ctx); err != nil {
		return err
	}
	if err := k.adopted(ctx); err != nil {
		return err
	}
	k.verified.Store(int64(began))
	k.answered.Store(int64(replica.Clock()))
	k.silent.Store(0)
	return nil
}

// stale reports whether to serve what is known though it may be old.
func (k *knowledge) stale() bool {
	m := k.member.Load()
	return m != nil && m.Alone() && k.silent.Load() != 0
}

// current reports, without waiting, whether events may be sent by the schemas that
// this replica knows.
func (k *knowledge) current() bool {
	m := k.member.Load()
	if m == nil {
		return false
	}
	if m.Current() || k.stale() {
		return true
	}
	if k.asking.CompareAndSwap(false, true) {
		go func() {
			defer k.asking.Store(false)
			_ = k.check(context.Background()) // what it finds is remembered
		}()
	}
	verified := k.verified.Load()
	return verified != 0 && int64(replica.Clock())-verified < int64(fresh)
}

// unread is why this replica is not ready.
func (k *knowledge) unread() error {
	if !k.index.HasSynced() {
		return errUnread
	}
	return nil
}

// discoverable serves what is only about which CRDs there are, as well as it is known.
func (k *knowledge) discoverable(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := k.check(req.Context()); errors.Is(err, errUnread) {
			notYet(w, req, err.Error())
			return
		}
		handler.ServeHTTP(w, req)
	})
}

// read serves the CRDs themselves: what decides about them has to know all of them.
func (k *knowledge) read(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if err := k.unread(); err != nil {
			notYet(w, req, err.Error())
			return
		}
		handler.ServeHTTP(w, req)
	})
}

// known serves objects by the schemas of their CRDs.
func (k *knowledge) known(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		err := k.check(req.Context())
		info, ok := request.RequestInfoFrom(req.Context())
		switch {
		case err == nil, ok && mayBeStale(req, info) && k.stale():
			handler.ServeHTTP(w, req)
		case ok && isRead(info.Verb) || errors.Is(err, errUnread):
			notYet(w, req, err.Error())
		default:
			reply.Error(w, req, store.NothingWritten(err.Error()))
		}
	})
}

// isRead reports whether a verb changes nothing.
func isRead(verb string) bool { return verb == "get" || verb == "list" || verb == "watch" }

// mayBeStale reports whether a client has asked for whatever is known.
func mayBeStale(req *http.Request, info *request.RequestInfo) bool {
	if info.Verb == "watch" {
		return true
	}
	query := req.URL.Query()
	return isRead(info.Verb) && query.Get("resourceVersion") == "0" && query.Get("resourceVersionMatch") != "Exact" && query.Get("continue") == ""
}
