package costtest

import (
	"encoding/json"
	"flag"
	"fmt"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

var growth = flag.Float64("growth", 0, "how much faster than the input time and memory may grow; 0 measures nothing")

// Limit returns how much faster than its input cost may grow. It skips a test that was
// not told.
func Limit(t testing.TB) float64 {
	t.Helper()
	if *growth == 0 || Race {
		t.Skip("measures growth: `make linear` and `make linear-coarse` run it")
	}
	return *growth
}

// Time returns the processor time of run. What run leaves to other goroutines is not
// counted.
func Time(run func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	start := threadTime()
	run()
	return threadTime() - start
}

// Within fails the test if run takes more processor time than most.
func Within(t testing.TB, most time.Duration, run func()) {
	t.Helper()
	if took := Time(run); took > most {
		t.Errorf("it took %v of processor time, more than %v", took, most)
	}
}

// An Input is one size of what a test grows.
type Input struct {
	Size   int    // in bytes, or in what its cost should be proportional to
	Before func() // if not nil, prepares each run, and is not measured
	Run    func() // what is measured

	// Scattered, if there is one, does as much as Run with a known linear algorithm.
	// Caches have a say in time: a million scattered reads take longer than a thousand
	// times a thousand. For inputs that are read in another order than that of the
	// document, growth is therefore compared with the time of Scattered, and not with
	// the size alone.
	Scattered func()
}

// ReadJSON returns what reads a document with encoding/json, a known linear algorithm, for
// Scattered.
func ReadJSON(document []byte) func() {
	return func() {
		var x any
		_ = json.Unmarshal(document, &x)
	}
}

// cost is what a run takes.
type cost struct {
	size      int
	time      time.Duration // the best so far
	scattered time.Duration // likewise
	alloc     uint64
}

// patience is how much processor time Linear spends on inputs that grow too fast.
const patience = 5 * time.Second

// Linear fails the test if the cost of the inputs grows faster than their size, by more
// than Limit. The first input is the smallest.
func Linear(t testing.TB, inputs ...Input) {
	t.Helper()
	limit := Limit(t)
	// What is quadratic has to exceed the limit clearly.
	if first, last := inputs[0].Size, inputs[len(inputs)-1].Size; float64(last) < 2*limit*float64(first) {
		t.Fatalf("sizes from %d to %d are too near for a limit of %v", first, last, limit)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	prepare(inputs[0].Before)
	inputs[0].Run() // what a process makes once is made
	costs := make([]cost, len(inputs))
	for i, input := range inputs {
		costs[i] = cost{size: input.Size, time: 1 << 62, scattered: 1 << 62, alloc: space(input.Before, input.Run)}
	}
	var fault string
	// Until the machine is quiet enough, but not for ever: what is quadratic takes long.
	for round, end := 0, threadTime()+patience; round == 0 || round < 12 && threadTime() < end; round++ {
		for i, input := range inputs {
			costs[i].time = min(costs[i].time, clock(input.Before, input.Run))
			if input.Scattered != nil {
				costs[i].scattered = min(costs[i].scattered, clock(nil, input.Scattered))
			}
		}
		if fault = exceeds(limit, costs); fault == "" {
			return
		}
	}
	t.Error(fault)
}

// exceeds says what is wrong with the growth of costs, or nothing.
func exceeds(limit float64, costs []cost) (fault string) {
	first := costs[0]
	for _, c := range costs[1:] {
		grown := float64(c.size) / float64(first.size)
		allowed := max(grown, float64(c.scattered)/float64(first.scattered)) // 1 without Scattered
		// Below these a run is noise, not growth.
		times := float64(c.time) / float64(max(first.time, 20*time.Microsecond))
		space := float64(c.alloc) / float64(max(first.alloc, 64<<10))
		if times > limit*allowed || space > limit*grown {
			fault = fmt.Sprintf("size %d → %d: %.1f×; time %v → %v: %.1f×, allowed %.1f×; memory %d → %d: %.1f×, allowed %.1f×",
				first.size, c.size, grown, first.time, c.time, times, limit*allowed, first.alloc, c.alloc, space, limit*grown)
		}
	}
	return fault
}

// space measures the memory of a run that starts with empty pools (a pool
// survives one collection), so that small and large inputs alike pay for theirs.
func space(before, run func()) uint64 {
	prepare(before)
	runtime.GC()
	runtime.GC()
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	run()
	runtime.ReadMemStats(&end)
	return end.TotalAlloc - start.TotalAlloc
}

// clock measures the time of some runs; the best of all counts, because the
// machine is shared. It is the code's own: the collector does not run in
// between, and memory comes from the run before.
func clock(before, run func()) time.Duration {
	best := time.Duration(1 << 62)
	for i, spent := 0, time.Duration(0); i == 0 || i == 1 && spent < 100*time.Millisecond || i < 20 && spent < 2*time.Millisecond; i++ {
		runtime.GC() // frees the memory of earlier runs for these
		prepare(before)
		run() // the collector has shrunk the stack; let it grow again
		prepare(before)
		d := Time(run)
		spent += d
		best = min(best, d)
	}
	return best
}

func prepare(before func()) {
	if before != nil {
		before()
	}
}
