package scenarios

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/auth/ca"
)

// A server that etcd does not know, or that does not know etcd, does not start, and says what is wrong and what to do.
func TestProductionCertificates(t *testing.T) {
	t.Parallel()
	s := newEstate(t, 1)
	stranger := must[*ca.CA](t)(ca.New("stranger", time.Hour))
	s.keep(ca.Pair{Cert: stranger.CA}, "stranger-ca")
	s.keep(must[ca.Pair](t)(stranger.Client("espalier")), "stranger")
	former := must[*ca.CA](t)(ca.New("former", -time.Minute))
	s.keep(must[ca.Pair](t)(former.Client("espalier")), "expired")
	ca, own := "--etcd-cafile="+s.file("etcd-ca.crt"), []string{"--etcd-certfile=" + s.file("etcd-client.crt"), "--etcd-keyfile=" + s.file("etcd-client.key")}
	for name, c := range map[string]struct {
		flags []string
		says  []string
	}{
		"another CA":     {append(own, "--etcd-cafile="+s.file("stranger-ca.crt")), []string{"--etcd-cafile", "unknown authority", s.endpoints()[0]}},
		"no certificate": {[]string{ca}, []string{"--etcd-certfile", "certificate required", s.endpoints()[0]}},
		"of another":     {[]string{ca, "--etcd-certfile=" + s.file("stranger.crt"), "--etcd-keyfile=" + s.file("stranger.key")}, []string{"--etcd-certfile", "unknown certificate authority", s.endpoints()[0]}},
		"expired":        {[]string{ca, "--etcd-certfile=" + s.file("expired.crt"), "--etcd-keyfile=" + s.file("expired.key")}, []string{"--etcd-certfile", "expired"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			args := append([]string{"serve", "--etcd-servers=" + s.endpoints()[0], "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", must[int](t)(launch.FreePort())),
				"--tls-cert-file=" + s.file("server.crt"), "--tls-private-key-file=" + s.file("server.key"), "--client-ca-file=" + s.file("ca.crt"),
				"--service-account-signing-key-file=" + s.file("tokens.key")}, c.flags...)
			began := time.Now()
			cmd := exec.CommandContext(ctx, binaries[launch.Espalier], args...)
			out, err := cmd.CombinedOutput()
			if err == nil || cmd.ProcessState.ExitCode() != 2 {
				t.Fatalf("%v\n%s", err, out)
			}
			t.Logf("after %v: %s", time.Since(began).Round(10*time.Millisecond), out)
			for _, want := range c.says {
				if !strings.Contains(string(out), want) {
					t.Errorf("no %q in\n%s", want, out)
				}
			}
		})
	}
}

// Of three members of etcd one may be lost, whichever it is, and another one may become the leader: requests go on, reads never fail, and
// nothing that was acknowledged is lost. Writes through a member that is gone may fail: clients do not know whether they
// were done.
func TestProductionMembers(t *testing.T) {
	if testing.Short() {
		t.Skip("it is about etcd more than about the server: left to the long form")
	}
	t.Parallel()
	s := newEstate(t, 3, drain...)
	s.staff(2, binaries[launch.Espalier])
	s.installBoats()
	l := newLoad(s)
	l.mayDoubt = true
	l.proceeds(100)
	for range 3 {
		s.handOver(l)
		follower := s.others(s.leaderOf())[0]
		s.loses(l, follower)
		s.loses(l, s.leaderOf())
	}
	l.settle()
	if n, most := len(l.doubts), 5*pick(9, 3); n > most {
		t.Errorf("%d writes are in doubt: there are 5 workers, and each has one at a time", n)
	}
}

// handOver makes another member the leader.
func (s *estate) handOver(l *load) {
	s.Helper()
	leader := s.leaderOf()
	next := s.others(leader)[0]
	status := must[*clientv3.StatusResponse](s.T)(s.client.Status(s.Context(), next.url))
	direct := s.dial()
	direct.SetEndpoints(leader.url)
	if _, err := direct.MoveLeader(s.Context(), status.Header.MemberId); err != nil {
		s.Fatal(err)
	}
	s.Logf("%s leads in place of %s", s.leaderOf().name, leader.name)
	l.proceeds(100)
}

// loses kills a member, goes on without it, and gets it back.
func (s *estate) loses(l *load, m *member) {
	s.Helper()
	m.kill()
	began, before := time.Now(), l.done()
	l.proceeds(100)
	s.Logf("%s was lost, %s leads; %d requests within %v", m.name, s.leaderOf().name, l.done()-before, time.Since(began).Round(time.Millisecond))
	s.start(m.program)
	s.await(m.name+" is back", func(ctx context.Context) error {
		_, err := s.client.Status(ctx, m.url)
		return err
	})
	l.proceeds(100)
}
