package builtin

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	known "k8s.io/client-go/kubernetes/scheme"
)

// counting returns the kinds of crd/kinds, and how often defaults of pods were set.
func counting() ([]Resource, *atomic.Int64) {
	var fills atomic.Int64
	all := Data()
	for i := range all {
		if all[i].Group == "" && all[i].Plural == "pods" {
			fill := all[i].Strategy.fill
			all[i].Strategy.fill = func(obj runtime.Object) bool {
				fills.Add(1)
				return fill(obj)
			}
		}
	}
	return all, &fills
}

// What this server has written is read without setting defaults again.
func TestCompleteObjectsAreReadAsTheyAre(t *testing.T) {
	all, fills := counting()
	e := start(t, all...)
	const path = "/api/v1/namespaces/default/pods"
	// A service account and limits have defaults that are computed for every object.
	e.Do("POST", path, `{"metadata":{"name":"p"},"spec":{"serviceAccountName":"a","containers":[{"name":"c","image":"i","resources":{"limits":{"cpu":"1"}}}]}}`).Is(http.StatusCreated)
	before := fills.Load()
	for range 3 {
		e.Do("GET", path+"/p", "").Is(http.StatusOK).Has("spec.restartPolicy", "Always").Has("spec.serviceAccount", "a")
	}
	if n := fills.Load() - before; n != 0 {
		t.Errorf("three reads of an object that this server has written set defaults %d times", n)
	}
	before = fills.Load()
	e.Patch("merge", path+"/p", `{"metadata":{"labels":{"a":"b"}}}`).Is(http.StatusOK)
	// Once for the patched object, once for what was written. Patches set defaults
	// of the patch before that.
	if n := fills.Load() - before; n > 3 {
		t.Errorf("a patch set defaults %d times", n)
	}
}

// What another program has written gets its defaults, however often it is read: it has
// no mark, and no mark could say that its defaults are those of this version.
func TestObjectsOfOthersGetDefaults(t *testing.T) {
	all, fills := counting()
	e := start(t, all...)
	const object = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"namespace":"default","uid":"6f8f1dc5-0b1e-4f0e-9d0c-1c1d3a0f0a01","creationTimestamp":"2026-01-01T00:00:00Z"},"spec":{"containers":[{"name":"c","image":"i"}]%s}}`
	const key, path = "/pods/default/", "/api/v1/namespaces/default/pods/"
	put := func(name string, value []byte) {
		t.Helper()
		if _, err := e.etcd.Put(t.Context(), e.prefix+key+name, string(value)); err != nil {
			t.Fatal(err)
		}
	}
	// As an etcd client has it, and as a server has it that has no defaults.
	put("json", fmt.Appendf(nil, object, "json", ""))
	codec, err := newStorageCodec(&Resources{scheme: e.resources.scheme, codecs: e.resources.codecs, complete: newComplete()}, find(e.resources.all, corev1.Resource("pods")))
	if err != nil {
		t.Fatal(err)
	}
	binary, err := runtime.Encode(codec, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "protobuf", Namespace: "default", UID: "6f8f1dc5-0b1e-4f0e-9d0c-1c1d3a0f0a02"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	put("protobuf", binary)
	for _, name := range []string{"json", "protobuf"} {
		for range 2 {
			before := fills.Load()
			e.Do("GET", path+name, "").Is(http.StatusOK).Has("spec.restartPolicy", "Always").Has("spec.dnsPolicy", "ClusterFirst").Has("spec.terminationGracePeriodSeconds", 30.0)
			if fills.Load() == before {
				t.Errorf("%s: a read set no defaults", name)
			}
		}
	}
	// The same object with other bytes is another one: one default is missing in it.
	e.Do("POST", "/api/v1/namespaces/default/pods", `{"metadata":{"name":"ours"},"spec":{"containers":[{"name":"c","image":"i"}]}}`).Is(http.StatusCreated)
	e.Do("GET", path+"ours", "").Is(http.StatusOK)
	stored, _, err := codec.Decode(e.stored(key+"ours"), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := stored.(*corev1.Pod)
	changed.Spec.SchedulerName = ""
	if binary, err = runtime.Encode(codec, changed); err != nil {
		t.Fatal(err)
	}
	put("ours", binary)
	e.Do("GET", path+"ours", "").Is(http.StatusOK).Has("spec.schedulerName", "default-scheduler")
}

// An object that was written in another version of its group gets the defaults of that
// version, also on the second read.
func TestObjectsOfOtherVersionsGetDefaults(t *testing.T) {
	e := start(t, Data()...)
	if _, err := e.etcd.Put(t.Context(), e.prefix+"/horizontalpodautoscalers/default/h",
		`{"apiVersion":"autoscaling/v1","kind":"HorizontalPodAutoscaler","metadata":{"name":"h","namespace":"default"},"spec":{"maxReplicas":3,"scaleTargetRef":{"kind":"Deployment","name":"d"}}}`); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e.Do("GET", "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers/h", "").Is(http.StatusOK).Has("spec.minReplicas", 1.0)
	}
}

// kube-apiserver stores objects of some kinds in an earlier version than it serves.
func TestObjectsOfEarlierVersions(t *testing.T) {
	e := start(t, append(Data(), storageVersionMigrations())...)
	seen := 0
	for i := range e.resources.all {
		one := &e.resources.all[i]
		version, ok := earlierVersions[schema.GroupKind{Group: one.Group, Kind: one.Kind}]
		if !ok {
			continue
		}
		seen++
		kind := schema.GroupVersionKind{Group: one.Group, Version: version, Kind: one.Kind}
		earlier, err := known.Scheme.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]bool{}
		wire(reflect.TypeOf(earlier).Elem(), "", func(field string) { fields[field] = true })
		wire(reflect.TypeOf(one.New()).Elem(), "", func(field string) {
			if !fields[field] {
				t.Errorf("%s does not have the field that is served as %s", kind, field)
			}
		})
		folder, object := "/"+one.Plural, schema.GroupVersion{Group: one.Group, Version: one.Version}.String()
		path := "/apis/" + object
		if one.Namespaced {
			folder, path = folder+"/default", path+"/namespaces/default"
		}
		path += "/" + one.Plural
		accessor := earlier.(metav1.Object)
		for name, mediaType := range map[string]string{"binary": runtime.ContentTypeProtobuf, "json": runtime.ContentTypeJSON} {
			accessor.SetName(name)
			accessor.SetUID("6f8f1dc5-0b1e-4f0e-9d0c-1c1d3a0f0a01")
			if one.Namespaced {
				accessor.SetNamespace("default")
			}
			info, _ := runtime.SerializerInfoForMediaType(known.Codecs.SupportedMediaTypes(), mediaType)
			data, err := runtime.Encode(known.Codecs.EncoderForVersion(info.Serializer, kind.GroupVersion()), earlier)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.etcd.Put(t.Context(), e.prefix+folder+"/"+name, string(data)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				e.Do("GET", path+"/"+name, "").Is(http.StatusOK).Has("apiVersion", object).Has("metadata.name", name)
			}
		}
		e.Do("GET", path, "").Is(http.StatusOK).Has("items.0.metadata.name", "binary").Has("items.1.metadata.name", "json")
		e.Do("DELETE", path+"/json", "").Is(http.StatusOK)
	}
	if seen != len(earlierVersions) {
		t.Errorf("%d kinds have earlier versions, not %d", seen, len(earlierVersions))
	}
}

// wire calls yield with what JSON and protobuf depend on in the fields of a type.
func wire(t reflect.Type, path string, yield func(string)) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		wire(t.Elem(), path+"*", yield)
	case reflect.Map:
		wire(t.Elem(), path+"["+t.Key().Kind().String()+"]", yield)
	case reflect.Struct:
		if !strings.HasPrefix(t.PkgPath(), "k8s.io/api/") {
			yield(path + " " + t.String()) // shared by all versions
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			wire(f.Type, path+"."+f.Tag.Get("json")+"("+f.Tag.Get("protobuf")+")", yield)
		}
	default:
		yield(path + " " + t.Kind().String())
	}
}

// Bytes that say no kind can be those of two kinds: one has all defaults, the other none.
func TestObjectsWithoutKindGetDefaults(t *testing.T) {
	e := start(t, Data()...)
	for _, plural := range []string{"limitranges", "pods"} {
		if _, err := e.etcd.Put(t.Context(), e.prefix+"/"+plural+"/default/x", `{"metadata":{"name":"x","namespace":"default"}}`); err != nil {
			t.Fatal(err)
		}
	}
	e.Do("GET", "/api/v1/namespaces/default/limitranges/x", "").Is(http.StatusOK)
	e.Do("GET", "/api/v1/namespaces/default/pods/x", "").Is(http.StatusOK).Has("spec.restartPolicy", "Always")
}

// complete is used by all requests at once. It forgets, and never confuses.
func TestCompleteIsExact(t *testing.T) {
	c := newComplete()
	if c.has(c.sum(nil, []byte("none"))) {
		t.Error("an empty one knows something")
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 4 * completeSlots {
				known, unknown := fmt.Appendf(nil, "known %d", i), fmt.Appendf(nil, "unknown %d %d", worker, i)
				c.add(c.sum(nil, known))
				if c.has(c.sum(nil, unknown)) {
					t.Errorf("%s is known", unknown)
				}
			}
		})
	}
	group.Wait()
	last := c.sum(nil, []byte("last"))
	c.add(last)
	if !c.has(last) {
		t.Error("the last one is forgotten")
	}
}
