package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// grace is how long a controller may take to end: leases are given back then, and webhooks drained.
const grace = 20 * time.Second

// A program is a running controller.
type program struct {
	name string
	log  string // file with what it prints
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	once sync.Once
}

// build compiles a main package of the module in folder, and returns the path of the program. What is up to date is not linked again.
func build(t *testing.T, folder, pkg, name string) string {
	t.Helper()
	root, err := launch.Root()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(root, ".bin", "controllers", name)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-C", filepath.Join(root, "controllers", folder), "-o", path, pkg)
	cmd.Env = append(os.Environ(), "GOWORK=off")
	began := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	t.Logf("%s: built in %v", name, time.Since(began).Round(time.Millisecond))
	return path
}

// run starts a controller. It lives until stop is called, at the latest until all tests are over.
func (w *environment) run(t *testing.T, name, binary string, env []string, args ...string) *program {
	t.Helper()
	p := &program{name: name, log: w.path(name + ".log"), done: make(chan struct{})}
	file, err := os.OpenFile(p.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	p.cmd = exec.Command(binary, args...)
	p.cmd.Dir, p.cmd.Env = w.dir, append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = file, file
	p.cmd.SysProcAttr = dieWithParent()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	w.programs = append(w.programs, p)
	t.Cleanup(func() { w.tell(t) })
	return p
}

// tell prints what the programs said last if a test has failed: those that earlier tests have started, too.
func (w *environment) tell(t *testing.T) {
	if !t.Failed() || w.told == t.Name() {
		return
	}
	w.told = t.Name()
	for _, p := range w.programs {
		t.Logf("the end of %s:\n%s", p.log, p.tail(40))
	}
}

// givesUp starts a controller that gives up by itself, and expects it to say why.
func (w *environment) givesUp(t *testing.T, why, name, binary string, env []string, args ...string) {
	t.Helper()
	p := w.run(t, name, binary, env, args...)
	eventually(t, name+" gives up", func(context.Context) error {
		if p.ended() == nil {
			return errors.New("it runs")
		}
		return nil
	})
	if !strings.Contains(p.output(), why) {
		t.Errorf("%s has ended without saying %s", name, why)
	}
}

// stop ends the controller as a supervisor would, and returns how it ended.
func (p *program) stop() error {
	p.once.Do(func() {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	})
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		return fmt.Errorf("%s ended with %d", p.name, code)
	}
	return nil
}

// kill ends the controller as a crash would.
func (p *program) kill() {
	p.once.Do(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
	})
}

// ended returns an error if the controller does not run any more.
func (p *program) ended() error {
	select {
	case <-p.done:
		return errors.New(p.name + " has ended")
	default:
		return nil
	}
}

// output is what the controller has printed.
func (p *program) output() string {
	data, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func (p *program) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(p.output()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// lacking matches what a controller prints when it asks for a resource that does not exist, forbidden when it has no right to one.
var (
	lacking   = regexp.MustCompile(`could not find the requested resource|no matches for kind|[Nn]ot running in-cluster`)
	forbidden = regexp.MustCompile(`is forbidden: User`)
	changing  = regexp.MustCompile(`[0-9T:.-]{8,}Z?|[IWE]\d{4}|\s\d+ `) // times and the like
)

// complaints returns the distinct lines of the log that match, without what changes from line to line.
func (p *program) complaints(match *regexp.Regexp) []string {
	var lines []string
	for line := range strings.Lines(p.output()) {
		if match.MatchString(line) {
			line = strings.TrimSpace(changing.ReplaceAllString(line, " "))
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// account fails if the controller was refused anything: the roles that its project ships are enough. What it asked for and did not find
// is told.
func (p *program) account(t *testing.T) {
	t.Helper()
	for _, line := range p.complaints(forbidden) {
		t.Errorf("%s: %s", p.name, line)
	}
	for _, line := range p.complaints(lacking) {
		t.Logf("%s lacks: %s", p.name, line)
	}
}

// kubeconfig writes a kubeconfig with a token of a ServiceAccount: what a pod would find mounted.
func (w *environment) kubeconfig(t *testing.T, namespace, account string) string {
	t.Helper()
	day := int64(24 * 60 * 60)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	token, err := w.kube.CoreV1().ServiceAccounts(namespace).CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["espalier"] = &clientcmdapi.Cluster{Server: w.server.URL, CertificateAuthorityData: w.server.Config.CAData}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "espalier", AuthInfo: account, Namespace: namespace}
	config.CurrentContext = "default"
	file := w.path(namespace + "-" + account + ".kubeconfig")
	if err := clientcmd.WriteToFile(*config, file); err != nil {
		t.Fatal(err)
	}
	return file
}

// port returns a free port.
func port(t *testing.T) int {
	t.Helper()
	p, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// kubectl runs kubectl as the administrator and returns what it prints. An error has what it complains about.
func (w *environment) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	out, _, err := w.kubectlWarned(ctx, stdin, args...)
	return out, err
}

// kubectlWarned returns the warnings that kubectl shows too.
func (w *environment) kubectlWarned(ctx context.Context, stdin string, args ...string) (out, warnings string, err error) {
	binary, err := launch.Tool("kubectl")
	if err != nil {
		return "", "", err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"--kubeconfig", w.server.Kubeconfig}, args...)...)
	var stdout, stderr strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", "", fmt.Errorf("kubectl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), stderr.String(), nil
}
