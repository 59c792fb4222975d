package controllers_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// patience is how long a test waits for what a controller should do. The machine may be slow; leases take 15 s to change hands.
const patience = 2 * time.Minute

// eventually asks until check says yes, and fails with its last complaint when patience is over.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	began := time.Now()
	var last error
	for {
		err := check(ctx)
		if err == nil {
			t.Logf("%6.1fs  %s", time.Since(began).Seconds(), what)
			return
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: not after %v: %v", what, patience, last)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// do runs kubectl and expects it to succeed.
func (w *environment) do(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := w.kubectl(t.Context(), stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply has kubectl apply a manifest, and tries again while webhooks do not answer yet.
func (w *environment) apply(t *testing.T, what, manifest string) {
	t.Helper()
	eventually(t, "applied: "+what, func(ctx context.Context) error {
		_, err := w.kubectl(ctx, manifest, "apply", "-f", "-")
		return err
	})
}

// refused expects kubectl to fail with a message that contains each of the parts.
func (w *environment) refused(t *testing.T, stdin string, args []string, parts ...string) {
	t.Helper()
	out, err := w.kubectl(t.Context(), stdin, args...)
	if err == nil {
		t.Fatalf("kubectl %s was not refused: %s", strings.Join(args, " "), out)
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("kubectl %s: refused, but without %q in %v", strings.Join(args, " "), part, err)
		}
	}
}

// shows waits until a jsonpath of an object has a value.
func (w *environment) shows(t *testing.T, object, namespace, path, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s %s = %s", object, path, want), func(ctx context.Context) error {
		got, err := w.get(ctx, object, namespace, path)
		if err == nil && got != want {
			err = fmt.Errorf("it is %q", got)
		}
		return err
	})
}

// get returns a jsonpath of an object.
func (w *environment) get(ctx context.Context, object, namespace, path string) (string, error) {
	args := append([]string{"get"}, strings.Fields(object)...)
	return w.kubectl(ctx, "", append(args, "--namespace", namespace, "--output", "jsonpath="+path)...)
}

// condition waits until an object has a condition with a status.
func (w *environment) condition(t *testing.T, object, namespace, kind, status string) {
	t.Helper()
	w.shows(t, object, namespace, fmt.Sprintf(`{.status.conditions[?(@.type=="%s")].status}`, kind), status)
}

// contains reads an answer and expects a text in it.
func contains(response *http.Response, text string) error {
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if !strings.Contains(string(body), text) {
		return fmt.Errorf("no %s in the %d bytes of the answer %s", text, len(body), response.Status)
	}
	return nil
}
