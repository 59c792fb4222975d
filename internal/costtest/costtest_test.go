package costtest

import (
	"testing"
	"time"
)

func TestExceeds(t *testing.T) {
	const none = 1 << 62
	first := cost{size: 100, time: time.Millisecond, scattered: none, alloc: 1 << 20}
	for _, c := range []struct {
		what  string
		limit float64
		next  cost
		fails bool
	}{
		{"linear", 1.3, cost{size: 1000, time: 11 * time.Millisecond, scattered: none, alloc: 10 << 20}, false},
		{"steeper", 1.3, cost{size: 1000, time: 14 * time.Millisecond, scattered: none, alloc: 10 << 20}, true},
		{"steeper, less exactly", 4, cost{size: 1000, time: 14 * time.Millisecond, scattered: none, alloc: 10 << 20}, false},
		{"quadratic", 4, cost{size: 1000, time: 100 * time.Millisecond, scattered: none, alloc: 10 << 20}, true},
		{"quadratic memory", 4, cost{size: 1000, time: 10 * time.Millisecond, scattered: none, alloc: 100 << 20}, true},
	} {
		if fault := exceeds(c.limit, []cost{first, c.next}); (fault != "") != c.fails {
			t.Errorf("%s: %q", c.what, fault)
		}
	}
	from, to := cost{size: 1, time: time.Second, scattered: time.Second}, cost{size: 10, time: 18 * time.Second, scattered: 17 * time.Second}
	if fault := exceeds(1.3, []cost{from, to}); fault != "" {
		t.Errorf("as fast as the known algorithm: %s", fault)
	}
	from.time, from.alloc, to.time, to.alloc = time.Nanosecond, 1, 20*10*time.Microsecond, 10<<16
	if fault := exceeds(1.3, []cost{from, to}); fault != "" {
		t.Errorf("noise is taken for growth: %s", fault)
	}
}

func TestGrowthIsMeasuredIfToldTo(t *testing.T) {
	t.Run("linear", func(t *testing.T) {
		ran := false
		t.Cleanup(func() {
			if told := *growth != 0 && !Race; ran != told {
				t.Errorf("it ran: %v; told to: %v", ran, told)
			}
		})
		Linear(t, Input{Size: 1, Run: func() { ran = true }}, Input{Size: 10, Run: func() {}})
	})
	Within(t, time.Minute, func() {})
}
