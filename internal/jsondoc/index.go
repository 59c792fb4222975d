package jsondoc

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strconv"
	"unicode/utf8"
)

// frame is an open container while indexing.
type frame struct {
	at    uint32 // its place on the tape
	dirt  uint32 // Doc-wide count of non-canonical spots when it was opened
	key   uint32 // objects: place of the latest key; 0 before the first
	count uint32 // children so far
}

// bytesPerNode is how many bytes of a document there are to a tape entry, on
// the high side. A tape that is shorter is likely to have to grow, and growing
// step by step costs more than counting first.
const bytesPerNode = 16

// countNodes returns how many tape entries src needs at most: each key and
// value follows one of these bytes, or starts the document.
func countNodes(src []byte) int {
	n := 1
	for _, c := range []byte("{[,:") {
		n += bytes.Count(src, []byte{c})
	}
	return min(n, len(src)/2+1) // no more, however many are inside strings
}

// index builds the tape in one pass over the source. Every spot that keeps
// the bytes from being canonical adds to dirt; a container during which dirt
// did not grow is canonical.
//
// It is one function because the state (position, tape, open container) has to
// stay in registers: split into methods it runs at half the speed.
func (d *Doc) index(maxDepth int) error {
	src := d.src
	if cap(d.tape) < len(src)/bytesPerNode {
		d.tape = make([]node, 0, countNodes(src))
	}
	tape, stack := d.tape[:0], d.stack[:0]
	d.text, d.keys, d.order = d.text[:0], d.keys[:0], d.order[:0]
	d.negativeZero = false
	var (
		i    int
		dirt uint32
		open frame // the innermost container
		in   byte  // its opening bracket, 0 at the outermost level
		info uint32
		end  int
		c    byte
		err  error
	)

value:
	if i < len(src) && src[i] <= ' ' {
		i = skipSpace(src, i)
		dirt++
	}
	if i >= len(src) {
		err = errorEOF(src)
		goto fail
	}
	switch c = src[i]; c {
	case '"':
		end, info, err = scanString(src, i)
		if err != nil {
			goto fail
		}
		if info&recode != 0 {
			dirt++
		}
		info |= uint32(String)
	case '{', '[':
		if len(stack) >= maxDepth {
			err = &SyntaxError{i, "nested deeper than the limit of " + strconv.Itoa(maxDepth)}
			goto fail
		}
		stack = append(stack, open)
		open = frame{at: uint32(len(tape)), dirt: dirt}
		tape = append(tape, node{off: uint32(i)})
		in = c
		i++
		if i < len(src) && src[i] <= ' ' {
			i = skipSpace(src, i)
			dirt++
		}
		if c == '[' {
			if i < len(src) && src[i] == ']' {
				goto closing
			}
			goto value
		}
		if i < len(src) && src[i] == '}' {
			goto closing
		}
		goto key
	case 't', 'f', 'n':
		end, info = scanLiteral(src, i)
		if end == 0 {
			err = errorAt(src, i, "looking for a value")
			goto fail
		}
	default:
		end, info, err = scanNumber(src, i)
		if err != nil {
			goto fail
		}
		if info&recode != 0 {
			dirt++
			d.negativeZero = d.negativeZero || isNegativeZero(src[i:end])
		}
		info |= uint32(Number)
	}
	tape = append(tape, node{off: uint32(i), end: uint32(end), next: uint32(len(tape) + 1), info: info})
	i = end

after:
	if in == 0 {
		goto finish
	}
	open.count++
	if i < len(src) && src[i] <= ' ' {
		i = skipSpace(src, i)
		dirt++
	}
	if i >= len(src) {
		err = errorEOF(src)
		goto fail
	}
	switch c = src[i]; {
	case c == ',':
		i++
		if in == '[' {
			goto value
		}
		if i < len(src) && src[i] <= ' ' {
			i = skipSpace(src, i)
			dirt++
		}
		goto key
	case c == in+2: // the closing bracket of '{' and '[' is two after it in ASCII
		goto closing
	}
	err = errorAt(src, i, "after a value; a comma or the end of its container was expected")
	goto fail

key:
	if i >= len(src) || src[i] != '"' {
		err = errorAt(src, i, "looking for a key")
		goto fail
	}
	end, info, err = scanString(src, i)
	if err != nil {
		goto fail
	}
	if info&recode != 0 {
		dirt++
	}
	tape = append(tape, node{off: uint32(i), end: uint32(end), info: info | uint32(String) | key})
	if info&escaped != 0 {
		tape[len(tape)-1].next = d.decodeKey(src[i+1 : end-1])
	}
	if open.key != 0 && tape[open.at].info&unsorted == 0 {
		prev := &tape[open.key]
		// The first bytes decide nearly always; an empty key has its quote there, and is the least.
		if info&escaped != 0 || prev.info&escaped != 0 || src[prev.off+1] >= src[i+1] || end-i == 2 {
			d.tape = tape
			if bytes.Compare(d.Key(Value(open.key)), d.Key(Value(len(tape)-1))) >= 0 {
				tape[open.at].info |= unsorted
				dirt++
			}
		}
	}
	open.key = uint32(len(tape) - 1)
	i = end
	if i < len(src) && src[i] <= ' ' {
		i = skipSpace(src, i)
		dirt++
	}
	if i >= len(src) || src[i] != ':' {
		err = errorAt(src, i, "after a key; a colon was expected")
		goto fail
	}
	i++
	goto value

closing:
	i++
	{
		n := &tape[open.at]
		n.end = uint32(i)
		n.next = uint32(len(tape))
		n.info |= min(open.count, countMax) << countShift
		if in == '{' {
			n.info |= uint32(Object)
		} else {
			n.info |= uint32(Array)
		}
		if dirt == open.dirt {
			n.info |= canonical
		}
	}
	open = stack[len(stack)-1]
	stack = stack[:len(stack)-1]
	in = 0
	if len(stack) > 0 {
		// The opening byte tells an object from an array while it is open.
		in = src[tape[open.at].off]
	}
	goto after

finish:
	if i < len(src) {
		i = skipSpace(src, i)
	}
	if i < len(src) {
		err = errorAt(src, i, "after the end of the document")
		goto fail
	}
	d.tape, d.stack = tape, stack
	return nil

fail:
	d.tape, d.stack = tape, stack
	return err
}

// decodeKey stores the decoded form of a key written with escapes.
func (d *Doc) decodeKey(raw []byte) uint32 {
	from := len(d.text)
	d.text = appendUnquoted(d.text, raw)
	d.keys = append(d.keys, span{uint32(from), uint32(len(d.text))})
	return uint32(len(d.keys) - 1)
}

func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\t' || src[i] == '\r') {
		i++
	}
	return i
}

func errorEOF(src []byte) error {
	return &SyntaxError{len(src), "unexpected end of the document"}
}

func errorAt(src []byte, i int, where string) error {
	if i >= len(src) {
		return errorEOF(src)
	}
	return &SyntaxError{i, "unexpected " + strconv.QuoteRuneToASCII(firstRune(src[i:])) + " " + where}
}

func firstRune(b []byte) rune {
	r, _ := utf8.DecodeRune(b)
	return r
}

// scanLiteral returns the end of true, false or null, or 0.
func scanLiteral(src []byte, i int) (int, uint32) {
	switch rest := src[i:]; {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		return i + 4, uint32(True)
	case len(rest) >= 4 && string(rest[:4]) == "null":
		return i + 4, uint32(Null)
	case len(rest) >= 5 && string(rest[:5]) == "false":
		return i + 5, uint32(False)
	}
	return 0, 0
}

// scanNumber returns the end of the number at i and whether its canonical
// form differs from its bytes.
func scanNumber(src []byte, i int) (end int, info uint32, err error) {
	start := i
	if src[i] == '-' {
		i++
	}
	digits := i
	for i < len(src) && src[i]-'0' <= 9 {
		i++
	}
	switch n := i - digits; {
	case n == 0:
		if digits > start {
			return 0, 0, errorAt(src, i, "in a number; a digit was expected")
		}
		return 0, 0, errorAt(src, i, "looking for a value")
	case src[digits] == '0' && n > 1:
		return 0, 0, errorAt(src, digits+1, "after a leading zero")
	}
	integer := true
	if i < len(src) && src[i] == '.' {
		integer = false
		i++
		from := i
		for i < len(src) && src[i]-'0' <= 9 {
			i++
		}
		if i == from {
			return 0, 0, errorAt(src, i, "after a decimal point; a digit was expected")
		}
	}
	if i < len(src) && src[i]|0x20 == 'e' {
		integer = false
		i++
		if i < len(src) && (src[i] == '+' || src[i] == '-') {
			i++
		}
		from := i
		for i < len(src) && src[i]-'0' <= 9 {
			i++
		}
		if i == from {
			return 0, 0, errorAt(src, i, "in an exponent; a digit was expected")
		}
	}
	if integer && i-digits <= 18 && (src[digits] != '0' || digits == start) {
		return i, 0, nil
	}
	err = checkNumber(src, start, i, &info)
	return i, info, err
}

// checkNumber finds out for a number that is not plainly a small integer
// whether it is finite, and whether it is written canonically.
func checkNumber(src []byte, start, end int, info *uint32) error {
	raw := src[start:end]
	var buf [32]byte
	if n, ok := parseInt(raw); ok {
		if !bytes.Equal(strconv.AppendInt(buf[:0], n, 10), raw) {
			*info = recode
		}
		return nil
	}
	f, err := strconv.ParseFloat(view(raw), 64)
	if err != nil || math.IsInf(f, 0) {
		return &SyntaxError{start, "the number is out of the range of a 64-bit float"}
	}
	if !bytes.Equal(AppendFloat(buf[:0], f), raw) {
		*info = recode
	}
	return nil
}

// isNegativeZero reports whether a number, valid and not canonical, is the float
// -0. The integer is written without fraction and exponent.
func isNegativeZero(raw []byte) bool {
	if _, integer := parseInt(raw); raw[0] != '-' || integer {
		return false
	}
	f, _ := strconv.ParseFloat(view(raw), 64)
	return f == 0
}

const (
	ones  = 0x0101010101010101
	highs = 0x8080808080808080
)

// special marks, with their high bits, the bytes of x that need a look: quotes,
// backslashes, control characters, all beyond ASCII, and < > & which
// encoding/json escapes. A byte that is looked for becomes 0 and borrows into
// its high bit. Borrowing may mark bytes after it, too, but the first mark is
// always right.
func special(x uint64) uint64 {
	return (((x | 0x04*ones) ^ '&'*ones - ones) | // '"' | 4 == '&'
		((x | 0x02*ones) ^ '>'*ones - ones) | // '<' | 2 == '>'
		(x ^ '\\'*ones - ones) | (x - 0x20*ones) | x) & highs
}

// scanString returns the end of the string whose opening quote is at i.
func scanString(src []byte, i int) (end int, info uint32, err error) {
	i++
	for {
		// Eight bytes at a time while nothing in them needs a look.
		for i+8 <= len(src) {
			if m := special(binary.LittleEndian.Uint64(src[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		if i >= len(src) {
			return 0, 0, errorEOF(src)
		}
		switch c := src[i]; {
		case c == '"':
			return i + 1, info, nil
		case c == '\\':
			n, canon := scanEscape(src[i:])
			if n == 0 {
				if i+1 >= len(src) {
					return 0, 0, errorEOF(src)
				}
				return 0, 0, &SyntaxError{i, "invalid escape in a string"}
			}
			info |= escaped
			if !canon {
				info |= recode
			}
			i += n
		case c < ' ':
			return 0, 0, &SyntaxError{i, "control character " + strconv.QuoteRuneToASCII(rune(c)) + " in a string"}
		case c == '<' || c == '>' || c == '&':
			info |= recode
			i++
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(src[i:])
			if r == utf8.RuneError && n == 1 {
				info |= escaped | recode
			} else if r == '\u2028' || r == '\u2029' {
				info |= recode
			}
			i += n
		}
	}
}

// scanEscape returns the length of the escape sequence at the start of b, 0
// if it is none, and whether it is the one that encoding/json would write.
func scanEscape(b []byte) (n int, canon bool) {
	if len(b) < 2 {
		return 0, false
	}
	switch b[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		return 2, true
	case '/':
		return 2, false
	case 'u':
		r := hex4(b[2:])
		if r < 0 {
			return 0, false
		}
		return 6, escapedByEncoder(r) && lowerHex(b[2:6])
	}
	return 0, false
}

// escapedByEncoder reports whether encoding/json writes r as \uXXXX.
func escapedByEncoder(r rune) bool {
	switch r {
	case '\b', '\f', '\n', '\r', '\t':
		return false
	case '<', '>', '&', '\u2028', '\u2029':
		return true
	}
	return r < ' '
}

func lowerHex(b []byte) bool {
	for _, c := range b {
		if 'A' <= c && c <= 'F' {
			return false
		}
	}
	return true
}

// hex4 decodes four hexadecimal digits; -1 if they are not.
func hex4(b []byte) rune {
	if len(b) < 4 {
		return -1
	}
	var r rune
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}
