package bindings

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// Writes is the rule by which a tenant writes. It adds the marks of objects whose resources are
// bound, and the condition that they still are. Names of CRDs that are bound, or built in, stay
// free: no CRD of the tenant takes their place.
type Writes struct {
	prefix string // of the server
	tenant types.UID
	folder string // of the tenant

	mu    sync.Mutex
	bound atomic.Pointer[map[schema.GroupResource]bound]
	// full is that the tenant has as many APIBindings as it may: no more are created.
	full atomic.Bool
}

// mostBindings is how many APIBindings a tenant may have: replicas follow the CRDs of each provider.
// A few that are created at the same time can exceed it.
const mostBindings = 250

// bound is how objects of a resource are written.
type bound struct {
	by tenants.Shared
	// ending is that the binding is being deleted: nothing is created any more.
	ending bool
}

// NewWrites returns the rule of a tenant that has nothing bound, as far as it knows. prefix is that
// of the server.
func NewWrites(prefix string, tenant types.UID) *Writes {
	w := &Writes{prefix: prefix, tenant: tenant, folder: tenants.Prefix(prefix, tenant) + "/"}
	w.bound.Store(&map[schema.GroupResource]bound{})
	return w
}

// set makes what is known of a resource; nil is that it is not bound.
func (w *Writes) set(r schema.GroupResource, b *bound) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := maps.Clone(*w.bound.Load())
	if b == nil {
		delete(next, r)
	} else {
		next[r] = *b
	}
	w.bound.Store(&next)
}

// Rule implements store.Rule.
func (w *Writes) Rule(done []clientv3.Op) (a store.Addition) {
	for i := range done {
		if !done[i].IsPut() && !done[i].IsDelete() {
			continue
		}
		name, ok := strings.CutPrefix(string(done[i].KeyBytes()), w.folder)
		if !ok {
			continue
		}
		if name, ok := strings.CutPrefix(name, catalog.Key[1:]+"/"); ok {
			w.crd(&a, resourceOf(name), &done[i])
			continue
		}
		if name, ok := strings.CutPrefix(name, bindingsFolder[1:]+"/"); ok && w.full.Load() && done[i].IsPut() {
			w.require(&a, []string{string(done[i].KeyBytes())}, apierrors.NewForbidden(Bindings.GroupResource(), name, fmt.Errorf("a tenant can have %d APIBindings, and this one has as many: delete others first", mostBindings)))
			continue
		}
		group, rest, _ := strings.Cut(name, "/")
		resource, object, ok := strings.Cut(rest, "/")
		r := schema.GroupResource{Group: group, Resource: resource}
		if b, known := (*w.bound.Load())[r]; known && ok && len(done[i].RangeBytes()) == 0 {
			w.object(&a, r, object, b, &done[i])
		}
	}
	return a
}

// object adds what a write of an object needs.
func (w *Writes) object(a *store.Addition, r schema.GroupResource, name string, b bound, op *clientv3.Op) {
	mark := b.by.Mark(r, w.tenant, name)
	if op.IsDelete() {
		a.Then = append(a.Then, clientv3.OpDelete(mark))
		return
	}
	a.Then = append(a.Then, clientv3.OpPut(mark, ""))
	conditions := []string{b.by.Guard(), b.by.Grant(r, w.tenant)}
	if b.ending {
		conditions = append(conditions, mark)
	}
	w.require(a, conditions, store.NothingWritten(fmt.Sprintf("%s is no longer bound, or its APIBinding is being deleted", r)))
}

// require adds the condition that keys exist, and the error if one does not.
func (w *Writes) require(a *store.Addition, keys []string, refusal error) {
	from := len(a.Else)
	for _, key := range keys {
		a.If = append(a.If, clientv3.Compare(clientv3.CreateRevision(key), ">", 0))
		a.Else = append(a.Else, clientv3.OpGet(key, clientv3.WithCountOnly()))
	}
	a.Why = then(a.Why, func(answers []*pb.ResponseOp) error {
		for _, answer := range answers[from : from+len(keys)] {
			if answer.GetResponseRange().Count == 0 {
				return refusal
			}
		}
		return nil
	})
}

// forbid adds the condition that there is no key in a range, and the error if there is one.
func (w *Writes) forbid(a *store.Addition, begin, end string, refusal error) {
	from := len(a.Else)
	a.If = append(a.If, clientv3.Compare(clientv3.CreateRevision(begin), "=", 0).WithRange(end))
	a.Else = append(a.Else, clientv3.OpGet(begin, clientv3.WithRange(end), clientv3.WithCountOnly()))
	a.Why = then(a.Why, func(answers []*pb.ResponseOp) error {
		if answers[from].GetResponseRange().Count > 0 {
			return refusal
		}
		return nil
	})
}

// then asks two functions why a write was refused.
func then(first, second func([]*pb.ResponseOp) error) func([]*pb.ResponseOp) error {
	if first == nil {
		return second
	}
	return func(answers []*pb.ResponseOp) error {
		if err := first(answers); err != nil {
			return err
		}
		return second(answers)
	}
}

// crd adds what a write of a CRD needs: its name is not that of a bound resource, and it does
// not go while other tenants have bound it.
func (w *Writes) crd(a *store.Addition, r schema.GroupResource, op *clientv3.Op) {
	if op.IsDelete() {
		if len(op.RangeBytes()) > 0 {
			return
		}
		grants := tenants.SharedBy(w.prefix, w.tenant).Grant(r, "")
		w.forbid(a, grants, clientv3.GetPrefixRangeEnd(grants), conflict(r, "other tenants have bound it: it goes when they have deleted their APIBindings"))
		return
	}
	if r.Group == Group {
		a.Refused = conflict(r, "the group "+Group+" is built in")
		return
	}
	key := tenants.BoundKey(w.prefix, w.tenant, r)
	w.forbid(a, key, key+"\x00", conflict(r, "an APIBinding of this tenant serves the resource: delete that first"))
}

// conflict is the error for a write of a CRD.
func conflict(r schema.GroupResource, why string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusConflict, Reason: "Bound",
		Message: fmt.Sprintf("the CustomResourceDefinition %s: %s", r, why),
		Details: &metav1.StatusDetails{Group: "apiextensions.k8s.io", Kind: "customresourcedefinitions", Name: r.String()},
	}}
}
