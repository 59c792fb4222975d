package tenants_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/espaliertest"
	"github.com/espalier-dev/espalier/server/tenants"
)

// start starts a server with tenants, and returns an administrator's configuration.
func start(t *testing.T, names ...string) *rest.Config {
	t.Helper()
	return startServer(t, names...).Config()
}

func startServer(t *testing.T, names ...string) *espaliertest.TestServer {
	t.Helper()
	ts := espaliertest.New(t, espaliertest.Configure(func(o *server.Options) { o.Tenants, o.Controllers = true, []string{"*"} }))
	for _, name := range names {
		create(t, ts.Config(), name)
	}
	return ts
}

func objects(t testing.TB, config *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(tenants.Resource)
}

func create(t testing.TB, config *rest.Config, name string) {
	t.Helper()
	_, err := objects(t, config).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "espalier.dev/v1alpha1", "kind": "Tenant", "metadata": map[string]any{"name": name},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
}

// within is the configuration for a tenant.
func within(config *rest.Config, name string) *rest.Config {
	c := rest.CopyConfig(config)
	c.Host += tenants.Path(name)
	return c
}

func client(t testing.TB, config *rest.Config) kubernetes.Interface {
	t.Helper()
	c, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Each tenant has objects of its own under the same names.
func TestTenantsAreApart(t *testing.T) {
	config := start(t, "one", "two")
	for _, name := range []string{"one", "two"} {
		began := time.Now()
		if _, err := client(t, within(config, name)).CoreV1().ConfigMaps("default").Create(t.Context(), settings(name), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Log(name, "first request", time.Since(began))
	}
	for _, name := range []string{"one", "two"} {
		m, err := client(t, within(config, name)).CoreV1().ConfigMaps("default").Get(t.Context(), "settings", metav1.GetOptions{})
		if err != nil || m.Data["of"] != name {
			t.Errorf("%s: %v, %v", name, m.Data, err)
		}
	}
	for what, c := range map[string]*rest.Config{"the server itself": config, "a tenant that does not exist": within(config, "three")} {
		if _, err := client(t, c).CoreV1().ConfigMaps("default").Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func settings(of string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"of": of}}
}

// token makes a service account an administrator of what a configuration is for, and returns
// a configuration with its token.
func token(t *testing.T, config *rest.Config) *rest.Config {
	t.Helper()
	c := client(t, config)
	accounts := c.CoreV1().ServiceAccounts("kube-system")
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "admin"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admin"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: "admin"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	request, err := accounts.CreateToken(t.Context(), "admin", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	own := rest.AnonymousClientConfig(config)
	own.BearerToken = request.Status.Token
	return own
}

// at is a configuration with the same credentials for another path of the server.
func at(config *rest.Config, host string) *rest.Config {
	c := rest.CopyConfig(config)
	c.Host = host
	return c
}

// A token is for the tenant that has issued it, and for nothing else.
func TestTokensOfTenants(t *testing.T) {
	config := start(t, "one", "two")
	root := token(t, config)
	one := token(t, within(config, "one"))
	succeeds(t, func() error {
		_, err := client(t, one).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		return err
	})
	for what, c := range map[string]*rest.Config{
		"of a tenant, at the server":                at(one, config.Host),
		"of a tenant, at another tenant":            at(one, within(config, "two").Host),
		"of a tenant, at one that does not exist":   at(one, within(config, "three").Host),
		"of the server, at a tenant":                at(root, within(config, "one").Host),
		"of the server, at one that does not exist": at(root, within(config, "three").Host),
	} {
		_, err := client(t, c).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if !apierrors.IsUnauthorized(err) {
			t.Errorf("a token %s: %v", what, err)
		}
	}
}

// Users of the server can enter a tenant if they may access it.
func TestUsersOfTheServer(t *testing.T) {
	ts := startServer(t, "one", "two")
	config := ts.Config()
	c := client(t, config)
	if _, err := c.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"access"}, APIGroups: []string{"espalier.dev"}, Resources: []string{"tenants"}, ResourceNames: []string{"one", "three"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "one"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "alice"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	alice, err := ts.User("alice")
	if err != nil {
		t.Fatal(err)
	}
	version := func(c *rest.Config) error {
		_, err := client(t, c).Discovery().ServerVersion()
		return err
	}
	succeeds(t, func() error { return version(within(alice, "one")) })
	if _, err := client(t, within(alice, "one")).CoreV1().ConfigMaps("default").Get(t.Context(), "x", metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a role in the tenant: %v", err)
	}
	if err := version(within(alice, "three")); !apierrors.IsNotFound(err) {
		t.Errorf("a tenant that does not exist, with access: %v", err)
	}
	two, four := version(within(alice, "two")), version(within(alice, "four"))
	if !apierrors.IsForbidden(two) || !apierrors.IsForbidden(four) || strings.ReplaceAll(two.Error(), "two", "four") != four.Error() {
		t.Errorf("the answers tell whether there is a tenant:\n%v\n%v", two, four)
	}
	if err := version(within(rest.AnonymousClientConfig(config), "one")); !apierrors.IsUnauthorized(err) {
		t.Errorf("without credentials: %v", err)
	}
}

// What is deleted is gone, also for a tenant of the same name that is created later.
func TestDeletedTenant(t *testing.T) {
	config := start(t, "one")
	maps := client(t, within(config, "one")).CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), settings("one"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	old := token(t, within(config, "one"))
	if err := objects(t, config).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, func() error {
		if _, err := objects(t, config).Get(t.Context(), "one", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the object is there: %w", err)
		}
		return nil
	})
	succeeds(t, func() error {
		if _, err := maps.Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the tenant is there: %w", err)
		}
		return nil
	})
	create(t, config, "one")
	succeeds(t, func() error {
		_, err := maps.List(t.Context(), metav1.ListOptions{})
		return err
	})
	if _, err := maps.Get(t.Context(), "settings", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object of the former tenant: %v", err)
	}
	if _, err := client(t, old).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("a token of the former tenant: %v", err)
	}
}

func succeeds(t *testing.T, try func() error) {
	t.Helper()
	var err error
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err = try(); err == nil {
			return
		}
	}
	t.Fatal(err)
}
