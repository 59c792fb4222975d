package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// The tests whose names begin with TestRelease install a release: that in the folder that ESPALIER_RELEASE names, which
// `make release-check` has built, or one of small programs in the place of ours.

var standInRelease struct {
	once sync.Once
	dir  string
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if standInRelease.dir != "" {
		os.RemoveAll(standInRelease.dir)
	}
	os.Exit(code)
}

// releaseOf is the folder of a release and its version, without v.
func releaseOf(t *testing.T) (dir, version string) {
	t.Helper()
	if dir = os.Getenv("ESPALIER_RELEASE"); dir == "" {
		if runtime.GOOS != "linux" {
			t.Skip("packages and images are for Linux")
		}
		s := &standInRelease
		s.once.Do(func() {
			if s.dir, s.err = os.MkdirTemp("", "release-test-"); s.err == nil {
				s.err = releaseStandIn(t, s.dir)
			}
		})
		if s.err != nil {
			t.Fatal(s.err)
		}
		dir = s.dir
	}
	images, err := filepath.Glob(filepath.Join(dir, "espalier_*_image.tar"))
	if err != nil || len(images) != 1 {
		t.Fatalf("%s has %d images: %v", dir, len(images), err)
	}
	version = strings.TrimSuffix(strings.TrimPrefix(filepath.Base(images[0]), "espalier_"), "_image.tar")
	return dir, version
}

// releaseStandIn makes a release of the small programs, from a repository of its own.
func releaseStandIn(t *testing.T, out string) error {
	t.Helper()
	return run(t.Context(), []string{"-root", repository(t), "-out", out, "-platforms", "linux/" + runtime.GOARCH}, io.Discard)
}

// TestAgain makes the release of the same commit in another folder, and later. The programs may come out of the build cache:
// TestTwice, which takes longer, has an empty one.
func TestAgain(t *testing.T) {
	if os.Getenv("ESPALIER_RELEASE") != "" {
		t.Skip("`release -twice` has compared the release that ESPALIER_RELEASE names")
	}
	dir, _ := releaseOf(t)
	again := t.TempDir()
	if err := releaseStandIn(t, again); err != nil {
		t.Fatal(err)
	}
	if one, two := read(t, filepath.Join(dir, sumsFile)), read(t, filepath.Join(again, sumsFile)); one != two || strings.Count(one, "\n") != 13 {
		t.Errorf("the release is\n%sand, made again,\n%s", one, two)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	files, err := published(again)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		for what, words := range map[string]string{"the name of this machine": host, "a folder of this machine": again} {
			if len(words) > 5 && strings.Contains(read(t, path), words) {
				t.Errorf("%s has %s", filepath.Base(path), what)
			}
		}
	}
}

// file is the path of a file of the release for this machine.
func file(t *testing.T, program, ending string) string {
	t.Helper()
	dir, version := releaseOf(t)
	path := filepath.Join(dir, fmt.Sprintf("%s_%s_linux_%s%s", program, version, runtime.GOARCH, ending))
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%v: the release was not built for this machine", err)
	}
	return path
}

// needs skips a test on a machine without a program.
func needs(t *testing.T, why string, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s: %v", why, err)
		}
	}
}

// needsRoot skips a test that has to install files of root.
func needsRoot(t *testing.T, why string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skipf("%s: only root can", why)
	}
}

// command runs a program and returns what it prints.
func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	out, err := commandMayFail(t, dir, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func commandMayFail(t *testing.T, dir, name string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// prints fails unless a program that was installed says the version. Those in the place of ours say their names, too.
func prints(t *testing.T, said, program string) {
	t.Helper()
	_, version := releaseOf(t)
	if !strings.Contains(said, version) || os.Getenv("ESPALIER_RELEASE") == "" && !strings.HasPrefix(said, program+" ") {
		t.Errorf("%s prints %q, not the version %s", program, said, version)
	}
}

// installedFiles are what packages of all forms install, by program.
var installedFiles = map[string][]string{
	"espalier":        {"usr/bin/espalier", "usr/bin/kubectl-espalier", "usr/share/man/man1/espalier.1.gz", "usr/share/bash-completion/completions/espalier", "usr/share/fish/vendor_completions.d/espalier.fish"},
	"espalier-server": {"usr/bin/espalier-server", "usr/share/man/man1/espalier-server.1.gz", "usr/lib/systemd/system/espalier.service", "etc/espalier/espalier.env", "etc/espalier/audit.yaml"},
}

// checkInstalled runs the programs below a folder.
func checkInstalled(t *testing.T, root string, programs ...string) {
	t.Helper()
	for _, program := range programs {
		for _, path := range installedFiles[program] {
			info, err := os.Stat(filepath.Join(root, path))
			if err != nil {
				t.Error(err)
			} else if want := map[bool]os.FileMode{true: 0o755, false: 0o644}[strings.HasPrefix(path, "usr/bin/")]; info.Mode().Perm() != want {
				t.Errorf("%s has the mode %v", path, info.Mode())
			}
		}
		prints(t, command(t, root, filepath.Join(root, "usr/bin", program), "--version"), program)
	}
	if len(programs) == 2 {
		prints(t, command(t, root, filepath.Join(root, "usr/bin/kubectl-espalier"), "--version"), "espalier")
		unit := read(t, filepath.Join(root, "usr/lib/systemd/system/espalier.service"))
		if !strings.Contains(unit, "\nExecStart=/usr/bin/espalier-server serve ") || strings.Contains(unit, "/usr/local") {
			t.Errorf("the unit does not start the program of the package:\n%s", unit)
		}
	}
}

// TestReleaseDebian installs the packages with dpkg, runs the programs, installs them again over a changed
// configuration, and removes them.
func TestReleaseDebian(t *testing.T) {
	needs(t, "installs packages", "dpkg")
	needsRoot(t, "dpkg gives files to root")
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		write(t, root, "var/lib/dpkg/"+dir+"/empty", "")
	}
	write(t, root, "var/lib/dpkg/status", "")
	// No script finds systemd below the folder: what they do is a test of its own.
	dpkg := func(args ...string) string {
		t.Helper()
		return command(t, root, "dpkg", append([]string{"--root=" + root, "--log=/dev/null", "--force-script-chrootless"}, args...)...)
	}
	packages := []string{file(t, "espalier", ".deb"), file(t, "espalier-server", ".deb")}
	dpkg(append([]string{"--install"}, packages...)...)
	checkInstalled(t, root, programs...)
	if changed := dpkg("--verify"); changed != "" {
		t.Errorf("dpkg finds other files than it installed:\n%s", changed)
	}
	if status := dpkg("--status", "espalier-server"); !strings.Contains(status, "Status: install ok installed") || !strings.Contains(status, " /etc/espalier/espalier.env ") {
		t.Errorf("the status is\n%s", status)
	}
	write(t, root, "etc/espalier/espalier.env", "ETCD_SERVERS=https://own.example.com:2379\n")
	dpkg("--install", packages[1])
	if got := read(t, filepath.Join(root, "etc/espalier/espalier.env")); !strings.Contains(got, "own.example.com") {
		t.Errorf("an upgrade overwrites the configuration: %s", got)
	}
	dpkg("--remove", "espalier", "espalier-server")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/espalier-server")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed, it is still there: %v", err)
	}
	if got := read(t, filepath.Join(root, "etc/espalier/espalier.env")); !strings.Contains(got, "own.example.com") {
		t.Errorf("removing the package removes the configuration: %s", got)
	}
	dpkg("--purge", "espalier-server")
	if left, _ := filepath.Glob(filepath.Join(root, "etc/espalier/*")); left != nil {
		t.Errorf("purged, it leaves %v", left)
	}
}

// TestReleaseRPM installs the packages with rpm, and runs the programs.
func TestReleaseRPM(t *testing.T) {
	needs(t, "reads and installs packages", "rpm", "rpm2cpio", "cpio")
	packages := []string{file(t, "espalier", ".rpm"), file(t, "espalier-server", ".rpm")}
	unpacked := t.TempDir()
	for _, p := range packages { // the names in it are absolute, which cpio would take literally
		command(t, unpacked, "sh", "-c", `rpm2cpio "$1" | cpio --quiet -idm --no-absolute-filenames`, "sh", p)
	}
	checkInstalled(t, unpacked, programs...)
	if got := command(t, unpacked, "rpm", "-qp", "--configfiles", packages[1]); got != "/etc/espalier/audit.yaml\n/etc/espalier/espalier.env\n" {
		t.Errorf("the configuration is %q", got)
	}
	if got := command(t, unpacked, "rpm", "-qp", "--queryformat", "%{NAME} %{LICENSE} %{BUILDHOST} %{OS}", packages[1]); got != "espalier-server Apache-2.0 localhost linux" {
		t.Errorf("the package says %q", got)
	}
	if got := command(t, unpacked, "rpm", "-qp", "--scripts", packages[1]); !strings.Contains(got, "systemctl daemon-reload") || !strings.Contains(got, "disable --now espalier.service") {
		t.Errorf("the scripts are\n%s", got)
	}
	needsRoot(t, "rpm changes its root folder")
	root := t.TempDir()
	rpm := func(args ...string) string {
		t.Helper()
		return command(t, root, "rpm", append([]string{"--root", root}, args...)...)
	}
	// Without scripts, for which the folder has no shell, and without packages that it depends on.
	rpm(append([]string{"--install", "--nodeps", "--noscripts"}, packages...)...)
	checkInstalled(t, root, programs...)
	if changed := rpm("--verify", "--nodeps", "--noscripts", "espalier", "espalier-server"); changed != "" {
		t.Errorf("rpm finds other files than it installed:\n%s", changed)
	}
	rpm("--erase", "--noscripts", "espalier", "espalier-server")
	if _, err := os.Stat(filepath.Join(root, "usr/bin/espalier")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("removed, it is still there: %v", err)
	}
}

// TestScripts runs the scripts of the packages as dpkg and rpm call them, with a systemctl that writes down how it is called.
func TestScripts(t *testing.T) {
	needs(t, "runs scripts of packages", "sh")
	root := t.TempDir()
	write(t, root, "bin/systemctl", "#!/bin/sh\necho \"$@\" >> \"$DPKG_ROOT/called\"\n")
	if err := os.Chmod(filepath.Join(root, "bin/systemctl"), 0o755); err != nil {
		t.Fatal(err)
	}
	run := func(script string, args ...string) string {
		t.Helper()
		write(t, root, "called", "")
		cmd := exec.CommandContext(t.Context(), "sh", append([]string{filepath.Join("../../deploy/systemd", script)}, args...)...)
		cmd.Env = append(os.Environ(), "DPKG_ROOT="+root, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s %v: %v\n%s", script, args, err, out)
		}
		return strings.ReplaceAll(strings.TrimSpace(read(t, filepath.Join(root, "called"))), "\n", "; ")
	}
	if called := run("postinst.sh", "configure", "1.0"); called != "" {
		t.Errorf("without systemd it calls %s", called)
	}
	if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		script, want string
		args         []string
	}{
		{"postinst.sh", "daemon-reload", []string{"configure", ""}},
		{"postinst.sh", "daemon-reload", []string{"configure"}},
		{"postinst.sh", "daemon-reload", []string{"1"}},
		{"postinst.sh", "daemon-reload; try-restart espalier.service", []string{"configure", "0.1.0"}},
		{"postinst.sh", "daemon-reload; try-restart espalier.service", []string{"2"}},
		{"prerm.sh", "--quiet disable --now espalier.service", []string{"remove"}},
		{"prerm.sh", "--quiet disable --now espalier.service", []string{"0"}},
		{"prerm.sh", "", []string{"upgrade", "0.2.0"}},
		{"prerm.sh", "", []string{"1"}},
		{"postrm.sh", "daemon-reload", []string{"remove"}},
	} {
		if called := run(c.script, c.args...); called != c.want {
			t.Errorf("%s %v calls %q and not %q", c.script, c.args, called, c.want)
		}
	}
}
