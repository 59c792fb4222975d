package robustness

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// interval is how often a meter asks. It does not wait for an answer before it asks again.
const interval = 100 * time.Millisecond

// varying is what differs between answers that mean the same.
var varying = regexp.MustCompile(`"https:[^"]*"|\d\d\d\d-\d\d-\d\dT[0-9:]*Z|\([0-9ms]*s\)|[0-9.]+:\d+`)

// A meter asks every replica all the time whether it reads and writes.
type meter struct {
	play    *play
	clients []*load.Client
	stop    context.CancelFunc
	asking  sync.WaitGroup

	mu      sync.Mutex
	began   time.Time
	samples []sample
}

// sample is an answer.
type sample struct {
	replica int
	write   bool
	ok      bool
	sent    time.Time
	at      time.Time
	text    string
}

// gap is the longest time without an answer.
type gap struct{ reads, writes time.Duration }

func newMeter(p *play) (*meter, error) {
	m := &meter{play: p}
	for range p.environment.Replicas {
		c, err := p.Client(time.Second)
		if err != nil {
			return nil, err
		}
		m.clients = append(m.clients, c)
	}
	return m, nil
}

// begin starts to ask.
func (m *meter) begin(ctx context.Context) {
	m.began = time.Now()
	ctx, m.stop = context.WithCancel(ctx)
	for i := range m.clients {
		m.asking.Go(func() {
			for tick := time.NewTicker(interval); ctx.Err() == nil; {
				m.asking.Go(func() { m.ask(i, false) })
				m.asking.Go(func() { m.ask(i, true) })
				select {
				case <-tick.C:
				case <-ctx.Done():
					tick.Stop()
				}
			}
		})
	}
}

// ask asks once. Writes are of an object per replica, which is not recorded: it is about when, not what.
func (m *meter) ask(i int, write bool) {
	s := sample{replica: i, write: write, sent: time.Now()}
	a := m.clients[i].Probe(context.Background(), m.play.Thing(i, "k"), write)
	s.at, s.ok, s.text = time.Now(), a.OK(), varying.ReplaceAllString(a.String(), "#")
	m.mu.Lock()
	defer m.mu.Unlock()
	m.samples = append(m.samples, s)
}

// end stops, and returns the longest gap of each replica since a time.
func (m *meter) end(since time.Time) []gap {
	m.stop()
	m.asking.Wait()
	ended := time.Now()
	out := make([]gap, len(m.clients))
	for i := range out {
		out[i] = gap{m.longest(i, since, ended, false), m.longest(i, since, ended, true)}
	}
	return out
}

func (m *meter) longest(replica int, since, ended time.Time, write bool) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	last, longest := since, time.Duration(0)
	for _, s := range m.samples { // in the order of answers
		if s.replica == replica && s.write == write && s.ok && s.at.After(since) {
			longest = max(longest, s.at.Sub(last))
			last = s.at
		}
	}
	return max(longest, ended.Sub(last)-2*time.Second) // the last requests have a second to be answered
}

// after returns how long after a time each replica answered a request that was sent after it, the slowest of all; and whether all did.
func (m *meter) after(since time.Time, write bool) (time.Duration, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slowest := time.Duration(0)
	for i := range m.clients {
		first := time.Duration(-1)
		for _, s := range m.samples {
			if s.replica == i && s.write == write && s.ok && s.sent.After(since) {
				first = s.at.Sub(since)
				break
			}
		}
		if first < 0 {
			return 0, false
		}
		slowest = max(slowest, first)
	}
	return slowest, true
}

// trouble is what went wrong since a time.
type trouble struct {
	asked, failed int
	last          time.Duration // when the last request was sent that failed
	texts         map[string]int
}

func (m *meter) trouble(since time.Time) trouble {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := trouble{texts: map[string]int{}}
	for _, s := range m.samples {
		if !s.sent.After(since) {
			continue
		}
		t.asked++
		if !s.ok {
			t.failed++
			t.last = max(t.last, s.sent.Sub(since))
			t.texts[s.text]++
		}
	}
	return t
}

// String is one line about all, and one about each kind of failure.
func (t trouble) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "; %d of %d requests failed", t.failed, t.asked)
	if t.failed > 0 {
		fmt.Fprintf(&b, ", the last one sent after %.2f s", t.last.Seconds())
	}
	for text, n := range t.texts {
		fmt.Fprintf(&b, "\n      %4d × %.150s", n, text)
	}
	return b.String()
}
