package grammar

import (
	"math/bits"
	"math/rand/v2"
)

// Dice are random numbers that a seed fixes.
type Dice struct {
	pcg   rand.PCG
	alone bool // write no branches beside the one that a case is about
}

// NewDice returns the dice of a seed. The stream tells the uses of one seed apart.
func NewDice(seed, stream uint64) *Dice {
	d := &Dice{}
	d.pcg.Seed(seed, stream)
	return d
}

// n is a number below k, which must be positive.
func (d *Dice) n(k int) int {
	hi, _ := bits.Mul64(d.pcg.Uint64(), uint64(k))
	return int(hi)
}

// one is true once in k times.
func (d *Dice) one(k int) bool { return d.n(k) == 0 }

func (d *Dice) of(list []string) string { return list[d.n(len(list))] }
