package espaliertest

import (
	"context"
	"maps"
	"net/http"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/espaliertest/internal/faults"
)

// A Fault is one way in which a correct API server behaves badly. None of them
// breaks a promise of the API: a client that fails under them fails in a cluster,
// too, only less often.
type Fault = faults.Kind

const (
	// LateEvents: events of a watch wait while requests are answered, for up to two
	// seconds, and arrive in batches. The API promises their order for one resource,
	// and no time. Events are never lost, doubled or reordered within a watch.
	LateEvents = faults.LateEvents
	// ClosedWatch: watches end in an orderly way at any time. Servers end them when
	// they shut down, rotate certificates or share load.
	ClosedWatch = faults.ClosedWatch
	// Expired: 410 for a watch from a version that is not the newest, and for the next
	// page of a list. A server keeps history for as long as it likes: a replica that has
	// just started has none.
	Expired = faults.Expired
	// Conflict: another client writes the object just before an update, patch or delete
	// that names a resourceVersion, so that the server answers 409. The write is real
	// (it sets the annotation espalier.dev/touched) and watches report it: a 409 without
	// a change would be a lie that no server tells. Nothing happens where the server
	// refuses that write.
	Conflict = faults.Conflict
	// LostAnswer: a write is carried out, and the client gets 504 or a connection that
	// is reset. The network may fail after the commit as well as before.
	LostAnswer = faults.LostAnswer
	// Refused: 503, or 429 with Retry-After, for any request. It was not carried out.
	Refused = faults.Refused
	// StaleRead: reads with resourceVersion=0 are answered from an older state, also from
	// one that is older than what the client has seen: the replicas of a server are not
	// equally far. With resourceVersion=N the state is not older than N. Reads without a
	// resourceVersion are never stale.
	StaleRead = faults.StaleRead
	// Disconnect: a write does not reach the server, its connection is reset, and all
	// watches break off with it, as when a replica is killed between two writes.
	Disconnect = faults.Disconnect
	// NoBookmarks: bookmarks of watches come late or never. Servers owe none, except the
	// one that ends the initial events.
	NoBookmarks = faults.NoBookmarks
	// NoWatchLists: the server does not have the feature WatchList, so that informers
	// list, by default with resourceVersion=0. It is always so unless its weight is 0.
	// client-go hands the objects of a watch-list on in random order, so that a schedule
	// with it cannot be repeated exactly.
	NoWatchLists = faults.NoWatchLists
)

type (
	interposer struct {
		*faults.Interposer
		seed int
		end  func()
	}
	plan struct {
		seed    int
		weights map[Fault]float64
	}
)

// A FaultOption says what Faults does.
type FaultOption func(*plan)

// Seed decides which faults happen, when, and in which order requests are answered
// and events arrive. The default is 1; Explore begins with it.
func Seed(n int) FaultOption { return func(p *plan) { p.seed = n } }

// Weight makes a fault more or less probable: twice as probable with 2, and
// impossible with 0.
//
//	espaliertest.Faults(espaliertest.Weight(espaliertest.Conflict, 0), espaliertest.Weight(espaliertest.LateEvents, 2))
func Weight(f Fault, weight float64) FaultOption {
	return func(p *plan) { p.weights[f] = weight }
}

// Faults has the server behave as badly as a correct API server may. The constants
// of type Fault are the complete list, each with the reason why a correct server
// does it. Every seed has some of them and lacks others.
//
//	config := espaliertest.Start(t, espaliertest.Faults(espaliertest.Seed(17)))
//
// It concerns clients of this process that are made of the returned configuration
// or of TestServer.User; kubeconfig files lead to the server as it is. While they are
// under way, requests are answered one at a time, in an order that the seed
// decides: when the clients have been quiet for two milliseconds, the server
// answers one request or sends events of one watch. So the same seed gives the same
// order of requests, answers and events on the wire, as far as the clients do the
// same: what they do by real time, at random or in an order that their goroutines
// race for may differ. Explore has a clock of its own and depends on none of
// these but chance.
//
// Requests that the test makes for itself do better without faults: see
// WithoutFaults and Calm.
func Faults(options ...FaultOption) Option {
	return func(s *settings) {
		if s.faults == nil {
			s.faults = &plan{seed: 1, weights: map[Fault]float64{}}
		}
		for _, option := range options {
			option(s.faults)
		}
	}
}

// interposers are those that run, by the host of their server's clients.
var interposers sync.Map

// WithoutFaults returns the configuration of a client that has no faults, beside
// clients that have: for what a test prepares and what it asserts. Its requests
// have their turn before all others. A configuration that has no faults is
// returned as it is.
func WithoutFaults(config *rest.Config) *rest.Config {
	ip, ok := interposers.Load(config.Host)
	if !ok {
		return config
	}
	config = rest.CopyConfig(config)
	config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return ip.(*interposer).Transport(rt, true) }
	return config
}

// Calm ends the faults of a server: what has happened is still to be digested, and
// nothing more goes wrong. Tests that wait for a controller to get everything done
// call it before they wait.
func Calm(config *rest.Config) {
	if ip, ok := interposers.Load(config.Host); ok {
		ip.(*interposer).Calm()
	}
}

// misbehave puts an interposer before the server.
func (ts *TestServer) misbehave(p *plan) error {
	if p == nil {
		return nil
	}
	if err := ts.interpose(p, false); err != nil {
		return err
	}
	ts.faults.end = ts.faults.run()
	return nil
}

// run has the interposer decide what happens until end is called.
func (ip *interposer) run() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	ip.Begin()
	go func() {
		defer close(ended)
		ip.Run(ctx)
	}()
	return func() { cancel(); <-ended }
}

// interpose makes an interposer, which does not run yet.
func (ts *TestServer) interpose(p *plan, bubble bool) error {
	config := ts.controlPlane.Config()
	rt, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	ip, err := faults.New(faults.Options{
		Plan: faults.Plan{Seed: uint64(p.seed), Weights: maps.Clone(p.weights)},
		Host: config.Host, Transport: rt, Bubble: bubble, Settle: func() { _ = ts.settle(context.Background()) }, // an etcd that does not answer is noticed by others
	})
	if err != nil {
		return err
	}
	ts.faults = &interposer{Interposer: ip, seed: p.seed, end: func() {}}
	interposers.Store(config.Host, ts.faults)
	return nil
}

// behave removes the interposer.
func (ts *TestServer) behave() {
	if ts.faults == nil {
		return
	}
	ts.faults.end()
	ts.faults.Close()
	interposers.Delete(ts.controlPlane.Config().Host)
	ts.faults = nil
}

// interposed has the requests of a client go through the interposer, if there is
// one.
func (ts *TestServer) interposed(config *rest.Config) *rest.Config {
	if ip := ts.faults; ip != nil {
		config.WrapTransport = func(rt http.RoundTripper) http.RoundTripper { return ip.Transport(rt, false) }
	}
	return config
}

// shownEvents is how much of the wire a failed test shows.
const shownEvents = 40

// report says what has happened on the wire before a test has failed.
func (ts *TestServer) report(tb testing.TB) {
	tb.Helper()
	if ts.faults != nil && tb.Failed() {
		tb.Logf("espaliertest: seed %d; the last events on the wire:\n%s", ts.faults.seed, ts.faults.Tail(shownEvents))
	}
}
