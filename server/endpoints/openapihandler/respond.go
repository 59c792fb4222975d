package openapihandler

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/crd/openapi"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// response is a document as it was asked for.
type response struct {
	name, contentType string
	hash              hash
	immutable         bool          // under this URL there will never be anything else
	current           func() source // the document
	moving            bool          // current is another when the CRDs change
}

// offers are the media types of documents: JSON, and protobuf. Some clients know
// protobuf only by an older, invalid name.
var offers = map[openapi.Format][]runtime.SerializerInfo{
	openapi.V3: offersOf("com.github.proto-openapi.spec.v3"),
	openapi.V2: offersOf("com.github.proto-openapi.spec.v2"),
}

func offersOf(protobuf string) (list []runtime.SerializerInfo) {
	for _, subtype := range []string{"json", protobuf + ".v1.0+protobuf", protobuf + "@v1.0+protobuf"} {
		list = append(list, runtime.SerializerInfo{MediaType: "application/" + subtype, MediaTypeType: "application", MediaTypeSubType: subtype})
	}
	return list
}

// writer writes a document in one of its media types.
type writer func(*document, context.Context, io.Writer) error

// of returns the document of a hash to be written.
func (w writer) of(sum hash, d *document) source {
	return source{sum, func(ctx context.Context, out io.Writer) error { return w(d, ctx, out) }}
}

// negotiate returns the media type that a request asks for, and what writes it.
// If there is none, it answers itself.
func negotiate(w http.ResponseWriter, req *http.Request, f openapi.Format) (contentType string, write writer, ok bool) {
	w.Header().Set("Vary", "Accept")
	offered := offers[f]
	options, ok := negotiation.NegotiateMediaTypeOptions(req.Header.Get("Accept"), offered, negotiation.DefaultEndpointRestrictions)
	if !ok {
		reply.Fail(w, req, http.StatusNotAcceptable)
		return "", nil, false
	}
	if options.Accepted.MediaType == offered[0].MediaType {
		return offered[0].MediaType, (*document).writeJSON, true
	}
	return offered[1].MediaType, (*document).writeProtobuf, true
}

func setTag(w http.ResponseWriter, hash hash) { w.Header().Set("ETag", strconv.Quote(hash.String())) }

// respond sends a document, from the cache if it is there.
func (h *Handler) respond(w http.ResponseWriter, req *http.Request, r response) {
	header := w.Header()
	setTag(w, r.hash)
	header.Add("Vary", "Accept-Encoding")
	if r.immutable {
		header.Set("Cache-Control", "public, immutable")
		header.Set("Expires", time.Now().UTC().AddDate(1, 0, 0).Format(http.TimeFormat))
	}
	if reply.Matches(req.Header.Get("If-None-Match"), header.Get("ETag")) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	header.Set("Content-Type", r.contentType)
	coding := codingFor(req.Header.Get("Accept-Encoding"))
	if coding == gzipped {
		header.Set("Content-Encoding", "gzip")
	}
	if req.Method == http.MethodHead {
		return
	}
	if err := h.send(w, req, r, coding); err != nil {
		if req.Context().Err() == nil {
			klog.V(2).InfoS("Failed to send an OpenAPI document", "document", r.name, "reason", err.Error())
		}
		panic(http.ErrAbortHandler) // so that a part of a document is not taken for the whole
	}
}

// send sends a document of the cache, or one that is rendered for it.
func (h *Handler) send(w http.ResponseWriter, req *http.Request, r response, as coding) error {
	name := r.name + " " + r.contentType
	data := h.cache.get(name, r.hash)
	if data == nil {
		flight := name
		if !r.moving {
			flight += " " + r.hash.String()
		}
		made, err := h.flights.do(req.Context(), flight, func(ctx context.Context) (rendered, error) { return h.render(ctx, name, r.current()) })
		if err != nil {
			return err
		}
		data = made.data
		setTag(w, made.hash) // the CRDs may have changed in between
	}
	return sendKept(w, data, as)
}

func sendKept(w http.ResponseWriter, data []byte, as coding) error {
	if as == gzipped {
		w.Header().Set("Content-Length", strconv.Itoa(len(data)))
		_, err := w.Write(data)
		return err
	}
	unzip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	_, err = io.Copy(w, unzip)
	return err
}

// coding is how a response is sent.
type coding int

const (
	plain coding = iota
	gzipped
)

// codingFor reads an Accept-Encoding header.
func codingFor(header string) coding {
	for one := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(one, ";")
		if strings.TrimSpace(name) != "gzip" {
			continue
		}
		q, given := strings.CutPrefix(strings.TrimSpace(weight), "q=")
		if value, err := strconv.ParseFloat(q, 64); !given || err == nil && value > 0 {
			return gzipped
		}
		return plain
	}
	return plain
}
