package store

import (
	"context"
	"strings"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// A valueWatch is a watch with a selector for one value of an index. The lister has events for
// the watches of the values that an object had and has, whatever other watches there are, where
// the cacher asks all watches whether they want an event. The events that it begins with
// are those objects that the index has, as they were when it began:
//
//	feed ──▶ lister ── value before, value after ──▶ valueWatch ──▶ bufferedWatch
//
// The lister remembers its last changes, for watches that go on after a list. Watches that begin
// before those, and all others, are the cacher's.
type valueWatch struct {
	lister    *lister
	index     int // among those of the contents
	value     string
	prefix    string // what the keys of its objects begin with
	predicate storage.SelectionPredicate
	mark      bool // a bookmark ends the events that it begins with
	out       chan watch.Event
	wake      chan struct{} // has room for one: there is more behind, or nothing comes
	done      chan struct{}
	stop      func()

	mu     sync.Mutex
	behind queue
	over   bool // nothing comes: the contents are filled again, or too much is behind
	size   sizer
}

const (
	// bookmarkPeriod is how often a watch that wants bookmarks gets one, and bookmarkAhead
	// how long before its end: k8s.io/apiserver's.
	bookmarkPeriod = time.Minute
	bookmarkAhead  = 2 * time.Second
	// valueBytes is how many bytes of events a valueWatch keeps while it sends those that it begins
	// with: the watch behind it takes all others at once.
	valueBytes = 16 << 20
	// pastChanges and pastBytes bound the changes that a lister remembers. The history of the
	// cacher has most of their objects, too.
	pastChanges = 1024
	pastBytes   = 16 << 20
)

// change is what a lister remembers of one. One of the entries may be nil.
type change struct {
	before, after *entry
	revision      uint64
	size          int64
}

// audience are the watches that want to know of changes. It has nothing if there are no indexes.
type audience struct {
	watches []map[string]map[*valueWatch]bool // by the index and then by its value
	changes []change
	bytes   int64  // of changes
	since   uint64 // changes has all that came after this revision
}

func newAudience(indexes []Index) audience {
	return audience{watches: make([]map[string]map[*valueWatch]bool, len(indexes))}
}

// begin is for contents that were filled at a revision: what watches know may not lead to them.
func (a *audience) begin(revision uint64) {
	for i, values := range a.watches {
		for _, watches := range values {
			for w := range watches {
				w.finish()
			}
		}
		a.watches[i] = nil
	}
	a.changes, a.bytes, a.since = nil, 0, revision
}

// add remembers a change and tells the watches that want to know.
func (a *audience) add(indexes []index, c change) {
	if len(a.watches) == 0 {
		return
	}
	var size sizer
	for _, e := range []*entry{c.before, c.after} {
		if e != nil {
			c.size += size.of(e.object)
		}
	}
	a.changes = append(a.changes, c)
	a.bytes += c.size
	drop := 0
	for ; len(a.changes)-drop > pastChanges || a.bytes > pastBytes && drop < len(a.changes); drop++ {
		a.bytes -= a.changes[drop].size
		a.since = a.changes[drop].revision
		a.changes[drop] = change{} // for the garbage collector
	}
	a.changes = a.changes[drop:] // append copies the rest when there is no more room
	t := &told{change: c}
	for n, values := range a.watches {
		if len(values) == 0 {
			continue
		}
		i := &indexes[n]
		if c.before != nil {
			for value := range i.values(c.before) {
				for w := range values[value] {
					w.take(t)
				}
			}
		}
		if c.after != nil {
			for value := range i.values(c.after) {
				if c.before != nil && i.has(c.before, value) {
					continue
				}
				for w := range values[value] {
					w.take(t)
				}
			}
		}
	}
}

func (a *audience) join(w *valueWatch) {
	if a.watches[w.index] == nil {
		a.watches[w.index] = map[string]map[*valueWatch]bool{}
	}
	if a.watches[w.index][w.value] == nil {
		a.watches[w.index][w.value] = map[*valueWatch]bool{}
	}
	a.watches[w.index][w.value][w] = true
}

func (a *audience) leave(w *valueWatch) {
	values := a.watches[w.index]
	if delete(values[w.value], w); len(values[w.value]) == 0 {
		delete(values, w.value)
	}
}

// valueWatch begins a watch that goes by an index. There is none if that is the cacher's matter, which also
// finds out what is wrong with a request.
func (l *onDemandCacher) valueWatch(ctx context.Context, a *active, key string, opts storage.ListOptions) *valueWatch {
	w := &valueWatch{
		lister: a.lister, index: -1, predicate: opts.Predicate,
		out: make(chan watch.Event, 10), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	w.stop = sync.OnceFunc(func() { close(w.done) })
	for n, i := range l.spec.Indexes {
		if value, ok := (&index{Index: i}).wanted(&opts.Predicate); ok {
			w.index, w.value = n, value
			break
		}
	}
	if w.index < 0 || !l.listable(a, opts) {
		return nil
	}
	var err error
	if w.prefix, err = storage.PrepareKey(l.spec.ResourcePrefix, key, true); err != nil {
		return nil
	}
	from, err := l.Versioner().ParseResourceVersion(opts.ResourceVersion)
	if err != nil {
		return nil
	}
	switch listing := opts.SendInitialEvents; {
	case listing == nil:
	case !*listing && from == 0:
		return nil // from the newest revision
	case *listing:
		if opts.ResourceVersion == "" {
			from, err = l.backend.barrier.revision(ctx, l.backend, l.spec.Resource)
		}
		if err == nil {
			_, err = a.lister.fresh(ctx, a.feed, from)
		}
		if err != nil {
			return nil
		}
		from, w.mark = 0, opts.Predicate.AllowWatchBookmarks
	}
	if !a.lister.joined(ctx, w, from) {
		return nil
	}
	return w
}

// joined begins a watch after a revision, or with all objects if that is 0, and reports whether it could.
func (l *lister) joined(ctx context.Context, w *valueWatch, after uint64) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contents == nil || after > l.revision || after > 0 && after < l.audience.since {
		return false
	}
	var initial *view
	if after == 0 {
		initial = l.current()
	} else {
		for _, c := range l.audience.changes {
			if c.revision > after {
				w.take(&told{change: c})
			}
		}
	}
	l.audience.join(w)
	go w.run(ctx, initial)
	return true
}

// selects reports whether the watch is for an object.
func (w *valueWatch) selects(e *entry) bool {
	return e != nil && strings.HasPrefix(e.key, w.prefix) && w.predicate.MatchesObjectAttributes(e.labels, e.fields)
}

// take is called with the changes of objects that have, or had, the value. The caller holds the lock of the lister.
func (w *valueWatch) take(t *told) {
	before, after := w.selects(t.before), w.selects(t.after)
	switch {
	case after && before:
		w.add(watch.Event{Type: watch.Modified, Object: t.object()})
	case after:
		w.add(watch.Event{Type: watch.Added, Object: t.object()})
	case before:
		object, err := t.deleted(w.lister.versioner)
		if err != nil {
			w.finish()
			return
		}
		w.add(watch.Event{Type: watch.Deleted, Object: object})
	}
}

func (w *valueWatch) add(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.over {
		return
	}
	w.behind.push(kept{Event: event, size: w.size.of(event.Object)})
	w.over = w.behind.bytes > valueBytes
	w.rouse()
}

// finish ends the watch after what is behind.
func (w *valueWatch) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.over = true
	w.rouse()
}

func (w *valueWatch) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Stop implements watch.Interface.
func (w *valueWatch) Stop() { w.stop() }

// ResultChan implements watch.Interface.
func (w *valueWatch) ResultChan() <-chan watch.Event { return w.out }

func (w *valueWatch) run(ctx context.Context, initial *view) {
	defer close(w.out)
	defer w.leave()
	defer context.AfterFunc(ctx, w.stop)()
	if initial != nil && !w.begin(initial) {
		return
	}
	timer := time.NewTimer(bookmarkAfter(ctx))
	defer timer.Stop()
	for {
		w.mu.Lock()
		var next watch.Event
		some, over := w.behind.len() > 0, w.over
		if some {
			next = w.behind.first().Event
			w.behind.pop()
		}
		w.mu.Unlock()
		switch {
		case some:
			if !w.send(next) {
				return
			}
			continue
		case over:
			return
		}
		select {
		case <-w.wake:
		case <-timer.C:
			w.bookmark()
			timer.Reset(bookmarkAfter(ctx))
		case <-w.done:
			return
		}
	}
}

func (w *valueWatch) send(event watch.Event) bool {
	select {
	case w.out <- event:
		return true
	case <-w.done:
		return false
	}
}

func (w *valueWatch) leave() {
	w.lister.mu.Lock()
	defer w.lister.mu.Unlock()
	w.lister.audience.leave(w)
}

// begin sends what there was when the watch began, and says where that ends.
func (w *valueWatch) begin(initial *view) bool {
	all, _ := initial.candidates(w.prefix, clientv3.GetPrefixRangeEnd(w.prefix), &w.predicate)
	for e := range all {
		if w.selects(e) && !w.send(watch.Event{Type: watch.Added, Object: e.object.DeepCopyObject()}) {
			return false
		}
	}
	if !w.mark {
		return true
	}
	end := w.lister.mark(initial.revision)
	return end != nil && storage.AnnotateInitialEventsEndBookmark(end) == nil && w.send(watch.Event{Type: watch.Bookmark, Object: end})
}

// bookmark adds one, after all events of its revision.
func (w *valueWatch) bookmark() {
	if !w.predicate.AllowWatchBookmarks {
		return
	}
	l := w.lister
	l.mu.Lock()
	defer l.mu.Unlock()
	if object := l.mark(l.revision); object != nil && l.contents != nil {
		w.add(watch.Event{Type: watch.Bookmark, Object: object})
	}
}

// mark returns the object of a bookmark.
func (l *lister) mark(revision uint64) runtime.Object {
	object := l.spec.NewFunc()
	if l.versioner.UpdateObject(object, revision) != nil {
		return nil
	}
	return object
}

// bookmarkAfter returns when a watch gets its next bookmark.
func bookmarkAfter(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		if left := time.Until(end) - bookmarkAhead; left > 0 {
			return min(left, bookmarkPeriod)
		}
	}
	return bookmarkPeriod
}
