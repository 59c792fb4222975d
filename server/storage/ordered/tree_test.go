package ordered

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
)

type pair struct{ key, value int }

func byKey(a, b pair) int { return cmp.Compare(a.key, b.key) }

// model is what a tree must equal: a sorted slice.
type model []pair

func (m *model) set(p pair) (pair, bool) {
	at, found := slices.BinarySearchFunc(*m, p, byKey)
	if found {
		before := (*m)[at]
		(*m)[at] = p
		return before, true
	}
	*m = slices.Insert(*m, at, p)
	return pair{}, false
}

func (m *model) delete(p pair) (pair, bool) {
	at, found := slices.BinarySearchFunc(*m, p, byKey)
	if !found {
		return pair{}, false
	}
	before := (*m)[at]
	*m = slices.Delete(*m, at, at+1)
	return before, true
}

// equal compares a tree with a model, and checks what must hold in its nodes.
func equal(t *testing.T, tree *Tree[pair], m model, random *rand.Rand) {
	t.Helper()
	if tree.Len() != len(m) {
		t.Fatalf("the tree has %d values, want %d", tree.Len(), len(m))
	}
	check(t, tree, tree.root, true)
	at := pair{key: random.IntN(1100) - 50}
	rank, _ := slices.BinarySearchFunc(m, at, byKey)
	if got := tree.Rank(at); got != rank {
		t.Fatalf("rank of %d is %d, want %d", at.key, got, rank)
	}
	if got := slices.Collect(tree.From(at)); !slices.Equal(got, m[rank:]) {
		t.Fatalf("from %d: %v, want %v", at.key, got, m[rank:])
	}
	got := slices.Collect(tree.Before(at))
	slices.Reverse(got)
	if !slices.Equal(got, m[:rank]) {
		t.Fatalf("before %d: %v, want %v", at.key, got, m[:rank])
	}
	found, ok := tree.Get(at)
	if here := rank < len(m) && m[rank].key == at.key; ok != here || here && found != m[rank] {
		t.Fatalf("get %d: %v %v", at.key, found, ok)
	}
}

// check returns the depth of a node.
func check(t *testing.T, tree *Tree[pair], n *node[pair], root bool) int {
	t.Helper()
	if len(n.values) > width || !root && n.count == 0 {
		t.Fatalf("a node has %d values, and %d below it", len(n.values), n.count)
	}
	if !slices.IsSortedFunc(n.values, byKey) {
		t.Fatal("the values of a node are not sorted")
	}
	if n.children == nil {
		if n.count != len(n.values) {
			t.Fatalf("a leaf counts %d of %d", n.count, len(n.values))
		}
		return 0
	}
	count, depth := 0, -1
	for i, c := range n.children {
		d := check(t, tree, c, false)
		if depth >= 0 && d != depth {
			t.Fatal("leaves have different depths")
		}
		depth = d
		count += c.count
		if n.values[i] != c.values[0] {
			t.Fatalf("a node has %v for a child that begins with %v", n.values[i], c.values[0])
		}
	}
	if count != n.count {
		t.Fatalf("a node counts %d of %d", n.count, count)
	}
	return depth + 1
}

// TestTreeEqualsASortedSlice changes a tree at random, grows and shrinks it, and compares
// it and snapshots of it with sorted slices.
func TestTreeEqualsASortedSlice(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 1))
		tree, m := New(byKey), model{}
		type former struct {
			tree  *Tree[pair]
			model model
		}
		var snapshots []former
		for step := range 4000 {
			p := pair{random.IntN(1000), step}
			growing := (step/1000)%2 == 0
			var got, want pair
			var had, has bool
			if random.IntN(10) < 2 == growing {
				got, had = tree.Delete(p)
				want, has = m.delete(p)
			} else {
				got, had = tree.Set(p)
				want, has = m.set(p)
			}
			if got != want || had != has {
				t.Fatalf("seed %d, step %d: before it was %v %v, want %v %v", seed, step, got, had, want, has)
			}
			if step%50 == 0 {
				equal(t, tree, m, random)
				snapshots = append(snapshots, former{tree.Snapshot(), slices.Clone(m)})
			}
		}
		for _, s := range snapshots {
			equal(t, s.tree, s.model, random)
		}
		// A snapshot is a tree of its own.
		first := snapshots[len(snapshots)-1]
		other := first.tree.Snapshot()
		for k := range 1000 {
			other.Delete(pair{key: k})
		}
		equal(t, first.tree, first.model, random)
		equal(t, other, nil, random)
	}
}

func TestEmptyTree(t *testing.T) {
	t.Parallel()
	tree := New(byKey)
	equal(t, tree, nil, rand.New(rand.NewPCG(1, 1)))
	if _, ok := tree.Delete(pair{}); ok {
		t.Error("deleted what is not there")
	}
	tree.Set(pair{1, 1})
	tree.Delete(pair{key: 1})
	equal(t, tree, nil, rand.New(rand.NewPCG(1, 1)))
	for range tree.From(pair{}) {
		t.Error("an empty tree has a value")
	}
	for p := range New(byKey).Before(pair{}) {
		t.Error(p)
	}
}

// TestIterationsEnd: a loop that breaks visits nothing more.
func TestIterationsEnd(t *testing.T) {
	t.Parallel()
	tree := New(byKey)
	for k := range 1000 {
		tree.Set(pair{key: k})
	}
	for n := 1; n < 1000; n += 83 {
		seen := 0
		for range tree.From(pair{}) {
			if seen++; seen == n {
				break
			}
		}
		for range tree.Before(pair{key: 1000}) {
			if seen++; seen == 2*n {
				break
			}
		}
		if seen != 2*n {
			t.Errorf("visited %d, want %d", seen, 2*n)
		}
	}
}

// TestSnapshotsAreReadWhileTheTreeChanges is for the race detector.
func TestSnapshotsAreReadWhileTheTreeChanges(t *testing.T) {
	t.Parallel()
	tree := New(byKey)
	for k := range 1000 {
		tree.Set(pair{key: k})
	}
	var wg sync.WaitGroup
	for round := range 50 {
		s, size := tree.Snapshot(), tree.Len()
		wg.Go(func() {
			n := 0
			for range s.From(pair{key: -1}) {
				n++
			}
			if n != size || s.Rank(pair{key: 5000}) != size {
				t.Errorf("a snapshot has %d values, want %d", n, size)
			}
		})
		for k := range 20 {
			tree.Delete(pair{key: round*20 + k})
			tree.Set(pair{key: 2000 + round*10 + k})
		}
	}
	wg.Wait()
}

// TestMemory: values that come in their order take little more than a slice of them.
func TestMemory(t *testing.T) {
	const n = 200_000
	values := make([]*int, n)
	for i := range values {
		values[i] = &i
	}
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	tree := New(func(a, b *int) int { return cmp.Compare(*a, *b) })
	for _, v := range values {
		tree.Set(v)
	}
	if each := float64(live()-before) / n; each > 12 {
		t.Errorf("a value takes %.1f bytes", each)
	}
	runtime.KeepAlive(tree)
	runtime.KeepAlive(values)
}

func FuzzTree(f *testing.F) {
	f.Add([]byte("abcABCaabb"))
	f.Add([]byte{0, 255, 1, 254, 128, 127})
	f.Fuzz(func(t *testing.T, steps []byte) {
		tree, m := New(byKey), model{}
		random := rand.New(rand.NewPCG(1, 2))
		for i, b := range steps {
			p := pair{int(b) * 7 % 600, i}
			if b%3 == 0 {
				tree.Delete(p)
				m.delete(p)
			} else {
				tree.Set(p)
				m.set(p)
			}
		}
		equal(t, tree, m, random)
	})
}

func BenchmarkPage(b *testing.B) {
	for _, n := range []int{1000, 1_000_000} {
		tree := New(byKey)
		for k := range n {
			tree.Set(pair{key: k})
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for i := range b.N {
				seen := 0
				for range tree.From(pair{key: i * 7919 % n}) {
					if seen++; seen == 500 {
						break
					}
				}
				_ = tree.Len() - tree.Rank(pair{key: i * 7919 % n})
			}
		})
	}
}
