package tenants_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
	"github.com/espalier-dev/espalier/server/tenants/movetest"
)

// place says where a tenant is to be.
func place(t testing.TB, config *rest.Config, name, etcd string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"etcd":%q}}`, etcd)
	if _, err := objects(t, config).Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// statusOf is the status of a tenant.
func statusOf(ctx context.Context, t testing.TB, config *rest.Config, name string) map[string]any {
	t.Helper()
	o, err := objects(t, config).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	return status
}

// isIn waits until a tenant is in an etcd and nothing is left elsewhere.
func isIn(t *testing.T, config *rest.Config, name, etcd string) {
	t.Helper()
	succeeds(t, func() error {
		status := statusOf(t.Context(), t, config, name)
		if status["etcd"] != etcd || status["move"] != nil || status["leftovers"] != nil {
			return fmt.Errorf("%s is to be in %s: %v", name, etcd, status)
		}
		return nil
	})
}

func revisionOf(t *testing.T, version string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// waits waits until a move waits for something.
func waits(t *testing.T, config *rest.Config, name, why string) {
	t.Helper()
	succeeds(t, func() error {
		status := statusOf(t.Context(), t, config, name)
		if text := fmt.Sprint(status["conditions"]); !strings.Contains(text, "Waiting") || !strings.Contains(text, why) {
			return fmt.Errorf("%s is to wait because %q: %v", name, why, status)
		}
		return nil
	})
}

func startForMoves(t *testing.T) *rest.Config {
	t.Helper()
	return espaliertest.New(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.Controllers = true, []string{"*"}
	})).Config()
}

// A tenant moves between etcds, to that of the server and back, while clients use it.
func TestMoveInUse(t *testing.T) {
	config := startForMoves(t)
	east, west := addEtcd(t, config, "east"), addEtcd(t, config, "west")
	createIn(t, config, "one", "east")
	own := within(config, "one")
	c := client(t, own)
	for i := range 500 {
		m := settings("one")
		m.Name = fmt.Sprintf("filler%d", i)
		if _, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	event, err := c.CoreV1().Events("default").Create(t.Context(), &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e"}, InvolvedObject: corev1.ObjectReference{Namespace: "default"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	maps := c.CoreV1().ConfigMaps("default")
	before, err := maps.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	load, err := movetest.Start(t.Context(), 4, own)
	if err != nil {
		t.Fatal(err)
	}
	for _, etcd := range []string{"west", "root", "east", "west"} {
		began := time.Now()
		place(t, config, "one", etcd)
		isIn(t, config, "one", etcd)
		t.Log("moved to", etcd, "in", time.Since(began))
		time.Sleep(200 * time.Millisecond)
	}
	result := load.Stop(t.Context())
	t.Logf("%d writes, %d reads, %d events", result.Writes, result.Reads, result.Events)
	for _, v := range result.Violations {
		t.Error(v)
	}
	// What clients have from before the move is too old.
	after, err := maps.List(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err != nil {
		t.Fatal(err)
	}
	if revisionOf(t, after.ResourceVersion) <= revisionOf(t, before.ResourceVersion) || len(after.Items) < len(before.Items) {
		t.Errorf("a list of %d at %s after one of %d at %s", len(after.Items), after.ResourceVersion, len(before.Items), before.ResourceVersion)
	}
	if _, err := maps.Update(t.Context(), &before.Items[0], metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("an update with a resource version of before the move: %v", err)
	}
	old := metav1.ListOptions{ResourceVersion: before.ResourceVersion, ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := maps.List(t.Context(), old); !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a list of before the move: %v", err)
	}
	events, err := maps.Watch(t.Context(), metav1.ListOptions{ResourceVersion: before.ResourceVersion})
	if err == nil {
		err = apierrors.FromObject((<-events.ResultChan()).Object)
		events.Stop()
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("a watch from before the move: %v", err)
	}
	o, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if inEast, inWest := keysOf(t, east.Client, o), keysOf(t, west.Client, o); inEast != 0 || inWest < 500 {
		t.Errorf("%d keys in east, %d in west", inEast, inWest)
	}
	// What has a time to live has it there, too.
	if again, err := c.CoreV1().Events("default").Get(t.Context(), "e", metav1.GetOptions{}); err != nil || again.UID != event.UID {
		t.Errorf("the event: %v, %v", again, err)
	}
	leases, err := west.Client.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	timed := 0
	for _, l := range leases.Leases {
		left, err := west.Client.TimeToLive(t.Context(), l.ID)
		if err != nil {
			t.Fatal(err)
		}
		if left.TTL > 3000 && left.TTL <= 3700 {
			timed++
		}
	}
	if timed == 0 {
		t.Error("no lease for the event")
	}
}

// A move that cannot be done waits, says why, and can be canceled. What it has left is removed.
func TestMoveThatWaits(t *testing.T) {
	config := startForMoves(t)
	east, west := addEtcd(t, config, "east"), addEtcd(t, config, "west")
	if _, err := etcds(t, config).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "espalier.dev/v1alpha1", "kind": "Etcd", "metadata": map[string]any{"name": "again"},
		"spec": map[string]any{"servers": []any{east.Endpoint}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	createIn(t, config, "one", "east")
	maps := client(t, within(config, "one")).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), settings("one"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	there := func(when string) {
		t.Helper()
		succeeds(t, func() error {
			m, err := maps.Get(t.Context(), "settings", metav1.GetOptions{})
			if err != nil || m.Data["of"] != "one" {
				return fmt.Errorf("%s: %v, %w", when, m, err)
			}
			return nil
		})
	}
	place(t, config, "one", "nowhere")
	waits(t, config, "one", `there is no etcd "nowhere"`)
	there("while there is no such etcd")
	place(t, config, "one", "again")
	waits(t, config, "one", "both are the same etcd")
	there("while the target is the same etcd")
	place(t, config, "one", "east")
	isIn(t, config, "one", "east")
	there("after the target was the same etcd")

	west.Kill(t)
	place(t, config, "one", "west")
	waits(t, config, "one", "west")
	there("while the target is down")
	west.Start(t)
	isIn(t, config, "one", "west")
	there("in the target")

	east.Kill(t)
	place(t, config, "one", "east")
	waits(t, config, "one", "east")
	place(t, config, "one", "west")
	succeeds(t, func() error {
		if status := statusOf(t.Context(), t, config, "one"); status["move"] != nil || status["etcd"] != "west" {
			return fmt.Errorf("after the cancel: %v", status)
		}
		return nil
	})
	there("after the cancel")

	// It is deleted while the move waits: nothing is left anywhere.
	o, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	place(t, config, "one", "east")
	waits(t, config, "one", "east")
	if err := objects(t, config).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	east.Start(t)
	succeeds(t, func() error {
		if _, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the object of the tenant: %w", err)
		}
		return nil
	})
	if inEast, inWest := keysOf(t, east.Client, o), keysOf(t, west.Client, o); inEast != 0 || inWest != 0 {
		t.Errorf("%d keys in east, %d in west", inEast, inWest)
	}
}

// A controller that ends while requests wait keeps none from the tenant: a server gives it back.
func TestMoveWithoutEnd(t *testing.T) {
	config := espaliertest.New(t, espaliertest.Configure(func(o *server.Options) {
		o.Tenants, o.Controllers = true, []string{"*", "-tenant-controller"}
	})).Config()
	addEtcd(t, config, "east")
	createIn(t, config, "one", "east")
	maps := client(t, within(config, "one")).CoreV1().ConfigMaps("default")
	before, err := maps.Create(t.Context(), settings("one"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	o, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for field, value := range map[string]any{"last": int64(2), "move": map[string]any{"to": "west", "attempt": int64(1), "phase": "Switching"}} {
		if err := unstructured.SetNestedField(o.Object, value, "status", field); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := objects(t, config).UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, func() error { // the server has seen it
		status := statusOf(t.Context(), t, config, "one")
		if phase, _, _ := unstructured.NestedString(status, "move", "phase"); phase == "Switching" {
			_, err := maps.Get(t.Context(), "settings", metav1.GetOptions{})
			return fmt.Errorf("the phase is %s, and a read gets %w", phase, err)
		}
		return nil
	})
	if status := statusOf(t.Context(), t, config, "one"); status["etcd"] != "east" || status["epoch"] != int64(3) || status["last"] != int64(3) {
		t.Errorf("given back as %v", status)
	}
	after, err := maps.Update(t.Context(), before, metav1.UpdateOptions{})
	if err != nil || revisionOf(t, after.ResourceVersion) < revisionOf(t, before.ResourceVersion) {
		t.Errorf("a write afterwards: %+v, %v", after, err)
	}
}
