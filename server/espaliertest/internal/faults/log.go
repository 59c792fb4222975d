package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// An eventLog has all events of a resource since a version, in their order.
type eventLog struct {
	kind, apiVersion string // of the objects
	base             uint64

	mu      sync.Mutex
	changed chan struct{} // closed and replaced with every event
	events  []event
	state   map[string]*entry // after the last event
	last    uint64            // version of the last event, or base
}

// An entry is a version of an object.
type entry struct {
	object
	raw    json.RawMessage
	fields map[string]any // what field selectors are about
}

// An event is a change of an object. before is nil for one that is new, after for
// one that is gone; gone is its last state then.
type event struct {
	version             uint64
	before, after, gone *entry
}

func newEventLog(list *object) *eventLog {
	version := number(list.Metadata.ResourceVersion)
	return &eventLog{
		kind: strings.TrimSuffix(list.Kind, "List"), apiVersion: list.APIVersion,
		base: version, last: version, changed: make(chan struct{}), state: map[string]*entry{},
	}
}

// parse reads an object. Items of lists have no kind.
func (l *eventLog) parse(raw json.RawMessage) (*entry, error) {
	e := &entry{raw: raw}
	if err := json.Unmarshal(raw, &e.object); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(raw, &e.fields); err != nil {
		return nil, err
	}
	if e.Kind == "" {
		e.raw = fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,%s`, l.kind, l.apiVersion, raw[1:])
	}
	return e, nil
}

// put notes an object of the first list.
func (l *eventLog) put(raw json.RawMessage) error {
	e, err := l.parse(raw)
	if err == nil {
		l.state[e.key()] = e
	}
	return err
}

// read follows the resource until the context of the server ends.
func (l *eventLog) read(s *server, r resource) {
	for s.ctx.Err() == nil {
		query := url.Values{"watch": {"true"}, "resourceVersion": {fmt.Sprint(l.position())}}
		resp, err := s.open(s.ctx, s.rt, http.MethodGet, r.collection(""), query, http.Header{"Accept": {"application/json"}}, nil)
		if err == nil {
			decoder := json.NewDecoder(resp.Body)
			for err == nil && resp.StatusCode == http.StatusOK {
				var e struct {
					Type   string
					Object json.RawMessage
				}
				if err = decoder.Decode(&e); err == nil {
					err = l.append(e.Type, e.Object)
				}
			}
			_ = resp.Body.Close()
		}
		select {
		case <-s.ctx.Done():
		case <-time.After(10 * time.Millisecond): // a server that does not answer is asked again
		}
	}
}

func (l *eventLog) append(kind string, raw json.RawMessage) error {
	if kind != "ADDED" && kind != "MODIFIED" && kind != "DELETED" {
		return fmt.Errorf("the watch has ended: %s", raw)
	}
	e, err := l.parse(raw)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	version := number(e.Metadata.ResourceVersion)
	if version <= l.last {
		return nil
	}
	one := event{version: version, before: l.state[e.key()], after: e}
	if kind == "DELETED" {
		one.after, one.gone = nil, e
		delete(l.state, e.key())
	} else {
		l.state[e.key()] = e
	}
	l.events, l.last = append(l.events, one), version
	close(l.changed)
	l.changed = make(chan struct{})
	return nil
}

func (l *eventLog) position() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// wait waits until something is so of the log, which is locked meanwhile. It gives
// up after some time: a write that no event follows is not worth a test's end.
func (l *eventLog) wait(so func() bool) {
	timeout := time.After(5 * time.Second)
	for {
		l.mu.Lock()
		ok, changed := so(), l.changed
		l.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			return
		}
	}
}

// has reports whether the log has a version of an object, or its end. It is locked.
func (l *eventLog) has(key string, o *object, deleted bool) bool {
	have := l.state[key]
	if deleted {
		return have == nil || o.Metadata.UID != "" && have.Metadata.UID != o.Metadata.UID
	}
	version := number(o.Metadata.ResourceVersion)
	return l.last >= version || have != nil && number(have.Metadata.ResourceVersion) >= version
}

// since returns the number of events up to a version, and whether the log reaches
// back to it.
func (l *eventLog) since(version uint64) (int, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.events) && l.events[n].version <= version {
		n++
	}
	return n, version >= l.base
}

// count is the number of events up to a version, which is what the trace calls a
// version by: the values of versions differ from run to run.
func (l *eventLog) count(version string) string {
	n, _ := l.since(number(version))
	return fmt.Sprintf("v%d", n)
}

// after returns the events from the nth on.
func (l *eventLog) after(n int) []event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.events[n:len(l.events):len(l.events)]
}

// past returns the versions that the state of the resource has had, from the oldest
// one that is not older than a version.
func (l *eventLog) past(from uint64) []uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []uint64
	if l.base >= from {
		all = append(all, l.base)
	}
	for _, e := range l.events {
		if e.version >= from {
			all = append(all, e.version)
		}
	}
	return all
}

// A filter says which objects a watch is about.
type filter struct {
	namespace string
	labels    labels.Selector
	fields    fields.Selector
}

func newFilter(q *request) (*filter, error) {
	byLabel, err := labels.Parse(q.query.Get("labelSelector"))
	if err != nil {
		return nil, err
	}
	byField, err := fields.ParseSelector(q.query.Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	if q.name != "" {
		byField = fields.AndSelectors(byField, fields.OneTermEqualSelector("metadata.name", q.name))
	}
	return &filter{q.namespace, byLabel, byField}, nil
}

func (f *filter) matches(e *entry) bool {
	return e != nil && (f.namespace == "" || f.namespace == e.Metadata.Namespace) &&
		f.labels.Matches(labels.Set(e.Metadata.Labels)) && f.fields.Matches(e)
}

// Has implements fields.Fields.
func (e *entry) Has(path string) bool { return e.Get(path) != "" }

// Get implements fields.Fields: selectable fields are named by their paths.
func (e *entry) Get(path string) string {
	var at any = e.fields
	for _, name := range strings.Split(path, ".") {
		m, ok := at.(map[string]any)
		if !ok {
			return ""
		}
		at = m[name]
	}
	if at == nil {
		return ""
	}
	return fmt.Sprint(at)
}

// seen is an event as a watch with this filter sees it: empty if it does not.
func (f *filter) seen(e event) (kind string, shown *entry) {
	before, after := f.matches(e.before), f.matches(e.after)
	switch {
	case after && before:
		return "MODIFIED", e.after
	case after:
		return "ADDED", e.after
	case before && e.gone != nil:
		return "DELETED", e.gone
	case before:
		return "DELETED", e.before.at(e.version)
	}
	return "", nil
}

// at is an object with another version: that of the event by which it leaves the
// selection.
func (e *entry) at(version uint64) *entry {
	var o, meta map[string]json.RawMessage
	if json.Unmarshal(e.raw, &o) != nil || json.Unmarshal(o["metadata"], &meta) != nil {
		return e
	}
	meta["resourceVersion"] = fmt.Appendf(nil, "%q", fmt.Sprint(version))
	o["metadata"], _ = json.Marshal(meta) // of raw JSON
	raw, err := json.Marshal(o)
	if err != nil {
		return e
	}
	moved := *e
	moved.raw, moved.Metadata.ResourceVersion = raw, fmt.Sprint(version)
	return &moved
}
