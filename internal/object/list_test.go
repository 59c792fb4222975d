package object

import (
	"bytes"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
)

// TestListIsWrittenAsUpstreamWritesIt fills both kinds of lists as the storage
// of k8s.io/apiserver does.
func TestListIsWrittenAsUpstreamWritesIt(t *testing.T) {
	gvk := schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "WidgetList"}
	three := int64(3)
	for _, c := range []struct {
		next      string
		remaining *int64
		items     []string
	}{
		{"", nil, nil},
		{"", nil, []string{`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a"}}`}},
		{"next<", &three, []string{`{"kind":"Widget"}`, `{"kind":"Widget","spec":{"a":"\u003c"}}`}},
	} {
		ours, theirs := &List{}, &unstructured.UnstructuredList{}
		ours.SetGroupVersionKind(gvk)
		theirs.SetGroupVersionKind(gvk)
		for _, item := range c.items {
			ours.Items = append(ours.Items, *parse(t, item))
			u := unstructured.Unstructured{}
			if err := u.UnmarshalJSON([]byte(item)); err != nil {
				t.Fatal(err)
			}
			theirs.Items = append(theirs.Items, u)
		}
		for _, list := range []runtime.Object{ours, theirs} {
			m, err := meta.ListAccessor(list)
			if err != nil {
				t.Fatal(err)
			}
			m.SetResourceVersion("42")
			m.SetContinue(c.next)
			m.SetRemainingItemCount(c.remaining)
		}
		for _, options := range []serializer.SerializerOptions{{}, {StreamingCollectionsEncoding: true}} {
			var want bytes.Buffer
			if err := serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, nil, nil, options).Encode(theirs, &want); err != nil {
				t.Fatal(err)
			}
			if got := string(ours.AppendJSON(nil)) + "\n"; got != want.String() {
				t.Errorf("got  %swant %s", got, &want)
			}
		}
	}
}

func TestListWorksWithReflection(t *testing.T) {
	l := &List{}
	if !meta.IsListType(l) || meta.LenList(l) != 0 {
		t.Error("an empty list is none")
	}
	if meta.IsListType(&Object{}) {
		t.Error("an object is taken for a list")
	}
	a, b := parse(t, `{"metadata":{"name":"a"}}`), parse(t, `{"metadata":{"name":"b"}}`)
	if err := meta.SetList(l, []runtime.Object{a, b}); err != nil {
		t.Fatal(err)
	}
	if p, err := meta.GetItemsPtr(l); err != nil || p.(*[]Object) != &l.Items {
		t.Errorf("items are %T: %v", p, err)
	}
	items, err := meta.ExtractList(l)
	if err != nil || len(items) != 2 || items[1].(*Object).GetName() != "b" {
		t.Errorf("items are %v: %v", items, err)
	}
	names := ""
	if err := meta.EachListItem(l, func(o runtime.Object) error { names += o.(*Object).GetName(); return nil }); err != nil || names != "ab" {
		t.Errorf("names are %s: %v", names, err)
	}
	accessor, err := meta.ListAccessor(l)
	if err != nil {
		t.Fatal(err)
	}
	accessor.SetContinue("c")
	c := l.DeepCopyObject().(*List)
	c.Items[0].SetName("z")
	c.SetContinue("d")
	if l.Continue != "c" || l.Items[0].GetName() != "a" {
		t.Error("changing the copy has changed the list")
	}
	if got := string((&List{}).AppendJSON(nil)); got != `{"items":[]}` {
		t.Errorf("an empty list is %s", got)
	}
}
