package flood_test

import (
	"os"
	"testing"

	"github.com/espalier-dev/espalier/conformance/flood"
	"github.com/espalier-dev/espalier/conformance/launch"
)

// TestWatches takes minutes and measures: it is for `make flood`, or for ESPALIER_FLOOD=1.
func TestWatches(t *testing.T) {
	if os.Getenv("ESPALIER_FLOOD") == "" {
		t.Skip("set ESPALIER_FLOOD=1")
	}
	etcd, err := launch.StartEtcd(t.Context(), "--unsafe-no-fsync")
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Stop()
	binary, err := launch.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s, err := launch.StartServer(t.Context(), launch.Spec{Kind: launch.Espalier, Binary: binary, Etcd: etcd.URL, Prefix: "/flood"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	if err := flood.Watches(t.Context(), s, t.Logf); err != nil {
		t.Error(err)
	}
}
