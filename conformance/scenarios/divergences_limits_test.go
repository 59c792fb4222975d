package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/wire"
)

// An object with very many fields is not applied: that takes the square of their number.
func TestApplyLimit(t *testing.T) {
	var keys strings.Builder
	for i := range 20_100 {
		fmt.Fprintf(&keys, `"k%d":%d,`, i, i)
	}
	body := `{"apiVersion":"pond.example.com/v1","kind":"Reed","metadata":{"name":"many"},"spec":{` + keys.String() + `"end":1}}`
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, reeds("", "", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`))
			grow(t, c)
			status, _, answer, err := c.Do(t.Context(), http.MethodPatch, reedsPath+"/many?fieldManager=me", []byte(body), wire.Header{Name: "Content-Type", Value: applyType})
			if err != nil {
				t.Fatal(err)
			}
			want, says := http.StatusCreated, `"kind":"Reed"`
			if name == "ours" {
				want, says = http.StatusRequestEntityTooLarge, "server-side apply is limited to 20000 fields per object, this one has 20"
			}
			if status != want || !strings.Contains(string(answer), says) {
				t.Errorf("%d: %.300s", status, answer)
			}
		})
	}
}

// Lists in YAML and with indentation are not compressed.
func TestTextIsNotCompressed(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, reeds("", "", `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`))
			grow(t, c)
			post(t, c, reedsPath, `{"apiVersion":"pond.example.com/v1","kind":"Reed","metadata":{"name":"long"},"spec":{"text":"`+strings.Repeat("words ", 40_000)+`"}}`)
			for accept, compressed := range map[string]bool{"application/json": true, "application/yaml": name == "theirs", "application/json;pretty=1": name == "theirs"} {
				_, header, _, err := c.Do(t.Context(), http.MethodGet, reedsPath, nil, wire.Header{Name: "Accept", Value: accept}, wire.Header{Name: "Accept-Encoding", Value: "gzip"})
				if err != nil {
					t.Fatal(err)
				}
				if got := header.Get("Content-Encoding") == "gzip"; got != compressed {
					t.Errorf("%s: compressed: %t", accept, got)
				}
			}
		})
	}
}
