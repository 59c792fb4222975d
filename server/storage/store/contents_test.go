package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"
)

var testIndexes = []Index{{Label: "team"}, {Field: "spec.to"}, {Field: "spec.tags[]"}}

// TestIndexes changes contents at random, and compares what the indexes find with what a visit of all
// objects finds.
func TestIndexes(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	c := newContents(testIndexes)
	selecting := func(label, field string) *storage.SelectionPredicate {
		p := &storage.SelectionPredicate{Label: labels.Everything(), Field: fields.Everything()}
		if label != "" {
			p.Label = labels.SelectorFromSet(labels.Set{"team": label})
		}
		if field != "-" {
			p.Field = fields.OneTermEqualSelector("spec.to", field)
		}
		return p
	}
	tagged := func(value string) *storage.SelectionPredicate {
		return &storage.SelectionPredicate{Label: labels.Everything(), Field: fields.OneTermEqualSelector(ItemField("spec.tags", value), ItemValue)}
	}
	for step := range 6000 {
		e := &entry{key: fmt.Sprintf("/g/r/n%d/o%d", random.IntN(3), random.IntN(100)), fields: fields.Set{"spec.to": fmt.Sprint(random.IntN(4))}}
		switch random.IntN(4) {
		case 0:
			c.delete(e)
			continue
		case 1: // without the label
		default:
			e.labels = labels.Set{"team": fmt.Sprintf("t%d", random.IntN(4))}
		}
		if random.IntN(8) == 0 {
			e.fields["spec.to"] = ""
		}
		for range random.IntN(4) {
			e.fields[ItemField("spec.tags", fmt.Sprintf("t%d]", random.IntN(5)))] = ItemValue
		}
		c.set(e)
		if step%20 != 0 {
			continue
		}
		begin := fmt.Sprintf("/g/r/n%d/o%d", random.IntN(3), random.IntN(100))
		end := []string{"/g/r0", "/g/r/n10", "/g/r/n2/o5"}[random.IntN(3)]
		for _, p := range []*storage.SelectionPredicate{
			selecting("t1", "-"), selecting("", "2"), selecting("t2", "3"), selecting("none", "1"), selecting("", ""), selecting("", "-"), tagged("t1]"), tagged("t"), tagged(""),
		} {
			var want []*entry
			for e := range c.tree.From(&entry{key: begin}) {
				if e.key < end && p.MatchesObjectAttributes(e.labels, e.fields) {
					want = append(want, e)
				}
			}
			s := view{contents: c.snapshot()}
			got, visited, index, more := s.selected(begin, end, 0, p)
			if !slices.Equal(got, want) || more {
				t.Fatalf("step %d: %s found %d objects, want %d", step, index, len(got), len(want))
			}
			if (index == "") != p.Empty() {
				t.Fatalf("%v %v goes by the index %q", p.Label, p.Field, index)
			}
			if (p.Label.Empty() || p.Field.Empty()) && visited != len(want) {
				t.Fatalf("%s visited %d objects for %d", index, visited, len(want))
			}
			if len(want) > 1 {
				if got, _, _, more := s.selected(begin, end, int64(len(want)-1), p); !more || !slices.Equal(got, want[:len(want)-1]) {
					t.Fatalf("%s: a page of %d objects has %d, more: %v", index, len(want)-1, len(got), more)
				}
			}
		}
	}
}

// TestIndexMemory: an object takes at most 100 bytes in an index, whatever values it has.
func TestIndexMemory(t *testing.T) {
	const n = 100_000
	for name, each := range map[string]int{"different values": 1, "50 objects with a value": 50, "one value": n} {
		entries := make([]*entry, n)
		for i := range entries {
			at := i * 7919 % n
			entries[i] = &entry{
				key: fmt.Sprintf("/example.com/gadgets/ns/object-%09d", at), labels: labels.Set{"team": fmt.Sprintf("team-%d", at/each)},
			}
		}
		with := newContents(testIndexes[:1])
		before := live()
		for _, e := range entries {
			with.set(e)
		}
		all := live() - before
		// What both have besides: the order of keys.
		before = live()
		order := newContents(nil)
		for _, e := range entries {
			order.set(e)
		}
		entry := float64(all-(live()-before)) / n
		t.Logf("%s: %.1f bytes for an entry", name, entry)
		if entry > 100 {
			t.Errorf("%s: an entry of an index takes %.1f bytes", name, entry)
		}
		runtime.KeepAlive(with)
		runtime.KeepAlive(order)
		runtime.KeepAlive(entries)
	}
}

func live() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMemoryOfAnObject: what a lister takes for an object, beside what the cacher has.
func TestMemoryOfAnObject(t *testing.T) {
	const n = 100_000
	keys := make([]string, n)
	for i := range keys {
		keys[i] = "/example.com/gadgets/ns/object-" + strings.Repeat("0", 3) + fmt.Sprintf("%09d", i)
	}
	before := live()
	c := newContents(nil)
	for _, k := range keys {
		c.set(&entry{key: k})
	}
	if each := float64(live()-before) / n; each > 70 {
		t.Errorf("an object takes %.1f bytes more", each)
	}
	runtime.KeepAlive(c)
	runtime.KeepAlive(keys)
}

// TestMemoryOfArrays: what an object takes for each value of an array that is indexed, in the index and in
// the fields that selectors are matched with.
func TestMemoryOfArrays(t *testing.T) {
	const n, items = 20_000, 8
	fill := func(indexed int) (*contents, float64) {
		before := live()
		c := newContents([]Index{{Field: "spec.tags[]"}})
		for i := range n {
			e := &entry{key: fmt.Sprintf("/example.com/gadgets/ns/object-%09d", i), fields: make(fields.Set, 2)}
			e.fields["metadata.name"], e.fields["metadata.namespace"] = "n", "ns"
			for k := range indexed {
				e.fields[ItemField("spec.tags", fmt.Sprintf("tag-%04d", (i*7+k*131)%1000))] = ItemValue
			}
			c.set(e)
		}
		return c, float64(live() - before)
	}
	without, least := fill(0)
	with, all := fill(items)
	each := (all - least) / n / items
	t.Logf("%.1f bytes for a value", each)
	if each > 100 {
		t.Errorf("a value of an array takes %.1f bytes", each)
	}
	runtime.KeepAlive(without)
	runtime.KeepAlive(with)
}
