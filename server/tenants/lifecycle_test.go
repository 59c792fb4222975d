package tenants

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/storage/meter"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// aPlane is a plane that tests hold up.
type aPlane struct {
	http.Handler
	closing chan struct{} // closed by Close
	hold    chan struct{} // Close waits for it
	broken  atomic.Bool
	usage   meter.Usage
}

func newPlane() *aPlane { return &aPlane{closing: make(chan struct{}), hold: make(chan struct{})} }

func (p *aPlane) Quiet() time.Duration { return time.Hour }
func (p *aPlane) Broken() bool         { return p.broken.Load() }
func (p *aPlane) Usage() meter.Usage   { return p.usage }
func (p *aPlane) Close()               { close(p.closing); <-p.hold }

func (p *aPlane) closed() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

// inUse puts a plane into a set that has been used an hour ago.
func (s *Set) inUse(name string, p Plane, ago time.Duration) *entry {
	e := &entry{name: name, ready: make(chan struct{}), plane: p, used: time.Now().Add(-ago), finished: true}
	close(e.ready)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active[name] = e
	return e
}

func emptySet(o Options) *Set {
	life, end := context.WithCancel(context.Background())
	find := func(context.Context, string) (Tenant, *Use, error) { return Tenant{}, &Use{}, nil }
	return &Set{options: o, find: find, active: map[string]*entry{}, places: newPlaces(), life: life, end: end}
}

// A tenant that is used again before its plane is closed keeps it, however long it takes to
// close others.
func TestNoPlaneInUseIsClosed(t *testing.T) {
	for what, end := range map[string]func(*Set){"expire": (*Set).expire, "shrink": (*Set).shrink} {
		s := emptySet(Options{Idle: time.Minute, Most: 0})
		planes := map[string]*aPlane{"one": newPlane(), "two": newPlane()}
		ago := time.Hour
		for name, p := range planes {
			s.inUse(name, p, ago)
			ago += time.Hour
		}
		done := make(chan struct{})
		go func() { defer close(done); end(s) }()
		var other *aPlane
		var name string
		select { // the plane that is closed first holds it up
		case <-planes["one"].closing:
			name, other = "two", planes["two"]
		case <-planes["two"].closing:
			name, other = "one", planes["one"]
		case <-time.After(30 * time.Second):
			t.Fatal(what, "closes nothing")
		}
		s.mu.Lock()
		e := s.active[name]
		s.mu.Unlock()
		if e != nil {
			if _, err := s.enter(t.Context(), name); err != nil {
				t.Fatal(what, err)
			}
		}
		for _, p := range planes {
			close(p.hold)
		}
		<-done
		s.running.Wait()
		if e != nil && other.closed() {
			t.Errorf("%s closes a plane that is in use", what)
		}
	}
}

// A plane that takes long to close does not keep the set from doing anything else.
func TestSlowCloseHoldsNothingUp(t *testing.T) {
	for what, end := range map[string]func(*Set){"expire": (*Set).expire, "shrink": (*Set).shrink} {
		s := emptySet(Options{Idle: time.Minute, Most: 0})
		p := newPlane()
		s.inUse("one", p, time.Hour)
		done := make(chan struct{})
		go func() { defer close(done); end(s) }()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Errorf("%s waits for a plane to close", what)
		}
		close(p.hold)
		s.running.Wait()
	}
}

// A request that has waited for a start does not get a plane that is closed already.
func TestEnterDoesNotReturnWhatIsGone(t *testing.T) {
	s := emptySet(Options{})
	s.closed = true // nothing can be started
	e := s.inUse("one", newPlane(), 0)
	e.gone = true
	if _, err := s.enter(t.Context(), "one"); err == nil {
		t.Error("a plane that is gone is used")
	}
}

// Requests under way end before their plane does, when only its settings change.
func TestRequestsEndBeforeTheirPlane(t *testing.T) {
	s := emptySet(Options{})
	p := newPlane()
	close(p.hold)
	s.inUse("one", p, 0)
	e, err := s.enter(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	s.retire(e, time.Minute)
	time.Sleep(5 * drainPoll)
	if p.closed() || s.Active() != 0 {
		t.Errorf("closed %t, %d in use", p.closed(), s.Active())
	}
	s.leave(e)
	s.running.Wait()
	if !p.closed() {
		t.Error("the plane is not closed")
	}
}

// Starts without a waiting request, and those of a set that is closed, do not take place.
func TestStartsThatNobodyWaitsFor(t *testing.T) {
	s := emptySet(Options{Start: func(context.Context, Tenant, *store.Backend) (Plane, error) {
		t.Error("a plane is started")
		return nil, errors.New("started")
	}})
	for range starts {
		s.places.quick <- struct{}{} // others start
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.enter(ctx, "one"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	<-s.places.quick
	s.running.Wait()
	if n := s.Active(); n != 0 {
		t.Errorf("%d tenants in use", n)
	}
	s.places.quick <- struct{}{}
	left := make(chan error, 1)
	go func() { _, err := s.enter(context.Background(), "two"); left <- err }()
	for s.Active() == 0 {
		time.Sleep(time.Millisecond)
	}
	s.close() // and does not wait for places
	if err := <-left; err == nil {
		t.Error("a tenant of a closed set is entered")
	}
}

// A tenant that loses its guard while it starts, because it is moved at this moment, is started again at once.
func TestGuardIsLostDuringStart(t *testing.T) {
	var starts atomic.Int32
	s := emptySet(Options{Idle: time.Minute, Most: 10, Start: func(context.Context, Tenant, *store.Backend) (Plane, error) {
		if starts.Add(1) == 1 {
			return nil, store.ErrClosed
		}
		return newPlane(), nil
	}})
	e, err := s.enter(t.Context(), "one")
	if err != nil || starts.Load() != 2 {
		t.Fatalf("%v after %d starts", err, starts.Load())
	}
	s.leave(e)
}
