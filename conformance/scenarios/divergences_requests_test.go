package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// A value of the wrong type is refused before anything else that decoding does not find: metadata that is wrong, a resourceVersion that
// is old, replicas that are no number.
func TestMismatchComesFirst(t *testing.T) {
	const boat = `{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"a"%s},"spec":%s}`
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, boatsCRD(t))
			served(t, c)
			post(t, c, boatsPath, fmt.Sprintf(boat, "", `{"owner":"ada"}`))
			for _, test := range []struct {
				method, path, metadata, spec string
				status                       map[string]int
				says                         map[string]string
			}{
				{
					http.MethodPut, boatsPath + "/a", `,"resourceVersion":"1"`, `{"owner":1}`,
					map[string]int{"ours": http.StatusUnprocessableEntity, "theirs": http.StatusConflict},
					map[string]string{"ours": `spec.owner in body must be of type string`, "theirs": "the object has been modified"},
				},
				{
					http.MethodPost, boatsPath, `,"labels":{"a b":"c"}`, `{"owner":1}`,
					map[string]int{"ours": http.StatusUnprocessableEntity, "theirs": http.StatusUnprocessableEntity},
					map[string]string{"ours": `"a" is invalid: [spec.owner: Invalid value: "integer": `, "theirs": `"a" is invalid: [metadata.labels: Invalid value: "a b": `},
				},
			} {
				status, message := told(t, c, test.method, test.path, fmt.Sprintf(boat, test.metadata, test.spec))
				if status != test.status[name] || !strings.Contains(message, test.says[name]) {
					t.Errorf("%s with %s and %s: %d, %s", test.method, test.metadata, test.spec, status, message)
				}
			}
		})
	}
}

// told returns the status of an answer and its message.
func told(t *testing.T, c *wire.Conn, method, path, body string) (int, string) {
	t.Helper()
	status, _, answer, err := c.Do(t.Context(), method, path, []byte(body))
	if err != nil {
		t.Fatal(err)
	}
	var said struct{ Message string }
	decode(t, answer, &said)
	return status, said.Message
}

// A column whose path descends twice is empty.
func TestColumnsDescendOnce(t *testing.T) {
	const columns = `,"additionalPrinterColumns":[{"name":"Once","type":"string","jsonPath":"..owner"},{"name":"Twice","type":"string","jsonPath":"..spec..owner"},{"name":"Not","type":"string","jsonPath":".spec.owner"}]`
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			c := dial(t, alike(t, kind, prefix()))
			post(t, c, crdsPath, reeds("", columns, `{"type":"object","x-kubernetes-preserve-unknown-fields":true}`))
			grow(t, c)
			_, _, answer, err := c.Do(t.Context(), http.MethodGet, reedsPath+"/a", nil, wire.Header{Name: "Accept", Value: "application/json;as=Table;v=v1;g=meta.k8s.io"})
			if err != nil {
				t.Fatal(err)
			}
			var table struct{ Rows []struct{ Cells []any } }
			decode(t, answer, &table)
			want := map[launch.Kind]string{launch.Espalier: `[["a","ada",null,"ada"]]`, launch.Upstream: `[["a","ada","ada","ada"]]`}[kind]
			var got [][]any
			for _, row := range table.Rows {
				got = append(got, row.Cells)
			}
			if encode(t, got) != want {
				t.Errorf("%s", encode(t, got))
			}
		})
	}
}
