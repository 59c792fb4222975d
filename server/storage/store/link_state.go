package store

import "time"

const (
	// probeEvery is how often a member is asked.
	probeEvery = time.Second
	// probeTick is how often a link looks at a request that is not answered.
	probeTick = 250 * time.Millisecond
	// linkPatience is how long a member may be silent, or without a leader.
	linkPatience = 2 * time.Second
	// maxPatience is for members that take seconds for every answer.
	maxPatience = 10 * time.Second
	// quicker is how many times as quick another member has to be as this one is
	// silent. If all are slow, none is held.
	quicker = 4
	// returning is how many answers in a row bring a link back that is held. One may be
	// the last that a dying member had in its buffers.
	returning = 2
)

// condition says whether a link to a member can be used.
type condition int

const (
	unknown condition = iota // it has not been probed long enough
	fine
	silent
	leaderless
)

// state is what the probes of a link have found out. Durations are of time that this
// process could run in, as well as it can tell: see ran.
type state struct {
	answered bool          // ever
	waiting  time.Duration // for the answer to the oldest request without one; 0 if there is none
	took     time.Duration // the last answer
	inARow   int           // answers without a failure
	adrift   time.Duration // how long the member answers that it knows no leader
	led      time.Duration // how long it answers that it knows one
	held     bool

	since       time.Time // when the oldest request without an answer was sent
	leaderSince time.Time // since when it knows a leader, or none
	lastSince   time.Time // since when it was not fine, before it was fine again
	err         error     // why the last attempt failed
}

// ran is how much of a time between two looks this process could run in. A process that
// was stopped, on a machine that slept, or that got no CPU has heard nothing from any
// member, and must not conclude from it that all members are dead.
func ran(elapsed, pause time.Duration) time.Duration { return min(elapsed, pause+probeTick) }

// patience is how long the member may be silent. One that is slow gets twice the time
// of its last answer: it is slow all the time, and not away again and again.
func (s *state) patience() time.Duration {
	return min(max(linkPatience, 2*s.took), maxPatience)
}

// condition is that of the link now.
func (s *state) condition() condition {
	switch {
	case s.waiting >= s.patience():
		return silent
	case s.adrift >= linkPatience:
		return leaderless
	case !s.answered:
		return unknown
	}
	return fine
}

// better reports whether a link is so much better than one that has been waited for
// that it is to be used instead.
func (s *state) better(waited time.Duration) bool {
	slowness := max(s.took, s.waiting)
	return s.answered && !s.held && slowness < linkPatience && quicker*slowness <= waited
}

// review decides which link is held. It returns those that were not held before.
func review(all []*state) (held []*state) {
	for _, s := range all {
		if now := hold(s, all); now != s.held {
			if s.held = now; now {
				s.inARow = 0
				held = append(held, s)
			}
		}
	}
	return held
}

// hold decides about one link.
func hold(s *state, all []*state) bool {
	another := func(good func(*state) bool) bool {
		for _, other := range all {
			if other != s && good(other) {
				return true
			}
		}
		return false
	}
	// After an election members learn of the leader one after the other: that is no
	// reason to hold the last.
	led := func(other *state) bool { return other.led >= linkPatience && other.better(linkPatience) }
	if s.held {
		// To hold the only link that there is would be to give up.
		usable := another(func(other *state) bool { return !other.held && other.answered && other.waiting < linkPatience })
		switch {
		case !usable:
			return false
		case s.inARow < returning:
			return true
		}
		return s.adrift > 0 && another(led)
	}
	switch s.condition() {
	case silent:
		return another(func(other *state) bool { return other.better(s.waiting) })
	case leaderless:
		return another(led)
	}
	// A link that has never answered has no requests either.
	return false
}
