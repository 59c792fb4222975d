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
	maxPause, maxLonely = 64, 2
	// While there are users it rests at least as many times as long as its transactions as
	// they send tens of requests a second, at most mostRest times: at 500 requests a second
	// they meet one of its transactions in one of fifty requests. Users who send fewer meet more
	// of them: a migration must end while a user asks again and again how far it is.
	ten, mostRest = 10.0, 49.0
	// busyLevel is by how much batches are smaller then: each level halves them.
	busyLevel = 3
	// busy is how many requests of users in a second count as users, and calm how long they
	// do so after the last of them: a batch of the idle server takes many times as long as a request.
	busy = 10
	calm = 3 * time.Second
	// look is how often requests are counted at most, and several how many mean users
	// without waiting for that: a second of full batches is one percent of what users
	// send in two minutes.
	look    = 300 * time.Millisecond
	several = 5
)

// throttle slows a migration down while the server has other work: while transactions
// take longer than on the idle server, or users send requests.
//
//	requests of users ─────────────────────▶ small batches, long pauses
//	median of the last latencies > 2 × idle ─▶ longer pauses
//	otherwise ─────────────────────────────▶ shorter pauses
type throttle struct {
	// begun is how many requests of users have begun so far. May be nil.
	begun func() int64

	counted int64 // requests, at a time
	at      time.Time
	users   time.Time // until when there are users
	rate    float64   // of their requests, a second
	level   int       // of batches
	last    []time.Duration
	// idle is the lowest median so far, of batches of each level: a small batch takes less
	// time, and more for each object.
	idle  [busyLevel + 1]time.Duration
	pause float64 // as a multiple of the time that transactions take
}

// batch is how many operations a transaction has that writes so many for each object.
func (t *throttle) batch(perObject int) int {
	return max(perObject, (maxOps-reserved)>>t.level)
}

// after says how long to rest after a transaction of n objects that ended now.
func (t *throttle) after(took time.Duration, n int, now time.Time) time.Duration {
	if n == 0 {
		return 0
	}
	t.observe(now)
	t.last = append(t.last, took)
	if len(t.last) >= window {
		sorted := slices.Sorted(slices.Values(t.last))
		t.adjust(sorted[len(sorted)/2])
		t.last = t.last[1:]
	}
	pause := t.pause
	if t.level > 0 {
		pause = max(pause, min(t.rate/ten, mostRest))
	}
	return time.Duration(pause * float64(took))
}

// observe looks whether there are users.
func (t *throttle) observe(now time.Time) {
	if t.begun == nil {
		return
	}
	passed, n := now.Sub(t.at), t.begun()
	if t.at.IsZero() {
		t.counted, t.at = n, now
	} else if passed >= look || n-t.counted >= several {
		if rate := float64(n-t.counted) / passed.Seconds(); rate >= busy && n > t.counted {
			t.users, t.rate = now.Add(calm), rate
		}
		t.counted, t.at = n, now
	}
	level := 0
	if now.Before(t.users) {
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
