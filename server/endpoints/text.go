package endpoints

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/klog/v2"
)

// layout is a form of answers for human readers.
type layout int

const (
	compact layout = iota // JSON without white space, for programs
	indented
	inYAML
)

// textBatch is how many bytes of items become text at a time.
const textBatch = 32 << 10

// streaming says how an answer becomes text.
type streaming int

const (
	inOnePiece streaming = iota // an object
	itemByItem                  // a list
)

// forReaders answers requests for YAML, and for JSON with indentation, with what
// a handler writes as compact JSON. k8s.io/apiserver builds such an answer in
// memory as a whole, several times, and does not stop before it is complete. Here a
// list is converted item by item as it is written, and ends with its request. The bytes
// are the same.
//
// Responses are not compressed: people read few of them.
func forReaders(scope *handlers.RequestScope, s streaming, handler http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		as, plain := layoutFor(scope, req)
		if as == compact {
			handler(w, req)
			return
		}
		t := &textWriter{ResponseWriter: w, ctx: req.Context(), as: as, stream: s == itemByItem}
		handler(t, plain)
		if err := t.end(); err != nil {
			if t.sent && req.Context().Err() == nil {
				klog.ErrorS(err, "Failed to write a response, closing the connection", "path", req.URL.Path)
			}
			fail(w, req, t.sent, err)
		}
	}
}

// layoutFor returns the layout that a request asks for, and the request that
// asks for the same as compact JSON.
func layoutFor(scope *handlers.RequestScope, req *http.Request) (layout, *http.Request) {
	if scope.Serializer == nil || !maybeForReaders(req) {
		return compact, req
	}
	options, info, err := negotiation.NegotiateOutputMediaType(req, scope.Serializer, scope)
	if err != nil {
		return compact, req
	}
	var as layout
	switch {
	case info.MediaType == apiruntime.ContentTypeYAML:
		as = inYAML
	case info.MediaType == apiruntime.ContentTypeJSON && info.PrettySerializer != nil && info.Serializer == info.PrettySerializer:
		as = indented
	default:
		return compact, req
	}
	accept := apiruntime.ContentTypeJSON
	if c := options.Convert; c != nil {
		accept += ";as=" + c.Kind + ";v=" + c.Version + ";g=" + c.Group
	}
	plain := req.Clone(req.Context())
	plain.Header.Set("Accept", accept)
	plain.Header.Del("Accept-Encoding")
	query := plain.URL.Query()
	query.Set("pretty", "false") // whatever the user agent
	plain.URL.RawQuery = query.Encode()
	return as, plain
}

// maybeForReaders skips the content negotiation for programs.
func maybeForReaders(req *http.Request) bool {
	agent, accept := req.UserAgent(), req.Header.Get("Accept")
	return strings.Contains(accept, "yaml") || strings.Contains(accept, "pretty") || strings.Contains(req.URL.RawQuery, "pretty") ||
		strings.HasPrefix(agent, "curl") || strings.HasPrefix(agent, "Wget") || strings.HasPrefix(agent, "Mozilla/5.0")
}

// textWriter turns the JSON that is written to it into text for readers.
type textWriter struct {
	http.ResponseWriter
	ctx    context.Context
	as     layout
	stream bool // lists come item by item

	code    int  // that is not sent yet
	sent    bool // a part of the answer
	foreign bool // it is not JSON: it stays as it is
	begun   bool
	split   *splitter
	whole   bytes.Buffer // unless it is a list

	members map[string][]byte // that are not written yet
	written int               // members
	array   string
	batch   []byte // items that are not written yet, with commas between them
	inBatch int    // items
	items   int    // items that are
	held    []byte // what is before the first items, until they are converted
	hold    bool
	err     error
}

// Unwrap is for http.ResponseController.
func (t *textWriter) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// WriteHeader implements http.ResponseWriter. The code waits until something is
// converted: that may fail.
func (t *textWriter) WriteHeader(code int) {
	if t.code == 0 {
		t.code = code
	}
}

func (t *textWriter) begin() {
	t.begun = true
	if t.foreign = t.Header().Get("Content-Type") != apiruntime.ContentTypeJSON; t.foreign {
		return
	}
	t.Header().Del("Content-Length")
	if t.as == inYAML {
		t.Header().Set("Content-Type", apiruntime.ContentTypeYAML)
	}
	if t.stream {
		t.members = map[string][]byte{}
		t.split = &splitter{out: t, arrays: map[string]bool{"items": true, "rows": true}}
	}
}

// Write implements http.ResponseWriter.
func (t *textWriter) Write(p []byte) (int, error) {
	if !t.begun {
		t.begin()
	}
	switch {
	case t.err != nil:
		return 0, t.err
	case t.foreign:
		return t.out(p)
	case t.split == nil:
		return t.whole.Write(p)
	}
	n, err := t.split.Write(p)
	t.err = err
	return n, err
}

// out writes a part of the answer.
func (t *textWriter) out(p []byte) (int, error) {
	if t.hold {
		t.held = append(t.held, p...)
		return len(p), nil
	}
	if len(t.held) > 0 {
		p, t.held = append(t.held, p...), nil
	}
	if !t.sent {
		t.sent = true
		t.ResponseWriter.WriteHeader(cmp.Or(t.code, http.StatusOK))
	}
	return t.ResponseWriter.Write(p)
}

func (t *textWriter) send(s string) error {
	_, err := t.out([]byte(s))
	return err
}

// end writes what is left.
func (t *textWriter) end() error {
	switch {
	case t.err != nil:
		return t.err
	case t.split != nil:
		return t.endList()
	case t.whole.Len() > 0:
		return t.text(bytes.TrimRight(t.whole.Bytes(), "\n"))
	case t.code != 0 && !t.sent:
		t.ResponseWriter.WriteHeader(t.code)
	}
	return nil
}

func (t *textWriter) endList() error {
	if err := t.rest(""); err != nil {
		return err
	}
	switch {
	case t.as == indented && t.written > 0:
		return t.send("\n}")
	case t.written > 0:
		return nil
	case t.as == indented:
		return t.send("{}")
	default:
		return t.send("{}\n")
	}
}

// text writes a whole document.
func (t *textWriter) text(data []byte) error {
	if len(data) == 0 {
		return nil
	}
	var out []byte
	var err error
	if t.as == inYAML {
		out, err = toYAML(t.ctx, "the answer", data)
	} else {
		out, err = toIndented(data, "")
	}
	if err != nil {
		return err
	}
	_, err = t.out(out)
	return err
}

// member writes a member. JSON keeps the order of members; in YAML they are
// sorted, so that some wait for the items.
func (t *textWriter) member(key, value []byte) error {
	if t.as == inYAML {
		t.members[string(key)] = bytes.Clone(value)
		return nil
	}
	text, err := toIndented(value, "  ")
	if err != nil {
		return err
	}
	_, err = t.out(append([]byte(t.separator(string(key))), text...))
	return err
}

// separator begins a member of indented JSON.
func (t *textWriter) separator(key string) string {
	before := "{"
	if t.written > 0 {
		before = ","
	}
	t.written++
	return before + "\n  \"" + key + "\": "
}

// rest writes, in YAML, the members that are sorted before another one, or all.
func (t *textWriter) rest(before string) error {
	part := map[string]json.RawMessage{}
	for key, value := range t.members {
		if before == "" || key < before {
			part[key] = value
			delete(t.members, key)
		}
	}
	if len(part) == 0 {
		return nil
	}
	t.written += len(part)
	data, err := json.Marshal(part)
	if err != nil {
		return err
	}
	return t.text(data)
}

// open begins the items. What stands before the items waits for the first of
// them: if they cannot be converted, there is still time for a Status.
func (t *textWriter) open(key string) error {
	t.array, t.items, t.hold = key, 0, true
	if t.as == inYAML {
		err := t.rest(key)
		t.written++
		return err
	}
	return t.send(t.separator(key))
}

func (t *textWriter) item(value []byte) error {
	if len(t.batch) > 0 {
		t.batch = append(t.batch, ',')
	}
	t.batch = append(t.batch, value...)
	t.inBatch++
	if len(t.batch) < textBatch {
		return nil
	}
	return t.flush()
}

// close ends the items.
func (t *textWriter) close() error {
	if err := t.flush(); err != nil {
		return err
	}
	t.hold = false
	switch {
	case t.items == 0 && t.as == inYAML:
		return t.send(t.array + ": []\n")
	case t.items == 0:
		return t.send("[]")
	case t.as == indented:
		return t.send("\n  ]")
	}
	return nil
}

// flush writes the items that have come together, as they are written within
// the whole: lines are broken by where they begin.
func (t *textWriter) flush() error {
	if len(t.batch) == 0 {
		return nil
	}
	var text []byte
	var err error
	if t.as == inYAML {
		which := fmt.Sprintf("one of the %s %d to %d of the answer", t.array, t.items, t.items+t.inBatch-1)
		text, err = toYAML(t.ctx, which, slices.Concat([]byte(`{"`+t.array+`":[`), t.batch, []byte("]}")))
		if t.items > 0 {
			_, text, _ = bytes.Cut(text, []byte("\n")) // the key
		}
	} else {
		text, err = toIndented(slices.Concat([]byte("["), t.batch, []byte("]")), "  ")
		text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("]")), []byte("\n  "))
		if t.items > 0 && err == nil {
			text[0] = ',' // in place of the bracket
		}
	}
	if err != nil {
		return err
	}
	t.items, t.inBatch, t.hold = t.items+t.inBatch, 0, false
	if t.batch = t.batch[:0]; cap(t.batch) > 16*textBatch {
		t.batch = nil
	}
	_, err = t.out(text)
	return err
}
