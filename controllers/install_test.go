package controllers_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// toURL replaces the service of a clientConfig by a URL.
func toURL(clientConfig any, port int) {
	config, ok := clientConfig.(map[string]any)
	if !ok {
		return
	}
	service, ok := config["service"].(map[string]any)
	if !ok {
		return
	}
	path, _ := service["path"].(string)
	config["url"] = fmt.Sprintf("https://localhost:%d%s", port, path)
	delete(config, "service")
}

// install applies what a project ships. It returns the kinds that the server does not have.
func (w *environment) install(t *testing.T, all objects) []string {
	t.Helper()
	missing, err := w.tryInstall(t, all)
	if err != nil {
		t.Fatal(err)
	}
	return missing
}

// tryInstall applies namespaces and CRDs first, and stops at the first object that is refused.
func (w *environment) tryInstall(t *testing.T, all objects) ([]string, error) {
	t.Helper()
	rank := map[string]int{"Namespace": -2, "CustomResourceDefinition": -1}
	slices.SortStableFunc(all, func(a, b *unstructured.Unstructured) int { return rank[a.GetKind()] - rank[b.GetKind()] })
	var missing objects
	for _, o := range all {
		resource, err := w.resource(o)
		if meta.IsNoMatchError(err) {
			// Perhaps its CRD is new.
			w.mapper.Reset()
			resource, err = w.resource(o)
		}
		if meta.IsNoMatchError(err) {
			missing = append(missing, o)
			continue
		}
		if err != nil {
			return nil, err
		}
		options := metav1.ApplyOptions{FieldManager: "install", Force: true}
		if _, err := resource.Apply(t.Context(), o.GetName(), o, options); err != nil {
			return nil, fmt.Errorf("%s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "CustomResourceDefinition" {
			w.established(t, o.GetName())
		}
	}
	return kinds(missing), nil
}

func (w *environment) established(t *testing.T, name string) {
	t.Helper()
	w.do(t, "", "wait", "--for=condition=Established", "--timeout=60s", "crd/"+name)
}

// resource returns the client for an object.
func (w *environment) resource(o *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := o.GroupVersionKind()
	mapping, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return w.dynamic.Resource(mapping.Resource), nil
	}
	namespace := o.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return w.dynamic.Resource(mapping.Resource).Namespace(namespace), nil
}

// may waits until a ServiceAccount has a right: roles that are aggregated from others are so a moment after these exist.
func (w *environment) may(t *testing.T, namespace, account string, what ...string) {
	t.Helper()
	eventually(t, account+" may "+strings.Join(what, " "), func(ctx context.Context) error {
		return w.canI(ctx, namespace, account, what)
	})
}

// mayNot expects that a ServiceAccount does not have a right: the controller has its roles and not more.
func (w *environment) mayNot(t *testing.T, namespace, account string, what ...string) {
	t.Helper()
	if w.canI(t.Context(), namespace, account, what) == nil {
		t.Errorf("%s may %s", account, strings.Join(what, " "))
	}
}

func (w *environment) canI(ctx context.Context, namespace, account string, what []string) error {
	_, err := w.kubectl(ctx, "", append([]string{"auth", "can-i", "--as", "system:serviceaccount:" + namespace + ":" + account}, what...)...)
	return err
}
