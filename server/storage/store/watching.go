package store

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
)

// watchBatch is how many events that are there already are converted together.
const watchBatch = 200

// Watch implements storage.Interface.
func (c *converting) Watch(ctx context.Context, key string, opts storage.ListOptions) (watch.Interface, error) {
	if !opts.Predicate.Empty() {
		filtered, err := c.filteredWatches()
		if err != nil {
			return nil, err
		}
		return filtered.Watch(ctx, key, opts)
	}
	opts.RecordTimestamps = false // the wrapper around objects that this asks for would hide them
	ctx, cancel := context.WithCancel(ctx)
	inner, err := c.Interface.Watch(ctx, key, opts)
	if err != nil {
		cancel()
		return nil, err
	}
	w := &convertingWatch{inner: inner, spec: c.spec, cancel: cancel, results: make(chan watch.Event, 100)}
	go w.run(ctx)
	return w, nil
}

// filteredWatches is the storage for watches with selectors that no watch cache
// serves. Whether an event is an addition, a change or a deletion to such a watch
// depends on the object before and after, both converted. etcd3 decides that where
// it decodes, so the codec has to convert, one object at a time.
func (c *converting) filteredWatches() (storage.Interface, error) {
	c.filteredOnce.Do(func() {
		c.filtered, c.filteredErr = c.backend.direct(c.spec, &convertingCodec{Codec: c.spec.Codec, spec: c.spec})
	})
	return c.filtered, c.filteredErr
}

// convertingCodec converts what it decodes. There is no context to go by: the
// converter's own time limit applies.
type convertingCodec struct {
	runtime.Codec
	spec *Spec
}

// Decode implements runtime.Decoder.
func (c *convertingCodec) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, _, err := c.Codec.Decode(data, defaults, into)
	if err != nil {
		return nil, nil, err
	}
	converted, err := c.spec.one(context.Background(), obj, c.spec.Version)
	if err != nil {
		return nil, nil, &unconvertedError{cause: err} // the watch ends: the object itself may be as it should be
	}
	gvk := converted.GroupVersionKind()
	if o, ok := into.(*object.Object); ok && o != converted {
		*o = *converted
		return o, &gvk, nil
	}
	return converted, &gvk, nil
}

// convertingWatch passes on the events of a watch, converted, in their order.
type convertingWatch struct {
	inner   watch.Interface
	spec    *Spec
	cancel  context.CancelFunc
	results chan watch.Event
}

// Stop implements watch.Interface.
func (w *convertingWatch) Stop() { w.cancel() }

// ResultChan implements watch.Interface.
func (w *convertingWatch) ResultChan() <-chan watch.Event { return w.results }

func (w *convertingWatch) run(ctx context.Context) {
	defer close(w.results)
	defer w.inner.Stop()
	defer w.cancel()
	var batch []watch.Event
	for {
		select {
		case <-ctx.Done():
			return
		case event, ok := <-w.inner.ResultChan():
			if !ok {
				return
			}
			batch = w.collect(append(batch[:0], event))
		}
		err := w.convert(ctx, batch)
		if err != nil {
			batch = append(batch[:0], watch.Event{Type: watch.Error, Object: statusOf(err)})
		}
		for _, event := range batch {
			select {
			case <-ctx.Done():
				return
			case w.results <- event:
			}
		}
		if err != nil {
			return
		}
	}
}

// collect adds the events that need no waiting. That the watch has ended, its
// next read finds out.
func (w *convertingWatch) collect(batch []watch.Event) []watch.Event {
	for len(batch) < watchBatch {
		select {
		case event, ok := <-w.inner.ResultChan():
			if !ok {
				return batch
			}
			batch = append(batch, event)
		default:
			return batch
		}
	}
	return batch
}

// convert converts the objects of events in place.
func (w *convertingWatch) convert(ctx context.Context, batch []watch.Event) error {
	var objs []*object.Object
	var of []int
	for i, event := range batch {
		if o, ok := event.Object.(*object.Object); ok && event.Type != watch.Bookmark {
			objs, of = append(objs, o), append(of, i)
		}
	}
	converted, err := w.spec.convert(ctx, objs, w.spec.Version)
	if err != nil {
		return err
	}
	for i, o := range converted {
		batch[of[i]].Object = o
	}
	return nil
}

// statusOf returns an error as the object of an event.
func statusOf(err error) *metav1.Status {
	if s, ok := err.(apierrors.APIStatus); ok { //nolint:errorlint // a wrapped status lacks what the wrapping says
		status := s.Status()
		return &status
	}
	return &metav1.Status{
		Status:  metav1.StatusFailure,
		Code:    http.StatusInternalServerError,
		Reason:  metav1.StatusReasonInternalError,
		Message: err.Error(),
	}
}
