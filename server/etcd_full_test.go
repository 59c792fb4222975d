package server_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// All replicas restart on an etcd that is full: they come up, serve reads, watches and
// deletes, and say of writes why they fail. When there is space, all is as it was.
func TestFullEtcdAtRestart(t *testing.T) {
	t.Parallel()
	endpoint, _ := ownEtcd(t, "--quota-backend-bytes", fmt.Sprint(4<<20))
	prefix, keys := etcdtest.Prefix(t), t.TempDir()
	replicas := func() (all []*running) {
		for range 2 {
			all = append(all, start(t, func(o *server.Options) {
				o.Etcd.StorageConfig.Transport.ServerList, o.Etcd.StorageConfig.Prefix = []string{endpoint}, prefix
				o.Serving.ServerCert.CertDirectory = keys // for the key of service accounts
			}))
		}
		return all
	}
	first := replicas()
	define(t, first[0].dynamic(t))
	for i := range 4 {
		if _, err := first[i%2].dynamic(t).Resource(webs).Namespace("default").Create(t.Context(), web(fmt.Sprint("web-", i), "a"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	made := fillEtcd(t, first[0].typed(t))
	for _, r := range first {
		if err := r.stop(); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	second := replicas()
	t.Logf("two replicas restarted on a full etcd in %v", time.Since(began).Round(time.Millisecond))
	for i, r := range second {
		typed, custom := r.typed(t), r.dynamic(t).Resource(webs).Namespace("default")
		if _, err := typed.CoreV1().ConfigMaps("default").Get(t.Context(), "filler-0", metav1.GetOptions{}); err != nil {
			t.Errorf("replica %d: a read fails: %v", i, err)
		}
		list, err := custom.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 4-i {
			t.Fatalf("replica %d: a list of custom resources: %v, %v", i, list, err)
		}
		events, err := custom.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
		if err != nil {
			t.Fatalf("replica %d: a watch fails: %v", i, err)
		}
		// One write each: the client tries for ten seconds, as it is told to.
		refused(t, fmt.Sprintf("replica %d", i), []func() error{
			func() error {
				o := list.Items[0].DeepCopy()
				if err := unstructured.SetNestedField(o.Object, "b", "spec", "host"); err != nil {
					t.Fatal(err)
				}
				_, err := custom.Update(t.Context(), o, metav1.UpdateOptions{})
				return err
			},
			func() error {
				_, err := typed.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "new"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{})
				return err
			},
		}[i])
		if err := custom.Delete(t.Context(), list.Items[0].GetName(), metav1.DeleteOptions{}); err != nil {
			t.Errorf("replica %d: a delete fails: %v", i, err)
		}
		deleted(t, events, list.Items[0].GetName())
		if code, text := get(t, r.member(t, "system:masters"), r.url+"/readyz?verbose"); code != http.StatusOK || !strings.Contains(text, "[!]etcd warning: out of space") {
			t.Errorf("replica %d: /readyz: %d %s", i, code, text)
		}
	}
	of := `\{(alarm="NOSPACE",)?endpoint="` + regexp.QuoteMeta(endpoint) + `"\} `
	measured(t, second[0], "espalier_etcd_alarm"+of+`1\n`, "espalier_etcd_quota_bytes"+of+`4\.194304e\+06\n`)
	for i := range made {
		if err := second[i%2].typed(t).CoreV1().ConfigMaps("default").Delete(t.Context(), fmt.Sprint("filler-", i), metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
	}
	recoverSpace(t, endpoint)
	for i, r := range second {
		works(t, r.dynamic(t), fmt.Sprint("after-", i))
	}
}

// fillEtcd creates config maps until etcd is full, and returns how many.
func fillEtcd(t *testing.T, client kubernetes.Interface) int {
	t.Helper()
	for i := range 1000 {
		// Small ones at the end, until nothing at all fits in.
		_, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("filler-", i)}, BinaryData: map[string][]byte{"x": bytes.Repeat([]byte{1}, 300<<10)},
		}, metav1.CreateOptions{})
		var status apierrors.APIStatus
		if asStatus(err, &status) && status.Status().Code == http.StatusInsufficientStorage {
			return i
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Fatal("etcd is never full")
	return 0
}

// refused checks that a write fails for want of space, and says so.
func refused(t *testing.T, what string, write func() error) {
	t.Helper()
	err := write()
	var status apierrors.APIStatus
	if !asStatus(err, &status) || status.Status().Code != http.StatusInsufficientStorage || !strings.Contains(err.Error(), "etcd is out of space") {
		t.Errorf("%s: %v", what, err)
	}
}

// deleted waits for the event of a deletion.
func deleted(t *testing.T, events watch.Interface, name string) {
	t.Helper()
	defer events.Stop()
	timeout := time.After(patience)
	for {
		select {
		case e, ok := <-events.ResultChan():
			if !ok {
				t.Error("the watch has ended")
				return
			}
			if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type == watch.Deleted && o.GetName() == name {
				return
			}
		case <-timeout:
			t.Errorf("no event of the deletion of %s", name)
			return
		}
	}
}

// works waits until custom resources can be written again: etcd does not notify the
// server when it has space.
func works(t *testing.T, client dynamic.Interface, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		_, err := client.Resource(webs).Namespace("default").Create(ctx, web(name, "a"), metav1.CreateOptions{})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("after the recovery: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
