package scenarios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// devPrelude runs what stays in the foreground of a terminal in the background, and compares what commands print with what a page says. Go
// builds in the module of these tests, which has what the page's program needs: there may be no network.
const devPrelude = `
set -eu -o pipefail
shopt -s expand_aliases
trap 'kill $(cat $HOME/pids) 2>/dev/null || true; wait' EXIT
touch $HOME/pids $HOME/dev.log
espalier() {
	if [ "$1" != dev ] || [ "${2:-}" = user ]; then command espalier "$@"; return; fi
	command espalier "$@" --port $PORT >$HOME/dev.log 2>&1 &
	echo $! | tee $HOME/dev.pid >> $HOME/pids
}
go() {
	if [ "$1" != run ]; then return; fi
	(cd $CONFORMANCE && command go build -o $HOME/controller.bin $HOME/controller/main.go)
	$HOME/controller.bin >$HOME/controller.log 2>&1 &
	echo $! >> $HOME/pids
	cd $HOME
}
# The file at a path is as in a block from now on.
page_has() {
	mkdir -p "$(dirname "$2")"
	mv "$HOME/blocks/$1" "$2"
}
# The control plane prints what a block says, after what it has printed before.
dev_says() {
	for i in $(seq 600); do
		if [[ "$(tail -c +$((heard + 1)) $HOME/dev.log)" == *"$(cat "$HOME/blocks/$1")"* ]]; then
			heard=$(wc -c < $HOME/dev.log)
			return
		fi
		sleep 0.1
	done
	echo "it does not say"; cat "$HOME/blocks/$1"; echo "but"; cat $HOME/dev.log
	exit 1
}
heard=0
`

// What the guides for the first control plane, for several users, for changes of CRDs, for tenants and for APIs of several tenants tell people to type works, in the order given, and all of it prints
// what they say it prints.
func TestGuidesOfDev(t *testing.T) {
	needsDiscovery(t)
	for _, page := range []string{"first.md", "users.md", "change.md", "tenants.md", "sharing.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := must[string](t)(filepath.EvalSymlinks(t.TempDir()))
			root := must[string](t)(launch.Root())
			port := must[int](t)(launch.FreePort())
			text := strings.NewReplacer("6443", fmt.Sprint(port), "/path/to/project", dir).Replace(readFile(t, filepath.Join(root, "docs/guides", page)))
			script := devPrelude + fmt.Sprintf("PORT=%d CONFORMANCE=%s\n", port, filepath.Join(root, "conformance"))
			if err := os.Mkdir(filepath.Join(dir, "blocks"), 0o700); err != nil {
				t.Fatal(err)
			}
			for i, block := range guideBlock.FindAllStringSubmatch(text, -1) {
				script += devBlock(t, dir, fmt.Sprint(i), block[1], block[2], block[3])
			}
			// Ctrl-C ends it well.
			script += "kill -INT $(cat $HOME/dev.pid)\nwait $(cat $HOME/dev.pid)\n"
			runDevGuide(t, dir, script)
			log := readFile(t, filepath.Join(dir, "dev.log"))
			if !strings.HasSuffix(log, "Stopped.\n") || faultIn(log) != "" {
				t.Errorf("the control plane printed\n%s", log)
			}
		})
	}
}

// runDevGuide runs a script in a folder, with a shell that knows no programs of ours but these.
func runDevGuide(t *testing.T, dir, script string) {
	t.Helper()
	bin := t.TempDir()
	for name, path := range map[string]string{"espalier": commandLine(t), "espalier-server": binaries[launch.Espalier], "kubectl": must[string](t)(launch.Tool("kubectl"))} {
		if err := os.Symlink(must[string](t)(filepath.Abs(path)), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay, cmd.SysProcAttr = dir, 10*time.Second, withParent()
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "KUBECONFIG=", "NO_COLOR=1", // Go's own folders are not to be in the new home
		"GOCACHE="+goEnv(t, "GOCACHE"), "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOPATH="+goEnv(t, "GOPATH"), "GOFLAGS="+goEnv(t, "GOFLAGS"))
	out, err := cmd.CombinedOutput()
	if err != nil {
		controller, _ := os.ReadFile(filepath.Join(dir, "controller.log")) // most pages have none
		t.Fatalf("%v\n%s\nthe control plane printed\n%s\nthe controller printed\n%s", err, out, readFile(t, filepath.Join(dir, "dev.log")), controller)
	}
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// devBlock is the script of one block of a page.
func devBlock(t *testing.T, dir, name, language, title, content string) string {
	t.Helper()
	keep := func(name, content string) { writeFile(t, filepath.Join(dir, "blocks", name), content) }
	switch {
	case title != "":
		keep(name, content)
		return fmt.Sprintf("page_has %s %s\n", name, title)
	case language == "text":
		keep(name, content)
		return "dev_says " + name + "\n"
	case language == "sh":
		return content
	case language == "" && strings.HasPrefix(content, "$ "):
		var script strings.Builder
		for i, session := range strings.Split(strings.TrimPrefix(content, "$ "), "\n$ ") {
			command, answer, _ := strings.Cut(strings.TrimSuffix(session, "\n")+"\n", "\n")
			step := fmt.Sprintf("%s-%d", name, i)
			keep(step, answer)
			fmt.Fprintf(&script, "echo %s\n{ %s\n} > $HOME/said 2>&1 || true\ndiff $HOME/blocks/%s $HOME/said\n", quoted("$ "+command), command, step)
		}
		return script.String()
	}
	t.Fatalf("block %s is neither a file nor commands:\n%s", name, content)
	return ""
}

func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
