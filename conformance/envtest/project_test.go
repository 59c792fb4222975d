package envtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// specs are what the suites of the project say when all has gone well.
var specs = []string{"Ran 6 of 6 Specs", "Ran 5 of 5 Specs"}

// The project's suites pass on the programs of `espalier envtest`, unmodified, by the commands of the guide.
func TestProjectOnOurPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs in modules of their own, which takes longer than continuous integration has: make envtest runs it")
	}
	bin := t.TempDir()
	built, err := launch.Build(t.Context(), bin)
	if err != nil {
		t.Fatal(err)
	}
	if named := filepath.Join(bin, "espalier-server"); built != named {
		if err := os.Symlink(built, named); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := launch.BuildCommandLine(t.Context(), bin); err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, block := range blocks(t, "envtest.md") {
		if block.language == "sh" && strings.Contains(block.text, "espalier envtest") {
			script += block.text
		}
	}
	if !strings.Contains(script, "go test") {
		t.Fatalf("the guide runs no tests: %q", script)
	}
	suites(t, project(t), script, "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "XDG_CACHE_HOME="+t.TempDir(), "HOME="+t.TempDir())
}

// They pass with the change that the guide shows, without any programs.
func TestProjectWithOurImport(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs in modules of their own, which takes longer than continuous integration has: make envtest runs it")
	}
	dir := project(t)
	changes := 0
	for _, block := range blocks(t, "envtest.md") {
		if block.language == "diff" {
			changes += patch(t, dir, block.text)
		}
	}
	if changes != 2 {
		t.Fatalf("the guide changes %d files; the project has 2 suites", changes)
	}
	require(t, dir)
	suites(t, dir, "go test ./...", "KUBEBUILDER_ASSETS="+filepath.Join(dir, "nowhere"), "GOFLAGS=-mod=mod")
}

// They pass on a real kube-apiserver, which says that they ask nothing of ours that it would not do.
func TestProjectOnKubernetes(t *testing.T) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); assets == "" || err != nil {
		t.Skip("there is no kube-apiserver: KUBEBUILDER_ASSETS names no folder with one")
	}
	suites(t, project(t), "go test ./...", "KUBEBUILDER_ASSETS="+assets)
}

// The code of the guide of espaliertest compiles, and its tests pass.
func TestTestingGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds programs in modules of their own, which takes longer than continuous integration has: make envtest runs it")
	}
	root := repository(t)
	dir := t.TempDir()
	tests := 0
	for _, block := range blocks(t, "testing.md") {
		if block.language == "go" && block.title == "" {
			t.Errorf("code block that no test compiles: %s", block.text)
		}
		if block.title != "" {
			write(t, filepath.Join(dir, block.title), block.text)
			tests += strings.Count(block.text, "\nfunc Test") - strings.Count(block.text, "\nfunc TestMain(")
		}
	}
	// The module is like this one, so that everything else is compiled already.
	module := read(t, filepath.Join(root, "conformance", "go.mod"))
	module = strings.Replace(module, "module github.com/espalier-dev/espalier/conformance", "module example.com/web", 1)
	write(t, filepath.Join(dir, "go.mod"), strings.ReplaceAll(module, "=> ../", "=> "+root+"/"))
	write(t, filepath.Join(dir, "go.sum"), sums(t))
	out := run(t, dir, "go test ./...", "GOFLAGS=-mod=mod")
	if got := strings.Count(out, "\n--- PASS: "); tests == 0 || got != tests {
		t.Errorf("%d of %d tests pass:\n%s", got, tests, out)
	}
}

// suites runs a script, and demands that all specs pass.
func suites(t *testing.T, dir, script string, env ...string) {
	t.Helper()
	began := time.Now()
	out := run(t, dir, script, env...)
	for _, want := range specs {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	t.Logf("%v, with compiling", time.Since(began).Round(100*time.Millisecond))
}

// run runs a script and returns what it prints. Tests are run anew, and tell what they do.
func run(t *testing.T, dir, script string, env ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(cleared(), env...)
	for i, variable := range cmd.Env {
		if flags, ok := strings.CutPrefix(variable, "GOFLAGS="); ok {
			cmd.Env[i] = "GOFLAGS=" + flags + " -count=1 -v"
		}
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// cleared is the environment without what tells envtest what to do.
func cleared() []string {
	var env []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, "TEST_ASSET_") && !strings.HasPrefix(name, "KUBEBUILDER_") && name != "USE_EXISTING_CLUSTER" && name != "GOFLAGS" {
			env = append(env, variable)
		}
	}
	env = append(env, "GOWORK=off", "GOFLAGS=")
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPATH"} { // another HOME does not change them
		if out, err := exec.Command("go", "env", name).Output(); err == nil {
			env = append(env, name+"="+strings.TrimSpace(string(out)))
		}
	}
	return env
}

// project returns a copy of the project.
func project(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir("project", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			to, err := filepath.Rel("project", path)
			if err != nil {
				return err
			}
			write(t, filepath.Join(dir, to), read(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// require does what `go get github.com/espalier-dev/espalier/server` does, with the module as it is here.
func require(t *testing.T, dir string) {
	t.Helper()
	root := repository(t)
	write(t, filepath.Join(dir, "go.mod"), read(t, filepath.Join(dir, "go.mod"))+
		strings.ReplaceAll(`
require (
	github.com/espalier-dev/espalier v0.1.0
	github.com/espalier-dev/espalier/crd v0.1.0
	github.com/espalier-dev/espalier/server v0.1.0
)

replace (
	github.com/espalier-dev/espalier => ROOT
	github.com/espalier-dev/espalier/crd => ROOT/crd
	github.com/espalier-dev/espalier/server => ROOT/server
)
`, "ROOT", root))
	write(t, filepath.Join(dir, "go.sum"), read(t, filepath.Join(dir, "go.sum"))+sums(t))
}

// sums are the checksums of all that this repository is made of.
func sums(t *testing.T) string {
	t.Helper()
	root := repository(t)
	return read(t, filepath.Join(root, "go.sum")) + read(t, filepath.Join(root, "conformance", "go.sum"))
}

// patch applies a diff whose lines each occur once, and returns the number of files that it changes.
func patch(t *testing.T, dir, diff string) int {
	t.Helper()
	path, text, removed, files := "", "", "", 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "--- a/"):
		case strings.HasPrefix(line, "+++ b/"):
			if path != "" {
				write(t, path, text)
			}
			path = filepath.Join(dir, strings.TrimSpace(strings.TrimPrefix(line, "+++ b/")))
			text = read(t, path)
			files++
		case line[0] == '-':
			if removed = line[1:]; strings.Count(text, removed) != 1 {
				t.Fatalf("%s has %q %d times", path, removed, strings.Count(text, removed))
			}
		case line[0] == '+' && removed != "":
			text, removed = strings.Replace(text, removed, line[1:], 1), ""
		default:
			t.Fatalf("a line of the diff is %q", line)
		}
	}
	write(t, path, text)
	return files
}

// block is one of a guide.
type block struct{ language, title, text string }

var fence = regexp.MustCompile("(?ms)^```(\\w*)(?: title=(\\S+))?\n(.*?)^```\n")

func blocks(t *testing.T, guide string) []block {
	t.Helper()
	var all []block
	for _, m := range fence.FindAllStringSubmatch(read(t, filepath.Join(repository(t), "docs", "guides", guide)), -1) {
		all = append(all, block{m[1], m[2], m[3]})
	}
	return all
}

func repository(t *testing.T) string {
	t.Helper()
	root, err := launch.Root()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
}
