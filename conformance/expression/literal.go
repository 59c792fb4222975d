package expression

import (
	"strconv"
	"strings"

	"github.com/google/cel-go/common/types"
)

// The values of literals and of objects. They are few, so that an expression often meets what it looks for.
var (
	ints    = []string{"0", "1", "2", "3", "5", "-1", "10", "100", "9223372036854775807", "-9223372036854775808", "4611686018427387904", "-4611686018427387905", "9007199254740993", "2147483648", "253402300800", "-62135596801", "1700000000"}
	uints   = []string{"0u", "1u", "2u", "5u", "10u", "18446744073709551615u", "9223372036854775808u"}
	doubles = []string{"0.0", "1.0", "2.5", "-0.0", "-1.5", "1e3", "1e308", "9223372036854775807.0", "9.3e18", "-9223372036854775808.0", "1.8446744073709552e19", "0.1", "3.0", "1e-320", "(0.0 / 0.0)", "(1.0 / 0.0)"}
	words   = []string{"", "a", "b", "apple", "pear-tree", "A", "é", "\U0001F333", "a b", " x ", "x\ny", "tab\t", "back\\slash", "quo'te\"", "true", "false", "1", "-7", "2.5", "10", "0x1", "null", "\u2028", "a,b,c", "a-b-c", "%d", "aaa", "ABC", "QUJD", "x=1"}
	keys    = []string{"a", "b", "apple", "a.b", "in", ""}
	urls    = []string{"https://example.com:8080/a/b?x=1&x=2&y=", "http://[::1]/p%20q", "ftp://u@h", "/rooted", "relative", "https://exämple/", "http://a?b=%zz"}
	amounts = []string{"1", "100m", "1Gi", "1.5k", "0", "-3", "1e3", "9223372036854775807", "10Ki", "0.1"}
	ips     = []string{"127.0.0.1", "10.0.0.1", "192.168.0.1", "::1", "fe80::1", "ff02::1", "2001:db8::68", "0.0.0.0", "::ffff:1.2.3.4", "2001:DB8::68", "fe80::1%en0", "010.0.0.1"}
	cidrs   = []string{"10.0.0.0/8", "10.1.2.3/16", "192.168.0.0/24", "::/0", "2001:db8::/32", "127.0.0.1/32", "10.0.0.0/33", "fe80::1/64"}
	semvers = []string{"1.2.3", "0.1.0", "v1.0.0", "1.0.0-alpha.1", "1.2.3+build", "1.2", "01.2.3", "10.20.30"}
	moments = []string{"2024-01-01T00:00:00Z", "2024-02-29T12:34:56.789Z", "1970-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "2023-10-29T02:30:00+02:00", "1969-12-31T23:59:59.999999999Z"}
	spans   = []string{"1s", "1h", "90m", "0s", "-1h", "1ms", "24h", "1ns", "2562047h47m16.854775807s", "-2562047h47m16s", "1h2m3.5s"}
	zones   = []string{"UTC", "Europe/Berlin", "America/New_York", "+02:00", "-11:30", "Asia/Kathmandu", "02:00", "Nowhere/Land", ""}
	regexps = []string{"a", "^a", "[a-z]+", "^$", "a*", "(a|b)-?", ".", "(?i)APPLE", "[0-9]+", "\\\\.", "x?", "^.{2,4}$", "é"}
	badness = []string{"(", "[", "a{2000}", "\\\\c", "(?<n>a)", "*"}
	formats = []string{"dns1123Label", "dns1123Subdomain", "dns1035Label", "qualifiedName", "labelValue", "uri", "uuid", "byte", "date", "datetime", "nothing", "dns1123LabelPrefix"}
	uuids   = []string{"3fa85f64-5717-4562-b3fc-2c963f66afa6", "2024-01-01", "https://a/b", "QUJD", "a.b/c", "-a", "a_b", "example.com"}
)

// texts are strings of every sort.
var texts = [][]string{words, words, words, urls, amounts, ips, cidrs, semvers, moments, spans, uuids}

func (g *generator) text() string { return g.pick(texts[g.IntN(len(texts))]) }

// quote writes a string as CEL does.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\x09`)
		case r == '\u2028':
			b.WriteString(`\u2028`)
		case r > 0xffff:
			b.WriteString(`\U` + strings.Repeat("0", 3) + strconv.FormatInt(int64(r), 16))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

func (g *generator) quoted(s string) string {
	switch {
	case strings.ContainsAny(s, "\\\n\t\"'\u2028") || !g.one(6):
		return quote(s)
	case g.one(3):
		return "r'" + s + "'"
	case g.one(2):
		return `"""` + s + `"""`
	}
	return `"` + s + `"`
}

// literal makes a constant, or what comes closest to one.
func (g *generator) literal(t *types.Type, depth int) (string, bool) {
	switch t.Kind() {
	case types.BoolKind:
		return g.of("true", "false"), true
	case types.IntKind:
		if g.one(2) {
			return g.of("0", "1", "2", "3"), true
		}
		return negated(g.pick(ints)), true
	case types.UintKind:
		return g.pick(uints), true
	case types.DoubleKind:
		return negated(g.pick(doubles)), true
	case types.StringKind:
		return g.quoted(g.text()), true
	case types.BytesKind:
		return g.of("b", "B") + g.of("'a'", "''", "'ABC'", `'\xff\x00'`, "'é'", `'\303\251'`, `"apple"`), true
	case types.TimestampKind:
		return "timestamp(" + quote(g.pick(moments)) + ")", true
	case types.DurationKind:
		return "duration(" + quote(g.pick(spans)) + ")", true
	case types.NullTypeKind:
		return "null", true
	case types.DynKind, types.AnyKind:
		text, _ := g.literal(plainTypes[g.IntN(10)], 0)
		return "dyn(" + text + ")", true
	case types.ListKind:
		return g.list(t, depth)
	case types.MapKind:
		return g.entries(t, depth)
	case types.TypeKind:
		if len(t.Parameters()) == 1 {
			if text, ok := g.literal(t.Parameters()[0], depth); ok {
				return "type(" + text + ")", true
			}
		}
		return g.of("int", "string", "bool", "list", "map", "double", "google.protobuf.Timestamp", "null_type", "type"), true
	}
	if isOptional(t) {
		if text, ok := g.literal(t.Parameters()[0], depth); ok && !g.one(4) {
			return g.of("optional.of(", "optional.ofNonZeroValue(") + text + ")", true
		}
		return "optional.none()", true
	}
	switch t.TypeName() {
	case "kubernetes.URL":
		return "url(" + quote(g.pick(urls)) + ")", true
	case "kubernetes.Quantity":
		return "quantity(" + quote(g.pick(amounts)) + ")", true
	case "kubernetes.Semver":
		return "semver(" + quote(g.pick(semvers)) + ")", true
	case "net.IP":
		return "ip(" + quote(g.pick(ips)) + ")", true
	case "net.CIDR":
		return "cidr(" + quote(g.pick(cidrs)) + ")", true
	case "kubernetes.NamedFormat":
		return "format." + g.pick(formats[:10]) + "()", true
	}
	return "", false
}

func negated(n string) string {
	if strings.HasPrefix(n, "-") {
		return "(" + n + ")"
	}
	return n
}

func (g *generator) list(t *types.Type, depth int) (string, bool) {
	g.use("list literal")
	var items []string
	for range g.IntN(4) {
		if depth > 0 && g.one(12) {
			g.use("optional element")
			if text, ok := g.literal(types.NewOptionalType(t.Parameters()[0]), depth-1); ok {
				items = append(items, "?"+text)
			}
			continue
		}
		text, ok := g.path(t.Parameters()[0])
		if !ok || g.one(2) {
			text, ok = g.literal(t.Parameters()[0], depth-1)
		}
		if ok {
			items = append(items, text)
		}
	}
	if len(items) > 0 && g.one(4) {
		items = append(items, items[0])
	}
	return "[" + strings.Join(items, ", ") + "]", true
}

func (g *generator) entries(t *types.Type, depth int) (string, bool) {
	g.use("map literal")
	var items []string
	for range g.IntN(4) {
		key, ok := g.literal(t.Parameters()[0], 0)
		if !ok {
			break
		}
		if t.Parameters()[0] == types.StringType && !g.one(3) {
			key = quote(g.pick(keys))
		}
		if depth > 0 && g.one(12) {
			g.use("optional entry")
			if text, ok := g.literal(types.NewOptionalType(t.Parameters()[1]), depth-1); ok {
				items = append(items, "?"+key+": "+text)
			}
			continue
		}
		if value, ok := g.literal(t.Parameters()[1], depth-1); ok {
			items = append(items, key+": "+value)
		}
	}
	return "{" + strings.Join(items, ", ") + "}", true
}

// arguments are the strings that an overload's argument is taken from in most cases: others would only fail.
var arguments = map[string]struct {
	at   int
	list []string
}{
	"matches": {1, regexps}, "matches_string": {1, regexps}, "string_find_string": {1, regexps}, "string_find_all_string": {1, regexps}, "string_find_all_string_int": {1, regexps},
	"string_to_url": {0, urls}, "is_url_string": {0, urls}, "string_to_quantity": {0, amounts}, "is_quantity_string": {0, amounts},
	"string_to_ip": {0, ips}, "is_ip": {0, ips}, "ip_is_canonical": {0, ips}, "string_to_cidr": {0, cidrs}, "is_cidr": {0, cidrs}, "cidr_contains_ip_string": {1, ips}, "cidr_contains_cidr_string": {1, cidrs},
	"string_to_semver": {0, semvers}, "string_bool_to_semver": {0, semvers}, "is_semver_string": {0, semvers}, "is_semver_string_bool": {0, semvers},
	"string_to_timestamp": {0, moments}, "string_to_duration": {0, spans}, "format-named": {0, formats}, "string_to_bool": {0, []string{"true", "false", "T", "1", "yes"}},
	"string_to_int64": {0, ints}, "string_to_uint64": {0, []string{"0", "5", "18446744073709551615", "-1"}}, "string_to_double": {0, []string{"1.5", "NaN", "Inf", "-0", "1e400", "0x1p-2"}},
	"string_split_string": {1, []string{"", "-", ",", "a", "."}}, "string_split_string_int": {1, []string{"", "-", ","}}, "string_replace_string_string": {1, []string{"", "a", "-"}},
}

// special makes arguments that must not be just any expression.
func (g *generator) special(s *signature, i int, before []string) (string, bool) {
	if a, ok := arguments[s.id]; ok && a.at == i && !g.one(3) {
		if a.at == 1 && strings.Contains("matches matches_string string_find_string string_find_all_string", s.id) {
			if !g.fine && g.one(40) {
				return "'" + g.pick(badness) + "'", true
			}
			return "'" + g.pick(regexps) + "'", true
		}
		return quote(g.pick(a.list)), true
	}
	if i == 1 && strings.HasSuffix(s.id, "tz") && !g.one(5) {
		return quote(g.pick(zones)), true
	}
	switch {
	case s.id == "lists_range": // a long list is only slow
		return g.of("0", "3", "5", "-1") + " + " + g.expr(types.IntType, 0) + " % 4", true
	case s.id == "list_flatten_int" && i == 1:
		return g.of("0", "1", "2", "-1"), true
	case s.function == "_[_]" && i == 1 && s.id == "index_list" && !g.one(3):
		return g.of("0", "1", "size("+before[0]+") - 1"), true
	case s.id == "string_format":
		return "", true // both arguments are made together
	}
	return "", false
}

// formatted makes the arguments of format.
func (g *generator) formatted(depth int) (string, string) {
	clauses := []struct {
		verb string
		t    *types.Type
	}{
		{"%s", types.StringType}, {"%d", types.IntType}, {"%f", types.DoubleType}, {"%.2f", types.DoubleType}, {"%e", types.DoubleType}, {"%x", types.IntType}, {"%X", types.StringType}, {"%o", types.IntType},
		{"%b", types.IntType}, {"%s", types.NewListType(types.IntType)}, {"%s", types.DurationType}, {"%s", types.TimestampType}, {"%s", types.NewMapType(types.StringType, types.IntType)},
		{"%d", types.UintType}, {"%s", types.BoolType}, {"%s", types.BytesType}, {"%x", types.BytesType}, {"%s", types.DoubleType}, {"%d", types.StringType}, {"%q", types.StringType}, {"%%", nil},
	}
	pattern, args := "", []string{}
	for range g.IntN(4) {
		c := clauses[g.IntN(len(clauses))]
		pattern += c.verb + g.of("", " ", "é", "-")
		if c.t != nil {
			args = append(args, "dyn("+g.expr(c.t, min(depth-1, 1))+")")
		}
	}
	return quote(pattern), "[" + strings.Join(args, ", ") + "]"
}
