package object

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

var texts = []string{"", "a", "web-1", "ns", "ümlaut", "<b>&</b>", "quote\"back\\slash", "line\nfeed\t\b\f\r", "\u2028\u2029", "\x00\x1f\x7f", "bad\xff\xc3utf8", "😀", "example.com/long-name.with.dots"}

type random struct{ *rand.Rand }

func (r random) text() string { return texts[r.IntN(len(texts))] }

func (r random) some() bool { return r.IntN(2) == 0 }

func (r random) strings() []string {
	switch r.IntN(4) {
	case 0:
		return nil
	case 1:
		return []string{}
	}
	list := make([]string, 1+r.IntN(3))
	for i := range list {
		list[i] = r.text()
	}
	return list
}

func (r random) stringMap() map[string]string {
	switch r.IntN(4) {
	case 0:
		return nil
	case 1:
		return map[string]string{}
	}
	m := map[string]string{}
	for range 1 + r.IntN(5) {
		m[r.text()+r.text()] = r.text()
	}
	return m
}

func (r random) time() *metav1.Time {
	switch r.IntN(4) {
	case 0:
		return nil
	case 1:
		return &metav1.Time{}
	}
	t := metav1.Unix(r.Int64N(4_000_000_000), r.Int64N(1_000_000_000))
	if r.some() {
		t = metav1.NewTime(t.In(time.FixedZone("", 3600*5)))
	}
	return &t
}

func (r random) bool() *bool {
	b := r.some()
	return map[bool]*bool{true: &b}[r.some()]
}

func (r random) fields() *metav1.FieldsV1 {
	raws := []string{`{}`, `{"f:b":{},"f:a":{".":{}, "k:{\"n\":1}":{"f:x":{}}}}`, `null`, `[1, 2.50,"<"]`, `{"a":1e3,"b":-0.0,"a":2}`}
	if r.some() {
		return nil
	}
	return metav1.NewFieldsV1(raws[r.IntN(len(raws))])
}

func (r random) meta() metav1.ObjectMeta {
	m := metav1.ObjectMeta{
		Name: r.text(), GenerateName: r.text(), Namespace: r.text(), SelfLink: r.text(), UID: types.UID(r.text()),
		ResourceVersion: r.text(), Labels: r.stringMap(), Annotations: r.stringMap(), Finalizers: r.strings(),
		DeletionTimestamp: r.time(),
	}
	if r.some() {
		m.Generation = r.Int64() - 1<<62
	}
	if t := r.time(); t != nil {
		m.CreationTimestamp = *t
	}
	if r.some() {
		n := r.Int64N(100)
		m.DeletionGracePeriodSeconds = &n
	}
	for range r.IntN(3) {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{
			APIVersion: r.text(), Kind: r.text(), Name: r.text(), UID: types.UID(r.text()), Controller: r.bool(), BlockOwnerDeletion: r.bool(),
		})
	}
	for range r.IntN(3) {
		m.ManagedFields = append(m.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: r.text(), Operation: metav1.ManagedFieldsOperationType(r.text()), APIVersion: r.text(), Time: r.time(),
			FieldsType: r.text(), FieldsV1: r.fields(), Subresource: r.text(),
		})
	}
	if r.some() && m.OwnerReferences == nil {
		m.OwnerReferences, m.ManagedFields = []metav1.OwnerReference{}, []metav1.ManagedFieldsEntry{}
	}
	return m
}

// reference is what upstream stores for metadata.
func reference(t testing.TB, m metav1.ObjectMeta) map[string]any {
	t.Helper()
	u, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
	if err != nil {
		t.Fatal(err)
	}
	if u["creationTimestamp"] == nil {
		delete(u, "creationTimestamp")
	}
	return u
}

func marshal(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestMetadataIsWrittenAsUpstreamWritesIt(t *testing.T) {
	r := random{rand.New(rand.NewPCG(1, 2))}
	for range 1500 {
		m := r.meta()
		if got, want := string(appendMeta(nil, &m, m.ResourceVersion)), marshal(t, reference(t, m)); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

func TestMetadataIsReadAsUpstreamReadsIt(t *testing.T) {
	r := random{rand.New(rand.NewPCG(3, 4))}
	for range 1500 {
		m := r.meta()
		body := marshal(t, map[string]any{"apiVersion": "g/v1", "kind": "K", "metadata": reference(t, m), "spec": map[string]any{"a": 1}})
		var want struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal([]byte(body), &want); err != nil {
			t.Fatal(err)
		}
		o, err := FromJSON([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if got := gather(o); !reflect.DeepEqual(got, want.Metadata) {
			t.Fatalf("read as bytes:\ngot  %+v\nwant %+v", got, want.Metadata)
		}
		if string(o.JSON()) != body {
			t.Fatal("reading changed the object")
		}
		if got := *o.decodedMeta(); !reflect.DeepEqual(got, want.Metadata) {
			t.Fatalf("decoded:\ngot  %+v\nwant %+v", got, want.Metadata)
		}
		o.change()
		if got := gather(o); !reflect.DeepEqual(got, want.Metadata) {
			t.Fatalf("read from what is decoded:\ngot  %+v\nwant %+v", got, want.Metadata)
		}
	}
}

// gather reads the metadata through the getters.
func gather(m metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: m.GetName(), GenerateName: m.GetGenerateName(), Namespace: m.GetNamespace(), SelfLink: m.GetSelfLink(), UID: m.GetUID(),
		ResourceVersion: m.GetResourceVersion(), Generation: m.GetGeneration(), CreationTimestamp: m.GetCreationTimestamp(),
		DeletionTimestamp: m.GetDeletionTimestamp(), DeletionGracePeriodSeconds: m.GetDeletionGracePeriodSeconds(), Labels: m.GetLabels(),
		Annotations: m.GetAnnotations(), Finalizers: m.GetFinalizers(), OwnerReferences: m.GetOwnerReferences(), ManagedFields: m.GetManagedFields(),
	}
}

// assign sets all of the metadata through the setters.
func assign(o metav1.Object, m metav1.ObjectMeta) {
	o.SetName(m.Name)
	o.SetGenerateName(m.GenerateName)
	o.SetNamespace(m.Namespace)
	o.SetSelfLink(m.SelfLink)
	o.SetUID(m.UID)
	o.SetResourceVersion(m.ResourceVersion)
	o.SetGeneration(m.Generation)
	o.SetCreationTimestamp(m.CreationTimestamp)
	o.SetDeletionTimestamp(m.DeletionTimestamp)
	o.SetDeletionGracePeriodSeconds(m.DeletionGracePeriodSeconds)
	o.SetLabels(m.Labels)
	o.SetAnnotations(m.Annotations)
	o.SetFinalizers(m.Finalizers)
	o.SetOwnerReferences(m.OwnerReferences)
	o.SetManagedFields(m.ManagedFields)
}

func TestMetadataThatIsSet(t *testing.T) {
	r := random{rand.New(rand.NewPCG(5, 6))}
	for range 1500 {
		before, after := r.meta(), r.meta()
		body := map[string]any{"Z": 1, "apiVersion": "g/v1", "kind": "K", "metadata": reference(t, before), "spec": map[string]any{"a": "<"}}
		switch r.IntN(4) {
		case 0:
			delete(body, "metadata")
		case 1:
			body["metadata"] = nil
		}
		o, err := FromJSON([]byte(marshal(t, body)))
		if err != nil {
			t.Fatal(err)
		}
		c := o.DeepCopy()
		assign(c, after)
		body["metadata"] = reference(t, after)
		if got, want := string(c.JSON()), marshal(t, body); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
		if o.changed() {
			t.Fatal("changing the copy has changed the original")
		}
	}
}

func TestChangingACopyLeavesTheOriginal(t *testing.T) {
	o, err := FromJSON([]byte(`{"metadata":{"labels":{"a":"1"},"name":"x"}}`))
	if err != nil {
		t.Fatal(err)
	}
	o.SetAnnotations(map[string]string{"n": "1"})
	c := o.DeepCopy()
	c.GetAnnotations()["n"] = "2"
	c.SetName("y")
	if got, want := string(o.JSON()), `{"metadata":{"annotations":{"n":"1"},"labels":{"a":"1"},"name":"x"}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSemanticEqualityIgnoresTimesOfManagedFields(t *testing.T) {
	object := func(json string) *Object {
		o, err := FromJSON([]byte(json))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	a := object(`{"kind":"K","metadata":{"managedFields":[{"manager":"m","time":"2024-01-01T00:00:00Z"}],"name":"x"},"spec":{"a":1}}`)
	for _, c := range []struct {
		other string
		equal bool
	}{
		{`{"kind":"K","metadata":{"managedFields":[{"manager":"m","time":"2025-01-01T00:00:00Z"}],"name":"x"},"spec":{"a":1}}`, true},
		{`{"kind":"K","metadata":{"managedFields":[{"manager":"n","time":"2024-01-01T00:00:00Z"}],"name":"x"},"spec":{"a":1}}`, false},
		{`{"kind":"K","metadata":{"managedFields":[{"manager":"m","time":"2024-01-01T00:00:00Z"}],"name":"x"},"spec":{"a":2}}`, false},
		{`{"kind":"L","metadata":{"managedFields":[{"manager":"m","time":"2024-01-01T00:00:00Z"}],"name":"x"},"spec":{"a":1}}`, false},
		{`{"kind":"K","metadata":{"managedFields":[{"manager":"m","time":"2024-01-01T00:00:00Z"}],"name":"x","resourceVersion":"1"},"spec":{"a":1}}`, false},
	} {
		if got := equality.Semantic.DeepEqual(a, object(c.other)); got != c.equal {
			t.Errorf("%s: got %v", c.other, got)
		}
	}
}
