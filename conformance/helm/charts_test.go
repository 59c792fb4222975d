package helm

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const crdTemplate = `{{- if .Values.crds.enabled }}
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: webs.{{ .Values.group }}
  labels: {release: {{ .Release.Name }}}
spec:
  group: {{ .Values.group }}
  scope: Namespaced
  names: {plural: webs, kind: Web}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              replicas: {type: integer, maximum: {{ .Values.maxReplicas }}}
              {{- range .Values.fields }}
              {{ . }}: {type: string}
              {{- end }}
{{- end }}
`

const netCRD = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: nets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: nets, kind: Net}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`

func chart(version, values string) map[string]string {
	return map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: web\nversion: " + version + "\n",
		"values.yaml":        values,
		"templates/crd.yaml": crdTemplate,
		"crds/nets.yaml":     netCRD,
	}
}

// user runs espalier in a folder, with a PATH of its own.
type user struct {
	t    *testing.T
	dir  string
	path string
}

// newUser makes a folder with two versions of a chart.
func newUser(t *testing.T) *user {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	helm := filepath.Join(root, ".bin", "helm")
	if _, err := os.Stat(helm); err != nil {
		t.Fatal("no .bin/helm: run `make charts`, which builds it")
	}
	bin := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-C", root, "-o", filepath.Join(bin, "espalier"), "./cmd/espalier")
	build.Env = append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.Symlink(helm, filepath.Join(bin, "helm")); err != nil {
		t.Fatal(err)
	}
	u := &user{t: t, dir: t.TempDir(), path: bin + ":" + os.Getenv("PATH")}
	u.write("old", chart("1.0.0", "group: example.com\nmaxReplicas: 10\nfields: [image, note]\ncrds: {enabled: true}\n"))
	u.write("new", chart("1.1.0", "group: example.com\nmaxReplicas: 5\nfields: [image]\ncrds: {enabled: true}\n"))
	return u
}

func (u *user) write(dir string, files map[string]string) {
	u.t.Helper()
	for name, text := range files {
		path := filepath.Join(u.dir, dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			u.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			u.t.Fatal(err)
		}
	}
}

func (u *user) run(program string, args ...string) (string, int) {
	u.t.Helper()
	path := program
	for dir := range strings.SplitSeq(u.path, ":") {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			path = filepath.Join(dir, program)
			break
		}
	}
	cmd := exec.CommandContext(u.t.Context(), path, args...)
	cmd.Dir = u.dir
	cmd.Env = append(os.Environ(), "PATH="+u.path, "HOME="+u.t.TempDir(), "NO_COLOR=1", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		u.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// espalier runs a command that must end with a code and print all that is wanted.
func (u *user) espalier(code int, want []string, args ...string) string {
	u.t.Helper()
	out, got := u.run("espalier", args...)
	if got != code {
		u.t.Errorf("espalier %s: exit code %d, not %d\n%s", strings.Join(args, " "), got, code, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			u.t.Errorf("espalier %s: no %q in\n%s", strings.Join(args, " "), text, out)
		}
	}
	return out
}

// espalier diff compares what Helm makes of two versions of a chart: templates with values, and the folder crds.
func TestDiffOfCharts(t *testing.T) {
	u := newUser(t)
	u.espalier(1, []string{"[field-removed]", "spec.note", "spec.replicas", "maximum", "in 2 CRDs"}, "diff", "old", "new")
	u.espalier(0, []string{"nothing found in 2 CRDs"}, "diff", "old", "old")

	// Values of the user count for both sides.
	u.espalier(0, []string{"nothing found in 1 CRD"}, "diff", "old", "new", "--set", "crds.enabled=false")
	u.write(".", map[string]string{"more.yaml": "maxReplicas: 3\nfields: [image]\n"})
	u.espalier(0, []string{"nothing found in 2 CRDs"}, "diff", "old", "new", "--values", "more.yaml")

	// A packaged chart.
	if out, code := u.run("helm", "package", "old"); code != 0 {
		t.Fatal(out)
	}
	u.espalier(1, []string{"spec.note", "note: web-1.0.0.tgz:"}, "diff", "web-1.0.0.tgz", "new")
}

// espalier diff --git renders the chart as it was at a revision.
func TestDiffOfChartWithRevision(t *testing.T) {
	u := newUser(t)
	for _, args := range [][]string{{"init", "-q", "."}, {"add", "."}, {"commit", "-q", "-m", "first"}} {
		if out, code := u.run("git", args...); code != 0 {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	u.espalier(0, []string{"nothing found in 2 CRDs"}, "diff", "--git", "HEAD", "old")
	u.write("old", map[string]string{"values.yaml": "group: example.com\nmaxReplicas: 10\nfields: [image]\ncrds: {enabled: true}\n"})
	u.espalier(1, []string{"[field-removed]", "spec.note", "note: HEAD:old:"}, "diff", "--git", "HEAD", "old")

	// The error is about the chart of the revision, not about a folder that exists no more.
	u.write("old", map[string]string{"templates/crd.yaml": "{{ .Values.group "})
	for _, args := range [][]string{{"add", "."}, {"commit", "-q", "-m", "broken"}} {
		if out, code := u.run("git", args...); code != 0 {
			t.Fatalf("git %v: %s", args, out)
		}
	}
	out := u.espalier(2, []string{"render the chart HEAD:old: ", "templates/crd.yaml:1", "unclosed action"}, "diff", "--git", "HEAD", "old")
	if strings.Contains(out, "espalier-chart-") {
		t.Errorf("the error names a temporary folder:\n%s", out)
	}
}

// Errors of Helm say which chart, what failed, and what to do.
func TestDiffOfBrokenCharts(t *testing.T) {
	u := newUser(t)
	u.write("new", map[string]string{"templates/crd.yaml": "{{ if .Values.group }}\nkind: CustomResourceDefinition\n"})
	u.espalier(2, []string{"render the chart new: ", "templates/crd.yaml", "unexpected EOF", "To continue, correct the template"}, "diff", "old", "new")
	u.write("new", map[string]string{"templates/crd.yaml": `{{ required "set the owner" .Values.owner }}`})
	u.espalier(2, []string{"render the chart new: ", "templates/crd.yaml", "set the owner", "give values that it needs with --values or --set"}, "diff", "old", "new")
	u.write("new", map[string]string{"templates/crd.yaml": crdTemplate, "Chart.yaml": "apiVersion: v2\nname: web\nversion: 1.1.0\ndependencies: [{name: other, version: 1.0.0, repository: https://example.com}]\n"})
	u.espalier(2, []string{"render the chart new: ", "other", "helm dependency build"}, "diff", "old", "new")

	u.path = strings.SplitN(u.path, ":", 2)[0]
	if err := os.Remove(filepath.Join(u.path, "helm")); err != nil {
		t.Fatal(err)
	}
	u.espalier(2, []string{"render the chart old: helm is not installed, or not in PATH", "To continue, install Helm, see https://helm.sh/docs/intro/install"}, "diff", "old", "new")
}
