package migration_test

import (
	"fmt"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/controllers/migration"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// A migration waits before etcd is full, says so, and goes on when there is space.
func TestEtcdIsNearlyFull(t *testing.T) {
	t.Parallel()
	cluster := etcdtest.NewCluster(t, "--quota-backend-bytes", fmt.Sprint(32<<20))
	client, err := clientv3.New(clientv3.Config{Endpoints: cluster.Endpoints[:1]})
	if err != nil {
		t.Fatal(err)
	}
	e := &env{TB: t, etcd: client, prefix: "/registry", endpoint: cluster.Endpoints[0]}
	t.Cleanup(func() { _ = client.Close() })
	e.start()
	t.Cleanup(e.stop)
	e.define()
	const n = 8000
	for range 2 {
		e.fill(n)
	}
	e.storeIn("v1")
	e.migrate("widgets", map[string]string{migration.KeepAnnotation: "1h"})
	e.until("the migration waits for space", func() bool {
		m := e.get("widgets")
		if meta.IsStatusConditionTrue(m.Status.Conditions, "Succeeded") {
			t.Fatal("etcd had space for all objects")
		}
		c := meta.FindStatusCondition(m.Status.Conditions, "Running")
		return c != nil && c.Reason == "EtcdNearlyFull" && c.Status == metav1.ConditionFalse && strings.Contains(c.Message, "compact etcd")
	})
	alarms, err := client.AlarmList(t.Context())
	if err != nil || len(alarms.Alarms) > 0 {
		t.Errorf("etcd is full: %v, %v", alarms, err)
	}
	left := len(notIn(e.values(), "v1"))
	if left == 0 {
		t.Error("no object is left")
	}
	now, err := client.Get(t.Context(), "/")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Compact(t.Context(), now.Header.Revision, clientv3.WithCompactPhysical()); err != nil {
		t.Fatal(err)
	}
	e.await("widgets", "Succeeded")
	if left := notIn(e.values(), "v1"); len(left) > 0 {
		t.Errorf("%d objects are not migrated", len(left))
	}
}
