package store_test

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher/consistency"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// A cache of objects that do not change does not stay at a compacted revision:
// k8s.io/apiserver's consistency check can read at its revision. It is not parallel: the
// period of that check is a variable of the process.
func TestIdleCacheIsNotTooOld(t *testing.T) {
	was := consistency.CheckPeriod
	consistency.CheckPeriod = 1500 * time.Millisecond
	t.Cleanup(func() { consistency.CheckPeriod = was })
	log := etcdtest.Capture(t)

	b := open(t, func(c *store.Config) { c.CompactionInterval, c.Idle = time.Second, time.Minute })
	st := open1(t, b, spec("v1"))
	create(t, st, gadget("v1", "a", 1))
	w, err := st.Watch(t.Context(), prefix, storage.ListOptions{Recursive: true, Predicate: predicate()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if _, err := b.Client().Put(t.Context(), "/elsewhere", "changes"); err != nil {
			t.Fatal(err)
		}
	}
	if text := log.String(); strings.Contains(text, "Cache consistency check error") {
		t.Errorf("the log:\n%s", text)
	}
}
