package kinds

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/espalier-dev/espalier/internal/quantities"
)

// Where large exponents begin, and which tokens of JSON lose them.
func TestExponentTokens(t *testing.T) {
	for text, want := range map[string]int{"": -1, "e": -1, "1e12": -1, "1e12 text": -1, "1e123": 1, "1E123": 1, "e12e456": 3, "xe1x e+123": 5, "e123": 0, "1e99": -1} {
		if got := nextExponent([]byte(text), 0); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if got := nextExponent([]byte("e123 e456"), 1); got != 5 {
		t.Errorf("the second exponent is at %d", got)
	}
	for text, want := range map[string]int{`"`: -1, `"a`: -1, `"a"`: 3, `""b`: 2, `"\"a"`: 5, `"a\`: -1, `"\x"`: -1, `"\u0041"`: 8, "\"a\nb\"": -1, `"\\"`: 4, "\" \"": 3} {
		if got := endOfText([]byte(text), 0); got != want {
			t.Errorf("%q ends at %d, want %d", text, got, want)
		}
	}
	for text, want := range map[string]string{
		`{"a": 1e999}`: `{"a": "xxx"}`, `{"a":"1e999"}`: `{"a":"xxxxx"}`, `{"a":" 1e999 "}`: `{"a":"xxxxx"  }`, `["1e999",2]`: `["xxxxx",2]`, `{"1e999":1}`: "", `{"1e999" : 1}`: "", `[true,false,null,1e99]`: "",
		`[-1e999]`: `["xxxx"]`, `[1e999`: `["xxx"`, `[1e999, 2E-999]`: `["xxx", "xxxx"]`, `["\u0031e999"]`: `["xxxxx"     ]`, `["1e999\n"]`: `["xxxxx"  ]`, `"1e999"`: `"xxxxx"`, "[1e999\t]": "[\"xxx\"\t]",
	} {
		changed, ok := maskTokens([]byte(text))
		if string(changed) != want || !ok {
			t.Errorf("%s: %s, %v, want %s", text, changed, ok, want)
		}
	}
	for _, text := range []string{`{'a': 1}`, `{"a`, "{a: 1}", "[tru]", "[nul"} {
		if changed, ok := maskTokens([]byte(text)); ok || changed != nil {
			t.Errorf("%s is taken for JSON: %s", text, changed)
		}
	}
	for text, want := range map[string]int{"true": 4, "false,": 5, "null": 4, "nul": 0, "x": 0, "": 0} {
		if got := literal([]byte(text)); got != want {
			t.Errorf("%s: a literal of %d", text, got)
		}
	}
	for token, want := range map[string]string{`"a"`: "a", `"\u0041"`: "A", "12": "12", `"`: `"`, `""`: "", `"\x"`: ""} {
		if got := string(unquoted([]byte(token))); got != want {
			t.Errorf("%s: %s", token, got)
		}
	}
}

// Long numbers of protobuf get a negative exponent, and short ones stay.
func TestLongNumbersInProtobuf(t *testing.T) {
	ones := func(n int) string { return strings.Repeat("1", n) }
	const most = quantities.MaxLength
	for name, c := range map[string]struct{ text, want string }{
		"short": {ones(most), ""}, "short ones": {ones(most) + "x" + ones(most) + "x", ""}, "no numbers": {strings.Repeat("x", most+1), ""}, "long": {ones(most + 1), "1e-" + ones(most-2)},
		"second":      {"5x" + ones(most+1) + "y", "5x1e-" + ones(most-2) + "y"},
		"two":         {ones(most+1) + "x" + ones(most+1), "1e-" + ones(most-2) + "x1e-" + ones(most-2)},
		"with points": {ones(5) + "." + ones(most), "1e-" + ones(2) + "0" + ones(most)},
		"nines":       {strings.Repeat("9", most+1) + "x0", "9e-" + strings.Repeat("9", most-2) + "x0"},
		"zeros":       {strings.Repeat("0", most+1), "0e-" + strings.Repeat("0", most-2)},
	} {
		if got := string(withExponents([]byte(c.text))); got != c.want {
			t.Errorf("%s: %.40s", name, got)
		}
	}
	data := []byte("k8s\x00" + ones(most+1))
	for text, refused := range map[string]bool{"": false, "other": false, resource.ErrFormatWrong.Error(): true, resource.ErrNumeric.Error(): true, resource.ErrSuffix.Error(): true} {
		err := LongQuantity(data, func([]byte) error {
			if text == "" {
				return nil
			}
			return errors.New("in front " + text)
		})
		if (err != nil) != refused {
			t.Errorf("%q: %v", text, err)
		}
	}
	if err := LongQuantity([]byte("k8s\x00\n\x051e999"), func([]byte) error { return errors.New("other") }); err == nil {
		t.Error("the error of a large exponent is lost")
	}
	for text, masked := range map[string]bool{"\n\x7f1e999": false, "\n\x06+1e999": true, "\n\x06-1e999": true, "\n\x061.e999": true, "\n\x06x1e999": false, "\n\x051e999": true} {
		if got := withoutBinary([]byte(text)); (got != nil) != masked {
			t.Errorf("%q: %q", text, got)
		}
	}
	if err := LongQuantity([]byte("{a: [9e999"), func([]byte) error { return errors.New("read") }); err != nil {
		t.Error("what is no YAML is for the decoder:", err)
	}
	for _, c := range []struct {
		text string
		want bool
	}{{ones(most), true}, {ones(most + 1), false}, {"1e99", true}, {"1e999", false}, {"x", false}} {
		if _, err := parseQuantity(c.text); (err == nil) != c.want {
			t.Errorf("%.10s: %v", c.text, err)
		}
	}
}

// Quantities and numbers as trees have them.
func TestNumbersOfTrees(t *testing.T) {
	for value, want := range map[any]string{"1Gi": "1Gi", int64(12): "12", 1.5: "1.5", 1e21: "1e+21", true: ""} {
		if got := quantityText(value); got != want {
			t.Errorf("%v: %q", value, got)
		}
	}
	for value, want := range map[any]float64{"1": 0, int64(12): 12, 1.5: 1.5} {
		if got := number(value); got != want {
			t.Errorf("%v: %v", value, got)
		}
	}
	if got := quantityText(nil); got != "" {
		t.Error(got)
	}
}

// Certificates of all kinds.
func TestCertificateTexts(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	encode := func(of string, ca bool, serial int64, headers map[string]string) string {
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), IsCA: ca, BasicConstraintsValid: true}
		der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
		if err != nil {
			t.Fatal(err)
		}
		return string(pem.EncodeToMemory(&pem.Block{Type: of, Bytes: der, Headers: headers}))
	}
	one, two, leaf := encode("CERTIFICATE", true, 1, nil), encode("CERTIFICATE", true, 2, nil), encode("CERTIFICATE", false, 3, nil)
	const chain = "issued certificate chain must consist entirely of CERTIFICATE PEM blocks"
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	wrong := slices.Clone(request)
	wrong[len(wrong)-1] ^= 1
	for _, c := range []struct{ format, text, want string }{
		{"trust-anchors", one, ""}, {"trust-anchors", one + two, ""}, {"trust-anchors", one + two + one, "duplicate trust anchor (indices [0 2])"}, {"trust-anchors", one + leaf, "entry 1 does not have the CA bit set"},
		{"trust-anchors", encode("CERTIFICATE", true, 4, map[string]string{"a": "b"}), "entry 0 has PEM block headers"}, {"trust-anchors", one + encode("X", true, 4, nil), "entry 1 has bad block type: X"},
		{"certificates", one, ""}, {"certificates", one + leaf, ""}, {"certificates", one + encode("X", true, 4, nil), chain}, {"certificates", one + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", chain}, {"certificates", "", "issued certificate chain must contain at least one certificate"},
		{"pkcs10", base64.StdEncoding.EncodeToString(request), ""}, {"pkcs10", base64.StdEncoding.EncodeToString(wrong), "must be a validly-signed PKCS#10 CSR"},
	} {
		got, err := check(c.format, c.text)
		if err != nil || strings.Join(got, "|") != c.want {
			t.Errorf("%s: %q, %v, want %q", c.format, got, err, c.want)
		}
	}
}

// The answer about overlapping paths is bounded.
func TestManyOverlaps(t *testing.T) {
	var list []any
	for i := range 150 {
		list = append(list, []any{"a/b", fmt.Sprint(i)})
	}
	got := plain(overlaps(types.DefaultTypeAdapter.NativeToValue(append(list, []any{"a", "last"})))).([]any)
	if len(got) != mostOverlaps || got[0] != `overlapping paths: "a/b" (1) with "a/b" (0)` {
		t.Errorf("%d texts, first %v", len(got), got[0])
	}
}

// Names of devices and their errors.
func TestDeviceNameTexts(t *testing.T) {
	const subdomain, bytes63, bytes32 = "a lowercase RFC 1123 subdomain…", "may not be more than 63 bytes", "may not be more than 32 bytes"
	long := strings.Repeat("a", 64)
	for _, c := range []struct {
		check      func(string) []string
		name, want string
	}{
		{attributeName, "a/b/c d", ""}, {attributeName, "/a", "the domain must not be empty"}, {attributeName, "/", "the domain must not be empty|the name must not be empty"}, {attributeName, long + "/a", bytes63}, {attributeName, long[:63] + "/a", ""}, {attributeName, "_/a", subdomain}, {attributeName, "X/a", ""}, {attributeName, "x/", "the name must not be empty"},
		{attributeName, long[:33], bytes32}, {attributeName, long[:32], ""}, {attributeName, "x/" + long[:32] + "-", bytes32 + "|a valid C identifier…"}, {attributeName, "", "a valid C identifier…"},
		{attributeFullName, "a", "a fully qualified name must be a domain and a name separated by a slash"}, {attributeFullName, "a/b/c", ""}, {attributeFullName, "/a", "prefix must not be empty"}, {attributeFullName, "/", "prefix must not be empty|name must not be empty"}, {attributeFullName, long + "/a", bytes63}, {attributeFullName, long[:63] + "/a", ""},
		{attributeFullName, "X/a", "prefix: a lowercase RFC 1123 subdomain…"}, {attributeFullName, "x/", "name must not be empty"}, {attributeFullName, "x/a-b", "a valid C identifier…"}, {attributeFullName, "-", "a valid C identifier…|a fully qualified name must be a domain and a name separated by a slash"},
		{poolName, strings.Repeat("a/", 126) + "a", ""}, {poolName, strings.Repeat("a/", 126) + "aa", "may not be more than 253 bytes"}, {poolName, "a//_", subdomain}, {poolName, strings.Repeat("a/", 126) + "a/_", "may not be more than 253 bytes|" + subdomain},
	} {
		got := c.check(c.name)
		want := strings.Split(c.want, "|")
		if c.want == "" {
			want = nil
		}
		fits := slices.EqualFunc(got, want, func(text, want string) bool {
			prefix, open := strings.CutSuffix(want, "…")
			return text == want || open && strings.HasPrefix(text, prefix)
		})
		if !fits {
			t.Errorf("%q: %q", c.name, got)
		}
	}
}
