package catalogtest

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/etcd3"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// CRDStorage is a storage of CRDs with a prefix of its own.
type CRDStorage struct {
	Storage storage.Interface
	Client  *clientv3.Client
	Prefix  string
}

// Open returns the storage of CRDs below a fresh prefix.
func Open(tb testing.TB) *CRDStorage {
	tb.Helper()
	client, prefix := etcdtest.Client(tb)
	return &CRDStorage{Storage: At(tb, client, prefix), Client: client, Prefix: prefix}
}

// At returns the storage of CRDs below a prefix.
func At(tb testing.TB, client *clientv3.Client, prefix string) storage.Interface {
	tb.Helper()
	newObject := func() runtime.Object { return &object.Object{} }
	newList := func() runtime.Object { return &object.List{} }
	versioner := storage.APIObjectVersioner{}
	s, err := etcd3.New(&kubernetes.Client{Client: client, Kubernetes: kubernetes.Client{Client: client}}, nil, codec{}, newObject, newList, prefix, catalog.Key,
		schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		identity.NewEncryptCheckTransformer(), etcd3.NewDefaultLeaseManagerConfig(), etcd3.NewDefaultDecoder(codec{}, versioner), versioner)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// Create stores a CRD and returns it with its resourceVersion.
func (d *CRDStorage) Create(tb testing.TB, definition string) *object.Object {
	tb.Helper()
	o, err := object.FromJSON([]byte(definition))
	if err != nil {
		tb.Fatal(err)
	}
	out := &object.Object{}
	if err := d.Storage.Create(tb.Context(), catalog.Key+"/"+o.GetName(), o, out, 0); err != nil {
		tb.Fatal(err)
	}
	return out
}

// Update changes a CRD and returns it with its resourceVersion.
func (d *CRDStorage) Update(tb testing.TB, name string, mutate func(o *object.Object)) *object.Object {
	tb.Helper()
	out := &object.Object{}
	err := d.Storage.GuaranteedUpdate(tb.Context(), catalog.Key+"/"+name, out, false, nil,
		storage.SimpleUpdate(func(o runtime.Object) (runtime.Object, error) {
			mutate(o.(*object.Object))
			return o, nil
		}), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return out
}

// Delete removes a CRD from storage, whatever its finalizers.
func (d *CRDStorage) Delete(tb testing.TB, name string) {
	tb.Helper()
	err := d.Storage.Delete(context.WithoutCancel(tb.Context()), catalog.Key+"/"+name, &object.Object{}, nil,
		storage.ValidateAllObjectFunc, nil, storage.DeleteOptions{})
	if err != nil {
		tb.Fatal(err)
	}
}

// CRD returns a new CRD with one version, as a registry stores
// it. The kind is the plural in title case without its last letter.
func CRD(plural, group string) string {
	singular := strings.TrimSuffix(plural, "s")
	kind := strings.ToUpper(singular[:1]) + singular[1:]
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",`+
		`"metadata":{"generation":1,"name":"%[1]s.%[2]s","uid":"uid-of-%[1]s"},`+
		`"spec":{"conversion":{"strategy":"None"},"group":"%[2]s","names":{"kind":"%[4]s","listKind":"%[4]sList","plural":"%[1]s","singular":"%[3]s"},"scope":"Namespaced",`+
		`"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"a":{"type":"string"}},"type":"object"}},"type":"object"}},"served":true,"storage":true}]},`+
		`"status":{"acceptedNames":{"kind":"","plural":""},"conditions":[],"storedVersions":["v1"]}}`, plural, group, singular, kind)
}

// codec stores objects as the JSON that they are.
type codec struct{}

func (codec) Encode(o runtime.Object, w io.Writer) error {
	_, err := w.Write(o.(*object.Object).JSON())
	return err
}

func (codec) Decode(data []byte, _ *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	o, err := object.FromJSON(data)
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

func (codec) Identifier() runtime.Identifier { return "catalogtest" }
