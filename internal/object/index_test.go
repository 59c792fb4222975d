package object

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

const indexedJSON = `{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"spec":{"a":1},"status":{}}`

// indexed is an object with an index, all of whose values have the types of a schema.
func indexed(t *testing.T) *Object {
	t.Helper()
	o := parse(t, indexedJSON)
	d, err := jsondoc.Parse(o.JSON(), jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	o.SetIndex(d, "types", "form")
	return o
}

// TestIndexFollowsChanges: an object has an index as long as one of its bytes is known.
func TestIndexFollowsChanges(t *testing.T) {
	for _, c := range []struct {
		name          string
		change        func(*Object)
		known         bool
		typed, normal any
	}{
		{"no change", func(*Object) {}, true, "types", "form"},
		{"labels", func(o *Object) { o.SetLabels(map[string]string{"a": "b"}) }, false, nil, "form"},
		{"labels, settled", func(o *Object) { o.SetLabels(map[string]string{"a": "b"}); o.Settle() }, true, "types", "form"},
		{"resourceVersion", func(o *Object) { o.SetResourceVersion("7") }, false, nil, "form"},
		{"kind", func(o *Object) { o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "L"}) }, false, nil, nil},
		{"kind, settled", func(o *Object) { o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "L"}); o.Settle() }, false, nil, nil},
		{"kind and spec", func(o *Object) {
			o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "L"})
			o.SetMember("spec", []byte(`{}`))
		}, false, nil, nil},
		{"spec while it is of another kind", func(o *Object) {
			o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "L"})
			o.SetMember("spec", []byte(`{}`))
			o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "K"})
		}, false, nil, nil},
		{"spec", func(o *Object) { o.SetMember("spec", []byte(`{"b":"c"}`)) }, true, nil, nil},
		{"no status", func(o *Object) { o.SetMember("status", nil) }, true, "types", nil},
		{"a number that canonical JSON changes", func(o *Object) { o.SetMember("spec", []byte(`-0`)) }, false, nil, nil},
		{"an index of other bytes", func(o *Object) {
			d, _ := jsondoc.Parse([]byte(indexedJSON), jsondoc.Limits{})
			o.SetIndex(d, "types", "form")
		}, false, nil, nil},
		{"spec after an index of other bytes", func(o *Object) {
			d, _ := jsondoc.Parse([]byte(indexedJSON), jsondoc.Limits{})
			o.SetIndex(d, "types", "form")
			o.SetMember("spec", []byte(`{}`))
		}, false, nil, nil},
		{"no index", func(o *Object) { o.SetIndex(nil, "types", "form") }, false, nil, nil},
		{"spec without an index", func(o *Object) { o.SetIndex(nil, "types", "form"); o.SetMember("spec", []byte(`{}`)) }, false, nil, nil},
		{"source", func(o *Object) { o.SetSource([]byte(`{}`)) }, false, nil, nil},
		{"what is there already", func(o *Object) {
			o.SetName("n")
			o.SetNamespace("")
			o.SetGenerateName("")
			o.SetUID("")
			o.SetResourceVersion("")
			o.SetGeneration(0)
			o.SetLabels(nil)
			o.SetAnnotations(nil)
			o.SetFinalizers(nil)
			o.SetOwnerReferences(nil)
			o.SetManagedFields(nil)
			o.SetDeletionTimestamp(nil)
			o.SetDeletionGracePeriodSeconds(nil)
			o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "K"})
			o.SetMember("other", nil)
			o.SetMember("kind", []byte(`"L"`))
		}, true, "types", "form"},
		{"no source", func(o *Object) { o.SetSource(nil) }, true, "types", "form"},
		{"source and none", func(o *Object) { o.SetSource([]byte(`{}`)); o.SetSource(nil) }, false, nil, nil},
	} {
		o := indexed(t)
		c.change(o)
		d, typed := o.Index()
		if (d != nil) != c.known || typed != c.typed || o.Normal() != c.normal {
			t.Errorf("%s: known %v, types %v, form %v", c.name, d != nil, typed, o.Normal())
		}
		if d != nil && string(d.Raw(jsondoc.Root)) != string(o.JSON()) {
			t.Errorf("%s: the index is of %s, the object is %s", c.name, d.Raw(jsondoc.Root), o.JSON())
		}
	}
	o := parse(t, indexedJSON)
	if d, typed := o.Index(); d != nil || typed != nil || o.Normal() != nil {
		t.Error("an object has an index that was given none")
	}
}

func TestReplaceMemberKeepsTheStamp(t *testing.T) {
	o := parse(t, indexedJSON)
	o.SetStamp("form")
	o.ReplaceMember("spec", []byte(`{"b":2}`))
	o.ReplaceMember("other", nil)
	o.ReplaceMember("status", nil)
	o.ReplaceMember("kind", []byte(`"L"`))
	same(t, o, `{"apiVersion":"v1","kind":"K","metadata":{"name":"n"},"spec":{"b":2}}`)
	if o.Stamp() != "form" {
		t.Errorf("the stamp is %v", o.Stamp())
	}
}

// TestReadMetadata: fields are found before, at and after the name.
func TestReadMetadata(t *testing.T) {
	o := parse(t, `{"metadata":{"labels":{},"name":"n","namespace":"s","uid":"u"}}`)
	for name, want := range map[string]string{"annotations": "", "labels": "{}", "name": `"n"`, "namespace": `"s"`, "resourceVersion": "", "uid": `"u"`} {
		if got := string(o.ReadMetadata(name)); got != want {
			t.Errorf("%s is %s", name, got)
		}
	}
}

// TestMetadataAlone: managed fields, which are large, are left out.
func TestMetadataAlone(t *testing.T) {
	o := parse(t, `{"kind":"K","metadata":{"labels":{"a":"b"},"managedFields":[{"manager":"m"}],"name":"n"},"spec":{}}`)
	o.SetResourceVersion("7")
	if got, want := string(o.Metadata()), `{"metadata":{"labels":{"a":"b"},"name":"n","resourceVersion":"7"}}`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestKeysAreComparedByWhatTheyMean: U+2028 is written as an escape, and comes after all letters of ASCII.
func TestKeysAreComparedByWhatTheyMean(t *testing.T) {
	o := parse(t, `{"]":1,"spec":{"a\tb":3},"\u2028":2}`)
	same(t, o, `{"]":1,"spec":{"a\tb":3},"\u2028":2}`)
	if got := string(o.Lookup("spec", "a\tb")); got != "3" {
		t.Errorf("the value of a name with a tab is %s", got)
	}
}

// TestSizeIsAboutThatOfTheJSON: caches count what objects take, without encoding them.
func TestSizeIsAboutThatOfTheJSON(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		change func(*Object)
		above  int
	}{
		"unchanged":       {func(*Object) {}, 40},
		"resourceVersion": {func(o *Object) { o.SetResourceVersion(long) }, 40},
		"kind":            {func(o *Object) { o.SetGroupVersionKind(schema.GroupVersionKind{Version: long, Kind: long}) }, 100},
		"managed fields": {func(o *Object) {
			o.SetManagedFields([]metav1.ManagedFieldsEntry{
				{Manager: "m", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:` + long + `":{}}`)},
				{Manager: "n", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:` + long + `":{}}`)},
			})
		}, 1100},
	} {
		o := parse(t, indexedJSON)
		c.change(o)
		if size, is := o.Size(), len(o.JSON()); size < is || size > is+c.above {
			t.Errorf("%s: about %d bytes, the JSON has %d", name, size, is)
		}
	}
}

func TestLookup(t *testing.T) {
	o := parse(t, `{"kind":"K","metadata":{"labels":{"a\"b":"c"},"name":"n"},"n":1,"spec":{"a":{"b":[1]},"s":"{}"}}`)
	for path, want := range map[string]string{
		"spec": `{"a":{"b":[1]},"s":"{}"}`, "spec a": `{"b":[1]}`, "spec a b": `[1]`, "spec a b c": "", "spec x": "", "spec x y": "",
		"n": "1", "n a": "", "spec s x": "", "metadata name": `"n"`, `metadata labels a"b`: `"c"`, "kind": `"K"`, "other": "",
	} {
		if got := string(o.Lookup(strings.Fields(path)...)); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	o.SetName("m")
	o.SetGroupVersionKind(schema.GroupVersionKind{Version: "v2", Kind: "L"})
	if name, kind := o.Lookup("metadata", "name"), o.Lookup("kind"); string(name) != `"m"` || string(kind) != `"L"` {
		t.Errorf("after a change: %s, %s", name, kind)
	}
	if got := string(o.Lookup()); got != string(o.JSON()) {
		t.Errorf("the whole object is %s", got)
	}
}

func TestErrorsNameTheFieldOfMetadata(t *testing.T) {
	for src, want := range map[string]string{
		`{"metadata":{"name":1}}`:            "metadata.name is not a string",
		`{"metadata":{"labels":[]}}`:         "metadata.labels is not an object",
		`{"metadata":{"generation":"1"}}`:    "metadata.generation is not a number",
		`{"metadata":{"resourceVersion":1}}`: "metadata.resourceVersion is not a string",
	} {
		if _, err := FromJSON([]byte(src)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", src, err, want)
		}
	}
}

// What a schema has checked does not hold for another kind, or another version of it.
func TestAnotherKindHasNoStamp(t *testing.T) {
	for _, c := range []struct {
		gvk  schema.GroupVersionKind
		kept bool
	}{
		{schema.GroupVersionKind{Version: "v1", Kind: "K"}, true},
		{schema.GroupVersionKind{Version: "v2", Kind: "K"}, false},
		{schema.GroupVersionKind{Version: "v1", Kind: "L"}, false},
		{schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, false},
	} {
		o := parse(t, indexedJSON)
		o.SetStamp("form")
		o.GetObjectKind().SetGroupVersionKind(c.gvk)
		if kept := o.Stamp() == "form"; kept != c.kept || o.GroupVersionKind() != c.gvk {
			t.Errorf("%v: stamp %v, kind %v", c.gvk, o.Stamp(), o.GroupVersionKind())
		}
	}
}

// Control characters are escaped where a member is looked up by its name.
func TestLookupOfControlCharacters(t *testing.T) {
	o := parse(t, `{"spec":{"a\u0001b":1,"c\u003cd":2}}`)
	for name, want := range map[string]string{"a\x01b": "1", "c<d": "2"} {
		if got := string(o.Lookup("spec", name)); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}
