package quota

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// TestReserve has another replica, or the controller, write in between.
func TestReserve(t *testing.T) {
	was := quotaOf(1, 990)
	for _, c := range []struct {
		name         string
		more, stored int64
		want         int64 // -1 if there is no room
	}{
		{"the controller has lowered it", 3, 10, 13},
		{"another replica has raised it", 3, 995, 998},
		{"the last place", 3, 997, 1000},
		{"no room is left", 3, 998, -1},
		{"nothing is reserved", 0, 1000, 1000},
	} {
		got := reserve(was, quotaOf(1, 990+c.more), quotaOf(2, c.stored))
		switch {
		case got == nil && c.want >= 0:
			t.Errorf("%s: refused", c.name)
		case got == nil:
		case got.ResourceVersion != "2":
			t.Errorf("%s: written on the condition of revision %s", c.name, got.ResourceVersion)
		default:
			if used := got.Status.Used["count/a"]; used.Value() != c.want {
				t.Errorf("%s: %d is used, not %d", c.name, used.Value(), c.want)
			}
		}
	}
	other := quotaOf(2, 0)
	other.UID = "v"
	if reserve(was, quotaOf(1, 991), other) != nil {
		t.Error("a quota that was made anew gets the reservations of the former")
	}
	other = quotaOf(2, 0)
	other.Status.Hard = corev1.ResourceList{"count/a": resource.MustParse("1")}
	if reserve(was, quotaOf(1, 991), other) != nil {
		t.Error("other limits are not looked at")
	}
}
