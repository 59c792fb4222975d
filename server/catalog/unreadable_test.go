package catalog_test

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/catalog/catalogtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// plain stores objects as the JSON that they are.
type plain struct{}

func (plain) Identifier() runtime.Identifier { return "plain" }

func (plain) Encode(o runtime.Object, w io.Writer) error {
	_, err := w.Write(o.(*object.Object).JSON())
	return err
}

func (plain) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, err := object.FromJSON(slices.Clone(data))
	if err != nil {
		return nil, nil, err
	}
	gvk := o.GroupVersionKind()
	if into, ok := into.(*object.Object); ok {
		*into = *o
		return into, &gvk, nil
	}
	return o, &gvk, nil
}

// site is a storage as the server has it, and etcd below it.
type site struct {
	storage storage.Interface
	etcd    *clientv3.Client
	prefix  string
}

func openSite(t *testing.T) *site {
	t.Helper()
	s := &site{}
	s.etcd, s.prefix = etcdtest.Client(t)
	b, err := store.Open(t.Context(), store.Config{Config: storagebackend.Config{
		Prefix: s.prefix, Transport: storagebackend.TransportConfig{ServerList: []string{etcdtest.Endpoint(t)}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var destroy func()
	s.storage, destroy, err = b.Storage(store.Spec{
		Resource:       schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		ResourcePrefix: catalog.Key, Codec: plain{}, Version: "v1",
		NewFunc:     func() runtime.Object { return &object.Object{} },
		NewListFunc: func() runtime.Object { return &object.List{} },
		KeyFunc:     func(o runtime.Object) (string, error) { return catalog.Key + "/" + o.(*object.Object).GetName(), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		destroy()
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// put writes any value, and returns its revision.
func (s *site) put(t *testing.T, name, value string) uint64 {
	t.Helper()
	answer, err := s.etcd.Put(t.Context(), s.prefix+catalog.Key+"/"+name, value)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(answer.Header.Revision)
}

func (s *site) delete(t *testing.T, name string) uint64 {
	t.Helper()
	answer, err := s.etcd.Delete(t.Context(), s.prefix+catalog.Key+"/"+name)
	if err != nil {
		t.Fatal(err)
	}
	return uint64(answer.Header.Revision)
}

func unknown(c *catalog.Catalog) (names []string) {
	for _, u := range c.Unknown() {
		names = append(names, u.Name)
	}
	return names
}

// damaged are values that no CRD can be made of. The last can be decoded, and is no CRD.
var damaged = map[string]string{
	"garbage": "garbage", "nothing": "", "half": `{"apiVersion":"apiextensions.k8s.io/v1","kind":"Cust`, "encrypted": "k8s:enc:secretbox:v1:key:x",
	"another kind": `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"widgets.example.com"}}`,
}

// A CRD that becomes unreadable stays as it was to a process that knew it, at the new
// revision; a process that starts later knows that it does not know it.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for what, value := range damaged {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := openSite(t)
			good := catalogtest.CRD("widgets", "example.com")
			s.put(t, "widgets.example.com", good)
			s.put(t, "others.example.com", catalogtest.CRD("others", "example.com"))
			c := start(t, s.storage)
			j := newJournal()
			c.Subscribe(j.tell)
			at := s.put(t, "widgets.example.com", value)
			seeRevision(t, c, at)
			e := c.Resource("example.com", "widgets")
			if e == nil || e.Revision != at || e.ResourceVersion != fmt.Sprint(at) || e.UID != "uid-of-widgets" || len(e.Versions) != 1 {
				t.Fatalf("the entry is %+v, not that of before at %d", e, at)
			}
			if c.UnknownResource("example.com", "widgets") != nil || len(c.Unknown()) > 0 {
				t.Errorf("unknown: %v", unknown(c))
			}

			late := start(t, s.storage)
			if late.Resource("example.com", "widgets") != nil || late.Resource("example.com", "others") == nil {
				t.Errorf("a catalog that starts later has %d entries", late.Len())
			}
			u := late.UnknownResource("example.com", "widgets")
			if u == nil || u.Revision != at || !strings.Contains(u.Error(), "the CustomResourceDefinition widgets.example.com is in etcd and cannot be read") {
				t.Fatalf("unknown: %v", u)
			}
			if late.UnknownGroup("example.com") != u || late.UnknownGroup("example.org") != nil || late.UnknownResource("example.com", "others") != nil {
				t.Errorf("unknown: %v", unknown(late))
			}
			at = s.put(t, "widgets.example.com", good)
			for _, c := range []*catalog.Catalog{c, late} {
				seeRevision(t, c, at)
				if e := c.Resource("example.com", "widgets"); e == nil || e.Revision != at || len(c.Unknown()) > 0 {
					t.Errorf("after repair: %+v, unknown %v", e, unknown(c))
				}
			}
			// It is gone when its key is, whatever was there.
			s.put(t, "widgets.example.com", value)
			at = s.delete(t, "widgets.example.com")
			for _, c := range []*catalog.Catalog{c, late} {
				seeRevision(t, c, at)
				for deadline := time.Now().Add(time.Minute); c.Len() != 1 && time.Now().Before(deadline); {
					time.Sleep(10 * time.Millisecond)
				}
				if c.Len() != 1 || len(c.Unknown()) > 0 {
					t.Errorf("after deletion: %d entries, unknown %v", c.Len(), unknown(c))
				}
			}
			j.check(t, c)
		})
	}
}

// A list does not show what a CRD was immediately before it became unreadable: another
// schema may have been acknowledged in between. Nothing is served by the old one.
func TestDamagedBehindTheBack(t *testing.T) {
	t.Parallel()
	s := openSite(t)
	s.put(t, "widgets.example.com", catalogtest.CRD("widgets", "example.com"))
	s.put(t, "kept.example.com", catalogtest.CRD("kept", "example.com"))
	barrier := &cut{Interface: s.storage}
	c := start(t, barrier)
	kept := s.put(t, "kept.example.com", "garbage")
	seeRevision(t, c, kept)
	barrier.barred.Store(true)
	barrier.end()
	s.put(t, "widgets.example.com", strings.Replace(catalogtest.CRD("widgets", "example.com"), `"string"`, `"integer"`, 1))
	at := s.put(t, "widgets.example.com", "garbage")
	seeRevision(t, c, at) // by a list
	barrier.barred.Store(false)
	if got := unknown(c); !slices.Equal(got, []string{"widgets.example.com"}) {
		t.Errorf("unknown: %v", got)
	}
	if e := c.Get("kept.example.com"); e == nil || e.Revision != kept {
		t.Errorf("what was followed is %+v", e)
	}
}
