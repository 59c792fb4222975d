package builtin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage"
	storageerr "k8s.io/apiserver/pkg/storage/errors"
	"k8s.io/apiserver/pkg/util/dryrun"
	"k8s.io/utils/ptr"
)

// maxDisrupted is how many evictions a PodDisruptionBudget remembers.
const maxDisrupted = 2000

// evictionTries bounds how often an eviction starts again because the pod has changed.
const evictionTries = 20

// addEviction gives pods the subresource eviction, which asks the PodDisruptionBudgets.
func addEviction(pods, budgets *Resource) {
	var store *genericregistry.Store
	wrap := budgets.Wrap
	budgets.Wrap = func(s *genericregistry.Store) rest.Storage {
		store = s
		if wrap != nil {
			return wrap(s)
		}
		return s
	}
	if pods.Subresources == nil {
		pods.Subresources = map[string]func(*genericregistry.Store) rest.Storage{}
	}
	pods.Subresources["eviction"] = func(s *genericregistry.Store) rest.Storage {
		return &evictionREST{pods: s, budgets: func() *genericregistry.Store { return store }}
	}
}

// evictionREST is the subresource eviction.
type evictionREST struct {
	pods    *genericregistry.Store
	budgets func() *genericregistry.Store // nil until the resources are made
}

var (
	_ rest.NamedCreater             = (*evictionREST)(nil)
	_ rest.GroupVersionKindProvider = (*evictionREST)(nil)
)

// GroupVersionKind implements rest.GroupVersionKindProvider.
func (r *evictionREST) GroupVersionKind(schema.GroupVersion) schema.GroupVersionKind {
	return policyv1.SchemeGroupVersion.WithKind("Eviction")
}

// New implements rest.Storage.
func (r *evictionREST) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage: the stores are those of the resources.
func (r *evictionREST) Destroy() {}

// Create implements rest.NamedCreater.
func (r *evictionREST) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	e, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", obj))
	}
	if e.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	how := e.DeleteOptions.DeepCopy()
	if how == nil {
		how = &metav1.DeleteOptions{}
	}
	if len(options.DryRun) > 0 && len(how.DryRun) == 0 {
		how.DryRun = options.DryRun
	}
	if _, err := r.get(ctx, name); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, e.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	var err error
	for range evictionTries {
		if err = r.evict(ctx, name, how.DeepCopy()); !errors.Is(err, errPodChanged) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// errPodChanged starts an eviction again: the pod is not as it was when the budgets were
// asked.
var errPodChanged = errors.New("the pod has changed since its budgets were asked")

func (r *evictionREST) get(ctx context.Context, name string) (*corev1.Pod, error) {
	obj, err := r.pods.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}

// evict evicts a pod, if its budget allows.
func (r *evictionREST) evict(ctx context.Context, name string, how *metav1.DeleteOptions) error {
	p, err := r.get(ctx, name)
	if err != nil {
		return err
	}
	if err := checkPreconditions(how.Preconditions, p); err != nil {
		return err
	}
	asIs := ended(p) || p.Status.Phase == corev1.PodPending || p.DeletionTimestamp != nil // it serves no client
	if !asIs {
		if asIs, err = r.ask(ctx, p, dryrun.IsDryRun(how.DryRun)); err != nil {
			return err
		}
	}
	return r.remove(ctx, p, how, asIs)
}

func checkPreconditions(c *metav1.Preconditions, p *corev1.Pod) error {
	kind := schema.GroupResource{Resource: "Pod"}
	switch {
	case c == nil:
		return nil
	case c.UID != nil && *c.UID != p.UID:
		return apierrors.NewConflict(kind, p.Name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *c.UID, p.UID))
	case c.ResourceVersion != nil && *c.ResourceVersion != p.ResourceVersion:
		return apierrors.NewConflict(kind, p.Name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *c.ResourceVersion, p.ResourceVersion))
	}
	return nil
}

// ask takes the disruption of a pod from its budget. AsIs is true if the budget does
// not count the pod, as long as the pod stays as it is.
func (r *evictionREST) ask(ctx context.Context, p *corev1.Pod, dryRun bool) (asIs bool, err error) {
	budgets := r.budgets()
	if budgets == nil {
		return false, nil
	}
	list, err := budgets.List(ctx, nil)
	if err != nil {
		return false, err
	}
	var found []*policyv1.PodDisruptionBudget
	err = meta.EachListItem(list, func(obj runtime.Object) error {
		b := obj.(*policyv1.PodDisruptionBudget)
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err == nil && b.Namespace == p.Namespace && selector.Matches(labels.Set(p.Labels)) {
			found = append(found, b)
		}
		return nil // a selector that is not valid selects nothing
	})
	switch {
	case err != nil || len(found) == 0:
		return false, err
	case len(found) > 1:
		return false, &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
		}}
	case !podReady(p) && unreadyMayGo(found[0]):
		return true, nil
	}
	return false, decrement(ctx, budgets, p.Name, found[0].Name, dryRun)
}

func podReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// unreadyMayGo reports whether a budget lets pods go that are not ready.
func unreadyMayGo(b *policyv1.PodDisruptionBudget) bool {
	if ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

// decrement counts a disruption in the status of a budget, and remembers the pod until
// the controller has seen that it is gone. Concurrent evictions write one after the other.
func decrement(ctx context.Context, budgets *genericregistry.Store, pod, name string, dryRun bool) error {
	key, err := budgets.KeyFunc(ctx, name)
	if err != nil {
		return err
	}
	err = budgets.Storage.GuaranteedUpdate(ctx, key, budgets.NewFunc(), false, nil, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		b := obj.(*policyv1.PodDisruptionBudget)
		if err := disrupt(b, pod); err != nil {
			return nil, err
		}
		return b, nil
	}), dryRun, nil)
	if status := apierrors.APIStatus(nil); err == nil || errors.As(err, &status) {
		return err
	}
	err = storageerr.InterpretGetError(err, budgets.DefaultQualifiedResource, name)
	return storageerr.InterpretUpdateError(err, budgets.DefaultQualifiedResource, name)
}

// disrupt changes the status of a budget, or says why it cannot be.
func disrupt(b *policyv1.PodDisruptionBudget, pod string) error {
	s := &b.Status
	resource := policyv1.Resource("poddisruptionbudget")
	switch {
	case s.ObservedGeneration < b.Generation:
		return tooMany(10, "The disruption budget %s is still being processed by the server.", b.Name)
	case s.DisruptionsAllowed < 0:
		return apierrors.NewForbidden(resource, b.Name, errors.New("pdb disruptions allowed is negative"))
	case len(s.DisruptedPods) > maxDisrupted:
		return apierrors.NewForbidden(resource, b.Name, errors.New("DisruptedPods map too big - too many evictions not confirmed by PDB controller"))
	case s.DisruptionsAllowed == 0:
		if c := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition); c != nil && c.Reason == policyv1.SyncFailedReason {
			return tooMany(0, "The disruption budget %s does not allow evicting pods currently because it failed sync: %v", b.Name, c.Message)
		}
		return tooMany(0, "The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy)
	}
	if s.DisruptionsAllowed--; s.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason, ObservedGeneration: s.ObservedGeneration,
		})
	}
	if s.DisruptedPods == nil {
		s.DisruptedPods = map[string]metav1.Time{}
	}
	s.DisruptedPods[pod] = metav1.NewTime(time.Now())
	return nil
}

// tooMany is the error for a budget that allows no disruption.
func tooMany(retryAfter int, format string, args ...any) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retryAfter)
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: fmt.Sprintf(format, args...)})
	return err
}

// remove notes in the pod why it goes, and deletes it. If asIs, it must not have changed
// meanwhile: a pod that is ready by now has a budget.
func (r *evictionREST) remove(ctx context.Context, p *corev1.Pod, how *metav1.DeleteOptions, asIs bool) error {
	if how.Preconditions == nil {
		how.Preconditions = &metav1.Preconditions{}
	}
	uid := p.UID
	how.Preconditions.UID = &uid
	if !dryrun.IsDryRun(how.DryRun) && !ended(p) && p.DeletionTimestamp == nil {
		changed, err := r.mark(ctx, p, asIs)
		if err != nil {
			return err
		}
		p = changed
		how.Preconditions.ResourceVersion = nil
	}
	if asIs {
		how.Preconditions.ResourceVersion = &p.ResourceVersion
	}
	_, _, err := r.pods.Delete(ctx, p.Name, rest.ValidateAllObjectFunc, how)
	if asIs && apierrors.IsConflict(err) {
		return errPodChanged
	}
	return err
}

// mark writes the condition DisruptionTarget.
func (r *evictionREST) mark(ctx context.Context, p *corev1.Pod, asIs bool) (*corev1.Pod, error) {
	key, err := r.pods.KeyFunc(ctx, p.Name)
	if err != nil {
		return nil, err
	}
	conditions := &storage.Preconditions{UID: &p.UID}
	if asIs {
		conditions.ResourceVersion = &p.ResourceVersion
	}
	out := &corev1.Pod{}
	err = r.pods.Storage.GuaranteedUpdate(ctx, key, out, false, conditions, storage.SimpleUpdate(func(obj runtime.Object) (runtime.Object, error) {
		setPodCondition(obj.(*corev1.Pod), corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		})
		return obj, nil
	}), false, nil)
	switch {
	case err == nil:
		return out, nil
	case asIs && storage.IsInvalidObj(err):
		return nil, errPodChanged
	}
	err = storageerr.InterpretGetError(err, r.pods.DefaultQualifiedResource, p.Name)
	return nil, storageerr.InterpretUpdateError(err, r.pods.DefaultQualifiedResource, p.Name)
}
