package publish

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/openapi"
	"github.com/espalier-dev/espalier/server/reply"
)

// response is a document as it was asked for.
type response struct {
	name, contentType string
	hash              hash
	immutable         bool // under this URL there will never be anything else
	write             func(context.Context, io.Writer) error
}

// offers are the media types of documents: JSON, and protobuf under a name of
// which some clients know only an older, invalid form.
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

// negotiate returns the response of the media type that the request asks for.
// If there is none, it answers itself.
func negotiate(w http.ResponseWriter, req *http.Request, d *document) (response, bool) {
	w.Header().Set("Vary", "Accept")
	offered := offers[d.format]
	options, ok := negotiation.NegotiateMediaTypeOptions(req.Header.Get("Accept"), offered, negotiation.DefaultEndpointRestrictions)
	if !ok {
		reply.Fail(w, req, http.StatusNotAcceptable)
		return response{}, false
	}
	if options.Accepted.MediaType == offered[0].MediaType {
		return response{contentType: offered[0].MediaType, write: d.writeJSON}, true
	}
	return response{contentType: offered[1].MediaType, write: d.writeProtobuf}, true
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
	key := r.name + " " + r.contentType + " " + r.hash.String()
	var err error
	if data := h.cache.get(key); data != nil {
		err = sendKept(w, data, coding)
	} else {
		err = h.produce(w, req, r, key, coding)
	}
	if err != nil {
		if req.Context().Err() == nil {
			klog.V(2).InfoS("OpenAPI document was not sent", "document", r.name, "reason", err.Error())
		}
		panic(http.ErrAbortHandler) // so that a part of a document is not taken for the whole
	}
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

var zippers = sync.Pool{New: func() any {
	z, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is valid
	}
	return z
}}

// produce makes a document while it sends it, and keeps it if it is small. One
// that nobody wants compressed is not worth compressing.
func (h *Handler) produce(w io.Writer, req *http.Request, r response, key string, as coding) error {
	if as == plain {
		return r.write(req.Context(), w)
	}
	var keep capped
	zipper := zippers.Get().(*gzip.Writer)
	defer zippers.Put(zipper)
	zipper.Reset(io.MultiWriter(w, &keep))
	if err := r.write(req.Context(), zipper); err != nil {
		return err
	}
	if err := zipper.Close(); err != nil {
		return err
	}
	if !keep.over {
		h.cache.put(key, keep.data)
	}
	return nil
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

func internal(w http.ResponseWriter, req *http.Request, err error) {
	reply.Error(w, req, schema.GroupVersion{}, apierrors.NewInternalError(err))
}
