package builtin

import (
	"bytes"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// maxQuantity is the number of digits from which quantities are not read. The library
// takes quadratic time: 400,000 digits take seconds, and every rule that compares the
// quantity reads it again.
const maxQuantity = 4096

// boundedQuantities is a serializer whose decoders refuse long quantities. Where they
// are depends on the types, in JSON as in protobuf, and only the decoder of a type
// knows. So data with long numbers is decoded twice, first with exponents for most of
// their digits: as a quantity, that is an error that is found at once.
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
	short := withExponents(data)
	if short == nil {
		return nil
	}
	if into != nil {
		into = reflect.New(reflect.TypeOf(into).Elem()).Interface().(runtime.Object)
	}
	_, _, err := d.Decoder.Decode(short, defaults, into)
	if err == nil {
		return nil
	}
	for _, known := range []error{resource.ErrFormatWrong, resource.ErrNumeric, resource.ErrSuffix} {
		if strings.Contains(err.Error(), known.Error()) {
			return err
		}
	}
	return nil // decoding the data itself tells
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

// withExponents returns a copy of data in which long numbers have an exponent after their
// first digit, nil if there are none.
func withExponents(data []byte) []byte {
	if len(data) <= maxQuantity {
		return nil
	}
	var changed []byte
	for at := 0; at < len(data); {
		start := bytes.IndexAny(data[at:], "0123456789")
		if start < 0 {
			break
		}
		start += at
		end := start
		for end < len(data) && (data[end] >= '0' && data[end] <= '9' || data[end] == '.') {
			end++
		}
		if end-start > maxQuantity {
			if changed == nil {
				changed = bytes.Clone(data)
			}
			number := changed[start:end]
			for i := range number {
				if number[i] == '.' {
					number[i] = '0'
				}
			}
			number[1] = 'e'
		}
		at = end
	}
	return changed
}
