package queue

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// Queue has items that are to be looked at.
type Queue[T comparable] = workqueue.TypedRateLimitingInterface[T]

// New returns a queue of that name in metrics. An item that fails is repeated after first,
// and after twice as long each time, at most last.
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
