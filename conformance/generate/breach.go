package generate

import (
	"math"
	"strconv"
	"strings"

	"github.com/espalier-dev/espalier/conformance/tree"
)

// misfit collects values that nearly fit: numbers around the bounds, strings around the lengths, formats and patterns
// missed, neighbours of enums.
func (n *node) misfit(s *tree.Node) {
	for _, keyword := range []string{"minimum", "maximum", "multipleOf"} {
		if b, err := strconv.ParseFloat(s.Get(keyword).Literal(), 64); err == nil {
			n.misfits = append(n.misfits, around(b)...)
		}
	}
	format := s.Get("format").Text()
	switch format {
	case "int32", "float":
		n.misfits = append(n.misfits, "2147483647", "2147483648", "-2147483648", "-2147483649", "3e38", "3.5e38", "1e39", "-1e39")
	case "int64", "double":
		n.misfits = append(n.misfits, "9223372036854775807", "9223372036854775808", "-9223372036854775809", "1e300", "1.5")
	default:
		n.misfits = append(n.misfits, badFormats[strings.ReplaceAll(format, "-", "")]...)
	}
	for _, keyword := range []string{"minLength", "maxLength"} {
		if l, err := strconv.Atoi(s.Get(keyword).Literal()); err == nil && l >= 0 && l < 3000 {
			for _, c := range []string{"a", "é", "\U0001F350"} {
				n.misfits = append(n.misfits, tree.Quote(strings.Repeat(c, max(l-1, 0))), tree.Quote(strings.Repeat(c, l)), tree.Quote(strings.Repeat(c, l+1)))
			}
		}
	}
	if p := s.Get("pattern").Text(); p != "" {
		for _, raw := range matching(p, 0, 300) {
			n.misfits = append(n.misfits, raw, `" `+raw[1:], raw[:len(raw)-1]+`\n"`, raw[:len(raw)-1]+`!"`, raw[:1]+raw[min(2, len(raw)-1):])
		}
	}
	if enum := s.Get("enum"); enum != nil && enum.Kind == tree.Array {
		for _, e := range enum.Kids {
			n.misfits = append(n.misfits, neighbours(e)...)
		}
	}
}

// around returns a bound and numbers beside it, in several forms.
func around(b float64) []string {
	if math.Abs(b) > 1e15 {
		return []string{strconv.FormatFloat(b, 'g', -1, 64), strconv.FormatFloat(b, 'f', -1, 64), "9223372036854775807", "-9223372036854775808"}
	}
	var list []string
	for _, v := range []float64{math.Floor(b) - 1, math.Floor(b), b - 0.5, b, b + 0.25, math.Ceil(b), math.Ceil(b) + 1, 2 * b, 3 * b} {
		list = append(list, strconv.FormatFloat(v, 'f', -1, 64))
	}
	return append(list, strconv.FormatFloat(b, 'e', -1, 64), strconv.FormatFloat(math.Trunc(b), 'f', 1, 64), strconv.FormatFloat(math.Copysign(b, -1), 'f', 1, 64))
}

// neighbours returns values that are easily taken for one of an enum.
func neighbours(e *tree.Node) []string {
	raw := string(e.Bytes())
	switch {
	case e.Kind != tree.Scalar:
		return []string{"{}", "[]", raw, strings.ReplaceAll(raw, ".0", ""), strings.ReplaceAll(strings.ReplaceAll(raw, "1", "1.5"), "2", "2.5")}
	case strings.HasPrefix(raw, `"`) && len(raw) > 2:
		return []string{raw[:len(raw)-1] + ` "`, strings.ToLower(raw), strings.ToUpper(raw), raw[:1] + raw[2:], "65"}
	case raw == "null", raw == "true", raw == "false":
		return []string{tree.Quote(raw), "null", "0", "1"}
	}
	if v, err := strconv.ParseFloat(raw, 64); err == nil && math.Abs(v) < 1e15 {
		return append(around(v), tree.Quote(raw))
	}
	return []string{tree.Quote(raw)}
}

// breach writes a value that violates what its schema demands, or keeps it by a hair's breadth.
func (w *writer) breach(n *node, share, depth int) {
	if len(n.misfits) > 0 && !w.one(4) {
		w.raw(w.of(n.misfits))
		return
	}
	switch w.n(10) {
	case 0:
		w.raw("null")
	case 1:
		w.junk(2)
	case 2:
		w.raw([]string{"{}", "[]", `""`, "0", "1.5", "true", `"x"`, "-1", "[null]", `[""]`, `{"a":1}`}[w.n(11)])
	default:
		w.breachKind(n, share, depth)
	}
}

func (w *writer) breachKind(n *node, share, depth int) {
	switch n.kind {
	case arrayKind:
		w.breachArray(n, share, depth)
	case stringKind:
		w.raw(w.of(breachStrings))
	case integerKind, numberKind, intOrStringKind:
		w.raw(w.of(breachNumbers))
	case booleanKind:
		w.raw([]string{`"true"`, "0", "1", "true", "null"}[w.n(5)])
	case objectKind:
		if w.one(3) {
			w.raw([]string{"{}", "[]", "null", `"{}"`}[w.n(4)])
			return
		}
		w.plain(n, share, depth)
	default:
		w.plain(n, share, depth)
	}
}

// breachArray writes too many items, none, or one of them twice.
func (w *writer) breachArray(n *node, share, depth int) {
	items := n.items
	if items == nil {
		items = free
	}
	count := w.n(4)
	if n.maxItems < 40 && w.one(2) {
		count = n.maxItems + w.n(2)
	} else if n.minItems > 0 && n.minItems < 40 && w.one(2) {
		count = n.minItems - w.n(2)
	}
	w.dst = append(w.dst, '[')
	for i := range count {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		from := len(w.dst)
		w.nth = i
		w.plain(items, share/(count+1), depth+1)
		if w.one(3) {
			again := w.dst[from:]
			w.dst = append(w.dst, ',')
			w.dst = append(w.dst, again...)
		}
	}
	w.dst = append(w.dst, ']')
}

var (
	breachNumbers = []string{
		"0", "-0", "-0.0", "0.0", "-1", "1", "1.0", "2.0", "1.5", "-0.5", "100", "65", "1e3", "1.5e1", "2147483648", "-2147483649", "9007199254740993", "9223372036854775807", "9223372036854775808", "1e19", "1e300", "0.1", `"1"`, `"1.5"`, `"a"`, "-9223372036854775808",
	}
	breachStrings = []string{
		`""`, `" "`, `"a"`, `"A"`, `"a\nb"`, `"é"`, `"\ud83c\udf50"`, `"\u0000"`, `"-a"`, `"a-"`, `"a.b"`, `"a/b"`, `"1"`, `"null"`, `"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"`,
		`"2024-13-01"`, `"10.0.0.256"`, `"http://"`, `"\ufffd"`, `"Abc"`, `"abc def"`, `"0"`, `"1h"`, `"100m"`, `"1.2.3"`,
	}
	// invalidMeta are members of ObjectMeta that decode and are not valid, or look as if they were not.
	invalidMeta = []string{
		`"name":"UPPER"`, `"name":"a/b"`, `"name":".."`, `"name":""`, `"name":"a..b"`, `"name":"-a"`, `"name":"a_b"`, `"name":"` + strings.Repeat("n", 254) + `"`, `"generateName":"A-"`, `"generateName":"g-"`, `"generateName":"x/y"`,
		`"namespace":"UPPER"`, `"namespace":"a.b"`, `"namespace":"` + strings.Repeat("n", 64) + `"`, `"namespace":""`, `"generation":-1`, `"generation":0`, `"deletionGracePeriodSeconds":-1`, `"deletionTimestamp":"2020-01-01T00:00:00Z"`,
		`"labels":{"":"x"}`, `"labels":{"a b":"x"}`, `"labels":{"a":"b c"}`, `"labels":{"a/b/c":"x"}`, `"labels":{"` + strings.Repeat("l", 64) + `":"x"}`, `"labels":{"a":"` + strings.Repeat("v", 64) + `"}`, `"labels":{"UPPER/a":"x"}`,
		`"annotations":{"":"x"}`, `"annotations":{"a b":"x"}`, `"annotations":{"A/b":"x"}`, `"annotations":{"UPPER":"x"}`, `"annotations":{"/x":"y"}`,
		`"finalizers":[""]`, `"finalizers":["a b"]`, `"finalizers":["orphan","foregroundDeletion"]`, `"finalizers":["kubernetes"]`, `"finalizers":["a/b/c"]`, `"finalizers":["x.y/z"]`,
		`"ownerReferences":[{}]`, `"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u"}]`, `"ownerReferences":[{"apiVersion":"a/b/c","kind":"K","name":"n","uid":"u"}]`, `"ownerReferences":[{"apiVersion":"v1","kind":"Event","name":"n","uid":"u"}]`,
		`"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"n","uid":"u","controller":true},{"apiVersion":"v1","kind":"K","name":"m","uid":"v","controller":true}]`, `"ownerReferences":[{"apiVersion":"","kind":"","name":"","uid":""}]`,
		`"managedFields":[{"operation":"Nope"}]`, `"managedFields":[{"operation":"Update","fieldsType":"X"}]`, `"managedFields":[{"operation":"Update","manager":"` + strings.Repeat("m", 129) + `"}]`, `"managedFields":[{"operation":"Apply","subresource":"` + strings.Repeat("s", 300) + `"}]`,
		`"uid":"u"`, `"resourceVersion":"x"`, `"selfLink":"s"`, `"creationTimestamp":null`,
	}
)
