package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// runner is what a GitHub runner gives to the scripts of the action.
type runner struct {
	t               *testing.T
	dir, repository string
	url             string
	replace         func(name, text string) // a file of the release
	requests        []string
}

// newRunner serves a release v1.2.3, made as this program makes releases, with a shell script in the place of the program.
func newRunner(t *testing.T) *runner {
	t.Helper()
	for _, program := range []string{"bash", "curl", "unzip"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("the action's scripts need %s: %v", program, err)
		}
	}
	r := &runner{t: t, dir: t.TempDir()}
	var err error
	if r.repository, err = filepath.Abs("../.."); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "v1.2.3")
	if err := os.MkdirAll(out, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, out, "../program", "#!/bin/sh\nprintf '<%s>' \"$@\"\necho\ntouch \"$RAN\"\n")
	for _, platform := range platforms {
		base, archive, program := names("espalier", "v1.2.3", platform)
		pack := tarball
		if strings.HasSuffix(archive, ".zip") {
			pack = zipped
		}
		if err := pack(filepath.Join(out, archive), []entry{{base + "/LICENSE", filepath.Join(r.repository, "LICENSE"), 0o644}, {base + "/" + program, filepath.Join(out, "../program"), 0o755}}, commitTime); err != nil {
			t.Fatal(err)
		}
	}
	if err := writeSums(out); err != nil {
		t.Fatal(err)
	}
	files := http.FileServerFS(os.DirFS(filepath.Dir(out)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.requests = append(r.requests, request.URL.Path)
		files.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL
	r.replace = func(name, text string) { write(t, out, name, text) }
	return r
}

// run runs a script of the action in a new folder for temporary files, and returns what it prints.
func (r *runner) run(script string, env ...string) (string, error) {
	r.t.Helper()
	if err := errors.Join(os.RemoveAll(r.dir), os.MkdirAll(r.dir, 0o755)); err != nil {
		r.t.Fatal(err)
	}
	r.requests = nil
	cmd := exec.CommandContext(r.t.Context(), "bash", filepath.Join(r.repository, "action", script))
	cmd.Dir = r.dir
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GITHUB_ACTION_PATH=" + r.repository, "RUNNER_TEMP=" + r.dir, "RUNNER_OS=Linux", "RUNNER_ARCH=X64",
		"GITHUB_PATH=" + filepath.Join(r.dir, "path"), "GITHUB_OUTPUT=" + filepath.Join(r.dir, "output"), "ESPALIER_RELEASES=" + r.url, "RAN=" + filepath.Join(r.dir, "ran")}, env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ran reports whether a program of a release has run.
func (r *runner) ran() bool {
	_, err := os.Stat(filepath.Join(r.dir, "ran"))
	return err == nil
}

func TestActionInstalls(t *testing.T) {
	r := newRunner(t)
	for _, version := range [][]string{{"ESPALIER_VERSION=v1.2.3"}, {"ESPALIER_VERSION=1.2.3", "ESPALIER_REF=v9.9.9"}, {"ESPALIER_REF=v1.2.3"}} {
		out, err := r.run("install.sh", append(version, "ESPALIER_SOURCE=false")...)
		if err != nil || out != "<--version>\n" {
			t.Fatalf("%v: %v\n%s", version, err, out)
		}
		program := filepath.Join(r.dir, "espalier-bin", "espalier")
		if got := read(t, filepath.Join(r.dir, "output")); got != "program="+program+"\n" {
			t.Errorf("the output is %s", got)
		}
		if got := read(t, filepath.Join(r.dir, "path")); got != filepath.Dir(program)+"\n" {
			t.Errorf("the path is %s", got)
		}
		if left, _ := filepath.Glob(filepath.Join(r.dir, "espalier.*")); left != nil {
			t.Errorf("it leaves %v", left)
		}
	}
	// Each platform has an archive of the name that the script asks for.
	for _, platform := range []struct{ system, machine, archive string }{
		{"Linux", "ARM64", "espalier_1.2.3_linux_arm64.tar.gz"}, {"macOS", "X64", "espalier_1.2.3_darwin_amd64.tar.gz"}, {"macOS", "ARM64", "espalier_1.2.3_darwin_arm64.tar.gz"},
		{"Windows", "X64", "espalier_1.2.3_windows_amd64.zip"}, {"Windows", "ARM64", "espalier_1.2.3_windows_arm64.zip"},
	} {
		out, err := r.run("install.sh", "ESPALIER_VERSION=v1.2.3", "RUNNER_OS="+platform.system, "RUNNER_ARCH="+platform.machine)
		if err != nil || len(r.requests) != 2 || r.requests[0] != "/v1.2.3/"+platform.archive {
			t.Errorf("%+v: %v %v\n%s", platform, err, r.requests, out)
		}
	}
}

func TestActionRefuses(t *testing.T) {
	r := newRunner(t)
	const archive = "espalier_1.2.3_linux_amd64.tar.gz"
	refuses := func(want string, env ...string) {
		t.Helper()
		out, err := r.run("install.sh", env...)
		if err == nil || !strings.Contains(out, "::error title=espalier::") || !strings.Contains(out, want) {
			t.Errorf("%v: %v, no %q in\n%s", env, err, want, out)
		}
		if strings.Contains(out, "\n::stop") || strings.Contains(out, "\r") {
			t.Errorf("%v: an input begins a command of its own:\n%s", env, out)
		}
		if left, _ := filepath.Glob(filepath.Join(r.dir, "*")); left != nil || r.ran() {
			t.Errorf("%v: it installs %v", env, left)
		}
	}
	// Releases that do not exist; the second is the one that cmd/go.mod of a commit names.
	refuses("is there a release v9.9.9? Set the input version to a release that has it, or the input source to \"true\"", "ESPALIER_VERSION=v9.9.9")
	refuses("is there a release v0.", "ESPALIER_REF=0123456789abcdef0123456789abcdef01234567")
	for _, version := range []string{"main", "v1.2", "v1.2.3/../x", "1.2.3; touch x", "v1.2.3\nv1.2.3", "v1.2.3\n::stop-commands::x", "v1.2.3\r::stop-commands::x", "$(touch x)"} {
		refuses("the version must be a release such as v0.1.0", "ESPALIER_VERSION="+version)
		if len(r.requests) > 0 {
			t.Errorf("%q is asked for: %v", version, r.requests)
		}
	}
	refuses("there is no release for FreeBSD", "ESPALIER_VERSION=v1.2.3", "RUNNER_OS=FreeBSD")
	refuses("there is no release for X86", "ESPALIER_VERSION=v1.2.3", "RUNNER_ARCH=X86")
	refuses("the input source must be", "ESPALIER_SOURCE=yes")
	refuses("and not 0123: it is not installed", "ESPALIER_VERSION=v1.2.3", "ESPALIER_CHECKSUM=0123")

	// What was downloaded is not what the release lists.
	r.replace(archive, string(script(t)))
	refuses("it is not installed", "ESPALIER_VERSION=v1.2.3")
	r.replace(sumsFile, strings.Repeat("0", 64)+"  other.tar.gz\n")
	refuses("SHA256SUMS of v1.2.3 has no line for "+archive, "ESPALIER_VERSION=v1.2.3")
	r.replace(sumsFile, fmt.Sprintf("%s  other_%s\n", strings.Repeat("0", 64), archive))
	refuses("has no line for", "ESPALIER_VERSION=v1.2.3")
}

// script is an archive of the right form with another program.
func script(t *testing.T) []byte {
	t.Helper()
	var text strings.Builder
	packed := gzip.NewWriter(&text)
	archive := tar.NewWriter(packed)
	const program = "#!/bin/sh\ntouch \"$RAN\"\n"
	err := archive.WriteHeader(&tar.Header{Name: "espalier_1.2.3_linux_amd64/espalier", Mode: 0o755, Size: int64(len(program))})
	_, other := archive.Write([]byte(program))
	if err := errors.Join(err, other, archive.Close(), packed.Close()); err != nil {
		t.Fatal(err)
	}
	return []byte(text.String())
}

// TestActionRuns: inputs are words, and nothing of them is read as shell.
func TestActionRuns(t *testing.T) {
	r := newRunner(t)
	program := filepath.Join(t.TempDir(), "espalier")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ command, args, paths, want string }{
		{"check", "", "config/crd", "<check><-o><github><--><config/crd>"},
		{"validate", "--crd config/crd\n--severity  error", "a.yaml\nb.yaml c.yaml\n", "<validate><-o><github><--crd><config/crd><--severity><error><--><a.yaml><b.yaml><c.yaml>"},
		{"check", `$(touch x) ; "q`, "`touch x` * $HOME", "<check><-o><github><$(touch><x)><;><\"q><--><`touch><x`><*><$HOME>"},
		{"check", "", "--help", "<check><-o><github><--><--help>"},
	} {
		out, err := r.run("run.sh", "ESPALIER_PROGRAM="+program, "ESPALIER_COMMAND="+c.command, "ESPALIER_ARGS="+c.args, "ESPALIER_PATHS="+c.paths)
		var exit *exec.ExitError
		if out != c.want || !errors.As(err, &exit) || exit.ExitCode() != 1 {
			t.Errorf("%+v: %v\n%s", c, err, out)
		}
	}
	if out, err := r.run("run.sh", "ESPALIER_PROGRAM="+program, "ESPALIER_COMMAND=check", "ESPALIER_PATHS= "); err == nil || !strings.Contains(out, "the input paths is empty") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestGuideDownloads runs what the guide to CI says for systems without the action.
func TestGuideDownloads(t *testing.T) {
	r := newRunner(t)
	_, commands, _ := strings.Cut(read(t, "../../docs/guides/ci.md"), "\n```sh\n")
	commands, _, _ = strings.Cut(commands, "\n```\n")
	commands = strings.NewReplacer("https://github.com/espalier-dev/espalier/releases/download", r.url, "0.1.0", "1.2.3").Replace(commands)
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", commands)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || len(r.requests) != 2 || !strings.Contains(string(out), ": OK") {
		t.Fatalf("%v %v\n%s\n%s", err, r.requests, commands, out)
	}
	if got := read(t, filepath.Join(dir, "bin", "espalier")); !strings.HasPrefix(got, "#!") {
		t.Errorf("it installs %q", got)
	}
}

// TestActionBuilds builds the action's own commit: here, a program in its place.
func TestActionBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles a program")
	}
	r := newRunner(t)
	dir := repository(t)
	write(t, dir, "action/install.sh", read(t, filepath.Join(r.repository, "action/install.sh")))
	cache, err := exec.Command("go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	r.repository = dir
	out, err := r.run("install.sh", "ESPALIER_SOURCE=true", "GOCACHE="+strings.TrimSpace(string(cache)), "GOFLAGS=-buildvcs=false", "GOPATH="+filepath.Join(dir, "elsewhere"))
	if _, missing := os.Stat(filepath.Join(r.dir, "espalier-bin", "espalier")); err != nil || missing != nil || len(r.requests) > 0 {
		t.Errorf("%v %v %v\n%s", err, missing, r.requests, out)
	}
}
