package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// read makes a request that changes nothing.
func (ip *Interposer) read(q *request) answer {
	if ip.fault(q, Refused) {
		return ip.refuse(q)
	}
	if q.verb == "list" && q.query.Has("continue") && ip.fault(q, Expired) {
		return ip.status(q, http.StatusGone, metav1.StatusReasonExpired, "The provided continue parameter is too old to display a consistent list result. You must start a new list without the continue parameter.", Expired)
	}
	if version, ok := ip.stale(q); ok {
		var got reply
		var err error
		ip.outside.run(func() { got, err = ip.server.older(q, version) })
		if err == nil && got.code < http.StatusBadRequest || got.code == http.StatusNotFound {
			return ip.answered(q, got, err, StaleRead)
		}
	}
	ip.clearRow(q)
	return ip.pass(q)
}

// stale decides whether a read is answered from an older state, and which. Only
// reads are that allow it: those of any version (0), and those that are not to be
// older than one.
func (ip *Interposer) stale(q *request) (uint64, bool) {
	text, match := q.query.Get("resourceVersion"), q.query.Get("resourceVersionMatch")
	if text == "" || match == string(metav1.ResourceVersionMatchExact) || q.query.Has("continue") || q.part != "" || q.table() || !ip.fault(q, StaleRead) {
		return 0, false
	}
	var past []uint64
	ip.outside.run(func() {
		if l := ip.server.log(q.resource); l != nil {
			past = l.past(number(text))
		}
	})
	// The last one is the present, the one before it the shortest way back.
	if len(past) < 2 {
		return 0, false
	}
	back := 2 + ip.pick(min(8, len(past)-1), "back", q.key, q.nth)
	return past[len(past)-back], true
}

// older reads a state of the past.
func (s *server) older(q *request, version uint64) (reply, error) {
	query := maps.Clone(q.query)
	query.Set("resourceVersion", strconv.FormatUint(version, 10))
	query.Set("resourceVersionMatch", string(metav1.ResourceVersionMatchExact))
	if q.verb == "list" {
		return s.do(q.rt, q.method, q.path, query, q.header, nil)
	}
	// Objects can be read at a version as lists of one. The client must be allowed to
	// read it in any case.
	if got, err := s.forward(q); err != nil || got.code >= http.StatusBadRequest && got.code != http.StatusNotFound {
		return got, err
	}
	query.Set("fieldSelector", "metadata.name="+q.name)
	got, err := s.get(q.resource.collection(q.namespace), query, strings.ReplaceAll(q.header.Get("Accept"), "as=PartialObjectMetadata;", "as=PartialObjectMetadataList;"))
	if err != nil || got.code != http.StatusOK {
		return got, err
	}
	var list object
	if err := json.Unmarshal(got.body, &list); err != nil {
		return got, err
	}
	if len(list.Items) > 0 {
		item, err := newEventLog(&list).parse(list.Items[0])
		if err == nil {
			got.body = item.raw
		}
		return got, err
	}
	got.code = http.StatusNotFound
	got.body, err = json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: fmt.Sprintf("%v %q not found", q.resource, q.name),
		Details: &metav1.StatusDetails{Name: q.name, Group: q.resource.group, Kind: q.resource.name},
	})
	return got, err
}

// watch begins a stream.
func (ip *Interposer) watch(q *request) answer {
	if ip.fault(q, Refused) {
		return ip.refuse(q)
	}
	initial := q.query.Get("sendInitialEvents") == "true"
	if initial && !q.steady && ip.chance(NoWatchLists) > 0 {
		return ip.status(q, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "ListOptions.meta.k8s.io \"\" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled", NoWatchLists)
	}
	var refusal *reply
	var contentType string
	var log *eventLog
	var err error
	ip.outside.run(func() {
		if log = ip.server.log(q.resource); log != nil {
			refusal, contentType, err = ip.server.allows(q)
		}
	})
	switch {
	case log == nil: // the server knows why
		return ip.pass(q)
	case err != nil:
		return ip.answered(q, reply{}, err, "")
	case refusal != nil:
		return ip.answered(q, *refusal, nil, "")
	}
	filter, err := newFilter(q)
	if err != nil {
		return ip.status(q, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error(), "")
	}
	s := &stream{request: q, log: log, filter: filter, bookmarks: q.query.Get("allowWatchBookmarks") == "true", arrived: make(chan struct{}, 1)}
	if seconds, err := strconv.Atoi(q.query.Get("timeoutSeconds")); err == nil && seconds > 0 {
		// Informers ask for five to ten minutes, at random: five is what they get.
		s.ends = time.Now().Add(min(time.Duration(seconds)*time.Second, 5*time.Minute))
	}
	ip.mu.Lock()
	ip.counts["streams"]++
	s.name, s.key = fmt.Sprintf("watch#%d", ip.counts["streams"]), q.key+" "+q.nth
	ip.mu.Unlock()
	if refused := ip.begin(s, initial); refused != nil {
		return *refused
	}
	ip.mu.Lock()
	ip.streams = append(ip.streams, s)
	ip.mu.Unlock()
	return answer{code: http.StatusOK, header: http.Header{"Content-Type": {contentType}}, body: s}
}

// begin decides where a stream begins, and sends the state there if the client
// asks for it. An answer is one instead of the stream.
func (ip *Interposer) begin(s *stream, initial bool) *answer {
	q := s.request
	text := q.query.Get("resourceVersion")
	if text != "" && text != "0" && !initial {
		s.after = number(text)
		var reaches bool
		s.next, reaches = s.log.since(s.after)
		behind := ip.server.newest() > s.after
		if !reaches || behind && ip.fault(q, Expired) {
			s.send("ERROR", expired)
			s.end(io.EOF)
			ip.noteStream(q.word(), s, fmt.Sprintf("%s: 410 Expired, from %s", s.name, s.log.count(text)), Expired)
			return nil
		}
		ip.clearRow(q)
		ip.noteStream(q.word(), s, fmt.Sprintf("%s from %s", s.name, s.log.count(text)), "")
		return nil
	}
	// The state of any version, of one that is not older, or of now.
	list := *q
	list.verb, list.query = "list", url.Values{}
	for _, name := range []string{"labelSelector", "fieldSelector", "resourceVersion"} {
		if q.query.Has(name) {
			list.query.Set(name, q.query.Get(name))
		}
	}
	version, stale := ip.stale(&list)
	if q.partial() {
		list.header = list.header.Clone()
		list.header.Set("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1")
	}
	var got reply
	var err error
	ip.outside.run(func() {
		if stale {
			if got, err = ip.server.older(&list, version); err == nil && got.code == http.StatusOK {
				return
			}
		}
		got, err = ip.server.forward(&list)
	})
	if err != nil || got.code != http.StatusOK {
		a := ip.answered(q, got, err, "")
		return &a
	}
	fault := Kind("")
	if stale {
		fault = StaleRead
	}
	var o object
	if err := json.Unmarshal(got.body, &o); err != nil {
		return &answer{err: err}
	}
	s.after = number(o.Metadata.ResourceVersion)
	s.next, _ = s.log.since(s.after)
	ip.noteStream(q.word(), s, fmt.Sprintf("%s with %d objects at %s", s.name, len(o.Items), s.log.count(o.Metadata.ResourceVersion)), fault)
	for _, item := range o.Items {
		e, err := newEventLog(&o).parse(item)
		if err != nil {
			return &answer{err: err}
		}
		s.send("ADDED", e.raw)
	}
	if initial {
		s.send("BOOKMARK", s.bookmark(s.after, true))
	}
	return nil
}

// expired is what a watch ends with whose version is too old.
var expired = json.RawMessage(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old resource version","reason":"Expired","code":410}`)

// version is what the trace calls a version of a resource.
func (ip *Interposer) version(r resource, version string) string {
	ip.server.mu.Lock()
	l := ip.server.logs[r]
	ip.server.mu.Unlock()
	if l == nil {
		return "some version"
	}
	return l.count(version)
}

// noteStream leaves steady clients out.
func (ip *Interposer) noteStream(who string, s *stream, then string, fault Kind) {
	if !s.request.steady {
		ip.note(who, s.request.resource.String()+" "+s.request.shown(), then, fault)
	}
}

// deliver sends the next events of a stream, as many as the plan says, and ends
// the stream if the plan says so.
func (ip *Interposer) deliver(s *stream) {
	turn := strconv.Itoa(s.turns)
	calm := s.request.steady || ip.isCalm()
	events := s.log.after(s.next)
	if n := len(events); n > 1 && !calm {
		events = events[:1+ip.pick(n, "batch", s.key, turn)]
	}
	ip.mu.Lock()
	s.turns, s.next, s.hold = s.turns+1, s.next+len(events), nil
	ip.mu.Unlock()
	sent, last := 0, s.after
	for _, e := range events {
		last = max(last, e.version)
		if e.version <= s.after {
			continue
		}
		if kind, shown := s.filter.seen(e); kind != "" {
			s.send(kind, s.shown(shown))
			ip.noteStream(s.name, s, fmt.Sprintf("%s %s at %s", kind, shown.Metadata.Name, s.log.count(shown.Metadata.ResourceVersion)), "")
			sent++
		}
	}
	if s.bookmarks && last > s.after && !ip.roll(ip.chance(NoBookmarks), "bookmark", s.key, turn) {
		s.send("BOOKMARK", s.bookmark(last, false))
		ip.noteStream(s.name, s, "BOOKMARK at "+s.log.count(strconv.FormatUint(last, 10)), "")
	}
	ip.look(s.request)
	over := !s.ends.IsZero() && !time.Now().Before(s.ends)
	closed := !calm && sent > 0 && ip.roll(ip.chance(ClosedWatch), "close", s.key, turn)
	switch {
	case over:
		s.end(io.EOF)
		ip.noteStream(s.name, s, "ends: its timeout has passed", "")
	case closed:
		s.end(io.EOF)
		ip.noteStream(s.name, s, "ends early", ClosedWatch)
	}
}

func (ip *Interposer) isCalm() bool {
	ip.mu.Lock()
	defer ip.mu.Unlock()
	return ip.calm
}
