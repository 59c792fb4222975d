package turns

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// take begins a turn in the background, and returns whether it has begun.
func take(t *testing.T, s *Share) (turn *Turn, ctx context.Context) {
	t.Helper()
	done, stop := context.WithCancel(t.Context())
	type taken struct {
		turn *Turn
		ctx  context.Context
	}
	begun := make(chan taken, 1)
	go func() {
		if ctx, turn, err := s.Take(done); err == nil {
			begun <- taken{turn, ctx}
		}
	}()
	synctest.Wait()
	select {
	case got := <-begun:
		t.Cleanup(stop)
		return got.turn, got.ctx
	default:
		stop()
		synctest.Wait()
		return nil, nil
	}
}

func TestShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(4)
		busy, other := all.Share(), all.Share()
		var turns []*Turn
		for range 6 {
			turn, _ := take(t, busy)
			if turn == nil {
				t.Fatal("a tenant that is alone waits")
			}
			turns = append(turns, turn)
		}
		one, _ := take(t, other)
		if one == nil {
			t.Fatal("a tenant waits for another one's turns")
		}
		for n := range 5 { // six and one, of four processors: two are the busy tenant's share
			if turn, _ := take(t, busy); turn != nil {
				t.Errorf("the busy tenant begins a turn beside %d", 6-n)
			}
			turns[n].Leave()
			turns[n].Leave() // does no harm
		}
		one.Leave()
		second, _ := take(t, busy)
		third, _ := take(t, busy)
		if second == nil || third == nil {
			t.Error("the busy tenant cannot use what the other one leaves")
		}
		if turn, _ := take(t, busy); turn != nil {
			t.Error("the busy tenant uses the reserve")
		}
		time.Sleep(2 * epoch) // its turns have lapsed, and the other tenant sends nothing
		for range 6 {
			if turn, _ := take(t, busy); turn == nil {
				t.Error("a tenant waits for one that sends no requests any more")
			}
		}
	})
}

// A tenant that computes without a pause has a part of the processors' time, while another one sends requests, and all of it
// otherwise. The other one waits for nothing.
func TestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const processors, length, work = 2, 20 * time.Second, 10 * time.Millisecond
		all := New(processors)
		busy, other := all.Share(), all.Share()
		request := func(s *Share, work time.Duration) (waited time.Duration) {
			began := time.Now()
			ctx, turn, err := s.Take(t.Context())
			if err != nil {
				t.Error(err)
				return 0
			}
			waited = time.Since(began)
			time.Sleep(work / 2)
			Away(ctx)()
			time.Sleep(work / 2)
			turn.Leave()
			return waited
		}
		// flood sends requests on many connections, and returns for how long they have computed.
		flood := func() time.Duration {
			var done atomic.Int64
			var group sync.WaitGroup
			for range 8 {
				group.Go(func() {
					for end := time.Now().Add(length); time.Now().Before(end); done.Add(1) {
						request(busy, work)
					}
				})
			}
			group.Wait()
			return time.Duration(done.Load()) * work
		}
		if used := flood(); used < 7*length {
			t.Errorf("a tenant that is alone computes %v in %v on 8 connections", used, length)
		}
		stop := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(work):
					if waited := request(other, work/10); waited > 0 {
						t.Errorf("a tenant that computes little waits for %v", waited)
						return
					}
				}
			}
		})
		time.Sleep(epoch)
		used := flood()
		close(stop)
		group.Wait()
		if most := length * processors / part; used > most+ahead || used < most*9/10 {
			t.Errorf("beside another tenant it computes %v in %v, want %v", used, length, most)
		}
		time.Sleep(epoch)
		if used := flood(); used < 6*length {
			t.Errorf("a tenant that is alone again computes %v in %v on 8 connections", used, length)
		}
	})
}

// A request that waits for something keeps nothing from other requests of its tenant.
func TestAwayAndLapse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(1)
		mine, other := all.Share(), all.Share()
		if turn, _ := take(t, other); turn == nil {
			t.Fatal("no turn")
		}
		first, ctx := take(t, mine)
		if turn, _ := take(t, mine); turn != nil {
			t.Error("a tenant has more than its share")
		}
		back := Away(ctx)
		second, _ := take(t, mine)
		if second == nil {
			t.Fatal("a request waits for one that is away")
		}
		Away(ctx)() // another goroutine of the first request
		returned := make(chan struct{})
		go func() { back(); close(returned) }()
		synctest.Wait()
		select {
		case <-returned:
			t.Error("a request goes on without a turn")
		default:
		}
		time.Sleep(2 * lapse) // the second has lapsed
		<-returned
		time.Sleep(lapse + behind) // the first, too, and what they have used is paid
		if third, _ := take(t, mine); third == nil {
			t.Error("a turn does not lapse")
		}
		first.Leave()
		second.Leave()
		if all.running < 0 || mine.running < 0 {
			t.Errorf("%d turns, %d of the tenant", all.running, mine.running)
		}
		Away(ctx)() // after its end
	})
}

type silent struct{ clientv3.KV }

func (silent) Get(ctx context.Context, _ string, _ ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	return nil, context.Cause(ctx)
}

// Whatever requests do, no turn is left when they are over.
func TestNothingIsLeft(t *testing.T) {
	all := New(2)
	var requests sync.WaitGroup
	for tenant := range 4 {
		share := all.Share()
		for n := range 8 {
			requests.Go(func() {
				for i := range 200 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+(i*n)%7)*100*time.Microsecond)
					inner, turn, err := share.Take(ctx)
					if err == nil {
						if (i+tenant)%3 == 0 {
							_, _ = KV(silent{}).Get(inner, "")
						}
						if i%50 == 0 {
							back := Away(inner)
							turn.Leave() // before it is back
							back()
						}
						turn.Leave()
					} else if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
					cancel()
				}
			})
		}
	}
	requests.Wait()
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.running != 0 {
		t.Errorf("%d turns are left", all.running)
	}
	for _, s := range all.queue {
		if s.running != 0 || len(s.waiting) == 0 {
			t.Errorf("a tenant has %d turns and %d waiting requests", s.running, len(s.waiting))
		}
		for _, w := range s.waiting {
			if !w.left {
				t.Error("a request still waits")
			}
		}
	}
}

func BenchmarkTurn(b *testing.B) {
	all := New(2)
	share := all.Share()
	b.ReportAllocs()
	for b.Loop() {
		ctx, turn, err := share.Take(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		Away(ctx)()
		turn.Leave()
	}
}
