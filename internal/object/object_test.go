package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

func parse(t testing.TB, canonical string) *Object {
	t.Helper()
	o, err := FromJSON([]byte(canonical))
	if err != nil {
		t.Fatalf("%s: %v", canonical, err)
	}
	return o
}

func same(t testing.TB, o *Object, want string) {
	t.Helper()
	if got := string(o.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(o.AppendJSON([]byte("x,"))); got != "x,"+want {
		t.Errorf("appended: got %s", got)
	}
}

func TestSize(t *testing.T) {
	if size := unsafe.Sizeof(Object{}); size != 128 {
		t.Errorf("an Object takes %d bytes; caches and lists count on 128", size)
	}
}

func TestResourceVersionIsSplicedIn(t *testing.T) {
	for _, c := range []struct{ stored, set, want string }{
		{`{}`, "7", `{"metadata":{"resourceVersion":"7"}}`},
		{`{"a":1}`, "7", `{"a":1,"metadata":{"resourceVersion":"7"}}`},
		{`{"spec":{}}`, "7", `{"metadata":{"resourceVersion":"7"},"spec":{}}`},
		{`{"metadata":null,"spec":{}}`, "7", `{"metadata":{"resourceVersion":"7"},"spec":{}}`},
		{`{"metadata":{}}`, "7", `{"metadata":{"resourceVersion":"7"}}`},
		{`{"metadata":{"name":"x"}}`, "7", `{"metadata":{"name":"x","resourceVersion":"7"}}`},
		{`{"metadata":{"uid":"x"}}`, "7", `{"metadata":{"resourceVersion":"7","uid":"x"}}`},
		{`{"metadata":{"name":"x","uid":"x"},"z":0}`, "7", `{"metadata":{"name":"x","resourceVersion":"7","uid":"x"},"z":0}`},
		{`{"metadata":{"name":"x","resourceVersion":"1","uid":"x"}}`, "7", `{"metadata":{"name":"x","resourceVersion":"7","uid":"x"}}`},
		{`{"metadata":{"name":"x","resourceVersion":"1","uid":"x"}}`, "", `{"metadata":{"name":"x","uid":"x"}}`},
		{`{"metadata":{"name":"x","resourceVersion":"1"}}`, "", `{"metadata":{"name":"x"}}`},
		{`{"metadata":{"resourceVersion":"1","uid":"x"}}`, "", `{"metadata":{"uid":"x"}}`},
		{`{"metadata":{"resourceVersion":"1"}}`, "", `{"metadata":{}}`},
		{`{"metadata":{"resourceVersion":null}}`, "7", `{"metadata":{"resourceVersion":"7"}}`},
		{`{"metadata":{"resourceVersion":"1"}}`, "1", `{"metadata":{"resourceVersion":"1"}}`},
		{`{"metadata":{"name":"x"}}`, "", `{"metadata":{"name":"x"}}`},
	} {
		o := parse(t, c.stored)
		o.SetResourceVersion(c.set)
		same(t, o, c.want)
		if got := o.GetResourceVersion(); got != c.set {
			t.Errorf("%s: resourceVersion is %q", c.stored, got)
		}
		if o.meta != nil {
			t.Errorf("%s: metadata has been decoded", c.stored)
		}
		o.SetResourceVersion(parse(t, c.stored).GetResourceVersion())
		if &o.JSON()[0] != &o.raw[0] {
			t.Errorf("%s: an object that is what it was has been copied", c.stored)
		}
	}
}

func TestKindIsSplicedIn(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}
	for _, c := range []struct {
		json string
		gvk  schema.GroupVersionKind
		want string
	}{
		{`{}`, gvk, `{"apiVersion":"g/v1","kind":"K"}`},
		{`{"a":1}`, gvk, `{"a":1,"apiVersion":"g/v1","kind":"K"}`},
		{`{"z":1}`, gvk, `{"apiVersion":"g/v1","kind":"K","z":1}`},
		{`{"A":0,"b":1,"z":1}`, gvk, `{"A":0,"apiVersion":"g/v1","b":1,"kind":"K","z":1}`},
		{`{"apiVersion":"h/v2","kind":"L","z":1}`, gvk, `{"apiVersion":"g/v1","kind":"K","z":1}`},
		{`{"apiVersion":"h/v2","kind":"L","z":1}`, schema.GroupVersionKind{}, `{"z":1}`},
		{`{"apiVersion":"h/v2","kind":"L"}`, schema.GroupVersionKind{}, `{}`},
		{`{"A":1,"apiVersion":"h/v2","b":1,"kind":"L"}`, schema.GroupVersionKind{}, `{"A":1,"b":1}`},
		{`{"apiVersion":"h/v2","kind":"L","metadata":{"name":"x"}}`, gvk, `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"}}`},
		{`{"\u003c":1,"apiVersion":"h/v2"}`, gvk, `{"\u003c":1,"apiVersion":"g/v1","kind":"K"}`},
	} {
		o := parse(t, c.json)
		o.SetGroupVersionKind(c.gvk)
		same(t, o, c.want)
		if got := o.GroupVersionKind(); got != c.gvk {
			t.Errorf("%s: kind is %v", c.json, got)
		}
		o.SetResourceVersion("1")
		if !json.Valid(o.JSON()) {
			t.Errorf("%s: with a version it is %s", c.json, o.JSON())
		}
	}
	same(t, New(gvk), `{"apiVersion":"g/v1","kind":"K"}`)
	same(t, &Object{}, `{}`)
	o := New(gvk)
	o.SetName("x")
	o.SetResourceVersion("1")
	same(t, o, `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"x","resourceVersion":"1"}}`)
	o = &Object{}
	o.SetResourceVersion("1")
	same(t, o, `{"metadata":{"resourceVersion":"1"}}`)
}

func TestNoObject(t *testing.T) {
	for _, input := range []string{
		``, ` `, `null`, `1`, `"x"`, `[]`, `{`, `{"`, `{"a`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a":}`, `{"a":"`, `{"a":"\"`, `{"a":[`, `{"a":{"}`,
		`{"a":1}x`, `{"a":1} `, `{ "a":1}`, `{"b":1,"a":1}`, `{"a":1,"a":1}`, `{"metadata":[]}`, `{"metadata":"x"}`, `{"metadata":1}`, `{"kind":1}`, `{"apiVersion":null}`,
		`{"metadata":{"name":1}}`, `{"metadata":{"labels":[]}}`, `{"metadata":{"generation":"1"}}`, `{"metadata":{"uid":"x","name":"y"}}`, `{"metadata":{"resourceVersion":1}}`,
		`{"metadata":{"name":"x",}}`, `{"metadata":{"name"}}`, `{"a":]}`, `}{`,
	} {
		if o, err := FromJSON([]byte(input)); err == nil {
			t.Errorf("%s is taken for %s", input, o.JSON())
		}
	}
}

func TestUnmarshalJSONTakesAnyForm(t *testing.T) {
	for _, input := range []string{
		` { "kind" : "K", "apiVersion":"v1", "spec":{"b":1,"a":[1.0, 1e2, 12345678901234567890, 9007199254740993], "a":{"x":"\u003c<\/"}}, "metadata":{"name":"x"}}`,
		`{"a":1}`, "{}\n",
	} {
		var o Object
		if err := json.Unmarshal([]byte(input), &o); err != nil {
			t.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{}}
		doc, err := jsondoc.Parse([]byte(input), jsondoc.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		u.Object = doc.Any(jsondoc.Root).(map[string]any)
		same(t, &o, marshal(t, u.Object))
	}
	for _, input := range []string{`null`, `[]`, `{"metadata":[]}`} {
		var o Object
		if err := json.Unmarshal([]byte(input), &o); err == nil {
			t.Errorf("%s: no error", input)
		}
	}
}

func TestUnstructuredConverter(t *testing.T) {
	const text = `{"apiVersion":"g/v1","kind":"K","metadata":{"name":"x"},"spec":{"a":1,"b":1.5}}`
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parse(t, text))
	if err != nil {
		t.Fatal(err)
	}
	if got := marshal(t, m); got != text {
		t.Errorf("to a map: %s", got)
	}
	var o Object
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &o); err != nil {
		t.Fatal(err)
	}
	same(t, &o, text)
}

func TestMembers(t *testing.T) {
	const text = `{"\u003c":"odd","a":{"b":{"c":[1,{"d":2}]}},"apiVersion":"g/v1","kind":"K","metadata":{"labels":{"a.b/c":"v"},"name":"x"},"spec":{"a":"}"},"status":null}`
	o := parse(t, text)
	for name, want := range map[string]string{"a": `{"b":{"c":[1,{"d":2}]}}`, "<": `"odd"`, "spec": `{"a":"}"}`, "status": "null", "none": "", "kind": "", "metadata": "", "zzz": ""} {
		if got := string(o.Member(name)); got != want {
			t.Errorf("member %s is %s", name, got)
		}
	}
	for path, want := range map[string]string{
		"a b c": `[1,{"d":2}]`, "a b": `{"c":[1,{"d":2}]}`, "a b c d": "", "a x": "", "kind": `"K"`, "metadata name": `"x"`, "metadata labels a.b/c": `"v"`, "spec a": `"}"`, "status x": "",
	} {
		if got := string(o.Lookup(strings.Fields(path)...)); got != want {
			t.Errorf("at %s there is %s", path, got)
		}
	}
	o.SetName("y")
	if got := string(o.Lookup("metadata", "name")); got != `"y"` {
		t.Errorf("after the change the name is %s", got)
	}
	if got := o.Lookup(); !bytes.Equal(got, o.JSON()) {
		t.Errorf("all of it is %s", got)
	}
}

func TestSetMember(t *testing.T) {
	for _, c := range []struct{ json, name, value, want string }{
		{`{}`, "spec", `{}`, `{"spec":{}}`},
		{`{}`, "spec", ``, `{}`},
		{`{}`, "spec", `"longer than the object and the key"`, `{"spec":"longer than the object and the key"}`},
		{`{}`, "longer than the object and the value", `1`, `{"longer than the object and the value":1}`},
		{`{"metadata":{"name":"x"}}`, "spec", `1`, `{"metadata":{"name":"x"},"spec":1}`},
		{`{"metadata":{"name":"x"}}`, "a", `1`, `{"a":1,"metadata":{"name":"x"}}`},
		{`{"metadata":{"name":"x"},"spec":1,"status":2}`, "spec", ``, `{"metadata":{"name":"x"},"status":2}`},
		{`{"metadata":{"name":"x"},"spec":1,"status":2}`, "status", ``, `{"metadata":{"name":"x"},"spec":1}`},
		{`{"metadata":{"name":"x"},"spec":1,"status":2}`, "spec", `{"a":[]}`, `{"metadata":{"name":"x"},"spec":{"a":[]},"status":2}`},
		{`{"status":2}`, "status", ``, `{}`},
		{`{"metadata":{"name":"x"}}`, "<", `1`, `{"\u003c":1,"metadata":{"name":"x"}}`},
		{`{"\u003c":1,"metadata":{"name":"x"}}`, "<", ``, `{"metadata":{"name":"x"}}`},
		{`{"metadata":{"name":"x"}}`, "metadata", `{}`, `{"metadata":{"name":"x"}}`},
	} {
		o := parse(t, c.json)
		original, stamped := o.DeepCopy(), parse(t, c.json)
		var value []byte
		if c.value != "" {
			value = []byte(c.value)
		}
		o.SetMember(c.name, value)
		same(t, o, c.want)
		same(t, original, c.json)
		stamped.SetStamp("form")
		stamped.SetSource([]byte("{}"))
		stamped.SetLabels(map[string]string{"l": "v"})
		if stamped.Stamp() != "form" || stamped.Source() == nil {
			t.Error("a change of metadata has forgotten the stamp")
		}
		stamped.SetMember("other", []byte("1"))
		if stamped.Stamp() != nil || stamped.Source() != nil {
			t.Error("a change has not forgotten the stamp")
		}
		if got := stamped.GetLabels()["l"]; got != "v" {
			t.Errorf("the change of metadata is lost: %s", stamped.JSON())
		}
	}
	o := New(schema.GroupVersionKind{Version: "v1", Kind: "K"})
	o.SetMember("spec", []byte("1"))
	same(t, o, `{"apiVersion":"v1","kind":"K","spec":1}`)
}

// An object that is settled says the same, and its JSON is not encoded anew.
func TestSettle(t *testing.T) {
	o, err := FromJSON([]byte(typical))
	if err != nil {
		t.Fatal(err)
	}
	stamp := new(int)
	o.SetStamp(stamp)
	o.SetSource([]byte("{}"))
	o.SetLabels(map[string]string{"a": "<b>"})
	o.SetResourceVersion("77")
	o.SetGroupVersionKind(o.GroupVersionKind())
	want := string(o.JSON())
	o.Settle()
	if got := o.JSON(); string(got) != want || &got[0] != &o.JSON()[0] {
		t.Errorf("settled: %s", got)
	}
	if o.Stamp() != stamp || string(o.Source()) != "{}" || o.GetLabels()["a"] != "<b>" || o.GetResourceVersion() != "77" {
		t.Errorf("settled without something: %v", o)
	}
	hidden := o.WithoutManagedFields()
	hidden.SetLabels(nil)
	hidden.Settle()
	if hidden.GetManagedFields() != nil {
		t.Error("managed fields that were withheld are back")
	}
}

func TestString(t *testing.T) {
	for text, want := range map[string]string{typical: "Widget default/web-1", `{"kind":"K","metadata":{"name":"x"}}`: "K x", `{}`: ""} {
		if got := fmt.Sprint(parse(t, text)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSameBody(t *testing.T) {
	for _, c := range []struct {
		a, b   string
		except []string
		same   bool
	}{
		{`{}`, `{"kind":"K","metadata":{"name":"x"}}`, nil, true},
		{`{"spec":1}`, `{"metadata":{},"spec":1}`, nil, true},
		{`{"spec":1}`, `{"spec":2}`, nil, false},
		{`{"spec":1}`, `{}`, nil, false},
		{`{}`, `{"spec":1}`, nil, false},
		{`{"spec":1,"status":1}`, `{"spec":1,"status":2}`, []string{"status"}, true},
		{`{"spec":1,"status":1}`, `{"spec":1}`, []string{"status"}, true},
		{`{"spec":1,"status":1}`, `{"status":1}`, []string{"status"}, false},
		{`{"a":1,"spec":1}`, `{"b":1,"spec":1}`, nil, false},
	} {
		if got := parse(t, c.a).SameBody(parse(t, c.b), c.except...); got != c.same {
			t.Errorf("%s and %s except %v: %v", c.a, c.b, c.except, got)
		}
	}
}

func TestManyReaders(t *testing.T) {
	o := parse(t, typical)
	o.SetResourceVersion("123")
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 100 {
				gather(o)
				o.JSON()
				c := o.DeepCopy()
				c.SetResourceVersion("4")
				c.SetLabels(nil)
				o.Lookup("metadata", "name")
			}
		})
	}
	wait.Wait()
}

const typical = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"annotations":{"example.com/note":"a note"},"creationTimestamp":"2024-05-06T07:08:09Z","generation":3,"labels":{"app":"web","tier":"front"},` +
	`"managedFields":[{"apiVersion":"example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{".":{},"f:replicas":{},"f:template":{"f:name":{}}}},"manager":"kubectl","operation":"Update","time":"2024-05-06T07:08:09Z"}],` +
	`"name":"web-1","namespace":"default","uid":"9c1b7a3e-2d51-4c9a-8f1b-0a3a8d1f7f11"},"spec":{"replicas":3,"template":{"name":"a"}},"status":{"ready":true}}`

func TestAllocations(t *testing.T) {
	raw, buffer := []byte(typical), make([]byte, 0, 4096)
	o := parse(t, typical)
	version := strconv.Itoa(123456)
	for name, c := range map[string]struct {
		most float64
		f    func()
	}{
		"FromJSON": {1, func() {
			if _, err := FromJSON(raw); err != nil {
				t.Error(err)
			}
		}},
		"SetResourceVersion and AppendJSON": {0, func() {
			c := *o
			c.SetResourceVersion(version)
			c.AppendJSON(buffer)
		}},
		"SetSelfLink to nothing": {0, func() { o.SetSelfLink("") }},
		"names":                  {0, func() { _, _, _, _ = o.GetName(), o.GetNamespace(), o.GetUID(), o.GetGeneration() }},
		"kind":                   {0, func() { _ = o.GroupVersionKind() }},
		"DeepCopy":               {1, func() { o.DeepCopy() }},
		"Lookup":                 {0, func() { o.Lookup("spec", "template", "name") }},
		"labels":                 {2, func() { o.GetLabels() }},
	} {
		if got := testing.AllocsPerRun(100, c.f); got > c.most {
			t.Errorf("%s: %v allocations, at most %v are expected", name, got, c.most)
		}
	}
}

func FuzzObject(f *testing.F) {
	for _, seed := range []string{typical, `{}`, `{"metadata":{}}`, `{"metadata":null}`, `{"kind":"K"}`, `[`, `{"a":"\u003c\\","metadata":{"finalizers":["a"]}}`, `{"a":[}`, `{"metadata":{"finalizers":[}]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		exercise(data)
		doc, err := jsondoc.Parse(data, jsondoc.Limits{})
		if err != nil || doc.Kind(jsondoc.Root) != jsondoc.Object {
			return
		}
		defer doc.Release()
		canonical := doc.AppendCanonical(nil, jsondoc.Root)
		exercise(canonical)
		o, err := FromJSON(canonical)
		if err != nil {
			if strings.Contains(err.Error(), "canonical") {
				t.Fatalf("%s: %v", canonical, err)
			}
			return
		}
		if got := o.AppendJSON(nil); !bytes.Equal(got, canonical) {
			t.Fatalf("got  %s\nwant %s", got, canonical)
		}
		o.SetResourceVersion("1")
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: "g", Version: "v", Kind: "K"})
		o.SetMember("spec", []byte(`{}`))
		changed := parse(t, string(o.JSON()))
		if changed.GetResourceVersion() != "1" || changed.Kind() != "K" || string(changed.Member("spec")) != "{}" {
			t.Fatalf("changes are lost: %s", changed.JSON())
		}
		o.SetName("n")
		if parse(t, string(o.JSON())).GetName() != "n" {
			t.Fatalf("the name is lost: %s", o.JSON())
		}
	})
}

// exercise calls everything, whatever the bytes are.
func exercise(data []byte) {
	o, err := FromJSON(data)
	if err != nil {
		return
	}
	gather(o)
	o.decodedMeta()
	o.Lookup("metadata", "labels", "x")
	o.Member("spec")
	o.SetResourceVersion("1")
	o.AppendJSON(nil)
	o.SetLabels(map[string]string{"a": "b"})
	o.SetGroupVersionKind(schema.GroupVersionKind{})
	o.AppendJSON(nil)
}

func BenchmarkFromJSON(b *testing.B) {
	b.SetBytes(int64(len(typical)))
	raw := []byte(typical)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromJSON(raw); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoadAndAppend(b *testing.B) {
	raw, buffer := []byte(typical), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		o, err := FromJSON(raw)
		if err != nil {
			b.Fatal(err)
		}
		o.SetResourceVersion("123456")
		buffer = o.AppendJSON(buffer[:0])
	}
}

func BenchmarkChangeMetadata(b *testing.B) {
	raw, buffer := []byte(typical), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		o, err := FromJSON(raw)
		if err != nil {
			b.Fatal(err)
		}
		o.SetGeneration(7)
		buffer = o.AppendJSON(buffer[:0])
	}
}
