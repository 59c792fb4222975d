package check

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// large is a history of the size of a long run: 20,000 operations of 30 clients on 300
// keys, and 50,000 events.
var large = sync.OnceValue(func() *history.History {
	s := newSimulation(3)
	s.keys, s.clients, s.large = nil, nil, true
	for i := range 300 {
		s.keys = append(s.keys, fmt.Sprintf("ns%d/k%03d", i%2, i))
	}
	for i := range 30 {
		s.clients = append(s.clients, &simClient{number: i, known: map[string]history.Item{}})
	}
	s.run(90_000)
	return &s.h
})

func count(h *history.History) (operations, events, writes int) {
	for i := range h.Sessions {
		events += len(h.Sessions[i].Events)
	}
	return len(h.Operations), events, len(h.Writes)
}

// TestLarge keeps checking quick enough to be done after each run. It takes half a second
// of a processor; the bound finds what is quadratic, also on a machine with other work.
func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("making a large history takes seconds")
	}
	h := large()
	operations, events, writes := count(h)
	begin := time.Now()
	for _, v := range All(h) {
		t.Errorf("%s", v)
	}
	took := time.Since(begin)
	t.Logf("%d operations, %d events, %d writes in %s", operations, events, writes, took)
	if operations < 20_000 || events < 50_000 {
		t.Errorf("the history is not large: %d operations, %d events", operations, events)
	}
	if took > time.Minute {
		t.Errorf("checking took %s", took)
	}
}

func BenchmarkAll(b *testing.B) {
	h := large()
	for b.Loop() {
		if len(All(h)) > 0 {
			b.Fatal("a correct history has violations")
		}
	}
}

func BenchmarkEach(b *testing.B) {
	h := large()
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				One(h, name)
			}
		})
	}
}
