package exec

import (
	"math"
	"strconv"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// EnumKey returns what a value listed in an enum that is not all strings is
// looked up by. written is the value as it stands in the schema: a number with
// a fraction or an exponent is a float, even if it is whole.
func EnumKey(written, canonical []byte) string {
	switch c := canonical[0]; {
	case c != '-' && (c < '0' || c > '9'):
		return string(canonical)
	default:
		if _, err := strconv.ParseInt(string(written), 10, 64); err == nil {
			return string(written)
		}
		f, err := strconv.ParseFloat(string(written), 64)
		if err != nil {
			return string(canonical)
		}
		return string(appendFloatKey(nil, f))
	}
}

func appendFloatKey(b []byte, f float64) []byte {
	if f == 0 {
		f = 0 // there are two zeros, and they are equal
	}
	return strconv.AppendFloat(append(b, 'f'), f, 'g', -1, 64)
}

// enumHas reports whether an enum lists v, which is not a string.
//
// Upstream compares after converting the value to the Go type of each listed
// one: 1.5 is found in [1] and 65 in ["A"]; clusters have such objects, so they
// are found here, too, unless the schema is strict. It never finds null, even
// where null is listed; that is mended outside of junctors, where it refuses
// nothing.
func enumHas(d *jsondoc.Doc, v jsondoc.Value, a *plan.Assert, w way) bool {
	var scratch [32]byte
	if d.Kind(v) != jsondoc.Number {
		if !a.Mixed || w == literal && d.Kind(v) == jsondoc.Null {
			return false
		}
		text := d.Raw(v)
		if !d.IsCanonical(v) {
			text = d.AppendCanonical(nil, v)
		}
		return a.Names.Lookup(text) >= 0
	}
	i, isInt := wholeNumber(d, v)
	f := float64(i)
	if !isInt {
		f = d.Float64(v)
		i = truncated(f)
	}
	if w != strict && isInt && listsRune(a, i) {
		return true
	}
	if !a.Mixed {
		return false
	}
	if (isInt || w != strict) && a.Names.Lookup(strconv.AppendInt(scratch[:0], i, 10)) >= 0 {
		return true
	}
	return a.Names.Lookup(appendFloatKey(scratch[:0], f)) >= 0
}

// listsRune reports whether an enum lists the string that Go makes of an
// integer: the character of that number.
func listsRune(a *plan.Assert, i int64) bool {
	r := rune(0xFFFD)
	if i >= 0 && i <= math.MaxInt32 {
		r = rune(i)
	}
	if a.Mixed {
		return a.Names.Lookup(jsondoc.AppendString(nil, string(r))) >= 0
	}
	return a.Names.Lookup([]byte(string(r))) >= 0
}
