package server_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/controllers/rollout"
)

// hooked is a client that calls a function before requests.
type hooked struct {
	dynamic.Interface
	before func(verb string, resource schema.GroupVersionResource, o *unstructured.Unstructured)
}

func (h hooked) Resource(resource schema.GroupVersionResource) dynamic.NamespaceableResourceInterface {
	return hookedResource{h.Interface.Resource(resource), h, resource}
}

type hookedResource struct {
	dynamic.NamespaceableResourceInterface
	hooked   hooked
	resource schema.GroupVersionResource
}

func (h hookedResource) Get(ctx context.Context, name string, options metav1.GetOptions, sub ...string) (*unstructured.Unstructured, error) {
	h.hooked.before("get", h.resource, nil)
	return h.NamespaceableResourceInterface.Get(ctx, name, options, sub...)
}

func (h hookedResource) UpdateStatus(ctx context.Context, o *unstructured.Unstructured, options metav1.UpdateOptions) (*unstructured.Unstructured, error) {
	h.hooked.before("status", h.resource, o)
	return h.NamespaceableResourceInterface.UpdateStatus(ctx, o, options)
}

// rolls are servers whose own controller of rollouts rests, and run another one with a client that is hooked.
func rolls(before func(client dynamic.Interface, verb string, resource schema.GroupVersionResource, o *unstructured.Unstructured), t *testing.T, more ...string) dynamic.Interface {
	t.Helper()
	r := start(t, func(o *server.Options) { o.Controllers = []string{"*", "-crd-rollout-controller"} })
	client := r.dynamic(t)
	sitesOn(t, client, more...)
	typed, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = rollout.Run(ctx, rollout.Config{
			Client: hooked{client, func(verb string, resource schema.GroupVersionResource, o *unstructured.Unstructured) {
				before(client, verb, resource, o)
			}},
			REST: typed.Discovery().RESTClient(), Installed: func() bool { return true },
		})
	}()
	t.Cleanup(func() { cancel(); <-done })
	return client
}

// asBefore checks that the CRD and an object are what they were before the rollout.
func asBefore(t *testing.T, client dynamic.Interface) {
	t.Helper()
	crd, err := client.Resource(crdResource).Get(t.Context(), "sites.example.com", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	if len(versions) != 1 || versions[0].(map[string]any)["name"] != "v1alpha1" || crd.GetAnnotations()["conversion.espalier.dev/rules"] != "" {
		t.Errorf("the CRD is not as it was: %v, %v", versions, crd.GetAnnotations())
	}
	if got := storedVersions(t, client); got != "[v1alpha1]" {
		t.Errorf("stored are %s", got)
	}
	if got := specOf(t, client.Resource(siteBefore).Namespace("default"), "s1"); got != "map[note:words size:2]" {
		t.Errorf("s1 is %s", got)
	}
}

// A rollout that has not migrated yet is undone: objects that were written since are stored in the new version.
func TestRolloutUndoneBeforeBackfill(t *testing.T) {
	t.Parallel()
	client := sites(t, "  gates: [Backfill]\n")
	reaches(t, client, rollout.Backfill, "Backfill waits for approval: ")
	createIn(t, client.Resource(siteAfter).Namespace("default"), "{apiVersion: example.com/v1, kind: Site, metadata: {name: new}, spec: {replicas: 3}}")
	patchRollout(t, client, `{"spec":{"undo":true}}`)
	reaches(t, client, rollout.Undone, "")
	asBefore(t, client)
	if got := specOf(t, client.Resource(siteBefore).Namespace("default"), "new"); got != "map[size:3]" {
		t.Errorf("the new one is %s", got)
	}
}

// A rollout is undone also if it was asked for while the controller changed the CRD, and the status does not say so.
func TestRolloutUndoneDuringChange(t *testing.T) {
	t.Parallel()
	for _, phase := range []rollout.Phase{rollout.Backfill, rollout.Done} {
		t.Run(string(phase), func(t *testing.T) {
			t.Parallel()
			var once sync.Once
			client := rolls(func(client dynamic.Interface, verb string, _ schema.GroupVersionResource, o *unstructured.Unstructured) {
				if verb != "status" {
					return
				}
				if is, _, _ := unstructured.NestedString(o.Object, "status", "phase"); is == string(phase) {
					once.Do(func() { patchRollout(t, client, `{"spec":{"undo":true}}`) }) // a conflict
				}
			}, t, "  approvals: [Contract]\n")
			reaches(t, client, rollout.Undone, "")
			asBefore(t, client)
		})
	}
}

// A rollout that waits does not plan all the time, and goes on at once when it is approved.
func TestRolloutRests(t *testing.T) {
	t.Parallel()
	var times []time.Time
	var mu sync.Mutex
	var slow atomic.Bool
	client := rolls(func(_ dynamic.Interface, verb string, resource schema.GroupVersionResource, _ *unstructured.Unstructured) {
		if verb == "get" && resource == crdResource && slow.Load() {
			mu.Lock()
			times = append(times, time.Now())
			mu.Unlock()
			time.Sleep(2 * time.Second) // as if there were many objects
		}
	}, t, "  gates: [Expand]\n")
	reaches(t, client, rollout.Expand, "Expand waits for approval: ")
	slow.Store(true)
	succeeds(t, "planned twice", func() error {
		mu.Lock()
		defer mu.Unlock()
		if len(times) < 2 {
			return fmt.Errorf("planned %d times", len(times))
		}
		return nil
	})
	mu.Lock()
	passed := times[1].Sub(times[0])
	mu.Unlock()
	if passed < 15*time.Second {
		t.Errorf("planned again after %v", passed)
	}
	slow.Store(false)
	began := time.Now()
	patchRollout(t, client, `{"spec":{"approvals":["Expand"]}}`)
	succeeds(t, "to go on", func() error {
		o, err := client.Resource(rollout.Resource).Get(t.Context(), "to-v1", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is, _, _ := unstructured.NestedString(o.Object, "status", "phase"); is == string(rollout.Expand) {
			return errors.New("it is still in " + is)
		}
		return nil
	})
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it went on after %v", took)
	}
}

// An undo does not remove what was written since: it waits until a user approves that.
func TestRolloutUndoKeepsNewData(t *testing.T) {
	t.Parallel()
	const (
		old  = `{name: v1alpha1, served: true, storage: %t, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}`
		next = `{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}, color: {type: string}}}}}}}`
	)
	client := start(t).dynamic(t)
	createIn(t, client.Resource(crdResource), "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: sites.example.com}\nspec: "+fmt.Sprintf(siteCRD, fmt.Sprintf(old, true)))
	createIn(t, client.Resource(crdResource), string(rollout.CRD))
	createIn(t, client.Resource(siteBefore).Namespace("default"), "{apiVersion: example.com/v1alpha1, kind: Site, metadata: {name: s1}, spec: {size: 1}}")
	createIn(t, client.Resource(rollout.Resource), "apiVersion: espalier.dev/v1alpha1\nkind: CRDRollout\nmetadata: {name: to-v1}\nspec:\n  crd: sites.example.com\n"+
		"  expand: {spec: "+fmt.Sprintf(siteCRD, fmt.Sprintf(old, false)+", "+next)+"}\n  contract: {spec: "+fmt.Sprintf(siteCRD, next)+"}\n")
	reaches(t, client, rollout.Contract, "Contract waits for approval: ")
	createIn(t, client.Resource(siteAfter).Namespace("default"), "{apiVersion: example.com/v1, kind: Site, metadata: {name: s2}, spec: {size: 3, color: red}}")
	patchRollout(t, client, `{"spec":{"undo":true}}`)
	reaches(t, client, rollout.Undoing, "in the former storage version 1 objects would lose data ")
	if got := specOf(t, client.Resource(siteAfter).Namespace("default"), "s2"); got != "map[color:red size:3]" {
		t.Errorf("before the approval: %s", got)
	}
	patchRollout(t, client, `{"spec":{"approvals":["Undo"]}}`)
	reaches(t, client, rollout.Undone, "")
	for name, want := range map[string]string{"s1": "map[size:1]", "s2": "map[size:3]"} {
		if got := specOf(t, client.Resource(siteBefore).Namespace("default"), name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
