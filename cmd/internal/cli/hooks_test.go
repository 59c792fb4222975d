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
		"docker-compose.yml":        "services:\n  web:\n    image: nginx\n",
		".github/workflows/ci.yaml": "on: [push]\njobs: {}\n",
		"chart/values.yaml":         "replicas: 1\n",
		"kustomization.yaml":        "resources: [a.yaml]\n",
		"list.yaml":                 "- a\n- b\n",
		"chart/templates/d.yaml":    "apiVersion: v1\nkind: Secret\nmetadata:\n  name: {{ .Release.Name }}\n  {{- if .Values.a }}\n  labels: {}\n  {{- end }}\n",
		"tsconfig.json":             "{\n  // strict\n  \"compilerOptions\": {\"strict\": true,},\n}\n",
		"third.yaml":                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {}\n",
		"empty.yaml":                "# nothing\n",
		"chart/Chart.yaml":          "apiVersion: v2\nname: web\nversion: 0.1.0\n",
		"chart/templates/q.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: '{{ .Values.a }}'}\nunknown: '{{ .Values.b }}'\n",
		"quoted.yaml":               "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ name }}'}\n",
		".drone.yml":                "kind: pipeline\ntype: docker\nname: default\n",
		"kubeconfig.yaml":           "apiVersion: v1\nkind: Config\nclusters: []\n",
		"config/crd/patches/ca.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"metadata: {name: as.example.com, annotations: {cert-manager.io/inject-ca-from: a/b}}\n",
		"config/crd/patches/webhook.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"metadata: {name: as.example.com}\nspec: {conversion: {strategy: Webhook}}\n",
		"config/default/kustomization.yaml": "resources: [../crd]\npatches:\n- path: sub/replicas.yaml\n- patch: |-\n    - op: remove\n      path: /a\n" +
			"patchesStrategicMerge: [version.yaml]\n",
		"config/default/sub/replicas.yaml": "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3}\n",
		"config/default/version.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
			"metadata: {name: as.example.com}\nspec: {versions: [{name: v1, deprecated: true}]}\n",
		"copy/one.yaml": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: bs.example.com},
			spec: {group: example.com, names: {plural: bs, kind: B}, scope: Cluster,
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`,
		"copy/two.yaml": `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: bs.example.com},
			spec: {group: example.com, names: {plural: bs, kind: B}, scope: Namespaced,
			versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}}`,
		"copy/object.yaml":  "apiVersion: example.com/v1\nkind: B\nmetadata: {name: b}\n",
		"a/replicas.yaml":   "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 3}\n",
		"a/misspelled.yaml": "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: a, labels: {a: b}}\nsepc: {}\n",
		"a/wrong.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: A_B}\n",
		"a/wrong-crd.yaml":  "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: A_B}\n",
		"a/broken.yaml":     "apiVersion: v1\nkind: [\n",
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
		run := func(want int, files ...string) {
			var out bytes.Buffer
			if code := Main(t.Context(), "espalier", slices.Concat(words[1:], h.Args, files), nil, &out, &out); code != want {
				t.Errorf("%s: exit code %d for %v: %s", h.ID, code, files, &out)
			}
		}
		// Files that are none of its business: one by one, and together.
		ordinary := []string{"object.yaml", "config/crd/a.yaml", "docker-compose.yml", ".github/workflows/ci.yaml", "chart/values.yaml",
			"kustomization.yaml", "list.yaml", "chart/templates/d.yaml", "tsconfig.json", "third.yaml", "empty.yaml",
			"chart/Chart.yaml", "chart/templates/q.yaml", "quoted.yaml", ".drone.yml", "kubeconfig.yaml", "config/crd/patches/ca.yaml", "config/crd/patches/webhook.yaml",
			"config/default/kustomization.yaml", "config/default/sub/replicas.yaml", "config/default/version.yaml", "copy/one.yaml", "copy/two.yaml", "copy/object.yaml"}
		for _, file := range ordinary {
			run(ExitNothing, file)
		}
		run(ExitNothing, ordinary...)
		// Mistakes in files that are.
		run(ExitFindings, append(ordinary, "a/broken.yaml")...)
		for _, wrong := range map[string][]string{
			"espalier-check":    {"a/wrong-crd.yaml", "a/misspelled.yaml"},
			"espalier-validate": {"a/wrong.yaml", "a/replicas.yaml"},
		}[h.ID] {
			run(ExitFindings, append(ordinary, wrong)...)
		}
		// A repository with the folder and without CRDs, and one without the folder.
		if err := os.Rename("config/crd/a.yaml", "config/a.yaml"); err != nil {
			t.Fatal(err)
		}
		run(ExitNothing, "object.yaml")
		if err := os.Rename("config/a.yaml", "config/crd/a.yaml"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename("config", "config-away"); err != nil {
			t.Fatal(err)
		}
		run(ExitNothing, "object.yaml")
		if err := os.Rename("config-away", "config"); err != nil {
			t.Fatal(err)
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
	scripts := 0
	for _, step := range action.Runs.Steps {
		if step.Run == "" {
			continue
		}
		scripts++
		// Without an input in a shell command, and with what the script reads.
		name, ok := strings.CutPrefix(strings.TrimSuffix(step.Run, `"`), `bash "$GITHUB_ACTION_PATH/action/`)
		script, err := os.ReadFile("../../../action/" + name)
		if !ok || err != nil {
			t.Errorf("the step %q runs no script of the action: %v", step.Run, err)
		}
		for variable := range step.Env {
			if !regexp.MustCompile(`\$\{?` + variable + `\b`).Match(script) {
				t.Errorf("%s does not read %s", name, variable)
			}
		}
	}
	if scripts != 2 {
		t.Errorf("the action runs %d scripts", scripts)
	}
	for input := range action.Inputs {
		if !strings.Contains(string(text), "inputs."+input) {
			t.Errorf("the action does not use the input %s", input)
		}
	}
}
