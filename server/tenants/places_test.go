package tenants

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// Starts that take long give their places to others, and too many of them end.
func TestSlowStarts(t *testing.T) {
	p := newPlaces()
	p.patience = 50 * time.Millisecond
	var slow []context.Context
	var leave []func()
	for range starts + slowStarts {
		ctx, end, err := p.take(t.Context()) // the second half waits until the first one is slow
		if err != nil {
			t.Fatal(err)
		}
		slow, leave = append(slow, ctx), append(leave, end)
	}
	for _, ctx := range slow[:slowStarts] {
		if ctx.Err() != nil {
			t.Error("a slow start was ended:", context.Cause(ctx))
		}
	}
	for _, ctx := range slow[slowStarts:] {
		select {
		case <-ctx.Done():
			if !errors.Is(context.Cause(ctx), errSlow) {
				t.Error("ended:", context.Cause(ctx))
			}
		case <-time.After(10 * time.Second):
			t.Fatal("more starts are slow than may be")
		}
	}
	for _, end := range leave {
		end()
	}
	if len(p.quick) != 0 || len(p.slow) != 0 {
		t.Errorf("%d and %d places are still taken", len(p.quick), len(p.slow))
	}
	for range 3 * (starts + slowStarts) { // places come back, whenever a start ends
		_, end, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(p.quick)%2 == 0 {
			time.Sleep(p.patience)
		}
		end()
	}
	if len(p.quick) != 0 || len(p.slow) != 0 {
		t.Errorf("%d and %d places are still taken", len(p.quick), len(p.slow))
	}
	ended, end := context.WithCancel(t.Context())
	end()
	for range starts {
		_, leave, err := p.take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer leave()
	}
	if _, _, err := p.take(ended); err == nil {
		t.Error("a place that is not free")
	}
}

// A tenant that cannot be started is left alone for longer and longer, until it can be. Others are not.
func TestFailures(t *testing.T) {
	var f failures
	var last time.Duration
	for n := range 10 {
		if n > 0 {
			var again againError
			if err := f.check("one"); !errors.As(err, &again) || again.after > lastPause || again.after < last-time.Second {
				t.Fatal(n, err, last)
			}
			last = min(2*last, lastPause)
		} else {
			last = firstPause
		}
		f.note("one", errSlow)
	}
	if err := f.check("two"); err != nil {
		t.Error(err)
	}
	f.note("one", nil)
	if err := f.check("one"); err != nil {
		t.Error(err)
	}
	for n := range 2 * mostFailures {
		f.note(fmt.Sprint(n), errSlow)
	}
	if len(f.known) > mostFailures {
		t.Errorf("%d failures are remembered", len(f.known))
	}
}
