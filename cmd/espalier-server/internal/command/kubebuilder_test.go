package command

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

// Under the name of kube-apiserver the program is one, as far as envtest and others
// ask. That it serves, and that it is an etcd, conformance/envtest shows.
func TestAsAPIServer(t *testing.T) {
	for _, test := range []struct {
		program, args string
		code          int
		says          string
		not           string
	}{
		{"/assets/kube-apiserver", "--version", cli.ExitNothing, `^Kubernetes `, ""},
		{"/assets/kube-apiserver", "--version=raw", cli.ExitNothing, `^Kubernetes `, ""},
		// envtest looks for flags in the help, in this form.
		{"kube-apiserver.exe", "--help", cli.ExitNothing, `(?m)^\s*--etcd-servers\b`, `(?m)^\s*--insecure-port\b`},
		{"kube-apiserver", "--check --etcd-servers http://127.0.0.1:2379 --enable-admission-plugins=AlwaysPullImages --authorization-mode=Node,RBAC", cli.ExitFailed, `--client-ca-file`, `AlwaysPullImages|Node|unknown`},
		{"kube-apiserver", "--print-config", cli.ExitNothing, `protect-instances: false\n`, ""},
		{"kube-apiserver", "--print-config", cli.ExitNothing, `kinds: all\n`, ""},
		{"kube-apiserver", "--print-config --protect-instances", cli.ExitNothing, `protect-instances: true\n`, ""},
		{"espalier", "--version", cli.ExitNothing, `^development\n`, "Kubernetes"},
	} {
		var out bytes.Buffer
		code := Main(t.Context(), test.program, strings.Fields(test.args), strings.NewReader(""), &out, &out)
		if text := out.String(); code != test.code || !regexp.MustCompile(test.says).MatchString(text) || test.not != "" && regexp.MustCompile(test.not).MatchString(text) {
			t.Errorf("%s %s: exit code %d\n%s", test.program, test.args, code, text)
		}
	}
}

func TestMulticall(t *testing.T) {
	for program, want := range map[string]bool{
		"etcd": true, "/assets/etcd": true, "kube-apiserver": true, "kube-apiserver.exe": true,
		"espalier": false, "kubectl-espalier": false, "etcdctl": false, "/etcd/espalier": false,
	} {
		if got := multicall(program) != nil; got != want {
			t.Errorf("%s: %v", program, got)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for text, want := range map[string]string{
		"/a/b-c.d": "/a/b-c.d", "/a b": "'/a b'", "it's": `'it'\''s'`, "$(x)": "'$(x)'", "": "''", "/ü": "'/ü'",
	} {
		if got := shellQuote(text); got != want {
			t.Errorf("%s is %s, not %s", text, got, want)
		}
	}
}

// Programs are linked, except for those that will be gone soon, which are copied.
func TestPlace(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there all are copied")
	}
	dir, fleeting := t.TempDir(), filepath.Join(t.TempDir(), "fleeting")
	if err := os.WriteFile(fleeting, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"/bin/sh", "/bin/sh", fleeting, fleeting, "/bin/sh"} {
		if err := place(program, dir, etcdProgram); err != nil {
			t.Fatal(err)
		}
		info, err := os.Lstat(filepath.Join(dir, etcdProgram))
		if err != nil {
			t.Fatal(err)
		}
		if linked := info.Mode()&os.ModeSymlink != 0; linked != (program != fleeting) {
			t.Errorf("%s is linked: %v", program, linked)
		}
		if program == fleeting && info.Mode().Perm()&0o100 == 0 {
			t.Error("the copy cannot be run")
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
}
