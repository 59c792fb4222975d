package minutes

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
)

var figures = results.New("minutes")

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if code == 0 && flag.Lookup("test.list").Value.String() == "" {
		if err := figures.Save(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// most is how long a path may take.
const most = time.Minute

// prelude has what the page leaves to its reader, and what differs here. The control plane runs in the background and on
// a port of its own. No proxy has the modules yet, so that `go get` takes them from this repository, with the dependencies of
// conformance, which are in the module cache; Go's build cache may be warm, too.
const prelude = `
set -eu -o pipefail
cd "$AT"
trap '[ ! -e dev.pid ] || { kill -INT $(cat dev.pid); wait $(cat dev.pid); }' EXIT
espalier() {
	if [ "$1" != dev ]; then command espalier "$@"; return; fi
	command espalier "$@" --port $PORT >dev.log 2>&1 &
	echo $! > dev.pid
}
go() {
	if [ "$1" != get ]; then command go "$@"; return; fi
	sed -e "s|^module .*|$(head -n 1 go.mod)|" -e "s|=> ../|=> $ROOT/|" "$ROOT/conformance/go.mod" > go.mod.new
	mv go.mod.new go.mod
	cat "$ROOT/go.sum" "$ROOT/conformance/go.sum" > go.sum
}
page_has() {
	mkdir -p "$(dirname "$2")"
	cp "$BLOCKS/$1" "$2"
}
# The control plane prints the lines of a block.
dev_says() {
	for i in $(seq 1200); do
		if grep -qF -f "$BLOCKS/$1" dev.log; then return; fi
		sleep 0.05
	done
	echo "it does not say"; cat "$BLOCKS/$1"; echo "but"; cat dev.log
	exit 1
}
`

var (
	block   = regexp.MustCompile("(?ms)^```(\\w*)(?: title=(\\S+))?\n(.*?)^```\n")
	section = regexp.MustCompile(`(?ms)^## (A first [a-z ]+)\n(.*?)^Next: `)
)

// Each path of the page works as it is written, prints what the page says, and takes less than a minute of processor time. Other jobs on
// the machine do not count; `make minutes` records the time on the clock.
func TestFirstMinutes(t *testing.T) {
	root := must(launch.Root())
	page := string(must(os.ReadFile(filepath.Join(root, "docs", "guides", "minutes.md"))))
	port := must(launch.FreePort())
	page = strings.ReplaceAll(page, "6443", fmt.Sprint(port))
	home := must(filepath.EvalSymlinks(t.TempDir()))
	install, _, _ := strings.Cut(page, "\n## ")
	unpack := "cd " + home + "\n" + block.FindStringSubmatch(install)[3]
	path := "PATH=" + archives(t, home) + ":" + os.Getenv("PATH")
	sections := section.FindAllStringSubmatch(page, -1)
	if len(sections) != 4 {
		t.Fatalf("the page has %d paths", len(sections))
	}
	for i, s := range sections {
		name := strings.TrimPrefix(s[1], "A first ")
		dir := t.TempDir()
		blocks := t.TempDir()
		script := prelude
		if i < 2 { // the others need no program
			script = unpack + prelude
		}
		for i, b := range block.FindAllStringSubmatch(s[2], -1) {
			script += step(t, blocks, fmt.Sprint(i), b[1], b[2], b[3])
		}
		ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "bash", "-c", script)
		cmd.WaitDelay = 10 * time.Second
		cmd.Env = append(os.Environ(), "AT="+dir, "BLOCKS="+blocks, "HOME="+home, "ROOT="+root, fmt.Sprintf("PORT=%d", port), "KUBECONFIG=", "NO_COLOR=1", path,
			"GOWORK=off", "GOFLAGS=-mod=mod", "GOCACHE="+goEnv("GOCACHE"), "GOMODCACHE="+goEnv("GOMODCACHE"), "GOPATH="+goEnv("GOPATH"))
		began := time.Now()
		out, err := cmd.CombinedOutput()
		took, work := time.Since(began), cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime()
		if err != nil {
			t.Fatalf("%s: %v\n%s", s[1], err, out)
		}
		t.Logf("%-20s %6.1f s, %6.1f s of processor time", s[1], took.Seconds(), work.Seconds())
		if work > most {
			t.Errorf("%s takes %v of processor time", s[1], work)
		}
		figures.Set(strings.ReplaceAll(name, " ", "."), "%s", results.Time(took))
	}
}

// archives packs both programs into the folder as releases are, and puts kubectl into another one, which it returns.
func archives(t *testing.T, home string) string {
	t.Helper()
	packed := t.TempDir()
	for name, build := range map[string]func(context.Context, string, ...string) (string, error){
		"espalier": func(ctx context.Context, dir string, _ ...string) (string, error) {
			return launch.BuildCommandLine(ctx, dir)
		},
		"espalier-server": launch.Build,
	} {
		folder := name + "_0.1.0_linux_amd64"
		if err := os.Mkdir(filepath.Join(packed, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		built := must(build(t.Context(), filepath.Join(packed, folder)))
		if to := filepath.Join(packed, folder, name); built != to { // ESPALIER_BIN names another one
			if err := os.Symlink(built, to); err != nil {
				t.Fatal(err)
			}
		}
		pack := exec.CommandContext(t.Context(), "bash", "-ec", `tar -chf - "$1" | gzip -1 > "$2/$1.tar.gz"`, "bash", folder, home)
		pack.Dir = packed
		if out, err := pack.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	bin := t.TempDir()
	if err := os.Symlink(must(launch.Tool("kubectl")), filepath.Join(bin, "kubectl")); err != nil {
		t.Fatal(err)
	}
	return bin
}

// step is the script of one block of the page.
func step(t *testing.T, blocks, name, language, title, content string) string {
	t.Helper()
	keep := func(name, content string) {
		if err := os.WriteFile(filepath.Join(blocks, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
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
		script := ""
		for i, session := range strings.Split(strings.TrimPrefix(content, "$ "), "\n$ ") {
			command, answer, _ := strings.Cut(strings.TrimSuffix(session, "\n")+"\n", "\n")
			said := fmt.Sprintf("%s-%d", name, i)
			keep(said, answer)
			script += fmt.Sprintf("{ %s\n} > \"$BLOCKS/said\" 2>&1 || true\ndiff \"$BLOCKS/%s\" \"$BLOCKS/said\"\n", command, said)
		}
		return script
	}
	t.Fatalf("block %s is neither a file nor commands:\n%s", name, content)
	return ""
}

func goEnv(name string) string {
	return strings.TrimSpace(string(must(exec.Command("go", "env", name).Output())))
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
