package deploy

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// root is the repository.
const root = ".."

// built holds what tests have built, by name.
var built sync.Map

// TestMain removes what was built.
func TestMain(m *testing.M) {
	code := m.Run()
	built.Range(func(_, f any) bool {
		if path, err := f.(func() (string, error))(); err == nil {
			_ = os.RemoveAll(filepath.Dir(path))
		}
		return true
	})
	os.Exit(code)
}

// build compiles a program once.
func build(t *testing.T, name, module string, args ...string) string {
	t.Helper()
	once, _ := built.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		dir, err := os.MkdirTemp("", "espalier-deploy-")
		if err != nil {
			return "", err
		}
		path := filepath.Join(dir, name)
		cmd := exec.Command("go", append([]string{"build", "-C", filepath.Join(root, module), "-o", path}, args...)...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
		if module == "." {
			cmd.Env = append(cmd.Env, "GOWORK="+absolute(t, root+"/go.work"))
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			_ = os.RemoveAll(dir)
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
		}
		return path, nil
	}))
	path, err := once.(func() (string, error))()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// program returns the path of the server: ESPALIER_BIN, or built as the Dockerfile builds it.
func program(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("ESPALIER_BIN"); path != "" {
		return absolute(t, path)
	}
	return build(t, "espalier-server", ".", "-trimpath", "-ldflags=-s -w", "./cmd/espalier-server")
}

// packages are what tools are built from, at the versions that the conformance module pins.
var packages = map[string]string{"etcd": "go.etcd.io/etcd/server/v3", "kubectl": "./cmd/kubectl"}

// tool returns the path of a program: as ESPALIER_NAME says, as `make tools` has built it, or built now.
func tool(t *testing.T, name string) string {
	t.Helper()
	if path := os.Getenv("ESPALIER_" + strings.ToUpper(name)); path != "" {
		return absolute(t, path)
	}
	if path := filepath.Join(root, ".bin", name); exists(path) {
		return absolute(t, path)
	}
	return build(t, name, "conformance", packages[name])
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A process is a running child.
type process struct {
	cmd    *exec.Cmd
	done   chan struct{} // closed when it has ended
	stderr string        // file
}

// start runs a command until the test ends. What it prints is shown if the test fails.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{}), stderr: filepath.Join(t.TempDir(), "stderr")}
	file, err := os.Create(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	cmd.Stderr = file
	cmd.SysProcAttr = apart()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s printed at the end:\n%s", filepath.Base(cmd.Path), tail(p.stderr))
		}
	})
	return p
}

func tail(file string) string {
	data, _ := os.ReadFile(file)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, condition func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := condition()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s, after a minute: %v", what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// ready waits until the process answers at an address with 200.
func (p *process) ready(t *testing.T, client *http.Client, url string) {
	t.Helper()
	eventually(t, filepath.Base(p.cmd.Path)+" is not ready", func() error {
		select {
		case <-p.done:
			t.Fatalf("%s ended: %v\n%s", filepath.Base(p.cmd.Path), p.cmd.ProcessState, tail(p.stderr))
		default:
		}
		_, err := get(client, url)
		return err
	})
}

// get returns the body of an answer of 200.
func get(client *http.Client, url string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", url, resp.Status, bytes.TrimSpace(body))
	}
	return body, err
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// An etcd is a running etcd of one member that wants certificates of its clients, and for the test's own use listens without TLS too.
type etcd struct {
	*process
	secure, plain string // addresses
}

// startEtcd runs etcd with a certificate of the CA in dir whose name is ca.
func startEtcd(t *testing.T, dir, ca string) *etcd {
	t.Helper()
	home := t.TempDir()
	signServer(t, filepath.Join(dir, ca), filepath.Join(home, "etcd"))
	e := &etcd{secure: fmt.Sprintf("https://127.0.0.1:%d", freePort(t)), plain: fmt.Sprintf("http://127.0.0.1:%d", freePort(t))}
	peer := fmt.Sprintf("http://127.0.0.1:%d", freePort(t))
	cmd := exec.Command(tool(t, "etcd"), "--data-dir", filepath.Join(home, "data"), "--name", "one", "--log-level", "error", "--unsafe-no-fsync",
		"--listen-client-urls", e.secure+","+e.plain, "--advertise-client-urls", e.secure,
		"--cert-file", filepath.Join(home, "etcd.crt"), "--key-file", filepath.Join(home, "etcd.key"),
		"--client-cert-auth", "--trusted-ca-file", filepath.Join(dir, ca+".crt"),
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "one="+peer)
	e.process = start(t, cmd)
	e.ready(t, http.DefaultClient, e.plain+"/readyz")
	return e
}

// signServer makes file.crt and file.key for 127.0.0.1, signed by authority.crt and authority.key.
func signServer(t *testing.T, authority, file string) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(authority+".crt", authority+".key")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "127.0.0.1"}, SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, key.Public(), pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{".crt": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := os.WriteFile(file+name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
