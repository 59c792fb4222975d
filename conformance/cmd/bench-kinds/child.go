package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

// timing is how long the start of a test server took: its etcd is in the same process.
type timing struct{ Wall, CPU time.Duration }

// startTestServer starts a test server with all kinds and one CRD in a new process.
func startTestServer(ctx context.Context) (t timing, err error) {
	self, err := os.Executable()
	if err != nil {
		return t, err
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, self, "-child").Output()
	if failed := (&exec.ExitError{}); errors.As(err, &failed) {
		return t, fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return t, err
	}
	return t, json.Unmarshal(out, &t)
}

// runChild is that process. Servers of tests need a test: a benchmark that runs once is one.
func runChild() error {
	testing.Init()
	if err := flag.Set("test.benchtime", "1x"); err != nil {
		return err
	}
	var t timing
	var err error
	testing.Benchmark(func(b *testing.B) {
		began := time.Now()
		espaliertest.Start(b, espaliertest.CRDObjects(crd()))
		t.Wall = time.Since(began)
		t.CPU, err = launch.CPU(os.Getpid()) // of the whole process, from its beginning
	})
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// crd is a CRD as projects have them, but small.
func crd() *apiextensions.CustomResourceDefinition {
	return &apiextensions.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "shops.example.com"},
		Spec: apiextensions.CustomResourceDefinitionSpec{
			Group: "example.com", Scope: apiextensions.NamespaceScoped,
			Names: apiextensions.CustomResourceDefinitionNames{Plural: "shops", Singular: "shop", Kind: "Shop", ListKind: "ShopList"},
			Versions: []apiextensions.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensions.CustomResourceValidation{OpenAPIV3Schema: &apiextensions.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensions.JSONSchemaProps{"spec": {
						Type: "object", Properties: map[string]apiextensions.JSONSchemaProps{"replicas": {Type: "integer"}},
					}},
				}},
			}},
		},
	}
}
