package apiservices

import (
	"context"
	"errors"
	"maps"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/discovery"

	apiregistrationv1 "github.com/espalier-dev/espalier/crd/apiregistration/v1"
)

// managed is the label of objects that the server makes.
const managed = "kube-aggregator.kubernetes.io/automanaged"

// The values of the label: made once at start, and kept in step.
const (
	onStart = "onstart"
	inStep  = "true"
)

// The priorities of CRDs, and of a version that is built in.
const (
	customGroupPriority, customVersionPriority = 1000, 100
	versionPriority                            = 15
)

// versionPriorities are those that differ, as kube-apiserver has them.
var versionPriorities = map[schema.GroupVersion]int32{
	{Version: "v1"}:                                        1,
	{Group: "autoscaling", Version: "v2"}:                  30,
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1"}: 21,
	{Group: "resource.k8s.io", Version: "v1"}:              21,
}

// Local keeps the APIServices of what the server itself serves. Every replica runs one: each
// makes what is missing by what it knows, and the last change of the CRDs reaches all.
type Local struct {
	store   *genericregistry.Store
	builtIn []discovery.Group
	index   *catalog.Catalog
	wake    chan struct{}
}

// NewLocal returns what keeps the objects in a store.
func NewLocal(store *genericregistry.Store, index *catalog.Catalog, builtIn ...discovery.Group) *Local {
	l := &Local{store: store, builtIn: builtIn, index: index, wake: make(chan struct{}, 1)}
	index.Subscribe(func(_, _ *catalog.Entry) { l.nudge() })
	store.AfterDelete = func(runtime.Object, *metav1.DeleteOptions) { l.nudge() }
	return l
}

func (l *Local) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// again is how long to wait after an error.
const again = time.Second

// Run keeps the objects until the context ends.
func (l *Local) Run(ctx context.Context) error {
	select {
	case <-l.index.Synced():
	case <-ctx.Done():
		return ctx.Err()
	}
	ctx = request.WithNamespace(ctx, metav1.NamespaceNone) // the store asks for it
	want := l.fixed()                                      // a client may delete them later
	for {
		if err := l.sync(ctx, want); err == nil {
			want = nil
		} else if ctx.Err() == nil {
			klog.ErrorS(err, "Failed to keep APIServices in step, retrying")
			time.AfterFunc(again, l.nudge)
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// fixed are the objects of the groups that are built in.
func (l *Local) fixed() map[string]*apiregistrationv1.APIService {
	all := map[string]*apiregistrationv1.APIService{}
	for _, g := range l.builtIn {
		for _, v := range g.Versions {
			gv := schema.GroupVersion{Group: g.Name, Version: v.Name}
			if gv == apiregistrationv1.SchemeGroupVersion {
				continue // kube-apiserver has none for APIServices themselves
			}
			priority, ok := versionPriorities[gv]
			if !ok {
				priority = versionPriority
			}
			add(all, gv, onStart, int32(g.Priority), priority) //nolint:gosec // constants below 20,000
		}
	}
	return all
}

func add(all map[string]*apiregistrationv1.APIService, gv schema.GroupVersion, how string, group, version int32) {
	name := gv.Version + "." + gv.Group
	all[name] = &apiregistrationv1.APIService{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{managed: how}},
		Spec:       apiregistrationv1.APIServiceSpec{Group: gv.Group, Version: gv.Version, GroupPriorityMinimum: group, VersionPriority: version},
	}
}

// sync makes what is missing and deletes what was made for CRDs that are gone.
func (l *Local) sync(ctx context.Context, fixed map[string]*apiregistrationv1.APIService) error {
	want := map[string]*apiregistrationv1.APIService{}
	for e := range l.index.All() {
		if e.Loan != nil {
			continue // a thousand tenants would have a thousand times the same objects
		}
		for i := range e.Versions {
			if v := &e.Versions[i]; v.Served && e.Established {
				add(want, schema.GroupVersion{Group: e.Group, Version: v.Name}, inStep, customGroupPriority, customVersionPriority)
			}
		}
	}
	served := maps.Clone(want)
	maps.Copy(want, fixed)
	list, err := l.store.List(ctx, &internalversion.ListOptions{ResourceVersion: ""})
	if err != nil {
		return err
	}
	var errs []error
	for i := range list.(*apiregistrationv1.APIServiceList).Items {
		a := &list.(*apiregistrationv1.APIServiceList).Items[i]
		delete(want, a.Name)
		if a.Labels[managed] != inStep || served[a.Name] != nil || a.DeletionTimestamp != nil {
			continue
		}
		conditions := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID, ResourceVersion: &a.ResourceVersion}}
		if _, _, err := l.store.Delete(ctx, a.Name, rest.ValidateAllObjectFunc, conditions); err != nil && !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	for _, a := range want {
		if _, err := l.store.Create(ctx, a, rest.ValidateAllObjectFunc, &metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
