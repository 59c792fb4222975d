package format

import (
	"strings"
	"testing"

	"k8s.io/kube-openapi/pkg/validation/strfmt"
)

// good are texts of each format, the first ones of the form that most have.
var good = [count][]string{
	bsonObjectID: {"507f1f77bcf86cd799439011", "507F1F77BCF86CD799439011"},
	uri: {
		"https://example.com", "https://example.com:8443/a/b?c=d&e=%zz#f", "/healthz", "ldap://ldap.example.com:389", "/", "//x", "a://h?", "/a?b?c", "/#x", "/é",
		"/a b", "*", "mailto:someone@example.com", "http://user:pass@host/%20", "http://[::1]:80/", "http://[fe80::1%25en0]/", "x:", "http://", "file:///etc/passwd", "http://a:/",
	},
	email: {
		"someone@example.com", "first.last+tag@mail-1.example.com", "a@b",
		"Someone <someone@example.com>", `"quoted \" local"@example.com`, "a@[127.0.0.1]", "=?utf-8?q?J=C3=B6rg?= <a@b>", " a@b ", "a@b (comment)", "ü@example.com",
	},
	hostname: {"example.com", "a", "localhost", "a-", "a-b", "1.2.3.com", "xn--froschgrn-x9a.net", "☃.net", "日本.co.jp", strings.Repeat("a", 63), strings.Repeat("a", 62) + "-.com"[1:], "\xff"},
	ipv4:     {"127.0.0.1", "255.255.255.255", "010.000.0001.00", "::ffff:1.2.3.4", "::01.2.3.4", "1:2:3:4:5:6:1.2.3.4"},
	ipv6:     {"::", "::1", "2001:db8::68", "1:2:3:4:5:6:7:8", "1::", "::ffff:1.2.3.4", "1:2:3:4:5:6:1.2.3.4", "FE80::1"},
	cidr:     {"10.0.0.0/8", "2001:db8::/32", "010.1.2.3/032", "0.0.0.0/0", "::/128", "00001::/0", "::1.2.3.4/96"},
	mac:      {"01:23:45:67:89:ab", "01-23-45-67-89-AB", "0123.4567.89ab", "01:23:45:67:89:ab:cd:ef", "0123456789ab", strings.Repeat("00:", 19) + "00"},
	uuid:     {"a8098c1a-f86e-11da-bd1a-00112444be1e", "A8098C1AF86E11DABD1A00112444BE1E"},
	uuid3:    {"bcd02e22-68f0-3046-a512-327cca9def8f"},
	uuid4:    {"025b0d74-00a2-4048-bf57-227c5111bb34"},
	uuid5:    {"886313e1-3b8a-5372-9b90-0c9aee199e5d"},
	isbn:     {"0321751043", "978-0321751041"},
	isbn10:   {"0321751043", "1-61729-085-8", "3 401 01319 X"},
	isbn13:   {"978-0321751041", "978 3 8362\n2119\t1"},
	creditCard: {
		"4220855426222389", "4220-8554-2622-2389", "5139288802098206", "374953669708156", "6011464355444102", "3548209662790989", "30000000000004", "36000000000008",
		"38000000000006", "4222222222222", "6500000000000002", "213100000000001", "180000000000002", "340000000000009", "30590000000004", "card 4220 8554 2622 2389 é",
	},
	ssn:      {"111-11-1111", "111 11 1111", "111-11 1111"},
	hexColor: {"#FFFFFF", "fff", "#f00"},
	rgbColor: {"rgb(255,255,255)", "rgb( 0 , 10, 199\n)", "rgb(19,1,25)"},
	base64:   {"Zm9vYmFy", "Zm9v", "Zg==", "Zm8=", "+/+/"},
	password: {"", "anything"},
	date:     {"2006-01-02", "0000-02-29", "2000-02-29", "2024-12-31"},
	duration: {
		"1h30m", "22 ns", "1.5h", "-1m", "3 weeks", "about 3 days or so", "5µs", "1 Microsecond", "7 hr", "2 wk", "1h 99x", "+1.s2d", ".5s", "9223372036854775807 m",
		"0", "1.s", "+0", "5μs", "1.99999999999999999999h",
	},
	dateTime: {
		"2014-12-15T08:00:00.000Z", "2014-12-15t19:30:20z", "2014-12-15T19:30:20+05:30", "2014-12-15T19:30:20é5-99:99", "2014-12-15T19:30:20+1+00:00", "2014-12-15T19:30:20Ztrailing",
		"2014-12-15T19:30:20\xff7Z", "2014-12-15T19:30:20z5Z", "2014-12-15T23:59:59Z",
	},
	k8sShortName: {"a", "my-name", "0", strings.Repeat("a", 63)},
	k8sLongName:  {"a", "my-name.example.com", strings.Repeat("a", 253)},
}

// bad are texts that most formats reject, though just so.
var bad = []string{
	"", " ", "\n", "\x00", "x", "-", ".", "é", "\xff",
	"507f1f77bcf86cd79943901", "507f1f77bcf86cd79943901g", "507f1f77bcf86cd7994390111",
	"example.com/x", "http://[::1", "http://a b/", "/%zz", "http://x:y/", "://x", "http://1:2:3/", "a://1:2:3/", "http://\x7f", "1x://y", "?x", "#", "http://x%20y/",
	"someone@", "@example.com", "a@b.", "a..b@c", "a b@c", "a@b@c", "a@b,c@d",
	"-a.com", "a-.com", "a.c", "a.com.", "a_b", "a--b", "a.b1", strings.Repeat("a", 64), strings.Repeat("a.", 127) + "com", strings.Repeat("é", 32) + ".com",
	"256.0.0.1", "1.2.3", "1.2.3.4.5", "1.2.3.", ".1.2.3", "1..2.3", "01.2.3.4", "1.2.3.4 ", "999999999999999999999.1.1.1",
	":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "1:2:3:4:5:6:7::8", "12345::", "00001::", "::1.2.3", "::01.2.3.4", "1:2:3:4:5:6:7:1.2.3.4", "fe80::1%eth0", "::%", "1:", "::g",
	"1:2:3:4:5:6:7:8::", "::1:2:3:4:5:6:7:8", "::2:3:4:5:6:7:8", "::3:4:5:6:7:8:1.2.3.4", "1::3:4:5:6:1.2.3.4", "1:2:3:4:5::1.2.3.4",
	"10000::/16", "::10000:1.2.3.4", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/-1", "10.0.0.0/8/8", "::/129", "/8", "10.0.0.0", "10.0.0.0/99999999999999999999",
	"01:23:45:67:89", "01:23:45-67:89:ab", "0123.4567.89a", "01:23:45:67:89:ag", "0123456789abc",
	"a8098c1a-f86e-11da-bd1a-00112444be1", "a8098c1a--f86e-11da-bd1a-00112444be1e", "025b0d74-00a2-4048-cf57-227c5111bb34",
	"0321751044", "978-0321751042", "X321751043", "03217510439", "97803217510411", "978032175104X",
	"4220855426222388", "42208554262223890", "7220855426222389", "2131", "30600000000006", "42222222222225", "29900000000008", "30600000000001", "5000000000000009", "5600000000000003",
	"111111111", "1111-1-1111", "111--111111", "#ffff", "fffffg", "##fff", "rgb(256,0,0)", "rgb(01,0,0)", "rgb(1,2)", "rgb(1,2,3", "rgb(1\v,2,3)",
	"Zg=", "Zg", "Z===", "====", "Zm9vZg==Zm9v", "Zm-_", "Zm9v\n", "Zm=v",
	"2006-1-2", "2006-13-01", "2006-00-01", "2006-01-00", "2006-02-30", "2005-02-29", "1900-02-29", "2006-04-31", "2006-01-02 ", "+006-01-02", "2006/01/02", "20060102",
	"1", "h", "1 fortnight", "9223372036854775808 m", "1h 9223372036854775808m", "1\vh", "1 é", "--1h", "1.5", "99999999999999999999h", "-", "1 Kelvin", "1 secunda", "1 ſ", "1 mo", "3 hrs",
	"2014-12-15", "2014-12-15T", "2014-12-15T19:30:20", "2014-12-15 19:30:20Z", "2014-12-15T24:00:00Z", "2014-12-15T23:60:00Z", "2014-12-15T23:59:60Z", "2014-12-15T19:30:20.Z",
	"2014-12-15T19:30:20\n5Z", "2014-12-15T19:30:20.5", "2014-12-15T19:30:20Z0", "2014-12-15T19:30:20+0530", "2014-02-30T19:30:20Z", "2014-12-15T19:30:20t5Z", "2014-12-15T9:30:20Z",
	"2014-12-15T19:30:20éZ", "2014-12-15T19:30:20.5zz", "2014-12-15T1a:30:20Z",
	"My-Name", "-name", "name-", "a..b", "a.", ".a", strings.Repeat("a", 254), strings.Repeat("a", 64),
}

// compare tries a text with every format.
func compare(t *testing.T, text string) {
	t.Helper()
	for f := none + 1; f < count; f++ {
		if got, want := f.Match([]byte(text)), strfmt.Default.Validates(names[f], text); got != want {
			t.Errorf("%v %q: %v, want %v", f, text, got, want)
		}
	}
}

func TestFormatsAgreeWithUpstream(t *testing.T) {
	for f, list := range good {
		for _, text := range list {
			compare(t, text)
			if !Format(f).Match([]byte(text)) {
				t.Errorf("%v rejects %q", Format(f), text)
			}
		}
	}
	for _, text := range bad {
		compare(t, text)
	}
}

// TestNearMisses tries every text with one byte changed, inserted or removed.
func TestNearMisses(t *testing.T) {
	replacements := []byte("aATtZzfgX0159:.-/ %@+\n\x00\xff")
	for f, list := range good {
		try := func(text string) {
			if got, want := Format(f).Match([]byte(text)), strfmt.Default.Validates(names[f], text); got != want {
				t.Errorf("%v %q: %v, want %v", Format(f), text, got, want)
			}
		}
		for _, text := range list {
			for i := range text {
				try(text[:i] + text[i+1:])
				for _, b := range replacements {
					try(text[:i] + string([]byte{b}) + text[i+1:])
					try(text[:i] + string([]byte{b}) + text[i:])
				}
			}
		}
	}
}

func TestEveryUpstreamFormatIsKnown(t *testing.T) {
	for f := none + 1; f < count; f++ {
		if !strfmt.Default.ContainsName(f.String()) {
			t.Errorf("upstream does not know %v", f)
		}
		if Lookup(f.String()) != f {
			t.Errorf("%v is not found by its name", f)
		}
	}
	for name, want := range map[string]Format{
		"date-time": dateTime, "datetime": dateTime, "d-a-t-e": date, "k8s-short-name": k8sShortName, "k8s-long-name": k8sLongName, "byte": base64,
		"": none, "-": none, "Date": none, "ip": none, "int32": none, "uuid6": none,
	} {
		if got := Lookup(name); got != want {
			t.Errorf("Lookup(%q) = %v, want %v", name, got, want)
		}
	}
	if !none.Match([]byte("x")) {
		t.Error("no format restricts nothing")
	}
}

func TestExpressionsCompile(t *testing.T) {
	for f, get := range expressions {
		if get != nil && get().String() == "" {
			t.Errorf("%v has no expression", Format(f))
		}
	}
}

func TestUsualTextsDoNotAllocate(t *testing.T) {
	for f, list := range good {
		if Format(f) == mac {
			continue // left to the standard library
		}
		for i, text := range list {
			usual := i < 3 || Format(f) != uri && Format(f) != email && Format(f) != duration
			b := []byte(text)
			if n := testing.AllocsPerRun(10, func() { Format(f).Match(b) }); usual && n != 0 {
				t.Errorf("%v %q: %v allocations", Format(f), text, n)
			}
		}
	}
}

func FuzzFormat(f *testing.F) {
	for _, list := range good {
		for _, text := range list {
			f.Add(text)
		}
	}
	for _, text := range bad {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1000 {
			t.Skip() // a hundred regular expressions take their time
		}
		compare(t, text)
	})
}

func BenchmarkMatch(b *testing.B) {
	for f := none + 1; f < count; f++ {
		text := good[f][0]
		b.Run(f.String()+"/format", func(b *testing.B) {
			raw := []byte(text)
			b.ReportAllocs()
			for b.Loop() {
				f.Match(raw)
			}
		})
		b.Run(f.String()+"/strfmt", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				strfmt.Default.Validates(names[f], text)
			}
		})
	}
}
