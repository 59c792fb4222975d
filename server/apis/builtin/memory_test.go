package builtin

import (
	"runtime"
	"slices"
	"testing"
)

// unusedKind is how many bytes of memory a kind may take that is on and not used.
const unusedKind = 10 << 10

// A kind that is on and not used takes little memory: its metadata and its endpoints.
func TestUnusedKindsAreSmall(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // what has finalizers goes with the second
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc) //nolint:gosec // a heap of 8 EB would not fit
	}
	few := slices.Concat(Standard(), Events(0), Policies(PolicyOptions{}))
	all := slices.Concat(few, Data())
	// What all servers of a process share. Those with fewer kinds have the metadata of
	// all, too: kinds that are off may have objects.
	kept := []any{start(t, few...)}
	var each []int64
	for range 5 { // what servers of other tests leave behind goes at its own time
		before := heap()
		kept = append(kept, start(t, few...))
		between := heap()
		kept = append(kept, start(t, all...))
		after := heap()
		each = append(each, ((after-between)-(between-before))/int64(len(all)-len(few)))
	}
	runtime.KeepAlive(kept)
	slices.Sort(each)
	t.Logf("%d kinds take %d bytes each", len(all)-len(few), each)
	if each[2] > unusedKind {
		t.Errorf("a kind that is not used takes %d bytes, more than %d", each[2], unusedKind)
	}
}

// Every endpoint of every kind can be prepared: the first request does that.
func TestEveryEndpointCanBePrepared(t *testing.T) {
	e := start(t, slices.Concat(Standard(), Events(0), Policies(PolicyOptions{}), Roles(), Data())...)
	for key, one := range e.resources.endpoints {
		if err := one.prepare(); err != nil || one.Scope.FieldManager == nil {
			t.Errorf("%v: %v", key, err)
		}
	}
}
