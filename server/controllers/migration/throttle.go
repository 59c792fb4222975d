package migration

import (
	"slices"
	"time"
)

const (
	// window is how many transactions the latency of now is the median of.
	window = 8
	// slowdown is how many times the idle latency is too slow.
	slowdown = 2
	// maxPause bounds how many times as long as its transactions a migration rests.
	maxPause = 16
	// crowded is how many requests of users under way count as load.
	crowded = 4
)

// throttle slows a migration down while the server has other work: while transactions
// take longer than on the idle server, or users' requests are under way.
//
//	latency of the last transactions > 2 × idle, or requests under way ──▶ smaller batches, longer pauses
//	otherwise ───────────────────────────────────────────────────────────▶ shorter pauses, larger batches
type throttle struct {
	// load is how many requests of users are under way. May be nil.
	load func() int64

	last  []time.Duration // of single objects
	idle  time.Duration   // the lowest median so far, which rises slowly
	pause float64         // as a multiple of the time that transactions take
	level int             // of batches: each halves them
}

const maxLevel = 4

// batch is how many operations a transaction has that writes objects of so many each.
func (t *throttle) batch(perObject int) int {
	return max(perObject, (maxOps-reserved)>>t.level)
}

// after says how long to rest after a transaction of n objects.
func (t *throttle) after(took time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	t.last = append(t.last, took/time.Duration(n))
	if len(t.last) < window {
		return t.rest(took)
	}
	sorted := slices.Sorted(slices.Values(t.last))
	median := sorted[len(sorted)/2]
	t.last = t.last[1:]
	if t.idle == 0 || median < t.idle {
		t.idle = median
	}
	t.idle += t.idle / 4096 // a machine that has become slower for good is not loaded
	if median > slowdown*t.idle || t.load != nil && t.load() >= crowded {
		t.pause = min(maxPause, max(0.5, 2*t.pause))
		t.level = min(maxLevel, t.level+1)
	} else {
		t.pause = max(0, t.pause/2-0.05)
		t.level = max(0, t.level-1)
	}
	return t.rest(took)
}

func (t *throttle) rest(took time.Duration) time.Duration {
	return time.Duration(t.pause * float64(took))
}

// meter measures a rate over the last seconds.
type meter struct {
	since time.Time
	n     int64
	rate  float64
}

// add counts what was done, and updates the rate about once a second.
func (m *meter) add(n int64, now time.Time) {
	if m.since.IsZero() {
		m.since = now
	}
	m.n += n
	if passed := now.Sub(m.since); passed >= time.Second {
		m.rate = float64(m.n) / passed.Seconds()
		m.n, m.since = 0, now
	}
}
