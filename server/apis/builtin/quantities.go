package builtin

import (
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// boundedQuantities is a serializer whose decoders refuse long quantities.
type boundedQuantities struct{ runtime.NegotiatedSerializer }

// DecoderToVersion implements runtime.NegotiatedSerializer.
func (s boundedQuantities) DecoderToVersion(d runtime.Decoder, gv runtime.GroupVersioner) runtime.Decoder {
	return quantityDecoder{s.NegotiatedSerializer.DecoderToVersion(d, gv)}
}

type quantityDecoder struct{ runtime.Decoder }

// Decode implements runtime.Decoder.
func (d quantityDecoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	if err := d.check(data, defaults, into); err != nil {
		return nil, nil, err
	}
	return d.Decoder.Decode(data, defaults, into)
}

// check returns the error of a long quantity.
func (d quantityDecoder) check(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) error {
	if into != nil {
		into = reflect.New(reflect.TypeOf(into).Elem()).Interface().(runtime.Object)
	}
	return kinds.LongQuantity(data, func(short []byte) error {
		_, _, err := d.Decoder.Decode(short, defaults, into)
		if runtime.IsStrictDecodingError(err) {
			return nil // the object could be read, and decoding the data itself tells what is unknown
		}
		return err
	})
}

// checkPatch returns a function that refuses apply and strategic merge patches with long
// quantities: both look like the object, and are not decoded by the serializer.
func (r *Resources) checkPatch(kind schema.GroupVersionKind) func([]byte) error {
	d := quantityDecoder{r.codecs.UniversalDeserializer()}
	return func(patch []byte) error {
		if err := d.check(patch, &kind, nil); err != nil {
			return apierrors.NewBadRequest(err.Error())
		}
		return nil
	}
}
