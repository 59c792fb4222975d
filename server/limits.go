package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"

	"github.com/espalier-dev/espalier/server/endpoints/limit"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// Limits bound what clients hold of the server without doing anything. They are
// no shares: flow control divides the work among requests.
type Limits struct {
	// WatchBehind is how many bytes of events a watch may be behind, and
	// WatchBehindSum how many all watches may be.
	WatchBehind, WatchBehindSum Bytes
	// WriteTimeout is how long a write may be blocked by a client; 0 is for ever.
	WriteTimeout time.Duration
	// WatchesPerUser is how many watches one user may have open; 0 is any number.
	WatchesPerUser int
	// ConnectionsPerAddress and Connections are how many connections there may be
	// of one address, and in all; 0 is any number.
	ConnectionsPerAddress, Connections int
}

func newLimits() *Limits {
	return &Limits{
		WatchBehind:           store.DefaultMaxBehind,
		WatchBehindSum:        store.DefaultMaxBehindSum,
		WriteTimeout:          30 * time.Second,
		WatchesPerUser:        5000,
		ConnectionsPerAddress: 4096,
		Connections:           16384,
	}
}

func (l *Limits) addFlags(flags *pflag.FlagSet) {
	flags.Var(&l.WatchBehind, "max-watch-behind",
		"How many bytes of events a watch may be behind, such as 32Mi. A watch that is further behind ends after the events that are kept; its client goes on from there, or lists again.")
	flags.Var(&l.WatchBehindSum, "max-watch-behind-sum",
		"How many bytes of events all watches together may be behind, such as 128Mi; events that watches share count once. Beyond it, the watches that are furthest behind end.")
	flags.DurationVar(&l.WriteTimeout, "client-write-timeout", l.WriteTimeout,
		"How long a write to a client may be blocked because the client does not read, before the server ends the watch, the answer or the connection. 0 for no limit.")
	flags.IntVar(&l.WatchesPerUser, "max-watches-per-user", l.WatchesPerUser,
		"How many watches one user may have open on this server; more are refused with 429. The users of a tenant count as one. Members of system:masters are not counted. 0 for no limit.")
	flags.IntVar(&l.ConnectionsPerAddress, "max-connections-per-address", l.ConnectionsPerAddress,
		"How many connections one client address (IPv6: one network of 64 bits) may have; more are closed at once. Behind a load balancer or proxy that hides the addresses of clients, all connections have its address: raise this to --max-connections there. 0 for no limit.")
	flags.IntVar(&l.Connections, "max-connections", l.Connections,
		"How many connections all clients together may have; more are closed at once. Must be well below the limit of open files. 0 for no limit.")
}

func (l *Limits) validate() (errs []error) {
	for _, one := range []struct {
		flag string
		is   Bytes
	}{{"--max-watch-behind", l.WatchBehind}, {"--max-watch-behind-sum", l.WatchBehindSum}} {
		if one.is < 1<<20 {
			errs = append(errs, fmt.Errorf("%s is %s: a watch could end because of a single object; give at least 1Mi", one.flag, &one.is))
		}
	}
	if l.WatchBehindSum < l.WatchBehind {
		errs = append(errs, fmt.Errorf("--max-watch-behind-sum is %s, less than what a single watch may be behind (--max-watch-behind, %s); give at least as much", &l.WatchBehindSum, &l.WatchBehind))
	}
	if l.WriteTimeout != 0 && l.WriteTimeout < time.Second {
		errs = append(errs, fmt.Errorf("--client-write-timeout is %v: clients on slow networks would lose their answers; give at least 1s, or 0 for no limit", l.WriteTimeout))
	}
	for _, one := range []struct {
		flag string
		is   int
	}{{"--max-watches-per-user", l.WatchesPerUser}, {"--max-connections-per-address", l.ConnectionsPerAddress}, {"--max-connections", l.Connections}} {
		if one.is < 0 {
			errs = append(errs, fmt.Errorf("%s is %d: it must not be negative; give 0 for no limit", one.flag, one.is))
		}
	}
	return errs
}

// limit sets the limits up.
//
// The server itself and members of system:masters are exempt from the number of
// watches: the first needs one per resource, and the latter are exempt from flow
// control as well, so that administrators can always get in. Connections have no
// user yet: none is exempt, neither is 127.0.0.1. The server itself has no
// connection of that kind.
func (s *signals) limit(l *Limits, p *controlPlane, c *genericapiserver.Config) {
	s.watches = limit.NewWatches(l.WatchesPerUser, func(req *http.Request) bool {
		if p.loop.Has(req) {
			return true
		}
		who, ok := request.UserFrom(req.Context())
		return ok && slices.Contains(who.GetGroups(), user.SystemPrivilegedGroup)
	})
	s.writes = limit.NewWrites(l.WriteTimeout, s.notAccepting)
	s.listener = limit.Listen(c.SecureServing.Listener, limit.Connections{
		PerAddress: l.ConnectionsPerAddress, Total: l.Connections, WriteTimeout: l.WriteTimeout,
	})
	c.SecureServing.Listener = s.listener
}

const (
	// lastWords is how long answers whose handlers have returned may still take.
	lastWords = 2 * time.Second
	drainTick = 50 * time.Millisecond
)

// drain ends, once no new requests are accepted, what clients do not read: blocked
// writes within seconds, and the connections when no request is under way. Without
// it, the server would wait for them as long as for requests that do something.
func (s *signals) drain(ctx context.Context) {
	s.listener.Hurry()
	tick := time.NewTicker(drainTick)
	defer tick.Stop()
	idle := time.Duration(0)
	for idle < lastWords {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if idle += drainTick; s.requests.Load()+s.watching.Load() > 0 {
			idle = 0
		}
	}
	s.listener.Cut()
}

// Bytes is a number of bytes, which flags write as 32Mi.
type Bytes int64

// String implements pflag.Value.
func (b *Bytes) String() string { return resource.NewQuantity(int64(*b), resource.BinarySI).String() }

// Set implements pflag.Value.
func (b *Bytes) Set(text string) error {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return fmt.Errorf("%q is not a number of bytes such as 32Mi: %w", text, err)
	}
	*b = Bytes(q.Value())
	return nil
}

// Type implements pflag.Value.
func (b *Bytes) Type() string { return "bytes" }
