package jsondoc

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// appendUnquoted appends the value of a string given the valid bytes between
// its quotes. Lone surrogates and invalid UTF-8 become U+FFFD.
func appendUnquoted(dst, raw []byte) []byte {
	for i := 0; i < len(raw); {
		switch c := raw[i]; {
		case c == '\\':
			var r rune
			switch raw[i+1] {
			case 'b':
				r = '\b'
			case 'f':
				r = '\f'
			case 'n':
				r = '\n'
			case 'r':
				r = '\r'
			case 't':
				r = '\t'
			case 'u':
				r = hex4(raw[i+2:])
				i += 4
				if utf16.IsSurrogate(r) {
					low := rune(-1)
					if i+3 < len(raw) && raw[i+2] == '\\' && raw[i+3] == 'u' {
						low = hex4(raw[i+4:])
					}
					if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
						i += 6
					}
				}
			default:
				r = rune(raw[i+1])
			}
			dst = utf8.AppendRune(dst, r)
			i += 2
		case c < utf8.RuneSelf:
			dst = append(dst, c)
			i++
		default:
			r, n := utf8.DecodeRune(raw[i:])
			dst = utf8.AppendRune(dst, r)
			i += n
		}
	}
	return dst
}

// Unquote returns the value of a string given its valid JSON.
func Unquote(raw []byte) string {
	var short [64]byte // most strings fit, and then only the result is allocated
	return string(appendUnquoted(short[:0], raw[1:len(raw)-1]))
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a canonical JSON string.
func AppendString[T string | []byte](dst []byte, s T) []byte {
	dst = append(dst, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&' {
				i++
				continue
			}
			dst = append(dst, s[from:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\b':
				dst = append(dst, '\\', 'b')
			case '\f':
				dst = append(dst, '\\', 'f')
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
			}
			i++
			from = i
			continue
		}
		n := min(len(s)-i, utf8.UTFMax)
		r, size := utf8.DecodeRuneInString(string(s[i : i+n]))
		switch {
		case r == utf8.RuneError && size == 1:
			dst = append(dst, s[from:i]...)
			dst = append(dst, `\ufffd`...)
		case r == '\u2028' || r == '\u2029':
			dst = append(dst, s[from:i]...)
			dst = append(dst, `\u202`...)
			dst = append(dst, hexDigits[r&15])
		default:
			i += size
			continue
		}
		i += size
		from = i
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// AppendFloat appends f as encoding/json does: the shortest form that reads
// back, without exponent between 1e-6 and 1e21.
func AppendFloat(dst []byte, f float64) []byte {
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	dst = strconv.AppendFloat(dst, f, format, -1, 64)
	if n := len(dst); format == 'e' && n >= 4 && dst[n-4] == 'e' && dst[n-3] == '-' && dst[n-2] == '0' {
		dst[n-2] = dst[n-1] // e-09 is written e-9
		dst = dst[:n-1]
	}
	return dst
}

// AppendCanonical appends the canonical form of v.
func (d *Doc) AppendCanonical(dst []byte, v Value) []byte {
	start := d.tape[v].off
	if cap(dst) == 0 {
		size := int(d.tape[v].end - start) // a part of a document, not the room for all of it
		dst = make([]byte, 0, size+size/8)
	}
	w := Writer{doc: d, src: d.src, buf: dst}
	w.from, w.to = start, start
	w.Value(v)
	w.flush()
	return w.buf
}

// appendScalar appends the canonical form of a scalar that is not canonical.
func (d *Doc) appendScalar(dst []byte, v Value) []byte {
	if d.Kind(v) == Number {
		if n, ok := d.Int64(v); ok {
			return strconv.AppendInt(dst, n, 10)
		}
		return AppendFloat(dst, d.Float64(v))
	}
	return d.appendQuoted(dst, &d.tape[v])
}

// appendQuoted appends the canonical form of a string or key.
func (d *Doc) appendQuoted(dst []byte, n *node) []byte {
	raw := d.src[n.off+1 : n.end-1]
	if n.info&escaped == 0 {
		return AppendString(dst, raw)
	}
	return AppendString(dst, appendUnquoted(nil, raw))
}

// Any returns v as upstream's decoder would: map[string]any, []any, string,
// bool, int64, float64 or nil.
func (d *Doc) Any(v Value) any {
	switch d.Kind(v) {
	case False:
		return false
	case True:
		return true
	case Number:
		if n, ok := d.Int64(v); ok {
			return n
		}
		return d.Float64(v)
	case String:
		return d.Text(v)
	case Array:
		list := make([]any, 0, d.tape[v].info>>countShift)
		for _, c := range d.Items(v) {
			list = append(list, d.Any(c))
		}
		return list
	case Object:
		m := make(map[string]any, d.tape[v].info>>countShift)
		end := d.Next(v)
		for k := v + 1; k < end; k = d.Next(k + 1) {
			m[string(d.Key(k))] = d.Any(k + 1) // a later duplicate replaces an earlier one
		}
		return m
	}
	return nil
}

// AppendAny appends the canonical form of a Go value: for the types that Any
// returns by itself, for all others through encoding/json.
func AppendAny(dst []byte, x any) ([]byte, error) {
	var err error
	switch x := x.(type) {
	case nil:
		return append(dst, "null"...), nil
	case bool:
		return strconv.AppendBool(dst, x), nil
	case int64:
		return strconv.AppendInt(dst, x, 10), nil
	case string:
		return AppendString(dst, x), nil
	case []any:
		if x == nil {
			return append(dst, "null"...), nil
		}
		dst = append(dst, '[')
		for i, item := range x {
			if i > 0 {
				dst = append(dst, ',')
			}
			if dst, err = AppendAny(dst, item); err != nil {
				return dst, err
			}
		}
		return append(dst, ']'), nil
	case map[string]any:
		if x == nil {
			return append(dst, "null"...), nil
		}
		keys := make([]string, 0, len(x))
		for k := range x {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		dst = append(dst, '{')
		for i, k := range keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendString(dst, k)
			dst = append(dst, ':')
			if dst, err = AppendAny(dst, x[k]); err != nil {
				return dst, err
			}
		}
		return append(dst, '}'), nil
	}
	b, err := json.Marshal(x) // float64 too: it refuses infinities
	return append(dst, b...), err
}
