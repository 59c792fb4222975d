package builtin

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/request"
)

// Archived is how the objects of a resource come from etcd into an archive, and back.
type Archived struct {
	Resource   schema.GroupResource
	Folder     string // in etcd, below the prefix
	Namespaced bool
	// Expires is that the objects expire.
	Expires bool

	stored stored
	json   runtime.Encoder
	check  func([]byte) error // of JSON from others
}

// Archived returns the resources that are stored.
func (r *Resources) Archived() ([]Archived, error) {
	info, ok := runtime.SerializerInfoForMediaType(r.codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, fmt.Errorf("there is no serializer for %s", runtime.ContentTypeJSON)
	}
	var list []Archived
	for i := range r.all {
		one := &r.all[i]
		folder, ok := one.Key()
		if !ok {
			continue
		}
		list = append(list, Archived{
			Resource: one.resource(), Folder: folder, Namespaced: one.Namespaced, Expires: one.TTL != nil,
			stored: stored{one, r.storageCodecs[one.resource()]}, json: r.codecs.EncoderForVersion(info.Serializer, one.version()),
			check: r.checkPatch(one.version().WithKind(one.Kind)),
		})
	}
	return list, nil
}

// JSON returns the JSON of an object, given as etcd has it. name is its namespace and name, as its
// key has them.
func (a *Archived) JSON(data []byte, name string) ([]byte, error) {
	obj, err := a.decode(data, name)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(a.json, obj)
}

// Stored returns what etcd has of an object, given as JSON, which may be hostile. It does not
// validate the object.
func (a *Archived) Stored(data []byte, name string) ([]byte, error) {
	if one := a.stored.one; request.KindOf(data) != one.version().WithKind(one.Kind) {
		return nil, fmt.Errorf("it is not of the kind %s in %s", one.Kind, one.version())
	}
	if err := a.check(data); err != nil {
		return nil, err
	}
	obj, err := a.decode(data, name)
	if err != nil {
		return nil, err
	}
	return runtime.Encode(a.stored.codec, obj)
}

// decode reads an object that has a name.
func (a *Archived) decode(data []byte, name string) (obj runtime.Object, err error) {
	defer func() {
		if p := recover(); p != nil { // a value that a decoder panics on must not end the process
			err = fmt.Errorf("decoding panicked: %v", p)
		}
	}()
	if obj, _, err = a.stored.codec.Decode(data, nil, nil); err != nil {
		return nil, err
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	if err := a.stored.named(m, name); err != nil {
		return nil, err
	}
	m.SetResourceVersion("")
	return obj, nil
}
