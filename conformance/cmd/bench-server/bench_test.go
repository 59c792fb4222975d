package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestObjectsAreJSONAndCanBeRevised(t *testing.T) {
	for _, make := range []func(namespace, name string, n int) []byte{certificate, route} {
		object := make(listed, "a", 3)
		if !json.Valid(object) {
			t.Fatalf("not JSON: %s", object)
		}
		for range 10 {
			changed, err := revised(object)
			if err != nil {
				t.Fatal(err)
			}
			object = changed
		}
		if !strings.Contains(string(object), `"bench.espalier.dev/revision":"0000010"`) {
			t.Errorf("ten revisions: %s", object)
		}
	}
	if _, err := revised([]byte(`{}`)); err == nil {
		t.Error("an object without the marker was revised")
	}
}

func TestEventType(t *testing.T) {
	for line, want := range map[string]string{
		`{"type":"ADDED","object":{}}`:    "ADDED",
		`{"type":"BOOKMARK","object":{}}`: "BOOKMARK",
		`{"object":{}}`:                   "",
		``:                                "",
	} {
		if got := eventType([]byte(line)); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}
