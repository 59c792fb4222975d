package scenarios

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// drain are the flags with which a replica stops without an error for clients. The balancer asks five times in a second whether replicas are
// ready, so that two seconds are plenty; the guide says how much is enough elsewhere.
var drain = []string{"--shutdown-delay-duration=2s", "--goaway-chance=0.001"}

// Three replicas are restarted one after the other while clients work through a load balancer. No client sees an error, no write is lost,
// and no watch misses an event.
func TestProductionRestart(t *testing.T) {
	t.Parallel()
	s := newEstate(t, 1, drain...)
	s.staff(3, binaries[launch.Espalier])
	s.installBoats()
	l := newLoad(s)
	l.proceeds(200)
	for range pick(3, 1) {
		for _, r := range s.replicas {
			s.restart(l, r, binaries[launch.Espalier])
		}
	}
	l.settle()
	s.collects("restart")
}

// A replica that is killed breaks off what it is at: clients see that the connection is gone. What was acknowledged is there all the same,
// and the others go on. It also shows that the tests around see it when a replica does not drain.
func TestProductionCrash(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about what clients see when nothing is done for them, which no change makes worse: left to the long form")
	}
	t.Parallel()
	s := newEstate(t, 1, drain...)
	s.staff(2, binaries[launch.Espalier])
	s.installBoats()
	l := newLoad(s)
	for l.unharmed() { // until it hits a client
		l.proceeds(200)
		s.replicas[0].kill()
		l.proceeds(200)
		s.open(s.replicas[0], binaries[launch.Espalier])
		s.ready(s.replicas[0])
	}
	l.end()
	for _, failure := range l.failures {
		if !slices.ContainsFunc([]string{"EOF", "connection reset by peer", "connection lost", "connection refused"}, func(text string) bool { return strings.Contains(failure, text) }) {
			t.Errorf("a client saw: %s", failure)
		}
	}
	want, got := l.living(), inEtcd(s, 0)
	for _, view := range []map[string]int64{want, got} {
		maps.DeleteFunc(view, func(key string, _ int64) bool { return l.failed[key] })
	}
	if !maps.Equal(want, got) {
		t.Errorf("etcd has not what was acknowledged: %s", differ(want, got))
	}
	l.report()
	t.Logf("%d of %d requests failed: %q", len(l.failures), l.requests, l.failures)
}

// restart ends a replica, and starts it again with a binary, under load.
func (s *estate) restart(l *load, r *replicaOf, binary string) {
	s.Helper()
	took := s.end(r.program)
	began := time.Now()
	s.open(r, binary)
	s.ready(r)
	s.Logf("%s ended within %v and was ready again after %v", r.program.name, took.Round(10*time.Millisecond), time.Since(began).Round(10*time.Millisecond))
	eventually(s.T, soon, "the balancer knows that "+r.program.name+" is ready", func() bool { return s.balancer.knows(r.addr) })
	l.proceeds(100)
}
