package builtin

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// addClaims refuses claims that ask for admin access to devices in namespaces that are not
// labelled for it. Admin access reaches devices that others use.
func addClaims(r *Resource) {
	g := &adminGate{}
	r.connect = func(all *Resources) { g.namespaces = all.Store(corev1.Resource("namespaces")) }
	validate := r.Strategy.Validate
	r.Strategy.Validate = func(ctx context.Context, obj runtime.Object) field.ErrorList {
		return append(g.check(ctx, kinds.Metadata(obj).GetNamespace(), requestedAdmin(obj)), validate(ctx, obj)...)
	}
	if r.status == nil {
		return
	}
	update := r.status.ValidateUpdate
	r.status.ValidateUpdate = func(ctx context.Context, obj, old runtime.Object) field.ErrorList {
		var wanted []*field.Path
		if len(allocatedAdmin(old.(*resourcev1.ResourceClaim))) == 0 {
			wanted = allocatedAdmin(obj.(*resourcev1.ResourceClaim))
		}
		return append(g.check(ctx, kinds.Metadata(obj).GetNamespace(), wanted), update(ctx, obj, old)...)
	}
}

// requestedAdmin are the fields of a claim, or of a template of claims, that ask for admin
// access. Those of a template are named as kube-apiserver names them.
func requestedAdmin(obj runtime.Object) []*field.Path {
	var spec *resourcev1.ResourceClaimSpec
	switch obj := obj.(type) {
	case *resourcev1.ResourceClaim:
		spec = &obj.Spec
	case *resourcev1.ResourceClaimTemplate:
		spec = &obj.Spec.Spec
	default:
		return nil
	}
	var found []*field.Path
	for i, r := range spec.Devices.Requests {
		if r.Exactly != nil && r.Exactly.AdminAccess != nil && *r.Exactly.AdminAccess {
			found = append(found, field.NewPath("spec", "devices", "requests").Index(i).Child("adminAccess"))
		}
	}
	return found
}

// allocatedAdmin are the fields of the status that grant admin access.
func allocatedAdmin(c *resourcev1.ResourceClaim) []*field.Path {
	if c.Status.Allocation == nil {
		return nil
	}
	var found []*field.Path
	for i, r := range c.Status.Allocation.Devices.Results {
		if r.AdminAccess != nil && *r.AdminAccess {
			found = append(found, field.NewPath("status", "allocation", "devices", "results").Index(i).Child("adminAccess"))
		}
	}
	return found
}

// adminGate reads the labels of namespaces.
type adminGate struct{ namespaces *genericregistry.Store }

// check returns errors for fields unless the namespace has the label. It reads the
// namespace as it is now: the label may have been removed a moment ago.
func (g *adminGate) check(ctx context.Context, namespace string, wanted []*field.Path) field.ErrorList {
	if len(wanted) == 0 {
		return nil
	}
	allowed := false
	if g.namespaces != nil {
		obj, err := g.namespaces.Get(ctx, namespace, &metav1.GetOptions{})
		if err != nil {
			return field.ErrorList{field.InternalError(wanted[0], fmt.Errorf("reading the namespace that admin access is asked for in failed: %w", err))}
		}
		allowed = kinds.Metadata(obj).GetLabels()[resourcev1.DRAAdminNamespaceLabelKey] == "true"
	}
	if allowed {
		return nil
	}
	var errs field.ErrorList
	for _, path := range wanted {
		errs = append(errs, field.Forbidden(path, "admin access to devices requires the `"+resourcev1.DRAAdminNamespaceLabelKey+": true` label on the containing namespace"))
	}
	return errs
}
