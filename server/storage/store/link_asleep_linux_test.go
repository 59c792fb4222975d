package store

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/espalier-dev/espalier/server/etcdtest"
)

// A process that was asleep for long does not take etcd for dead when it wakes up:
// no link is held, no member is said to be silent, no connection is closed.
func TestAsleepProcess(t *testing.T) {
	if endpoints := os.Getenv("ESPALIER_ASLEEP"); endpoints != "" {
		watchAnswers(t, strings.Split(endpoints, ","))
		return
	}
	t.Parallel()
	// Three ways to the same etcd are as good as three members. They are slow, so that
	// requests are under way when the process falls asleep.
	var delay atomic.Int64
	delay.Store(int64(300 * time.Millisecond))
	var endpoints []string
	for range 3 {
		endpoints = append(endpoints, delayed(t, etcdtest.Endpoint(t), &delay))
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAsleepProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "ESPALIER_ASLEEP="+strings.Join(endpoints, ","))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	lines := bufio.NewScanner(output)
	next := func(want string) string {
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), want) {
				return lines.Text()
			}
		}
		t.Fatalf("no line %q: %v", want, lines.Err())
		return ""
	}
	next("watching")
	for range 3 {
		time.Sleep(700 * time.Millisecond)
		if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		if err := cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * time.Second)
	input.Close()
	if line := next("saw"); line != "saw 0 silent, 0 closed" {
		t.Error(line)
	}
}

// watchAnswers is the process that is put to sleep.
func watchAnswers(t *testing.T, endpoints []string) {
	b := openAt(t, endpoints...)
	if _, err := b.client.KV.Get(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	until(t, slowly(20*time.Second), "connections", func() bool { return len(connections(b)) == len(endpoints) })
	before := connections(b)
	fmt.Println("watching")
	end := make(chan struct{})
	go func() { _, _ = os.Stdin.Read(make([]byte, 1)); close(end) }()
	silent := 0
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-tick.C:
			for _, a := range b.Answering() {
				if a.Held || !a.Since.IsZero() {
					silent++
				}
			}
			continue
		case <-end:
		}
		break
	}
	closed := 0
	for c := range before {
		if !connections(b)[c] {
			closed++
		}
	}
	fmt.Printf("saw %d silent, %d closed\n", silent, closed)
}

// fakeMember says what its leader is.
type fakeMember struct {
	pb.UnimplementedMaintenanceServer
	term, leader atomic.Uint64
}

// Status implements pb.MaintenanceServer.
func (f *fakeMember) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	return &pb.StatusResponse{Version: "3.7.3", Leader: f.leader.Load(), RaftTerm: f.term.Load()}, nil
}

func newFakeMember(t testing.TB) (*fakeMember, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f, s := &fakeMember{}, grpc.NewServer()
	f.term.Store(2)
	f.leader.Store(1)
	pb.RegisterMaintenanceServer(s, f)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return f, "http://" + l.Addr().String()
}

// A member that has lost the others is not used while they have a leader.
func TestLeaderlessMember(t *testing.T) {
	t.Parallel()
	one, first := newFakeMember(t)
	other, second := newFakeMember(t)
	l := newLinks([]string{first, second}, nil, nil)
	b := &Backend{links: l}
	l.start(nil)
	defer l.close()
	held := func(want ...bool) func() bool {
		return func() bool {
			for i, a := range b.Answering() {
				if a.Held != want[i] {
					return false
				}
			}
			return true
		}
	}
	until(t, slowly(20*time.Second), "answers", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.all[0].answered && l.all[1].answered })
	one.leader.Store(0)
	until(t, slowly(20*time.Second), "the member without a leader is held", held(true, false))
	if text := b.MembersWarning(); !strings.Contains(text, "1 of 2 members answer; "+first+" has known no leader since ") {
		t.Errorf("the warning is %q", text)
	}
	if since := b.SilentSince(); !since.IsZero() {
		t.Errorf("etcd is said to be silent since %v", since)
	}
	other.leader.Store(0) // neither has a leader: both are as good
	until(t, slowly(20*time.Second), "none is held where none has a leader", held(false, false))
	one.term.Store(3)
	one.leader.Store(1)
	other.leader.Store(1)
	until(t, slowly(20*time.Second), "all is well", func() bool { return b.MembersWarning() == "" })
	if !held(false, false)() {
		t.Error("a link is held")
	}
}

// A write that waits for a leader that is gone ends when there is another, and not
// before: as one whose outcome is unknown. Others go on.
func TestElection(t *testing.T) {
	t.Parallel()
	e := &elections{writes: map[*inFlight]struct{}{}}
	call := func(method string) chan error {
		out, begun := make(chan error, 1), make(chan struct{})
		go func() {
			out <- e.intercept(t.Context(), method, nil, nil, nil, func(ctx context.Context, _ string, _, _ any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
				close(begun)
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(4 * electionGrace):
					return nil
				}
			})
		}()
		<-begun
		return out
	}
	e.leads(2, 1)
	calm := call("/etcdserverpb.KV/Txn")
	e.leads(2, 1)
	e.leads(1, 7) // reported by a member that is behind
	e.leads(3, 0)
	if err := <-calm; err != nil {
		t.Errorf("a write ended without an election: %v", err)
	}
	write, read := call("/etcdserverpb.KV/Txn"), call("/etcdserverpb.KV/Range")
	e.leads(3, 2)
	after := call("/etcdserverpb.KV/Put")
	if err := <-write; !unanswered(err) || dropped(err) {
		t.Errorf("a write that waits for a leader that is gone: %v", err)
	}
	if err := <-read; err != nil {
		t.Errorf("a read: %v", err)
	}
	if err := <-after; err != nil {
		t.Errorf("a write after the election: %v", err)
	}
	if len(e.writes) != 0 {
		t.Errorf("%d writes are remembered", len(e.writes))
	}
}
