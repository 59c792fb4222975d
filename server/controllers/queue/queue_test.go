package queue

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"
)

func TestWork(t *testing.T) {
	q := New[string]("test", time.Millisecond, time.Millisecond)
	var done, failed []string
	q.Add("a")
	Work(t.Context(), q, func(_ context.Context, item string) error {
		if done = append(done, item); len(done) < 3 {
			return errors.New("not yet")
		}
		q.ShutDown()
		return nil
	}, func(item string, err error) { failed = append(failed, item+": "+err.Error()) })
	if !slices.Equal(done, []string{"a", "a", "a"}) || !slices.Equal(failed, []string{"a: not yet", "a: not yet"}) || q.NumRequeues("a") != 0 {
		t.Errorf("%q, %q, %d", done, failed, q.NumRequeues("a"))
	}
}

func TestWorkEnds(t *testing.T) {
	q := New[int]("test", time.Millisecond, time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	q.Add(1)
	Work(ctx, q, func(context.Context, int) error {
		cancel()
		q.ShutDown()
		return context.Canceled
	}, func(_ int, err error) { t.Errorf("an error after the end is reported: %v", err) })
	if q.Len() != 0 || q.NumRequeues(1) != 0 {
		t.Errorf("%d items, %d repeated", q.Len(), q.NumRequeues(1))
	}
}
