package endpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"sigs.k8s.io/yaml"
)

// scopeOfAll is one that serves JSON, YAML and tables.
func scopeOfAll() *handlers.RequestScope {
	return &handlers.RequestScope{Serializer: serializer.NewCodecFactory(runtime.NewScheme()), TableConvertor: manyRows{}}
}

// inPieces writes a JSON document, n bytes at a time, as encoders do.
func inPieces(document string, n int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(document)))
		for rest := document; rest != ""; {
			now := min(n, len(rest))
			if _, err := w.Write([]byte(rest[:now])); err != nil {
				return
			}
			rest = rest[now:]
		}
	}
}

func read(t *testing.T, accept string, s streaming, handler http.HandlerFunc) (*httptest.ResponseRecorder, any) {
	t.Helper()
	return readWithin(t.Context(), t, accept, s, handler)
}

// readWithin returns the answer, and what the handler panics with.
func readWithin(ctx context.Context, t *testing.T, accept string, s streaming, handler http.HandlerFunc) (w *httptest.ResponseRecorder, aborted any) {
	t.Helper()
	req := httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
	req.Header.Set("Accept", accept)
	w = httptest.NewRecorder()
	defer func() { aborted = recover() }()
	forReaders(scopeOfAll(), s, handler)(w, req)
	return w, nil
}

const asIndented, asYAML = "application/json;pretty=1", "application/yaml"

// wholly is the text of a document that is converted as a whole.
func wholly(t *testing.T, accept, document string) string {
	t.Helper()
	data := []byte(strings.TrimRight(document, "\n"))
	if accept == asYAML {
		text, err := yaml.JSONToYAML(data)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Lists that become text item by item have the bytes of those that become text at once.
func TestTextOfListsIsThatOfTheWhole(t *testing.T) {
	item := func(n int) string {
		return fmt.Sprintf(`{"n":"%s","words":"%s"}`, strings.Repeat("x", n), strings.Repeat("word ", 30))
	}
	for name, document := range map[string]string{
		"empty":           `{}` + "\n",
		"no items":        `{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}` + "\n",
		"null":            `{"apiVersion":"v1","items":null,"kind":"List"}`,
		"items alone":     `{"items":[1,2]}`,
		"members before":  `{"apiVersion":"v1","a":{},"items":[{"b":1}]}`,
		"members after":   `{"items":[{"b":1}],"kind":"List","zones":[]}` + "\n",
		"kinds of values": `{"kind":"List","items":[{"a":1},{"b":[1,2,{"c":"}]\"\\"}]},"x,]",null,-3.5e2,true,[],{}],"last":"{[,"}`,
		"rows":            `{"kind":"Table","columnDefinitions":[{"name":"N","items":[1]}],"rows":[{"cells":["a,b",[1]]},{"cells":[]}]}`,
		"white space":     "{ \"kind\": \"List\",\n\t\"items\":\r\n[ 1,\n 2]}\n",
		"batches":         `{"kind":"List","items":[` + strings.Join([]string{item(20_000), item(20_000), item(5), item(40_000), item(7), item(8)}, ",") + `],"metadata":{}}`,
		"a full batch":    `{"items":["` + strings.Repeat("x", textBatch-2) + `","y"]}`,
		"nearly full":     `{"items":["` + strings.Repeat("x", textBatch-3) + `","y"]}`,
		"a large item":    `{"items":[1,` + item(20*textBatch) + `,2,3]}`,
	} {
		for _, accept := range []string{asIndented, asYAML} {
			want := wholly(t, accept, document)
			for _, n := range []int{1, 7, len(document)} {
				w, aborted := read(t, accept, itemByItem, inPieces(document, n))
				if got := w.Body.String(); got != want || aborted != nil || w.Code != http.StatusOK {
					t.Errorf("%s, %s, %d bytes at a time: %d %v\n%.300s\nwant\n%.300s", name, accept, n, w.Code, aborted, got, want)
				}
				if got, want := w.Header().Get("Content-Type"), strings.TrimSuffix(accept, ";pretty=1"); got != want || w.Header().Get("Content-Length") != "" {
					t.Errorf("%s: %v", accept, w.Header())
				}
			}
		}
	}
}

func TestTextOfObjects(t *testing.T) {
	const document = `{"a":{"items":[1,{"b":"c"}]},"z":[]}` + "\n"
	for _, accept := range []string{asIndented, asYAML} {
		w, aborted := read(t, accept, inOnePiece, func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusCreated)
			w.WriteHeader(http.StatusTeapot) // the first one counts
			inPieces(document, 5)(w, req)
		})
		if got, want := w.Body.String(), wholly(t, accept, document); got != want || aborted != nil || w.Code != http.StatusCreated {
			t.Errorf("%s: %d %v\n%s\nwant\n%s", accept, w.Code, aborted, got, want)
		}
	}
}

// What is not JSON, or nothing, stays as it is.
func TestTextOfOtherAnswers(t *testing.T) {
	for _, s := range []streaming{inOnePiece, itemByItem} {
		w, _ := read(t, asYAML, s, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.Header().Set("Content-Length", "8")
			w.WriteHeader(http.StatusBadGateway)
			for range 2 {
				if n, err := w.Write([]byte("{}[]")); n != 4 || err != nil {
					t.Error(n, err)
				}
			}
		})
		if w.Code != http.StatusBadGateway || w.Body.String() != "{}[]{}[]" || w.Header().Get("Content-Type") != "text/plain" || w.Header().Get("Content-Length") != "8" {
			t.Errorf("%d %s %v", w.Code, w.Body, w.Header())
		}
		w, _ = read(t, asYAML, s, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
		if w.Code != http.StatusNoContent || w.Body.Len() > 0 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		w, aborted := read(t, asYAML, s, func(http.ResponseWriter, *http.Request) {})
		if w.Code != http.StatusOK || w.Body.Len() > 0 || aborted != nil {
			t.Errorf("%d %s %v", w.Code, w.Body, aborted)
		}
	}
	w, _ := read(t, asYAML, itemByItem, inPieces(`{"apiVersion":tru,"items":[]}`, 3))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "invalid character") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w, _ = read(t, asYAML, itemByItem, inPieces(`[1]`, 3))
	if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "the response is not a JSON object") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func nested(depth int, inside string) string {
	return strings.Repeat("[", depth) + inside + strings.Repeat("]", depth)
}

// Objects that are too deep stay compact JSON, and are refused as YAML while there is
// time for a Status.
func TestTextOfDeepObjects(t *testing.T) {
	deep := nested(2049, "")
	for _, test := range []struct {
		name, accept, document string
		s                      streaming
		code                   int
		want                   string // part of the answer
	}{
		{"an object", asIndented, `{"a":` + deep + `}`, inOnePiece, 200, `{"a":` + deep + `}`},
		{"an object", asYAML, `{"a":` + deep + `}`, inOnePiece, 406, "the answer cannot be written as YAML: it is so deep that its lines would begin with more than 8 MB of white space; ask for JSON"},
		{"a member", asYAML, `{"kind":` + deep + `,"items":[]}`, itemByItem, 200, "items: []"},
		{"an item", asIndented, `{"items":[1,` + deep + `]}`, itemByItem, 200, `[1,` + deep},
		{"an item", asYAML, `{"apiVersion":"v1","items":[1,` + deep + `,2]}`, itemByItem, 406, "one of the items 0 to 2 of the answer cannot be written as YAML"},
	} {
		w, aborted := read(t, test.accept, test.s, inPieces(test.document, len(test.document)))
		if test.name == "a member" { // the items are sent by then
			if aborted != any(http.ErrAbortHandler) {
				t.Errorf("%s: %d %v %.200s", test.name, w.Code, aborted, w.Body)
			}
			continue
		}
		// YAML breaks long lines.
		if got := strings.Join(strings.Fields(w.Body.String()), " "); w.Code != test.code || aborted != nil || !strings.Contains(got, test.want) {
			t.Errorf("%s: %d %v %.200s", test.name, w.Code, aborted, w.Body)
		}
	}
	// The first batch is sent: the connection ends.
	large := `"` + strings.Repeat("x", textBatch) + `"`
	w, aborted := read(t, asYAML, itemByItem, inPieces(`{"items":[`+large+`,`+deep+`]}`, 1000))
	if aborted != any(http.ErrAbortHandler) || w.Body.Len() < textBatch {
		t.Errorf("%v after %d bytes", aborted, w.Body.Len())
	}
}

// White space is counted by lines, and lines are those of the layout.
func TestTooDeep(t *testing.T) {
	const many = 4000
	quoted := func(s string) string { return `"` + strings.Repeat(s, many) + `"` }
	for _, test := range []struct {
		name, data     string
		indented, yaml bool
	}{
		{"as much as is allowed", nested(2048, ""), false, false},
		{"more", nested(2049, ""), true, true},
		{"objects", strings.Repeat(`{"a":`, 2049) + "1" + strings.Repeat("}", 2049), true, true},
		{"items", nested(1000, strings.Repeat("1,", many)+"1"), true, true},
		{"items that are not deep", nested(2, strings.Repeat("1,", many)+"1"), false, false},
		{"text like items", nested(1000, quoted(",[{}]")), false, false},
		{"text after a quotation mark", nested(1000, `"\"`+strings.Repeat(",", many)+`"`), false, false},
		{"items after text", nested(1000, `"\\",`+strings.Repeat("1,", many)+`1`), true, true},
		{"lines of text", nested(1000, quoted(`\n`)), false, true},
		{"encoded characters", nested(1000, quoted(`\u2028`)), false, true},
		{"tabs", nested(1000, quoted(`\t`)), false, false},
		{"a backslash before an n", nested(1000, quoted(`\\n`)), false, false},
		{"words", nested(1000, quoted("a ")), false, true},
		{"words without spaces", nested(1000, quoted("ab")), false, false},
		{"U+0085", nested(1000, quoted("\u0085")), false, true},
		{"U+2028", nested(1000, quoted("\u2028")), false, true},
		{"U+2029", nested(1000, quoted("\u2029")), false, true},
		{"words that have room", nested(foldingDepth, `"`+strings.Repeat(" ", 300_000)+`"`), false, false},
		{"words that have none", nested(foldingDepth+1, `"`+strings.Repeat(" ", 300_000)+`"`), false, true},
	} {
		if got := tooDeep([]byte(test.data), indented); got != test.indented {
			t.Errorf("%s, indented: %t", test.name, got)
		}
		if got := tooDeep([]byte(test.data), inYAML); got != test.yaml {
			t.Errorf("%s, YAML: %t", test.name, got)
		}
	}
}

// A conversion waits for its turn no longer than its request lasts.
func TestConversionEndsWithItsRequest(t *testing.T) {
	for range cap(converters) {
		converters <- struct{}{}
	}
	defer func() {
		for range cap(converters) {
			<-converters
		}
	}()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(context.DeadlineExceeded)
	w, aborted := readWithin(ctx, t, asYAML, inOnePiece, inPieces(`{"a":1}`, 10))
	if w.Code != http.StatusGatewayTimeout || aborted != nil || !strings.Contains(w.Body.String(), "request did not complete within the allotted timeout") {
		t.Errorf("%d %v %s", w.Code, aborted, w.Body)
	}
	cause := errors.New("over")
	ctx, cancel = context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := toYAML(ctx, "", []byte("{}")); !errors.Is(err, cause) {
		t.Error(err)
	}
}

func TestConversionsGiveTheirTurnBack(t *testing.T) {
	for range 2 * cap(converters) {
		if _, err := toYAML(t.Context(), "", []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	if len(converters) > 0 {
		t.Errorf("%d conversions have not ended", len(converters))
	}
	if _, err := toYAML(t.Context(), "the part", []byte(`{"a":`)); err == nil || !strings.HasPrefix(err.Error(), "the part cannot be written as YAML: ") {
		t.Error(err)
	}
}

// Which requests are for readers, and how the handler is asked for the same.
func TestLayouts(t *testing.T) {
	for _, test := range []struct {
		target, accept, agent string
		want                  layout
		plain                 string // what the handler is asked for
	}{
		{"/", "", "", compact, ""},
		{"/", "application/json", "kubectl/v1", compact, "application/json"},
		{"/", "application/yaml", "kubectl/v1", inYAML, "application/json"},
		{"/", "application/json;pretty=1", "", indented, "application/json"},
		{"/?pretty=true", "application/json", "", indented, "application/json"},
		{"/?pretty=false", "application/json", "curl/8", compact, "application/json"},
		{"/", "", "curl/8", indented, "application/json"},
		{"/", "", "Wget/1", indented, "application/json"},
		{"/", "", "Mozilla/5.0 (X)", indented, "application/json"},
		{"/", "", "not curl", compact, ""},
		{"/", "application/vnd.kubernetes.protobuf", "curl/8", compact, "application/vnd.kubernetes.protobuf"},
		{"/", "text/yaml-like", "", compact, "text/yaml-like"},
		{"/?limit=3", "application/yaml;as=Table;v=v1;g=meta.k8s.io", "", inYAML, "application/json;as=Table;v=v1;g=meta.k8s.io"},
	} {
		req := httptest.NewRequest(http.MethodGet, test.target, nil)
		req.Header.Set("Accept", test.accept)
		req.Header.Set("User-Agent", test.agent)
		req.Header.Set("Accept-Encoding", "gzip")
		got, plain := layoutFor(scopeOfAll(), req)
		if got != test.want || plain.Header.Get("Accept") != test.plain {
			t.Errorf("%+v: %d %q", test, got, plain.Header.Get("Accept"))
		}
		if got == compact {
			if plain != req {
				t.Errorf("%+v: the request is changed", test)
			}
			continue
		}
		if plain.URL.Query().Get("pretty") != "false" || plain.URL.Query().Get("limit") != req.URL.Query().Get("limit") || plain.Header.Get("Accept-Encoding") != "" {
			t.Errorf("%+v: %v %v", test, plain.URL, plain.Header)
		}
		if req.Header.Get("Accept") != test.accept || req.URL.RequestURI() != test.target {
			t.Errorf("%+v: the request itself is changed", test)
		}
	}
	if as, _ := layoutFor(&handlers.RequestScope{}, httptest.NewRequest(http.MethodGet, "/?pretty=1", nil)); as != compact {
		t.Error("an answer that no serializer writes has a layout")
	}
}

func TestFieldValidationIsFilledIn(t *testing.T) {
	for _, test := range []struct{ verb, target, validation, want string }{
		{"create", "/a", metav1.FieldValidationStrict, "/a?fieldValidation=Strict"},
		{"update", "/a?b=c", metav1.FieldValidationIgnore, "/a?b=c&fieldValidation=Ignore"},
		{"patch", "/a", metav1.FieldValidationStrict, "/a?fieldValidation=Strict"},
		{"get", "/a", metav1.FieldValidationStrict, "/a"},
		{"delete", "/a", metav1.FieldValidationStrict, "/a"},
		{"create", "/a", "", "/a"},
		{"create", "/a", metav1.FieldValidationWarn, "/a"},
		{"create", "/a?fieldValidation=Warn", metav1.FieldValidationStrict, "/a?fieldValidation=Warn"},
		{"create", "/a?fieldValidation=", metav1.FieldValidationStrict, "/a?fieldValidation="},
		{"create", "/a?%zz", metav1.FieldValidationStrict, "/a?%zz"},
	} {
		req := httptest.NewRequest(http.MethodPost, test.target, nil)
		if got := WithFieldValidation(req, test.verb, test.validation).URL.RequestURI(); got != test.want {
			t.Errorf("%+v: %s", test, got)
		}
		if req.URL.RequestURI() != test.target {
			t.Errorf("%+v: the request itself is changed", test)
		}
	}
}
