package scenarios

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// ownEtcd starts a server on an etcd of its own.
func ownEtcd(t *testing.T, kind launch.Kind, flags ...string) (*launch.Server, *launch.Etcd) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	store, err := launch.StartEtcd(ctx, append(flags, "--unsafe-no-fsync")...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Stop)
	s, err := launch.StartServer(ctx, launch.Spec{Kind: kind, Binary: binaries[kind], Etcd: store.URL, Prefix: "/own", Compatible: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s, store
}

// A full etcd: ours says so, and what to do.
func TestFullEtcdAnswers(t *testing.T) {
	const boat = `{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"b%d","annotations":{"x":"%s"}},"spec":{"owner":"ada"}}`
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			s, _ := ownEtcd(t, kind, "--quota-backend-bytes", fmt.Sprint(4<<20))
			c := dial(t, s)
			post(t, c, crdsPath, boatsCRD(t))
			served(t, c)
			status, message := http.StatusCreated, ""
			for i := 0; status == http.StatusCreated && i < 100; i++ {
				status, message = told(t, c, http.MethodPost, boatsPath, fmt.Sprintf(boat, i, strings.Repeat("x", 200<<10)))
			}
			want, says := http.StatusInsufficientStorage, "etcd is out of space"
			if kind == launch.Upstream {
				want, says = http.StatusInternalServerError, "etcdserver: mvcc: database space exceeded"
			}
			if status != want || !strings.HasPrefix(message, says) {
				t.Errorf("%d %s", status, message)
			}
			if status, _, _, err := c.Do(t.Context(), http.MethodDelete, boatsPath+"/b0", nil); err != nil || status != http.StatusOK {
				t.Errorf("a delete: %d, %v", status, err)
			}
		})
	}
}

// A check that fails: ours gives the reason to users who may read the path of the check.
func TestHealthReasons(t *testing.T) {
	for name, kind := range sides(t) {
		t.Run(name, func(t *testing.T) {
			s, store := ownEtcd(t, kind)
			c := dial(t, s)
			store.Stop()
			var status int
			var answer []byte
			for end := time.Now().Add(time.Minute); status != http.StatusInternalServerError && time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				var err error
				if status, _, answer, err = c.Do(t.Context(), http.MethodGet, "/healthz?verbose", nil); err != nil {
					t.Fatal(err)
				}
			}
			withheld := strings.Contains(string(answer), "[-]etcd failed: reason withheld\n")
			if !strings.Contains(string(answer), "[-]etcd failed: ") || withheld != (kind == launch.Upstream) {
				t.Errorf("%d %s", status, answer)
			}
		})
	}
}
