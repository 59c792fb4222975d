package server_test

import (
	"bytes"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/tenants"
)

// withTenants turns tenants on, which are closed soon after a request.
func withTenants(o *server.Options) {
	o.Tenants, o.TenantIdleTimeout = true, 100*time.Millisecond
}

// tenant creates a tenant, and returns a configuration for it.
func (r *running) tenant(t *testing.T, name string) *rest.Config {
	t.Helper()
	createIn(t, r.dynamic(t).Resource(tenants.Resource), "{apiVersion: espalier.dev/v1alpha1, kind: Tenant, metadata: {name: "+name+"}}")
	return r.within(t, name)
}

func (r *running) within(t *testing.T, name string) *rest.Config {
	t.Helper()
	c := r.config(t)
	c.Host += tenants.Path(name)
	return c
}

func typed(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A tenant gets what a later version of the server adds to default roles, as the server does.
func TestDefaultRolesOfTenantsAreRepaired(t *testing.T) {
	t.Parallel()
	prefix := ""
	r := start(t, withTenants, func(o *server.Options) { prefix = o.Etcd.StorageConfig.Prefix })
	client := typed(t, r.tenant(t, "one"))
	roles := client.RbacV1().ClusterRoles()
	view, err := roles.Get(t.Context(), "system:discovery", metav1.GetOptions{})
	if err != nil || len(view.Rules) == 0 {
		t.Fatal(err, view)
	}
	if _, err := roles.Patch(t.Context(), view.Name, types.MergePatchType, []byte(`{"rules":[]}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	// As if an earlier version had given the roles.
	etcd, _ := etcdtest.Client(t)
	o, err := r.dynamic(t).Resource(tenants.Resource).Get(t.Context(), "one", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	key := path.Join(tenants.Prefix(prefix, o.GetUID()), "-espalier/defaults")
	succeeds(t, "the tenant was given default objects", func() error {
		// On a slow machine it is closed before it has all of them, and goes on with the next request.
		if _, err := roles.Get(t.Context(), view.Name, metav1.GetOptions{}); err != nil {
			return err
		}
		found, err := etcd.Get(t.Context(), key)
		if err == nil && len(found.Kvs) == 0 {
			err = fmt.Errorf("there is no %s", key)
		}
		return err
	})
	if _, err := etcd.Put(t.Context(), key, "earlier"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // until the tenant is closed
	succeeds(t, "the role is repaired", func() error {
		now, err := roles.Get(t.Context(), view.Name, metav1.GetOptions{})
		if err == nil && len(now.Rules) == 0 {
			err = errors.New("it has no rules")
		}
		return err
	})
}

// A replica serves what another one has written, and nothing of a tenant that was deleted through another one.
func TestTenantsOnReplicas(t *testing.T) {
	t.Parallel()
	dir, prefix := t.TempDir(), etcdtest.Prefix(t)
	same := func(o *server.Options) {
		o.Serving.ServerCert.CertDirectory, o.Etcd.StorageConfig.Prefix = dir, prefix
		o.Tenants, o.TenantIdleTimeout = true, time.Minute
	}
	a := start(t, same)
	b := start(t, same)
	atA, atB := typed(t, a.tenant(t, "one")), typed(t, b.within(t, "one"))
	m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
	if _, err := atA.CoreV1().ConfigMaps("default").Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := atB.CoreV1().ConfigMaps("default").Get(t.Context(), "m", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := a.dynamic(t).Resource(tenants.Resource).Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "the other replica has closed the tenant", func() error {
		if _, err := atB.CoreV1().ConfigMaps("default").Get(t.Context(), "m", metav1.GetOptions{}); !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), "tenants.espalier.dev") {
			return fmt.Errorf("the tenant answers: %w", err)
		}
		return nil
	})
	etcd, _ := etcdtest.Client(t)
	succeeds(t, "nothing is left", func() error {
		left, err := etcd.Get(t.Context(), prefix+"-tenants/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		if err == nil && left.Count > 0 {
			err = fmt.Errorf("%d keys, such as %s", left.Count, left.Kvs[0].Key)
		}
		return err
	})
}

// What is encrypted at rest is encrypted in tenants, too, and informers of tenants read it.
func TestEncryptedTenants(t *testing.T) {
	t.Parallel()
	prefix := ""
	r := start(t, withTenants, func(o *server.Options) {
		prefix = o.Etcd.StorageConfig.Prefix
		o.Etcd.EncryptionProviderConfigFilepath = certtest.File(t, "encryption.yaml", []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets, clusterroles.rbac.authorization.k8s.io, clusterrolebindings.rbac.authorization.k8s.io, namespaces]
  providers:
  - aescbc: {keys: [{name: one, secret: c2VjcmV0IGlzIHNlY3VyZSwgcmVhbGx5IDE2IGJ5dGU=}]}
`))
	})
	client := typed(t, r.tenant(t, "one"))
	for _, name := range []string{"before", "after"} {
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"password": "plain text"}}
		if _, err := client.CoreV1().Secrets("default").Create(t.Context(), s, metav1.CreateOptions{}); err != nil {
			t.Fatal(name, err)
		}
		time.Sleep(time.Second) // until the tenant is closed
	}
	// Informers read what is encrypted: a binding is in force.
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "robot"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "view"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "robot"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	robot := r.within(t, "one")
	robot.Impersonate.UserName = "robot"
	succeeds(t, "the binding is in force", func() error {
		_, err := typed(t, robot).CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
	etcd, _ := etcdtest.Client(t)
	found, err := etcd.Get(t.Context(), prefix+"-tenants/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	encrypted := 0
	for _, kv := range found.Kvs {
		if bytes.Contains(kv.Value, []byte("plain text")) {
			t.Errorf("%s is not encrypted", kv.Key)
		}
		if bytes.HasPrefix(kv.Value, []byte("k8s:enc:aescbc:")) {
			encrypted++
		}
	}
	if encrypted < 8 {
		t.Errorf("%d encrypted values", encrypted)
	}
}

// A tenant of a server with all kinds has them, and cluster IPs of its own.
func TestAllKindsInTenants(t *testing.T) {
	t.Parallel()
	r := start(t, withTenants, allKinds, func(o *server.Options) { o.TenantIdleTimeout = time.Minute })
	for _, name := range []string{"one", "two"} {
		client := typed(t, r.tenant(t, name))
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
		made, err := client.CoreV1().Services("default").Create(t.Context(), s, metav1.CreateOptions{})
		if err != nil || made.Spec.ClusterIP == "" {
			t.Fatal(name, err, made)
		}
		succeeds(t, "the service account exists", func() error {
			_, err := client.CoreV1().ServiceAccounts("default").Get(t.Context(), "default", metav1.GetOptions{})
			return err
		})
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(name, err)
		}
		succeeds(t, "the range of cluster IPs is known", func() error {
			_, err := client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
			return err
		})
		if _, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Error("a service whose clients reach the server itself:", err)
		}
		classes, err := client.SchedulingV1().PriorityClasses().List(t.Context(), metav1.ListOptions{})
		if err != nil || len(classes.Items) != 2 {
			t.Error(name, err, classes)
		}
	}
}

// A migration in a tenant writes full transactions, with one condition more than that of a server.
func TestMigrationInATenant(t *testing.T) {
	t.Parallel()
	r := start(t, withTenants, func(o *server.Options) { o.TenantIdleTimeout = time.Minute })
	client, err := dynamic.NewForConfig(r.tenant(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	const n = 300
	both := func(storage string) string {
		return strings.Replace(fmt.Sprintf(siteCRD, fmt.Sprintf(siteV1alpha1, storage == "v1alpha1")+", "+strings.Replace(fmt.Sprintf(siteV1alpha1, storage == "v1"), "v1alpha1", "v1", 1)), "\n", "", -1)
	}
	crd := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: sites.example.com}\nspec: "
	createIn(t, client.Resource(crdResource), crd+both("v1alpha1"))
	for i := range n {
		createIn(t, client.Resource(siteBefore).Namespace("default"), fmt.Sprintf("{apiVersion: example.com/v1alpha1, kind: Site, metadata: {name: s%d}, spec: {size: %d}}", i, i+1))
	}
	for _, keep := range []string{"", "1h"} {
		to := map[string]string{"": "v1", "1h": "v1alpha1"}[keep]
		succeeds(t, "another storage version", func() error {
			now, err := client.Resource(crdResource).Get(t.Context(), "sites.example.com", metav1.GetOptions{})
			if err != nil {
				return err
			}
			now.Object["spec"] = fromYAML(t, both(to)).Object
			_, err = client.Resource(crdResource).Update(t.Context(), now, metav1.UpdateOptions{})
			return err
		})
		migrations := client.Resource(schema.GroupVersionResource{Group: "storagemigration.k8s.io", Version: "v1", Resource: "storageversionmigrations"})
		createIn(t, migrations, "{apiVersion: storagemigration.k8s.io/v1, kind: StorageVersionMigration, metadata: {name: to-"+to+", annotations: {migration.espalier.dev/keep-preimages: '"+keep+"'}}, spec: {resource: {group: example.com, resource: sites}}}")
		succeeds(t, "the migration to "+to, func() error {
			m, err := migrations.Get(t.Context(), "to-"+to, metav1.GetOptions{})
			if err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(m.Object, "status", "conditions")
			for _, c := range conditions {
				if c := c.(map[string]any); c["type"] == "Succeeded" && c["status"] == "True" {
					return nil
				}
			}
			return fmt.Errorf("%v", conditions)
		})
	}
}

// A policy of a tenant applies configurations: it learns the types of objects from the tenant's OpenAPI.
func TestMutatingPolicyInATenant(t *testing.T) {
	t.Parallel()
	client := typed(t, start(t, withTenants, func(o *server.Options) { o.TenantIdleTimeout = time.Minute }).tenant(t, "one"))
	c := client.AdmissionregistrationV1()
	if _, err := c.MutatingAdmissionPolicies().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "label"},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{"CREATE"}, Rule: admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}}}},
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{
				Expression: `Object{data: {"by": "policy"}}`,
			}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "label"}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: "label"},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	succeeds(t, "the policy is in force", func() error {
		m, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m"}}, metav1.CreateOptions{DryRun: []string{"All"}})
		if err == nil && m.Data["by"] != "policy" {
			err = errors.New("it has not changed the object")
		}
		return err
	})
}
