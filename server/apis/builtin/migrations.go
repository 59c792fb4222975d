package builtin

import (
	"bytes"
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// storageVersionMigrations are described by a file, as the kinds of [Data] are. The server
// itself carries them out, so that it always has them.
func storageVersionMigrations() Resource {
	for _, k := range kinds.All() {
		if k.Plural == migrations {
			return FromData(k)
		}
	}
	panic("builtin: no file describes " + migrations)
}

const migrations = "storageversionmigrations"

// Migration returns how the stored objects of a resource are rewritten, nil if there is no
// such resource.
func (r *Resources) Migration(name schema.GroupResource) *migration.Resource {
	one := r.storedAs(name)
	if one == nil {
		return nil
	}
	folder, _ := one.Key()
	m := stored{one: one, codec: r.storageCodecs[one.resource()]}
	return &migration.Resource{Resource: one.resource(), Folder: folder, Rewrite: m.rewrite, Current: m.current}
}

// storedAs returns the resource that has the objects of another, which may be an alias.
func (r *Resources) storedAs(name schema.GroupResource) *Resource {
	for i := range r.all {
		if one := &r.all[i]; one.resource() == name {
			if one.stored() {
				return one
			}
			if !one.Alias.Empty() && one.Alias != name {
				return r.storedAs(one.Alias)
			}
		}
	}
	return nil
}

// stored is how the objects of a resource are stored.
type stored struct {
	one   *Resource
	codec runtime.Codec
}

// protobufPrefix begins what Kubernetes writes as protobuf.
var protobufPrefix = []byte("k8s\x00")

// version is the apiVersion that a value says.
func (s stored) version(data []byte) (apiVersion string, binary bool) {
	if envelope, ok := bytes.CutPrefix(data, protobufPrefix); ok {
		var unknown runtime.Unknown
		if err := unknown.Unmarshal(envelope); err != nil {
			return "", true
		}
		return unknown.APIVersion, true
	}
	return request.KindOf(data).GroupVersion().String(), false
}

// current reports whether a value has the version and the encoding that the server writes.
func (s stored) current(data []byte) bool {
	version, binary := s.version(data)
	_, wanted := s.one.New().(interface{ Marshal() ([]byte, error) })
	return version == s.one.version().String() && binary == wanted
}

// named returns an error if an object is not the one of its key.
func (s stored) named(m metav1.Object, name string) error {
	is := m.GetName()
	if s.one.Namespaced {
		is = m.GetNamespace() + "/" + is
	}
	if is != name {
		return fmt.Errorf("its name is %q, which differs from the key", is)
	}
	return nil
}

func (s stored) rewrite(ctx context.Context, values []migration.Value) ([]migration.Rewritten, error) {
	results := make([]migration.Rewritten, len(values))
	for i, from := range values {
		results[i].Data, results[i].Err = s.rewriteOne(from)
		apiVersion, _ := s.version(from.Data)
		if gv, err := schema.ParseGroupVersion(apiVersion); err == nil {
			results[i].Version = gv.Version
		}
	}
	return results, ctx.Err()
}

// rewriteOne returns nil if the value is current.
func (s stored) rewriteOne(from migration.Value) (data []byte, err error) {
	defer func() {
		if p := recover(); p != nil { // a value that a decoder panics on must not end the process
			err = fmt.Errorf("decoding panicked: %v", p)
		}
	}()
	obj, _, err := s.codec.Decode(from.Data, nil, nil)
	if err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := s.named(m, from.Name); err != nil {
		return nil, err
	}
	if s.current(from.Data) {
		return nil, nil
	}
	m.SetResourceVersion("")
	return runtime.Encode(s.codec, obj)
}
