package scenarios

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// What the guide of the server and the README tell people to type works, in the order given, and prints what they say it prints. etcd is the
// one of the tests, and the port is a free one.
func TestGuidesOfTheServer(t *testing.T) {
	needsDiscovery(t)
	for page, says := range map[string][]string{
		"docs/guides/server.md": {"NAME   IMAGE           REPLICAS\nshop   registry/shop   3\n", "\nyes\n", "\neyJ", "customresourcedefinition.apiextensions.k8s.io \"webs.example.com\" deleted"},
		"README.md":             {"\nwebs.example.com ", "web.example.com/shop created\n", "\n  replicas: 3\n"},
	} {
		t.Run(filepath.Base(page), func(t *testing.T) {
			t.Parallel()
			said := walkThrough(t, page)
			for _, want := range says {
				if !strings.Contains(said, want) {
					t.Errorf("no %q in\n%s", want, said)
				}
			}
		})
	}
}

var guideBlock = regexp.MustCompile("(?ms)^```(\\w*)(?: title=(\\S+))?\n(.*?)^```\n")

// guidePrelude has the programs that people have already, or start in another terminal.
const guidePrelude = `
set -eu -o pipefail
trap 'kill $(cat pids) 2>/dev/null || true' EXIT
touch pids
go() { :; }
etcd() { :; }
espalier() {
	if [ "$1" = dev ]; then
		"$ESPALIER" "$@" --port $PORT >serve.log 2>&1 &
		echo $! >> pids
		until grep -q 'is ready' serve.log; do kill -0 $! || { cat serve.log; return 1; }; sleep 0.1; done
		return
	fi
	if [ "$1" != serve ]; then "$ESPALIER" "$@"; return; fi
	"$ESPALIER" "$@" --secure-port=$PORT --bind-address=127.0.0.1 --etcd-prefix=$PREFIX >serve.log 2>&1 &
	echo $! >> pids
	for i in $(seq 600); do
		if kubectl --server https://127.0.0.1:$PORT --insecure-skip-tls-verify --client-certificate alice.crt --client-key alice.key get --raw /readyz >/dev/null 2>&1; then return; fi
		sleep 0.1
	done
	cat serve.log
	return 1
}
`

// walkThrough runs a page and returns what its commands print.
func walkThrough(t *testing.T, page string) string {
	t.Helper()
	root, err := launch.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := guidePrelude
	for i, block := range guideBlock.FindAllStringSubmatch(string(text), -1) {
		language, title, content := block[1], block[2], block[3]
		switch {
		case title != "":
			if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, title)), 0o755); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, title), content)
		case language == "sh" && (strings.Contains(content, "kubectl ") || strings.Contains(content, "openssl ") || strings.Contains(content, "espalier serve") || strings.Contains(content, "espalier dev")):
			script += content
		case language == "" && strings.HasPrefix(content, "$ kubectl "):
			// A command that fails, and what it says.
			command, answer, _ := strings.Cut(strings.TrimPrefix(content, "$ "), "\n")
			writeFile(t, filepath.Join(dir, fmt.Sprintf("answer-%d", i)), answer)
			script += fmt.Sprintf("if %s > said 2>&1; then echo 'it does not fail'; exit 1; fi\ndiff answer-%d said\n", command, i)
		}
	}
	port, err := launch.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	script = strings.NewReplacer("http://127.0.0.1:2379", etcd.URL, "localhost:6443", fmt.Sprintf("localhost:%d", port)).Replace(script)
	kubectl, err := launch.Tool("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(kubectl)+":"+os.Getenv("PATH"), "HOME="+dir, "KUBECONFIG=",
		"ESPALIER="+binaries[launch.Espalier], fmt.Sprintf("PORT=%d", port), "PREFIX="+prefix())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if log, err := os.ReadFile(filepath.Join(dir, "serve.log")); err != nil || faultIn(string(log)) != "" {
		t.Errorf("the server's log: %v\n%s", err, faultIn(string(log)))
	}
	return string(out)
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
