package store

import (
	"cmp"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/internal/object"
)

const (
	// DefaultMaxBehind is how many bytes of events a watcher may be behind.
	DefaultMaxBehind = 32 << 20
	// DefaultMaxBehindSum is how many bytes of events all watchers may be behind.
	DefaultMaxBehindSum = 128 << 20

	// reportStep is how much more or less must be behind before the sum of all
	// watches hears of it. Watchers of small events that keep up never touch it.
	reportStep = 64 << 10
	// relieveEvery is how often the watches are looked through, at most.
	relieveEvery = 100 * time.Millisecond

	// eventOverhead is what an event takes in addition to the bytes of its object.
	eventOverhead = 512
	// unknownSize is taken for objects that do not tell their size.
	unknownSize = 4 << 10
)

// shared is what the watchers of one cache have in common: its events.
type shared struct {
	passed atomic.Int64  // bytes of the events so far
	latest atomic.Uint64 // the revision of the last of them
}

// limits are how far the watchers of a process may be behind. sum may be more
// than there is: an event that many keep counts for each of them. relieve counts
// it once.
type limits struct {
	perWatch, total int64
	sum             atomic.Int64

	mu       sync.Mutex
	watches  map[*bufferedWatch]struct{}
	relieved time.Time
}

func newLimits(perWatch, total int64) *limits {
	return &limits{
		perWatch: cmp.Or(perWatch, DefaultMaxBehind), total: cmp.Or(total, DefaultMaxBehindSum),
		watches: map[*bufferedWatch]struct{}{},
	}
}

func (l *limits) add(r *bufferedWatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watches[r] = struct{}{}
}

// remove is called by the goroutine of the watch, which reports no more.
func (l *limits) remove(r *bufferedWatch) {
	l.sum.Add(-r.reported)
	r.bytes.Store(0)
	r.events.Store(0)
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.watches, r)
}

// relieve drops what the watches keep that are furthest behind, until three
// quarters of the limit are not exceeded: those of the parts of etcd, which are tenants, that keep
// more than their share. Others lose nothing.
func (l *limits) relieve() {
	if !l.mu.TryLock() {
		return // another goroutine does it, or a watch begins or ends: the next report comes
	}
	defer l.mu.Unlock()
	if time.Since(l.relieved) < relieveEvery {
		return
	}
	l.relieved = time.Now()
	parts, total := l.parts()
	if total <= l.total {
		return
	}
	share := shareOf(parts, l.total*3/4)
	for _, p := range parts {
		p.cut(share)
	}
}

// A part is what the watchers of a part of etcd keep.
type part struct {
	holders []*holder // those first that keep most
	total   int64
}

// cut drops what watches keep until no more than a share is left.
func (p *part) cut(share int64) {
	for _, h := range p.holders {
		for i, r := range h.watches {
			if p.total <= share {
				return
			}
			if !r.cutting {
				r.cutting = true
				close(r.cut)
			}
			p.total -= h.pinned(i) - h.pinned(i+1)
		}
	}
}

// shareOf is the most that each part may keep if all together keep no more than a limit. What some leave,
// the others have.
func shareOf(parts []*part, limit int64) int64 {
	sorted := slices.SortedFunc(slices.Values(parts), func(a, b *part) int { return cmp.Compare(a.total, b.total) })
	share := limit
	for i, p := range sorted {
		share = limit / int64(len(sorted)-i)
		if p.total > share {
			break
		}
		limit -= p.total
	}
	return share
}

// A holder is what keeps the same events: the watchers of one cache, or a single
// watcher without one.
type holder struct {
	watches []*bufferedWatch // by what they keep, most first
	sums    []int64          // of what watches[i:] keep
	spans   []int64          // the longest of watches[i:]
}

// pinned estimates what the watches from the i-th on keep alive, from above.
func (h *holder) pinned(i int) int64 { return min(h.sums[i], h.spans[i]) }

// parts returns who keeps events, and what all of them keep. The caller holds the lock.
func (l *limits) parts() (all []*part, total int64) {
	byCache, byPart := map[*shared]*holder{}, map[*Backend]*part{}
	for r := range l.watches {
		if r.bytes.Load() == 0 {
			continue
		}
		h := byCache[r.shared]
		if h == nil || r.shared == nil {
			h = &holder{}
			byCache[r.shared] = h
			p := byPart[r.of]
			if p == nil {
				p = &part{}
				byPart[r.of] = p
				all = append(all, p)
			}
			p.holders = append(p.holders, h)
		}
		h.watches = append(h.watches, r)
	}
	for _, p := range all {
		for _, h := range p.holders {
			h.measure()
			p.total += h.pinned(0)
		}
		slices.SortFunc(p.holders, func(a, b *holder) int { return cmp.Compare(b.pinned(0), a.pinned(0)) })
		total += p.total
	}
	return all, total
}

// measure sorts the watches and sums up what they keep.
func (h *holder) measure() {
	type measured struct {
		*bufferedWatch
		bytes int64
	}
	sorted := make([]measured, len(h.watches))
	for i, r := range h.watches {
		sorted[i] = measured{r, r.bytes.Load()} // once: it changes
	}
	slices.SortFunc(sorted, func(a, b measured) int { return cmp.Compare(b.bytes, a.bytes) })
	h.sums, h.spans = make([]int64, len(sorted)+1), make([]int64, len(sorted)+1)
	for i := len(sorted) - 1; i >= 0; i-- {
		h.watches[i] = sorted[i].bufferedWatch
		h.sums[i] = h.sums[i+1] + sorted[i].bytes
		h.spans[i] = max(h.spans[i+1], sorted[i].span())
	}
}

// lag says how far watchers are behind.
type lag struct {
	bytes, maxBytes, events, maxEvents int64
}

// lag looks through all watches. An event counts for each watcher that is behind;
// in bytes, it counts once for all watchers of its cache.
func (l *limits) lag() (sum lag) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, sum.bytes = l.parts()
	for r := range l.watches {
		events := r.events.Load()
		sum.events += events
		sum.maxEvents = max(sum.maxEvents, events)
		sum.maxBytes = max(sum.maxBytes, r.bytes.Load())
	}
	return sum
}

// sizer tells how much memory the object of an event takes. It allocates nothing.
type sizer struct{ got int }

// of returns the size of an object, as far as it can be told.
func (s *sizer) of(obj runtime.Object) int64 {
	if obj == nil {
		return eventOverhead
	}
	// An object is its own kind, also within what a cache wraps it in.
	if o, ok := obj.GetObjectKind().(*object.Object); ok {
		return int64(o.Size()) + eventOverhead
	}
	s.got = unknownSize
	switch o := obj.(type) {
	case interface{ Size() int }: // built-in types have protobuf's
		s.got = o.Size()
	case runtime.CacheableObject:
		// The answer is kept beside the encodings of the object, for all watchers.
		if err := o.CacheEncode(sizeEncoding, encodeSize, s); err != nil {
			s.got = unknownSize
		}
	}
	return int64(s.got) + eventOverhead
}

const sizeEncoding runtime.Identifier = "espalier.dev/size"

// encodeSize writes as many bytes as it takes to write the size of an object.
func encodeSize(obj runtime.Object, w io.Writer) error {
	size := unknownSize
	if o, ok := obj.(interface{ Size() int }); ok {
		size = o.Size()
	}
	_, err := w.Write([]byte{byte(size >> 24), byte(size >> 16), byte(size >> 8), byte(size)})
	return err
}

// Write implements io.Writer, for what encodeSize has written.
func (s *sizer) Write(p []byte) (int, error) {
	s.got = 0
	for _, b := range p {
		s.got = s.got<<8 | int(b)
	}
	return len(p), nil
}
