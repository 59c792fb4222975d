package tenants_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// reachAt changes spec.servers of an etcd.
func reachAt(t *testing.T, config *rest.Config, name, endpoint string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"servers":[%q]}}`, endpoint)
	if _, err := etcds(t, config).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

const fillers = 24

// fill gives a tenant 12 MiB, which take some tenths of a second to copy.
func fill(t *testing.T, config *rest.Config, name string) {
	t.Helper()
	maps := client(t, within(config, name)).CoreV1().ConfigMaps("default")
	for i := range fillers {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("filler%02d", i)}, Data: map[string]string{"x": strings.Repeat("x", 512<<10)}}
		if _, err := maps.Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// filled waits until a tenant is there with all it has.
func filled(t *testing.T, config *rest.Config, name, when string) {
	t.Helper()
	maps := client(t, within(config, name)).CoreV1().ConfigMaps("default")
	succeeds(t, func() error {
		list, err := maps.List(t.Context(), metav1.ListOptions{})
		n := 0
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, "filler") {
				n++
			}
		}
		if err != nil || n != fillers {
			return fmt.Errorf("%s: %d objects, %w", when, n, err)
		}
		return nil
	})
}

// copied waits until some of what fill has written is in the target of a move.
func copied(t *testing.T, to *clientv3.Client) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
		all, err := to.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range all.Kvs {
			if strings.Contains(string(kv.Key), "/filler") {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatal("nothing is copied")
		}
	}
}

func object(t *testing.T, config *rest.Config, name string) *unstructured.Unstructured {
	t.Helper()
	o, err := objects(t, config).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// What is copied when the target is restored from a backup, or gets another address, is not taken for the tenant.
func TestTargetChangesDuringMove(t *testing.T) {
	config := startForMoves(t)
	addEtcd(t, config, "east")
	west, other := addEtcd(t, config, "west"), etcdtest.NewSingle(t)
	createIn(t, config, "one", "east")
	fill(t, config, "one")
	o := object(t, config, "one")

	place(t, config, "one", "west")
	copied(t, west.Client)
	if _, err := west.Client.Delete(t.Context(), "/", clientv3.WithPrefix()); err != nil { // as in a backup of before the move
		t.Fatal(err)
	}
	isIn(t, config, "one", "west")
	filled(t, config, "one", "after the target was restored")

	place(t, config, "one", "east")
	isIn(t, config, "one", "east")
	place(t, config, "one", "west")
	copied(t, west.Client)
	reachAt(t, config, "west", other.Endpoint)
	isIn(t, config, "one", "west")
	filled(t, config, "one", "after the target got another address")
	if n := keysOf(t, other.Client, o); n < fillers {
		t.Errorf("%d keys in the new target", n)
	}
}

// A tenant that was moved is not served without what it has, nor is what is left of it removed, when its etcd has another
// address, or was restored from a backup of before the move.
func TestEtcdChangesAfterMove(t *testing.T) {
	config := startForMoves(t)
	east, west, other := addEtcd(t, config, "east"), addEtcd(t, config, "west"), etcdtest.NewSingle(t)
	createIn(t, config, "one", "east")
	fill(t, config, "one")
	o := object(t, config, "one")
	place(t, config, "one", "west")
	isIn(t, config, "one", "west")
	filled(t, config, "one", "after the move")

	left := strings.TrimSuffix(keyOf(t, west.Client, o), "/") + "-left"
	if _, err := east.Client.Put(t.Context(), left, ""); err != nil {
		t.Fatal(err)
	}
	reachAt(t, config, "west", other.Endpoint)
	status(t, config, "one", `{"status":{"leftovers":["east"]}}`)
	time.Sleep(3 * time.Second)
	if n := keysOf(t, other.Client, o); n != 0 {
		t.Errorf("%d keys in an etcd that never had the tenant", n)
	}
	if n := keysOf(t, east.Client, o); n == 0 {
		t.Error("what is left was removed, although the etcd of the tenant does not have it")
	}
	reachAt(t, config, "west", west.Endpoint)
	isIn(t, config, "one", "west")
	filled(t, config, "one", "with the former address")
}

// keyOf is a key of a tenant.
func keyOf(t *testing.T, etcd *clientv3.Client, o *unstructured.Unstructured) string {
	t.Helper()
	all, err := etcd.Get(t.Context(), "/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range all.Kvs {
		if strings.Contains(string(kv.Key), "-tenants/"+string(o.GetUID())+"/") {
			return string(kv.Key)
		}
	}
	t.Fatal("the tenant has no keys")
	return ""
}

func status(t *testing.T, config *rest.Config, name, patch string) {
	t.Helper()
	if _, err := objects(t, config).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
}

// The object of a tenant is restored from a backup of before a move, whose end the etcds know. The move is not made once more:
// it would empty the etcd that has the tenant.
func TestObjectIsRestored(t *testing.T) {
	config := startForMoves(t)
	addEtcd(t, config, "east")
	west := addEtcd(t, config, "west")
	createIn(t, config, "one", "east")
	fill(t, config, "one")
	o := object(t, config, "one")
	place(t, config, "one", "west")
	isIn(t, config, "one", "west")
	filled(t, config, "one", "after the move")
	for what, used := range map[string]bool{"with its guard": true, "without a guard": false} {
		now := object(t, config, "one")
		number := func(field string) int64 {
			n, _, _ := unstructured.NestedInt64(now.Object, "status", field)
			return n
		}
		if !used {
			if _, err := west.Client.Delete(t.Context(), guardOf(t, west.Client, o)); err != nil {
				t.Fatal(err)
			}
		}
		status(t, config, "one", `{"status":{"etcd":"east","epoch":null,"offset":null,"since":null,"move":null,"conditions":null}}`)
		waits(t, config, "one", "restored from a backup")
		if n := keysOf(t, west.Client, o); n < fillers {
			t.Errorf("%s: %d keys in west", what, n)
		}
		status(t, config, "one", fmt.Sprintf(`{"status":{"etcd":"west","epoch":%d,"offset":%d,"since":%d,"move":null}}`, number("epoch"), number("offset"), number("since")))
		filled(t, config, "one", what)
	}
}

func guardOf(t *testing.T, etcd *clientv3.Client, o *unstructured.Unstructured) string {
	t.Helper()
	key, _, _ := strings.Cut(keyOf(t, etcd, o), string(o.GetUID()))
	return key + string(o.GetUID())
}
