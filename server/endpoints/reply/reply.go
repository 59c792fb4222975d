package reply

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// Codecs write metav1.Status and nothing else.
var Codecs = func() serializer.CodecFactory {
	scheme, v1 := runtime.NewScheme(), schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1, &metav1.Status{})
	return serializer.NewCodecFactory(scheme)
}()

// notSynced is what upstream says while it does not know all resources yet.
const notSynced = "the request has been made before all known HTTP paths have been installed, please try again"

// Error answers a request with an error, in the encoding that the client asks for.
func Error(w http.ResponseWriter, req *http.Request, err error) {
	// A Status has no version of its own.
	responsewriters.ErrorNegotiated(err, Codecs, schema.GroupVersion{}, w, req)
}

// Fail answers a request that is for no resource with the error of a status code.
func Fail(w http.ResponseWriter, req *http.Request, code int) {
	err := apierrors.NewGenericServerResponse(code, req.Method, schema.GroupResource{}, "", "", 0, false)
	if code == http.StatusServiceUnavailable {
		err = Unavailable(notSynced)
	}
	Error(w, req, err)
}

// Unavailable is the error that asks a client to come back in a second.
func Unavailable(why string) *apierrors.StatusError {
	err := apierrors.NewServiceUnavailable(why)
	err.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	return err
}

// Matches reports whether an If-None-Match header names a tag.
func Matches(header, tag string) bool {
	for one := range strings.SplitSeq(header, ",") {
		one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
		if one == tag || one == "*" {
			return true
		}
	}
	return false
}
