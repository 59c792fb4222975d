package espaliertest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/server"
)

const crds = "testdata/crds"

func TestStartHasADefinitionServed(t *testing.T) {
	t.Parallel()
	tabs := crontabs(t, Start(t, CRDs(crds)))
	created, err := tabs.Create(t.Context(), tab("one", "* * * * *"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := unstructured.NestedInt64(created.Object, "spec", "replicas"); n != 1 {
		t.Errorf("not defaulted: %v", created.Object)
	}
	if _, err := tabs.Create(t.Context(), tab("two", "soon"), metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
		t.Errorf("not validated: %v", err)
	}
}

func TestServersAreSeparate(t *testing.T) {
	t.Parallel()
	servers := make([]dynamic.ResourceInterface, 3)
	for i := range servers {
		servers[i] = crontabs(t, Start(t, CRDs(crds)))
	}
	for i, tabs := range servers {
		if _, err := tabs.Create(t.Context(), tab(fmt.Sprint("tab", i), "* * * * *"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for i, tabs := range servers {
		list, err := tabs.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != fmt.Sprint("tab", i) {
			t.Errorf("server %d has %v, %v", i, list, err)
		}
	}
}

func TestServerHasUsers(t *testing.T) {
	t.Parallel()
	w := New(t)
	jane, err := w.User("jane", "team")
	if err != nil {
		t.Fatal(err)
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "note"}}
	if _, err := typed(t, jane).CoreV1().ConfigMaps("default").Create(t.Context(), note, metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("got %v", err)
	}
	if _, err := typed(t, w.Config()).CoreV1().ConfigMaps("default").Create(t.Context(), note, metav1.CreateOptions{}); err != nil {
		t.Errorf("got %v", err)
	}
	file, err := w.Kubeconfig()
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(file)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := typed(t, config).CoreV1().ConfigMaps("default").Get(t.Context(), "note", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
}

func TestDefinitionsMayBeObjects(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(crds + "/crontabs.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var d apiextensions.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	if _, err := crontabs(t, Start(t, CRDObjects(&d))).Create(t.Context(), tab("one", "* * * * *"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
}

// A CRD is deleted with its objects, as in envtest, unless the test asks for protection.
func TestDeletionOfACRDWithObjects(t *testing.T) {
	t.Parallel()
	for protected, options := range map[bool][]Option{
		false: nil,
		true:  {Configure(func(o *server.Options) { o.ProtectInstances = true })},
	} {
		config := Start(t, append(options, CRDs(crds))...)
		if _, err := crontabs(t, config).Create(t.Context(), tab("one", "* * * * *"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			t.Fatal(err)
		}
		resource := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		err = resource.Delete(t.Context(), "crontabs.stable.example.com", metav1.DeleteOptions{})
		if apierrors.IsConflict(err) != protected || !protected && err != nil {
			t.Errorf("protected: %v: %v", protected, err)
		}
	}
}

func TestTheServerCanBeConfigured(t *testing.T) {
	t.Parallel()
	tabs := crontabs(t, Start(t, CRDs(crds), Configure(func(o *server.Options) { o.FieldValidation = "strict" })))
	one := tab("one", "* * * * *")
	one.Object["spec"].(map[string]any)["repliccas"] = int64(3)
	if _, err := tabs.Create(t.Context(), one, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), `unknown field "spec.repliccas"`) {
		t.Errorf("got %v", err)
	}
}

// noTwo is an admission plugin of a program's own.
type noTwo struct{ *admission.Handler }

func (noTwo) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetName() == "two" {
		return admission.NewForbidden(a, errors.New("there is to be one"))
	}
	return nil
}

func TestOwnAdmissionPluginsAreAsked(t *testing.T) {
	t.Parallel()
	tabs := crontabs(t, Start(t, CRDs(crds), Configure(func(o *server.Options) {
		o.Admission.Plugins.Register("NoTwo", func(io.Reader) (admission.Interface, error) {
			return noTwo{admission.NewHandler(admission.Create)}, nil
		})
		o.Admission.RecommendedPluginOrder = append(o.Admission.RecommendedPluginOrder, "NoTwo")
	})))
	if _, err := tabs.Create(t.Context(), tab("one", "* * * * *"), metav1.CreateOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := tabs.Create(t.Context(), tab("two", "* * * * *"), metav1.CreateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("the plugin was not asked: %v", err)
	}
}

func TestStartSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	bad := &apiextensions.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "bad.example.com"}}
	for name, c := range map[string]struct {
		option Option
		want   string
	}{
		"no such folder": {CRDs("testdata/none"), "no such file"},
		"not valid":      {CRDObjects(bad), "bad.example.com (given as an object): "},
		"options":        {Configure(func(o *server.Options) { o.IdleTimeout = 0 }), "--idle-timeout is 0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := start(context.WithoutCancel(t.Context()), c.option); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestNothingIsLeft runs before the parallel ones do.
func TestNothingIsLeft(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	t.Run("server", func(t *testing.T) { Start(t, CRDs(crds)) })
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if shared.users != 0 {
		t.Errorf("etcd has %d users", shared.users)
	}
}

// TestServerLeavesNoKeys holds etcd, as Main does.
func TestServerLeavesNoKeys(t *testing.T) {
	if err := hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := drop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("server", func(t *testing.T) { Start(t, CRDs(crds)) })
	keys, err := shared.client.Get(t.Context(), "/", withPrefix...)
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range keys.Kvs {
		t.Errorf("left behind: %s", kv.Key)
	}
}

func crontabs(t *testing.T, c *rest.Config) dynamic.ResourceInterface {
	t.Helper()
	client, err := dynamic.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client.Resource(schema.GroupVersionResource{Group: "stable.example.com", Version: "v1", Resource: "crontabs"}).Namespace("default")
}

func tab(name, when string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "stable.example.com/v1", "kind": "CronTab",
		"metadata": map[string]any{"name": name}, "spec": map[string]any{"cronSpec": when},
	}}
}

func typed(t *testing.T, c *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
