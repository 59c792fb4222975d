package generate

import (
	"math/bits"
	"math/rand/v2"
)

// dice are random numbers without interfaces in between.
type dice struct{ pcg rand.PCG }

func newDice(seed, stream uint64) dice {
	var d dice
	d.pcg.Seed(seed, stream)
	return d
}

// n is a number below k, which must be positive.
func (d *dice) n(k int) int {
	hi, _ := bits.Mul64(d.pcg.Uint64(), uint64(k))
	return int(hi)
}

// one is true once in k times.
func (d *dice) one(k int) bool { return d.n(k) == 0 }

func (d *dice) of(list []string) string { return list[d.n(len(list))] }
