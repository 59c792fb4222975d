package migration_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// A leader that was replaced while it verified does not trim storedVersions after its successor has undone an older
// migration: objects are in the old version again.
func TestLateTrim(t *testing.T) {
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
	e.annotate("second", migration.PausedAnnotation, "true") // the successor leaves it alone
	e.annotate("first", migration.UndoAnnotation, "true")
	successor := e.leader(nil)
	e.await("first", "Undone")
	successor()
	if left := notIn(e.values(), "v1alpha1"); len(left) > 0 {
		t.Fatalf("not undone: %q", left)
	}
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

// A replica whose clock is behind does not say Undone after another has begun to delete the pre-images.
func TestClocksDiffer(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(20)
	e.storeIn("v1")
	first := e.leader(nil)
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.await("widgets", "Succeeded")
	first()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	deleting, goOn := make(chan struct{}), make(chan struct{})
	e.leader(func(c *migration.Config) {
		migration.SetClock(c, func() time.Time { return time.Now().Add(2 * time.Hour) })
		client.KV = slowDeletion{client.KV, sync.OnceFunc(func() { close(deleting); <-goOn })}
		c.Etcd = client
		lookup := c.Lookup // it does not work on migrations itself
		c.Lookup = func(ctx context.Context, name schema.GroupResource) (*migration.Resource, error) {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-goOn:
				return lookup(ctx, name)
			}
		}
	})
	<-deleting
	defer close(goOn)
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.leader(nil)
	var c *metav1.Condition
	e.until("the undo has an answer", func() bool {
		c = meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Undone")
		return c != nil && c.Reason != "Undoing"
	})
	if c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, "expired") {
		t.Errorf("%+v; %d objects have their pre-images back", c, len(e.values())-len(notIn(e.values(), "v1alpha1")))
	}
}

// slowDeletion calls a function after the first deletion of pre-images.
type slowDeletion struct {
	clientv3.KV
	then func()
}

func (s slowDeletion) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	resp, err := s.KV.Delete(ctx, key, opts...)
	if strings.Contains(key, "preimages") {
		s.then()
	}
	return resp, err
}

// What another controller has migrated cannot be undone, and that is said.
func TestUndoOfAnotherController(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(5)
	e.storeIn("v1")
	for name, condition := range map[string]string{"done": "Succeeded", "begun": "Running"} {
		m := e.migrate(name, map[string]string{migration.KeepAnnotation: "1h", migration.UndoAnnotation: "true"})
		m.Status.ResourceVersion = "5"
		meta.SetStatusCondition(&m.Status.Conditions, metav1.Condition{Type: condition, Status: metav1.ConditionTrue, Reason: "Test"})
		if _, err := e.typed.StoragemigrationV1().StorageVersionMigrations().UpdateStatus(t.Context(), m, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	// One that this controller continues.
	m := e.migrate("continued", map[string]string{migration.KeepAnnotation: "1h"})
	m.Status.ResourceVersion = "5"
	if _, err := e.typed.StoragemigrationV1().StorageVersionMigrations().UpdateStatus(t.Context(), m, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	e.leader(nil)
	e.await("continued", "Succeeded")
	e.annotate("continued", migration.UndoAnnotation, "true")
	for _, name := range []string{"done", "begun", "continued"} {
		var c *metav1.Condition
		e.until("the undo has an answer", func() bool {
			c = meta.FindStatusCondition(e.get(name).Status.Conditions, "Undone")
			return c != nil
		})
		if c.Status != metav1.ConditionFalse || c.Reason != "NoPreimages" || !strings.Contains(c.Message, "another controller") {
			t.Errorf("%s: %+v", name, c)
		}
	}
}
