package scrape

import (
	"math"
	"strings"
	"testing"
)

const text = `# HELP a Help.
# TYPE a counter
a{x="1",y="p\"q\\\n}"} 3
a{x="1",y=""} 4 1700000000000
a{x="2"} 1e+03
b 5
c{le="0.1"} 1
h_bucket{name="w",le="0.1"} 90
h_bucket{name="w",le="1"} 99
h_bucket{name="w",le="+Inf"} 100
h_bucket{name="v",le="0.1"} 0
`

func all(string) bool { return true }

func TestRead(t *testing.T) {
	m, err := Read(strings.NewReader(text), func(name string) bool { return name != "c" })
	if err != nil {
		t.Fatal(err)
	}
	if len(m["a"]) != 3 || m["a"][0].Labels["y"] != "p\"q\\\n}" || m["b"][0].Value != 5 || m["c"] != nil {
		t.Errorf("%v", m)
	}
	if sums := m.Sum("a", "x"); len(sums) != 2 || sums[0].Value != 7 || sums[1].Value != 1000 || sums[1].Labels["x"] != "2" {
		t.Errorf("%v", sums)
	}
	if v, ok := m.Value("a", "x", "1"); v != 7 || !ok {
		t.Error(v, ok)
	}
	if v, ok := m.Value("a", "x", "3"); v != 0 || ok {
		t.Error(v, ok)
	}
	for q, want := range map[float64]float64{0.5: 0.1, 0.95: 1, 0.999: math.Inf(1)} {
		if got := m.Quantile(q, "h", "name", "w"); got != want {
			t.Errorf("%v: %v", q, got)
		}
	}
	if got := m.Quantile(0.5, "h", "name", "v"); !math.IsNaN(got) {
		t.Errorf("of nothing: %v", got)
	}
	for _, wrong := range []string{"a{", `a{x="1`, `a{x="1\`, "a{x} 1", "a b", "a "} {
		if m, err := Read(strings.NewReader(wrong), all); err == nil && len(m) > 0 {
			t.Errorf("%s: %v", wrong, m)
		}
	}
	if _, err := Read(strings.NewReader("a{x=\""+strings.Repeat("x", 2<<20)), all); err == nil {
		t.Error("a line without end is read")
	}
}

func TestSince(t *testing.T) {
	before, _ := Read(strings.NewReader("a{x=\"1\"} 5\na{x=\"2\"} 9\n"), all)
	after, _ := Read(strings.NewReader("a{x=\"1\"} 7\na{x=\"2\"} 4\na{x=\"3\"} 1\n"), all)
	grown := after.Since(before)
	for x, want := range map[string]float64{"1": 2, "2": 4, "3": 1} { // 2 was restarted
		if got, _ := grown.Value("a", "x", x); got != want {
			t.Errorf("%s: %v", x, got)
		}
	}
}
