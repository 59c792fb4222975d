package etcdtest

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Cluster is an etcd of three processes, whose members can be stopped.
type Cluster struct {
	// Endpoints are the URLs of the members.
	Endpoints []string

	members []*exec.Cmd
	client  *clientv3.Client
}

// NewCluster starts three members, which end with the test, or with this process.
func NewCluster(tb testing.TB, flags ...string) *Cluster {
	tb.Helper()
	binary, err := Binary()
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{}
	var peers, initial []string
	for i := range 3 {
		c.Endpoints, peers = append(c.Endpoints, freeURL()), append(peers, freeURL())
		initial = append(initial, fmt.Sprintf("m%d=%s", i, peers[i]))
	}
	logs := make([]bytes.Buffer, 3)
	for i := range 3 {
		cmd := exec.CommandContext(context.Background(), binary, slices.Concat(flags, member(tb.TempDir(), fmt.Sprint("m", i), c.Endpoints[i], peers[i], strings.Join(initial, ",")))...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		cmd.Stderr = &logs[i]
		if err := cmd.Start(); err != nil {
			tb.Fatal(err)
		}
		c.members = append(c.members, cmd)
		tb.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			if tb.Failed() && logs[i].Len() > 0 {
				tb.Logf("etcd member %d:\n%s", i, logs[i].String())
			}
		})
	}
	if c.client, err = clientv3.New(clientv3.Config{Endpoints: c.Endpoints, DialTimeout: 10 * time.Second}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = c.client.Close() })
	c.Leader(tb)
	return c
}

// Leader returns the index of the leader, for which it waits.
func (c *Cluster) Leader(tb testing.TB) int {
	tb.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		for i, endpoint := range c.Endpoints {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			status, err := c.client.Status(ctx, endpoint)
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				return i
			}
		}
	}
	tb.Fatal("etcd has no leader after a minute")
	return 0
}

// Signal sends a signal to a member: SIGSTOP freezes it, SIGCONT has it go on.
func (c *Cluster) Signal(tb testing.TB, i int, s syscall.Signal) {
	tb.Helper()
	if err := c.members[i].Process.Signal(s); err != nil {
		tb.Fatal(err)
	}
}
