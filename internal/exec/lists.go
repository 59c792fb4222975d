package exec

import (
	"bytes"
	"hash/maphash"
	"math/bits"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

// uniqueness finds duplicates among the items of lists of type set and map, in
// expected linear time: hashes are seeded, so that no object can be made to
// collide.
type uniqueness struct {
	table []uint32 // open addressing: place in items +1, 0 for a free slot
	items []keyed
	a, b  []byte // scratch: canonical forms
}

// keyed is an item and the hash of what identifies it.
type keyed struct {
	value jsondoc.Value
	hash  uint64
}

var listSeed = maphash.MakeSeed()

// fewItems is how many are compared with each other without a table.
const fewItems = 8

func (u *uniqueness) trim() {
	if cap(u.items) > 1<<16 {
		u.items, u.table = nil, nil
	}
	if cap(u.a)+cap(u.b) > maxPooledBuffer {
		u.a, u.b = nil, nil
	}
}

// unique reports whether the items of the list v are all different, and, for a
// list map, objects or null.
func (u *uniqueness) unique(d *jsondoc.Doc, v jsondoc.Value, n *plan.Node) bool {
	keys := mapKeys(n)
	if n.Flags&plan.ListMap != 0 {
		if _, ok := notObject(d, v); ok {
			return false
		}
	}
	ok := true
	u.duplicates(d, v, keys, func(int, jsondoc.Value) bool {
		ok = false
		return false
	})
	return ok
}

// mapKeys returns the keys of a list map, nil for a set.
func mapKeys(n *plan.Node) []string {
	if n.Flags&plan.ListMap == 0 {
		return nil
	}
	if n.Rare == nil || len(n.Rare.ListMapKeys) == 0 {
		return []string{}
	}
	return n.Rare.ListMapKeys
}

// notObject returns the first item of a list map that is neither object nor
// null.
func notObject(d *jsondoc.Doc, v jsondoc.Value) (int, bool) {
	for i, c := range d.Items(v) {
		if k := d.Kind(c); k != jsondoc.Object && k != jsondoc.Null {
			return i, true
		}
	}
	return 0, false
}

// duplicates calls found for the second of every group of equal items of v, as
// upstream reports them, until it returns false. keys identify the items of a
// list map; they are nil for a set, whose items are compared as a whole.
func (u *uniqueness) duplicates(d *jsondoc.Doc, v jsondoc.Value, keys []string, found func(index int, item jsondoc.Value) bool) {
	n := d.Len(v)
	if n < 2 {
		return
	}
	u.items = slices.Grow(u.items[:0], n)
	mask := 0
	if n > fewItems {
		size := 1 << bits.Len(uint(2*n))
		mask = size - 1
		if cap(u.table) < size {
			u.table = make([]uint32, size)
		}
		u.table = u.table[:size]
		clear(u.table)
	}
	end := d.Next(v)
	for c := v + 1; c < end; c = d.Next(c) {
		i := len(u.items)
		x := keyed{value: c}
		var twin int
		if mask == 0 {
			twin = u.scan(d, x, keys)
		} else {
			x.hash = u.hash(d, c, keys)
			twin = u.probe(d, x, keys, mask)
		}
		u.items = append(u.items, x)
		// Marking the first of a group makes its third and later ones silent.
		if twin >= 0 && u.items[twin].hash&reported == 0 {
			u.items[twin].hash |= reported
			if !found(i, c) {
				return
			}
		}
	}
}

// reported is the bit of a hash that says its group has been reported.
const reported = 1 << 63

func (u *uniqueness) scan(d *jsondoc.Doc, x keyed, keys []string) int {
	for i := range u.items {
		if u.same(d, u.items[i].value, x.value, keys) {
			return i
		}
	}
	return -1
}

// probe returns the place of an item equal to x, or enters x in the table.
func (u *uniqueness) probe(d *jsondoc.Doc, x keyed, keys []string, mask int) int {
	for i := int(x.hash) & mask; ; i = (i + 1) & mask {
		t := u.table[i]
		if t == 0 {
			u.table[i] = uint32(len(u.items) + 1)
			return -1
		}
		if have := u.items[t-1]; have.hash&^reported == x.hash && u.same(d, have.value, x.value, keys) {
			return int(t - 1)
		}
	}
}

func (u *uniqueness) hash(d *jsondoc.Doc, v jsondoc.Value, keys []string) uint64 {
	if keys == nil {
		return maphash.Bytes(listSeed, u.canonical(d, v, &u.a)) &^ reported
	}
	var h maphash.Hash
	h.SetSeed(listSeed)
	for _, key := range keys {
		if k, ok := d.Get(v, key); ok {
			_ = h.WriteByte(1)
			_, _ = h.Write(u.canonical(d, k, &u.a))
		} else {
			_ = h.WriteByte(0)
		}
	}
	return h.Sum64() &^ reported
}

func (u *uniqueness) same(d *jsondoc.Doc, v, w jsondoc.Value, keys []string) bool {
	if keys == nil {
		return bytes.Equal(u.canonical(d, v, &u.a), u.canonical(d, w, &u.b))
	}
	for _, key := range keys {
		a, inV := d.Get(v, key)
		b, inW := d.Get(w, key)
		if inV != inW || inV && !bytes.Equal(u.canonical(d, a, &u.a), u.canonical(d, b, &u.b)) {
			return false
		}
	}
	return true
}

// canonical returns the canonical form of v, in buf if it has to be made.
func (u *uniqueness) canonical(d *jsondoc.Doc, v jsondoc.Value, buf *[]byte) []byte {
	if d.IsCanonical(v) {
		return d.Raw(v)
	}
	*buf = d.AppendCanonical((*buf)[:0], v)
	return *buf
}
