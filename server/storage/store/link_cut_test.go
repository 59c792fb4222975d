package store

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// cable is a link to etcd that can be cut.
type cable struct {
	address string
	bytes   atomic.Int64
	dialed  atomic.Int64

	mu    sync.Mutex
	mode  string // "", "swallow" (accept and say nothing), or "refuse"
	wires map[*wire]struct{}
}

// wire is one connection. One that was there when the cable was cut does not come back:
// to TCP, a cut of a minute is as good as for ever.
type wire struct {
	near, far net.Conn
	dead      atomic.Bool
}

func newCable(t testing.TB, target string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{address: l.Addr().String(), wires: map[*wire]struct{}{}}
	t.Cleanup(func() { l.Close(); c.cut("refuse") })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			c.dialed.Add(1)
			go c.carry(near, strings.TrimPrefix(target, "http://"))
		}
	}()
	return c
}

func (c *cable) carry(near net.Conn, target string) {
	w := &wire{near: near}
	c.mu.Lock()
	mode := c.mode
	c.wires[w] = struct{}{}
	w.dead.Store(mode == "swallow")
	c.mu.Unlock()
	if mode == "refuse" {
		near.Close()
		return
	}
	if mode == "" {
		far, err := net.Dial("tcp", target)
		if err != nil {
			near.Close()
			return
		}
		c.mu.Lock()
		w.far = far
		c.mu.Unlock()
		go c.copy(w, near, far)
		c.copy(w, far, near)
		return
	}
	_, _ = io.Copy(io.Discard, near)
}

func (c *cable) copy(w *wire, to, from net.Conn) {
	defer func() {
		if !w.dead.Load() {
			to.Close()
		}
	}()
	data := make([]byte, 32<<10)
	for {
		n, err := from.Read(data)
		c.bytes.Add(int64(n))
		if w.dead.Load() {
			_, _ = io.Copy(io.Discard, from)
			return
		}
		if _, writeErr := to.Write(data[:n]); err != nil || writeErr != nil {
			return
		}
	}
}

func (c *cable) cut(mode string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mode = mode
	for w := range c.wires {
		switch mode {
		case "swallow":
			w.dead.Store(true)
		case "refuse":
			w.near.Close()
			if w.far != nil {
				w.far.Close()
			}
		}
	}
	clear(c.wires)
}

func (c *cable) heal() { c.mu.Lock(); defer c.mu.Unlock(); c.mode = "" }

// cutTime is how long a link is cut: short, or as long as ESPALIER_CUT says.
func cutTime() time.Duration {
	if d, err := time.ParseDuration(os.Getenv("ESPALIER_CUT")); err == nil {
		return d
	}
	return 6 * time.Second
}

// A link that was cut is used again at once when it has healed, however long it was
// cut, and however it was: reads, writes, and watches that were open before.
func TestCutLink(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"swallow", "refuse"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			c := newCable(t, etcdtest.Endpoint(t))
			b := openAt(t, "http://"+c.address)
			key := b.Key("cut")
			events := b.client.Watch(t.Context(), key, clientv3.WithCreatedNotify())
			if first := <-events; !first.Created {
				t.Fatalf("%+v", first)
			}
			// A request is on its way all the time: it waits for an answer that does not come.
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			go func() {
				for ctx.Err() == nil {
					_, _ = b.client.KV.Get(ctx, key)
					time.Sleep(20 * time.Millisecond)
				}
			}()
			time.Sleep(200 * time.Millisecond)
			cut := time.Now()
			c.cut(mode)
			time.Sleep(cutTime())
			if since := b.SilentSince(); since.Before(cut.Add(-time.Second)) || since.After(cut.Add(slowly(3*time.Second))) {
				t.Errorf("etcd is silent since %v, and was cut at %v", since, cut)
			}
			if err := b.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "etcd has not answered since "+b.SilentSince().UTC().Format(time.RFC3339)) {
				t.Errorf("the health check says %v", err)
			}
			for _, a := range b.Answering() {
				if a.Held {
					t.Error("the only link is held")
				}
			}
			c.heal()
			healed := time.Now()
			until(t, slowly(30*time.Second), "a read", func() bool {
				short, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				_, err := b.client.KV.Get(short, key)
				return err == nil
			})
			read := time.Since(healed)
			resp, err := b.client.KV.Put(t.Context(), key, "x")
			if err != nil {
				t.Fatal(err)
			}
			written := time.Since(healed)
			for got := int64(0); got < resp.Header.Revision; {
				select {
				case w := <-events:
					if w.Err() != nil {
						t.Fatal(w.Err())
					}
					for _, e := range w.Events {
						got = e.Kv.ModRevision
					}
				case <-time.After(slowly(30 * time.Second)):
					t.Fatal("no event")
				}
			}
			event := time.Since(healed)
			t.Logf("cut for %v (%s): read after %v, written after %v, event after %v", cutTime(), mode, read.Round(time.Millisecond), written.Round(time.Millisecond), event.Round(time.Millisecond))
			if event > slowly(3*time.Second) {
				t.Errorf("the link is used %v after it has healed", event)
			}
			until(t, slowly(10*time.Second), "it is known that etcd answers", func() bool { return b.SilentSince().IsZero() })
		})
	}
}

// slowConn delivers late, and loses nothing.
type slowConn struct {
	net.Conn
	delay func() time.Duration
}

func (s *slowConn) Read(data []byte) (int, error) {
	n, err := s.Conn.Read(data)
	time.Sleep(s.delay())
	return n, err
}

// An etcd that takes three seconds for an answer is slow, and not away: no connection
// of it is closed, with one endpoint as with several.
func TestSlowEtcd(t *testing.T) {
	t.Parallel()
	for name, endpoints := range map[string]int{"one endpoint": 1, "three endpoints": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var delay atomic.Int64
			var given []string
			for range endpoints {
				given = append(given, delayed(t, etcdtest.Endpoint(t), &delay))
			}
			b := openAt(t, given...)
			key := b.Key("slow")
			if _, err := b.client.KV.Get(t.Context(), key); err != nil {
				t.Fatal(err)
			}
			// Those that have asked for the versions at the start are being closed.
			until(t, slowly(10*time.Second), "one connection per endpoint", func() bool { return len(connections(b)) == endpoints })
			opened := connections(b)
			delay.Store(int64(3 * time.Second))
			for range 3 {
				began := time.Now()
				if _, err := b.client.KV.Txn(t.Context()).If(clientv3.Compare(clientv3.Version(key), "=", 0)).Then(clientv3.OpGet(key)).Commit(); err != nil {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			}
			for _, a := range b.Answering() {
				if a.Held {
					t.Errorf("%s is held", a.Endpoint)
				}
			}
			for c := range opened {
				if !connections(b)[c] {
					t.Error("a connection was closed")
				}
			}
		})
	}
}

func connections(b *Backend) map[*linkConn]bool {
	b.links.mu.Lock()
	defer b.links.mu.Unlock()
	all := map[*linkConn]bool{}
	for _, one := range b.links.all {
		for c := range one.conns {
			all[c] = true
		}
	}
	return all
}

// delayed is a proxy whose answers are late.
func delayed(t testing.TB, target string, delay *atomic.Int64) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(target, "http://"))
			if err != nil {
				near.Close()
				continue
			}
			go func() { defer far.Close(); _, _ = io.Copy(far, near) }()
			go func() {
				defer near.Close()
				_, _ = io.Copy(near, &slowConn{far, func() time.Duration { return time.Duration(delay.Load()) }})
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// An idle link costs next to nothing.
func TestProbeCost(t *testing.T) {
	c := newCable(t, etcdtest.Endpoint(t))
	before := runtime.NumGoroutine()
	l := newLinks([]string{"http://" + c.address}, nil, nil)
	l.start(nil)
	defer l.close()
	until(t, slowly(10*time.Second), "an answer", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.all[0].answered })
	probes := func() int { l.mu.Lock(); defer l.mu.Unlock(); return l.all[0].inARow }
	goroutines := runtime.NumGoroutine() - before - 3 // of the cable
	first, sent, dials := probes(), c.bytes.Load(), c.dialed.Load()
	var m, n runtime.MemStats
	runtime.ReadMemStats(&m)
	const seconds = 5
	time.Sleep(seconds * time.Second)
	runtime.ReadMemStats(&n)
	count := probes() - first
	if count == 0 {
		t.Fatal("no probes")
	}
	bytes, allocated, objects := (c.bytes.Load()-sent)/int64(count), (n.TotalAlloc-m.TotalAlloc)/uint64(count), (n.Mallocs-m.Mallocs)/uint64(count)
	t.Logf("%d probes in %d s: %d bytes, %d allocations of %d bytes each; %d goroutines", count, seconds, bytes, objects, allocated, goroutines)
	if count > seconds+1 || bytes > 1000 || allocated > 40<<10 || goroutines > 12 || c.dialed.Load() != dials {
		t.Error("this is more than a link may cost")
	}
}

// What the environment and the endpoints say decides how members are reached, as before.
func TestEndpoints(t *testing.T) {
	for endpoint, address := range map[string]string{
		"http://10.0.0.1:2379": "10.0.0.1:2379", "https://etcd-0.etcd:2379": "etcd-0.etcd:2379", "10.0.0.1:2379": "10.0.0.1:2379",
		"unix:///run/etcd.sock": "", "unixs:etcd.sock": "", "dns://x/y": "",
	} {
		if got := addressOf(endpoint); got != address {
			t.Errorf("%s is dialed as %q", endpoint, got)
		}
	}
	for endpoint, protocol := range map[string]string{"http://a:1": "insecure", "https://a:1": "tls", "unix:///a": "insecure", "unixs:///a": "tls", "a:1": "insecure"} {
		if got := transportCredentials(endpoint, nil).Info().SecurityProtocol; got != protocol {
			t.Errorf("%s is reached by %s", endpoint, got)
		}
	}
	if l := newLinks([]string{"unix:///run/etcd.sock"}, nil, nil); l.direct || len(l.all) != 0 {
		t.Error("a socket has a link")
	}
	failed := errors.New("no egress")
	l := newLinks([]string{"https://a:1", "https://b:1", "https://a:1"}, nil, func(_ context.Context, network, address string) (net.Conn, error) {
		return nil, errors.Join(failed, errors.New(network+" "+address))
	})
	if len(l.all) != 2 {
		t.Errorf("%d links", len(l.all))
	}
	for _, dial := range []func(context.Context, string) (net.Conn, error){l.dialTracked, l.dialPlain} {
		if _, err := dial(t.Context(), "a:1"); !errors.Is(err, failed) || !strings.Contains(err.Error(), "tcp a:1") {
			t.Errorf("the egress selector is not asked: %v", err)
		}
	}
	l.all[0].held = true
	var held *heldError
	if _, err := l.dialTracked(t.Context(), "a:1"); !errors.As(err, &held) {
		t.Errorf("a link that is held is dialed: %v", err)
	}
	if _, err := l.dialPlain(t.Context(), "a:1"); !errors.Is(err, failed) {
		t.Errorf("a probe is held: %v", err)
	}
}
