//go:build unix

package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/server/auth/ca"
)

// devWeb is a CRD; %s are further properties of the spec.
const devWeb = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: webs.example.com
spec:
  group: example.com
  scope: Namespaced
  names: {plural: webs, singular: web, kind: Web}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, default: %s}
`

var devWebs = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "webs"}

// developed is `espalier dev` as a process of its own.
type developed struct {
	t        *testing.T
	cmd      *exec.Cmd
	out, err output
	done     chan struct{} // closed when the process has ended
}

// startDev runs the program in a folder and waits until it is ready.
func startDev(t *testing.T, dir string, args ...string) *developed {
	t.Helper()
	d := runDev(t, dir, args...)
	d.await("ready", func() bool { return strings.Contains(d.out.String(), "Ctrl-C stops it.\n") })
	return d
}

// runDev runs the program in a folder.
func runDev(t *testing.T, dir string, args ...string) *developed {
	t.Helper()
	d := &developed{t: t, done: make(chan struct{}), cmd: command(t, append([]string{"dev"}, args...)...)}
	d.cmd.Dir, d.cmd.Stdout, d.cmd.Stderr = dir, &d.out, &d.err
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = d.cmd.Wait(); close(d.done) }()
	t.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		<-d.done
		if t.Failed() {
			t.Logf("it printed\n%s%s", d.out.String(), d.err.String())
		}
	})
	return d
}

// await waits for a condition, while the process lives.
func (d *developed) await(what string, is func() bool) {
	d.t.Helper()
	for deadline := time.Now().Add(drainPatience); !is(); time.Sleep(5 * time.Millisecond) {
		select {
		case <-d.done:
			d.t.Fatalf("it ended, and was to be %s", what)
		default:
		}
		if time.Now().After(deadline) {
			d.t.Fatalf("it is not %s after %v", what, drainPatience)
		}
	}
}

// after does something, and waits until the process has printed a text because of
// it, to standard output or to standard error. It returns all that is new.
func (d *developed) after(do func(), text string) string {
	d.t.Helper()
	out, err := len(d.out.String()), len(d.err.String())
	do()
	var fresh string
	d.await("saying "+text, func() bool {
		fresh = d.out.String()[out:] + d.err.String()[err:]
		return strings.Contains(fresh, text)
	})
	return fresh
}

// interrupt ends it as Ctrl-C does.
func (d *developed) interrupt() {
	d.t.Helper()
	if err := d.cmd.Process.Signal(os.Interrupt); err != nil {
		d.t.Fatal(err)
	}
	select {
	case <-d.done:
	case <-time.After(drainPatience):
		d.t.Fatalf("it has not ended after %v", drainPatience)
	}
	if d.cmd.ProcessState.ExitCode() != cli.ExitNothing {
		d.t.Errorf("it ended by %v", d.cmd.ProcessState)
	}
}

// kubeconfig is the path that it printed.
func (d *developed) kubeconfig() string {
	d.t.Helper()
	m := regexp.MustCompile(`(?m)^  export KUBECONFIG=(.*)$`).FindStringSubmatch(d.out.String())
	if m == nil {
		d.t.Fatal("it printed no path of a kubeconfig")
	}
	return m[1]
}

// devClient is a client for whom a kubeconfig is for.
func devClient(t *testing.T, kubeconfig string) *dynamic.DynamicClient {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// createWeb creates a web and returns its replicas; -1 if that is not a number.
func createWeb(t *testing.T, client dynamic.Interface, name string) int64 {
	t.Helper()
	web := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Web", "metadata": map[string]any{"name": name}, "spec": map[string]any{}}}
	made, err := client.Resource(devWebs).Namespace("default").Create(t.Context(), web, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n, found, err := unstructured.NestedInt64(made.Object, "spec", "replicas")
	if !found || err != nil {
		return -1
	}
	return n
}

// put writes a file in place.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replace puts another file in the place of one, as many editors do.
func replace(t *testing.T, path, text string) {
	t.Helper()
	put(t, path+"~", text)
	if err := os.Rename(path+"~", path); err != nil {
		t.Fatal(err)
	}
}

// CRDs are served from the beginning and follow their files; dev reports mistakes in a
// file, and keeps serving the previous CRD.
func TestDevFollowsFiles(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "crds", "web.yaml")
	put(t, file, fmt.Sprintf(devWeb, "1"))
	d := startDev(t, dir, "--crds", "crds", "--port", "0")
	if want := "Serving 1 CRD of crds, reloaded when the files change"; !strings.Contains(d.out.String(), want) {
		t.Errorf("no %q in\n%s", want, d.out.String())
	}
	client := devClient(t, d.kubeconfig())
	if n := createWeb(t, client, "first"); n != 1 {
		t.Errorf("the default is %d", n)
	}
	for i, write := range []func(*testing.T, string, string){put, replace} {
		d.after(func() { write(t, file, fmt.Sprintf(devWeb, fmt.Sprint(i+2))) }, "Reloaded: webs.example.com changed\n")
		d.await("serving what has changed", func() bool {
			return createWeb(t, client, fmt.Sprintf("web-%d-%d", i, time.Now().UnixNano())) == int64(i+2)
		})
	}

	said := d.after(func() { put(t, file, fmt.Sprintf(devWeb, "three")) }, "keeps serving the previous CRDs.\n")
	for _, want := range []string{"crds/web.yaml:20:50: error: ", " 20 |               replicas: {type: integer, default: three}\n", "must be of type integer", "fix: ", "1 error in 1 CRD"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	if n := createWeb(t, client, "broken"); n != 3 {
		t.Errorf("with a broken file, the default is %d", n)
	}
	d.after(func() { put(t, file, fmt.Sprintf(devWeb, "3")+"# fixed\n") }, "Reloaded: no CRD has changed\n")
	d.after(func() { put(t, file, "{") }, "crds/web.yaml:1:1: error: ")
	d.after(func() { put(t, file, fmt.Sprintf(devWeb, "3")) }, "Reloaded: no CRD has changed\n")

	more := strings.ReplaceAll(strings.ReplaceAll(fmt.Sprintf(devWeb, "3"), "web", "db"), "Web", "Db")
	d.after(func() { put(t, filepath.Join(dir, "crds", "more", "db.yaml"), more) }, "Reloaded: dbs.example.com loaded\n")
	d.after(func() {
		replace(t, filepath.Join(dir, "crds", "more", "db.yaml"), strings.ReplaceAll(more, "default: 3", "default: 4"))
	}, "Reloaded: dbs.example.com changed\n")
	d.after(func() { put(t, filepath.Join(dir, "crds", "twice.yaml"), more) }, "crds/twice.yaml: dbs.example.com is also in crds/more/db.yaml, which is used")
	if err := os.Remove(filepath.Join(dir, "crds", "twice.yaml")); err != nil {
		t.Fatal(err)
	}
	d.after(func() {
		if err := os.RemoveAll(filepath.Join(dir, "crds", "more")); err != nil {
			t.Fatal(err)
		}
	}, "dbs.example.com was removed from the files and stays on the server: delete it with 'kubectl delete crd dbs.example.com'\n")
	if _, err := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "dbs"}).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a definition whose file has gone is not served: %v", err)
	}
	d.after(func() {
		put(t, file, strings.ReplaceAll(fmt.Sprintf(devWeb, "3"), "default: 3", "minimum: 9"))
	}, "webs.example.com: breaks stored objects: ")
	// The change is compared with the CRD on the server, not with the previous file.
	d.after(func() { put(t, file, strings.ReplaceAll(fmt.Sprintf(devWeb, "3"), "name: v1\n", "name: v2\n")) }, "text: status.storedVersions[0]: ")
	// What only the server knows: the names are taken.
	d.after(func() { replace(t, filepath.Join(dir, "crds", "site.yaml"), strings.ReplaceAll(more, "dbs", "sites")) },
		"espalier: sites.example.com (crds/site.yaml): its names are not accepted: ")
	d.interrupt()
}

// A folder that disappears and comes back is followed again.
func TestDevFollowsAFolderThatComesBack(t *testing.T) {
	dir := t.TempDir()
	crds := filepath.Join(dir, "config", "crds")
	if err := os.MkdirAll(crds, 0o755); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, dir, "--crds", "config/crds", "--port", "0", "--temporary")
	if want := "espalier: --crds: config/crds: no file called"; !strings.Contains(d.err.String(), want) {
		t.Errorf("no %q in\n%s", want, d.err.String())
	}
	d.after(func() {
		if err := os.RemoveAll(filepath.Join(dir, "config")); err != nil {
			t.Fatal(err)
		}
	}, "config/crds: no such file or directory")
	d.after(func() { put(t, filepath.Join(crds, "web.yaml"), fmt.Sprintf(devWeb, "1")) }, "Reloaded: webs.example.com loaded\n")
	d.after(func() { put(t, filepath.Join(crds, "web.yaml"), fmt.Sprintf(devWeb, "2")) }, "Reloaded: webs.example.com changed\n")
	d.interrupt()
}

// Objects and users are kept after a restart. No other process can use the folder or the
// port meanwhile.
func TestDevKeepsItsFolder(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "web.yaml"), fmt.Sprintf(devWeb, "1"))
	port := fmt.Sprint(freePort(t))
	d := startDev(t, dir, "--port", port, "--crds", "*.yaml", "--log", "server.log", "-v", "2")
	createWeb(t, devClient(t, d.kubeconfig()), "kept")
	if _, err := devOutput(t, dir, "dev", "user", "bob", "--group", "team-a", "--group", "system:masters"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ says, args string }{
		{"/etcd is in use by another process: stop that one, or use another folder\n", "dev --port 0"},
		{"espalier: listening on port " + port + " of 127.0.0.1 failed, another program may use it", "dev --temporary --port " + port},
	} {
		said, err := devOutput(t, dir, strings.Fields(c.args)...)
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitFailed || !strings.Contains(said, c.says) {
			t.Errorf("%s: %v\n%s", c.args, err, said)
		}
	}
	d.interrupt()
	if !strings.HasSuffix(d.out.String(), "Ctrl-C stops it.\nStopped.\n") {
		t.Error("it does not say that it has stopped")
	}
	for name, mode := range map[string]os.FileMode{"kubeconfig": 0o600, "users/bob.kubeconfig": 0o600, "owner": 0o600, "data-*": 0o700, "data-*/pki/ca.key": 0o600, "": 0o700} {
		found, err := filepath.Glob(filepath.Join(dir, ".espalier", name))
		if err != nil || len(found) != 1 {
			t.Fatalf(".espalier/%s: %q, %v", name, found, err)
		}
		if info, err := os.Stat(found[0]); err != nil || info.Mode().Perm() != mode {
			t.Errorf(".espalier/%s: %v, %v", name, info.Mode(), err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, ".espalier", ".gitignore")); err != nil || string(text) != "*\n" {
		t.Errorf("git is told to ignore %q, %v", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "server.log")); err != nil || !strings.Contains(string(text), "Serving") {
		t.Errorf("the log is\n%s\n%v", text, err)
	}
	if d.err.String() != "" {
		t.Errorf("it complained: %s", d.err.String())
	}

	d = runDev(t, dir, "--port", port, "--quiet")
	bob := devClient(t, filepath.Join(dir, ".espalier", "users", "bob.kubeconfig"))
	d.await("serving what was kept", func() bool {
		_, err := bob.Resource(devWebs).Namespace("default").Get(t.Context(), "kept", metav1.GetOptions{})
		return err == nil
	})
	d.interrupt()
	if said := d.out.String() + d.err.String(); said != "" {
		t.Errorf("with --quiet it says %q", said)
	}
}

// Of a temporary one nothing is left; it says nothing if asked to; flags of the
// server are passed on; a user has no rights.
func TestDevTemporary(t *testing.T) {
	dir := t.TempDir()
	d := startDev(t, dir, "--temporary", "--port", "0", "--address", "0.0.0.0", "--host", "espalier.example", "--", "--field-validation=strict")
	if want := "Other machines can connect"; !strings.Contains(d.out.String(), want) {
		t.Errorf("no %q in\n%s", want, d.out.String())
	}
	folder := filepath.Dir(d.kubeconfig())
	config, err := clientcmd.BuildConfigFromFlags("", d.kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "espalier.example" // it is in the certificate
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	maps := schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
	_, err = client.Resource(maps).Namespace("default").Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "dta": map[string]any{}}}, metav1.CreateOptions{})
	if !apierrors.IsBadRequest(err) || !strings.Contains(err.Error(), `unknown field "dta"`) {
		t.Errorf("--field-validation=strict: %v", err)
	}
	file := filepath.Join(dir, "alice")
	if said, err := devOutput(t, dir, "dev", "user", "alice", "--data-dir", folder, "-o", file); err != nil || said != "export KUBECONFIG="+file+"\n" {
		t.Fatalf("%v\n%s", err, said)
	}
	_, err = devClient(t, file).Resource(maps).Namespace("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "alice" cannot list resource "configmaps"`) {
		t.Errorf("alice, who has no rights: %v", err)
	}
	d.interrupt()
	for _, path := range []string{folder, filepath.Join(dir, ".espalier")} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// devOutput runs the program to its end and returns all that it printed.
func devOutput(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), drainPatience)
	defer cancel()
	self := command(t, args...)
	cmd := exec.CommandContext(ctx, self.Path)
	cmd.Args, cmd.Dir, cmd.Cancel = self.Args, dir, func() error { return cmd.Process.Signal(syscall.SIGKILL) }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestExportLine(t *testing.T) {
	for path, want := range map[string]string{
		"/a/b.c":      "export KUBECONFIG=/a/b.c",
		"/a b/c":      "export KUBECONFIG='/a b/c'",
		"/it's/$HOME": `export KUBECONFIG='/it'\''s/$HOME'`,
	} {
		if got := exportLine(path); got != want {
			t.Errorf("%s: %s", path, got)
		}
	}
}

// Where the system does not tell of changes, they are found all the same, and once.
func TestDevPolls(t *testing.T) {
	dir := t.TempDir()
	w := &fileWatch{changes: make(chan struct{}, 1), paths: []string{dir}, skip: func(string) bool { return false }, quit: make(chan struct{})}
	go w.poll(w.look(), time.Millisecond)
	defer w.close()
	change := func(what string, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		select {
		case <-w.changes:
		case <-time.After(drainPatience):
			t.Fatalf("%s is not found", what)
		}
	}
	file := filepath.Join(dir, "a.yaml")
	change("a new file", func() error { return os.WriteFile(file, []byte("a"), 0o600) })
	change("another time", func() error { return os.Chtimes(file, time.Now(), time.Now().Add(time.Hour)) })
	change("a file that goes", func() error { return os.Remove(file) })
	time.Sleep(20 * time.Millisecond) // some more looks, which find nothing
	select {
	case <-w.changes:
		t.Error("a change is told twice")
	default:
	}
}

// devStatus is the answer to a request with another certificate than the
// kubeconfig's.
func devStatus(t *testing.T, kubeconfig string, pair ca.Pair) int {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.CertData, config.KeyData = pair.Cert, pair.Key
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/namespaces", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}

// Data without its log is said to be so, and a signal ends what cannot start.
func TestDevWithoutLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startDev(t, dir, "--port", "0")
	_ = d.cmd.Process.Signal(syscall.SIGTERM)
	<-d.done
	logs, err := filepath.Glob(filepath.Join(dir, ".espalier", "data-*", "etcd", "member", "wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("logs of etcd: %v, %v", logs, err)
	}
	if err := os.RemoveAll(logs[0]); err != nil {
		t.Fatal(err)
	}
	again := runDev(t, dir, "--port", "0")
	select {
	case <-again.done:
	case <-time.After(time.Minute):
		_ = again.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-again.done:
			t.Fatal("it hangs until it is told to end")
		case <-time.After(time.Minute):
			t.Fatal("it hangs, also after SIGTERM")
		}
	}
	if code := again.cmd.ProcessState.ExitCode(); code != cli.ExitFailed {
		t.Errorf("exit code %d", code)
	}
	if text := again.err.String(); !strings.Contains(text, "write-ahead log is missing") || !strings.Contains(text, "remove it to start with no data") {
		t.Errorf("it says %q", text)
	}
}
