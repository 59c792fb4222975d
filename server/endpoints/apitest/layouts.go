package apitest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// largestPiece is the most that a list has encoded in memory at a time. One that
// is built as a whole is larger than that in these tests.
const largestPiece = 300 << 10

// kinds are the Accept parameters for the kinds of a list: items, table, metadata.
var kinds = map[string]string{
	"list":          "",
	"table":         ";as=Table;v=v1;g=meta.k8s.io",
	"beta table":    ";as=Table;v=v1beta1;g=meta.k8s.io",
	"metadata":      ";as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
	"beta metadata": ";as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
}

// Layouts requests a list, which must be larger than a MB in each kind, in all kinds
// and layouts. Each response must equal that of k8s.io/apiserver for the same list, must
// be written in pieces, and must end with its request.
func Layouts(t *testing.T, handler http.Handler, path string) {
	for name, form := range kinds {
		t.Run(name, func(t *testing.T) {
			path := path
			if strings.Contains(name, "table") {
				path += "?includeObject=Object"
			}
			plain := ask(t, handler, path, "application/json"+form)
			if name == "table" || name == "beta table" {
				checkTable(t, plain)
			}
			// As the encoders of k8s.io/apimachinery make them.
			var indented bytes.Buffer
			if err := json.Indent(&indented, bytes.TrimRight(plain, "\n"), "", "  "); err != nil {
				t.Fatal(err)
			}
			inYAML, err := yaml.JSONToYAML(plain)
			if err != nil {
				t.Fatal(err)
			}
			compare(t, "pretty", ask(t, handler, path, "application/json;pretty=1"+form), indented.Bytes())
			compare(t, "curl", ask(t, handler, path, "application/json"+form, "User-Agent: curl/8"), indented.Bytes())
			compare(t, "YAML", ask(t, handler, path, "application/yaml"+form), inYAML)
		})
	}
}

// age is how long ago something was created, in a table.
var age = regexp.MustCompile(`\b\d+s\b`)

func compare(t *testing.T, what string, got, want []byte) {
	t.Helper()
	got, want = age.ReplaceAll(got, []byte("age")), age.ReplaceAll(want, []byte("age"))
	if bytes.Equal(got, want) {
		return
	}
	at := 0
	for at < len(got) && at < len(want) && got[at] == want[at] {
		at++
	}
	from := max(0, at-100)
	t.Errorf("%s differs at byte %d of %d and %d: …%s, and not …%s", what, at, len(got), len(want),
		got[from:min(len(got), at+100)], want[from:min(len(want), at+100)])
}

// checkTable compares a table with what encoding/json makes of it.
func checkTable(t *testing.T, data []byte) {
	t.Helper()
	var table metav1.Table
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	again, err := json.Marshal(&table)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, "table", data, append(again, '\n'))
	if len(table.Rows) == 0 || len(table.ColumnDefinitions) == 0 || table.ResourceVersion == "" {
		t.Errorf("%d rows of %d columns at %q", len(table.Rows), len(table.ColumnDefinitions), table.ResourceVersion)
	}
}

// ask requests a list that is written in pieces. It sends the request a second time to
// check that nothing is written after the client has gone.
func ask(t *testing.T, handler http.Handler, path, accept string, headers ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := send(ctx, t, handler, path, accept, headers)
	if w.Code != http.StatusOK || w.Body.Len() < 1<<20 {
		t.Fatalf("%s: %d with %d bytes", accept, w.Code, w.Body.Len())
	}
	if want, _, _ := strings.Cut(accept, ";"); w.Header().Get("Content-Type") != want {
		t.Errorf("%s: the answer is %s", accept, w.Header().Get("Content-Type"))
	}
	if w.largest > largestPiece {
		t.Errorf("%s: %d bytes at a time", accept, w.largest)
	}
	gone := &pieces{ResponseRecorder: httptest.NewRecorder(), onWrite: cancel}
	func() {
		defer func() {
			if err, _ := recover().(error); !errors.Is(err, http.ErrAbortHandler) {
				t.Errorf("%s: an answer that was cut off ends with %v", accept, err)
			}
		}()
		serve(ctx, t, gone, handler, path, accept, headers)
	}()
	if gone.Body.Len() > largestPiece {
		t.Errorf("%s: %d bytes were encoded for a client that had gone", accept, gone.Body.Len())
	}
	return w.Body.Bytes()
}

func send(ctx context.Context, t *testing.T, handler http.Handler, path, accept string, headers []string) *pieces {
	t.Helper()
	w := &pieces{ResponseRecorder: httptest.NewRecorder()}
	serve(ctx, t, w, handler, path, accept, headers)
	return w
}

func serve(ctx context.Context, t *testing.T, w http.ResponseWriter, handler http.Handler, path, accept string, headers []string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, nil).WithContext(ctx)
	req.Header.Set("Accept", accept)
	setHeaders(req, headers)
	handler.ServeHTTP(w, req)
}

// pieces records how much is written at a time.
type pieces struct {
	*httptest.ResponseRecorder
	largest int
	onWrite func()
}

// Write implements http.ResponseWriter.
func (p *pieces) Write(data []byte) (int, error) {
	p.largest = max(p.largest, len(data))
	if p.onWrite != nil {
		p.onWrite()
	}
	return p.ResponseRecorder.Write(data)
}
