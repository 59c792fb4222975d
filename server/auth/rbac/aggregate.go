package rbac

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

const (
	// aggregator is the field manager of the rules of aggregated roles.
	aggregator = "clusterrole-aggregation-controller"
	// aggregationPause is between two passes over all roles. So a thousand CRDs that
	// are installed with their roles cause few writes of the aggregated roles.
	aggregationPause = 100 * time.Millisecond
	// aggregationRetry is after how long what failed is tried again.
	aggregationRetry = 2 * time.Second
)

// Aggregate gives ClusterRoles that have an aggregation rule the rules of the
// roles that it selects, until ctx ends. The informers are the caller's to
// start. Several servers can do this at the same time: the second one finds nothing
// to do.
func Aggregate(ctx context.Context, factory informers.SharedInformerFactory, client kubernetes.Interface) error {
	clusterRoles := factory.Rbac().V1().ClusterRoles()
	changed := make(chan struct{}, 1)
	tell := func() {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	informer := clusterRoles.Informer()
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { tell() },
		DeleteFunc: func(any) { tell() },
		UpdateFunc: func(old, obj any) {
			if concernsAggregation(old, obj) {
				tell()
			}
		},
	})
	if err != nil {
		return fmt.Errorf("follow cluster roles: %w", err)
	}
	defer func() { _ = informer.RemoveEventHandler(registration) }()
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return nil
	}
	a := aggregation{roles: clusterRoles.Lister(), client: client}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
		pause := aggregationPause
		switch err := a.run(ctx); {
		case err == nil:
		case apierrors.IsConflict(err): // another writer was faster, mostly another replica
			tell()
		case ctx.Err() == nil:
			klog.ErrorS(err, "Failed to aggregate ClusterRoles, retrying")
			pause = aggregationRetry
			tell()
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// concernsAggregation reports whether an update of a role can change any
// aggregated role.
func concernsAggregation(old, obj any) bool {
	was, ok := old.(*rbacv1.ClusterRole)
	is, ok2 := obj.(*rbacv1.ClusterRole)
	return !ok || !ok2 ||
		!equality.Semantic.DeepEqual(was.Labels, is.Labels) ||
		!equality.Semantic.DeepEqual(was.AggregationRule, is.AggregationRule) ||
		!equality.Semantic.DeepEqual(was.Rules, is.Rules)
}

type aggregation struct {
	roles  rbaclisters.ClusterRoleLister
	client kubernetes.Interface
}

// run brings all aggregated roles up to date. It tries all, and returns the
// first error that is no conflict, if there is one.
func (a *aggregation) run(ctx context.Context) error {
	roles, err := a.roles.List(labels.Everything())
	if err != nil {
		return err
	}
	sortByName(roles)
	var failure error
	for _, role := range roles {
		if role.AggregationRule == nil {
			continue
		}
		rules, err := union(role, roles)
		if err != nil {
			// It stays so until a client changes the role; the informer reports that.
			klog.ErrorS(err, "Failed to aggregate a ClusterRole", "name", role.Name)
			continue
		}
		if equality.Semantic.DeepEqual(rules, role.Rules) {
			continue
		}
		update := role.DeepCopy()
		update.Rules = rules
		_, err = a.client.RbacV1().ClusterRoles().Update(ctx, update, metav1.UpdateOptions{FieldManager: aggregator})
		if err != nil && !apierrors.IsNotFound(err) && (failure == nil || apierrors.IsConflict(failure)) {
			failure = err
		}
	}
	return failure
}

func sortByName(roles []*rbacv1.ClusterRole) {
	slices.SortFunc(roles, func(a, b *rbacv1.ClusterRole) int { return strings.Compare(a.Name, b.Name) })
}

// aggregateAll gives aggregated roles their rules, in place. One may be aggregated from another one, which
// takes as many passes.
func aggregateAll(roles []*rbacv1.ClusterRole) error {
	roles = slices.Clone(roles)
	sortByName(roles)
	for range roles {
		changed := false
		for _, role := range roles {
			if role.AggregationRule == nil {
				continue
			}
			rules, err := union(role, roles)
			if err != nil {
				return fmt.Errorf("aggregate the ClusterRole %s: %w", role.Name, err)
			}
			if !equality.Semantic.DeepEqual(rules, role.Rules) {
				role.Rules, changed = rules, true
			}
		}
		if !changed {
			break
		}
	}
	return nil
}

// union returns the rules of the roles that a role selects, each once: selector by
// selector, and for one selector by name.
func union(of *rbacv1.ClusterRole, roles []*rbacv1.ClusterRole) ([]rbacv1.PolicyRule, error) {
	var rules []rbacv1.PolicyRule
	have := map[string]bool{}
	for i := range of.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&of.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, fmt.Errorf("aggregationRule.clusterRoleSelectors[%d]: %w", i, err)
		}
		for _, role := range roles {
			if role.Name == of.Name || !selector.Matches(labels.Set(role.Labels)) {
				continue
			}
			for j := range role.Rules {
				if key := spell(&role.Rules[j]); !have[key] {
					have[key] = true
					rules = append(rules, *role.Rules[j].DeepCopy())
				}
			}
		}
	}
	return rules, nil
}
