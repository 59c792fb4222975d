package server

import (
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/mux"

	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// definitionGroup is the API group of CustomResourceDefinition.
const definitionGroup = "apiextensions.k8s.io"

// router sends requests to the handlers of their resources.
//
//	/api, /api/V, /apis, /apis/G, /apis/G/V           ──▶ discovery
//	/api/v1/…, /apis/G/V/… of a built-in version      ──▶ builtin
//	/apis/apiextensions.k8s.io/V/customresource…      ──▶ CRDs
//	/apis/espalier.dev/…/tenants/NAME/export, import  ──▶ transfer
//	/apis/G/V/…                                       ──▶ custom
//	/openapi/v2, /openapi/v3, /openapi/v3/…           ──▶ publish
type router struct {
	validation  string // fieldValidation of requests that do not say, except for custom resources
	discovery   http.Handler
	builtin     builtIn
	definitions http.Handler
	custom      http.Handler
	publish     http.Handler
	transfer    http.Handler // nil without tenants
}

// builtIn are the built-in resources.
type builtIn interface {
	http.Handler
	Serves(group, version string) bool
}

// install puts the router on the server's paths.
func (r *router) install(mux *mux.PathRecorderMux) {
	for _, path := range []string{"/api", "/apis"} {
		mux.Handle(path, r.discovery)
	}
	served := r.builtInFirst(http.HandlerFunc(r.group))
	mux.UnlistedHandlePrefix("/api/", served)
	mux.UnlistedHandlePrefix("/apis/", served)
	for _, path := range []string{"/openapi/v2", "/openapi/v3"} {
		mux.Handle(path, r.publish)
	}
	mux.UnlistedHandlePrefix("/openapi/v3/", r.publish)
}

// notYet asks a client to come back.
func notYet(w http.ResponseWriter, req *http.Request, why string) {
	reply.Error(w, req, reply.Unavailable(why))
}

// builtInFirst answers requests to built-in resources without waiting for the CRDs:
// authorization and admission read their configuration from these resources.
func (r *router) builtInFirst(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, ok := request.RequestInfoFrom(req.Context())
		if ok && info.IsResourceRequest && r.builtin.Serves(info.APIGroup, info.APIVersion) {
			if !isRead(info.Verb) {
				req = req.WithContext(store.Conditional(req.Context()))
			}
			r.builtin.ServeHTTP(w, endpoints.WithFieldValidation(req, info.Verb, r.validation))
			return
		}
		next.ServeHTTP(w, req)
	})
}

// group serves what is not built in.
func (r *router) group(w http.ResponseWriter, req *http.Request) {
	info, ok := request.RequestInfoFrom(req.Context())
	if !ok || !info.IsResourceRequest {
		r.discovery.ServeHTTP(w, req)
		return
	}
	if info.APIGroup == definitionGroup {
		r.definitions.ServeHTTP(w, endpoints.WithFieldValidation(req, info.Verb, r.validation))
		return
	}
	if r.transfer != nil && tenants.Handles(info) {
		r.transfer.ServeHTTP(w, req)
		return
	}
	r.custom.ServeHTTP(w, req)
}
