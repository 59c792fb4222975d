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
	// maxPause bounds how many times as long as its transactions a migration rests while
	// users' requests are under way at this replica, and maxLonely while there are none: then
	// another replica has users, or another program is at work.
	maxPause, maxLonely = 16, 2
	// minPause is how long it rests at least while there are users.
	minPause = 4
	// busyLevel is by how much batches are smaller then: each level halves them.
	busyLevel = 3
	// busy is how many requests of users must be under way on average.
	busy = 0.5
	// memory is how many transactions that average is of, about.
	memory = 16
)

// throttle slows a migration down while the server has other work: while transactions
// take longer than on the idle server, or users' requests are under way.
//
//	requests of users under way ───────────▶ small batches, long pauses
//	median of the last latencies > 2 × idle ─▶ longer pauses
//	otherwise ─────────────────────────────▶ shorter pauses
type throttle struct {
	// load is how many requests of users are under way. May be nil.
	load func() int64

	users float64 // requests under way, on average
	level int     // of batches
	last  []time.Duration
	// idle is the lowest median so far, of batches of each level: a small batch takes less
	// time, and more for each object.
	idle  [busyLevel + 1]time.Duration
	pause float64 // as a multiple of the time that transactions take
}

// batch is how many operations a transaction has that writes so many for each object.
func (t *throttle) batch(perObject int) int {
	return max(perObject, (maxOps-reserved)>>t.level)
}

// after says how long to rest after a transaction of n objects.
func (t *throttle) after(took time.Duration, n int) time.Duration {
	if n == 0 {
		return 0
	}
	t.observe()
	t.last = append(t.last, took)
	if len(t.last) >= window {
		sorted := slices.Sorted(slices.Values(t.last))
		t.adjust(sorted[len(sorted)/2])
		t.last = t.last[1:]
	}
	pause := t.pause
	if t.level > 0 {
		pause = max(pause, minPause)
	}
	return time.Duration(pause * float64(took))
}

// observe looks whether there are users.
func (t *throttle) observe() {
	if t.load != nil {
		t.users += (float64(t.load()) - t.users) / memory
	}
	level := 0
	if t.users >= busy {
		level = busyLevel
	}
	if level != t.level {
		t.level, t.last = level, nil
	}
}

// adjust changes the pauses by the latency of now.
func (t *throttle) adjust(median time.Duration) {
	idle, limit := &t.idle[t.level], float64(maxLonely)
	if *idle == 0 || median < *idle {
		*idle = median
	}
	if t.level > 0 {
		limit = maxPause
	} else {
		*idle += *idle / 256 // a machine that has become slower for good is idle, too
	}
	if median > slowdown**idle {
		t.pause = max(0.5, 1.5*t.pause)
	} else {
		t.pause = max(0, t.pause/2-0.05)
	}
	t.pause = min(t.pause, limit)
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
