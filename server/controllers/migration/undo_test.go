package migration_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// slowly lets each transaction take some time.
type slowly struct{ clientv3.KV }

func (s slowly) Txn(ctx context.Context) clientv3.Txn {
	select {
	case <-ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
	return s.KV.Txn(ctx)
}

// An undo that has begun comes to its end, also if its annotation is removed and the process ends.
func TestUndoIsFinished(t *testing.T) {
	t.Parallel()
	e := newEnv(t, idle)
	e.define()
	e.fill(3000)
	e.storeIn("v1")
	before := e.values()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{e.endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	client.KV = slowly{client.KV}
	first := e.leader(func(c *migration.Config) { c.Etcd = client })
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.until("many are migrated", func() bool { return len(notIn(e.values(), "v1alpha1")) > 1000 })
	e.annotate("widgets", migration.UndoAnnotation, "true")
	e.until("some are back", func() bool {
		c := meta.FindStatusCondition(e.get("widgets").Status.Conditions, "Undone")
		return c != nil && c.Reason == "Undoing" && progressOf(t, e.get("widgets")).Restored > 0
	})
	first()
	if len(notIn(e.values(), "v1alpha1")) == 0 {
		t.Fatal("the undo was faster than the test")
	}
	e.annotate("widgets", migration.UndoAnnotation, nil)
	e.leader(nil)
	e.await("widgets", "Undone")
	for name, is := range e.values() {
		if is.data != before[name].data {
			t.Fatalf("%s: %s", name, is.data)
		}
	}
}
