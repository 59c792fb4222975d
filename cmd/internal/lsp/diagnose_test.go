package lsp_test

import (
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/internal/lsp"
)

const crontabs = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: crontabs.stable.example.com
spec:
  group: stable.example.com
  names: {kind: CronTab, listKind: CronTabList, plural: crontabs, singular: crontab}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            description: Spec says when to run what.
            type: object
            required: [schedule]
            x-kubernetes-validations:
            - rule: self.replicas <= self.maxReplicas
              message: replicas must not exceed maxReplicas
            properties:
              schedule:
                description: Schedule is a time in the format of cron.
                type: string
                maxLength: 64
              policy:
                type: string
                enum: [Allow, Forbid, Replace]
                default: Allow
              suspend:
                type: boolean
              replicas:
                type: integer
                minimum: 0
                default: 1
              maxReplicas:
                type: integer
                default: 10
              ports:
                type: array
                maxItems: 8
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties:
                    name: {type: string, maxLength: 16}
                    port: {type: integer}
`

const crontab = `apiVersion: stable.example.com/v1
kind: CronTab
metadata:
  name: nightly
spec:
  schedule: "0 3 * * *"
  policy: Alow
`

func TestDiagnosticsAreThoseOfValidate(t *testing.T) {
	c := start(t, map[string]string{"crds/crontabs.yaml": crontabs}, nil)
	c.open("a.yaml", crontab)
	found := c.diagnostics("a.yaml", 1, has("value-enum"))
	d := found[0]
	if want := (lsp.Range{Start: lsp.Position{Line: 6, Character: 10}, End: lsp.Position{Line: 6, Character: 14}}); d.Range != want {
		t.Errorf("range is %v, want %v", d.Range, want)
	}
	if d.Source != "espalier" || d.Severity != 1 || !strings.Contains(d.Message, `Unsupported value: "Alow"`) || !strings.Contains(d.Message, `did you mean "Allow"?`) {
		t.Errorf("diagnostic is %+v", d)
	}
	if d.CodeDescription == nil || !strings.HasSuffix(d.CodeDescription.Href, "/docs/checks/value-enum.md") {
		t.Errorf("the code has no page: %+v", d.CodeDescription)
	}
	c.change("a.yaml", 2, change{&lsp.Range{Start: lsp.Position{Line: 6, Character: 12}, End: lsp.Position{Line: 6, Character: 12}}, "l"})
	c.diagnostics("a.yaml", 2, has(""))
}

func TestBuiltinKindsNeedNoCRD(t *testing.T) {
	c := start(t, nil, nil)
	c.open("d.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: A\ndatta: {}\n")
	c.diagnostics("d.yaml", 1, has("value-metadata field-unknown"))
}

func TestFilesThatAreNoManifests(t *testing.T) {
	c := start(t, nil, nil)
	c.open("docker-compose.yaml", "services:\n  web:\n    image: nginx\n")
	c.diagnostics("docker-compose.yaml", 1, has(""))
	c.open("chart.yaml", "a: {{ .Values.a }}\n{{- if x }}\nkind: b\n")
	c.diagnostics("chart.yaml", 1, has(""))
}

// What kustomize and Helm put together is no object yet.
func TestFragments(t *testing.T) {
	const part = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: web}\nspec: {replicas: 3}\n"
	c := start(t, map[string]string{
		"config/kustomization.yaml": "resources: [web.yaml]\npatches: [{path: patches/replicas.yaml}]\n",
		"chart/Chart.yaml":          "name: web\n",
	}, nil)
	for _, f := range []struct{ name, text, want string }{
		{"config/kustomization.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n", ""},
		{"config/patches/replicas.yaml", part, ""},
		{"chart/templates/web.yaml", part + "# {{ .Values.a }}\n", ""},
		{"config/crd.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: webs.example.com}\nspec: {conversion: {strategy: None}}\n", ""},
		{"config/web.yaml", part, "value-invalid value-required value-required"},
	} {
		c.open(f.name, f.text)
		c.diagnostics(f.name, 1, has(f.want))
	}
}

func TestRulesOfCRDsAreMarkedAtTheToken(t *testing.T) {
	c := start(t, nil, nil)
	text := strings.Replace(crontabs, "- rule: self.replicas <= self.maxReplicas", "- rule: |-\n                self.replicas <=\n                self.maxReplica + 1", 1)
	c.open("crd.yaml", text)
	found := c.diagnostics("crd.yaml", 1, has("rule-expression"))
	from, to := found[0].Range.Start, found[0].Range.End
	lines := strings.Split(text, "\n")
	// CEL reports a field that does not exist at the operator that selects it.
	if got := lines[from.Line][from.Character:]; from.Line != to.Line || !strings.HasPrefix(got, ".maxReplica") && !strings.HasPrefix(got, "maxReplica") {
		t.Errorf("marked is %v: %q", found[0].Range, got)
	}
}

func TestOneBadDocumentDoesNotHideOthers(t *testing.T) {
	c := start(t, map[string]string{"crds/crontabs.yaml": crontabs}, nil)
	c.open("a.yaml", "a: [\n---\n"+crontab+"---\n"+crontab)
	found := c.diagnostics("a.yaml", 1, has("syntax value-enum value-enum"))
	if found[1].Range.Start.Line != 8 || found[2].Range.Start.Line != 16 {
		t.Errorf("places are %v and %v", found[1].Range, found[2].Range)
	}
}

func TestLinesAboveMoveDiagnostics(t *testing.T) {
	c := start(t, map[string]string{"crds/crontabs.yaml": crontabs}, nil)
	c.open("a.yaml", "# 😀\n---\n"+crontab)
	if found := c.diagnostics("a.yaml", 1, has("value-enum")); found[0].Range.Start.Line != 8 {
		t.Fatalf("place is %v", found[0].Range)
	}
	at := lsp.Position{Line: 0, Character: 4} // after the surrogate pair
	c.change("a.yaml", 2, change{&lsp.Range{Start: at, End: at}, "\r\n#\r\n#"})
	if found := c.diagnostics("a.yaml", 2, has("value-enum")); found[0].Range.Start.Line != 10 {
		t.Fatalf("place is %v", found[0].Range)
	}
}

func TestAnOpenCRDCountsBeforeItsFile(t *testing.T) {
	c := start(t, map[string]string{"crd.yaml": crontabs}, nil)
	c.open("a.yaml", crontab)
	c.diagnostics("a.yaml", 1, has("value-enum"))
	c.open("crd.yaml", strings.Replace(crontabs, "enum: [Allow,", "enum: [Allow, Alow,", 1))
	c.diagnostics("crd.yaml", 1, nil)
	c.diagnostics("a.yaml", 1, has(""))
	// Half-typed YAML leaves the last good CRD in use.
	end := lsp.Position{Line: 1000}
	c.change("crd.yaml", 2, change{&lsp.Range{Start: end, End: end}, "  a: [\n"})
	c.diagnostics("crd.yaml", 2, has("syntax"))
	c.diagnostics("a.yaml", 1, has(""))
	c.notify("textDocument/didClose", map[string]any{"textDocument": map[string]any{"uri": c.uri("crd.yaml")}})
	c.diagnostics("a.yaml", 1, has("value-enum"))
}

func TestWatchedFilesAndSettings(t *testing.T) {
	c := start(t, nil, nil)
	c.until("the registration of watchers", func() bool { return len(c.asked) == 1 && c.asked[0] == "client/registerCapability" })
	c.open("a.yaml", crontab)
	c.diagnostics("a.yaml", 1, has("crd-missing"))
	c.write("crd.yaml", crontabs)
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []map[string]any{{"uri": c.uri("crd.yaml"), "type": 1}}})
	c.diagnostics("a.yaml", 1, has("value-enum"))
	c.write(".espalier.yaml", "checks: {value-enum: warning}\n")
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []map[string]any{{"uri": c.uri(".espalier.yaml"), "type": 1}}})
	c.diagnostics("a.yaml", 1, func(all []lsp.Diagnostic) bool { return len(all) == 1 && all[0].Severity == 2 })
	c.write(".espalier.yaml", "checks: {value-enum: of}\n")
	c.notify("workspace/didChangeWatchedFiles", map[string]any{"changes": []map[string]any{{"uri": c.uri(".espalier.yaml"), "type": 1}}})
	c.until("a message about the settings", func() bool {
		return len(c.messages) > 0 && strings.Contains(c.messages[0], "use error, warning, info or off")
	})
}

func TestEditorSettings(t *testing.T) {
	elsewhere := start(t, map[string]string{"crd.yaml": crontabs}, nil).dir
	c := start(t, nil, map[string]any{"espalier": map[string]any{"crds": []string{elsewhere}}})
	c.open("a.yaml", crontab)
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"yaml": map[string]any{"validate": true}}})
	c.diagnostics("a.yaml", 1, has("value-enum"))
	c.notify("workspace/didChangeConfiguration", map[string]any{"settings": map[string]any{"espalier": map[string]any{"ignoreMissing": true}}})
	c.diagnostics("a.yaml", 1, has(""))
}

func TestLifecycle(t *testing.T) {
	c := start(t, nil, nil)
	if err := c.try("initialize", map[string]any{}, nil); err == nil {
		t.Error("the second initialize is accepted")
	}
	if err := c.try("textDocument/nothing", map[string]any{}, nil); err == nil || !strings.Contains(err.Error(), "there is no method") {
		t.Errorf("a method that does not exist: %v", err)
	}
	c.call("shutdown", nil, nil)
	c.notify("exit", nil)
	if code := <-c.ended; code != 0 {
		t.Errorf("the exit code is %d: %s", code, c.err)
	}
}
