package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// provider is the tenant that has the product's API.
const provider = "platform"

//go:embed platform.yaml
var manifests []byte

var (
	tenants  = schema.GroupVersionResource{Group: "espalier.dev", Version: "v1alpha1", Resource: "tenants"}
	crds     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	exports  = schema.GroupVersionResource{Group: "apis.espalier.dev", Version: "v1alpha1", Resource: "apiexports"}
	bindings = schema.GroupVersionResource{Group: "apis.espalier.dev", Version: "v1alpha1", Resource: "apibindings"}
)

// Platform is a product on an Espalier server that runs with --tenants.
type Platform struct {
	Config *rest.Config // of an administrator of the server
}

// in returns the configuration for a tenant. For a client it is a server of its own.
func (p *Platform) in(tenant string) *rest.Config {
	c := rest.CopyConfig(p.Config)
	c.Host += "/clusters/" + tenant
	return c
}

// Prepare creates the tenant of the provider, and in it the CRD of the product and its export. It can be repeated.
func (p *Platform) Prepare(ctx context.Context) error {
	server, err := dynamic.NewForConfig(p.Config)
	if err != nil {
		return err
	}
	_, err = server.Resource(tenants).Create(ctx, object("espalier.dev/v1alpha1", "Tenant", provider, nil, nil), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the tenant %s failed: does the server run with --tenants? %w", provider, err)
	}
	tenant, err := dynamic.NewForConfig(p.in(provider))
	if err != nil {
		return err
	}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifests), 4096)
	for {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		resource := crds
		if o.GetKind() == "APIExport" {
			resource = exports
		}
		// The export is accepted as soon as the kind is known, a moment after the first request to the tenant.
		err := retry(ctx, func() error {
			_, err := tenant.Resource(resource).Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: "saas", Force: true})
			return err
		}, apierrors.IsNotFound)
		if err != nil {
			return fmt.Errorf("applying %s %s failed: %w", o.GetKind(), o.GetName(), err)
		}
	}
}

// retry calls do until it succeeds, or fails otherwise than expected.
func retry(ctx context.Context, do func() error, expected func(error) bool) (err error) {
	wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) { //nolint:errcheck // err has what happened last
		err = do()
		return err == nil || !expected(err), nil
	})
	return err
}

// object returns an object of a kind that has no Go type here.
func object(apiVersion, kind, name string, labels map[string]string, spec map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": apiVersion, "kind": kind, "spec": spec}}
	if spec == nil {
		delete(o.Object, "spec")
	}
	o.SetName(name)
	o.SetLabels(labels)
	return o
}
