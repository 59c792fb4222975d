package scenarios

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// harbourmasterRights are all that the controller below needs.
const harbourmasterRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: harbourmaster, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: harbourmaster, namespace: default}
rules:
- {apiGroups: [harbour.example.com], resources: [boats], verbs: [list, watch, update]}
- {apiGroups: [harbour.example.com], resources: [boats/status], verbs: [update]}
- {apiGroups: [harbour.example.com], resources: [boats/finalizers], verbs: [update]}
- {apiGroups: [""], resources: [configmaps], verbs: [list, watch, create]}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: harbourmaster, namespace: default}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: harbourmaster}
subjects: [{kind: ServiceAccount, name: harbourmaster, namespace: default}]
`

const (
	cleared = "harbour.example.com/cleared" // a finalizer
	byOwner = "spec.owner"                  // an index
)

// A harbourmaster keeps a config map for every boat, says so in an event, and lets no boat go that it has not cleared.
type harbourmaster struct {
	client.Client
	events events.EventRecorder
	name   string
}

func newBoat() *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(boatKind)
	return o
}

func (h *harbourmaster) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	o := newBoat()
	if err := h.Get(ctx, r.NamespacedName, o); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !o.GetDeletionTimestamp().IsZero() {
		if !controllerutil.RemoveFinalizer(o, cleared) {
			return ctrl.Result{}, nil
		}
		h.events.Eventf(o, nil, corev1.EventTypeNormal, "Cleared", "Clear", "%s may go", o.GetName())
		return ctrl.Result{}, h.Update(ctx, o)
	}
	if controllerutil.AddFinalizer(o, cleared) {
		return ctrl.Result{}, h.Update(ctx, o)
	}
	papers := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: o.GetName() + "-papers", Namespace: o.GetNamespace()}, Data: map[string]string{"by": h.name}}
	if err := controllerutil.SetControllerReference(o, papers, h.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	if err := h.Create(ctx, papers); err != nil && !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Moored" {
		return ctrl.Result{}, nil
	}
	owner, _, _ := unstructured.NestedString(o.Object, "spec", "owner")
	fleet := &unstructured.UnstructuredList{}
	fleet.SetGroupVersionKind(boatKind.GroupVersion().WithKind("BoatList"))
	if err := h.List(ctx, fleet, client.InNamespace(o.GetNamespace()), client.MatchingFields{byOwner: owner}); err != nil {
		return ctrl.Result{}, err
	}
	h.events.Eventf(o, nil, corev1.EventTypeNormal, "Moored", "Moor", "%s has %d", owner, len(fleet.Items))
	o.Object["status"] = map[string]any{"phase": "Moored", "moored": int64(len(fleet.Items))}
	return ctrl.Result{}, h.Status().Update(ctx, o)
}

// office starts a harbourmaster; close ends it and waits.
func office(t *testing.T, c *rest.Config, name string) (elected <-chan struct{}, closes func()) {
	t.Helper()
	manager, err := ctrl.NewManager(c, ctrl.Options{
		Metrics: server.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Client:         client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Cache:          cache.Options{DefaultNamespaces: map[string]cache.Config{"default": {}}},
		LeaderElection: true, LeaderElectionID: "harbourmaster", LeaderElectionNamespace: "default", LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	err = manager.GetFieldIndexer().IndexField(t.Context(), newBoat(), byOwner, func(o client.Object) []string {
		owner, _, _ := unstructured.NestedString(o.(*unstructured.Unstructured).Object, "spec", "owner")
		return []string{owner}
	})
	if err != nil {
		t.Fatal(err)
	}
	master := &harbourmaster{manager.GetClient(), manager.GetEventRecorder("harbourmaster"), name}
	if err := ctrl.NewControllerManagedBy(manager).For(newBoat()).Owns(&corev1.ConfigMap{}).Complete(master); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	closed := false
	closes = func() {
		if closed {
			return
		}
		closed = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(closes)
	return manager.Elected(), closes
}

// Two managers of one controller run with nothing but a token and the rights that they need: one leads, the other takes over, and what
// they made for a boat goes with it.
func TestManagerWithItsRights(t *testing.T) {
	s, _ := own(t)
	installWithClient(t, s.Config)
	admin := newKubectl(t, s)
	admin.ok("apply", "-f", write(t, "rights.yaml", harbourmasterRights))
	token := bearing(s, strings.TrimSpace(admin.ok("create", "token", "harbourmaster")))
	kubectlAs(t, s, token).turns(0, "No resources found", "get", "boats") // its rights are known
	kubectlAs(t, s, token).fails([]string{"Forbidden"}, "get", "secrets")

	elected, closes := office(t, token, "first")
	waits(t, "the first manager leads", elected)
	second, _ := office(t, token, "second")
	boats := boatsOf(t, s.Config)
	for i := range 3 {
		must[*unstructured.Unstructured](t)(boats.Create(t.Context(), boat(fmt.Sprintf("boat-%d", i), "red"), metav1.CreateOptions{}))
	}
	papersOf(t, s, "boat-0", "first")
	eventually(t, soon, "all boats are moored", func() bool {
		return strings.Count(admin.ok("get", "boats", "-o", "jsonpath={.items[*].status.phase}"), "Moored") == 3
	})
	select {
	case <-second:
		t.Error("both managers lead")
	default:
	}
	admin.succeeds("ada has ", "events", "--for=boat/boat-0")
	closes()
	waits(t, "the second manager leads", second)
	must[*unstructured.Unstructured](t)(boats.Create(t.Context(), boat("late", "red"), metav1.CreateOptions{}))
	papersOf(t, s, "late", "second")
	admin.says([]string{cleared}, "get", "boat", "late", "-o", "jsonpath={.metadata.finalizers}")
	admin.ok("delete", "boat", "late", "boat-0", "--timeout=30s")
	client := typedClient(t, s.Config).CoreV1().ConfigMaps("default")
	eventually(t, soon, "the papers go with the boats", func() bool {
		left := must[*corev1.ConfigMapList](t)(client.List(t.Context(), metav1.ListOptions{}))
		names := []string{}
		for _, o := range left.Items {
			if strings.HasSuffix(o.Name, "-papers") {
				names = append(names, o.Name)
			}
		}
		return strings.Join(names, " ") == "boat-1-papers boat-2-papers"
	})
	admin.succeeds("late may go", "events", "--for=boat/late")
}

// papersOf waits for what the harbourmaster makes for a boat.
func papersOf(t *testing.T, s *launch.Server, name, by string) {
	t.Helper()
	client := typedClient(t, s.Config).CoreV1().ConfigMaps("default")
	var papers *corev1.ConfigMap
	eventually(t, soon, "papers of "+name, func() bool {
		got, err := client.Get(t.Context(), name+"-papers", metav1.GetOptions{})
		papers = got
		return err == nil
	})
	if owner := metav1.GetControllerOf(papers); owner == nil || owner.Name != name || owner.Kind != "Boat" || papers.Data["by"] != by {
		t.Errorf("the papers of %s are %+v", name, papers)
	}
}

// waits waits for something that is closed when it has happened.
func waits(t *testing.T, what string, done <-chan struct{}) {
	t.Helper()
	select {
	case <-done:
	case <-time.After(2 * soon):
		t.Fatalf("not within %v: %s", 2*soon, what)
	}
}
