package tenants

import (
	"fmt"
	"testing"

	"github.com/espalier-dev/espalier/server/storage/meter"
)

// The figures are of the tenants in use that have the highest ones, in their order.
func TestTop(t *testing.T) {
	s := emptySet(Options{})
	for i := range 20 {
		p := newPlane()
		p.usage = meter.Usage{Bytes: int64(100 - i)}
		s.inUse(fmt.Sprintf("t%02d", i), p, 0).requests.Store(int64(i / 2))
	}
	s.active["starting"] = &entry{name: "starting"}
	busiest, largest := s.Top(3)
	if got := fmt.Sprint(busiest); got != "[{t18 9 {0 82}} {t19 9 {0 81}} {t16 8 {0 84}}]" {
		t.Error(got)
	}
	if got := fmt.Sprint(largest); got != "[{t00 0 {0 100}} {t01 0 {0 99}} {t02 1 {0 98}}]" {
		t.Error(got)
	}
	if busiest, largest := s.Top(100); len(busiest) != 20 || len(largest) != 20 {
		t.Error(len(busiest), len(largest))
	}
}
