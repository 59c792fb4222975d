package exec

import (
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Upstream compares an enum's values and an object's as Go values, in which the
// integer 2 and the float 2 differ, also within lists and objects. So every
// listed value has a key that tells the two apart, and a value is looked up by
// the key of what it is when it is read from storage: there 2.0 is the integer 2.

// reading is how the numbers of a document are read.
type reading uint8

const (
	// stored reads a number as it comes back from storage: whole numbers that
	// fit are integers, and there is one zero.
	stored reading = iota
	// written reads a number as upstream's decoder does: with a fraction or an
	// exponent it is a float. Both float zeros are one.
	written
	// exact is written, with two float zeros.
	exact
)

// EnumText returns a value of an enum as JSON that upstream's decoder reads as
// the same Go value: canonical, but for floats, which stay floats. written is
// the value as it stands in the schema, canonical its canonical form.
func EnumText(written, canonical []byte) string {
	switch canonical[0] {
	case '"', 't', 'f', 'n':
		return string(canonical)
	}
	return rewritten(written, exact)
}

// EnumKey returns what a value of an enum is looked up by, given its text, in an
// enum that is not all strings.
func EnumKey(text string) string { return enumKey(text, written) }

// StrictEnumKey is EnumKey for schemas that compare numbers as JSON Schema does:
// 2.0 is 2.
func StrictEnumKey(text string) string { return enumKey(text, stored) }

func enumKey(text string, r reading) string {
	switch text[0] {
	case '"', 't', 'f', 'n':
		return text
	}
	return rewritten([]byte(text), r)
}

func rewritten(text []byte, r reading) string {
	d, err := jsondoc.Parse(text, jsondoc.Limits{MaxDepth: 1 << 20})
	if err != nil {
		return string(text) // no enum has such a value: the schema has been parsed
	}
	defer d.Release()
	return string(appendRead(nil, d, jsondoc.Root, r))
}

// appendRead appends v as canonical JSON, but for its numbers, whose text tells
// what they are read as.
func appendRead(b []byte, d *jsondoc.Doc, v jsondoc.Value, r reading) []byte {
	switch d.Kind(v) {
	case jsondoc.Number:
		return appendNumber(b, d, v, r)
	case jsondoc.Array:
		b = append(b, '[')
		end := d.Next(v)
		for c := v + 1; c < end; c = d.Next(c) {
			if c > v+1 {
				b = append(b, ',')
			}
			b = appendRead(b, d, c, r)
		}
		return append(b, ']')
	case jsondoc.Object:
		b = append(b, '{')
		keys := d.SortedKeys(v)
		for i := range keys.Len() {
			k, _ := keys.At(i)
			if i > 0 {
				b = append(b, ',')
			}
			b = append(jsondoc.AppendString(b, d.Key(k)), ':')
			b = appendRead(b, d, k+1, r)
		}
		keys.Release()
		return append(b, '}')
	}
	return d.AppendCanonical(b, v)
}

func appendNumber(b []byte, d *jsondoc.Doc, v jsondoc.Value, r reading) []byte {
	i, isInt := d.Int64(v)
	if r == stored {
		i, isInt = wholeNumber(d, v)
	}
	switch f := d.Float64(v); {
	case isInt:
		return strconv.AppendInt(b, i, 10)
	case r == exact:
		return appendFloat(b, f)
	default:
		return appendFloatKey(b, f)
	}
}

// appendFloat appends a float so that it reads back as one.
func appendFloat(b []byte, f float64) []byte {
	b = jsondoc.AppendFloat(b, f)
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		b = append(b, ".0"...)
	}
	return b
}

func appendFloatKey(b []byte, f float64) []byte {
	if f == 0 {
		f = 0 // there are two zeros, and they are equal
	}
	return appendFloat(b, f)
}

// enumHas reports whether an enum lists v, which is not a string. buf is
// scratch memory.
//
// Upstream compares after converting the value to the Go type of each listed
// one: 1.5 is found in [1] and 65 in ["A"]; clusters have such objects, so they
// are found here, too, unless the schema is strict. It never finds null, even
// where null is listed; that is fixed here outside logical keywords, where
// accepting more cannot make another value invalid.
func enumHas(d *jsondoc.Doc, v jsondoc.Value, a *plan.Assert, w way, r reading, buf *[]byte) bool {
	var scratch [32]byte
	switch kind := d.Kind(v); {
	case kind == jsondoc.Number:
	case !a.Mixed || w == literal && kind == jsondoc.Null:
		return false
	case kind < jsondoc.Array:
		return a.Names.Lookup(d.Raw(v)) >= 0
	default:
		*buf = appendRead((*buf)[:0], d, v, r)
		return a.Names.Lookup(*buf) >= 0
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
	var text [utf8.UTFMax]byte
	name := utf8.AppendRune(text[:0], r)
	if a.Mixed {
		var quoted [16]byte
		name = jsondoc.AppendString(quoted[:0], name)
	}
	return a.Names.Lookup(name) >= 0
}
