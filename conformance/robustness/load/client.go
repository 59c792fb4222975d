package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A Client sends requests one after another and records them. Requests that get no answer are not sent again.
type Client struct {
	ID          int
	Timeout     time.Duration
	environment *environment.Environment
	rec         *record
	http        *http.Client
	sent        int
	seen        map[string]history.Item // last state of a key that it was shown
}

func newClient(w *environment.Environment, rec *record, id int, timeout time.Duration) (*Client, error) {
	h, err := w.HTTP()
	if err != nil {
		return nil, err
	}
	return &Client{ID: id, Timeout: timeout, environment: w, rec: rec, http: h, seen: map[string]history.Item{}}, nil
}

// Close ends its connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// An Answer is what a server said. Code is 0 if it said nothing.
type Answer struct {
	Code            int
	Reason, Message string
	Causes          []string
	Retry           string
	Data            []byte
}

// OK reports whether the request was carried out.
func (a *Answer) OK() bool { return a.Code >= 200 && a.Code < 300 }

// Outcome is what a client knows of a request by its answer.
func (a *Answer) Outcome() history.Outcome {
	switch {
	case a.OK():
		return history.Done
	case a.Code >= 400 && a.Code < 500:
		return history.Refused
	case a.Code == http.StatusServiceUnavailable:
		for _, cause := range a.Causes {
			if cause == "NothingWritten" {
				return history.Refused
			}
		}
	}
	return history.Unknown
}

// String is for messages.
func (a *Answer) String() string {
	return strings.TrimSpace(fmt.Sprintf("%d %s %.200s", a.Code, a.Reason, a.Message))
}

// Ask sends a request that is not recorded.
func (c *Client) Ask(ctx context.Context, replica int, method, path, contentType string, content io.Reader) *Answer {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, c.environment.Replicas[replica].URL()+path, content)
	if err != nil {
		return &Answer{Message: err.Error()}
	}
	if contentType != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return &Answer{Reason: netReason(err), Message: err.Error()}
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return &Answer{Reason: netReason(err), Message: err.Error()}
	}
	a := &Answer{Code: resp.StatusCode, Retry: resp.Header.Get("Retry-After"), Data: data}
	if a.Code >= 300 {
		a.explain()
	}
	return a
}

// explain reads the Status.
func (a *Answer) explain() {
	var status struct {
		Reason, Message string
		Details         struct{ Causes []struct{ Reason string } }
	}
	if json.Unmarshal(a.Data, &status) != nil {
		a.Message = string(a.Data[:min(len(a.Data), 200)])
		return
	}
	a.Reason, a.Message = status.Reason, status.Message
	for _, cause := range status.Details.Causes {
		a.Causes = append(a.Causes, cause.Reason)
	}
}

func netReason(err error) string {
	text := err.Error()
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "client timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case strings.Contains(text, "connection refused"):
		return "connection refused"
	case strings.Contains(text, "reset"):
		return "connection reset"
	case strings.Contains(text, "EOF"):
		return "EOF"
	case strings.Contains(text, "GOAWAY"):
		return "GOAWAY"
	}
	return "no answer"
}

// operation begins a record.
func (c *Client) operation(replica int, verb, resource, key string) *history.Operation {
	return &history.Operation{Client: c.ID, Replica: replica, Verb: verb, Resource: resource, Key: key}
}

// id is of the next write.
func (c *Client) id() string {
	c.sent++
	return fmt.Sprintf("%d.%d", c.ID, c.sent)
}

// send sends a recorded request and fills in what became of it.
func (c *Client) send(ctx context.Context, o *history.Operation, method, path, contentType string, content []byte) *Answer {
	var r io.Reader
	if content != nil {
		r = bytes.NewReader(content)
	}
	return c.stream(ctx, o, method, path, contentType, r)
}

func (c *Client) stream(ctx context.Context, o *history.Operation, method, path, contentType string, content io.Reader) *Answer {
	if o.Call == 0 {
		o.Call = c.rec.now()
	}
	a := c.Ask(ctx, o.Replica, method, path, contentType, content)
	o.Return = c.rec.now()
	o.Code, o.Reason, o.Message, o.Outcome = a.Code, a.Reason, a.Message, a.Outcome()
	if a.Code == http.StatusNotFound && strings.Contains(a.Message, "could not find the requested resource") && slices.Contains([]string{Things, Coins, Crates}, o.Resource) {
		c.rec.find("not served", "replica %d answers %s of %s with 404 as if there were no such resource; its CRD was never deleted", o.Replica, o.Verb, o.Resource)
	}
	return a
}

// finish records an operation on one object.
func (c *Client) finish(o *history.Operation, a *Answer) *history.Operation {
	switch {
	case a.OK():
		var err error
		if o.Got, err = ItemOf(o.Resource, a.Data); err != nil {
			c.rec.find("answer", "client %d, replica %d: %s %s: unreadable answer: %v", o.Client, o.Replica, o.Verb, o.Key, err)
		}
		if o.Verb == history.Delete && !o.Got.Deleting {
			o.Got = deleted(o, a.Data)
		}
		removed := o.Got.Deleting && len(o.Got.Finalizers) == 0
		if removed {
			// It had the last finalizer removed, and is gone: the answer shows a state that was never stored.
			o.Got = history.Item{Schema: -1}
		}
		if removed || o.Verb == history.Delete && !o.Got.Deleting {
			delete(c.seen, c.memory(o))
		} else {
			c.seen[c.memory(o)] = o.Got
		}
	case a.Code == http.StatusNotFound:
		delete(c.seen, c.memory(o))
	}
	c.rec.add(o)
	return o
}

// deleted is what a Status says of the object that is gone.
func deleted(o *history.Operation, data []byte) history.Item {
	var status struct {
		Kind    string
		Details struct{ UID string }
	}
	if json.Unmarshal(data, &status) != nil || status.Kind != "Status" {
		return o.Got
	}
	return history.Item{Resource: o.Resource, Name: o.Key, UID: status.Details.UID, Schema: -1}
}

func (*Client) memory(o *history.Operation) string { return o.Resource + "/" + o.Key }

// last is what the client has seen last of a key.
func (c *Client) last(resource, key string) (history.Item, bool) {
	it, ok := c.seen[resource+"/"+key]
	return it, ok
}

// collection is the path of a resource's objects in a namespace.
func collection(resource, version, namespace string) string {
	return fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", Group, version, namespace, resource)
}

// place is the path of a key's collection, and the object's name.
func place(resource, version, key string) (path, name string) {
	namespace, name, _ := strings.Cut(key, "/")
	return collection(resource, version, namespace), name
}

// mode adds the query of a read's mode.
func mode(q url.Values, m string) {
	kind, rv, _ := strings.Cut(m, ":")
	switch kind {
	case "0":
		q.Set("resourceVersion", "0")
	case "exact":
		q.Set("resourceVersion", rv)
		q.Set("resourceVersionMatch", "Exact")
	case "min":
		q.Set("resourceVersion", rv)
		q.Set("resourceVersionMatch", "NotOlderThan")
	}
}

func revision(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}
