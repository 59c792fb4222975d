package store

import (
	"net"
	"os"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// openAt opens a backend that is closed with the test.
func openAt(t testing.TB, endpoints ...string) *Backend {
	t.Helper()
	c := Config{Config: storagebackend.Config{Prefix: etcdtest.Prefix(t)}}
	c.Transport.ServerList = endpoints
	b, err := Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// until waits for something that is to become true.
func until(t testing.TB, d time.Duration, what string, ok func() bool) time.Duration {
	t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > d {
			t.Fatalf("%s: not within %v", what, d)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return time.Since(began)
}

// slowly is the time that a machine with other work may take for something that is
// quick. ESPALIER_EXACT=1 wants what is promised, on a quiet machine.
func slowly(d time.Duration) time.Duration {
	if os.Getenv("ESPALIER_EXACT") != "" {
		return d
	}
	return 4 * d
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
