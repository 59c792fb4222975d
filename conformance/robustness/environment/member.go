package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A Member is one member of etcd, or kine.
type Member struct {
	*Child
	ID          int
	URL         string // for clients, without a link
	Peers       *Link  // other members use it
	peer        string // address that it listens on for them
	disk        string // folder of a file system of its own, if it has one
	mounted     bool
	environment *Environment
}

// data is the folder with the member's data.
func (m *Member) data() string {
	if m.disk != "" {
		return filepath.Join(m.disk, "data")
	}
	return filepath.Join(m.dir, "data")
}

func (w *Environment) startMembers(ctx context.Context) error {
	for i := range w.Options.Members {
		if err := w.addMember(i); err != nil {
			return err
		}
	}
	for _, m := range w.Members {
		if err := m.configure("new"); err != nil {
			return err
		}
		if err := m.Start(); err != nil {
			return err
		}
	}
	if err := w.connect(); err != nil {
		return err
	}
	return w.AwaitEtcd(ctx)
}

func (w *Environment) addMember(i int) error {
	client, err := launch.FreePort()
	if err != nil {
		return err
	}
	peer, err := launch.FreePort()
	if err != nil {
		return err
	}
	m := &Member{ID: i, URL: fmt.Sprintf("https://127.0.0.1:%d", client), peer: fmt.Sprintf("127.0.0.1:%d", peer), environment: w}
	name := fmt.Sprintf("%s%d", w.Engine.program(), i)
	dir := w.file(name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	m.Child = newChild(dir, name, nil)
	w.Members = append(w.Members, m)
	if w.Disk > 0 {
		if err := m.mount(w.Disk); err != nil {
			return err
		}
	}
	if m.Peers, err = newLink(m.peer); err != nil {
		return err
	}
	m.Peers.origin = w.memberOf
	return nil
}

// configure sets the command line. State is "new" or "existing".
func (m *Member) configure(state string) error {
	if m.environment.Engine.Kine() {
		return m.configureKine()
	}
	binary, err := launch.Tool("etcd")
	if err != nil {
		return err
	}
	w := m.environment
	m.command(append([]string{binary, "--name", m.name(), "--data-dir", m.data(), "--log-level", "warn",
		"--listen-client-urls", m.URL, "--advertise-client-urls", m.URL,
		"--listen-peer-urls", "https://" + m.peer, "--initial-advertise-peer-urls", "https://" + m.Peers.Addr,
		"--initial-cluster", w.cluster(), "--initial-cluster-state", state,
		"--client-cert-auth", "--trusted-ca-file", w.file("ca.crt"), "--cert-file", w.file("etcd.crt"), "--key-file", w.file("etcd.key"),
		"--peer-client-cert-auth", "--peer-trusted-ca-file", w.file("ca.crt"), "--peer-cert-file", w.file("etcd.crt"), "--peer-key-file", w.file("etcd.key"),
		// Only a crash of the machine would lose what is not synced: faults are of processes.
		"--unsafe-no-fsync",
	}, w.EtcdFlags...))
	return nil
}

func (m *Member) name() string { return fmt.Sprintf("m%d", m.ID) }

func (w *Environment) cluster() string {
	var members []string
	for _, m := range w.Members {
		members = append(members, m.name()+"=https://"+m.Peers.Addr)
	}
	return strings.Join(members, ",")
}

// AwaitEtcd waits until etcd answers a linearizable read.
func (w *Environment) AwaitEtcd(ctx context.Context) error {
	var err error
	for end := time.Now().Add(Patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err = w.Etcd.Get(asking, w.probe())
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		for _, m := range w.Members {
			if !m.Alive() {
				return fmt.Errorf("%s has ended\n%s", m.Name, tail(m.Output()))
			}
		}
	}
	return fmt.Errorf("%s does not answer: %w", w.Engine.program(), err)
}

func tail(s string) string { return s[max(0, len(s)-3000):] }

// Revision is that of etcd now, by a linearizable read.
func (w *Environment) Revision(ctx context.Context) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	resp, err := w.Etcd.Get(ctx, w.probe())
	if err != nil {
		return 0, err
	}
	return resp.Header.Revision, nil
}

// Leader returns the member that leads, and the first one if that is not known.
func (w *Environment) Leader(ctx context.Context) *Member {
	for _, m := range w.Members {
		asking, cancel := context.WithTimeout(ctx, time.Second)
		s, err := w.Etcd.Status(asking, m.URL)
		cancel()
		if err == nil && s.Header.MemberId == s.Leader {
			return m
		}
	}
	return w.Members[0]
}

// Follower returns a member that does not lead.
func (w *Environment) Follower(ctx context.Context) *Member {
	return w.Members[(w.Leader(ctx).ID+1)%len(w.Members)]
}

// MoveLeader has another member lead.
func (w *Environment) MoveLeader(ctx context.Context, to *Member) error {
	leader := w.Leader(ctx)
	if leader == to {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	status, err := w.Etcd.Status(ctx, to.URL)
	if err != nil {
		return err
	}
	// Only the leader itself takes the request.
	direct, err := clientv3.New(clientv3.Config{Endpoints: []string{leader.URL}, TLS: w.etcdTLS, DialTimeout: 5 * time.Second, Logger: w.Etcd.GetLogger()})
	if err != nil {
		return err
	}
	defer direct.Close()
	_, err = direct.MoveLeader(ctx, status.Header.MemberId)
	return err
}

// Isolate cuts a member off from the others, in both directions.
func (w *Environment) Isolate(m *Member) {
	for _, other := range w.Members {
		if other == m {
			other.Peers.Cut()
		} else {
			other.Peers.cutFrom(m.ID)
		}
	}
}

// Rejoin ends Isolate.
func (w *Environment) Rejoin() {
	for _, m := range w.Members {
		m.Peers.Heal()
	}
}

// Replace removes a member with its data and has a new one take its place.
func (w *Environment) Replace(ctx context.Context, m *Member) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	list, err := w.Etcd.MemberList(ctx)
	if err != nil {
		return err
	}
	m.Kill()
	for _, known := range list.Members {
		if known.Name != m.name() {
			continue
		}
		if err := insist(ctx, rpctypes.ErrMemberNotFound, func(ctx context.Context) error {
			_, err := w.Etcd.MemberRemove(ctx, known.ID)
			return err
		}); err != nil {
			return fmt.Errorf("removing a member of etcd failed: %w", err)
		}
	}
	if err := os.RemoveAll(m.data()); err != nil {
		return err
	}
	// A cluster that has just lost a member refuses the next change until the others are known to be healthy.
	if err := insist(ctx, rpctypes.ErrPeerURLExist, func(ctx context.Context) error {
		_, err := w.Etcd.MemberAdd(ctx, []string{"https://" + m.Peers.Addr})
		return err
	}); err != nil {
		return fmt.Errorf("adding a member to etcd failed: %w", err)
	}
	if err := m.configure("existing"); err != nil {
		return err
	}
	return m.Start()
}

// insist tries until it works. Done is the error that says that an attempt without an answer has worked.
func insist(ctx context.Context, done error, f func(context.Context) error) error {
	for {
		asking, stop := context.WithTimeout(ctx, 3*time.Second)
		err := f(asking)
		stop()
		if err == nil || errors.Is(err, done) {
			return nil
		}
		if ctx.Err() != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// Defragment gives the space of what was compacted back. The member does not answer meanwhile.
func (m *Member) Defragment(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	_, err := m.environment.Etcd.Defragment(ctx, m.URL)
	return err
}

// Save writes a snapshot into a file.
func (w *Environment) Save(ctx context.Context, file string) error {
	etcdctl, err := launch.Tool("etcdctl")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return run(exec.CommandContext(ctx, etcdctl, "--endpoints", w.Leader(ctx).URL,
		"--cacert", w.file("ca.crt"), "--cert", w.file("etcd.crt"), "--key", w.file("etcd.key"), "snapshot", "save", file))
}

// Restore ends etcd, and starts it with the data of a snapshot. Bump is how far revisions jump, so that none comes twice;
// with 0 they go back.
func (w *Environment) Restore(ctx context.Context, file string, bump int64) error {
	etcdutl, err := launch.Tool("etcdutl")
	if err != nil {
		return err
	}
	for _, m := range w.Members {
		m.Kill()
	}
	for _, m := range w.Members {
		if err := os.RemoveAll(m.data()); err != nil {
			return err
		}
		argv := []string{"snapshot", "restore", file, "--name", m.name(), "--initial-cluster", w.cluster(),
			"--initial-advertise-peer-urls", "https://" + m.Peers.Addr, "--data-dir", m.data()}
		if bump > 0 {
			argv = append(argv, "--bump-revision", fmt.Sprint(bump), "--mark-compacted")
		}
		if err := run(exec.CommandContext(ctx, etcdutl, argv...)); err != nil {
			return err
		}
	}
	for _, m := range w.Members {
		if err := m.Start(); err != nil {
			return err
		}
	}
	return w.AwaitEtcd(ctx)
}

func run(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}
