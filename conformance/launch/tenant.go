package launch

import (
	"context"
	"fmt"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// enter makes a tenant, unless it exists, and has the clients of the server talk to it.
func (s *Server) enter(ctx context.Context, name string) error {
	client, err := dynamic.NewForConfig(s.Config)
	if err != nil {
		return err
	}
	all := client.Resource(schema.GroupVersionResource{Group: "espalier.dev", Version: "v1alpha1", Resource: "tenants"})
	var made *unstructured.Unstructured
	// The CRD of tenants is installed a moment after the server is ready.
	err = s.Await(ctx, readyTime, func(ctx context.Context) error {
		made, err = all.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "espalier.dev/v1alpha1", "kind": "Tenant", "metadata": map[string]any{"name": name},
			// Suites send as many requests at a time as they like.
			"spec": map[string]any{"requests": int64(500)},
		}}, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			made, err = all.Get(ctx, name, metav1.GetOptions{})
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("making the tenant %s: %w", name, err)
	}
	s.URL += "/clusters/" + name
	s.Config = rest.CopyConfig(s.Config)
	s.Config.Host = s.URL
	s.Prefix = path.Join("/", s.Prefix) + "-tenants/" + string(made.GetUID())
	return writeKubeconfig(s.Kubeconfig, s.Config)
}
