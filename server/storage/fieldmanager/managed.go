package fieldmanager

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// maxManaged is the most fields that all managers of an object together may have in a
// request, one of them at most MaxFields. structured-merge-diff decodes fields that are
// not sorted in quadratic time: 150,000 take 17 s of CPU, which the end of the request
// does not stop.
const maxManaged = 4 * MaxFields

// CheckedSerializer is a serializer whose decoders drop the managed fields of objects
// that have more than that: the request counts as one that does not mention them, and
// those of the stored object stay. It is not refused, because a patch of a large object
// that is stored already brings them without the client's doing. Handlers decode every
// write with it, but for strategic merge patches, see [CheckManaged]. An object below 80
// KB costs a comparison.
func CheckedSerializer(s runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return checkedSerializer{s}
}

type checkedSerializer struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s checkedSerializer) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return checkedDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

type checkedDecoder struct{ runtime.Decoder }

// Decode implements runtime.Decoder. An object may come with an error, about unknown
// fields, that handlers take for a warning.
func (d checkedDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := d.Decoder.Decode(data, defaults, into)
	if obj == nil || len(data) < 4*MaxFields {
		return obj, gvk, err
	}
	if checkManaged(obj) != nil {
		if accessor, _ := meta.Accessor(obj); accessor != nil {
			accessor.SetManagedFields(nil)
		}
	}
	return obj, gvk, err
}

// checkManaged returns an error for an object with too many managed fields.
func checkManaged(obj runtime.Object) error {
	if o, ok := obj.(*object.Object); ok {
		return checkManagedIn(o.JSON())
	}
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return nil // it has no metadata
	}
	var sum managedSum
	for i, m := range accessor.GetManagedFields() {
		raw := m.FieldsV1.GetRawBytes()
		if len(raw) < MaxFields {
			continue
		}
		doc, err := jsondoc.Parse(raw, jsondoc.Limits{})
		if err != nil {
			continue // the field manager takes no notice of it either
		}
		var of size
		of.countIn(doc, jsondoc.Root, 1)
		doc.Release()
		if err := sum.add(i, of.fields); err != nil {
			return err
		}
	}
	return nil
}

// CheckManaged refuses a strategic merge patch with too many managed fields: it
// replaces those of the object.
func CheckManaged(patch []byte) error {
	if err := checkManagedIn(patch); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func checkManagedIn(data []byte) error {
	if len(data) < 4*MaxFields {
		return nil
	}
	doc, err := jsondoc.Parse(data, jsondoc.Limits{})
	if err != nil {
		return nil // the decoder has the words for it
	}
	defer doc.Release()
	metadata, ok := doc.Get(jsondoc.Root, "metadata")
	if !ok {
		return nil
	}
	managed, ok := doc.Get(metadata, "managedFields")
	if !ok || doc.Kind(managed) != jsondoc.Array {
		return nil
	}
	var sum managedSum
	i := 0
	for item, end := managed+1, doc.Next(managed); item < end; item = doc.Next(item) {
		var of size
		of.countIn(doc, item, 1)
		if err := sum.add(i, of.fields); err != nil {
			return err
		}
		i++
	}
	return nil
}

// DropUnreadable removes managed fields that cannot be decoded from a new object, as the field
// manager does. Otherwise the handlers warn that admission has changed them.
func DropUnreadable(o *object.Object) {
	if o.ReadMetadata("managedFields") != nil && managedfields.ValidateManagedFields(o.GetManagedFields()) != nil {
		o.SetManagedFields(nil)
	}
}

// managedSum counts the fields of all managers.
type managedSum int

func (s *managedSum) add(manager, n int) error {
	*s += managedSum(n)
	if n > MaxFields || *s > maxManaged {
		return fmt.Errorf("metadata.managedFields has too many fields, %d up to its item %d: at most %d of one manager and %d of all are accepted; leave managedFields out of the request",
			int(*s), manager, MaxFields, maxManaged)
	}
	return nil
}
