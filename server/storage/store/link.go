package store

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"k8s.io/klog/v2"
)

// links are the ways to the members of etcd. gRPC spreads requests over its
// connections, one for each member, and believes in a connection until the kernel or
// a keepalive (after 40 s) says otherwise. A member that is stopped, or whose network
// swallows packets, says nothing: a third of all requests and its share of the
// watches wait. So every link has a probe of its own (see probing), a Status request
// each second, and what the probes find out decides about gRPC's connections:
//
//	no answer for 2 s, and another member answers    ▶ the link is held: its connections are
//	no leader for 2 s, and another member has one      closed, new ones fail; requests and watches
//	                                                   go to the others (see review)
//	it answers twice in a row, with a leader         ▶ the link is used again
//	a newer connection answers, an older one did not ▶ connections that are as old, and silent since,
//	                                                   are closed; gRPC connects at once (see renew)
//
// The case that must not get worse is one member, or none that answers. Then no link
// is held and no connection is closed: an etcd that takes 3 s for an answer is slow
// and not away, and a request that is cut off there is only made again, or its outcome
// is unknown. The same goes for an etcd whose members are all slow: a link is held
// only if another member is at least four times as quick as this one is silent.
//
// A request that is in flight on a connection that is closed fails with Unavailable,
// as if the member had died: retryingKV finds out what became of a write.
type links struct {
	client *clientv3.Client
	all    []*link
	// direct says that gRPC's connections can be told apart: by way of a proxy of the
	// environment they cannot, and are left alone.
	direct bool
	creds  credentials.TransportCredentials
	dial   dialFunc // for the egress selector; nil: the default dialer

	versions  *versions
	elections elections
	answers   atomic.Pointer[[]Answer]
	stop      context.CancelFunc
	running   sync.WaitGroup

	mu sync.Mutex // for all that links have
}

// Answer says whether an endpoint of etcd answers.
type Answer struct {
	// Endpoint is as it was given.
	Endpoint string
	// Since is when the first of the requests was sent that it has not answered; zero
	// if it answers.
	Since time.Time
	// Leaderless is since when it answers that it knows no leader; zero if it knows one.
	Leaderless time.Time
	// Held says that requests go to other members.
	Held bool
}

// link is the way to one member.
type link struct {
	endpoint string // as it was given
	address  string // as it is dialed, and as gRPC calls it
	done     chan *attempt

	// Under the mutex of links.
	state
	status *pb.StatusResponse // the last; nil if there is none
	conns  map[*linkConn]struct{}
	dials  map[*dialing]struct{}
	logged condition
}

// What gRPC waits before it connects again. It doubles its pause up to two minutes,
// which is for thousands of clients of one server. Here, a few replicas connect to a
// few members, and a healed link is used again after this pause. Nothing shortens it:
// ResetConnectBackoff of gRPC reads a map that another goroutine writes, which ends the
// process.
var reconnect = grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 300 * time.Millisecond},
	// How long a connection may take, TLS included. It cannot be short: on slow machines
	// under load handshakes have been seen to take more than 10 s (k/k#64649), and to
	// begin again is to never succeed. It need not be short: a connection that waits for
	// lost packets, or for a proxy without a voice, is given up as soon as a newer one
	// of the probe got through (see renew).
	MinConnectTimeout: connectTimeout,
}

// newLinks prepares the links to those members that are reached by TCP. A socket of
// this machine has no link that can fail, and its etcd no other member.
func newLinks(endpoints []string, tls *tls.Config, dial dialFunc) *links {
	l := &links{creds: transportCredentials(endpoints[0], tls), dial: dial, direct: dial != nil, stop: func() {}, versions: &versions{}, elections: elections{writes: map[*inFlight]struct{}{}}}
	for _, endpoint := range endpoints {
		address := addressOf(endpoint)
		if address == "" || slices.ContainsFunc(l.all, func(other *link) bool { return other.address == address }) {
			continue
		}
		l.all = append(l.all, &link{
			endpoint: endpoint, address: address, done: make(chan *attempt),
			conns: map[*linkConn]struct{}{}, dials: map[*dialing]struct{}{},
		})
	}
	if !l.direct && len(l.all) > 0 {
		// gRPC does not use the proxy of the environment if it is given a dialer, and
		// gives connections by way of one all the same name.
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: "https", Host: l.all[0].address}})
		l.direct = proxy == nil && err == nil
	}
	l.publish()
	return l
}

// addressOf returns the address of an endpoint as etcd's client gives it to gRPC, for
// dialing and as the name of the server; "" if that is no TCP address.
func addressOf(endpoint string) string {
	if strings.HasPrefix(endpoint, "unix:") || strings.HasPrefix(endpoint, "unixs:") {
		return ""
	}
	if !strings.Contains(endpoint, "://") {
		return endpoint
	}
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.Host
}

// transportCredentials are those that etcd's client chooses: by the first endpoint, for
// all.
func transportCredentials(endpoint string, config *tls.Config) credentials.TransportCredentials {
	switch scheme, _, _ := strings.Cut(endpoint, ":"); {
	case scheme == "https", scheme == "unixs", scheme != "http" && config != nil:
		return credentials.NewTLS(config)
	}
	return insecure.NewCredentials()
}

// options are those of the client's connections.
func (l *links) options() []grpc.DialOption {
	options := []grpc.DialOption{grpc.WithConnectParams(reconnect), grpc.WithChainUnaryInterceptor(l.elections.intercept, watchHandover)}
	if l.direct {
		options = append(options, grpc.WithTransportCredentials(&linkCredentials{l.creds, l}), grpc.WithContextDialer(l.dialTracked))
	}
	return options
}

// start begins to probe the links of a client.
func (l *links) start(client *clientv3.Client) {
	ctx, cancel := context.WithCancel(context.Background())
	l.client, l.stop = client, cancel
	now := time.Now()
	for _, one := range l.all {
		one.since = now
		l.running.Go(func() { l.probe(ctx, one) })
	}
}

// close stops probing.
func (l *links) close() {
	l.stop()
	l.running.Wait()
}

// Answering reports which endpoints of etcd answer. It sends no request. Endpoints that
// are sockets of this machine are not in the report.
func (b *Backend) Answering() []Answer { return *b.links.answers.Load() }

// publish has the report say what is known now.
func (l *links) publish() {
	answers := make([]Answer, len(l.all))
	for i, one := range l.all {
		answers[i] = Answer{Endpoint: one.endpoint, Held: one.held}
		switch one.condition() {
		case silent:
			answers[i].Since = one.since
		case leaderless:
			answers[i].Leaderless = one.leaderSince
		}
	}
	l.answers.Store(&answers)
}

// answering reports whether there are several links, and one of them is good.
func (l *links) answering() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.all) > 1 && slices.ContainsFunc(l.all, func(one *link) bool { return one.better(linkPatience) })
}

// MembersWarning says which members of etcd do not answer, if others do, or have
// versions with known defects; "" if there is nothing to say.
func (b *Backend) MembersWarning() string {
	var texts []string
	answers := b.Answering()
	answering := 0
	for _, a := range answers {
		switch {
		case !a.Since.IsZero():
			texts = append(texts, fmt.Sprintf("%s has not answered since %s", a.Endpoint, a.Since.UTC().Format(time.RFC3339)))
		case !a.Leaderless.IsZero():
			texts = append(texts, fmt.Sprintf("%s has known no leader since %s", a.Endpoint, a.Leaderless.UTC().Format(time.RFC3339)))
		default:
			answering++
		}
	}
	if len(texts) > 0 {
		texts = slices.Insert(texts, 0, fmt.Sprintf("%d of %d members answer", answering, len(answers)))
	}
	if old := b.links.versions.warning(); old != "" {
		texts = append(texts, old)
	}
	return strings.Join(texts, "; ")
}

// SilentSince returns since when no member of etcd has answered; zero if one does, or
// if that is not known.
func (b *Backend) SilentSince() time.Time {
	var last time.Time
	for _, a := range b.Answering() {
		if a.Since.IsZero() {
			return time.Time{}
		}
		if a.Since.After(last) {
			last = a.Since
		}
	}
	return last
}

// log tells once of each change of a link, under the mutex.
func (l *links) log(one *link) {
	now := one.condition()
	if now == one.logged {
		return
	}
	before := one.logged
	one.logged = now
	answering := 0
	for _, other := range l.all {
		if other.condition() == fine {
			answering++
		}
	}
	of := fmt.Sprintf("%d of %d", answering, len(l.all))
	consequence := "Requests that it has wait for it"
	switch {
	case one.held:
		consequence = "Requests and watches go to the other members"
	case answering == 0:
		consequence = "Writes and consistent reads wait or fail until a member answers"
	}
	switch now {
	case silent:
		klog.ErrorS(one.err, "An etcd member does not answer. "+consequence+". Check the process, the disk and the network of the member",
			"endpoint", one.endpoint, "since", one.since.UTC().Format(time.RFC3339), "answering", of)
	case leaderless:
		klog.ErrorS(nil, "An etcd member answers, but knows no leader. "+consequence+". Check the network between the members",
			"endpoint", one.endpoint, "since", one.leaderSince.UTC().Format(time.RFC3339), "answering", of)
	case fine:
		if before != unknown {
			klog.InfoS("An etcd member answers again", "endpoint", one.endpoint, "after", time.Since(one.lastSince).Round(100*time.Millisecond), "answering", of)
		}
	}
}
