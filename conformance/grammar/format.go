package grammar

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Formats are the formats of strings that the reference knows.
var Formats = []string{
	"bsonobjectid", "uri", "email", "hostname", "ipv4", "ipv6", "cidr", "mac", "uuid", "uuid3", "uuid4", "uuid5", "isbn", "isbn10", "isbn13",
	"creditcard", "ssn", "hexcolor", "rgbcolor", "byte", "password", "date", "duration", "datetime", "k8s-short-name", "k8s-long-name",
}

// The classes of a text for a format.
const (
	Valid    = "valid"     // of the format's grammar
	NearMiss = "near miss" // a valid one changed in one place, or one of a list of traps
	Garbage  = "garbage"   // of another format, or of none
)

// otherFormats are names that stand for numbers, that have dashes elsewhere, or that are unknown.
var otherFormats = []string{"int32", "int64", "float", "double", "date-time", "bson-object-id", "uu-id", "binary", "regex", "Date", "int-32", "iso-8601", "ip", "", "hex-color", "i-p-v-4", "k8sshortname", "quantity"}

// ownFormat is the name of a format, mostly one of the type.
func (d *Dice) ownFormat(t string) string {
	switch {
	case d.one(8):
		return `"` + d.of(otherFormats) + `"`
	case t == "integer" || t == "number":
		return d.of([]string{`"int32"`, `"int64"`, `"float"`, `"double"`, `"int32"`, `"float"`})
	}
	return `"` + d.of(Formats) + `"`
}

// Format returns a text for a format, and its class.
func (d *Dice) Format(name string) (text, class string) {
	f, ok := formats[strings.ReplaceAll(name, "-", "")]
	if !ok {
		return d.words(), Garbage
	}
	switch d.n(8) {
	case 0, 1:
		return f.valid(d), Valid
	case 2, 3, 4:
		return d.miss(f.valid(d)), NearMiss
	case 5:
		s := d.miss(d.miss(f.valid(d)))
		return s, NearMiss
	case 6:
		if len(f.traps) > 0 {
			s := d.of(f.traps)
			if d.one(4) {
				s = d.miss(s)
			}
			return s, NearMiss
		}
		return d.miss(f.valid(d)), NearMiss
	}
	if d.one(2) {
		return d.words(), Garbage
	}
	other := d.of(Formats)
	return formats[strings.ReplaceAll(other, "-", "")].valid(d), Garbage
}

// words are texts of no format.
func (d *Dice) words() string {
	var b strings.Builder
	for range d.n(9) {
		b.WriteString(d.of([]string{"a", "Z", "0", "9", "-", ".", ":", "/", "_", " ", "é", "\xff", "\x00", "\n", "%", "@", "[", "]", "🍐", "#", "=", "+", "("}))
	}
	return b.String()
}

type format struct {
	valid func(d *Dice) string
	traps []string
}

func (d *Dice) from(alphabet string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[d.n(len(alphabet))]
	}
	return string(b)
}

const (
	hexDigits = "0123456789abcdefABCDEF"
	decimals  = "0123456789"
	lower     = "abcdefghijklmnopqrstuvwxyz"
	label63   = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
)

func (d *Dice) label() string {
	s := d.from(lower+decimals, 1+d.n(6))
	if d.one(3) {
		s += "-" + d.from(lower+decimals, 1+d.n(3))
	}
	return s
}

func (d *Dice) host() string {
	s := d.from(lower, 1) + d.label()
	for range d.n(3) {
		s += "." + d.from(lower, 1) + d.label()
	}
	return s
}

func (d *Dice) address4() string {
	return fmt.Sprintf("%d.%d.%d.%d", d.n(256), d.n(256), d.n(256), d.n(256))
}

func (d *Dice) address6() string {
	groups := make([]string, 8)
	for i := range groups {
		groups[i] = d.from(hexDigits, 1+d.n(4))
	}
	switch d.n(4) {
	case 0:
		return strings.Join(groups, ":")
	case 1:
		return strings.Join(groups[:6], ":") + ":" + d.address4()
	case 2:
		k := d.n(6)
		return strings.Join(groups[:k], ":") + "::" + strings.Join(groups[k:6], ":")
	}
	return d.of([]string{"::", "::1", "::ffff:" + d.address4(), "fe80::1", "1::", "::" + d.address4(), "64:ff9b::" + d.address4()})
}

func (d *Dice) uuid(version string) string {
	h := d.from(hexDigits, 32)
	switch version {
	case "3":
		h = h[:12] + "3" + h[13:]
	case "4", "5":
		h = h[:12] + version + h[13:16] + d.from("89abAB", 1) + h[17:]
	}
	if d.one(4) {
		return h
	}
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

func (d *Dice) isbn10() string {
	s := d.from(decimals, 9)
	sum := 0
	for i := range 9 {
		sum += (i + 1) * int(s[i]-'0')
	}
	last := string("0123456789X"[sum%11])
	if d.one(3) {
		return s[:1] + "-" + s[1:4] + "-" + s[4:] + "-" + last
	}
	return s + last
}

func (d *Dice) isbn13() string {
	s := d.of([]string{"978", "979"}) + d.from(decimals, 9)
	sum := 0
	for i := range 12 {
		sum += []int{1, 3}[i%2] * int(s[i]-'0')
	}
	last := string(decimals[(10-sum%10)%10])
	if d.one(3) {
		return s[:3] + d.of([]string{"-", " "}) + s[3:] + last
	}
	return s + last
}

func (d *Dice) card() string {
	s := d.of([]string{"4" + d.from(decimals, 14), "4" + d.from(decimals, 11), "5" + d.from("12345", 1) + d.from(decimals, 13), "34" + d.from(decimals, 12), "37" + d.from(decimals, 12), "6011" + d.from(decimals, 11), "30" + d.from("012345", 1) + d.from(decimals, 10), "36" + d.from(decimals, 11), "2131" + d.from(decimals, 10), "35" + d.from(decimals, 13)})
	sum := 0
	for i := range len(s) {
		x := int(s[len(s)-1-i] - '0')
		if i%2 == 0 {
			if x *= 2; x > 9 {
				x -= 9
			}
		}
		sum += x
	}
	s += string(decimals[(10-sum%10)%10])
	if d.one(3) && len(s) == 16 {
		return s[:4] + "-" + s[4:8] + "-" + s[8:12] + "-" + s[12:]
	}
	return s
}

func (d *Dice) day() string {
	return fmt.Sprintf("%04d-%02d-%02d", d.n(10000), 1+d.n(12), 1+d.n(28))
}

func (d *Dice) moment() string {
	s := fmt.Sprintf("%sT%02d:%02d:%02d", d.day(), d.n(24), d.n(60), d.n(60))
	if d.one(2) {
		s += "." + d.from(decimals, 1+d.n(9))
	}
	if d.one(2) {
		return s + "Z"
	}
	return s + fmt.Sprintf("%s%02d:%02d", d.of([]string{"+", "-"}), d.n(24), d.n(60))
}

var units = []string{"ns", "us", "µs", "ms", "s", "m", "h"}

func (d *Dice) span() string {
	if d.one(3) {
		return d.from("123456789", 1+d.n(2)) + d.of([]string{" ", ""}) + d.of([]string{"nanoseconds", "micros", "millis", "milliseconds", "sec", "seconds", "min", "minutes", "hr", "hours", "days", "day", "d", "w", "wk", "weeks", "ns", "us", "ms", "s", "m", "h"})
	}
	s := d.of([]string{"", "", "-", "+"})
	for range 1 + d.n(3) {
		s += d.from(decimals, 1+d.n(3))
		if d.one(3) {
			s += "." + d.from(decimals, 1+d.n(4))
		}
		s += d.of(units)
	}
	return s
}

var formats = map[string]format{
	"bsonobjectid": {func(d *Dice) string { return d.from(hexDigits, 24) }, []string{"", "0123456789abcdef0123456", "0123456789abcdef012345678", "0123456789abcdef0123456g", "0x23456789abcdef01234567", " 123456789abcdef01234567"}},
	"uri": {func(d *Dice) string {
		return d.of([]string{"http://", "https://", "ftp://", "a+b-c.d://"}) + d.host() + d.of([]string{"", "/", "/a/b", ":80/", "?a=b&c", "/#x", "/%41", "/a b"[:2]})
	}, []string{"", "/", "//", "///a", "a", "a:b", ":a", "mailto:a@b.c", "http:", "http://", "http:///", "http://[::1]", "http://[::1", "http://[::1%25eth0]/", "http://[::1%eth0]/", "http://a:b", "http://a:99999", "http://a b", "/a b", "/%zz", "/%", "*", "urn:x:y", "1http://a", "http://user:p@ss@h", "http://é.example/é", "HTTP://A", "/\x7f", "/\n", "?a", "#a", "http://a/?\xff", "javascript:alert(1)", "data:,x", "a%20b://c", "http://a%41/", "http://\\", "http://[fe80::1]:80", "http://[1.2.3.4]/", "http://::1/", "/a?%zz", "/a#%zz"}},
	"email": {func(d *Dice) string {
		return d.label() + d.of([]string{"", ".x", "+y"}) + "@" + d.host()
	}, []string{"", "@", "a@", "@b", "a@b", "a@b@c", "A <a@b.c>", "A B <a@b.c>", "<a@b.c>", "<a@b.c", "a@b.c,d@e.f", "a@[1.2.3.4]", `"a b"@c.d`, `"a\"b"@c.d`, "a b@c.d", "é@b.c", "a@é.c", "a..b@c.d", ".a@b.c", "a.@b.c", "a@b..c", "a@-b", "a@b_c", " a@b.c ", "a@b.c (x)", "(x) a@b.c", "=?utf-8?q?a?= <a@b.c>", "=?x?q?a?= <a@b.c>", "a@b.c\n", "\xff@b.c", "A: a@b.c;", "a@b.c>", "a@(x)b.c", "a@ b.c", `"@b.c`, label63 + "aa@b.c"}},
	"hostname": {func(d *Dice) string { return d.host() + "." + d.from(lower, 2+d.n(5)) }, []string{
		"", "a", "-a", "a-", "a.", ".a", "a..b", "A.b", "a_b", "_a.b", "1", "1.2", "1.2.3.4", "a.1", "a.b-", "a.-b", "xn--bcher-kva.example", "bücher.example", "é", "例え.jp", "a b", "localhost", label63, label63 + "a", label63 + ".b", label63 + "a.b", label63 + "." + label63 + "." + label63 + "." + label63[:61], label63 + "." + label63 + "." + label63 + "." + label63[:62], label63 + "." + label63 + "." + label63 + "." + label63, "a.b.", "xn--a", "xn--", "a--b", "0a.b", "a.0b", "a\u3002b", "a\u200db", "a.c\n",
	}},
	"ipv4": {func(d *Dice) string { return d.address4() }, []string{"", "1.2.3", "1.2.3.4.5", "01.2.3.4", "1.2.3.04", "256.1.1.1", "1.2.3.256", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/8", "::1", "::ffff:1.2.3.4", "0.0.0.0", "00.0.0.0", "1..3.4", ".1.2.3", "1.2.3.", "0x1.2.3.4", "1e1.2.3.4", "+1.2.3.4", "-1.2.3.4", "١.2.3.4", "1.2.3.4\n", "1,2,3,4", "16909060", "1.2.772", "1.2.3.0000"}},
	"ipv6": {func(d *Dice) string { return d.address6() }, []string{"", ":", "::", ":::", "::1", "1::", "1", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1:2:3:4:5:6:7::", "::2:3:4:5:6:7:8", "1::2::3", "12345::", "g::", "fe80::1%eth0", "fe80::1%", "%eth0", "::1.2.3.4", "::1.2.3", "::1.2.3.04", "1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "1.2.3.4::", "[::1]", "::1/128", " ::1", "1.2.3.4", "::ffff:256.1.1.1", "0000:0000::0000", "00000::", "::%", "1:2:3:4:5:6:7:", ":2:3:4:5:6:7:8"}},
	"cidr": {func(d *Dice) string {
		if d.one(2) {
			return fmt.Sprintf("%s/%d", d.address4(), d.n(33))
		}
		return fmt.Sprintf("%s/%d", d.address6(), d.n(129))
	}, []string{"", "/", "1.2.3.4", "1.2.3.4/", "/8", "1.2.3.4/33", "1.2.3.4/-1", "1.2.3.4/+8", "1.2.3.4/08", "1.2.3.4/008", "1.2.3.4/8 ", "01.2.3.4/8", "1.2.3/8", "::/129", "::/0", "::1/00", "fe80::1%eth0/64", "1.2.3.4/8/8", "::ffff:1.2.3.4/24", "::ffff:1.2.3.4/128", "1.2.3.4/0x8", "1.2.3.4/255.0.0.0", "1.2.3.4/99999999999"}},
	"mac": {func(d *Dice) string {
		n := []int{6, 8, 20}[d.n(3)]
		parts := make([]string, n)
		for i := range parts {
			parts[i] = d.from(hexDigits, 2)
		}
		if d.one(4) {
			var b strings.Builder
			for i, p := range parts {
				if i > 0 && i%2 == 0 {
					b.WriteByte('.')
				}
				b.WriteString(p)
			}
			return b.String()
		}
		return strings.Join(parts, d.of([]string{":", "-"}))
	}, []string{"", "00:00:00:00:00", "00:00:00:00:00:00:00", "00:00:00:00-00:00", "0:0:0:0:0:0", "000000000000", "0000.0000", "0000.0000.0000.0000.0000", "0000:0000:0000", "00.00.00.00.00.00", "gg:00:00:00:00:00", "00:00:00:00:00:00:", ":00:00:00:00:00:00", "0x:00:00:00:00:00"}},
	"uuid":  {func(d *Dice) string { return d.uuid("") }, uuidTraps},
	"uuid3": {func(d *Dice) string { return d.uuid("3") }, uuidTraps},
	"uuid4": {func(d *Dice) string { return d.uuid("4") }, uuidTraps},
	"uuid5": {func(d *Dice) string { return d.uuid("5") }, uuidTraps},
	"isbn": {func(d *Dice) string {
		if d.one(2) {
			return d.isbn10()
		}
		return d.isbn13()
	}, isbnTraps},
	"isbn10":     {func(d *Dice) string { return d.isbn10() }, isbnTraps},
	"isbn13":     {func(d *Dice) string { return d.isbn13() }, isbnTraps},
	"creditcard": {func(d *Dice) string { return d.card() }, []string{"", "4111111111111111", "4111 1111 1111 1111", "4111-1111-1111-1111", "4-1-1-1-1-1-1-1-1-1-1-1-1-1-1-1", "4111111111111112", "411111111111111", "4222222222222", "0000000000000000", "5500000000000004", "5600000000000003", "378282246310005", "30569309025904", "6011111111111117", "3530111333300000", "a4111111111111111", "4111111111111111a", "４111111111111111", "2221000000000009", "62123456789002", "4111.1111.1111.1111"}},
	"ssn": {func(d *Dice) string {
		return d.from(decimals, 3) + d.of([]string{"-", " "}) + d.from(decimals, 2) + d.of([]string{"-", " "}) + d.from(decimals, 4)
	}, []string{"", "111111111", "111-11-1111", "111-111-111", "111-11 1111", "111 11 1111", "11-11-1111", "000-00-0000", "1111-11-111", "١١١-11-1111", "111--1-1111", "111-11-111a", "111.11.1111"}},
	"hexcolor": {func(d *Dice) string { return d.of([]string{"", "#"}) + d.from(hexDigits, []int{3, 6}[d.n(2)]) }, []string{"", "#", "#12", "#1234", "#12345", "#1234567", "#12345678", "##123", "#ggg", "123#", "# 123", "#fff\n", "0xfff", "fff "}},
	"rgbcolor": {func(d *Dice) string {
		s := func() string { return d.of([]string{"", "", " "}) }
		return fmt.Sprintf("rgb(%s%d%s,%s%d%s,%s%d%s)", s(), d.n(256), s(), s(), d.n(256), s(), s(), d.n(256), s())
	}, []string{"", "rgb()", "rgb(0,0)", "rgb(0,0,0,0)", "rgb(256,0,0)", "rgb(00,0,0)", "rgb(000,0,0)", "rgb(01,0,0)", "rgb(-1,0,0)", "rgb(1.0,0,0)", "rgb(10%,0%,0%)", "rgba(0,0,0)", "RGB(0,0,0)", "rgb (0,0,0)", "rgb(0,0,0) ", " rgb(0,0,0)", "rgb(0, 0, 0)", "rgb( 0 , 0 , 0 )", "rgb(0 0 0)", "rgb(0,0,0)\n", "rgb(٠,0,0)", "rgb(100%,100%,100%)", "rgb(101%,0%,0%)", "rgb(0\t,0,0)"}},
	"byte":     {func(d *Dice) string { return base64.StdEncoding.EncodeToString([]byte(d.from(lower, d.n(12)))) }, []string{"", "=", "==", "====", "a", "ab", "abc", "abcd", "ab==", "abc=", "a===", "ab=c", "ab==cd==", "abcd\n", "ab\ncd", "ab\r\ncd", "abcd ", "ab_d", "ab-d", "ab+/", "a\x00cd", "abc\xff", "YQ", "YQ==", "YR==", "YQ=", "YWI=", "YWJ=", "\n", "é==", "AAAA====", "abcd=", "ab==" + "\n", "a=bc"}},
	"password": {func(d *Dice) string { return d.words() }, []string{"", "\x00"}},
	"date":     {func(d *Dice) string { return d.day() }, []string{"", "2023-02-29", "2024-02-29", "2000-02-29", "1900-02-29", "2024-02-30", "2024-04-31", "2024-00-01", "2024-13-01", "2024-01-00", "2024-01-32", "24-01-01", "02024-01-01", "2024-1-1", "2024-01-1", "20240101", "2024/01/01", "2024-01-01T00:00:00Z", "2024-01-01 ", " 2024-01-01", "0000-01-01", "9999-12-31", "10000-01-01", "-001-01-01", "2024-01-01\n", "２024-01-01", "2024-W01-1", "2024-001", "+2024-01-01", "2024-12-31", "2024-06-31"}},
	"duration": {func(d *Dice) string { return d.span() }, []string{"", "0", "-0", "+0", "00", "0s", "1", "-1", "1.5", "1s", "1 s", "1  s", "1s ", " 1s", "1 second", "1 seconds", "1seconds", "2 days", "2d", "2 w", "1h 30m", "1h30m", "1h30", "1d1h", "1 day 2 hours", "1.5h", "1.5 hours", ".5h", "5.h", ".h", "1e3s", "1µs", "1μs", "1us", "-1s", "--1s", "-1 day", "+1 day", "1S", "1H", "1 Day", "1 DAYS", "1 fortnight", "1 month", "1 year", "9223372036854775807ns", "9223372036854775808ns", "-9223372036854775808ns", "2562047h47m16.854775807s", "2562047h47m16.854775808s", "99999999999999999999h", "1000000000000 days", "1 days x", "x 1 day", "0x1s", "1_000s", "1s\n", "P1D", "PT1H", "1:00", "١s", "1\u00a0day", "1\tday", "1 sec.", "7 nanos", "3 mins", "106751 days", "106752 days", "15250 weeks", "15251 weeks"}},
	"datetime": {func(d *Dice) string { return d.moment() }, []string{
		"", "2024-01-01", "2024-01-01T00:00:00", "2024-01-01T00:00:00Z", "2024-01-01t00:00:00z", "2024-01-01 00:00:00Z", "2024-01-01T00:00Z", "2024-01-01T24:00:00Z", "2024-01-01T23:60:00Z", "2024-01-01T23:59:60Z", "2024-01-01T23:59:61Z", "2024-01-01T00:00:00.Z", "2024-01-01T00:00:00,5Z", "2024-01-01T00:00:00.1234567890Z", "2024-01-01T00:00:00.0Z", "2024-01-01T00:00:00+00:00", "2024-01-01T00:00:00-00:00", "2024-01-01T00:00:00+24:00", "2024-01-01T00:00:00+23:60", "2024-01-01T00:00:00+1:00", "2024-01-01T00:00:00+0100", "2024-01-01T00:00:00+01", "2023-02-29T00:00:00Z", "2024-02-29T00:00:00Z", "2024-02-30T00:00:00Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z", "2024-1-1T0:0:0Z", "2024-01-01T0:00:00Z", "2024-01-01T00:00:00Z ", " 2024-01-01T00:00:00Z", "20240101T000000Z", "2024-01-01T00:00:00ZZ", "2024-01-01T00:00:00Z\n", "2024-01-01T00:00:00.5", "2024-01-01T00:00:00UTC", "2024-13-01T00:00:00Z", "2024-01-01T00:00:00+00:00Z", "2024-01-01T00:00:00٫5Z", "2024-01-01T-1:00:00Z",
	}},
	"k8sshortname": {func(d *Dice) string { return d.label() }, nameTraps},
	"k8slongname":  {func(d *Dice) string { return d.host() }, nameTraps},
}

var (
	uuidTraps = []string{"", "00000000-0000-0000-0000-000000000000", "00000000-0000-1000-8000-000000000000", "00000000-0000-3000-0000-000000000000", "00000000-0000-4000-8000-000000000000", "00000000-0000-4000-c000-000000000000", "00000000-0000-5000-B000-000000000000", "00000000-0000-6000-8000-000000000000", "00000000-0000-7000-8000-000000000000", "000000000000-0000-0000-000000000000", "00000000000000000000000000000000", "00000000-00000000-0000-000000000000", "{00000000-0000-4000-8000-000000000000}", "urn:uuid:00000000-0000-4000-8000-000000000000", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-0000000000000", "0000000g-0000-4000-8000-000000000000", "00000000-0000-4000-8000-000000000000\n", "00000000_0000_4000_8000_000000000000", "--00000000000000000000000000000000", "0000000000003000000000000000000", "00000000000040008000000000000000", "00000000000050008000000000000000"}
	isbnTraps = []string{"", "0321751043", "0-321-75104-3", "0321751044", "080442957X", "080442957x", "X804429570", "9780321751041", "978-0321751041", "978 0321751041", "978-0-321-75104-1", "9780321751042", "032175104", "03217510433", "97803217510411", "0000000000", "0000000000000", "9780000000002", "0 321 75104 3", "--0321751043", "0321751043\n", "٠321751043", "4006381333931", "1111111111111", "978--0321751041"}
	nameTraps = []string{"", "a", "0", "-", "a-", "-a", "A", "a.b", "a..b", ".a", "a.", "a_b", "a b", "é", "a\n", label63, label63 + "a", label63 + ".b", label63 + "." + label63 + "." + label63 + "." + label63[:61], label63 + "." + label63 + "." + label63 + "." + label63[:62], label63 + "a.b", "a--b", "1.2.3.4", "a.-b", "a-.b", "xn--a", "1-1", "٣"}
)
