package faults

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// A stream is a watch of a client: the body of its response.
type stream struct {
	name      string // in the trace
	key       string // in decisions
	request   *request
	log       *eventLog
	filter    *filter
	next      int    // events of the log that it has passed
	after     uint64 // older events are not its business
	bookmarks bool
	ends      time.Time // as the client has asked; zero is never
	turns     int       // deliveries so far
	hold      *hold     // of what comes next; nil if that is not decided

	mu      sync.Mutex
	buffer  []byte
	err     error // after the buffer; nil if the stream is open
	arrived chan struct{}
	closed  bool // by the client
}

// A hold keeps events back until so many requests were answered, or until a time,
// whichever comes first.
type hold struct {
	answers int
	until   time.Time
}

// Read implements io.Reader.
func (s *stream) Read(p []byte) (int, error) {
	for {
		s.mu.Lock()
		if len(s.buffer) > 0 {
			n := copy(p, s.buffer)
			s.buffer = s.buffer[n:]
			s.mu.Unlock()
			return n, nil
		}
		err := s.err
		s.mu.Unlock()
		if err != nil {
			return 0, err
		}
		select {
		case <-s.arrived:
		case <-s.request.done:
			return 0, s.request.cause()
		}
	}
}

// Close implements io.Closer.
func (s *stream) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.end(io.ErrClosedPipe)
	return nil
}

// over reports whether the client has stopped reading the stream.
func (s *stream) over() bool {
	select {
	case <-s.request.done:
		return true
	default:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closed || s.err != nil
}

// send puts an event on the wire.
func (s *stream) send(kind string, object json.RawMessage) {
	s.mu.Lock()
	s.buffer = fmt.Appendf(s.buffer, "{\"type\":%q,\"object\":%s}\n", kind, object)
	s.mu.Unlock()
	s.signal()
}

// end closes the stream after what was sent.
func (s *stream) end(err error) {
	s.mu.Lock()
	if s.err == nil {
		s.err = err
	}
	s.mu.Unlock()
	s.signal()
}

func (s *stream) signal() {
	select {
	case s.arrived <- struct{}{}:
	default: // it has not noticed the last one yet
	}
}

// shown is an object in the form that the client has asked for.
func (s *stream) shown(e *entry) json.RawMessage {
	if !s.request.partial() {
		return e.raw
	}
	var o struct {
		Metadata json.RawMessage `json:"metadata"`
	}
	_ = json.Unmarshal(e.raw, &o) // it was parsed before
	return fmt.Appendf(nil, `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":%s}`, o.Metadata)
}

// bookmark is the object of one.
func (s *stream) bookmark(version uint64, endsInitial bool) json.RawMessage {
	kind, apiVersion, annotations := s.log.kind, s.log.apiVersion, ""
	if s.request.partial() {
		kind, apiVersion = "PartialObjectMetadata", "meta.k8s.io/v1"
	}
	if endsInitial {
		annotations = `,"annotations":{"k8s.io/initial-events-end":"true"}`
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d","creationTimestamp":null%s}}`, kind, apiVersion, version, annotations)
}
