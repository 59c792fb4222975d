package server_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// interruption is how long clients may be interrupted. It is 5 s, and 3 s for a killed
// leader, which `robustness -availability` measures. A machine with other work gets more
// time; before links were probed it was 25 to 40 s.
const interruption = 20 * time.Second

// One of three members of etcd is frozen. Clients of every replica are interrupted for
// seconds, and every replica stays ready and says which member it is.
func TestFrozenMember(t *testing.T) {
	c := etcdtest.NewCluster(t)
	prefix, keys := etcdtest.Prefix(t), t.TempDir()
	var replicas []*running
	for range 2 {
		replicas = append(replicas, start(t, func(o *server.Options) {
			o.Etcd.StorageConfig.Transport.ServerList, o.Etcd.StorageConfig.Prefix = c.Endpoints, prefix
			o.Serving.ServerCert.CertDirectory = keys
		}))
	}
	define(t, replicas[0].dynamic(t))
	repeat, _ := strconv.Atoi(os.Getenv("ESPALIER_REPEAT"))
	for n := range max(repeat, 1) {
		for _, role := range []string{"follower", "leader"} {
			t.Run(fmt.Sprint(role, "-", n), func(t *testing.T) {
				member := c.Leader(t)
				if role == "follower" {
					member = (member + 1) % 3
				}
				var clients []*busyClient
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				for i, r := range replicas {
					clients = append(clients, newBusyClient(ctx, t, r, fmt.Sprintf("%s-%d-%d", role, n, i)))
				}
				time.Sleep(500 * time.Millisecond)
				c.Signal(t, member, syscall.SIGSTOP)
				time.Sleep(7 * time.Second)
				for i, r := range replicas {
					want := "[!]etcd warning: 2 of 3 members answer; " + c.Endpoints[member] + " has not answered since "
					var code int
					var text string
					for end := time.Now().Add(interruption); ; time.Sleep(100 * time.Millisecond) {
						code, text = get(t, r.member(t, "system:masters"), r.url+"/readyz?verbose")
						if code == http.StatusOK && strings.Contains(text, want) || time.Now().After(end) {
							break
						}
					}
					if code != http.StatusOK || !strings.Contains(text, want) {
						t.Errorf("replica %d: %d %s", i, code, text)
					}
				}
				c.Signal(t, member, syscall.SIGCONT)
				time.Sleep(3 * time.Second) // until it is used again
				stop()
				for i, b := range clients {
					b.done.Wait()
					t.Logf("frozen %s, replica %d: read %v, write %v, event %v, not ready %d of %d times", role, i, b.read.Round(time.Millisecond), b.write.Round(time.Millisecond), b.event.Round(time.Millisecond), b.unready.Load(), b.asked.Load())
					if max(b.read, b.write, b.event) > interruption {
						t.Errorf("replica %d: interrupted for more than %v", i, interruption)
					}
					if b.unready.Load() > b.asked.Load()/2 {
						t.Errorf("replica %d was not ready %d of %d times", i, b.unready.Load(), b.asked.Load())
					}
				}
			})
		}
	}
}

// The leader of etcd is killed, with whatever is on its way to it.
func TestKilledLeader(t *testing.T) {
	c := etcdtest.NewCluster(t)
	r := start(t, func(o *server.Options) { o.Etcd.StorageConfig.Transport.ServerList = c.Endpoints })
	define(t, r.dynamic(t))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients []*busyClient
	for i := range 4 {
		clients = append(clients, newBusyClient(ctx, t, r, fmt.Sprint("web-", i)))
	}
	time.Sleep(500 * time.Millisecond)
	c.Signal(t, c.Leader(t), syscall.SIGKILL)
	time.Sleep(7 * time.Second)
	stop()
	for i, b := range clients {
		b.done.Wait()
		t.Logf("killed leader, client %d: read %v, write %v, event %v", i, b.read.Round(time.Millisecond), b.write.Round(time.Millisecond), b.event.Round(time.Millisecond))
		if max(b.read, b.write, b.event) > interruption {
			t.Errorf("client %d: interrupted for more than %v", i, interruption)
		}
		if b.unready.Load() > b.asked.Load()/2 {
			t.Errorf("the server was not ready %d of %d times", b.unready.Load(), b.asked.Load())
		}
	}
}

// busyClient reads, writes and watches at one replica, and notes the longest time that
// each took. Writes whose outcome is unknown are looked up, as clients have to.
type busyClient struct {
	read, write, event time.Duration
	asked, unready     atomic.Int64
	done               sync.WaitGroup
}

func newBusyClient(ctx context.Context, t *testing.T, r *running, name string) *busyClient {
	t.Helper()
	b := &busyClient{}
	client := r.dynamic(t).Resource(webs).Namespace("default")
	made, err := client.Create(ctx, web(name, "0"), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	b.loop(ctx, &b.read, func() error {
		_, err := client.Get(ctx, name, metav1.GetOptions{})
		return err
	})
	b.loop(ctx, &b.write, func() error {
		now, err := client.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			err = unstructured.SetNestedField(now.Object, fmt.Sprint(time.Now().UnixNano()), "spec", "host")
		}
		if err == nil {
			_, err = client.Update(ctx, now, metav1.UpdateOptions{})
		}
		return err
	})
	b.done.Go(func() { b.watch(ctx, client, name, made.GetResourceVersion()) })
	health := r.member(t, "system:masters")
	b.done.Go(func() {
		for ctx.Err() == nil {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url+"/readyz", nil)
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := health.Do(req)
			if err != nil {
				continue
			}
			resp.Body.Close()
			if b.asked.Add(1); resp.StatusCode != http.StatusOK {
				b.unready.Add(1)
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return b
}

// loop does something until it succeeds, again and again.
func (b *busyClient) loop(ctx context.Context, longest *time.Duration, do func() error) {
	b.done.Go(func() {
		for ctx.Err() == nil {
			began := time.Now()
			for do() != nil && ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
			if ctx.Err() == nil {
				*longest = max(*longest, time.Since(began))
			}
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// watch notes how long after a write its event came; it is one watch from beginning to end
// unless the server ends it.
func (b *busyClient) watch(ctx context.Context, client dynamic.ResourceInterface, name, from string) {
	for ctx.Err() == nil {
		events, err := client.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name, ResourceVersion: from})
		if err != nil {
			time.Sleep(20 * time.Millisecond)
			continue
		}
		for e := range events.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				break
			}
			from = o.GetResourceVersion()
			host, _, _ := unstructured.NestedString(o.Object, "spec", "host")
			if nanos, err := strconv.ParseInt(host, 10, 64); err == nil && nanos > 0 {
				b.event = max(b.event, time.Since(time.Unix(0, nanos)))
			}
		}
		events.Stop()
	}
}
