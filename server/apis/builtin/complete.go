package builtin

import (
	"hash/maphash"
	"reflect"
	"sync/atomic"
)

// completeSlots is how many objects complete remembers at most: 128 KB, which a server
// takes with the first of them.
const completeSlots = 8192

// complete remembers, by hash, the stored bytes of objects that had all their defaults when
// this process read them. Nothing in etcd says so: what another process has written is
// read like anything else. Whether an object has all defaults depends on its bytes, on its
// kind, which JSON from a client of etcd may not say, and on the files of kinds, which are
// part of the program.
//
// A hash has 127 bits and a secret seed, so that no client finds bytes with the hash of
// others. An object takes the place of another one with the same slot.
type complete struct {
	seeds [2]maphash.Seed
	slots atomic.Pointer[[completeSlots]completeSlot]
}

// completeSlot has both halves of a hash. Writers may mix those of two hashes: the result
// equals neither, because a reader compares both.
type completeSlot [2]atomic.Uint64

type completeSum [2]uint64

func newComplete() *complete {
	return &complete{seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
}

// sum is the hash of the bytes of an object of a type. It is never that of an empty slot.
func (c *complete) sum(of reflect.Type, data []byte) completeSum {
	return completeSum{maphash.Bytes(c.seeds[0], data) ^ maphash.Comparable(c.seeds[0], of), maphash.Bytes(c.seeds[1], data) | 1}
}

// has reports whether an object had all its defaults.
func (c *complete) has(sum completeSum) bool {
	slots := c.slots.Load()
	if slots == nil {
		return false
	}
	slot := &slots[sum[0]%completeSlots]
	return slot[0].Load() == sum[0] && slot[1].Load() == sum[1]
}

// add remembers an object that has all its defaults.
func (c *complete) add(sum completeSum) {
	if c.slots.Load() == nil {
		c.slots.CompareAndSwap(nil, new([completeSlots]completeSlot)) // another may have been first
	}
	slot := &c.slots.Load()[sum[0]%completeSlots]
	slot[0].Store(sum[0])
	slot[1].Store(sum[1])
}
