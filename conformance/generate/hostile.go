package generate

// Raw JSON texts that programs get wrong. All of them are syntactically right.
var (
	oddNumbers = []string{
		"0", "-0", "-0.0", "0.0", "1.0", "1.50", "1e3", "1E3", "1e+3", "1e-3", "10e-1", "0.1e-7", "0.000001", "0.0000001", "1e20", "1e21", "1e22", "123456789e12",
		"9007199254740991", "9007199254740992", "9007199254740993", "-9007199254740993", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"-9223372036854775809", "18446744073709551615", "18446744073709551616", "4294967296", "2147483648", "-2147483649", "1e400", "-1e400", "1e-400", "1e308", "1.7976931348623157e308",
		"1.7976931348623159e308", "5e-324", "2e-324", "4.9406564584124654e-324", "0.1", "0.30000000000000004", "3.141592653589793238462643383279", "100000000000000000000000000000000000000000",
		"0.00000000000000000000000000000000000000000000000000000000000001", "12345678901234567890123456789012345678901234567890.5", "1e00000000000000000001", "1e-00000000000000000001",
		"1.0e0", "-1", "-1.5", "33.0", "1e5", "100000000000000000000", "999999999999999999999", "1000000000000000000000", "123e-20", "-1e-7",
	}
	oddStrings = []string{
		`""`, `"\u0000"`, `"a\u0000b"`, `"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\ud83dx"`, `"\uD83D\u0041"`, `"\ud800\ud800\udc00"`, "\"\xff\"", "\"a\xc3\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"",
		"\"\xc0\x80\"", "\"\xe2\x80\xa8\"", "\"\xe2\x80\xa9\"", `"\u2028\u2029"`, `"<script>&amp;</script>"`, `"\u003c\u003e\u0026"`, "\"\x7f\"", `"\u007f"`, "\"\xef\xbb\xbf\"", `"\ufeff"`, "\"\xf0\x9f\x8d\x90\"",
		`"\"\\\/\b\f\n\r\t"`, `"/"`, `"\/"`, `"\u002f"`, `"\u000a"`, `"\u001f"`, `"\u0022\u005c"`, `"\ufffd"`, "\"\xef\xbf\xbd\"", "\"\xef\xbf\xbf\"", `"\uffff"`, "\"\xcc\x88u\"", `"é"`, `"\u00e9"`, `"\u00E9"`,
		`"null"`, `"true"`, `"1"`, `"~"`, `" "`, `"a b"`, `"'"`, `"\u0061"`, `"${x}"`, `"{{ .x }}"`, "\"\xf8\x88\x80\x80\x80\"", `"\\u0041"`,
	}
	oddKeys = []string{
		`""`, `"\u0000"`, `"\ud800"`, "\"\xff\"", "\"\xfe\"", `"\ufffd"`, "\"a\xc3\"", `"a.b"`, `"a[0]"`, `"a/b"`, `"a\/b"`, `"a\"b"`, `"a\\b"`, `"<&>"`, `"\u003c&>"`, "\"\xe2\x80\xa8\"", `"\u2028"`, `"é"`, `"e\u0301"`,
		`"apiVersion"`, `"kind"`, `"metadata"`, `"spec"`, `"status"`, `"items"`, `"Metadata"`, `"__proto__"`, `"$patch"`, `"\u006detadata"`, `"\u0061"`, `"a"`, `"\t"`, `" "`, "\"\x7f\"", `"0"`, `"-1"`,
		`"kubernetes.io/metadata.name"`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`,
	}
	strangeKeys = []string{`"unknown"`, `"extra"`, `"metadata"`, `"kind"`, `"apiVersion"`, `"replicass"`, `"x"`, `"name"`, `"spec"`, `"labels"`, `"value"`, `"a"`}
)

// wrong writes a value that does not fit, in one of many ways.
func (w *writer) wrong(n *node, share, depth int) {
	if w.mode == Breach {
		w.breach(w.resolved(n), share, depth)
		return
	}
	if w.mode == Near {
		switch w.n(6) {
		case 0, 1:
			w.raw("null")
		case 2:
			w.junk(2)
		case 3:
			w.text(0, 30)
		case 4:
			w.raw([]string{"{}", "[]", `""`, "0"}[w.n(4)])
		default:
			w.plain(n, share, depth)
		}
		return
	}
	switch w.n(14) {
	case 0, 1, 2:
		w.raw("null")
	case 3, 4:
		w.raw(w.of(oddNumbers))
	case 5, 6:
		w.raw(w.of(oddStrings))
	case 7, 8:
		w.junk(4)
	case 9:
		w.raw([]string{"{}", "[]", `""`, "false", "[null]", "[[]]", "[{}]", "[null,null]", "{\"a\":null}"}[w.n(9)])
	case 10:
		// the value in an array, or the items of an array without it
		if n.kind == arrayKind && n.items != nil {
			w.plain(n.items, share, depth)
		} else {
			w.dst = append(w.dst, '[')
			w.plain(n, share, depth+1)
			w.dst = append(w.dst, ']')
		}
	case 11:
		w.odd(share)
	case 12:
		w.deep()
	default:
		w.plain(n, share, depth)
	}
}

// odd writes a longer string made of oddities.
func (w *writer) odd(share int) {
	w.dst = append(w.dst, '"')
	for range 1 + w.n(min(max(share/20, 1), 12)) {
		s := w.of(oddStrings)
		w.raw(s[1 : len(s)-1])
		w.raw(w.of(syllables))
	}
	w.dst = append(w.dst, '"')
}

// deep writes nesting: usually some dozens of levels, once in a long while around the limit of 10,000.
func (w *writer) deep() {
	levels := 3 + w.n(60)
	if w.one(400) {
		levels = 9990 + w.n(14)
	}
	object := w.one(2)
	for range levels {
		if object {
			w.raw(`{"a":`)
		} else {
			w.raw("[")
		}
	}
	w.raw([]string{"null", "1", "{}", `"x"`}[w.n(4)])
	for range levels {
		if object {
			w.raw("}")
		} else {
			w.raw("]")
		}
	}
}

// junk writes any value.
func (w *writer) junk(depth int) {
	pick := w.n(10)
	if depth <= 0 && pick < 4 {
		pick += 4
	}
	switch pick {
	case 0, 1:
		w.dst = append(w.dst, '{')
		for i := range w.n(4) {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			if w.mode == Hostile && w.one(2) {
				w.raw(w.of(oddKeys))
			} else {
				w.raw(w.of(strangeKeys))
			}
			w.dst = append(w.dst, ':')
			w.junk(depth - 1)
		}
		w.dst = append(w.dst, '}')
	case 2, 3:
		w.dst = append(w.dst, '[')
		for i := range w.n(4) {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.junk(depth - 1)
		}
		w.dst = append(w.dst, ']')
	case 4:
		w.raw("null")
	case 5:
		w.raw([]string{"true", "false"}[w.n(2)])
	case 6:
		if w.mode == Hostile {
			w.raw(w.of(oddNumbers))
		} else {
			w.integer(free)
		}
	case 7:
		if w.mode == Hostile {
			w.raw(w.of(oddStrings))
		} else {
			w.text(0, 20)
		}
	default:
		w.text(0, 20)
	}
}

// document writes something whose trouble is the document as a whole.
func (w *writer) document(p *Plan, size int) {
	switch w.n(12) {
	case 0:
		w.raw([]string{"", "null", "[]", "3", `"x"`, "true", "{}", "{}{}", " ", "nul", "{", "}", "[{}]", "\x00", "-", "{\"a\"}", "{\"a\":1,}", "[1,]", "{,}", "{\"kind\":01}", "{'a':1}",
			"{\"a\":.5}", "{\"a\":1.}", "{\"a\":+1}", "{\"a\":1e}", "{\"a\":NaN}", "{\"a\":\"\\x41\"}", "{\"a\":\"\\u12g4\"}", "{\"a\":tru}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "/**/{}", "{}//"}[w.n(33)])
		return
	case 1:
		w.raw("\xef\xbb\xbf")
	case 2:
		w.raw(" \t\r\n")
	}
	w.resource(p.root, size, 0)
	body := w.dst[w.start:]
	switch w.n(8) {
	case 0: // cut short
		w.dst = w.dst[:w.start+w.n(len(body))]
	case 1:
		w.raw([]string{"}", "{}", " \n\t", ",", "\x00", "null", "x", "]", "\v", "\u00a0", "\n\n\n"}[w.n(11)])
	case 2, 3: // one byte becomes another
		body[w.n(len(body))] = "{}[]\",:\\ \x00\x1f\x0049entf\xff\n\x7f"[w.n(20)]
	case 4: // one byte less
		i := w.n(len(body))
		w.dst = append(w.dst[:w.start+i], body[i+1:]...)
	case 5: // one byte more
		i := w.n(len(body))
		w.dst = append(w.dst, 0)
		copy(w.dst[w.start+i+1:], w.dst[w.start+i:])
		w.dst[w.start+i] = "{}[]\",:\\ \x00\x1f0e-n\xff\n"[w.n(17)]
	}
}
