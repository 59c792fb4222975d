package certificates

import (
	"context"
	"errors"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/certificates/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/controllers/queue"
)

// Controller signs approved requests, and deletes old ones. Only
// the leader runs it: its watch and its cache of requests are the leader's.
type Controller struct {
	options *Options
	client  kubernetes.Interface
	lister  listers.CertificateSigningRequestLister
	queue   queue.Queue[string]
	now     func() time.Time
}

// New returns a controller.
func New(client kubernetes.Interface, o *Options) *Controller {
	return &Controller{options: o, client: client, now: time.Now}
}

// Run works until the context ends.
func (c *Controller) Run(ctx context.Context) error {
	factory := informers.NewSharedInformerFactory(c.client, 0)
	requests := factory.Certificates().V1().CertificateSigningRequests()
	c.lister = requests.Lister()
	c.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(obj any) {
		if o, ok := obj.(*certificatesv1.CertificateSigningRequest); ok && c.waits(o) {
			c.queue.Add(o.Name)
		}
	}
	if _, err := requests.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, obj any) { add(obj) }}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	defer factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), requests.Informer().HasSynced) {
		return ctx.Err()
	}
	stop := context.AfterFunc(ctx, c.queue.ShutDown)
	defer stop()
	var cleaning wait.Group
	cleaning.StartWithContext(ctx, func(ctx context.Context) { wait.UntilWithContext(ctx, c.clean, cleaningPeriod) })
	defer cleaning.Wait()
	queue.Work(ctx, c.queue, c.handle, func(name string, err error) {
		if !apierrors.IsConflict(err) {
			klog.ErrorS(err, "Failed to sign a CertificateSigningRequest, retrying", "name", name)
		}
	})
	return ctx.Err()
}

// waits reports whether a request is approved and for us to sign.
func (c *Controller) waits(o *certificatesv1.CertificateSigningRequest) bool {
	return c.options.CertFile != "" && o.Spec.SignerName == certificatesv1.KubeAPIServerClientSignerName && len(o.Status.Certificate) == 0 &&
		is(o, certificatesv1.CertificateApproved) && !is(o, certificatesv1.CertificateDenied) && !is(o, certificatesv1.CertificateFailed)
}

func is(o *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == kind && c.Status == corev1.ConditionTrue
	})
}

// handle signs a request. If the answer to the write is lost, the next attempt finds
// the certificate there, or a conflict.
func (c *Controller) handle(ctx context.Context, name string) error {
	o, err := c.lister.Get(name)
	if err != nil || !c.waits(o) {
		return ignoreGone(err)
	}
	signer, err := loadCA(c.options.CertFile, c.options.KeyFile)
	if err != nil {
		return err
	}
	o = o.DeepCopy()
	certificate, err := signer.sign(&o.Spec, c.options.Duration, c.now())
	switch {
	case errors.Is(err, errUnfit):
		o.Status.Conditions = append(o.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue, Reason: "SignerValidationFailure", Message: err.Error(), LastUpdateTime: metav1.NewTime(c.now()),
		})
	case err != nil:
		return err
	}
	o.Status.Certificate = certificate
	_, err = c.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, o, metav1.UpdateOptions{})
	return ignoreGone(err)
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

const (
	cleaningPeriod = time.Hour
	// keptDone is how long requests stay that were issued, denied or failed, and
	// keptWaiting those that wait, as in Kubernetes.
	keptDone    = time.Hour
	keptWaiting = 24 * time.Hour
)

// clean deletes old requests.
func (c *Controller) clean(ctx context.Context) {
	all, err := c.lister.List(labels.Everything())
	if err != nil {
		klog.ErrorS(err, "Failed to list CertificateSigningRequests")
		return
	}
	for _, o := range all {
		if !c.over(o) {
			continue
		}
		err := c.client.CertificatesV1().CertificateSigningRequests().Delete(ctx, o.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) && ctx.Err() == nil {
			klog.ErrorS(err, "Failed to delete an old CertificateSigningRequest", "name", o.Name)
		}
	}
}

// over reports whether a request is old enough to be deleted.
func (c *Controller) over(o *certificatesv1.CertificateSigningRequest) bool {
	older := func(t metav1.Time, d time.Duration) bool { return !t.IsZero() && c.now().Sub(t.Time) > d }
	if len(o.Status.Conditions) == 0 {
		return older(o.CreationTimestamp, keptWaiting)
	}
	for _, condition := range o.Status.Conditions {
		kept := keptDone
		switch condition.Type {
		case certificatesv1.CertificateDenied, certificatesv1.CertificateFailed:
		case certificatesv1.CertificateApproved:
			if len(o.Status.Certificate) == 0 {
				kept = keptWaiting
			}
		default:
			continue
		}
		if older(condition.LastUpdateTime, kept) {
			return true
		}
	}
	return false
}
