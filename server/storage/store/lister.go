package store

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"
)

// A lister has the objects of a watch cache in the order of their keys, and serves lists
// at the cost of what they return. The cacher of k8s.io/apiserver has such an order, too,
// and does not export it: for each page it collects all objects from the beginning
// of the page to the end of the list.
//
// Both have the same objects, keys and attributes, so that a lister takes about 60 bytes
// for an object:
//
//	etcd ──▶ feed ──▶ lister ──▶ cacher: watches, gets
//	                    │  ▲        │
//	         lists ◀────┘  └────────┘ asks for the key and the attributes of an object
//
// A page that has a continue token pins the state that it was read from, for the pages
// that follow. Other states of the past are left to etcd.
type lister struct {
	spec      *Spec
	versioner storage.Versioner

	mu       sync.Mutex
	contents *contents     // nil until it is filled
	revision uint64        // up to which the contents have all changes
	changed  uint64        // the revision of the last change: the contents are those of all revisions since
	changes  uint64        // how many there have been
	stream   int           // numbers the watches that feed it; only the last one does
	advanced chan struct{} // closed when the revision is another; nil if no request waits
	pins     []*pin
	replaced int64 // bytes of objects, and of nodes of the trees, that only pins may have

	audience audience

	filling *filling
	last    *entry // whose key the cacher has asked for
}

// filling is what replaces the contents when it is complete: the cacher asks once for the key
// and then for the attributes of each object that it is filled with.
type filling struct {
	contents *contents
	revision uint64
	missing  int  // objects that the cacher has not asked for
	listed   bool // the last page of the list has been read
}

// A view is what there was at a revision.
type view struct {
	contents
	revision uint64 // that the list has
	changed  uint64 // of the last change before
	changes  uint64 // those of the lister
}

// A pin keeps a view for the pages that follow.
type pin struct {
	view
	until    uint64 // the last revision at which the objects are the same
	replaced int64  // that of the lister when it was pinned
	used     time.Time
}

const (
	// maxPins is how many states of the past a lister keeps. They share all objects that
	// are the same.
	maxPins = 64
	// pinnedBytes is how many bytes of objects may be replaced since a state was pinned, and of
	// nodes of the trees be copied: it keeps at most that much alive. Pages that follow are read
	// from etcd.
	pinnedBytes = 64 << 20
	// pinnedTime is how long a state is kept for the next page. etcd has forgotten it by
	// then, unless the server runs with another --etcd-compaction-interval.
	pinnedTime = 5 * time.Minute
)

// openEnd means that there has been no change since.
const openEnd = ^uint64(0)

func newLister(spec *Spec, versioner storage.Versioner) *lister {
	return &lister{spec: spec, versioner: versioner, audience: newAudience(spec.Indexes)}
}

// fill is called with each page of the list that fills the cacher.
func (l *lister) fill(continued bool, list runtime.Object) {
	l.mu.Lock()
	defer l.mu.Unlock()
	about, err := meta.ListAccessor(list)
	if err != nil || continued && l.filling == nil {
		l.filling = nil
		return
	}
	revision, err := l.versioner.ParseResourceVersion(about.GetResourceVersion())
	if err != nil {
		l.filling = nil
		return
	}
	if !continued {
		l.filling = &filling{contents: newContents(l.spec.Indexes)}
	}
	f := l.filling
	f.revision, f.listed = revision, about.GetContinue() == ""
	f.missing += meta.LenList(list)
	l.last = nil
	l.publish()
}

// publish replaces the contents if the new ones are complete. Watches from before feed them
// no more: they may be behind.
func (l *lister) publish() {
	f := l.filling
	if !f.listed || f.missing > 0 {
		return
	}
	l.contents, l.changed, l.pins, l.filling, l.last = f.contents, f.revision, nil, nil, nil
	l.changes++
	l.stream++
	l.audience.begin(f.revision)
	l.advance(f.revision)
}

// advance notes up to which revision the contents have all changes.
func (l *lister) advance(revision uint64) {
	l.revision = revision
	if l.advanced != nil {
		close(l.advanced)
		l.advanced = nil
	}
}

// key is the function that the cacher has keys from. It asks for the key of an object up
// to three times.
func (l *lister) key(obj runtime.Object) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil && l.last.object == obj {
		return l.last.key, nil
	}
	key, err := l.spec.KeyFunc(obj)
	if err != nil {
		return "", err
	}
	l.last = nil
	if l.filling != nil {
		l.last = &entry{key: key, object: obj}
	} else if l.contents != nil {
		if e, ok := l.contents.tree.Get(&entry{key: key}); ok && e.object == obj {
			l.last, key = e, e.key // the one that was computed is garbage
		}
	}
	return key, nil
}

// attributes is the function that the cacher has labels and fields from.
func (l *lister) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.last
	if e == nil || e.object != obj {
		return l.spec.AttrFunc(obj)
	}
	if l.filling == nil {
		return e.labels, e.fields, nil
	}
	var err error
	if e.labels, e.fields, err = l.spec.AttrFunc(obj); err != nil {
		l.filling = nil // the cacher fails, too, and is filled again
		return nil, nil, err
	}
	l.last = nil
	l.filling.contents.set(e)
	l.filling.missing--
	l.publish()
	return e.labels, e.fields, nil
}

// watched begins a watch that feeds the lister, and returns its number. If the watch would leave
// out changes, the contents are not used until it is filled again.
func (l *lister) watched(from string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stream++
	if revision, err := l.versioner.ParseResourceVersion(from); err != nil || revision > l.revision {
		l.drop()
	}
	return l.stream
}

// drop forgets the contents until they are filled again.
func (l *lister) drop() {
	l.contents = nil
	l.audience.begin(openEnd)
}

// apply changes the contents as an event of a watch says. A watch that has begun again may
// bring events that have been applied. Those of its last revision are harmless, and necessary if
// the watch ended among them: a transaction may have changed several objects.
func (l *lister) apply(stream int, event watch.Event) {
	obj := event.Object
	if timed, ok := obj.(storage.WatchEventWithRecordTime); ok {
		obj = timed.Unwrap()
	}
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
	default:
		return
	}
	revision, err := l.versioner.ObjectResourceVersion(obj)
	e := &entry{object: obj}
	if err == nil && event.Type != watch.Bookmark {
		if e.key, err = l.spec.KeyFunc(obj); err == nil && event.Type != watch.Deleted {
			e.labels, e.fields, err = l.spec.AttrFunc(obj)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case stream != l.stream || l.contents == nil:
	case err != nil: // the cacher leaves the object out: lists in pages are left to etcd
		l.drop()
	case revision < l.revision:
	case event.Type == watch.Bookmark:
		l.advance(revision)
	default:
		l.change(e, event.Type == watch.Deleted, revision)
	}
}

// change changes one object. The caller holds the lock.
func (l *lister) change(e *entry, deleted bool, revision uint64) {
	l.settle(revision)
	copied := l.contents.copied()
	var before *entry
	var had bool
	if deleted {
		before, had = l.contents.delete(e)
	} else {
		before, had = l.contents.set(e)
	}
	if len(l.pins) > 0 {
		l.replaced += l.contents.copied() - copied
		if had {
			var size sizer
			l.replaced += size.of(before.object)
		}
		l.unpin(time.Now())
	}
	l.tell(before, e, deleted, revision)
	l.changed = revision
	l.changes++
	l.advance(revision)
}

// tell tells the followers of a change, unless it has been applied before.
func (l *lister) tell(before, after *entry, deleted bool, revision uint64) {
	if before != nil && !deleted {
		if was, err := l.versioner.ObjectResourceVersion(before.object); err == nil && was == revision {
			return
		}
	}
	if deleted {
		after = nil
	}
	if before != nil || after != nil {
		l.audience.add(l.contents.indexes, change{before: before, after: after, revision: revision})
	}
}

// settle ends the time of a pinned state that is the newest: there is a change.
func (l *lister) settle(revision uint64) {
	kept := l.pins[:0]
	for _, p := range l.pins {
		if p.until == openEnd {
			if revision <= p.changed {
				continue // it lacks some of the changes of its revision
			}
			p.until = revision - 1
		}
		kept = append(kept, p)
	}
	clear(l.pins[len(kept):])
	l.pins = kept
}

// unpin drops the states that keep too much alive, or have not been used for long.
func (l *lister) unpin(now time.Time) {
	kept := l.pins[:0]
	for _, p := range l.pins {
		if l.replaced-p.replaced <= pinnedBytes && now.Sub(p.used) <= pinnedTime {
			kept = append(kept, p)
		}
	}
	if over := len(kept) - maxPins; over > 0 {
		slices.SortStableFunc(kept, func(a, b *pin) int { return a.used.Compare(b.used) })
		kept = append(kept[:0], kept[over:]...)
	}
	clear(l.pins[len(kept):])
	l.pins = kept
}

// expire drops what has not been used for long.
func (l *lister) expire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unpin(time.Now())
}

// keep pins a view: there are pages to follow.
func (l *lister) keep(v *view) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	for _, p := range l.pins {
		if p.changed <= v.revision && v.revision <= p.until {
			p.used = now
			return
		}
	}
	p := &pin{view: *v, until: v.revision, replaced: l.replaced, used: now}
	switch {
	case l.contents == nil:
	case l.changes == v.changes:
		p.until = openEnd
	case l.changed == v.changed:
		return // it lacks some of the changes of its revision
	}
	l.pins = append(l.pins, p)
	l.unpin(now)
}

// current returns what there is now. The caller holds the lock.
func (l *lister) current() *view {
	return &view{contents: l.contents.snapshot(), revision: l.revision, changed: l.changed, changes: l.changes}
}

// past returns what there was at a revision that is not in the future, nil if that is
// not known.
func (l *lister) past(revision uint64) *view {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.contents != nil && revision >= l.changed && revision <= l.revision {
		v := l.current()
		v.revision = revision
		return v
	}
	for _, p := range l.pins {
		if p.changed <= revision && revision <= p.until {
			p.used = time.Now()
			return &view{contents: p.contents, revision: revision, changed: p.changed, changes: p.changes}
		}
	}
	return nil
}

// continued reports whether a page is not the first one of its list.
func continued(opts storage.ListOptions) bool { return opts.Predicate.Continue != "" }

// isExact reports whether a list is that of one revision, given by the client.
func isExact(opts storage.ListOptions) bool {
	return opts.ResourceVersionMatch == metav1.ResourceVersionMatchExact ||
		opts.ResourceVersionMatch == "" && opts.Predicate.Limit > 0 && opts.ResourceVersion != "" && opts.ResourceVersion != "0"
}
