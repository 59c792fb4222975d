package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestReason(t *testing.T) {
	for text, want := range map[string]string{
		"Error from server (NotFound): the server could not find the requested resource": "NotFound",
		"Error from server (Expired): The provided continue parameter is too old":        "Expired",
		"error: a (NotFound): b": "",
		"":                       "",
	} {
		if got := Reason(errors.New(text)); got != want {
			t.Errorf("%s: %q", text, got)
		}
		if got := Reason(fmt.Errorf("reading: %w", errors.New(text))); got != want {
			t.Errorf("%s, wrapped: %q", text, got)
		}
	}
	if got := Reason(nil); got != "" {
		t.Errorf("%q", got)
	}
}

// A name of a CRD is no flag of kubectl.
func TestCRDName(t *testing.T) {
	fake(t, `echo "$@"`)
	for _, name := range []string{"--kubeconfig=x", "", "a b", strings.Repeat("a", 300)} {
		if text, err := CRD(t.Context(), Source{}, name); err == nil {
			t.Errorf("%q: %s", name, text)
		}
	}
	if text, err := CRD(t.Context(), Source{Context: "far"}, "a.x"); err != nil || !strings.Contains(string(text), "a.x -o json --ignore-not-found --request-timeout=30s --context=far") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestPost(t *testing.T) {
	fake(t, `case "$*" in "create --raw=/a?b=1 -f - "*) cat;; *) exit 1;; esac`)
	if text, err := Post(t.Context(), Source{}, "/a?b=1", []byte("{}")); err != nil || string(text) != "{}" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestList(t *testing.T) {
	fake(t, `echo '{"items":[{"a":1},{"a":2}],"metadata":{"continue":"next","remainingItemCount":7,"resourceVersion":"9"}}'`)
	var all []string
	p, err := List(t.Context(), Source{}, "/a", func(object []byte) error {
		all = append(all, string(object))
		return nil
	})
	if err != nil || p != (Page{"next", 7, "9"}) || strings.Join(all, " ") != `{"a":1} {"a":2}` {
		t.Error(p, all, err)
	}
	for _, script := range []string{"echo '{}'", "echo 'no JSON'", `echo '{"items":[],"metadata":1}'`, `echo '{"items":[1'`} {
		fake(t, script)
		if _, err := List(t.Context(), Source{}, "/a", func([]byte) error { return nil }); err == nil {
			t.Error(script)
		}
	}
}
