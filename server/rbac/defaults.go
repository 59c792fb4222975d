package rbac

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
	"k8s.io/klog/v2"
)

// EnsureDefaults makes sure that the roles and bindings are there that every
// cluster has, with at least the rules and subjects that they should have. What
// others have added stays, and what is annotated with
// rbac.authorization.kubernetes.io/autoupdate=false is left alone. Any number of
// servers can do this at the same time. It tries all, and returns what went wrong.
func EnsureDefaults(_ context.Context, client kubernetes.Interface) error {
	roles, bindings := defaultRoles(), defaultBindings()
	errs := make([]error, len(roles)+len(bindings)) // each has a place of its own
	var group errgroup.Group
	group.SetLimit(atATime)
	for i := range roles {
		options := reconciliation.ReconcileRoleOptions{
			Role:    reconciliation.ClusterRoleRuleOwner{ClusterRole: &roles[i]},
			Client:  reconciliation.ClusterRoleModifier{Client: client.RbacV1().ClusterRoles()},
			Confirm: true,
		}
		group.Go(func() error {
			errs[i] = ensure("ClusterRole", roles[i].Name, func() (reconciliation.ReconcileOperation, bool, error) {
				result, err := options.Run()
				if err != nil {
					return "", false, err
				}
				return result.Operation, result.Protected, nil
			})
			return nil
		})
	}
	for i := range bindings {
		options := reconciliation.ReconcileRoleBindingOptions{
			RoleBinding: reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: &bindings[i]},
			Client:      reconciliation.ClusterRoleBindingClientAdapter{Client: client.RbacV1().ClusterRoleBindings()},
			Confirm:     true,
		}
		group.Go(func() error {
			errs[len(roles)+i] = ensure("ClusterRoleBinding", bindings[i].Name, func() (reconciliation.ReconcileOperation, bool, error) {
				result, err := options.Run()
				if err != nil {
					return "", false, err
				}
				return result.Operation, result.Protected, nil
			})
			return nil
		})
	}
	_ = group.Wait() // the errors have their places
	return errors.Join(errs...)
}

// atATime is how many are looked at: with one after another, a new server would
// mostly wait for etcd.
const atATime = 8

func ensure(kind, name string, run func() (operation reconciliation.ReconcileOperation, protected bool, err error)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		operation, protected, err := run()
		switch {
		case err != nil:
		case protected && operation != reconciliation.ReconcileNone:
			klog.InfoS("Left a default alone that is not as it should be, because of its annotation", "kind", kind, "name", name)
		case operation != reconciliation.ReconcileNone:
			klog.V(2).InfoS("Wrote a default", "kind", kind, "name", name, "operation", operation)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", kind, name, err)
	}
	return nil
}
