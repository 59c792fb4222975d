package command

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
)

// TestGoldenGuides runs the commands that the README and the guides show and
// compares their output with what is printed there. A block
//
//	```yaml title=web.yaml
//
// is a file, and a block
//
//	```console
//
// a session: lines that begin with "$ " are commands, the others what they
// print. Each page has a folder of its own.
func TestGoldenGuides(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts the program very often: it runs without the race detector")
	}
	pages, err := filepath.Glob("../../../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "../../../../README.md") {
		t.Run(strings.TrimSuffix(filepath.Base(page), ".md"), func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			commands := 0
			dir := t.TempDir()
			got := fence.ReplaceAllStringFunc(string(text), func(block string) string {
				m := fence.FindStringSubmatch(block)
				switch title := strings.TrimPrefix(m[2], "title="); {
				case title != m[2]:
					path := filepath.Join(dir, filepath.FromSlash(title))
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(m[3]), 0o644); err != nil {
						t.Fatal(err)
					}
				case m[1] == "console":
					out, n := session(t, dir, m[3])
					commands += n
					return "```console\n" + out + "```\n"
				}
				return block
			})
			if commands == 0 && strings.Contains(string(text), "```console") {
				t.Fatal("no command was run")
			}
			if got == string(text) {
				return
			}
			if *update {
				if err := os.WriteFile(page, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			was, is := strings.Split(string(text), "\n"), strings.Split(got, "\n")
			for i := range min(len(was), len(is)) {
				if was[i] != is[i] {
					t.Fatalf("line %d:\n says   %s\n prints %s\n(go test ./cmd/espalier-server/internal/command -run Guides -update rewrites it)", i+1, was[i], is[i])
				}
			}
			t.Fatal("the output is shorter or longer than what is printed")
		})
	}
}

var fence = regexp.MustCompile("(?ms)^```(\\w+)(?: ([^\n]*))?\n(.*?)^```\n")

// session runs the commands of a block and returns the block with what they
// print.
func session(t *testing.T, dir, block string) (string, int) {
	t.Helper()
	var out strings.Builder
	commands := 0
	for line := range strings.Lines(block) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		commands++
		out.WriteString(line)
		out.WriteString(runCommand(t, dir, strings.TrimSpace(command)))
	}
	return out.String(), commands
}

// runCommand runs a line with the shell; espalier is this test's own binary
// under that name, which testscript.Main has put on the path.
func runCommand(t *testing.T, dir, command string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "NO_COLOR=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code > cli.ExitFindings || code < 0 {
		t.Errorf("$ %s\n%s%v", command, &out, err)
	}
	return out.String()
}
