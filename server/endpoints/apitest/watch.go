package apitest

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"testing"
	"time"
)

// Events is an open watch.
type Events struct {
	tb    testing.TB
	Lines <-chan map[string]any // closed when the watch has ended
	Close context.CancelFunc
}

// Watch opens a watch.
func (c *Caller) Watch(path string, headers ...string) *Events {
	c.TB.Helper()
	w, code := c.TryWatch(path, headers...)
	if w == nil {
		c.TB.Fatalf("watch: %d", code)
	}
	return w
}

// TryWatch opens a watch, or returns the code of the answer.
func (c *Caller) TryWatch(path string, headers ...string) (*Events, int) {
	c.TB.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c.TB.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL+path, nil)
	if err != nil {
		c.TB.Fatal(err)
	}
	setHeaders(req, headers)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.TB.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, resp.StatusCode
	}
	lines := make(chan map[string]any, 1000)
	go func() {
		defer close(lines)
		defer func() { _ = resp.Body.Close() }()
		scanner := bufio.NewScanner(resp.Body)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			var event map[string]any
			if json.Unmarshal(scanner.Bytes(), &event) == nil {
				lines <- event
			}
		}
	}()
	return &Events{tb: c.TB, Lines: lines, Close: cancel}, resp.StatusCode
}

// Next returns the next event; ok is false if the watch has ended.
func (w *Events) Next() (event Answer, ok bool) {
	w.tb.Helper()
	select {
	case line, ok := <-w.Lines:
		body, _ := json.Marshal(line)
		return Answer{tb: w.tb, Object: line, Body: body}, ok
	case <-time.After(time.Minute):
		w.tb.Fatal("no event after a minute")
		return Answer{}, false
	}
}
