package quota

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	resourcequotaapi "k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota/apis/resourcequota/validation"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// PluginName is what the plugin is called in Kubernetes.
const PluginName = resourcequota.PluginName

const (
	// evaluators is how many namespaces are looked at at a time.
	evaluators = 5
	// writeTime is how long a reservation may take: the evaluator waits for ten
	// seconds.
	writeTime = 5 * time.Second
	// hearTime is how long a request waits for the informer to receive a quota, and for
	// the controller to count the usage of a new limit.
	hearTime = 2 * time.Second
	// remembered is how many quotas are known newer than the informer has them.
	remembered = 1000
)

// Reviews are the resources that are questions: they are not stored, and no quota counts them.
var Reviews = map[schema.GroupResource]struct{}{
	{Group: "authentication.k8s.io", Resource: "tokenreviews"}:             {},
	{Group: "authentication.k8s.io", Resource: "selfsubjectreviews"}:       {},
	{Group: "authorization.k8s.io", Resource: "subjectaccessreviews"}:      {},
	{Group: "authorization.k8s.io", Resource: "selfsubjectaccessreviews"}:  {},
	{Group: "authorization.k8s.io", Resource: "localsubjectaccessreviews"}: {},
	{Group: "authorization.k8s.io", Resource: "selfsubjectrulesreviews"}:   {},
}

// Plugin rejects requests that exceed the quotas of a namespace.
type Plugin struct {
	*admission.Handler
	config    *resourcequotaapi.Configuration
	quotas    *accessor
	evaluator resourcequota.Evaluator
	stop      <-chan struct{}
}

var (
	_ admission.ValidationInterface                = (*Plugin)(nil)
	_ initializer.WantsDrainedNotification         = (*Plugin)(nil)
	_ initializer.WantsExternalKubeClientSet       = (*Plugin)(nil)
	_ initializer.WantsExternalKubeInformerFactory = (*Plugin)(nil)
)

// NewPlugin reads the configuration of the plugin, if there is one.
func NewPlugin(config io.Reader) (admission.Interface, error) {
	c, err := resourcequota.LoadConfiguration(config)
	if err != nil {
		return nil, err
	}
	if errs := validation.ValidateConfiguration(c); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return &Plugin{Handler: admission.NewHandler(admission.Create, admission.Update), config: c, quotas: newAccessor()}, nil
}

// SetDrainedNotification implements initializer.WantsDrainedNotification.
func (p *Plugin) SetDrainedNotification(stop <-chan struct{}) { p.stop = stop }

// SetExternalKubeClientSet implements initializer.WantsExternalKubeClientSet.
func (p *Plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.quotas.client = client }

// SetExternalKubeInformerFactory implements
// initializer.WantsExternalKubeInformerFactory.
func (p *Plugin) SetExternalKubeInformerFactory(f informers.SharedInformerFactory) {
	informer := f.Core().V1().ResourceQuotas().Informer()
	p.quotas.known, p.quotas.synced = informer.GetIndexer(), informer.HasSynced
}

// ValidateInitialization implements admission.InitializationValidator.
func (p *Plugin) ValidateInitialization() error {
	if p.quotas.client == nil || p.quotas.known == nil || p.stop == nil {
		return errors.New("the admission plugin " + PluginName + " needs a client, informers and a channel that says when to stop")
	}
	p.evaluator = resourcequota.NewQuotaEvaluator(p.quotas, Reviews, registry{}, nil, p.config, evaluators, p.stop)
	return nil
}

// Validate implements admission.ValidationInterface.
func (p *Plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetNamespace() == "" || a.GetKind().GroupKind() == (schema.GroupKind{Kind: "Namespace"}) {
		return nil
	}
	if a.GetResource().GroupResource() == quotas && a.GetSubresource() == "status" {
		return mark(ctx, a)
	}
	whole := wholeOf(ctx, a)
	e := evaluatorOf(whole)
	if e == nil {
		return nil
	}
	known, revision, listed, err := p.quotas.heard(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	// The informer of this replica may be behind, above all after it was cut off from
	// etcd. So the write has a condition that etcd checks.
	limits, unheard := limitsOf(known, e), store.Folder{Name: quotas.Resource + "/" + a.GetNamespace(), Revision: revision}
	if !a.IsDryRun() {
		unheard.Newer = func(ctx context.Context, marked []string) (store.Folder, error) {
			return p.again(ctx, whole, limits, marked)
		}
	}
	if len(limits) > 0 || len(p.config.LimitedResources) > 0 {
		if !listed {
			known = nil // the evaluator has them
		}
		if err := p.evaluate(ctx, whole, known); err != nil {
			return err
		}
	}
	store.RequireFolder(ctx, unheard)
	return nil
}

// evaluate evaluates a request against the quotas of its namespace: the given ones or newer
// states of them, and those of the informer. It waits for the controller to count new limits:
// the evaluator would reject the request, or would block others if it waited itself.
func (p *Plugin) evaluate(ctx context.Context, a admission.Attributes, listed []*corev1.ResourceQuota) error {
	waiting, cancel := context.WithTimeout(ctx, hearTime)
	defer cancel()
	informed := p.quotas.synced()
	if informed {
		if err := p.quotas.hear(waiting, listed); err != nil {
			return err
		}
	}
	for {
		if err := p.quotas.counted(waiting, a); err != nil {
			return err
		}
		err := p.evaluator.Evaluate(a)
		switch {
		case isUncountedError(err) && waiting.Err() == nil: // a limit has come since
		case isUncountedError(err):
			return store.NothingWritten("the limits of the ResourceQuotas in the namespace " + a.GetNamespace() + " are not counted yet")
		case err == nil && !informed && p.quotas.synced() && !a.IsDryRun():
			// The rejected limit may come from the informer or from etcd, and the informer knows less.
			return store.NothingWritten("this replica has only just read all ResourceQuotas")
		default:
			return err
		}
	}
}

// isUncountedError reports whether the evaluator has refused a request because a limit is
// not counted. It has no type for that.
func isUncountedError(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "status unknown for quota: ")
}

// mark adds the mark to a quota that limits more resources than before. Requests for these
// resources did not read this quota so far, and they rely on knowing all quotas that limit
// them. Other changes of limits are covered by the condition of the reservation.
func mark(ctx context.Context, a admission.Attributes) error {
	now, ok := a.GetObject().(*corev1.ResourceQuota)
	old, before := a.GetOldObject().(*corev1.ResourceQuota)
	return store.Mark(ctx, !ok || !before || slices.ContainsFunc(slices.Collect(maps.Keys(now.Status.Hard)), func(name corev1.ResourceName) bool {
		_, limited := old.Status.Hard[name]
		return !limited
	}))
}

// again evaluates a request once more if quotas limit it that were not known when it was
// evaluated, or that were marked since: such a limit may have been removed and added again,
// and then does not count earlier reservations. It returns the condition of the write: that
// there are no further such quotas. Earlier reservations are made twice, and the controller
// releases them.
func (p *Plugin) again(ctx context.Context, a admission.Attributes, known map[limit]bool, marked []string) (store.Folder, error) {
	heard := store.Folder{Name: quotas.Resource + "/" + a.GetNamespace()}
	all, revision, err := p.quotas.list(ctx, a.GetNamespace())
	if err != nil {
		return heard, err
	}
	e := evaluatorOf(a)
	now := limitsOf(all, e)
	heard.Revision = revision
	heard.Newer = func(ctx context.Context, marked []string) (store.Folder, error) {
		return p.again(ctx, a, now, marked)
	}
	for _, q := range all {
		for l := range limitsOf([]*corev1.ResourceQuota{q}, e) {
			if !known[l] || slices.Contains(marked, q.Name) {
				return heard, p.evaluate(ctx, a, all)
			}
		}
	}
	return heard, nil
}

// limit is that a quota limits something.
type limit struct {
	quota types.UID
	name  corev1.ResourceName
}

// limitsOf are the limits in force of what a request may add to.
func limitsOf(all []*corev1.ResourceQuota, e *evaluator) map[limit]bool {
	var limits map[limit]bool // mostly none
	for _, q := range all {
		for name := range q.Status.Hard {
			if e.takes(name) {
				if limits == nil {
					limits = map[limit]bool{}
				}
				limits[limit{q.UID, name}] = true
			}
		}
	}
	return limits
}

// whole converts an update of a subresource to one of the object. k8s.io/apiserver lets
// updates of a status exceed a quota, because pods need that. Here it would bypass the
// quota. A scale has another kind, and no bytes of its own.
type whole struct {
	admission.Attributes
	object, old runtime.Object
}

// wholeOf returns the attributes of a request as they are about what is stored.
func wholeOf(ctx context.Context, a admission.Attributes) admission.Attributes {
	if o, old, ok := object.Stored(ctx); ok {
		return whole{a, o, old}
	}
	switch a.GetSubresource() {
	case "status", "resize", "ephemeralcontainers":
		return whole{a, a.GetObject(), a.GetOldObject()}
	}
	return a
}

// subresourceOf returns the subresource that was written.
func subresourceOf(a admission.Attributes) string {
	if w, ok := a.(whole); ok {
		return w.Attributes.GetSubresource()
	}
	return a.GetSubresource()
}

// GetSubresource implements admission.Attributes.
func (whole) GetSubresource() string { return "" }

// GetObject implements admission.Attributes.
func (w whole) GetObject() runtime.Object { return w.object }

// GetOldObject implements admission.Attributes.
func (w whole) GetOldObject() runtime.Object { return w.old }

// accessor reads and writes quotas for the evaluator. It resolves conflicts itself:
// after one, the evaluator looks at the requests that it has refused once more,
// reserves for those that fit by then, and refuses them all the same. Their
// reservations would take room from others until they are too old.
type accessor struct {
	client kubernetes.Interface
	known  cache.Indexer
	synced func() bool
	newest *lru.Cache // quotas that were read or written since the informer heard of them, by namespace and name
	given  *lru.Cache // quotas as the evaluator last got them, by namespace and name
}

var _ resourcequota.QuotaAccessor = (*accessor)(nil)

func newAccessor() *accessor {
	return &accessor{newest: lru.New(remembered), given: lru.New(remembered)}
}

// UpdateQuotaStatus implements resourcequota.QuotaAccessor. After a conflict it adds
// the same reservations to what is stored, if there is room for them; if there is
// not, the next attempt of the evaluator begins with what is stored.
func (q *accessor) UpdateQuotaStatus(updated *corev1.ResourceQuota) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTime)
	defer cancel()
	all := q.client.CoreV1().ResourceQuotas(updated.Namespace)
	base, _ := q.given.Get(key(updated))
	for {
		written, err := all.UpdateStatus(ctx, updated, metav1.UpdateOptions{})
		if err == nil {
			q.newest.Add(key(written), written)
			return nil
		}
		if !apierrors.IsConflict(err) {
			// It may have been written all the same: then used is too high, until the
			// controller has counted.
			return err
		}
		stored, readErr := all.Get(ctx, updated.Name, metav1.GetOptions{})
		if readErr != nil {
			return err
		}
		q.newest.Add(key(stored), stored)
		was, ok := base.(*corev1.ResourceQuota)
		if !ok || was.ResourceVersion != updated.ResourceVersion {
			return err
		}
		if updated = reserve(was, updated, stored); updated == nil {
			return err
		}
		base = stored
	}
}

// reserve adds what updated has more than was to what is stored. It returns nil if
// there is no room, or if the limits have changed.
func reserve(was, updated, stored *corev1.ResourceQuota) *corev1.ResourceQuota {
	if was.UID != stored.UID || !quotav1.Equals(was.Status.Hard, stored.Status.Hard) {
		return nil
	}
	result := stored.DeepCopy()
	for name, used := range updated.Status.Used {
		used = used.DeepCopy()
		used.Sub(was.Status.Used[name])
		if used.IsZero() {
			continue
		}
		sum := stored.Status.Used[name].DeepCopy()
		sum.Add(used)
		if hard, limited := stored.Status.Hard[name]; limited && used.Sign() > 0 && sum.Cmp(hard) > 0 {
			return nil
		}
		if result.Status.Used == nil {
			result.Status.Used = corev1.ResourceList{}
		}
		result.Status.Used[name] = sum
	}
	return result
}

// GetQuotas implements resourcequota.QuotaAccessor.
func (q *accessor) GetQuotas(namespace string) ([]corev1.ResourceQuota, error) {
	known, _, _, err := q.heard(context.Background(), namespace)
	if err != nil {
		return nil, err
	}
	list := make([]corev1.ResourceQuota, len(known))
	for i, one := range known {
		list[i] = *one.DeepCopy()
		q.given.Add(key(one), one)
	}
	return list, nil
}

// heard returns the known quotas of a namespace, and the revision up to which they are
// known. They come from the informer or, until it has synced, from etcd.
func (q *accessor) heard(ctx context.Context, namespace string) (known []*corev1.ResourceQuota, latest int64, listed bool, err error) {
	if !q.synced() {
		known, latest, err = q.list(ctx, namespace)
		return known, latest, true, err
	}
	there, err := q.known.ByIndex(cache.NamespaceIndex, namespace)
	if err != nil {
		return nil, 0, false, err
	}
	for _, obj := range there {
		one := obj.(*corev1.ResourceQuota)
		revision, err := storage.APIObjectVersioner{}.ObjectResourceVersion(one)
		if err != nil {
			return nil, 0, false, err
		}
		latest = max(latest, int64(revision))
		known = append(known, q.newer(one))
	}
	return known, latest, false, nil
}

// list returns the quotas of a namespace as they are in etcd, and its revision.
func (q *accessor) list(ctx context.Context, namespace string) (all []*corev1.ResourceQuota, revision int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	list, err := q.client.CoreV1().ResourceQuotas(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, 0, err
	}
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	revision, err = strconv.ParseInt(list.ResourceVersion, 10, 64)
	return all, revision, err
}

// counted waits until the controller has counted all that the evaluator is going to look
// at for a request.
func (q *accessor) counted(ctx context.Context, a admission.Attributes) error {
	e := evaluatorOf(a)
	for {
		known, _, listed, err := q.heard(ctx, a.GetNamespace())
		i := slices.IndexFunc(known, func(one *corev1.ResourceQuota) bool { return isUncounted(one, e.takes) })
		if i < 0 && ctx.Err() == nil {
			return err
		}
		pause := hearTime / 200
		if listed {
			pause = hearTime / 20
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			if i < 0 {
				return store.NothingWritten("the ResourceQuotas in the namespace " + a.GetNamespace() + " were not read in time")
			}
			return store.NothingWritten("the limits of the ResourceQuota " + known[i].Name + " in the namespace " + a.GetNamespace() + " are not counted yet")
		}
	}
}

// hear waits until the informer has received quotas, or the context ends.
func (q *accessor) hear(ctx context.Context, all []*corev1.ResourceQuota) error {
	for _, one := range all {
		for {
			obj, ok, err := q.known.GetByKey(key(one))
			if err == nil && ok && (storage.APIObjectVersioner{}).CompareResourceVersion(obj.(*corev1.ResourceQuota), one) >= 0 {
				break
			}
			select {
			case <-time.After(hearTime / 200):
			case <-ctx.Done():
				return store.NothingWritten("this replica has not heard yet of the ResourceQuota " + one.Name + " in the namespace " + one.Namespace)
			}
		}
	}
	return nil
}

// newer returns a quota as it was last read or written, if that was after the
// informer heard of it.
func (q *accessor) newer(seen *corev1.ResourceQuota) *corev1.ResourceQuota {
	entry, ok := q.newest.Get(key(seen))
	if !ok {
		return seen
	}
	last := entry.(*corev1.ResourceQuota)
	if last.UID == seen.UID && (storage.APIObjectVersioner{}).CompareResourceVersion(seen, last) < 0 {
		return last
	}
	q.newest.Remove(key(seen))
	return seen
}

func key(q *corev1.ResourceQuota) string { return q.Namespace + "/" + q.Name }
