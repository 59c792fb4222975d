package hooks

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var enabled = flag.Bool("hooks", false, "run the hooks with pre-commit, which must be in the PATH")

// root is this repository.
const root = "../.."

// repository is one that uses the hooks.
type repository struct {
	t   *testing.T
	dir string
	env []string
}

func TestHooks(t *testing.T) {
	if !*enabled {
		t.Skip("it needs pre-commit and builds the program: `make hooks` runs it, with -hooks")
	}
	if _, err := exec.LookPath("pre-commit"); err != nil {
		t.Fatalf("%v: install it with `apt install pre-commit` or `pipx install pre-commit`", err)
	}
	env := environment(t)
	hooks, commit := hookRepository(t, env)
	open := func(t *testing.T, name, config string) *repository {
		return newRepository(t, env, name, fmt.Sprintf("repos:\n- repo: %s\n  rev: %s\n  hooks:\n%s", hooks, commit, config))
	}
	t.Run("kubebuilder", func(t *testing.T) {
		kubebuilder(open(t, "kubebuilder", "  - id: espalier-check\n  - id: espalier-validate\n"))
	})
	t.Run("kubebuilder all samples", func(t *testing.T) {
		allSamples(open(t, "kubebuilder", `  - id: espalier-validate
    files: ^config/(crd|samples)/
    args: [--crd, config/crd, config/samples]
    pass_filenames: false
`))
	})
	t.Run("chart", func(t *testing.T) {
		chart(open(t, "chart", "  - id: espalier-check\n  - id: espalier-validate\n    args: [--crd, crds]\n"))
	})
	t.Run("compose", func(t *testing.T) {
		compose(open(t, "compose", "  - id: espalier-check\n  - id: espalier-validate\n    args: [--crd, deploy/crd.yaml]\n"))
	})
}

const (
	checkPassed    = "espalier check...........................................................Passed"
	checkFailed    = "espalier check...........................................................Failed"
	checkNoFiles   = "espalier check.......................................(no files to check)Skipped"
	validatePassed = "espalier validate........................................................Passed"
	validateFailed = "espalier validate........................................................Failed"
)

func kubebuilder(r *repository) {
	const crd, sample = "config/crd/bases/batch.example.com_cronjobs.yaml", "config/samples/batch_v1_cronjob.yaml"
	r.all(0, checkPassed, validatePassed)

	// One file changed.
	r.change(crd, "When to run", "At which times to run")
	r.changed(0, checkPassed, validatePassed)
	r.change(sample, "*/1 * * * *", "*/5 * * * *")
	r.changed(0, checkPassed, validatePassed)
	r.change("config/default/manager_webhook_patch.yaml", "9443", "9444")
	r.changed(0, checkPassed, validatePassed)
	r.change("Makefile", "go test", "go test -race")
	r.changed(0, checkNoFiles)

	// A CRD that servers refuse: with all files, with the change alone, and in a real commit.
	r.change(crd, "type: boolean", "type: bool")
	broken := []string{checkFailed, crd + ":36:23: error: spec.suspend type: ", "exit code: 1"}
	r.changed(1, broken...)
	r.all(1, broken...)
	r.command(0, "pre-commit", "install")
	r.command(1, "git", "commit", "-m", "broken").has(broken...)
	// The sample did not change, its CRD cannot be used.
	r.change(sample, "*/5 * * * *", "*/6 * * * *")
	r.changed(1, checkFailed, validateFailed, sample+":2:7: error: the CRD of kind \"CronJob\" is invalid [crd-invalid]")
	r.reset()

	// A CRD that is not YAML.
	r.change(crd, "  scope: Namespaced", " scope: Namespaced")
	r.changed(1, checkFailed, crd, "[syntax]")
	r.reset()

	// What kubectl refuses: a misspelled field of the CRD.
	r.change(crd, "minLength", "minLenght")
	r.changed(1, checkFailed, crd+":33:28: error: spec.schedule minLenght: ", "[unknown-keyword]")
	r.reset()

	// Samples that the CRD refuses.
	r.change(sample, `schedule: "*/5 * * * *"`, `schedule: ""`)
	r.changed(1, checkPassed, validateFailed, sample+":8:13: error: spec.schedule: ", "[value-length]", "exit code: 1")
	r.reset()
	r.change(sample, "schedule:", "shedule:")
	r.changed(1, checkPassed, validateFailed, sample+":8:3: error: ", `unknown field "spec.shedule"`, `did you mean "schedule"?`)
	r.command(1, "git", "commit", "-m", "refused").has(validateFailed)
	r.reset()

	// A built-in kind.
	r.change("config/manager/manager.yaml", "replicas: 1", "replicas: one")
	r.changed(1, checkPassed, validateFailed, "config/manager/manager.yaml:12:13: error: ")
	r.reset()

	// What passes can be committed.
	r.change(sample, "*/5 * * * *", "*/9 * * * *")
	r.command(0, "git", "commit", "-m", "fine").has(checkPassed, validatePassed)
}

// allSamples: a change of a CRD alone is held against all samples, as docs/guides/ci.md shows.
func allSamples(r *repository) {
	const crd = "config/crd/bases/batch.example.com_cronjobs.yaml"
	r.all(0, validatePassed)
	r.change(crd, "            - schedule\n", "            - schedule\n            - suspend\n")
	r.changed(1, validateFailed, "config/samples/batch_v1_cronjob.yaml:7:1: error: spec.suspend: Required value")
	r.reset()
	r.change(crd, "When to run", "At which times to run")
	r.changed(0, validatePassed)
}

func chart(r *repository) {
	r.all(0, checkPassed, validatePassed)
	for file, change := range map[string][2]string{
		"Chart.yaml":                           {"0.1.0", "0.2.0"},
		"values.yaml":                          {"replicaCount: 1", "replicaCount: 2"},
		"templates/deployment.yaml":            {"replicas:", "minReadySeconds: 1\n  replicas:"},
		"templates/configmap.yaml":             {"host:", "name:"},
		"templates/site.yaml":                  {"name: default", "name: main"},
		"templates/tests/test-connection.yaml": {"busybox", "curl"},
		"crds/sites.yaml":                      {"253", "200"},
		"examples/site.yaml":                   {"443", "8443"},
	} {
		r.change(file, change[0], change[1])
		r.changed(0, checkPassed, validatePassed)
	}
	r.change("crds/sites.yaml", "maximum: 65535", "maximum: high")
	r.changed(1, checkFailed, "crds/sites.yaml:21:58: error: spec.port maximum: must be a number")
	r.reset()
	r.change("examples/site.yaml", "port: 8443", "port: 70000")
	r.changed(1, checkPassed, validateFailed, "examples/site.yaml:7:9: error: spec.port: ", "less than or equal to 65535")
}

func compose(r *repository) {
	r.all(0, checkPassed, validatePassed)
	for file, change := range map[string][2]string{
		"docker-compose.yml":              {"nginx", "caddy"},
		"tsconfig.json":                   {"es2022", "es2023"},
		".devcontainer/devcontainer.json": {"shop", "store"},
		".github/workflows/ci.yml":        {"make test", "npm test"},
		".drone.yml":                      {"default", "main"},
		"package.json":                    {"1.0.0", "1.0.1"},
		"deploy/kubeconfig.yaml":          {"users: []\n", ""},
		"deploy/crd.yaml":                 {"253", "200"},
		"deploy/shop.yaml":                {"443", "8443"},
	} {
		r.change(file, change[0], change[1])
		r.changed(0, checkPassed, validatePassed)
	}
	r.change("deploy/crd.yaml", "plural: sites", "plural: Sites")
	r.changed(1, checkFailed, "deploy/crd.yaml:7:31: error: spec.names.plural: ")
	r.reset()
	r.change("deploy/shop.yaml", "host: shop.example.com", "host: [shop.example.com]")
	r.changed(1, checkPassed, validateFailed, "deploy/shop.yaml:6:3: error: spec.host: ")
}

// environment is that of a user: no settings of this repository's build and of hooks that may run this test, but the caches of Go, so that
// modules are not downloaded for each run.
func environment(t *testing.T) []string {
	t.Helper()
	env := slices.DeleteFunc(os.Environ(), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return name == "GOWORK" || name == "GOBIN" || name == "GOPATH" || strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "PRE_COMMIT")
	})
	for _, name := range []string{"GOMODCACHE", "GOCACHE"} {
		value, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(value)))
	}
	for _, v := range []string{"NAME=test", "EMAIL=test@example.com"} {
		env = append(env, "GIT_AUTHOR_"+v, "GIT_COMMITTER_"+v)
	}
	return append(env, "PRE_COMMIT_HOME="+t.TempDir(), "PRE_COMMIT_COLOR=never", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_SYSTEM="+os.DevNull)
}

// hookRepository clones this repository, commits what the work tree has beyond its commit, and returns the folder and the commit.
func hookRepository(t *testing.T, env []string) (dir, commit string) {
	t.Helper()
	clone := &repository{t: t, dir: filepath.Join(t.TempDir(), "espalier"), env: env}
	source, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	here := &repository{t: t, dir: source, env: env}
	here.command(0, "git", "clone", "--quiet", "--no-hardlinks", source, clone.dir)
	for line := range strings.SplitSeq(here.command(0, "git", "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames").text, "\x00") {
		if len(line) < 4 {
			continue
		}
		from, to := filepath.Join(source, line[3:]), filepath.Join(clone.dir, line[3:])
		data, err := os.ReadFile(from)
		if errors.Is(err, os.ErrNotExist) {
			err = os.Remove(to)
		} else if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.WriteFile(to, data, 0o644))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	clone.command(0, "git", "add", "--all")
	clone.command(0, "git", "commit", "--quiet", "--allow-empty", "-m", "work tree")
	return clone.dir, strings.TrimSpace(clone.command(0, "git", "rev-parse", "HEAD").text)
}

func newRepository(t *testing.T, env []string, name, config string) *repository {
	t.Helper()
	r := &repository{t: t, dir: t.TempDir(), env: env}
	err := errors.Join(os.CopyFS(r.dir, os.DirFS(filepath.Join("testdata", name))),
		os.WriteFile(filepath.Join(r.dir, ".pre-commit-config.yaml"), []byte(config), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	r.command(0, "git", "init", "--quiet")
	r.command(0, "git", "add", "--all", "--force")
	r.command(0, "git", "commit", "--quiet", "-m", name)
	return r
}

// output is what a command printed.
type output struct {
	t    *testing.T
	text string
}

func (o output) has(parts ...string) {
	o.t.Helper()
	for _, part := range parts {
		if !strings.Contains(o.text, part) {
			o.t.Errorf("no %q in\n%s", part, o.text)
		}
	}
}

func (r *repository) command(want int, name string, args ...string) output {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), name, args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	text, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	if code := cmd.ProcessState.ExitCode(); code != want {
		r.t.Fatalf("%s %v: exit code %d, not %d:\n%s", name, args, code, want, text)
	}
	return output{r.t, string(text)}
}

// all runs the hooks on all files, and changed on the files whose change is added.
func (r *repository) all(want int, parts ...string) {
	r.t.Helper()
	r.command(want, "pre-commit", "run", "--all-files").has(parts...)
}

func (r *repository) changed(want int, parts ...string) {
	r.t.Helper()
	r.command(want, "pre-commit", "run").has(parts...)
	if want == 0 {
		r.command(0, "git", "commit", "--quiet", "--no-verify", "-m", "change")
	}
}

// change replaces a text in a file and adds the change.
func (r *repository) change(file, from, to string) {
	r.t.Helper()
	path := filepath.Join(r.dir, filepath.FromSlash(file))
	data, err := os.ReadFile(path)
	if err != nil {
		r.t.Fatal(err)
	}
	if !strings.Contains(string(data), from) {
		r.t.Fatalf("%s has no %q", file, from)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(data), from, to, 1)), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.command(0, "git", "add", file)
}

// reset takes changes back that are not committed.
func (r *repository) reset() {
	r.t.Helper()
	r.command(0, "git", "reset", "--quiet", "--hard")
}
