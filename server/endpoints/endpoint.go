package endpoints

import (
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

const (
	// DefaultMaxRequestBodyBytes is what API servers accept.
	DefaultMaxRequestBodyBytes = 3 << 20
	// DefaultMinRequestTimeout is how long watches last at least.
	DefaultMinRequestTimeout = 30 * time.Minute
)

// PatchTypes are the patches that resources without Go types understand: those
// that need no knowledge of how to merge lists.
var PatchTypes = []string{
	string(types.JSONPatchType),
	string(types.MergePatchType),
	string(types.ApplyYAMLPatchType),
}

// Endpoint is one resource or subresource in one version.
type Endpoint struct {
	Scope *handlers.RequestScope
	// Storage has the verbs: rest.Getter, Lister, Watcher, Creater, NamedCreater, Updater,
	// Patcher, GracefulDeleter and CollectionDeleter, as far as there are; or it is a Connecter or an
	// Answerer.
	Storage   rest.Storage
	Admission admission.Interface
	// ManagedFields, if there is one, takes the place of the scope's field manager
	// for objects that are created or updated, unless Attended reports that there
	// are admission plugins, which see the managed fields. Nil is: there are none.
	ManagedFields *fieldmanager.ManagedFields
	Attended      func() bool
	// MinRequestTimeout is how long a watch lasts at least if the client does
	// not say.
	MinRequestTimeout time.Duration
	// PatchTypes are the media types of the patches that are understood;
	// PatchTypes of the package if nil.
	PatchTypes []string
	// CheckPatch, if not nil, returns an error for an apply or a strategic merge patch.
	CheckPatch func(body []byte) error
	// Deprecated is for the metric of requests to deprecated versions.
	Deprecated bool
}

// Handler returns the handler of a verb of RequestInfo, or nil if the storage does not
// support the verb.
func (e *Endpoint) Handler(verb string) http.HandlerFunc {
	if connect := e.connect(verb); connect != nil {
		return connect
	}
	switch verb {
	case "get":
		if s, ok := e.Storage.(rest.Getter); ok {
			return handlers.GetResource(s, e.Scope)
		}
	case "list":
		if s, ok := e.Storage.(rest.Lister); ok {
			watcher, _ := e.Storage.(rest.Watcher)
			return e.list(s, watcher)
		}
	case "watch":
		if s, ok := e.Storage.(rest.Watcher); ok {
			lister, _ := e.Storage.(rest.Lister)
			return handlers.ListResource(lister, s, e.Scope, true, e.MinRequestTimeout)
		}
	default:
		return e.change(verb)
	}
	return nil
}

// change is Handler for the verbs that change something.
func (e *Endpoint) change(verb string) http.HandlerFunc {
	switch verb {
	case "create":
		switch s := e.Storage.(type) {
		case Answerer:
			return e.answer(s)
		case rest.NamedCreater: // below an object, such as a token
			return handlers.CreateNamedResource(s, e.Scope, e.Admission)
		case rest.Creater:
			return e.create(s)
		}
	case "update":
		if s, ok := e.Storage.(rest.Updater); ok {
			return e.update(s)
		}
	case "patch":
		if s, ok := e.Storage.(rest.Patcher); ok {
			patches := e.PatchTypes
			if patches == nil {
				patches = PatchTypes
			}
			return inTurn(e.Scope.MaxRequestBodyBytes, e.CheckPatch, handlers.PatchResource(fieldmanager.Patching(s), e.Scope, e.Admission, patches))
		}
	case "delete":
		if s, ok := e.Storage.(rest.GracefulDeleter); ok {
			return handlers.DeleteResource(s, true, e.Scope, e.Admission)
		}
	case "deletecollection":
		if s, ok := e.Storage.(rest.CollectionDeleter); ok {
			return handlers.DeleteCollection(s, true, e.Scope, e.Admission)
		}
	}
	return nil
}

// create is the handler of create requests.
func (e *Endpoint) create(s rest.Creater) http.HandlerFunc {
	if e.ManagedFields == nil || e.Attended != nil && e.Attended() {
		return handlers.CreateResource(s, e.Scope, e.Admission)
	}
	return func(w http.ResponseWriter, req *http.Request) {
		handlers.CreateResource(e.ManagedFields.Creating(s, req.UserAgent()), e.ManagedFields.CreateScope(), e.Admission)(w, req)
	}
}

// update is the handler of update requests.
func (e *Endpoint) update(s rest.Updater) http.HandlerFunc {
	if e.ManagedFields == nil || e.Attended != nil && e.Attended() {
		return handlers.UpdateResource(fieldmanager.Updating(s), e.Scope, e.Admission)
	}
	return func(w http.ResponseWriter, req *http.Request) {
		handlers.UpdateResource(e.ManagedFields.Updating(s, req.UserAgent()), e.ManagedFields.UpdateScope(), e.Admission)(w, req)
	}
}

// Serve answers a request to the endpoint.
func Serve(w http.ResponseWriter, req *http.Request, info *request.RequestInfo, e *Endpoint) {
	if err := requestinfo.Check(info, req.Method); err != nil {
		reply.Error(w, req, err)
		return
	}
	handler := e.Handler(info.Verb)
	if handler == nil {
		reply.Error(w, req, apierrors.NewMethodNotSupported(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Verb))
		return
	}
	switch info.Verb {
	case "watch":
	case "list", "deletecollection":
		handler = untilEnd(forReaders(e.Scope, itemByItem, handler))
	default:
		handler = forReaders(e.Scope, inOnePiece, handler)
	}
	metrics.InstrumentHandlerFunc(strings.ToUpper(info.Verb), info.APIGroup, info.APIVersion, info.Resource, info.Subresource,
		metrics.CleanScope(info), metrics.APIServerComponent, e.Deprecated, "", handler)(w, req)
}
