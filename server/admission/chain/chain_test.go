package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	core "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/endpoints/codec"
)

var thingKind = schema.GroupVersionKind{Group: "test.dev", Version: "v1", Kind: "Thing"}

// scope is what handlers give to admission. It counts conversions.
type scope struct {
	equivalents runtime.EquivalentResourceMapper
	converted   int
}

func newScope() *scope { return &scope{equivalents: runtime.NewEquivalentResourceRegistry()} }

func (s *scope) GetObjectCreater() runtime.ObjectCreater                       { return codec.Creater() }
func (s *scope) GetObjectTyper() runtime.ObjectTyper                           { return codec.Typer(thingKind) }
func (s *scope) GetObjectDefaulter() runtime.ObjectDefaulter                   { return s }
func (s *scope) GetObjectConvertor() runtime.ObjectConvertor                   { return s }
func (s *scope) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper { return s.equivalents }
func (s *scope) Default(runtime.Object)                                        {}
func (s *scope) ConvertToVersion(runtime.Object, runtime.GroupVersioner) (runtime.Object, error) {
	return nil, errors.New("not asked for")
}

func (s *scope) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Convert changes the version and nothing else.
func (s *scope) Convert(in, out, _ any) error {
	s.converted++
	to := out.(*object.Object).GroupVersionKind()
	*out.(*object.Object) = *in.(*object.Object).DeepCopy()
	out.(*object.Object).SetGroupVersionKind(to)
	return nil
}

func parsed(text string) *object.Object {
	o := &object.Object{}
	if err := o.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return o
}

// attributes are those of a create request, or of an update if there is an old
// object.
func attributes(now, old string) admission.Attributes {
	operation, options, before := admission.Create, runtime.Object(&metav1.CreateOptions{}), runtime.Object(nil)
	if old != "" {
		operation, options, before = admission.Update, &metav1.UpdateOptions{}, parsed(old)
	}
	return admission.NewAttributesRecord(parsed(now), before, thingKind, "default", "a", thingKind.GroupVersion().WithResource("things"), "",
		operation, options, false, &user.DefaultInfo{Name: "tester"})
}

func TestNothingIsConvertedUnlessSomethingMatches(t *testing.T) {
	e := start(t)
	other := func(w *admissionregistration.MutatingWebhook) {
		w.Rules = []admissionregistration.RuleWithOperations{about("v1", "others")}
	}
	e.mutating("others", hooked(t, nil), other)
	e.mutating("labelled", hooked(t, nil), func(w *admissionregistration.MutatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "body"}}
	})
	a := attributes(thing("a", `{"size":1}`), thing("a", `{"size":2}`))
	o := a.GetObject().(*object.Object)
	o.SetStamp(t)
	v, i := shown(a, newScope())
	must(t, asking(t, e.chain).admit(t.Context(), v, i))
	must(t, asking(t, e.chain).validate(t.Context(), v, i))
	if seen := v.(*requestAttributes); seen.object.seen != nil || seen.old.seen != nil {
		t.Error("an object was converted for webhooks that do not want it")
	}
	if o.Stamp() != any(t) {
		t.Error("an object that nobody has changed has lost its stamp")
	}
}

func TestObjectsAreConvertedOnce(t *testing.T) {
	s := newScope()
	a := attributes(thing("a", `{"size":1}`), thing("a", `{"size":2}`))
	v, i := shown(a, s)
	second := thingKind
	second.Version = "v2"
	for range 2 {
		for _, kind := range []schema.GroupVersionKind{thingKind, second} {
			versioned, err := admission.NewVersionedAttributes(v, kind, i)
			must(t, err)
			now, ok := versioned.VersionedObject.Object().(*unstructured.Unstructured)
			if !ok || now.GroupVersionKind() != kind || now.Object["spec"].(map[string]any)["size"] != int64(1) {
				t.Fatalf("the object is %v", versioned.VersionedObject.Object())
			}
			if old, ok := versioned.VersionedOldObject.Object().(*unstructured.Unstructured); !ok || old.Object["spec"].(map[string]any)["size"] != int64(2) {
				t.Fatalf("the old object is %v", versioned.VersionedOldObject.Object())
			}
		}
	}
	if n := len(v.(*requestAttributes).object.seen); n != 2 || s.converted != 2 {
		t.Errorf("%d maps and %d conversions for two versions of two objects", n, s.converted)
	}
}

func TestGoTypesPassAsTheyAre(t *testing.T) {
	a := admission.NewAttributesRecord(&core.ConfigMap{}, nil, core.SchemeGroupVersion.WithKind("ConfigMap"), "default", "a",
		core.SchemeGroupVersion.WithResource("configmaps"), "", admission.Create, &metav1.CreateOptions{}, false, nil)
	s := newScope()
	if v, i := shown(a, s); v != a || i != admission.ObjectInterfaces(s) {
		t.Errorf("a config map is seen as %T, with %T", v, i)
	}
}

func TestNamespaces(t *testing.T) {
	e := startThings(t)
	nowhere := strings.Replace(path, "default", "nowhere", 1)
	e.Do("POST", nowhere, thing("a", `{}`)).Is(404).Mentions(`namespaces "nowhere" not found`)
	e.namespace("nowhere")
	e.Do("POST", nowhere, thing("a", `{}`)).Is(201)
	e.namespace("going", "test.dev/wait")
	must(t, e.client.CoreV1().Namespaces().Delete(t.Context(), "going", metav1.DeleteOptions{}))
	e.Do("POST", strings.Replace(path, "default", "going", 1), thing("a", `{}`)).Is(403).
		Mentions("unable to create new content in namespace going because it is being terminated")
	for _, name := range []string{"default", "kube-system"} {
		err := e.client.CoreV1().Namespaces().Delete(t.Context(), name, metav1.DeleteOptions{})
		if err == nil || !strings.Contains(err.Error(), "this namespace may not be deleted") {
			t.Errorf("deleting %s: %v", name, err)
		}
	}
}

// Objects of Go types reach webhooks and come back changed.
func TestWebhookOnBuiltInResource(t *testing.T) {
	e := start(t)
	e.mutating("maps", hooked(t, patches(`[{"op":"add","path":"/data","value":{"by":"hook"}}]`)), func(w *admissionregistration.MutatingWebhook) {
		w.Rules = []admissionregistration.RuleWithOperations{about("v1", "configmaps")}
		w.Rules[0].APIGroups = []string{""}
	})
	made, err := e.client.CoreV1().ConfigMaps("default").Create(t.Context(), &core.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil || made.Data["by"] != "hook" {
		t.Errorf("the config map is %v: %v", made, err)
	}
}

// When the last webhook goes, the chain is idle again.
func TestIdleAgain(t *testing.T) {
	e := start(t)
	e.mutating("short", hooked(t, nil))
	must(t, e.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Delete(t.Context(), "short", metav1.DeleteOptions{}))
	apitest.Eventually(t, e.chain.Idle)
}

func asking(t *testing.T, c *Chain) *steps {
	t.Helper()
	plugins, err := c.asking()
	must(t, err)
	return plugins
}

func TestDisabledPlugins(t *testing.T) {
	e := start(t, func(o *Options) {
		o.Flags = newFlags()
		o.Flags.DisablePlugins = []string{"MutatingAdmissionWebhook", "NamespaceLifecycle"}
		for _, p := range own {
			o.Flags.DisablePlugins = append(o.Flags.DisablePlugins, p.name)
		}
	})
	plugins := asking(t, e.chain)
	if n := len(plugins.mutating); n != 1 || len(e.chain.direct.mutating) != 0 || len(plugins.validating) != 2 {
		t.Errorf("there are %d mutating plugins", n)
	}
}

func TestIdleCostsNothing(t *testing.T) {
	e := start(t)
	a, s, ctx := attributes(thing("a", `{"size":1}`), ""), newScope(), context.Background()
	admit := func() {
		if err := errors.Join(e.chain.Admit(ctx, a, s), e.chain.Validate(ctx, a, s)); err != nil {
			t.Fatal(err)
		}
	}
	// All that the process allocates counts, and informers and caches run beside the
	// chain: what they have done is not in the least of several counts.
	least := testing.AllocsPerRun(100, admit)
	for n := 0; n < 20 && least > 13; n++ {
		least = min(least, testing.AllocsPerRun(100, admit))
	}
	// Three of NamespaceLifecycle: its lister, and its cache of namespaces that are about to
	// go. Ten of ResourceQuota: the names of what the request may add to, and what its
	// write relies on in etcd.
	if least > 13 {
		t.Errorf("an idle chain allocates %v times", least)
	}
}

// BenchmarkChain: a create request with nothing configured, with a webhook that
// does not match, and, to compare, what looking at the object costs.
func BenchmarkChain(b *testing.B) {
	a, s, ctx := attributes(thing("a", `{"size":1}`), ""), newScope(), context.Background()
	e := start(b)
	run := func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := e.chain.Admit(ctx, a, s); err != nil {
				b.Fatal(err)
			}
			if err := e.chain.Validate(ctx, a, s); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.Run("idle", run)
	e.mutating("others", hooked(b, nil), func(w *admissionregistration.MutatingWebhook) {
		w.Rules = []admissionregistration.RuleWithOperations{about("v1", "others")}
	})
	b.Run("unmatched", run)
	b.Run("conversion", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			v, i := shown(a, s)
			if _, err := admission.NewVersionedAttributes(v, thingKind, i); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// FuzzAccept: an object that comes back as it was stays what it is, byte by
// byte; what defaulting removes from it comes back.
func FuzzAccept(f *testing.F) {
	f.Add([]byte(`{"apiVersion":"test.dev/v1","kind":"Thing","metadata":{"name":"a","labels":{"a":"<"}},"spec":{"n":1.0,"l":[1,null,{"x":[]}],"big":9007199254740993}}`))
	f.Add([]byte(`{"apiVersion":"test.dev/v1","kind":"Thing","metadata":null,"spec":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		doc, err := jsondoc.Parse(data, jsondoc.Limits{})
		if err != nil {
			return
		}
		defer doc.Release()
		o, err := object.FromJSON(doc.AppendCanonical(nil, jsondoc.Root))
		if err != nil || o.GroupVersionKind() != thingKind {
			return
		}
		before := bytes.Clone(o.JSON())
		a := admission.NewAttributesRecord(o, nil, thingKind, "", "", thingKind.GroupVersion().WithResource("things"), "", admission.Create, nil, false, nil)
		v, i := shown(a, newScope())
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(thingKind)
		if err := i.GetObjectConvertor().Convert(v.GetObject(), u, nil); err != nil {
			return
		}
		changed := u.DeepCopy()
		i.GetObjectDefaulter().Default(changed)
		if !reflect.DeepEqual(changed.Object, u.Object) {
			t.Fatalf("%v has become %v", u.Object, changed.Object)
		}
		must(t, i.GetObjectConvertor().Convert(u, v.GetObject(), nil))
		if !bytes.Equal(o.JSON(), before) {
			t.Fatalf("%s has become %s", before, o.JSON())
		}
		var rest map[string]any
		must(t, json.Unmarshal([]byte(`{"spec":{}}`), &rest))
		restore(rest, missing(rest, u.Object))
	})
}

func TestRestore(t *testing.T) {
	var now, before any
	must(t, json.Unmarshal([]byte(`{"a":{"d":1},"l":[{"x":1},2],"s":"t"}`), &now))
	must(t, json.Unmarshal([]byte(`{"a":{"u":true,"n":null},"l":[{"y":2},2],"s":{"z":1},"m":[]}`), &before))
	lost := missing(now, before)
	got, _ := json.Marshal(lost)
	if want := `{"a":{"u":true},"l":[{"y":2},null],"m":[]}`; string(got) != want {
		t.Errorf("what is missing is %s, not %s", got, want)
	}
	restore(now, lost)
	got, _ = json.Marshal(now)
	if want := `{"a":{"d":1,"u":true},"l":[{"x":1,"y":2},2],"m":[],"s":"t"}`; string(got) != want {
		t.Errorf("%s, not %s", got, want)
	}
	if lost := missing(now, now); lost != nil {
		t.Errorf("what a value lacks of itself is %v", lost)
	}
}

func TestNotReady(t *testing.T) {
	s := &settings{}
	if !s.none() {
		t.Error("without plugins that are configured there is nothing to wait for")
	}
	w := &source{some: make(chan struct{}, 1)}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := w.wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("waiting for policies: %v", err)
	}
}
