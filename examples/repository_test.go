package examples_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const (
	crdFile    = "config/crd/webs.yaml"
	sampleFile = "config/samples/shop.yaml"
)

// gates are the commands of the workflow and of the hooks of crd-repository, each with its arguments.
type gates struct{ check, validate, diff []string }

// repository is a clone of crd-repository.
type repository struct {
	t   *testing.T
	dir string
	env []string
}

// TestRepository runs each gate, as the workflow and the hooks have it, after changes of all sorts.
func TestRepository(t *testing.T) {
	env := environment(t)
	for name, g := range map[string]gates{"workflow": workflow(t), "hooks": hooks(t)} {
		t.Run(name, func(t *testing.T) {
			r := clone(t, env)
			r.run(0, g.check)
			r.run(0, g.validate)
			r.run(0, g.diff)

			// A compatible change.
			r.change(crdFile, "host: {type: string, maxLength: 253}", "host: {type: string, maxLength: 253}\n              title: {type: string, maxLength: 100}")
			r.change(sampleFile, "host: shop", "title: Shop\n  host: shop")
			r.run(0, g.check)
			r.run(0, g.validate)
			r.run(0, g.diff)

			// A breaking one: the samples still fit, and clients break.
			r.change(crdFile, "maximum: 65535", "maximum: 9999")
			r.run(0, g.check)
			r.run(0, g.validate)
			r.run(1, g.diff, crdFile, "spec.port: breaks writers, stored objects: maximum was lowered", "maximum-lowered")
			r.change(".espalier.yaml", "waivers: []", waiver(t))
			r.run(0, g.diff)
			r.reset()

			// A field goes away, which a sample uses.
			r.change(crdFile, "              cache: {type: string, enum: [none, images, everything], default: images}\n", "")
			r.run(0, g.check)
			r.run(1, g.validate, sampleFile, `unknown field "spec.cache"`)
			r.run(1, g.diff, crdFile, "spec.cache", "field-removed")
			r.reset()

			// A CRD that servers refuse.
			r.change(crdFile, "port: {type: integer", "port: {type: int")
			r.run(1, g.check, crdFile, "Unsupported value", "type-unknown")
			r.reset()

			// A sample that servers refuse.
			r.change(sampleFile, "cache: everything", "cache: some")
			r.run(1, g.validate, sampleFile, "Unsupported value", "value-enum")
		})
	}
}

// The commands of the README do what it says.
func TestRepositoryReadme(t *testing.T) {
	env := environment(t)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples", "crd-repository"), os.DirFS("crd-repository")); err != nil {
		t.Fatal(err)
	}
	text := read(t, "crd-repository/README.md")
	scripts := regexp.MustCompile("(?ms)^```sh\n(.*?)^```\n").FindAllStringSubmatch(text, -1)
	output := regexp.MustCompile("(?ms)^```text\n(.*?)^```\n").FindStringSubmatch(text)
	if len(scripts) != 3 || output == nil {
		t.Fatalf("the README has %d scripts", len(scripts))
	}
	r := &repository{t, filepath.Join(dir, "examples"), env}
	r.run(0, []string{"bash", "-ec", scripts[0][1]})
	r.dir = filepath.Join(dir, "webs")
	r.run(0, []string{"bash", "-ec", scripts[1][1]})
	r.run(1, []string{"bash", "-ec", scripts[2][1]}, output[1])
}

// waiver is the one that the README shows.
func waiver(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile("(?ms)^```yaml\n(.*?)\n```\n").FindStringSubmatch(read(t, "crd-repository/README.md"))
	if m == nil {
		t.Fatal("the README has no waiver")
	}
	return m[1]
}

// environment has the programs of this repository in the PATH, and no settings of the user for git.
func environment(t *testing.T) []string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin+"/", "./cmd/espalier")
	build.Dir, build.Env = root, append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return append(os.Environ(), "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"), "NO_COLOR=1", "ESPALIER_PROGRAM="+filepath.Join(bin, "espalier"),
		"HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
}

// workflow returns what the steps of the workflow run: the action's script, with their inputs.
func workflow(t *testing.T) (g gates) {
	t.Helper()
	var file struct {
		Jobs map[string]struct {
			Steps []struct {
				Uses string
				With map[string]any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "crd-repository/.github/workflows/crds.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../action/run.sh")
	if err != nil {
		t.Fatal(err)
	}
	var steps [][]string
	for _, step := range file.Jobs["crds"].Steps {
		if !strings.HasPrefix(step.Uses, "espalier-dev/espalier@") {
			continue
		}
		input := func(name, otherwise string) string {
			if step.With[name] == nil {
				return otherwise
			}
			return fmt.Sprint(step.With[name])
		}
		steps = append(steps, []string{"env", "ESPALIER_COMMAND=" + input("command", "check"), "ESPALIER_PATHS=" + input("paths", ""), "ESPALIER_ARGS=" + input("args", ""), "bash", script})
	}
	if len(steps) != 3 {
		t.Fatalf("the workflow has %d steps with the action", len(steps))
	}
	return gates{steps[0], steps[1], steps[2]}
}

// hooks returns what pre-commit runs for the file of the CRD: the entry of each hook, with its arguments.
func hooks(t *testing.T) (g gates) {
	t.Helper()
	type hook struct {
		ID, Entry string
		Args      []string
		Pass      *bool `json:"pass_filenames"`
	}
	var known []hook
	if err := yaml.Unmarshal([]byte(read(t, "../.pre-commit-hooks.yaml")), &known); err != nil {
		t.Fatal(err)
	}
	entries := map[string]string{}
	for _, h := range known {
		entries[h.ID] = h.Entry
	}
	var file struct{ Repos []struct{ Hooks []hook } }
	if err := yaml.Unmarshal([]byte(read(t, "crd-repository/.pre-commit-config.yaml")), &file); err != nil {
		t.Fatal(err)
	}
	for _, repo := range file.Repos {
		for _, h := range repo.Hooks {
			if h.Entry == "" {
				h.Entry = entries[h.ID]
			}
			command := append(strings.Fields(h.Entry), h.Args...)
			if h.Pass == nil || *h.Pass {
				command = append(command, crdFile)
			}
			switch h.ID {
			case "espalier-check":
				g.check = command
			case "espalier-validate":
				g.validate = command
			case "espalier-diff":
				g.diff = command
			default:
				t.Errorf("no test of the hook %s", h.ID)
			}
		}
	}
	return g
}

// clone makes a repository of the folder and clones it, so that there is a branch origin/main.
func clone(t *testing.T, env []string) *repository {
	t.Helper()
	origin := &repository{t, t.TempDir(), env}
	if err := os.CopyFS(origin.dir, os.DirFS("crd-repository")); err != nil {
		t.Fatal(err)
	}
	origin.run(0, []string{"git", "init", "--quiet", "-b", "main"})
	origin.run(0, []string{"git", "add", "."})
	origin.run(0, []string{"git", "commit", "--quiet", "-m", "first"})
	r := &repository{t, t.TempDir(), env}
	r.run(0, []string{"git", "clone", "--quiet", origin.dir, "."})
	r.run(0, []string{"git", "checkout", "--quiet", "-b", "change"})
	return r
}

// run runs a command, which must exit with a code and print all of the texts.
func (r *repository) run(code int, command []string, texts ...string) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "env", command...) // env looks in the PATH of r.env
	cmd.Dir, cmd.Env = r.dir, r.env
	out, err := cmd.CombinedOutput()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%q: %v", command, err)
	}
	if got := cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("%q exits with %d, not with %d:\n%s", command, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(string(out), text) {
			r.t.Errorf("%q does not print %q:\n%s", command, text, out)
		}
	}
}

// change replaces a text of a file, which must be there.
func (r *repository) change(file, before, after string) {
	r.t.Helper()
	path := filepath.Join(r.dir, file)
	text := read(r.t, path)
	if !strings.Contains(text, before) {
		r.t.Fatalf("%s has no %q", file, before)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text, before, after, 1)), 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// reset undoes all changes.
func (r *repository) reset() {
	r.t.Helper()
	r.run(0, []string{"git", "checkout", "--quiet", "."})
}
