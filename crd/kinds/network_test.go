package kinds

import (
	"slices"
	"testing"

	"github.com/google/cel-go/common/types"
)

func TestEndpointIP(t *testing.T) {
	for ip, want := range map[string]string{
		"1.2.3.4":     "",
		"239.1.1.1":   "",
		"fd00::1":     "",
		"text":        "must be a valid IP address",
		"0.0.0.0":     "may not be unspecified (0.0.0.0)",
		"127.0.0.1":   "may not be in the loopback range (127.0.0.0/8, ::1/128)",
		"fe80::1":     "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
		"224.0.0.1":   "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
		"169.254.1.1": "may not be in the link-local range (169.254.0.0/16, fe80::/10)",
	} {
		var expected []string
		if want != "" {
			expected = []string{want}
		}
		if got := endpointIP(ip); !slices.Equal(got, expected) {
			t.Errorf("endpointIP(%q) = %q, want %q", ip, got, expected)
		}
	}
}

func TestListFunctions(t *testing.T) {
	for source, want := range map[string]string{
		"shorten(['a', 'b', 'c'])":                               "a,b,c",
		"shorten(['a', 'b', 'c', 'd', 'e'])":                     "a,b,c + 2 more...",
		"shorten(['a', 'b', 'c', 'd'], 400)":                     "a,b,c + 397 more...",
		"shorten(['a', 'b', 'c'], 3)":                            "a,b,c",
		"string(firsts(['a', 'b', 'a'])['a'])":                   "0",
		"string(firsts(['a', 'b', 'a'])['b'])":                   "1",
		"ipWarnings('spec.ip', '1.2.3.4').join(',')":             "",
		"ipWarnings('spec.ip', '01.2.3.4').join(',')":            `spec.ip: non-standard IP address "01.2.3.4" is invalid: use "1.2.3.4"`,
		"cidrWarnings('spec.ranges[0]', 'fd00:0::/64').join('')": `spec.ranges[0]: IPv6 CIDR value "fd00:0::/64" should be in RFC 5952 canonical format ("fd00::/64")`,
	} {
		e := &expr{source: source}
		got, err := e.text(&scope{self: types.NullValue})
		if err != nil {
			t.Errorf("%s: %v", source, err)
		} else if got != want {
			t.Errorf("%s = %q, want %q", source, got, want)
		}
	}
}

// An item of a list is there, even if it is the empty string.
func TestEmptyItems(t *testing.T) {
	kind := Find("networking.k8s.io", "v1", "networkpolicies")
	errs := kind.Validate(map[string]any{"spec": map[string]any{"policyTypes": []any{""}}}, nil, "")
	if len(errs) != 1 || errs[0].Field != "spec.policyTypes[0]" {
		t.Errorf("an empty policy type: %v", errs)
	}
}
