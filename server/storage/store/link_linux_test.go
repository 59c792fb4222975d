package store

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/metadata"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// gapLimit is how long requests and watches may be interrupted by one member.
const gapLimit = 5 * time.Second // see slowly

// gaps freezes a member and returns the longest time that a read, a write and the
// event of a write took, and checks that nothing was lost and nothing done twice.
func gaps(t *testing.T, b *Backend, freeze, thaw func(), frozen time.Duration) (read, write, event time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		longest time.Duration
		count   int
	}
	stop := make(chan struct{})
	loop := func(one func(i int) error) chan result {
		out := make(chan result, 1)
		go func() {
			var r result
			for i := 0; ; i++ {
				select {
				case <-stop:
					out <- r
					return
				default:
				}
				began := time.Now()
				for one(i) != nil && time.Since(began) < time.Minute {
					time.Sleep(20 * time.Millisecond)
				}
				r.longest = max(r.longest, time.Since(began))
				r.count++
				time.Sleep(5 * time.Millisecond)
			}
		}()
		return out
	}
	key := b.Key(fmt.Sprint("traffic-", time.Now().UnixNano()))
	// Enough watches, each with a stream of its own, that every member has some.
	const watches = 9
	arrived := make([]chan time.Duration, watches)
	for i := range watches {
		arrived[i] = make(chan time.Duration, 1)
		changes := b.client.Watch(streamOf(ctx, i), key, clientv3.WithPrefix(), clientv3.WithCreatedNotify())
		if first := <-changes; !first.Created {
			t.Fatalf("watch %d: %+v", i, first)
		}
		go func() {
			var longest time.Duration
			want := 0
			for w := range changes {
				for _, e := range w.Events {
					number, at, _ := strings.Cut(string(e.Kv.Value), " ")
					n, _ := strconv.Atoi(number)
					if n != want {
						t.Errorf("watch %d got the event of write %d, not %d", i, n, want)
					}
					want = n + 1
					nanos, _ := strconv.ParseInt(at, 10, 64)
					longest = max(longest, time.Since(time.Unix(0, nanos)))
				}
			}
			arrived[i] <- longest
		}()
	}
	var at int64
	number := 0
	writes := loop(func(int) error {
		short, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		resp, err := b.client.KV.Txn(short).If(clientv3.Compare(clientv3.ModRevision(key), "=", at)).
			Then(clientv3.OpPut(key, fmt.Sprintf("%d %d", number, time.Now().UnixNano()))).Else(clientv3.OpGet(key)).Commit()
		if err == nil && resp.Succeeded {
			at = resp.Header.Revision
			number++
			return nil
		}
		now, getErr := b.client.KV.Get(short, key)
		if getErr != nil {
			return getErr
		}
		if len(now.Kvs) == 1 && now.Kvs[0].ModRevision != at { // unknown outcome: it was done
			at = now.Kvs[0].ModRevision
			number++
			return nil
		}
		return fmt.Errorf("%+v, %w", resp, err)
	})
	reads := loop(func(int) error {
		short, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		_, err := b.client.KV.Get(short, key)
		return err
	})
	time.Sleep(500 * time.Millisecond)
	freeze()
	time.Sleep(frozen)
	thaw()
	time.Sleep(1500 * time.Millisecond)
	close(stop)
	r, w := <-reads, <-writes
	if r.count == 0 || w.count == 0 {
		t.Fatalf("%d reads, %d writes", r.count, w.count)
	}
	time.Sleep(200 * time.Millisecond)
	cancel()
	for i := range watches {
		event = max(event, <-arrived[i])
	}
	return r.longest, w.longest, event
}

func repetitions() int {
	if n, err := strconv.Atoi(os.Getenv("ESPALIER_REPEAT")); err == nil {
		return n
	}
	return 1
}

// One member of three is stopped: its kernel still accepts connections and acknowledges
// what is sent. No request waits longer than a few seconds, neither reads and writes nor
// events of watches, and a member that comes back is used again.
func TestFrozenMember(t *testing.T) {
	c := etcdtest.NewCluster(t)
	b := openAt(t, c.Endpoints...)
	for _, role := range []string{"follower", "leader"} {
		t.Run(role, func(t *testing.T) {
			var reads, writes, events []time.Duration
			for range repetitions() {
				i := c.Leader(t)
				if role == "follower" {
					i = (i + 1) % 3
				}
				r, w, e := gaps(t, b, func() { c.Signal(t, i, syscall.SIGSTOP) }, func() {
					if answers := b.Answering(); answers[i].Since.IsZero() || !answers[i].Held {
						t.Errorf("%+v", answers)
					}
					if text := b.MembersWarning(); !strings.Contains(text, "2 of 3 members answer; "+c.Endpoints[i]+" has not answered since ") {
						t.Errorf("the warning is %q", text)
					}
					c.Signal(t, i, syscall.SIGCONT)
				}, 6*time.Second)
				reads, writes, events = append(reads, r), append(writes, w), append(events, e)
				until(t, slowly(20*time.Second), "the member is used again", func() bool {
					return !slices.ContainsFunc(b.Answering(), func(a Answer) bool { return a.Held || !a.Since.IsZero() })
				})
			}
			t.Logf("frozen %s: reads %v, writes %v, events %v", role, summary(reads), summary(writes), summary(events))
			for what, all := range map[string][]time.Duration{"read": reads, "write": writes, "event": events} {
				if longest := slices.Max(all); longest > slowly(gapLimit) {
					t.Errorf("a %s took %v", what, longest)
				}
			}
		})
	}
}

func summary(all []time.Duration) string {
	slices.Sort(all)
	return fmt.Sprintf("median %v, longest %v of %d", all[len(all)/2].Round(10*time.Millisecond), all[len(all)-1].Round(10*time.Millisecond), len(all))
}

// streamOf gives a watch a stream of its own.
func streamOf(ctx context.Context, i int) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "test-watch", strconv.Itoa(i))
}
