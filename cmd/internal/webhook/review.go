package webhook

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// Kind is what a converter converts.
type Kind struct{ Group, Kind string }

// Converter returns an object in another version of its kind.
type Converter interface {
	Convert(object []byte, version string) ([]byte, error)
}

const (
	// maxBody bounds a review. API servers send all objects of a page in one review.
	maxBody = 64 << 20
	// maxReviews bounds the reviews that are converted at a time. More wait.
	maxReviews = 8
	// maxBodies bounds the bodies that are in memory. A request that does not fit is refused.
	maxBodies = maxReviews * maxBody
)

// Handler answers conversion reviews.
type Handler struct {
	kinds map[Kind]Converter
	log   *slog.Logger
	slots chan struct{}
	held  atomic.Int64 // bytes of bodies
}

// NewHandler returns a handler for kinds.
func NewHandler(kinds map[Kind]Converter, log *slog.Logger) *Handler {
	return &Handler{kinds: kinds, log: log, slots: make(chan struct{}, maxReviews)}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "send a ConversionReview by POST", http.StatusMethodNotAllowed)
		return
	}
	// A client that sends slowly holds what it has sent, and no turn.
	reader := &bodyReader{Reader: http.MaxBytesReader(w, r.Body, maxBody), held: &h.held}
	defer reader.release()
	body, err := io.ReadAll(reader)
	switch {
	case errors.Is(err, errBusy):
		h.refuse(w, http.StatusServiceUnavailable, err.Error())
		return
	case err != nil:
		h.refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("read the ConversionReview: %v", err))
		return
	}
	select {
	case h.slots <- struct{}{}:
	case <-r.Context().Done():
		return
	}
	answer, err := func() ([]byte, error) {
		defer func() { <-h.slots }() // before the client reads the answer, which may take long
		return h.Review(body)
	}()
	if err != nil {
		h.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(answer); err != nil {
		h.log.Error("Could not answer", "error", err)
	}
}

var errBusy = errors.New("other requests hold all memory for ConversionReviews: try again")

// bodyReader counts what is read of a body.
type bodyReader struct {
	io.Reader
	held *atomic.Int64 // of all bodies
	own  int64
}

// Read implements io.Reader.
func (b *bodyReader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	b.own += int64(n)
	if b.held.Add(int64(n)) > maxBodies {
		return 0, errBusy
	}
	return n, err
}

func (b *bodyReader) release() { b.held.Add(-b.own) }

func (h *Handler) refuse(w http.ResponseWriter, code int, message string) {
	h.log.Error("Refused a request", "error", message)
	http.Error(w, message, code)
}

const reviewVersion = "apiextensions.k8s.io/v1"

// Review answers a ConversionReview. The error is for what is none.
func (h *Handler) Review(body []byte) ([]byte, error) {
	doc, err := jsondoc.Parse(body, jsondoc.Limits{})
	if err != nil {
		return nil, fmt.Errorf("read the ConversionReview: %w", err)
	}
	defer doc.Release()
	if doc.Kind(jsondoc.Root) != jsondoc.Object || text(doc, jsondoc.Root, "kind") != "ConversionReview" {
		return nil, fmt.Errorf("the request is no ConversionReview")
	}
	if v := text(doc, jsondoc.Root, "apiVersion"); v != reviewVersion {
		return nil, fmt.Errorf("the ConversionReview has apiVersion %q: set conversionReviewVersions: [v1] in the CRD", v)
	}
	request, ok := doc.Get(jsondoc.Root, "request")
	if !ok || doc.Kind(request) != jsondoc.Object {
		return nil, fmt.Errorf("the ConversionReview has no request")
	}
	out := []byte(`{"apiVersion":"` + reviewVersion + `","kind":"ConversionReview","response":{"uid":`)
	out = jsondoc.AppendString(out, text(doc, request, "uid"))
	start := len(out)
	out = append(out, `,"convertedObjects":[`...)
	out, err = h.objects(out, doc, request)
	if err != nil {
		h.log.Error("Could not convert", "error", err)
		out = append(out[:start], `,"convertedObjects":[],"result":{"status":"Failure","reason":"Invalid","message":`...)
		return append(jsondoc.AppendString(out, err.Error()), `}}}`...), nil
	}
	return append(out, `],"result":{"status":"Success"}}}`...), nil
}

// objects appends the objects of a request in the desired version.
func (h *Handler) objects(out []byte, doc *jsondoc.Doc, request jsondoc.Value) ([]byte, error) {
	desired := text(doc, request, "desiredAPIVersion")
	group, version, ok := strings.Cut(desired, "/")
	if !ok {
		return out, fmt.Errorf("desiredAPIVersion is %q, which has no group", desired)
	}
	list, ok := doc.Get(request, "objects")
	if !ok || doc.Kind(list) != jsondoc.Array {
		return out, nil
	}
	for i, o := range doc.Items(list) {
		if doc.Kind(o) != jsondoc.Object {
			return out, fmt.Errorf("objects[%d] is no object", i)
		}
		kind := Kind{group, text(doc, o, "kind")}
		c, known := h.kinds[kind]
		if !known {
			return out, fmt.Errorf("no CRD of kind %q in group %q was given with --crd", kind.Kind, group)
		}
		converted, err := c.Convert(doc.Raw(o), version)
		if err != nil {
			return out, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, converted...)
	}
	return out, nil
}

// text returns a member that is a string, or "".
func text(doc *jsondoc.Doc, at jsondoc.Value, name string) string {
	v, ok := doc.Get(at, name)
	if !ok || doc.Kind(v) != jsondoc.String {
		return ""
	}
	return doc.Text(v)
}
