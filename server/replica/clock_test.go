package replica

import (
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// The clock goes on, and at the pace of others. That it goes on in sleep a test cannot
// show: the machine would have to sleep.
func TestClock(t *testing.T) {
	before, start := Clock(), time.Now()
	time.Sleep(50 * time.Millisecond)
	passed, want := Clock()-before, time.Since(start)
	if passed < 50*time.Millisecond || passed > want {
		t.Errorf("%v have passed, and %v by another clock", passed, want)
	}
	last := Clock()
	for range 10_000 {
		now := Clock()
		if now < last {
			t.Fatalf("%v came after %v", now, last)
		}
		last = now
	}
}

// A machine sleeps: for the process no time has passed, for etcd the lease has run out.
func TestLeaseRunsOutInSleep(t *testing.T) {
	client, prefix := etcdtest.Client(t)
	m, err := Join(t.Context(), client, Options{Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave(t.Context())
	if !m.Current() {
		t.Error("is not current before")
	}
	m.clock = func() time.Duration { return Clock() + m.o.TTL }
	if m.Current() {
		t.Error("is current after its machine has slept")
	}
}
