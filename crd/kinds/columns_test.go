package kinds

import "testing"

// TestEndpointsColumn has subsets whose pairs of addresses and ports are a product.
func TestEndpointsColumn(t *testing.T) {
	subset := func(addresses, ports int) any {
		var a, p []any
		for i := range addresses {
			a = append(a, map[string]any{"ip": "10.0.0." + string(rune('1'+i))})
		}
		for i := range ports {
			p = append(p, map[string]any{"port": int64(80 + i)})
		}
		return map[string]any{"addresses": a, "ports": p}
	}
	for _, test := range []struct {
		subsets []any
		want    string
	}{
		{[]any{subset(2, 0)}, "10.0.0.1,10.0.0.2"},
		{[]any{subset(1, 1), subset(1, 1)}, "10.0.0.1:80,10.0.0.1:80"},
		{[]any{subset(2, 2)}, "10.0.0.1:80,10.0.0.2:80,10.0.0.1:81 + 1 more..."},
		{[]any{subset(1, 5), subset(4, 4)}, "10.0.0.1:80,10.0.0.1:81,10.0.0.1:82 + 18 more..."},
		{[]any{subset(0, 4)}, ""},
	} {
		if got := Find("", "v1", "endpoints").Row(map[string]any{"subsets": test.subsets})[1]; got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
