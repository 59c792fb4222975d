package spelling

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"replicas", "image", "imagePullPolicy", "env", "x", "serviceAccountName", "gold", "é"}
	for name, want := range map[string]string{
		"replica": "replicas", "Replicas": "replicas", "repilcas": "replicas", "imag": "image", "imgae": "image", "glod": "gold",
		"IMAGEPULLPOLICY": "imagePullPolicy", "imagePullpolicies": "imagePullPolicy", "X": "x", "y": "", "envs": "env",
		"serviceAccount": "", "weather": "", "": "", strings.Repeat("a", 200): "",
	} {
		if got := Nearest(name, slices.Values(names)); got != want {
			t.Errorf("nearest to %q is %q, want %q", name, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b        string
		limit, want int
	}{
		{"", "", 3, 0}, {"a", "", 3, 1}, {"abc", "ABC", 3, 0}, {"abcd", "abdc", 3, 1}, {"abcd", "wxyz", 3, 3}, {"a", "abcdef", 3, 3},
		{"kitten", "sitting", 9, 3}, {"a", strings.Repeat("a", 1000), 2000, 2000},
	} {
		if got := Distance(c.a, c.b, c.limit); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
		if got := Distance(c.b, c.a, c.limit); len(c.b) < 80 && got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.b, c.a, got, c.want)
		}
	}
}

func FuzzDistance(f *testing.F) {
	f.Add("replica", "replicas", 4)
	f.Fuzz(func(t *testing.T, a, b string, limit int) {
		limit = min(max(limit, 0), 100)
		if d := Distance(a, b, limit); d < 0 || d > limit || a == b && len(a) <= maxCandidate && d != 0 {
			t.Fatalf("%q, %q: %d", a, b, d)
		}
	})
}
