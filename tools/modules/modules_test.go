package main

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// consumer is a folder with a module that is not ours, and a go command that finds our modules in a proxy of files.
type consumer struct {
	dir     string
	env     []string
	version string // of our modules
}

func newConsumer(t *testing.T) *consumer {
	t.Helper()
	r, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	proxy, cache := t.TempDir(), t.TempDir()
	if err := run(t.Context(), []string{"-root", "../..", "proxy", proxy}, io.Discard); err != nil {
		t.Fatal(err)
	}
	// Our version must not stay in the module cache of this machine; what is in there need not be downloaded again.
	known := filepath.Join(goEnv(t, "GOMODCACHE"), "cache", "download")
	c := &consumer{version: r.version, dir: t.TempDir(), env: append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod -modcacherw", "GONOSUMDB=github.com/espalier-dev/*",
		"GOMODCACHE="+cache, "GOPROXY=file://"+proxy+",file://"+known+","+goEnv(t, "GOPROXY"))}
	c.write(t, "go.mod", "module example.com/consumer\n\ngo 1.26.0\n")
	return c
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (c *consumer) write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (c *consumer) run(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// TestEngineDragsInLittle: a program that imports only the engine has neither a server nor a command line in its module
// graph.
func TestEngineDragsInLittle(t *testing.T) {
	c := newConsumer(t)
	c.write(t, "main.go", "package main\n\nimport _ \"github.com/espalier-dev/espalier\"\n\nfunc main() {}\n")
	c.run(t, "get", "github.com/espalier-dev/espalier@"+c.version)
	graph := c.run(t, "mod", "graph")
	if !strings.Contains(graph, "k8s.io/apimachinery@") {
		t.Fatalf("is this a graph?\n%s", graph)
	}
	for line := range strings.Lines(graph) {
		if regexp.MustCompile(`apiserver|client-go|etcd|cobra|cel-go|espalier/`).MatchString(line) {
			t.Errorf("the graph has %s", line)
		}
	}
	if packages := strings.Count(c.run(t, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."), "."); packages == 0 || packages > 200 {
		t.Errorf("the program is made of %d packages", packages)
	}
}

// TestToolsDragInNoServer: a program that imports the CRD tools gets neither etcd nor the server.
// The CEL environment of k8s.io/apiserver links cobra: that is upstream's choice.
func TestToolsDragInNoServer(t *testing.T) {
	c := newConsumer(t)
	c.write(t, "main.go", "package main\n\nimport _ \"github.com/espalier-dev/espalier/crd/lint\"\n\nfunc main() {}\n")
	c.run(t, "get", "github.com/espalier-dev/espalier/crd@"+c.version)
	if deps := c.run(t, "list", "-deps", "."); regexp.MustCompile(`go\.etcd\.io|client-go|espalier/(server|cmd)`).MatchString(deps) {
		t.Errorf("the program links a server or a command line:\n%s", deps)
	}
}

// TestInstall does what users do with a release.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles the command line in another module cache, which takes minutes")
	}
	c := newConsumer(t)
	bin := t.TempDir()
	c.env = append(c.env, "GOBIN="+bin, "CGO_ENABLED=0", "GOFLAGS=-modcacherw -ldflags=-s")
	c.run(t, "install", "github.com/espalier-dev/espalier/cmd/espalier@"+c.version)
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "espalier"), "--version").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != c.version {
		t.Errorf("it prints %q: %v", out, err)
	}
}

// TestModules reads the repository itself.
func TestModules(t *testing.T) {
	r, err := load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(r.modules) != 5 || r.member("github.com/espalier-dev/espalier/crd") == nil || r.version == "" {
		t.Errorf("got %d modules of version %q", len(r.modules), r.version)
	}
	if err := run(t.Context(), []string{"-root", "../..", "tidy", "-now"}, io.Discard); err == nil || !strings.HasPrefix(err.Error(), "usage: ") {
		t.Errorf("an unknown flag: %v", err)
	}
}

// repo writes a small repository.
func repo(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestVersion(t *testing.T) {
	files := map[string]string{
		"go.work":    "go 1.26.0\n\nuse (\n\t.\n\t./sub\n)\n\nreplace example.com/a v0.1.0 => ./\n",
		"go.mod":     "module example.com/a\n\ngo 1.26.0\n",
		"sub/go.mod": "module example.com/a/sub\n\ngo 1.26.0\n\nrequire example.com/a v0.1.0\n",
	}
	dir := repo(t, files)
	if err := run(t.Context(), []string{"-root", dir, "version", "v0.2.0"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	r, err := load(dir)
	if err != nil || r.version != "v0.2.0" {
		t.Errorf("the version is %+v: %v", r, err)
	}
	if err := r.setVersion("0.3"); err == nil {
		t.Error("0.3 is a version")
	}
	files["go.work"] = strings.Replace(files["go.work"], "v0.1.0", "v0.1.1", 1)
	if _, err := load(repo(t, files)); err == nil || !strings.Contains(err.Error(), "another one") {
		t.Errorf("two versions: %v", err)
	}
	files["go.mod"] += "\nreplace example.com/b => ../b\n"
	if _, err := load(repo(t, files)); err == nil || !strings.Contains(err.Error(), "replace line") {
		t.Errorf("a replace line: %v", err)
	}
}
