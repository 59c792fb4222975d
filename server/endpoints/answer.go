package endpoints

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
)

// Answerer is the storage of a subresource that answers a question about an object and stores
// nothing. The question is in the body, which is an object of the scope's kind, and in the query.
type Answerer interface {
	rest.Storage
	// Answer returns what is written as JSON, with the status 200.
	Answer(ctx context.Context, name string, body runtime.Object, query url.Values) (any, error)
}

// answer is the handler of create requests to an Answerer.
func (e *Endpoint) answer(s Answerer) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		result, err := e.ask(req, s)
		var data []byte
		if err == nil {
			data, err = json.Marshal(result)
		}
		if err != nil {
			reply.Error(w, req, err)
			return
		}
		w.Header().Set("Content-Type", runtime.ContentTypeJSON)
		_, _ = w.Write(data) // a client that is gone gets no answer
	}
}

// ask reads the body of a request, and has it answered.
func (e *Endpoint) ask(req *http.Request, s Answerer) (any, error) {
	ctx := req.Context()
	info, _ := request.RequestInfoFrom(ctx) // it led here
	body, err := readBody(req, e.Scope.MaxRequestBodyBytes)
	if err != nil {
		return nil, err
	}
	media, err := negotiation.NegotiateInputSerializer(req, false, e.Scope.Serializer)
	if err != nil {
		return nil, err
	}
	expected := e.Scope.Kind
	decoder := e.Scope.Serializer.DecoderToVersion(media.StrictSerializer, e.Scope.HubGroupVersion)
	obj, kind, err := decoder.Decode(body, &expected, s.New())
	if unknown, ok := runtime.AsStrictDecodingError(err); ok && obj != nil {
		for _, one := range unknown.Errors() {
			warning.AddWarning(ctx, "", one.Error())
		}
		err = nil
	}
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest(err.Error())
	case !e.Scope.AcceptsGroupVersion(kind.GroupVersion()):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", kind.GroupVersion(), expected.GroupVersion()))
	}
	audit.LogRequestObject(ctx, obj, kind.GroupVersion(), e.Scope.Resource, e.Scope.Subresource, e.Scope.Serializer)
	return s.Answer(request.WithNamespace(ctx, info.Namespace), info.Name, obj, req.URL.Query())
}

// readBody reads a body of at most limit bytes.
func readBody(req *http.Request, limit int64) ([]byte, error) {
	if limit <= 0 {
		limit = DefaultMaxRequestBodyBytes
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, limit+1))
	switch {
	case err != nil:
		return nil, apierrors.NewBadRequest("failed to read the body of the request: " + err.Error())
	case int64(len(body)) > limit:
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("limit is %d", limit))
	}
	return body, nil
}
