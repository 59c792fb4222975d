package scenarios

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

var (
	etcd     *launch.Etcd
	binaries = map[launch.Kind]string{}
	against  = launch.Espalier // the server under test
	prefixes atomic.Int64
	shared   *launch.Server // for tests that take away what they make; nil until one asks
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, "scenarios:", err)
		code = 1
	}
	os.Exit(code)
}

// buildCommandLine compiles the program that runs the server's.
var buildCommandLine func() (string, error)

// commandLine returns the path of the program espalier.
func commandLine(t *testing.T) string {
	t.Helper()
	return must[string](t)(buildCommandLine())
}

func run(m *testing.M) (int, error) {
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run(), nil // asked for names only
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	dir, err := os.MkdirTemp("", "scenarios-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	buildCommandLine = sync.OnceValues(func() (string, error) { return launch.BuildCommandLine(ctx, dir) })
	if binaries[launch.Upstream], err = launch.Tool("upstream"); err != nil {
		return 0, err
	}
	if os.Getenv("SCENARIO_SERVER") == "upstream" {
		against = launch.Upstream
	} else if binaries[launch.Espalier], err = launch.Build(ctx, dir, pick([]string{"-race"}, nil)...); err != nil {
		return 0, err
	}
	if url := os.Getenv("SCENARIO_ETCD"); url != "" { // an engine that runs: see cmd/kine
		etcd = &launch.Etcd{URL: url}
	} else {
		if etcd, err = launch.StartEtcd(ctx, "--unsafe-no-fsync"); err != nil {
			return 0, err
		}
		defer etcd.Stop()
	}
	code := m.Run()
	if shared != nil {
		shared.End()
		log := shared.Output()
		shared.Stop()
		if fault := faultIn(log); fault != "" {
			return 1, fmt.Errorf("the log of the server that tests share has %s", fault)
		}
	}
	return code, nil
}

// pick returns how much of something a test takes: all of it, or what continuous integration has time for.
func pick[T any](all, short T) T {
	if testing.Short() {
		return short
	}
	return all
}

// prefix returns a prefix in etcd that no other test has.
func prefix() string { return fmt.Sprintf("/scenario-%d", prefixes.Add(1)) }

// serve starts a server that ends with the test; a data race or a panic in its log fails the test.
func serve(t *testing.T, kind launch.Kind, prefix string, flags ...string) *launch.Server {
	t.Helper()
	return begin(t, launch.Spec{Kind: kind, Prefix: prefix, Flags: flags})
}

// alike starts a server as serve does. Ours then does as upstream's: namespaces need not exist, and deleting a CRD deletes its
// objects.
func alike(t *testing.T, kind launch.Kind, prefix string, flags ...string) *launch.Server {
	t.Helper()
	return begin(t, launch.Spec{Kind: kind, Prefix: prefix, Flags: flags, Compatible: true})
}

func begin(t *testing.T, spec launch.Spec) *launch.Server {
	t.Helper()
	spec.Binary, spec.Etcd = binaries[spec.Kind], etcd.URL
	s, err := launch.StartServer(context.WithoutCancel(t.Context()), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

// stop stops a server, unless the test has already, and reads its log.
func stop(t *testing.T, s *launch.Server) {
	t.Helper()
	if _, err := os.Stat(s.Log); os.IsNotExist(err) {
		return
	}
	s.End()
	log := s.Output()
	s.Stop()
	if fault := faultIn(log); fault != "" {
		t.Errorf("the server's log has %s", fault)
	}
	if t.Failed() {
		lines := strings.Split(strings.TrimSpace(log), "\n")
		t.Logf("end of the server's log:\n%s", strings.Join(lines[max(0, len(lines)-20):], "\n"))
	}
}

// faultIn returns the first thing in a log that must not be there.
func faultIn(log string) string {
	for _, bad := range []string{"WARNING: DATA RACE", "panic: ", "Observed a panic"} {
		if at := strings.Index(log, bad); at >= 0 {
			return fmt.Sprintf("%q:\n%.6000s", bad, log[at:])
		}
	}
	return ""
}

// common returns the server that tests share; it is as those of alike are.
func common(t *testing.T) *launch.Server {
	t.Helper()
	if shared == nil {
		s, err := launch.StartServer(context.Background(), launch.Spec{Kind: against, Binary: binaries[against], Etcd: etcd.URL, Prefix: prefix(), Compatible: true})
		if err != nil {
			t.Fatal(err)
		}
		shared = s
	}
	return shared
}

// needsDiscovery skips a test that upstream's server cannot pass: it serves no /apis.
func needsDiscovery(t *testing.T) {
	t.Helper()
	if against == launch.Upstream {
		t.Skip("upstream's standalone server serves no /apis, which this test's client begins with")
	}
}

func etcdClient(t *testing.T) *clientv3.Client {
	t.Helper()
	c, err := etcd.Client()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// A kubectl runs kubectl as the server's administrator, with a home of its own.
type kubectl struct {
	t      *testing.T
	server *launch.Server
	home   string
}

func newKubectl(t *testing.T, s *launch.Server) *kubectl {
	return &kubectl{t, s, t.TempDir()}
}

func (k *kubectl) command(ctx context.Context, args ...string) *exec.Cmd {
	k.t.Helper()
	path, err := launch.Tool("kubectl")
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "HOME="+k.home, "KUBECONFIG="+k.server.Kubeconfig, "KUBECTL_EXTERNAL_DIFF=diff -u", "KUBE_EDITOR=")
	cmd.Dir = "testdata"
	return cmd
}

// do runs kubectl and returns what it printed and its exit code. Standard error comes last.
func (k *kubectl) do(args ...string) (string, int) {
	k.t.Helper()
	return k.feed("", args...)
}

func (k *kubectl) feed(stdin string, args ...string) (string, int) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), time.Minute)
	defer cancel()
	cmd := k.command(ctx, args...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		k.t.Fatal(err)
	}
	return stdout.String() + stderr.String(), cmd.ProcessState.ExitCode()
}

// ok runs kubectl, which must succeed, and returns what it printed.
func (k *kubectl) ok(args ...string) string {
	k.t.Helper()
	out, code := k.do(args...)
	if code != 0 {
		k.t.Fatalf("kubectl %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// says runs kubectl, which must succeed and print all that is wanted.
func (k *kubectl) says(want []string, args ...string) {
	k.t.Helper()
	contains(k.t, args, k.ok(args...), want)
}

// fails runs kubectl, which must fail and print all that is wanted.
func (k *kubectl) fails(want []string, args ...string) {
	k.t.Helper()
	out, code := k.do(args...)
	if code == 0 {
		k.t.Errorf("kubectl %s: succeeded, where it should fail\n%s", strings.Join(args, " "), out)
	}
	contains(k.t, args, out, want)
}

func contains(t *testing.T, args []string, out string, want []string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(out, w) {
			t.Errorf("kubectl %s: no %q in\n%s", strings.Join(args, " "), w, out)
		}
	}
}

// install applies a CRD of testdata and waits until it is established.
func (k *kubectl) install(file, name string) {
	k.t.Helper()
	k.says([]string{"customresourcedefinition.apiextensions.k8s.io/" + name + " created"}, "apply", "-f", file)
	k.says([]string{"condition met"}, "wait", "--for=condition=Established", "crd/"+name, "--timeout=30s")
}

// removeCRD deletes a CRD, if it is still there, and waits until it is gone. The test's own context has ended by then.
func removeCRD(t *testing.T, s *launch.Server, name string) {
	t.Helper()
	c, err := wire.Dial(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		status, _, answer, err := c.Do(ctx, http.MethodDelete, crdsPath+"/"+name, nil)
		if err != nil {
			t.Fatalf("deleting %s: %v: %s", name, err, answer)
		}
		if status == http.StatusNotFound {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// write puts a text into a file of the test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually asks until ok says yes.
func eventually(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v: %s", limit, what)
		}
	}
}
