package plan

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strings"
)

// Prop is one property of an object.
type Prop struct {
	Name string
	Node *Node
}

// Props are the properties of an object, sorted by name. The place of a
// property in that order is its rank.
type Props struct {
	list  []Prop
	table []uint16 // open addressing by hash: rank+1, 0 for a free slot; nil when too crowded
	shift uint8
	// Defaults are the ranks of the properties that have a default, ascending.
	Defaults []uint32
	// Required counts the properties that objects must have.
	Required int
	required []uint64 // bit set of their ranks
}

// Require marks the properties among names as required, and returns the names
// that are no properties.
func (p *Props) Require(names []string) (others []string) {
	for _, name := range names {
		rank := p.Lookup([]byte(name))
		if rank < 0 {
			others = append(others, name)
			continue
		}
		if p.required == nil {
			p.required = make([]uint64, (len(p.list)+63)/64)
		}
		if bit := uint64(1) << (rank % 64); p.required[rank/64]&bit == 0 {
			p.required[rank/64] |= bit
			p.Required++
		}
	}
	return others
}

// IsRequired reports whether the property of the given rank is required.
func (p *Props) IsRequired(rank int) bool {
	return p.required != nil && p.required[rank/64]>>(rank%64)&1 != 0
}

// NewNames returns a set of names for looking them up, without duplicates.
func NewNames(names []string) *Props {
	list := make([]Prop, 0, len(names))
	for _, name := range slices.Compact(slices.Sorted(slices.Values(names))) {
		list = append(list, Prop{Name: name})
	}
	return NewProps(list)
}

// maxProbes is how many slots a lookup may look at. Names that share their
// first and last eight bytes and their length collide; when a schema has so
// many of them that a lookup would take longer, a binary search serves it.
const maxProbes = 16

// NewProps returns the properties in list, which it sorts. Names must differ.
func NewProps(list []Prop) *Props {
	slices.SortFunc(list, func(a, b Prop) int { return strings.Compare(a.Name, b.Name) })
	p := &Props{list: list}
	for rank, prop := range list {
		if prop.Node != nil && prop.Node.Flags&HasDefault != 0 {
			p.Defaults = append(p.Defaults, uint32(rank))
		}
	}
	if len(list) <= maxRank {
		p.fill()
	}
	return p
}

// maxRank is the greatest rank that fits the table.
const maxRank = 1<<16 - 2

// fill builds the hash table, at most half full. Should names still crowd
// somewhere, a larger table usually spreads them.
func (p *Props) fill() {
	size := max(4, 1<<bits.Len(uint(len(p.list)*2-1)))
	for range 3 {
		p.shift = uint8(64 - bits.Len(uint(size)-1))
		if p.table = p.tryFill(size); p.table != nil {
			return
		}
		size *= 2
	}
}

func (p *Props) tryFill(size int) []uint16 {
	table := make([]uint16, size)
	for rank, prop := range p.list {
		i := int(hashName(prop.Name) >> p.shift)
		for probes := 1; table[i] != 0; probes++ {
			if probes == maxProbes {
				return nil
			}
			i = (i + 1) & (size - 1)
		}
		table[i] = uint16(rank + 1)
	}
	return table
}

// Len returns the number of properties.
func (p *Props) Len() int {
	if p == nil {
		return 0
	}
	return len(p.list)
}

// At returns the property of the given rank.
func (p *Props) At(rank int) *Prop { return &p.list[rank] }

// Lookup returns the rank of the property called name, or -1.
func (p *Props) Lookup(name []byte) int {
	if p == nil {
		return -1
	}
	if p.table == nil {
		return p.search(name)
	}
	mask := len(p.table) - 1
	for i := int(hashBytes(name) >> p.shift); ; i++ {
		t := p.table[i&mask]
		if t == 0 {
			return -1
		}
		if p.list[t-1].Name == string(name) {
			return int(t - 1)
		}
	}
}

func (p *Props) search(name []byte) int {
	lo, hi := 0, len(p.list)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if p.list[mid].Name < string(name) {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(p.list) && p.list[lo].Name == string(name) {
		return lo
	}
	return -1
}

func hashName(s string) uint64 { return hashBytes([]byte(s)) }

// hashBytes mixes a name's length with its first and last bytes, up to eight
// of each: names of fields differ there.
func hashBytes(b []byte) uint64 {
	var x, y uint64
	switch n := len(b); {
	case n >= 8:
		x = binary.LittleEndian.Uint64(b)
		y = binary.LittleEndian.Uint64(b[n-8:])
	case n >= 4:
		x = uint64(binary.LittleEndian.Uint32(b))
		y = uint64(binary.LittleEndian.Uint32(b[n-4:]))
	case n > 0:
		x = uint64(b[0]) | uint64(b[n/2])<<8 | uint64(b[n-1])<<16
	}
	hi, lo := bits.Mul64(x^0x9e3779b97f4a7c15, y^0xd1b54a32d192ed03^uint64(len(b)))
	return (hi ^ lo) * 0x9e3779b97f4a7c15
}
