package scenarios

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/server/auth/ca"
)

// An estate is a production installation: members of etcd that know their clients by certificates, replicas of the server on it, and
// a load balancer before those.
//
//	client-go ──▶ balancer ──▶ replica ─┐
//	                      └──▶ replica ─┼─▶ etcd, etcd, etcd
//	                      └──▶ replica ─┘
type estate struct {
	*testing.T
	dir      string // certificates, keys, configuration, and the data of etcd
	etcdCA   *ca.CA
	usersCA  *ca.CA
	members  []*member
	replicas []*replicaOf
	balancer *balancer
	client   *clientv3.Client // of etcd, for looking at what is there
	flags    []string         // of all replicas, besides those that every estate has
}

// A program is a child process of a test. It can be started again, with the same name and log.
type program struct {
	name string
	argv []string
	log  string
	cmd  *exec.Cmd
	done chan struct{}
}

// A member is one of etcd's.
type member struct {
	*program
	name, url, peer string
}

// A replicaOf an estate is one server of several.
type replicaOf struct {
	*program
	addr string
}

// newEstate makes certificates and starts etcd. The replicas come later, with staff.
func newEstate(t *testing.T, members int, flags ...string) *estate {
	t.Helper()
	needsDiscovery(t)
	s := &estate{T: t, dir: t.TempDir(), flags: flags}
	s.etcdCA = must[*ca.CA](t)(ca.New("etcd", time.Hour))
	s.usersCA = must[*ca.CA](t)(ca.New("users", time.Hour))
	s.keep(ca.Pair{Cert: s.etcdCA.CA}, "etcd-ca")
	s.keep(ca.Pair{Cert: s.usersCA.CA}, "ca")
	s.keep(must[ca.Pair](t)(s.etcdCA.Peer("127.0.0.1")), "etcd")
	s.keep(must[ca.Pair](t)(s.etcdCA.Client("espalier")), "etcd-client")
	s.keep(must[ca.Pair](t)(s.usersCA.Server("127.0.0.1")), "server")
	// Any pair of a certificate and a key will do: tokens are signed with the key.
	s.keep(must[ca.Pair](t)(s.usersCA.Client("tokens")), "tokens")
	writeFile(t, s.file("encryption.yaml"), strings.Replace(encryption(boxKey("one")), ", boats.harbour.example.com", "", 1))
	s.plan(members)
	for _, m := range s.members {
		s.start(m.program)
	}
	s.client = s.dial()
	s.await("etcd answers", func(ctx context.Context) error {
		_, err := s.client.Get(ctx, "there")
		return err
	})
	return s
}

func (s *estate) file(name string) string { return filepath.Join(s.dir, name) }

func (s *estate) keep(pair ca.Pair, name string) {
	s.Helper()
	if err := pair.Save(s.dir, name); err != nil {
		s.Fatal(err)
	}
}

func (s *estate) port() int {
	s.Helper()
	return must[int](s.T)(launch.FreePort())
}

// plan gives the members of etcd their names and addresses.
func (s *estate) plan(members int) {
	s.Helper()
	binary := must[string](s.T)(launch.Tool("etcd"))
	var cluster []string
	for i := range members {
		m := &member{name: fmt.Sprintf("etcd-%d", i), url: fmt.Sprintf("https://127.0.0.1:%d", s.port()), peer: fmt.Sprintf("https://127.0.0.1:%d", s.port())}
		s.members = append(s.members, m)
		cluster = append(cluster, m.name+"="+m.peer)
	}
	for _, m := range s.members {
		m.program = &program{name: m.name, log: s.file(m.name + ".log"), argv: []string{binary,
			"--name", m.name, "--data-dir", s.file(m.name), "--log-level", "error", "--unsafe-no-fsync",
			"--listen-client-urls", m.url, "--advertise-client-urls", m.url,
			"--listen-peer-urls", m.peer, "--initial-advertise-peer-urls", m.peer, "--initial-cluster", strings.Join(cluster, ","),
			"--client-cert-auth", "--trusted-ca-file", s.file("etcd-ca.crt"), "--cert-file", s.file("etcd.crt"), "--key-file", s.file("etcd.key"),
			"--peer-client-cert-auth", "--peer-trusted-ca-file", s.file("etcd-ca.crt"), "--peer-cert-file", s.file("etcd.crt"), "--peer-key-file", s.file("etcd.key")}}
	}
}

// endpoints are the addresses of all members of etcd.
func (s *estate) endpoints() []string {
	var all []string
	for _, m := range s.members {
		all = append(all, m.url)
	}
	return all
}

// dial connects to etcd.
func (s *estate) dial() *clientv3.Client {
	s.Helper()
	config := must[*tls.Config](s.T)(transport.TLSInfo{TrustedCAFile: s.file("etcd-ca.crt"), CertFile: s.file("etcd-client.crt"), KeyFile: s.file("etcd-client.key")}.ClientConfig())
	c := must[*clientv3.Client](s.T)(clientv3.New(clientv3.Config{Endpoints: s.endpoints(), TLS: config, DialTimeout: 10 * time.Second}))
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// staff starts a number of replicas, and a balancer before them.
func (s *estate) staff(replicas int, binary string) {
	s.Helper()
	for i := range replicas {
		addr := fmt.Sprintf("127.0.0.1:%d", s.port())
		name := fmt.Sprintf("replica-%d", i)
		r := &replicaOf{addr: addr, program: &program{name: name, log: s.file(name + ".log")}}
		s.replicas = append(s.replicas, r)
		s.open(r, binary)
	}
	for _, r := range s.replicas {
		s.ready(r)
	}
	s.balancer = newBalancer(s)
}

// serveFlags are the flags of a replica.
func (s *estate) serveFlags(r *replicaOf) []string {
	_, port, _ := strings.Cut(r.addr, ":")
	return append([]string{"serve", "--bind-address=127.0.0.1", "--secure-port=" + port,
		"--etcd-servers=" + strings.Join(s.endpoints(), ","),
		"--etcd-cafile=" + s.file("etcd-ca.crt"), "--etcd-certfile=" + s.file("etcd-client.crt"), "--etcd-keyfile=" + s.file("etcd-client.key"),
		"--tls-cert-file=" + s.file("server.crt"), "--tls-private-key-file=" + s.file("server.key"), "--client-ca-file=" + s.file("ca.crt"),
		"--service-account-signing-key-file=" + s.file("tokens.key"), "--encryption-provider-config=" + s.file("encryption.yaml"),
	}, s.flags...)
}

// open starts a replica with a binary, which may be another one than before.
func (s *estate) open(r *replicaOf, binary string) {
	s.Helper()
	r.argv = append([]string{binary}, s.serveFlags(r)...)
	s.start(r.program)
}

// ready waits until a replica says that it is.
func (s *estate) ready(r *replicaOf) {
	s.Helper()
	prober := probing()
	s.await(r.program.name+" is ready", func(ctx context.Context) error {
		if r.ended() {
			s.Fatalf("%s has ended:\n%s", r.program.name, r.output())
		}
		return probe(ctx, prober, r.addr)
	})
}

// await asks until there is no error any more.
func (s *estate) await(what string, ask func(context.Context) error) {
	s.Helper()
	var last error
	defer func() {
		if s.Failed() && last != nil {
			s.Logf("%s: the last answer was: %v", what, last)
		}
	}()
	eventually(s.T, time.Minute, what, func() bool {
		ctx, cancel := context.WithTimeout(s.Context(), 5*time.Second)
		defer cancel()
		last = ask(ctx)
		return last == nil
	})
}

// start runs a program. At the end of the test it is ended, and its log is read.
func (s *estate) start(p *program) {
	s.Helper()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.Fatal(err)
	}
	defer log.Close()
	first := p.cmd == nil
	p.cmd, p.done = exec.Command(p.argv[0], p.argv[1:]...), make(chan struct{})
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.SysProcAttr, p.cmd.Dir = log, log, withParent(), s.dir
	if err := p.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(p.cmd, p.done)
	if first {
		s.Cleanup(func() { s.finish(p) })
	}
}

// finish ends a program at the end of a test.
func (s *estate) finish(p *program) {
	p.kill()
	if fault := faultIn(p.output()); fault != "" {
		s.Errorf("the log of %s has %s", p.name, fault)
	}
	if s.Failed() {
		lines := strings.Split(strings.TrimSpace(p.output()), "\n")
		s.Logf("end of the log of %s:\n%s", p.name, strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
}

func (p *program) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends a program as a crash would.
func (p *program) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// end asks a program to end, and returns how long it has taken.
func (s *estate) end(p *program) time.Duration {
	s.Helper()
	began := time.Now()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(time.Minute):
		s.Fatalf("%s has not ended within a minute:\n%s", p.name, p.output())
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 && !strings.HasPrefix(p.name, "etcd") {
		s.Errorf("%s ends with exit code %d:\n%s", p.name, code, p.output())
	}
	return time.Since(began)
}

func (p *program) output() string {
	data, _ := os.ReadFile(p.log)
	return string(data)
}

// user is the configuration of a client that comes through the balancer. Every user has connections of its own.
func (s *estate) user(name string) *rest.Config {
	s.Helper()
	pair := must[ca.Pair](s.T)(s.usersCA.Client(name, "system:masters"))
	return &rest.Config{Host: s.balancer.url, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.usersCA.CA, CertData: pair.Cert, KeyData: pair.Key}}
}

// installBoats makes the CRD of boats, and waits until it is served.
func (s *estate) installBoats() {
	s.Helper()
	installWithClient(s.T, s.user("installer"))
}

// probing is the client that a load balancer asks for /readyz with: a new connection every time, and no look at the certificate.
func probing() *http.Client {
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // as load balancers do
}

// probe asks a server whether it is ready.
func probe(ctx context.Context, client *http.Client, addr string) error {
	return launch.Ask(ctx, client, "https://"+addr+"/readyz")
}

// leaderOf is the member that leads etcd.
func (s *estate) leaderOf() *member {
	s.Helper()
	var leader *member
	s.await("etcd has a leader", func(ctx context.Context) error {
		for _, m := range s.members {
			if m.ended() {
				continue
			}
			status, err := s.client.Status(ctx, m.url)
			if err != nil {
				return err
			}
			if status.Leader == status.Header.MemberId {
				leader = m
				return nil
			}
		}
		return fmt.Errorf("no leader among %v", s.endpoints())
	})
	return leader
}

// others are the members besides one.
func (s *estate) others(than *member) []*member {
	return slices.DeleteFunc(slices.Clone(s.members), func(m *member) bool { return m == than })
}
