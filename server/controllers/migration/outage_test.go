package migration_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// outage has what converts objects fail from the fourth page on, until it is over.
func outage(c *migration.Config, over *atomic.Bool) {
	lookup := c.Lookup
	c.Lookup = func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
		r, err := lookup(ctx, name)
		if r != nil {
			rewrite := r.Rewrite
			r.Rewrite = func(ctx context.Context, values []migration.Value) ([]migration.Rewritten, error) {
				if !over.Load() && values[0].Name >= "default/w000112" {
					return nil, errors.New("the webhook does not answer")
				}
				return rewrite(ctx, values)
			}
		}
		return r, err
	}
}

// While the next objects cannot be converted, those before them are stored, and the status says what is wrong.
func TestOutageOfConversion(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(2000)
	e.storeIn("v1")
	var over atomic.Bool
	e.leader(func(c *migration.Config) { outage(c, &over) })
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.until("the status says so", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Running")
		return c != nil && strings.Contains(c.Message, "the webhook does not answer")
	})
	over.Store(true)
	e.await("widgets", "Succeeded")
	if left := notIn(e.values(), "v1"); len(left) > 0 {
		t.Errorf("not migrated: %q", left)
	}
}

// A migration rests soon if it is paused while objects cannot be converted.
func TestPauseInAnOutage(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(200)
	e.storeIn("v1")
	e.leader(func(c *migration.Config) { outage(c, new(atomic.Bool)) })
	e.migrate("widgets", nil)
	e.until("some are migrated", func() bool { return len(notIn(e.values(), "v1alpha1")) > 0 })
	e.annotate("widgets", migration.PausedAnnotation, "true")
	began := time.Now()
	e.until("the migration is paused", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Running")
		return c != nil && c.Reason == "Paused"
	})
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %v", took)
	}
}

// Objects are not quarantined because what converts them fails for a while, also if that begins while the cause is looked for.
func TestFlappingConversion(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(10)
	e.storeIn("v1")
	var calls atomic.Int64
	e.leader(func(c *migration.Config) {
		lookup := c.Lookup
		c.Lookup = func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
			r, err := lookup(ctx, name)
			if r != nil {
				rewrite := r.Rewrite
				r.Rewrite = func(ctx context.Context, values []migration.Value) ([]migration.Rewritten, error) {
					if n := calls.Add(1); n == 1 || n > 3 && n < 20 { // all at once, and all but the first two alone
						return nil, errors.New("the webhook does not answer")
					}
					return rewrite(ctx, values)
				}
			}
			return r, err
		}
	})
	e.migrate("widgets", nil)
	e.await("widgets", "Succeeded")
}
