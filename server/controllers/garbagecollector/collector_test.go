package garbagecollector

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

func TestMain(m *testing.M) { etcdtest.Main(m) }

// site is a server with a collector.
type site struct {
	*restmappingtest.Server
	config Config
	stop   func() // and waits
}

const group = "example.com/v1"

// start runs a server that has widgets in namespaces and stars in none.
func start(t *testing.T, change ...func(*Config)) *site {
	t.Helper()
	s := &site{Server: restmappingtest.Start(t, restmappingtest.Options{})}
	s.Define(t, restmappingtest.CRD("widgets", "example.com", true))
	s.Define(t, restmappingtest.CRD("stars", "example.com", false))
	s.config = Config{
		Etcd: s.Backend.Client(), Prefix: s.Prefix, Kinds: s.Kinds, Client: s.Metadata, Events: s.Client, Workers: 8,
	}
	for _, f := range change {
		f(&s.config)
	}
	return s
}

// collect starts the collector.
func (s *site) collect(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); _ = New(s.config).Run(ctx) }()
	s.stop = func() { cancel(); <-done }
	t.Cleanup(s.stop)
}

func (s *site) widget(t *testing.T, name string, owners ...*unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	refs := make([]metav1.OwnerReference, len(owners))
	for i, o := range owners {
		refs[i] = restmappingtest.Owner(o)
	}
	return s.Object(t, group, "Widget", "default", name, refs...)
}

func (s *site) gone(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		restmappingtest.Eventually(t, o.GetKind()+" "+o.GetName()+" is gone", func() bool { return s.Get(t, o) == nil })
	}
}

// settled waits until the collector has dealt with all that was written before:
// a new object with a missing owner is written, and gone.
func (s *site) settled(t *testing.T) {
	t.Helper()
	for range 2 { // what the first has caused, the second comes after
		probe := s.Object(t, group, "Widget", "default", "probe", metav1.OwnerReference{APIVersion: group, Kind: "Widget", Name: "nobody", UID: "11111111-2222-3333-4444-555555555555"})
		s.gone(t, probe)
	}
}

func (s *site) stays(t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		if got := s.Get(t, o); got == nil || got.GetDeletionTimestamp() != nil {
			t.Fatalf("%s %s is gone", o.GetKind(), o.GetName())
		}
	}
}

func TestBackground(t *testing.T) {
	s := start(t)
	s.collect(t)
	a := s.widget(t, "a")
	b := s.widget(t, "b", a)
	c := s.widget(t, "c", b)
	star := s.Object(t, group, "Star", "", "star")
	d := s.widget(t, "d", star)
	other := s.widget(t, "other")
	both := s.widget(t, "both", a, other)
	s.settled(t)
	s.stays(t, a, b, c, d, star, other, both)
	s.Delete(t, a, metav1.DeletePropagationBackground)
	s.gone(t, a, b, c)
	restmappingtest.Eventually(t, "the dangling reference is removed", func() bool {
		refs := s.Get(t, both).GetOwnerReferences()
		return len(refs) == 1 && refs[0].UID == other.GetUID()
	})
	s.stays(t, d, other, both)
	s.Delete(t, star, metav1.DeletePropagationBackground)
	s.gone(t, d)
}

// TestBeforeTheCollector has objects that lost their owners before the collector ran.
func TestBeforeTheCollector(t *testing.T) {
	s := start(t)
	a := s.widget(t, "a")
	b := s.widget(t, "b", a)
	kept := s.widget(t, "kept", s.widget(t, "keeper"))
	waits := s.widget(t, "waits")
	blocks := s.widget(t, "blocks", waits)
	left := s.widget(t, "left")
	free := s.widget(t, "free", left)
	s.Delete(t, a, metav1.DeletePropagationBackground)
	s.Delete(t, waits, metav1.DeletePropagationForeground)
	s.Delete(t, left, metav1.DeletePropagationOrphan)
	s.stays(t, b, kept, blocks)
	s.collect(t)
	s.gone(t, b, waits, blocks, left)
	s.stays(t, kept, free)
	if refs := s.Get(t, free).GetOwnerReferences(); len(refs) != 0 {
		t.Errorf("orphan with %v", refs)
	}
	// A second one finds nothing to do, and takes over where the first ended.
	s.stop()
	again := s.widget(t, "again", kept)
	s.collect(t)
	s.settled(t)
	s.stays(t, kept, again)
	s.Delete(t, kept, metav1.DeletePropagationBackground)
	s.gone(t, again)
}

func TestForeground(t *testing.T) {
	s := start(t)
	s.collect(t)
	a := s.widget(t, "a")
	b := s.widget(t, "b", a)
	c := s.widget(t, "c", b)
	held := s.widget(t, "held", c)
	s.merge(t, held, `{"metadata":{"finalizers":["x/y"]}}`)
	solid := s.widget(t, "solid", a, s.widget(t, "other"))
	s.Delete(t, a, metav1.DeletePropagationForeground)
	restmappingtest.Eventually(t, "all wait for the last", func() bool {
		for _, o := range []*unstructured.Unstructured{a, b, c, held} {
			if got := s.Get(t, o); got == nil || got.GetDeletionTimestamp() == nil {
				return false
			}
		}
		return true
	})
	s.settled(t)
	for _, o := range []*unstructured.Unstructured{a, b, c} {
		if got := s.Get(t, o); got == nil {
			t.Fatalf("%s has not waited", o.GetName())
		}
	}
	s.merge(t, held, `{"metadata":{"finalizers":null}}`)
	s.gone(t, held, c, b, a)
	s.stays(t, solid)
}

// An object cannot keep one in another namespace from being deleted, nor can one
// without a namespace: any user can write a UID into a reference.
func TestForegroundIsNotBlockedFromElsewhere(t *testing.T) {
	s := start(t)
	s.collect(t)
	for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
		victim := s.widget(t, "victim-"+strings.ToLower(string(policy)))
		forged := restmappingtest.Owner(victim)
		misnamed, unknown := forged, forged
		misnamed.Name, unknown.Kind = "other", "Nonsense"
		for i, ref := range []metav1.OwnerReference{forged, misnamed, unknown} {
			refs, err := json.Marshal([]metav1.OwnerReference{ref})
			if err != nil {
				t.Fatal(err)
			}
			for kind, namespace := range map[string]string{"Widget": "elsewhere", "Star": ""} {
				o := s.Object(t, group, kind, namespace, fmt.Sprintf("o%d-%s", i, victim.GetName()))
				s.merge(t, o, fmt.Sprintf(`{"metadata":{"finalizers":["x/y"],"ownerReferences":%s}}`, refs))
			}
		}
		s.Delete(t, victim, policy)
		s.gone(t, victim)
	}
}

func TestForegroundCycle(t *testing.T) {
	s := start(t)
	s.collect(t)
	a := s.widget(t, "a")
	b := s.widget(t, "b", a)
	c := s.widget(t, "c", b)
	refer(t, s, a, c)
	itself := s.widget(t, "itself")
	refer(t, s, itself, itself)
	s.settled(t)
	s.stays(t, a, b, c, itself)
	s.Delete(t, a, metav1.DeletePropagationForeground)
	s.Delete(t, itself, metav1.DeletePropagationForeground)
	s.gone(t, a, b, c, itself)
}

func TestOrphan(t *testing.T) {
	s := start(t)
	s.collect(t)
	a := s.widget(t, "a")
	other := s.widget(t, "other")
	var dependents []*unstructured.Unstructured
	for _, name := range strings.Split("bcdefghijklmnopq", "") {
		dependents = append(dependents, s.widget(t, name, a, other))
	}
	s.Delete(t, a, metav1.DeletePropagationOrphan)
	s.gone(t, a)
	s.settled(t)
	s.stays(t, dependents...)
	for _, d := range dependents {
		if refs := s.Get(t, d).GetOwnerReferences(); len(refs) != 1 || refs[0].UID != other.GetUID() {
			t.Fatalf("%s has %v", d.GetName(), refs)
		}
	}
}

// TestReferencesThatCannotBe are to owners in other namespaces, of kinds that do not
// exist, and to another object of the same name.
func TestReferencesThatCannotBe(t *testing.T) {
	s := start(t)
	s.collect(t)
	a := s.widget(t, "a")
	star := s.Object(t, group, "Star", "", "star", restmappingtest.Owner(a))
	unknown := s.Object(t, group, "Widget", "default", "unknown", metav1.OwnerReference{APIVersion: "nowhere.com/v1", Kind: "Nothing", Name: "a", UID: "u"})
	sibling := s.widget(t, "sibling", a) // has the graph know of a, and its change where it is
	s.merge(t, a, `{"metadata":{"labels":{"known":"yes"}}}`)
	elsewhere := s.Object(t, group, "Widget", "elsewhere", "b", restmappingtest.Owner(a))
	s.gone(t, elsewhere)
	namesake := restmappingtest.Owner(a)
	namesake.UID = "11111111-2222-3333-4444-555555555555"
	s.gone(t, s.Object(t, group, "Widget", "default", "c", namesake))
	s.settled(t)
	s.stays(t, a, star, unknown, sibling)
	s.Delete(t, a, metav1.DeletePropagationBackground)
	s.settled(t)
	s.stays(t, star, unknown)
	for namespace, name := range map[string]string{"default": "star", "elsewhere": "b"} {
		restmappingtest.Eventually(t, "an event about "+name, func() bool {
			events, err := s.Client.CoreV1().Events(namespace).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events.Items {
				if e.InvolvedObject.Name == name && e.Reason == "OwnerRefInvalidNamespace" {
					return true
				}
			}
			return false
		})
	}
	// The kind comes to be known, and has no such object. One that has been waiting for
	// long is looked at rarely, so this is about one that has not.
	late := s.Object(t, group, "Widget", "default", "late", unknown.GetOwnerReferences()...)
	s.Define(t, restmappingtest.CRD("nothings", "nowhere.com", true))
	s.gone(t, late)
}

// TestBuiltIns has owners and dependents that are stored as protobuf.
func TestBuiltIns(t *testing.T) {
	s := start(t)
	s.collect(t)
	owner := s.Object(t, "v1", "ConfigMap", "default", "owner")
	widget := s.widget(t, "a", owner)
	secret := s.Object(t, "v1", "Secret", "default", "secret", restmappingtest.Owner(widget))
	s.settled(t)
	s.stays(t, owner, widget, secret)
	s.Delete(t, owner, metav1.DeletePropagationForeground)
	s.gone(t, owner, widget, secret)
	// A CRD can be an owner, too.
	d := restmappingtest.CRD("gadgets", "example.com", true)
	s.Define(t, d)
	d, err := s.Of(t, d).Get(t.Context(), d.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cm := s.Object(t, "v1", "ConfigMap", "default", "of-a-definition", restmappingtest.Owner(d))
	s.Delete(t, d, metav1.DeletePropagationBackground)
	s.gone(t, cm)
}

// TestFailuresStayWithTheirKind has a kind whose conversion never answers.
func TestFailuresStayWithTheirKind(t *testing.T) {
	s := start(t, func(c *Config) { c.Workers = 2 })
	broken := restmappingtest.CRD("things", "example.com", true)
	s.Define(t, broken)
	a := s.widget(t, "a")
	var things []*unstructured.Unstructured
	for _, name := range []string{"x", "y", "z"} {
		things = append(things, s.Object(t, group, "Thing", "default", name, restmappingtest.Owner(a)))
	}
	b := s.widget(t, "b", a)
	s.merge(t, broken, `{"spec":{"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://127.0.0.1:1/"}}},
		"versions":[{"name":"v1","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	restmappingtest.Eventually(t, "v2 is stored", func() bool { return s.Catalog.Get("things.example.com").StorageVersion == "v2" })
	s.collect(t)
	s.settled(t)
	s.Delete(t, a, metav1.DeletePropagationBackground)
	s.gone(t, a, b)
	s.settled(t)
	// After the fix they are deleted as well.
	s.merge(t, broken, `{"spec":{"conversion":{"strategy":"None","webhook":null}}}`)
	restmappingtest.Eventually(t, "the definition is mended", func() bool { return s.Catalog.Get("things.example.com").Conversion == "None" })
	s.gone(t, things...)
}

// merge applies a merge patch.
func (s *site) merge(t *testing.T, o *unstructured.Unstructured, body string) {
	t.Helper()
	if _, err := s.Of(t, o).Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(body), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// refer gives an object one more owner.
func refer(t *testing.T, s *site, o, owner *unstructured.Unstructured) {
	t.Helper()
	current := s.Get(t, o)
	current.SetOwnerReferences(append(current.GetOwnerReferences(), restmappingtest.Owner(owner)))
	if _, err := s.Of(t, o).Update(t.Context(), current, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
