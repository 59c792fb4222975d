package faults

import (
	"hash/fnv"
	"io"
)

// A Kind is one way in which a correct server behaves badly.
type Kind string

// The kinds. espaliertest has the words for users.
const (
	LateEvents   Kind = "late-events"
	ClosedWatch  Kind = "closed-watch"
	Expired      Kind = "expired"
	Conflict     Kind = "conflict"
	LostAnswer   Kind = "lost-answer"
	Refused      Kind = "refused"
	StaleRead    Kind = "stale-read"
	Disconnect   Kind = "disconnect"
	NoBookmarks  Kind = "no-bookmarks"
	NoWatchLists Kind = "no-watch-lists"
)

// base is how probable a fault is where it applies, at intensity 1.
var base = map[Kind]float64{
	LateEvents:   0.45,
	ClosedWatch:  0.06,
	Expired:      0.20,
	Conflict:     0.12,
	LostAnswer:   0.08,
	Refused:      0.05,
	StaleRead:    0.50,
	Disconnect:   0.02,
	NoBookmarks:  0.70,
	NoWatchLists: 1,
}

const (
	// most is the probability that no weight lifts a fault over, so that clients
	// that try again get on.
	most = 0.8
	// row is how many faults in a row requests of one name may get.
	row = 3
	// total is how many faults requests of a schedule may get: with it, clients that go
	// on trying get everything done.
	total = 30
)

// A Plan says what goes wrong.
type Plan struct {
	Seed    uint64
	Weights map[Kind]float64 // one that is missing is 1
}

// chance is how probable a fault of a kind is in this plan. Seeds differ in which
// kinds they have at all and how much of them: a schedule that has everything hides
// bugs that need one fault many times.
func (p Plan) chance(k Kind) float64 {
	weight, ok := p.Weights[k]
	if !ok {
		weight = 1
	}
	if k == NoWatchLists {
		return weight // a server has the feature or does not have it
	}
	return min(most, base[k]*weight*[]float64{0, 0.5, 1, 1, 2, 3}[p.pick(6, "intensity", string(k))])
}

// roll reports whether something of this name happens with a probability.
func (p Plan) roll(chance float64, name ...string) bool { return p.unit(name...) < chance }

// unit is a number in [0, 1).
func (p Plan) unit(name ...string) float64 { return float64(p.hash(name...)>>11) / (1 << 53) }

// pick is a number in [0, n).
func (p Plan) pick(n int, name ...string) int { return int(p.hash(name...) % uint64(n)) }

func (p Plan) hash(name ...string) uint64 {
	h := fnv.New64a()
	for i := range 8 {
		_, _ = h.Write([]byte{byte(p.Seed >> (8 * i))})
	}
	for _, s := range name {
		_, _ = io.WriteString(h, s)
		_, _ = h.Write([]byte{0})
	}
	// FNV leaves similar names close together: this spreads them (splitmix64).
	x := h.Sum64()
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
