package tenants

import (
	"context"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// Visit is a request of one tenant, the provider of an API, for objects of another one that has
// bound it. What it may do, the binding says, and no role of the tenant that is visited.
type Visit struct {
	User     string // as the visited tenant sees it
	Resource schema.GroupResource
	// Accepts reports whether the binding accepts a verb for a subresource, "" for the object.
	Accepts func(subresource, verb string) bool
}

type visitKey struct{}

// VisitOf is the visit that a request is, nil for others.
func VisitOf(ctx context.Context) *Visit {
	v, _ := ctx.Value(visitKey{}).(*Visit)
	return v
}

// bare is a context without the values of another one: a visited tenant must not take what the
// filters of the visitor's tenant have noted for its own.
type bare struct{ context.Context }

// Value implements context.Context.
func (bare) Value(any) any { return nil }

// visitTime bounds the wait for a tenant that is started for a visit.
const visitTime = 30 * time.Second

// Visit has a tenant answer a visit. The error, if the tenant cannot be entered, is like that of
// any other tenant that cannot, or for which IsNotFound is true: there is none with this name and UID.
func (s *Set) Visit(w http.ResponseWriter, req *http.Request, name string, uid types.UID, v Visit) error {
	ctx, cancel := context.WithTimeout(req.Context(), visitTime)
	defer cancel()
	e, err := s.enter(ctx, name)
	if err != nil {
		if isGone(err) {
			return errGone
		}
		return refusal(req, name, nil, err)
	}
	defer s.leave(e)
	if e.tenant.UID != uid {
		return errGone
	}
	visit := req.Clone(context.WithValue(bare{req.Context()}, visitKey{}, &v))
	for _, header := range []string{"Authorization", "Cookie", "X-Forwarded-Client-Cert"} {
		visit.Header.Del(header)
	}
	for header := range visit.Header {
		if strings.HasPrefix(header, "Impersonate-") || strings.HasPrefix(header, "X-Remote-") {
			visit.Header.Del(header)
		}
	}
	visit.TLS = nil // a certificate says nothing here
	if err := e.serve(w, visit); err != nil {
		return refusal(req, name, nil, err)
	}
	return nil
}

// Locate returns a tenant and its labels.
func (s *Set) Locate(ctx context.Context, name string) (Tenant, map[string]string, error) {
	if !valid(name) {
		return Tenant{}, nil, errGone
	}
	o, err := s.registry.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return Tenant{}, nil, err
	}
	if o.GetDeletionTimestamp() != nil {
		return Tenant{}, nil, errGone
	}
	return tenantOf(o), o.GetLabels(), nil
}

// Peek calls f with the etcd that a tenant is in.
func (s *Set) Peek(ctx context.Context, t Tenant, f func(*store.Backend) error) error {
	use, err := s.options.Pool.Use(ctx, t.Etcd)
	if err != nil {
		return err
	}
	defer use.Release()
	return f(use.Backend)
}
