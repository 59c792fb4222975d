package load

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// A watcher follows a namespace at a replica, as a reflector does: it goes on where it was, and lists again when that is too old.
type watcher struct {
	id, replica int
	resource    string
	namespace   string
	initial     bool   // ask for initial events instead of listing
	selector    string // of fields
	environment *environment.Environment
	rec         *record
	from        int64
	reached     int64 // greatest revision that it has seen; guarded by rec.mu
}

// run watches until ctx ends.
func (w *watcher) run(ctx context.Context) error {
	c, err := newClient(w.environment, w.rec, w.id, 5*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	for ctx.Err() == nil {
		if !w.initial && w.from == 0 {
			o := c.List(ctx, Listing{Replica: w.replica, Resource: w.resource, Version: "v1", Namespace: w.namespace})
			if o.Outcome != history.Done {
				launch.Pause(ctx, 100*time.Millisecond)
				continue
			}
			w.from = o.ListRevision
			w.rec.with(func(*history.History) { w.reached = max(w.reached, w.from) })
		}
		s := &history.Session{Client: w.id, Replica: w.replica, Resource: w.resource, From: w.from, Initial: w.initial, Consistent: w.initial, Selector: w.selector}
		if w.initial {
			s.From = 0
		}
		w.rec.session(s)
		code, text := w.stream(ctx, c, s)
		w.rec.with(func(*history.History) {
			s.Code, s.Error, s.End = code, text, w.rec.now()
			w.from = max(w.from, w.reached)
		})
		if code == http.StatusGone {
			w.from = 0
		}
		launch.Pause(ctx, 50*time.Millisecond)
	}
	return nil
}

// stream is one watch. It returns how that ended.
func (w *watcher) stream(ctx context.Context, c *Client, s *history.Session) (code int, text string) {
	q := url.Values{"watch": {"1"}, "allowWatchBookmarks": {"true"}}
	if s.Initial {
		q.Set("sendInitialEvents", "true")
		q.Set("resourceVersionMatch", "NotOlderThan")
	} else {
		q.Set("resourceVersion", fmt.Sprint(s.From))
	}
	if s.Selector != "" {
		q.Set("fieldSelector", s.Selector)
	}
	// Nothing comes for a while, and the link is held: a client that waits for ever shows nothing.
	ctx, cancel := context.WithTimeout(ctx, 60*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.environment.Replicas[w.replica].URL()+collection(w.resource, "v1", w.namespace)+"?"+q.Encode(), nil)
	if err != nil {
		return 0, err.Error()
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, netReason(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		data, _ := io.ReadAll(io.LimitReader(resp.Body, 400))
		return resp.StatusCode, string(data)
	}
	for d := json.NewDecoder(resp.Body); ; {
		var e struct {
			Type   string
			Object json.RawMessage
		}
		if err := d.Decode(&e); err != nil {
			return 0, netReason(err)
		}
		if e.Type == "ERROR" {
			a := Answer{Data: e.Object}
			a.explain()
			var status struct{ Code int }
			_ = json.Unmarshal(e.Object, &status)
			return status.Code, a.Message
		}
		if err := w.event(s, e.Type, e.Object); err != nil {
			return 0, err.Error()
		}
	}
}

// event records one event.
func (w *watcher) event(s *history.Session, kind string, data []byte) error {
	it, err := ItemOf(w.resource, data)
	if err != nil {
		return err
	}
	e := history.Event{Type: kind, Item: it, At: w.rec.now()}
	if kind == "BOOKMARK" {
		var o object
		if err := json.Unmarshal(data, &o); err != nil {
			return err
		}
		e.InitialEnd = o.Metadata.Annotations["k8s.io/initial-events-end"] == "true"
	}
	w.rec.with(func(*history.History) {
		s.Events = append(s.Events, e)
		w.reached = max(w.reached, it.Revision)
	})
	return nil
}
