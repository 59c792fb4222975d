package scenarios

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/endpoints/limit/limittest"
)

// A client that does not read its watch loses it, its third watch is refused, and an informer beside it sees everything.
func TestClientLimits(t *testing.T) {
	s := serve(t, launch.Espalier, prefix(), "--client-write-timeout=1s", "--max-watches-per-user=2", "--max-watch-behind=2Mi")
	admin := typedClient(t, s.Config)
	maps := admin.CoreV1().ConfigMaps("default")
	factory := informers.NewSharedInformerFactory(admin, 0)
	held := factory.Core().V1().ConfigMaps().Lister().ConfigMaps("default")
	factory.Start(t.Context().Done())
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "deaf"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "deaf"}}}
	must[*rbacv1.ClusterRoleBinding](t)(admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}))
	config := must[*rest.Config](t)(s.Client("deaf", "deaf"))
	secure := must[*tls.Config](t)(rest.TLSConfigFor(config))
	deaf := typedClient(t, config)
	eventually(t, 10*time.Second, "the binding is in force", func() bool {
		_, err := deaf.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err == nil
	})
	const path = "/api/v1/namespaces/default/configmaps?watch=true"
	var clients []*limittest.Client
	for range 2 {
		c := must[*limittest.Client](t)(limittest.Dial(t.Context(), limittest.Stream, strings.TrimPrefix(s.URL, "https://"), secure))
		t.Cleanup(func() { _ = c.Close() })
		if err := c.Get(path); err != nil {
			t.Fatal(err)
		}
		if err := c.Begun(t.Context()); err != nil {
			t.Fatal(err)
		}
		clients = append(clients, c)
	}
	resp := must[*http.Response](t)(must[*http.Client](t)(rest.HTTPClientFor(config)).Get(s.URL + path))
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusTooManyRequests || resp.Header.Get("Retry-After") == "" {
		t.Errorf("the third watch: %s", resp.Status)
	}
	for i := range 20 {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("large-", i)}, Data: map[string]string{"fill": strings.Repeat("x", 512<<10)}}
		must[*corev1.ConfigMap](t)(maps.Create(t.Context(), object, metav1.CreateOptions{}))
	}
	for _, c := range clients {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if _, err := c.Ended(ctx); err != nil {
			t.Errorf("a watch that is not read goes on: %v", err)
		}
		cancel()
	}
	eventually(t, 20*time.Second, "the informer has everything", func() bool {
		for i := range 20 {
			if _, err := held.Get(fmt.Sprint("large-", i)); err != nil {
				return false
			}
		}
		return true
	})
}
