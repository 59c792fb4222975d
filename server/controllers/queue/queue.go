package queue

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Queue is a work queue with exponential backoff.
type Queue[T comparable] = workqueue.TypedRateLimitingInterface[T]

// New returns a queue. Metrics have it under the name. An item that fails is retried after
// first, then after twice the time before, at most last.
func New[T comparable](name string, first, last time.Duration) Queue[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[T](first, last),
		workqueue.TypedRateLimitingQueueConfig[T]{Name: name})
}

// Work takes items until the queue is shut down. It reports the errors of do, unless the
// context has ended.
func Work[T comparable](ctx context.Context, q Queue[T], do func(context.Context, T) error, report func(T, error)) {
	for {
		item, shutdown := q.Get()
		if shutdown {
			return
		}
		if err := do(ctx, item); err == nil {
			q.Forget(item)
		} else if ctx.Err() == nil {
			report(item, err)
			q.AddRateLimited(item)
		}
		q.Done(item)
	}
}
