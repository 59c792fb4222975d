package garbagecollector

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// model is the graph done the simple way: all objects, and every question
// answered by looking at all of them.
type model struct {
	objects  map[id]seen
	checked  map[id]bool // what the graph has asked for since the last step
	orphaned map[id]bool
	graph    *graph
}

func newModel() *model {
	m := &model{objects: map[id]seen{}, checked: map[id]bool{}, orphaned: map[id]bool{}}
	m.graph = newGraph(func(i id) { m.checked[i] = true }, func(i id) { m.orphaned[i] = true },
		func(ref *metav1.OwnerReference, _ string) (string, bool) { return ref.Name, ref.Kind != "" }, func(string, string) bool { return true })
	return m
}

func uidOf(n int) types.UID { return types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012x", n)) }

// keyFor is what references call the object, and what its key is.
func keyFor(i id) string { return fmt.Sprint("object-", binary.BigEndian.Uint64(i[8:])) }

func ref(n int, blocks bool) metav1.OwnerReference {
	return metav1.OwnerReference{Kind: "K", Name: keyFor(idOf(uidOf(n))), UID: uidOf(n), BlockOwnerDeletion: &blocks}
}

func (m *model) dependents(of id) map[id]string {
	all := map[id]string{}
	for i, s := range m.objects {
		for _, r := range s.owners {
			if idOf(r.UID) == of {
				all[i] = keyFor(i)
			}
		}
	}
	return all
}

// reaches reports whether an object waits, over others that wait, for the target.
func (m *model) reaches(from, target id, visited map[id]bool) bool {
	for i, s := range m.objects {
		if !s.state.waits(foreground) || !slices.ContainsFunc(s.owners, func(r metav1.OwnerReference) bool { return idOf(r.UID) == from && *r.BlockOwnerDeletion }) {
			continue
		}
		if i == target {
			return true
		}
		if !visited[i] {
			visited[i] = true
			if m.reaches(i, target, visited) {
				return true
			}
		}
	}
	return false
}

// random is an object with references to some of n others, which need not exist.
func random(r *rand.Rand, n int) (id, seen) {
	s := seen{id: idOf(uidOf(r.IntN(n)))}
	for range r.IntN(4) {
		s.owners = append(s.owners, ref(r.IntN(n), r.IntN(2) == 0))
	}
	if r.IntN(2) == 0 {
		s.state = []state{deleting, deleting | foreground, deleting | orphaning}[r.IntN(3)]
	}
	return s.id, s
}

// step changes the graph and the model, and says who has to be looked at.
func (m *model) step(r *rand.Rand, n int) (must map[id]bool) {
	must = map[id]bool{}
	clear(m.checked)
	i, s := random(r, n)
	switch r.IntN(10) {
	case 0, 1, 2: // gone
		delete(m.objects, i)
		m.graph.delete(i)
		for d := range m.dependents(i) {
			must[d] = true
		}
	case 3: // all is read again, and some has gone meanwhile
		delete(m.objects, i)
		m.graph.begin()
		all := map[id]uint64{}
		for i, s := range m.objects {
			all[i] = m.graph.sum(keyFor(i))
			m.graph.put(keyFor(i), &s)
		}
		m.graph.end(all)
		for i, s := range m.objects {
			must[i] = m.missing(&s)
		}
	default:
		before := m.objects[i]
		m.objects[i] = s
		m.graph.put(keyFor(i), &s)
		must[i] = m.missing(&s)
		if s.state.waits(foreground) && !s.state.waits(orphaning) && !before.state.waits(foreground) {
			must[i] = true
			for d := range m.dependents(i) {
				must[d] = true
			}
		}
		for _, was := range before.owners { // a blocked owner may go on
			if w, ok := m.objects[idOf(was.UID)]; ok && w.state.waits(foreground) && *was.BlockOwnerDeletion && !slices.ContainsFunc(s.owners, func(now metav1.OwnerReference) bool { return now.UID == was.UID && *now.BlockOwnerDeletion }) {
				must[w.id] = true
			}
		}
	}
	return must
}

func (m *model) missing(s *seen) bool {
	return slices.ContainsFunc(s.owners, func(r metav1.OwnerReference) bool { _, ok := m.objects[idOf(r.UID)]; return !ok })
}

func TestGraphLikeTheModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		m, n := newModel(), 3+r.IntN(12)
		for range 150 {
			must := m.step(r, n)
			for i, yes := range must {
				if yes && !m.checked[i] {
					t.Fatalf("seed %d: %s is not looked at", seed, keyFor(i))
				}
			}
			m.compare(t, seed, n)
		}
	}
}

// compare asks the graph and the model the same.
func (m *model) compare(t *testing.T, seed uint64, n int) {
	t.Helper()
	kept := 0
	for k := range n {
		i := idOf(uidOf(k))
		s, ok := m.objects[i]
		v, there := m.graph.view(i)
		if want := ok && s.kept(); want != there {
			t.Fatalf("seed %d: %s is in the graph: %v", seed, keyFor(i), there)
		}
		dependents := m.dependents(i)
		if there {
			kept++
			if v.state != s.state || v.key != keyFor(i) || v.dependents != (len(dependents) > 0) {
				t.Fatalf("seed %d: %+v for %+v", seed, v, s)
			}
		}
		if got := m.graph.dependentsOf(i); !maps.Equal(got, dependents) {
			t.Fatalf("seed %d: dependents of %s: %v, not %v", seed, keyFor(i), got, dependents)
		}
		if !s.state.waits(foreground) {
			continue
		}
		blocked, all := false, true
		for d := range dependents {
			o := m.objects[d]
			if slices.ContainsFunc(o.owners, func(r metav1.OwnerReference) bool { return idOf(r.UID) == i && *r.BlockOwnerDeletion }) {
				blocked, all = true, all && o.state.waits(foreground)
			}
		}
		gotBlocked, gotCycle := m.graph.blockers(i)
		if cycle := blocked && all && m.reaches(i, i, map[id]bool{}); gotBlocked != blocked || gotCycle != cycle {
			t.Fatalf("seed %d: %s: blocked %v, in a cycle %v; the model says %v, %v", seed, keyFor(i), gotBlocked, gotCycle, blocked, cycle)
		}
	}
	if got := m.graph.len(); got != kept {
		t.Fatalf("seed %d: %d objects, not %d", seed, got, kept)
	}
}

// TestOwnersAreAskedForOnce has many dependents of one owner.
func TestOwnersAreAskedForOnce(t *testing.T) {
	m := newModel()
	for n := range 100 {
		s := seen{id: idOf(uidOf(n + 1)), owners: []metav1.OwnerReference{ref(0, false)}}
		m.graph.put(keyFor(s.id), &s)
		if n == 0 {
			m.graph.found(idOf(uidOf(0)), keyFor(idOf(uidOf(0))))
		}
	}
	if len(m.checked) != 1 {
		t.Errorf("%d of 100 are looked at", len(m.checked))
	}
	// One that says that it is elsewhere is.
	s := seen{id: idOf(uidOf(500)), owners: []metav1.OwnerReference{ref(0, false)}}
	s.owners[0].Name = "elsewhere"
	m.graph.put(keyFor(s.id), &s)
	if !m.checked[s.id] || !m.graph.elsewhere(idOf(uidOf(0)), "elsewhere") {
		t.Error("a reference to another place is believed")
	}
}

// TestBytesPerObject measures what an object in the graph costs, with one owner
// for ten of them, and keys of 60 bytes; and that others cost nothing.
func TestBytesPerObject(t *testing.T) {
	const count = 30_000
	g := newGraph(func(id) {}, func(id) {}, func(*metav1.OwnerReference, string) (string, bool) { return "k", true }, func(string, string) bool { return true })
	// What other tests have left goes in more than one collection.
	heap := func() int64 {
		last := int64(0)
		for range 20 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			now := int64(m.HeapAlloc)
			if max(now-last, last-now) < 64<<10 {
				return now
			}
			last = now
		}
		return last
	}
	before := heap()
	for n := range count {
		s := seen{id: idOf(uidOf(n))}
		g.put(fmt.Sprintf("/example.com/widgets/some-namespace/some-longer-name-%012d", n), &s)
	}
	if idle := heap() - before; idle > 1<<20 {
		t.Errorf("%d bytes for objects without owners", idle)
	}
	for n := range count {
		s := seen{id: idOf(uidOf(n)), owners: []metav1.OwnerReference{ref(count+n/10, true)}}
		g.put(fmt.Sprintf("/example.com/widgets/some-namespace/some-longer-name-%012d", n), &s)
	}
	bytes := (heap() - before) / count
	t.Logf("%d bytes for an object with an owner", bytes)
	if bytes > 400 {
		t.Errorf("%d bytes for an object with an owner", bytes)
	}
	runtime.KeepAlive(g)
}
