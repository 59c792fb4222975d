package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestPreCommitHooks runs the entries of .pre-commit-hooks.yaml as pre-commit does:
// with the names of changed files behind them.
func TestPreCommitHooks(t *testing.T) {
	text, err := os.ReadFile("../../../.pre-commit-hooks.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var hooks []struct {
		ID, Entry, Language, Files string
		Args                       []string
		Dependencies               []string `json:"additional_dependencies"`
	}
	if err := yaml.Unmarshal(text, &hooks); err != nil {
		t.Fatal(err)
	}
	if len(hooks) == 0 {
		t.Fatal("no hooks")
	}
	for _, h := range hooks {
		if !slices.Equal(h.Dependencies, []string{"./cmd/espalier"}) {
			t.Errorf("%s installs %q and not the program", h.ID, h.Dependencies)
		}
	}
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"object.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
		"config/crd/a.yaml": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.example.com},
			spec: {group: example.com, names: {plural: as, kind: A}, scope: Cluster,
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(strings.ReplaceAll(text, "\t", " ")), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range hooks {
		words := strings.Fields(h.Entry)
		if words[0] != "espalier" || h.Language != "golang" || !regexp.MustCompile(h.Files).MatchString("config/crd/a.yaml") {
			t.Errorf("%+v", h)
		}
		var out bytes.Buffer
		if code := Main(t.Context(), "espalier", slices.Concat(words[1:], h.Args, []string{"object.yaml"}), nil, &out, &out); code != ExitNothing {
			t.Errorf("%s: exit code %d for a file that is none of its business: %s", h.ID, code, &out)
		}
	}
}

// TestAction holds the inputs of the GitHub Action against the commands.
func TestAction(t *testing.T) {
	text, err := os.ReadFile("../../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Description, Default string }
		Runs   struct {
			Steps []struct {
				Run string
				Env map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	a := &App{Name: "espalier"}
	root := newRoot(a)
	a.complete(root, commands)
	for _, name := range regexp.MustCompile(`[a-z]+`).FindAllString(strings.Replace(action.Inputs["command"].Description, " or ", " ", 1), -1) {
		cmd, _, err := root.Find([]string{name})
		if err != nil || cmd.Name() != name {
			t.Errorf("the action offers %s: %v", name, err)
			continue
		}
		if cmd.Flags().Lookup("output") == nil {
			t.Errorf("%s has no -o", name)
		}
	}
	for _, step := range action.Runs.Steps {
		if strings.Contains(step.Run, "${{") {
			t.Errorf("an input is part of a shell command: %s", step.Run)
		}
	}
}
