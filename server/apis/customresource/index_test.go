package customresource

import (
	"bytes"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// indexes counts how often JSON with each of some texts in it is parsed while f runs.
func indexes(f func(), texts ...string) []int64 {
	counts := make([]atomic.Int64, len(texts))
	stop := jsondoc.Observe(func(src []byte) {
		for i, text := range texts {
			if bytes.Contains(src, []byte(text)) {
				counts[i].Add(1)
			}
		}
	})
	defer stop()
	f()
	out := make([]int64, len(texts))
	for i := range counts {
		out[i] = counts[i].Load()
	}
	return out
}

// An object is indexed once on its way into storage: managed fields, validation and storage use the index
// of decoding. There is one more if decoding changes the body, whose index is not that of what is stored, and if the
// server takes a status away that was sent, since then what was written is normalized again.
func TestIndexedOnce(t *testing.T) {
	e := start(t)
	e.define(strings.Replace(boxesWith("a: {type: string, maxLength: 9000}, d: {type: string}}}, status: {type: object, properties: {ready: {type: boolean}"),
		"storage: true", "storage: true\n    subresources: {status: {}}", 1))
	for name, test := range map[string]struct {
		body string
		want int64
	}{
		"canonical":    {`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"labels":{"l":"m"},"name":"canonical"},"spec":{"a":"TEXT"}}`, 1},
		"with-newline": {`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"with-newline"},"spec":{"a":"TEXT"}}` + "\n", 1},
		"with-status":  {`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"with-status"},"spec":{"a":"TEXT"},"status":{}}`, 2},
		"pruned":       {`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"pruned"},"spec":{"a":"TEXT","gone":1}}`, 2},
		"unsorted":     {`{"kind":"Box","apiVersion":"example.com/v1","metadata":{"name":"unsorted"},"spec":{"a":"TEXT"}}`, 2},
	} {
		text := strings.Repeat("created ", 100) + name
		got := indexes(func() { e.Do("POST", boxes, strings.Replace(test.body, "TEXT", text, 1)).Is(http.StatusCreated) }, text)
		if got[0] != test.want {
			t.Errorf("%s: parsed %d times to be created, not %d", name, got[0], test.want)
		}
	}
	// What a client has read is canonical. The old object is parsed when it is read from etcd, and once more for its
	// managed fields.
	before, after := strings.Repeat("created ", 100)+"canonical", strings.Repeat("changed ", 100)
	body := strings.Replace(string(e.Do("GET", boxes+"/canonical", "").Is(http.StatusOK).Body), before, after, 1)
	got := indexes(func() { e.Do("PUT", boxes+"/canonical", body).Is(http.StatusOK).Has("metadata.generation", 2) }, after, before)
	if got[0] != 1 || got[1] != 2 {
		t.Errorf("to be updated the new object was parsed %d times, the old one %d times", got[0], got[1])
	}
}
