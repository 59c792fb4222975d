package discovery

import (
	"bufio"
	"io"
	"net/http"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apidiscoverybeta "k8s.io/api/apidiscovery/v2beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// codecs know the types of discovery in all encodings.
var codecs = func() serializer.CodecFactory {
	scheme, v1 := runtime.NewScheme(), schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	utilruntime.Must(apidiscovery.AddToScheme(scheme))
	utilruntime.Must(apidiscoverybeta.AddToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// aggregatedKind returns the kind of aggregated document that a request asks
// for, or nil if it asks for none.
func aggregatedKind(req *http.Request) *schema.GroupVersionKind {
	options, ok := negotiation.NegotiateMediaTypeOptions(req.Header.Get("Accept"), codecs.SupportedMediaTypes(), aggregates{})
	if !ok {
		return nil
	}
	return options.Convert
}

// aggregates lets clients ask for aggregated documents. The older version,
// which upstream has given up, is the same but for its name.
type aggregates struct{}

// AllowsMediaTypeTransform implements negotiation.EndpointRestrictions.
func (aggregates) AllowsMediaTypeTransform(_, _ string, kind *schema.GroupVersionKind) bool {
	return kind != nil && kind.Kind == "APIGroupDiscoveryList" &&
		(kind.GroupVersion() == apidiscovery.SchemeGroupVersion || kind.GroupVersion() == apidiscoverybeta.SchemeGroupVersion)
}

// AllowsServerVersion implements negotiation.EndpointRestrictions.
func (aggregates) AllowsServerVersion(string) bool { return false }

// AllowsStreamSchema implements negotiation.EndpointRestrictions.
func (aggregates) AllowsStreamSchema(schema string) bool { return schema == "watch" }

// serve answers with the document. JSON is written unchanged; for other encodings it
// is decoded.
func (d *document) serve(w http.ResponseWriter, req *http.Request) {
	restrictions := negotiation.EndpointRestrictions(negotiation.DefaultEndpointRestrictions)
	if d.aggregated {
		restrictions = aggregates{}
	}
	options, info, err := negotiation.NegotiateOutputMediaType(req, codecs, restrictions)
	if err != nil {
		responsewriters.ErrorNegotiated(err, codecs, schema.GroupVersion{}, w, req)
		return
	}
	header := w.Header()
	header.Set("Vary", "Accept")
	header.Set("ETag", d.etag)
	if d.aggregated {
		header.Set("Cache-Control", "public")
	}
	if reply.Matches(req.Header.Get("If-None-Match"), d.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if info.MediaType == runtime.ContentTypeJSON && info.Serializer != info.PrettySerializer {
		contentType := info.MediaType
		if k := options.Convert; d.aggregated && k != nil {
			contentType += ";g=" + k.Group + ";v=" + k.Version + ";as=" + k.Kind
		}
		responsewriters.SerializeObject(contentType, asIs{d}, w, req, http.StatusOK, nil)
		return
	}
	o, err := d.decoded()
	if err != nil {
		responsewriters.InternalError(w, req, err)
		return
	}
	var gv schema.GroupVersion
	if d.aggregated && options.Convert != nil {
		gv = options.Convert.GroupVersion()
	}
	responsewriters.WriteObjectNegotiated(codecs, restrictions, gv, w, req, http.StatusOK, o, d.aggregated)
}

// asIs is an encoder that writes a document whatever the object is.
type asIs struct{ *document }

// Encode implements runtime.Encoder. The document about all groups has thousands of
// parts, and each would become a frame of its own.
func (d asIs) Encode(_ runtime.Object, w io.Writer) error {
	size := 0
	for _, part := range d.parts {
		size += len(part)
	}
	buffered := bufio.NewWriterSize(w, min(size, frameSize))
	for _, part := range d.parts {
		if _, err := buffered.Write(part); err != nil {
			return err
		}
	}
	return buffered.Flush()
}

// frameSize is how much is handed to the connection at once.
const frameSize = 256 << 10

// Identifier implements runtime.Encoder.
func (asIs) Identifier() runtime.Identifier { return "discovery" }
