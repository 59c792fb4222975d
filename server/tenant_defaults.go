package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/admission/priority"
	"github.com/espalier-dev/espalier/server/auth/rbac"
	"github.com/espalier-dev/espalier/server/endpoints"
	"github.com/espalier-dev/espalier/server/replica"
	"github.com/espalier-dev/espalier/server/storage/meter"
)

// defaultsKey says, below the prefix of a tenant, which default objects it was given.
const defaultsKey = replica.OwnFolder + "defaults"

// creators is how many default objects are created at a time.
const creators = 8

// defaultObjects are those that a server has from the beginning.
type defaultObjects struct {
	objects []runtime.Object
	digest  string
}

// defaultsOf returns the default objects of a server with some kinds. They are made once.
var defaultsOf = func() func(Kinds) (*defaultObjects, error) {
	var made sync.Map
	return func(k Kinds) (*defaultObjects, error) {
		if d, ok := made.Load(k); ok {
			return d.(*defaultObjects), nil
		}
		d, err := makeDefaults(k)
		if err == nil {
			made.Store(k, d)
		}
		return d, err
	}
}()

func makeDefaults(k Kinds) (*defaultObjects, error) {
	d := &defaultObjects{}
	for _, name := range k.namespaces() {
		d.objects = append(d.objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	roles, err := rbac.Defaults(k == KindsAll)
	if err != nil {
		return nil, err
	}
	d.objects = append(d.objects, roles...)
	if k == KindsAll {
		for _, class := range priority.System() {
			d.objects = append(d.objects, class)
		}
	}
	data, err := json.Marshal(d.objects)
	if err != nil {
		return nil, err
	}
	d.digest = digest(data)
	return d, nil
}

// resourceOfDefault is the resource of a default object.
func resourceOfDefault(o runtime.Object) (schema.GroupResource, error) {
	switch o.(type) {
	case *corev1.Namespace:
		return corev1.Resource("namespaces"), nil
	case *rbacv1.ClusterRole:
		return rbacv1.Resource("clusterroles"), nil
	case *rbacv1.ClusterRoleBinding:
		return rbacv1.Resource("clusterrolebindings"), nil
	case *rbacv1.Role:
		return rbacv1.Resource("roles"), nil
	case *rbacv1.RoleBinding:
		return rbacv1.Resource("rolebindings"), nil
	case *schedulingv1.PriorityClass:
		return schedulingv1.Resource("priorityclasses"), nil
	}
	return schema.GroupResource{}, fmt.Errorf("there is no default object of type %T", o)
}

// hasDefaults reports whether the tenant was given the default objects of this version.
func (t *tenant) hasDefaults(ctx context.Context) (bool, error) {
	d, err := defaultsOf(t.options.Kinds)
	if err != nil {
		return false, err
	}
	given, err := t.backend.Client().Get(ctx, t.backend.Key(defaultsKey))
	return err == nil && len(given.Kvs) > 0 && string(given.Kvs[0].Value) == d.digest, err
}

// giveDefaults creates the default objects that are missing.
func (t *tenant) giveDefaults(ctx context.Context) error {
	d, err := defaultsOf(t.options.Kinds)
	if err != nil {
		return err
	}
	errs := make([]error, len(d.objects)) // each has a place of its own
	var group errgroup.Group
	group.SetLimit(creators)
	for i, o := range d.objects {
		group.Go(func() error {
			errs[i] = t.create(ctx, o.DeepCopyObject())
			return nil
		})
	}
	_ = group.Wait() // the errors have their places
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("creating default objects: %w", err)
	}
	return nil
}

// repairDefaults repairs the default objects as a server does when it starts: roles that an
// earlier version has given lack what this one has added. Then it notes that the tenant has
// them.
func (t *tenant) repairDefaults(ctx context.Context) error {
	if err := t.controlPlane.ensure(ctx, func() {}); err != nil {
		return err
	}
	d, err := defaultsOf(t.options.Kinds)
	if err != nil {
		return err
	}
	err = persist(ctx, "the note of default objects", func() error {
		_, err := t.backend.Client().Put(ctx, t.backend.Key(defaultsKey), d.digest)
		return err
	})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// create stores an object if none has its name, without admission: no user could have
// configured any. A tenant that is full is opened all the same: its users must be able to delete objects.
func (t *tenant) create(ctx context.Context, o runtime.Object) error {
	resource, err := resourceOfDefault(o)
	if err != nil {
		return err
	}
	about, err := meta.Accessor(o)
	if err != nil {
		return err
	}
	ctx = endpoints.Within(ctx, resource, about.GetNamespace())
	_, err = t.builtin.Store(resource).Create(ctx, o, rest.ValidateAllObjectFunc, &metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case errors.Is(err, meter.ErrFull): // also if there is one of its name; otherwise repairDefaults tries again
		klog.InfoS("A full tenant is opened without creating a default object", "tenant", t.tenant.Name, "resource", resource, "name", about.GetName())
		return nil
	}
	return err
}
