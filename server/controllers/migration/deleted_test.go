package migration_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// A leader does not trim storedVersions if an older migration was undone while it verified, also if that migration and its
// progress are deleted by then.
func TestTrimAfterDeletion(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(20)
	e.storeIn("v1")
	if _, err := e.etcd.Put(t.Context(), e.key("broken"), "not JSON"); err != nil {
		t.Fatal(err)
	}
	first := e.leader(nil)
	e.migrate("first", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("first", "Failed")
	first()
	if _, err := e.etcd.Delete(t.Context(), e.key("broken")); err != nil {
		t.Fatal(err)
	}
	verifying, goOn := make(chan struct{}), make(chan struct{})
	arrived := sync.OnceFunc(func() { close(verifying); <-goOn })
	e.leader(func(c *migration.Config) {
		lookup := c.Lookup
		c.Lookup = func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
			r, err := lookup(ctx, name)
			if r != nil {
				current := r.Current
				r.Current = func(data []byte) bool {
					is := current(data)
					if strings.Contains(string(data), "w000019") { // the last one
						arrived()
					}
					return is
				}
			}
			return r, err
		}
	})
	e.migrate("second", nil)
	<-verifying
	e.annotate("second", migration.PausedAnnotation, "true") // the other one leaves it alone
	e.annotate("first", migration.UndoAnnotation, "true")
	other := e.leader(nil)
	e.await("first", "Undone")
	other()
	if err := e.typed.StoragemigrationV1().StorageVersionMigrations().Delete(t.Context(), "first", deleteNow); err != nil {
		t.Fatal(err)
	}
	e.until("the progress of the first is deleted", func() bool { return e.below("-espalier/migrations") == 1 })
	close(goOn)
	e.annotate("second", migration.PausedAnnotation, nil)
	e.await("second", "Succeeded")
	if left := notIn(e.values(), "v1"); len(left) > 0 {
		t.Errorf("storedVersions is %q, and these are in another version: %q", e.storedVersions(), left)
	}
	if got := strings.Join(e.storedVersions(), " "); got != "v1" {
		t.Errorf("storedVersions: %s", got)
	}
}
