package apitest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Caller sends the requests of a test. TB may be set to a subtest.
type Caller struct {
	TB  testing.TB
	URL string // of the server, without a path
}

// Do sends a request. Headers have the form "Name: value"; the default content type is
// JSON.
func (c *Caller) Do(method, path, body string, headers ...string) Answer {
	c.TB.Helper()
	req, err := http.NewRequest(method, c.URL+path, strings.NewReader(body))
	if err != nil {
		c.TB.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	setHeaders(req, headers)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.TB.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	a := Answer{tb: c.TB, Code: resp.StatusCode}
	for _, w := range resp.Header.Values("Warning") {
		text, ok := strings.CutPrefix(w, "299 - ")
		if !ok {
			c.TB.Fatalf("a warning has another code than 299: %s", w)
		}
		a.Warnings = append(a.Warnings, text)
	}
	if a.Body, err = io.ReadAll(resp.Body); err != nil {
		c.TB.Fatal(err)
	}
	if bytes.HasPrefix(a.Body, []byte("{")) {
		if err := json.Unmarshal(a.Body, &a.Object); err != nil {
			c.TB.Fatalf("%v: %s", err, a.Body)
		}
	}
	return a
}

func setHeaders(req *http.Request, headers []string) {
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
}

// patchTypes are the media types of patches.
var patchTypes = map[string]string{
	"json":      "application/json-patch+json",
	"merge":     "application/merge-patch+json",
	"strategic": "application/strategic-merge-patch+json",
	"apply":     "application/apply-patch+yaml",
}

// Patch sends a patch: json, merge, strategic or apply.
func (c *Caller) Patch(kind, path, body string) Answer {
	c.TB.Helper()
	return c.Do(http.MethodPatch, path, body, "Content-Type: "+patchTypes[kind])
}

// Eventually waits until a condition holds.
func Eventually(tb testing.TB, condition func() bool) {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); !condition(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			tb.Fatal("the condition does not hold after a minute")
		}
	}
}
