package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// patience bounds what the server may take for one answer. It is real time.
const patience = time.Minute

// server is the real API server. All of its methods run in goroutines of no bubble.
type server struct {
	host *url.URL
	rt   http.RoundTripper // of the administrator
	ctx  context.Context   // of the logs' watches

	mu   sync.Mutex
	logs map[resource]*eventLog
}

// A reply is a complete answer of the server.
type reply struct {
	code   int
	header http.Header
	body   []byte
}

// forward makes a client's request.
func (s *server) forward(q *request) (reply, error) {
	return s.do(q.rt, q.method, q.path, q.query, q.header, q.body)
}

// get reads something as administrator.
func (s *server) get(path string, query url.Values, accept string) (reply, error) {
	return s.do(s.rt, http.MethodGet, path, query, http.Header{"Accept": {accept}}, nil)
}

func (s *server) do(rt http.RoundTripper, method, path string, query url.Values, header http.Header, body []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	resp, err := s.open(ctx, rt, method, path, query, header, body)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return reply{resp.StatusCode, resp.Header, data}, err
}

// open makes a request and leaves the body of the answer unread.
func (s *server) open(ctx context.Context, rt http.RoundTripper, method, path string, query url.Values, header http.Header, body []byte) (*http.Response, error) {
	u := *s.host
	u.Path, u.RawQuery = path, query.Encode()
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = header.Clone()
	return rt.RoundTrip(r)
}

// allows makes a client's watch and ends it: nil if the server would serve it, and
// else its answer. The content type is that of the events.
func (s *server) allows(q *request) (refusal *reply, contentType string, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	query := maps.Clone(q.query)
	// Versions that are too old or too new are our business.
	for _, name := range []string{"resourceVersion", "resourceVersionMatch", "sendInitialEvents"} {
		query.Del(name)
	}
	resp, err := s.open(ctx, q.rt, q.method, q.path, query, q.header, nil)
	if err != nil {
		return nil, "", err
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		return nil, resp.Header.Get("Content-Type"), nil
	}
	data, err := io.ReadAll(resp.Body)
	return &reply{resp.StatusCode, resp.Header, data}, "", err
}

// object is what we read of objects, lists and statuses.
type object struct {
	Kind       string `json:"kind"`
	APIVersion string `json:"apiVersion"`
	Metadata   struct {
		Name              string            `json:"name"`
		Namespace         string            `json:"namespace"`
		UID               string            `json:"uid"`
		ResourceVersion   string            `json:"resourceVersion"`
		Labels            map[string]string `json:"labels"`
		DeletionTimestamp *string           `json:"deletionTimestamp"`
		Finalizers        []string          `json:"finalizers"`
	} `json:"metadata"`
	Items []json.RawMessage `json:"items"`
}

func (o *object) key() string { return o.Metadata.Namespace + "/" + o.Metadata.Name }

// going reports whether the object is deleted with this version of it.
func (o *object) going() bool {
	return o.Metadata.DeletionTimestamp != nil && len(o.Metadata.Finalizers) == 0
}

func number(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64) // what is not a number is older than everything
	return n
}

// log returns the log of a resource, which it opens for the first request. It is
// nil for what cannot be listed and watched.
func (s *server) log(r resource) *eventLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l, ok := s.logs[r]; ok {
		return l
	}
	l, err := s.openLog(r)
	if err != nil || l != nil {
		s.logs[r] = l // a resource that is not served yet is asked for again
	}
	return l
}

// versions are the logs of all versions of a resource.
func (s *server) versions(r resource) []*eventLog {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*eventLog
	for one, l := range s.logs {
		if one.group == r.group && one.name == r.name && l != nil {
			all = append(all, l)
		}
	}
	return all
}

// newest is the version of the last event of all logs.
func (s *server) newest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := uint64(0)
	for _, l := range s.logs {
		if l != nil && len(l.after(0)) > 0 {
			newest = max(newest, l.position())
		}
	}
	return newest
}

// follow waits until the logs have what a write has done.
func (s *server) follow(q *request, got reply) {
	var o object
	if got.code >= 300 || json.Unmarshal(got.body, &o) != nil {
		return
	}
	written := []json.RawMessage{got.body}
	if q.verb == "deletecollection" {
		written = o.Items
	}
	for _, data := range written {
		var o object
		if json.Unmarshal(data, &o) != nil {
			continue
		}
		name, deleted := o.key(), o.going()
		if q.name != "" {
			name = q.namespace + "/" + q.name
		}
		if q.verb == "delete" || q.verb == "deletecollection" {
			deleted = o.Kind == "Status" || len(o.Metadata.Finalizers) == 0
		}
		for _, l := range s.versions(q.resource) {
			l.wait(func() bool { return l.has(name, &o, deleted) })
		}
	}
}

// openLog returns nil and no error for a resource that is not served yet.
func (s *server) openLog(r resource) (*eventLog, error) {
	got, err := s.get(r.collection(""), nil, "application/json")
	if err != nil || got.code == http.StatusNotFound {
		return nil, nil
	}
	if got.code != http.StatusOK {
		return nil, fmt.Errorf("listing %v failed: %s", r, got.body)
	}
	var list object
	if err := json.Unmarshal(got.body, &list); err != nil {
		return nil, err
	}
	l := newEventLog(&list)
	for _, item := range list.Items {
		if err := l.put(item); err != nil {
			return nil, err
		}
	}
	go l.read(s, r)
	return l, nil
}
