package tenants

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/controllers/queue"
)

// lastLook is how often at least to look whether an etcd that was removed has tenants.
const lastLook = 10 * time.Second

// releaseEtcds lets the objects of etcds go that were deleted, when no tenant is in them.
func (r *remover) releaseEtcds(ctx context.Context) {
	waiting := queue.New[string]("etcds", firstRetry, lastLook)
	defer waiting.ShutDown()
	go queue.Work(ctx, waiting, r.releaseEtcd, func(name string, err error) {
		klog.InfoS("An etcd that was deleted is kept", "etcd", name, "because", err.Error())
	})
	changes := make(chan string, 16)
	go r.follow(ctx, r.etcds(), changes)
	for {
		select {
		case <-ctx.Done():
			return
		case name := <-changes:
			if name != "" {
				waiting.Add(name)
				continue
			}
			list, err := r.pool.etcds.List(ctx, metav1.ListOptions{})
			if err != nil {
				klog.ErrorS(err, "Listing etcds failed; those that were deleted are let go with the next change")
				continue
			}
			for i := range list.Items {
				waiting.Add(list.Items[i].GetName())
			}
		}
	}
}

// releaseEtcd lets the object of an etcd go.
func (r *remover) releaseEtcd(ctx context.Context, name string) error {
	o, err := r.pool.etcds.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && (o.GetDeletionTimestamp() == nil || !slices.Contains(o.GetFinalizers(), EtcdFinalizer)) {
		return nil
	}
	if err != nil {
		return err
	}
	options := metav1.ListOptions{Limit: listed}
	for {
		page, err := r.client.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			if uses(&page.Items[i], name) {
				return fmt.Errorf("the tenant %s is in it", page.Items[i].GetName())
			}
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(f string) bool { return f == EtcdFinalizer }))
	if _, err = r.pool.etcds.Update(ctx, o, metav1.UpdateOptions{}); apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
