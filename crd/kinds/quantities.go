package kinds

import (
	"bytes"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/espalier-dev/espalier/internal/quantities"
)

// LongQuantity returns the error of a long quantity in an object, or of one with a large
// exponent. Where quantities are depends on the types, in JSON as in protobuf, and only the
// decoder of a type knows. So data with such numbers is decoded a first time without them:
// as a quantity, what takes their place is an error that is found at once. What decode
// reads must not be used, except to find the error: all offsets are those of data, unless
// that is YAML.
//
// No error is left to the data itself: patches are not decoded in the order of their text,
// and reading the number may take minutes.
func LongQuantity(data []byte, decode func(short []byte) error) error {
	if bytes.HasPrefix(data, protobufPrefix) {
		return longBinary(data, decode)
	}
	if masked := withoutTokens(data); masked != nil {
		return decode(masked)
	}
	return nil
}

// longBinary is [LongQuantity] for protobuf, which is decoded in the order of its bytes.
func longBinary(data []byte, decode func(short []byte) error) error {
	if masked := withoutBinary(data); masked != nil {
		if err := decode(masked); err != nil {
			return err
		}
	}
	short := withExponents(data)
	if short == nil {
		return nil
	}
	err := decode(short)
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

// withExponents returns a copy of data in which long numbers have a negative exponent after
// their first digit, nil if there are none.
func withExponents(data []byte) []byte {
	if len(data) <= quantities.MaxLength {
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
		if end-start > quantities.MaxLength {
			if changed == nil {
				changed = bytes.Clone(data)
			}
			number := changed[start:end]
			for i := range number {
				if number[i] == '.' {
					number[i] = '0'
				}
			}
			number[1], number[2] = 'e', '-' // as a float that is 0: no parser of JSON refuses it
		}
		at = end
	}
	return changed
}

// parseQuantity reads a quantity.
func parseQuantity(s string) (resource.Quantity, error) {
	if len(s) > quantities.MaxLength || quantities.Costly(s) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(s)
}

// compareQuantities compares quantities. What is none is less than all.
func compareQuantities(a, b string) int {
	x, errX := parseQuantity(a)
	y, errY := parseQuantity(b)
	if errX != nil || errY != nil {
		return strings.Compare(a, b)
	}
	return x.Cmp(y)
}
