package kinds

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Each format accepts one text and refuses the other, in its own words.
func TestFormats(t *testing.T) {
	const resource, container = "must be a standard resource type or fully qualified", "must be a standard resource for containers"
	block := string(pem.EncodeToMemory(&pem.Block{Type: "X", Bytes: []byte("x")}))
	for _, c := range []struct{ format, text, want string }{
		{"port-number", "1", ""}, {"port-number", "65535", ""}, {"port-number", "x", "must be between 1 and 65535, inclusive"}, {"port-number", "0", "must be between 1 and 65535, inclusive"},
		{"port-number-or-name", "80", ""}, {"port-number-or-name", "http", ""}, {"port-number-or-name", "65536", "must be between 1 and 65535, inclusive"}, {"port-number-or-name", "-", "must contain at least one letter…|must not begin or end with a hyphen"},
		{"resource-name", "cpu", ""}, {"resource-name", "hugepages-1Mi", ""}, {"resource-name", "a.b/c", ""}, {"resource-name", "kubernetes.io/x", ""}, {"resource-name", "pods", container},
		{"resource-name", "x", resource + "|" + container}, {"resource-name", "requests.a.b/c", "doesn't follow extended resource name standard"}, {"resource-name", "a b", "name part…|" + container},
		{"system-ids", "0", ""}, {"system-ids", "-1", "must be between…"}, {"group-ids", "5", ""}, {"group-ids", "2147483648", "must be between…"},
		{"absolute-path", "/a", ""}, {"absolute-path", "a", "must be an absolute path"}, {"local-path", "a/b", ""}, {"local-path", "/a", "must be a relative path"}, {"local-path", "a/../b", "must not contain '..'"},
		{"no-backsteps", "/a..b", ""}, {"no-backsteps", "/..", "must not contain '..'"}, {"projected-path", "a", ""}, {"projected-path", "/a", "must be a relative path"},
		{"projected-path", "..a", "must not start with '..'"}, {"projected-path", "../a", "must not contain '..'"}, {"projected-path", "..", "must not contain '..'|must not start with '..'"},
		{"driver-name", "A.b", ""}, {"driver-name", "a b", "a lowercase RFC 1123 subdomain…"},
		{"uuid", "01234567-89ab-cdef-0123-456789abcdef", ""}, {"uuid", "01234567-89AB-cdef-0123-456789abcdef", "must be a lowercase UUID in the canonical form"},
		{"time-zone", "Europe/Berlin", ""}, {"time-zone", "", "timeZone must be nil or non-empty string"}, {"time-zone", "lOCAL", "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"}, {"time-zone", "Nowhere", "unknown time zone Nowhere"},
		{"cron", "1 2 3 4 5", ""}, {"cron", "TZ=UTC 1 2 3 4 5", ""}, {"cron", "TZ=UTC", "…"}, {"cron", "CRON_TZ=UTC", "…"}, {"cron", "x", "expected exactly 5 fields…"},
		{"quantity", "1Gi", ""}, {"quantity", "x", "quantities must match…"}, {"uri", "http://a/b", ""}, {"uri", "%", "parse…"}, {"base64-ca", block, ""}, {"base64-ca", "x", "must be PEM-encoded certificates"},
		{"json-object", `{"a":1}`, ""}, {"json-object", "[]", "json: cannot unmarshal array…"}, {"duration", "1h", ""}, {"duration", "1", "time: missing unit…"},
		{"non-negative-int-or-percent", "0", ""}, {"non-negative-int-or-percent", "5", ""}, {"non-negative-int-or-percent", "-1", "must be greater than or equal to 0"}, {"non-negative-int-or-percent", "5%", ""}, {"non-negative-int-or-percent", "x", "a valid percent string…"},
		{"endpoint-ip", "10.0.0.1", ""}, {"endpoint-ip", "x", "must be a valid IP address"}, {"endpoint-ip", "0.0.0.0", "may not be unspecified (0.0.0.0)"}, {"endpoint-ip", "127.0.0.1", "may not be in the loopback…"},
		{"endpoint-ip", "169.254.0.1", "may not be in the link-local range…"}, {"endpoint-ip", "224.0.0.1", "may not be in the link-local multicast…"},
		{"ip-strict", "1.2.3.4", ""}, {"ip-strict", "1.2.3.04", "must not have leading 0s"}, {"cidr-strict", "1.2.3.0/24", ""}, {"cidr-strict", "1.2.3.4/24", "must not have bits set beyond the prefix length"},
		{"fqdn", "a.b", ""}, {"fqdn", "a", "should be a domain with at least two segments separated by dots"},
	} {
		got, err := check(c.format, c.text)
		if err != nil {
			t.Errorf("%s: %v", c.format, err)
			continue
		}
		want := strings.Split(c.want, "|")
		if c.want == "" {
			want = nil
		}
		fits := len(got) == len(want)
		for i := 0; fits && i < len(want); i++ {
			prefix, open := strings.CutSuffix(want[i], "…")
			fits = got[i] == want[i] || open && strings.HasPrefix(got[i], prefix)
		}
		if !fits {
			t.Errorf("%s %q: %q", c.format, c.text, got)
		}
	}
	if _, err := check("no such", ""); err == nil || err.Error() != `there is no format "no such"` {
		t.Error(err)
	}
}

// The shapes are of values that are no strings.
func TestShapes(t *testing.T) {
	at := field.NewPath("x")
	for _, c := range []struct{ shape, value, want string }{
		{"label-selector", "{matchLabels: {a: b}}", ""}, {"label-selector", "{matchLabels: {a b: c}}", `x.matchLabels: Invalid value: "a b"`}, {"labels", "{a: b}", ""}, {"labels", "{a: b c}", `x: Invalid value: "b c"`},
		{"annotations", "{a: b c}", ""}, {"annotations", "{a b: c}", `x: Invalid value: "a b"`},
		{"object-meta", "{labels: {a: b}, annotations: {a: b c}}", ""}, {"object-meta", "{labels: {a b: c}}", `x.labels: Invalid value: "a b"`}, {"object-meta", "{annotations: {a b: c}}", `x.annotations: Invalid value: "a b"`},
	} {
		var list []string
		for _, err := range shapes[c.shape](treeOf(t, c.value), at) {
			list = append(list, err.Error())
		}
		if len(list) > 1 || (len(list) == 0) != (c.want == "") || len(list) == 1 && !strings.HasPrefix(list[0], c.want) {
			t.Errorf("%s %s: %q", c.shape, c.value, list)
		}
	}
	if errs := shapes["conditions"]([]any{map[string]any{"type": "a b"}}, at); len(errs) == 0 {
		t.Error("conditions are not validated")
	}
	if errs := shapes["conditions"]("x", at); errs != nil {
		t.Error(errs)
	}
}

func TestNameFormats(t *testing.T) {
	for _, c := range []struct {
		name   string
		prefix bool
		wrong  bool
	}{{"a", false, false}, {"..", false, true}, {"..", true, false}, {"a/b", true, true}, {"a/b", false, true}} {
		if got := PathSegmentName(c.name, c.prefix); (len(got) > 0) != c.wrong {
			t.Errorf("%s, %v: %q", c.name, c.prefix, got)
		}
	}
	for _, generated := range []string{"never", ""} {
		format := (&Kind{Name: "dns-label", GenerateName: generated}).NameFormat()
		if len(format("a", false)) > 0 || len(format("A", false)) == 0 || (len(format("A", true)) > 0) == (generated == "never") {
			t.Errorf("%q: %q, %q", generated, format("A", false), format("A", true))
		}
	}
	if len(addressName("1.2.3.4", false)) > 0 || len(addressName("1.2.3.04", false)) != 1 {
		t.Error(addressName("1.2.3.04", false))
	}
}

// Values are the same if they are equal, or both empty.
func TestSameValues(t *testing.T) {
	list, tree := func(items ...any) []any { return items }, func(key string, value any) map[string]any { return map[string]any{key: value} }
	for i, c := range []struct {
		a, b any
		want bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"1", int64(1), false}, {int64(1), int64(1), true}, {int64(1), int64(2), false}, {int64(0), nil, false}, {true, true, true}, {true, false, false}, {false, nil, false},
		{list("a"), list("a"), true}, {list("a"), list("b"), false}, {list("a"), list("a", "b"), false}, {list(), nil, true}, {list(), "a", false}, {[]any{}, tree("a", "b"), false},
		{tree("a", "b"), tree("a", "b"), true}, {tree("a", "b"), tree("a", "c"), false}, {tree("a", "b"), tree("c", "b"), false}, {tree("a", nil), tree("c", nil), true}, {map[string]any{}, nil, true}, {map[string]any{}, "a", false},
		{map[string]any{}, tree("a", "b"), false}, {tree("a", "b"), nil, false}, {tree("a", list()), tree("a", nil), true}, {tree("a", list("x")), tree("a", list("y")), false},
		{nil, nil, true}, {nil, list(), true}, {nil, map[string]any{}, true}, {nil, list("a"), false}, {nil, "", false}, {1.5, 1.5, true}, {1.5, 2.5, false},
	} {
		if got := same(c.a, c.b); got != c.want {
			t.Errorf("%d: %v and %v: %v", i, c.a, c.b, got)
		}
	}
}

// CEL values become trees.
func TestPlainValues(t *testing.T) {
	adapter := types.DefaultTypeAdapter
	for _, v := range []any{"a", int64(1), 1.5, true, false} {
		if got := plain(adapter.NativeToValue(v)); got != v {
			t.Errorf("%v has become %v", v, got)
		}
	}
	if got := plain(types.Uint(7)); got != int64(7) {
		t.Errorf("%T", got)
	}
	if got := plain(types.NullValue); got != nil {
		t.Error(got)
	}
	if got, _ := plain(adapter.NativeToValue([]any{"a", true})).([]any); len(got) != 2 || got[1] != true {
		t.Error(got)
	}
	if got, _ := plain(adapter.NativeToValue(map[string]any{"a": int64(2)})).(map[string]any); len(got) != 1 || got["a"] != int64(2) {
		t.Error(got)
	}
}

// Rules are for some writes and not for others.
func TestWhenRulesApply(t *testing.T) {
	for _, c := range []struct {
		when, subresource string
		w                 walk
		want              bool
	}{
		{"", "", walk{}, true}, {"create", "", walk{}, true}, {"create", "", walk{update: true}, false}, {"update", "", walk{}, false}, {"update", "", walk{update: true}, true},
		{"", "", walk{subresource: "status"}, false}, {"", "", walk{subresource: "status", inStatus: true}, true}, {"", "", walk{subresource: "resize"}, true},
		{"", "*", walk{subresource: "status"}, true}, {"", "main", walk{}, true}, {"", "main", walk{subresource: "status", inStatus: true}, false}, {"", "resize", walk{subresource: "resize"}, true}, {"", "resize", walk{}, false},
	} {
		if got := (&rule{When: c.when, Subresource: c.subresource}).applies(&c.w); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Writes of an object keep its status, and those of the status the rest.
func TestWhatWritesKeep(t *testing.T) {
	k := Find("apps", "v1", "deployments")
	object := func() map[string]any {
		return treeOf(t, "metadata: {name: d, labels: {a: b}}\nspec: {replicas: 1}\nstatus: {replicas: 2}")
	}
	old := treeOf(t, "metadata: {name: d}\nspec: {replicas: 3}\nstatus: {replicas: 4}")
	part := func(tree map[string]any, name string) any { m, _ := tree[name].(map[string]any); return m["replicas"] }
	was := part(old, "status")
	tree := object()
	if changed, err := k.Prepare(tree, old); err != nil || !changed || part(tree, "status") != was || part(tree, "spec") == part(old, "spec") || part(old, "status") != was {
		t.Errorf("an update: %v %v %v", tree, changed, err)
	}
	tree = object()
	if changed, err := k.Prepare(tree, nil); err != nil || !changed || tree["status"] != nil {
		t.Errorf("a new object: %v %v %v", tree, changed, err)
	}
	if changed, err := k.Prepare(tree, nil); err != nil || changed {
		t.Errorf("again: %v %v", changed, err)
	}
	tree = object()
	if changed, err := k.PrepareStatus(tree, old); err != nil || !changed || part(tree, "spec") != part(old, "spec") || part(tree, "status") == was {
		t.Errorf("a status: %v %v %v", tree, changed, err)
	}
}
