package tenants

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

// Tenants are spread over etcds evenly.
func TestPreference(t *testing.T) {
	counts := map[string]int{}
	for i := range 3000 {
		best := ""
		for _, name := range []string{"a", "b", "c"} {
			if uid := types.UID(fmt.Sprint("uid-", i)); best == "" || preference(uid, name) < preference(uid, best) {
				best = name
			}
		}
		counts[best]++
	}
	for name, n := range counts {
		if n < 800 || n > 1200 {
			t.Errorf("%d of 3000 tenants in %s", n, name)
		}
	}
}

// The keys of fences are in the order of their numbers, and in no range of a tenant.
func TestFenceKeys(t *testing.T) {
	const uid = "0a-b"
	if a, b := fence("/p", uid, 9), fence("/p", uid, 10); a >= b || !strings.HasPrefix(a, fences("/p", uid)) {
		t.Error(a, b)
	}
	for _, r := range append(ranges("/p", uid), below(Guard("/p", uid))) {
		if key := fence("/p", uid, 1); key >= r.begin && key < r.end {
			t.Errorf("%s is between %s and %s", key, r.begin, r.end)
		}
	}
}
