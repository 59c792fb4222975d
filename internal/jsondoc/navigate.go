package jsondoc

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
)

// Member is a key of an object and its value.
type Member struct {
	Key, Value Value
	Duplicate  bool // an earlier member with the same key is shadowed by this one
}

// Len returns the number of items of an array or of effective members of an
// object; 0 for scalars.
func (d *Doc) Len(v Value) int {
	n := &d.tape[v]
	switch {
	case n.info&unsorted != 0:
		count := 0
		for range d.Members(v) {
			count++
		}
		return count
	case n.info>>countShift < countMax:
		return int(n.info >> countShift)
	}
	count := 0
	for c, end := v+1, Value(n.next); c < end; count++ {
		if Kind(n.info&kindMask) == Object {
			c++
		}
		c = d.Next(c)
	}
	return count
}

// Items ranges over the items of the array v.
func (d *Doc) Items(v Value) iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		if d.Kind(v) != Array {
			return
		}
		end := d.Next(v)
		for i, c := 0, v+1; c < end; i, c = i+1, d.Next(c) {
			if !yield(i, c) {
				return
			}
		}
	}
}

// Members ranges over the effective members of the object v in document
// order: of duplicate keys, only the last.
func (d *Doc) Members(v Value) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		if d.Kind(v) != Object {
			return
		}
		end := d.Next(v)
		if d.Sorted(v) {
			for k := v + 1; k < end; k = d.Next(k + 1) {
				if !yield(Member{Key: k, Value: k + 1}) {
					return
				}
			}
			return
		}
		// Duplicate or not is known only after sorting; put them back in order.
		sorted, _ := sortKeys(d, v, nil)
		slices.SortFunc(sorted, func(a, b sortKey) int { return int(a.key) - int(b.key) })
		for _, s := range sorted {
			if !yield(Member{Key: s.key, Value: s.key + 1, Duplicate: s.duplicate}) {
				return
			}
		}
	}
}

// Get returns the value of the effective member of the object v called key.
func (d *Doc) Get(v Value, key string) (Value, bool) {
	if d.Kind(v) != Object {
		return 0, false
	}
	var found Value
	ok := false
	end := d.Next(v)
	for k := v + 1; k < end; k = d.Next(k + 1) {
		if string(d.Key(k)) == key {
			found, ok = k+1, true
		}
	}
	return found, ok
}

// Index returns item i of the array v.
func (d *Doc) Index(v Value, i int) (Value, bool) {
	if d.Kind(v) != Array || i < 0 {
		return 0, false
	}
	end := d.Next(v)
	for c := v + 1; c < end; c = d.Next(c) {
		if i == 0 {
			return c, true
		}
		i--
	}
	return 0, false
}

// sortKey is a key being sorted: its first eight bytes, big-endian, decide
// most comparisons without touching the document.
type sortKey struct {
	prefix    uint64
	key       Value
	alike     bool // another key has the same prefix; all others differ
	duplicate bool // another member with the same key came earlier
}

// Keys is the result of SortedKeys; Release gives its scratch memory back, in
// the reverse order of the calls.
type Keys struct {
	doc  *Doc
	from int
	list []sortKey
	// Duplicates counts the members that are shadowed by a later one.
	Duplicates int
}

// SortedKeys returns the effective keys of the object v, sorted by their
// bytes, in scratch memory of the document.
func (d *Doc) SortedKeys(v Value) Keys {
	from := len(d.order)
	list, dups := sortKeys(d, v, d.order)
	d.order = list
	return Keys{doc: d, from: from, list: list[from:], Duplicates: dups}
}

// Len returns the number of effective keys.
func (k *Keys) Len() int { return len(k.list) }

// At returns the i-th key and whether it shadows an earlier member.
func (k *Keys) At(i int) (key Value, duplicate bool) {
	s := &k.list[i]
	return s.key, s.duplicate
}

// Release frees the scratch memory.
func (k *Keys) Release() { k.doc.order = k.doc.order[:k.from] }

// sortKeys appends v's effective keys to buf, sorted.
func sortKeys(d *Doc, v Value, buf []sortKey) (list []sortKey, duplicates int) {
	from := len(buf)
	end := d.Next(v)
	buf = slices.Grow(buf, int(d.tape[v].info>>countShift))
	few := d.tape[v].info>>countShift <= insertionMax
	for k := v + 1; k < end; k = d.Next(k + 1) {
		buf = append(buf, sortKey{prefix: prefixOf(d.Key(k)), key: k, alike: few})
	}
	keys := buf[from:]
	if few {
		d.insertionSort(keys)
	} else {
		tmp := slices.Grow(d.spare[:0], len(keys))[:len(keys)]
		d.radixSort(keys, tmp, 0, 0)
		d.spare = tmp
	}
	// Equal keys are neighbours in document order: the last of a run wins.
	out := keys[:0]
	for _, s := range keys {
		if n := len(out); s.alike && n > 0 && out[n-1].alike && bytes.Equal(d.Key(s.key), d.Key(out[n-1].key)) {
			s.duplicate = true
			duplicates++
			out[n-1] = s
			continue
		}
		out = append(out, s)
	}
	return buf[:from+len(out)], duplicates
}

const (
	insertionMax = 16 // below this, insertion sort is fastest
	radixLevels  = 4  // after so many groups of eight bytes, compare instead
)

func (d *Doc) insertionSort(keys []sortKey) {
	for i := 1; i < len(keys); i++ {
		for j := i; j > 0 && d.compareKeys(keys[j], keys[j-1]) < 0; j-- {
			keys[j], keys[j-1] = keys[j-1], keys[j]
		}
	}
}

// compareKeys orders by key, then by position, so that duplicates stay in
// document order. Both prefixes start at the same byte of keys that agree
// before it.
func (d *Doc) compareKeys(a, b sortKey) int {
	switch {
	case a.prefix < b.prefix:
		return -1
	case a.prefix > b.prefix:
		return 1
	}
	if c := bytes.Compare(d.Key(a.key), d.Key(b.key)); c != 0 {
		return c
	}
	return int(a.key) - int(b.key)
}

// radixSort sorts keys that agree in their first depth bytes, stably and in
// time linear in their number: a comparison sort's log n would show when a
// hostile object has a million of them. It skips what they have in common,
// sorts by the next eight bytes, and then each group of equals in the same way.
func (d *Doc) radixSort(keys, tmp []sortKey, depth, level int) {
	if len(keys) <= insertionMax || level == radixLevels {
		slices.SortFunc(keys, d.compareKeys)
		return
	}
	first := d.Key(keys[0].key)
	common, same := len(first), true
	for i := range keys {
		k := d.Key(keys[i].key)
		n := commonPrefix(first[:common], k, depth)
		same = same && n == len(k) && n == len(first)
		common = n
	}
	if same {
		for i := range keys {
			keys[i].alike = true
		}
		return // one key over and over
	}
	for i := range keys {
		keys[i].prefix = prefixOf(d.Key(keys[i].key)[common:])
	}
	sortByPrefix(keys, tmp, 56)
	for i := 0; i < len(keys); {
		j := i + 1
		for j < len(keys) && keys[j].prefix == keys[i].prefix {
			j++
		}
		if j-i > 1 {
			for k := i; k < j; k++ {
				keys[k].alike = true
			}
			d.radixSort(keys[i:j], tmp, common, level+1)
		}
		i = j
	}
}

// sortByPrefix sorts stably by prefix, most significant byte first: what is
// sorted after the first byte stays close together in memory.
func sortByPrefix(keys, tmp []sortKey, shift int) {
	for len(keys) > 2*insertionMax && shift >= 0 {
		var ends [256]int
		for i := range keys {
			ends[byte(keys[i].prefix>>shift)]++
		}
		if ends[byte(keys[0].prefix>>shift)] == len(keys) {
			shift -= 8 // all equal in this byte
			continue
		}
		sum := 0
		for i, n := range ends {
			ends[i] = sum
			sum += n
		}
		for i := range keys {
			b := byte(keys[i].prefix >> shift)
			tmp[ends[b]] = keys[i]
			ends[b]++
		}
		copy(keys, tmp[:len(keys)])
		from := 0
		for _, end := range ends {
			if end-from > 1 {
				sortByPrefix(keys[from:end], tmp, shift-8)
			}
			from = end
		}
		return
	}
	if shift < 0 {
		return
	}
	for i := 1; i < len(keys); i++ {
		k := keys[i]
		j := i
		for ; j > 0 && keys[j-1].prefix > k.prefix; j-- {
			keys[j] = keys[j-1]
		}
		keys[j] = k
	}
}

// commonPrefix returns how many bytes a and b share, knowing that they share
// the first from.
func commonPrefix(a, b []byte, from int) int {
	n := min(len(a), len(b))
	for from < n && a[from] == b[from] {
		from++
	}
	return from
}

// prefixOf returns the first eight bytes of key as a big-endian number,
// padded with zeros.
func prefixOf(key []byte) uint64 {
	if len(key) >= 8 {
		return binary.BigEndian.Uint64(key)
	}
	var p uint64
	for i, c := range key {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}
