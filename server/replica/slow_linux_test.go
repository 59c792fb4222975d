package replica_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/replica"
)

// A replica that starts while etcd does not answer, as during an election, waits for it, but not for ever.
func TestJoinWaitsForEtcd(t *testing.T) {
	t.Parallel()
	etcd := etcdtest.NewSingle(t)
	for name, o := range map[string]replica.Options{
		"with settings":    with("slow", "good"),
		"without settings": {Prefix: "plain"},
	} {
		t.Run(name, func(t *testing.T) {
			o.TTL = 4 * time.Second
			etcd.Signal(t, syscall.SIGSTOP)
			time.AfterFunc(o.TTL*3/4, func() { etcd.Signal(t, syscall.SIGCONT) })
			m, err := replica.Join(t.Context(), etcd.Client, o)
			if err != nil {
				t.Fatal(err)
			}
			if !m.Current() {
				t.Error("is not current")
			}
			if m.Leave(t.Context()); len(keys(t, etcd.Client, o.Prefix)) > 0 {
				t.Errorf("left are %q", keys(t, etcd.Client, o.Prefix))
			}
		})
	}
	etcd.Signal(t, syscall.SIGSTOP)
	begun := time.Now()
	o := with("never", "good")
	o.TTL = 2 * time.Second
	if _, err := replica.Join(t.Context(), etcd.Client, o); err == nil || !strings.HasPrefix(err.Error(), "registering this replica in etcd: ") {
		t.Errorf("without an answer: %v", err)
	}
	if took := time.Since(begun); took < o.TTL {
		t.Errorf("gives up after %v", took)
	}
	etcd.Signal(t, syscall.SIGCONT)
}
