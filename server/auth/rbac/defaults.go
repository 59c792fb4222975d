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

// EnsureDefaults creates the default roles and bindings of every cluster, and adds
// missing rules and subjects to existing ones. It does not remove others, and does not
// change objects with the annotation
// rbac.authorization.kubernetes.io/autoupdate=false. Any number of replicas can do this
// at the same time. It tries all, and returns all errors.
func EnsureDefaults(ctx context.Context, client kubernetes.Interface) error {
	return ensureDefaults(ctx, client, false)
}

// ensure asks for what there is at once, and writes what is missing.
func (d *defaults) ensure(ctx context.Context, client kubernetes.Interface) error {
	stored, err := findPresent(ctx, client)
	if err != nil {
		return fmt.Errorf("listing the default roles and bindings: %w", err)
	}
	return ensureAll(d.wanted(client, stored))
}

// ensureAll tries all, and returns all errors.
func ensureAll(all []wanted) error {
	errs := make([]error, len(all)) // each has a place of its own
	var group errgroup.Group
	group.SetLimit(atATime)
	for i, d := range all {
		group.Go(func() error {
			errs[i] = d.ensure()
			return nil
		})
	}
	_ = group.Wait() // the errors have their places
	return errors.Join(errs...)
}

// wanted is a default role or binding.
type wanted struct {
	kind, name string
	// reconcile writes it if need be. What is protected stays as it is.
	reconcile func() (operation reconciliation.ReconcileOperation, protected bool, err error)
}

// atATime is how many are looked at: with one after another, a new server would
// mostly wait for etcd.
const atATime = 8

func (w *wanted) ensure() error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		operation, protected, err := w.reconcile()
		switch {
		case err != nil:
		case protected && operation != reconciliation.ReconcileNone:
			klog.InfoS("Default RBAC object was modified; not reconciling it because of its annotation", "kind", w.kind, "name", w.name)
		case operation != reconciliation.ReconcileNone:
			klog.V(2).InfoS("Wrote a default RBAC object", "kind", w.kind, "name", w.name, "operation", operation)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s %s: %w", w.kind, w.name, err)
	}
	return nil
}
