package lsp_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/internal/lsp"
)

// cursor returns a text without the mark |, and where the mark was.
func cursor(t testing.TB, text string) (string, lsp.Position) {
	t.Helper()
	before, after, ok := strings.Cut(text, "█")
	if !ok {
		t.Fatalf("no cursor in %q", text)
	}
	line := strings.Count(before, "\n")
	return before + after, lsp.Position{Line: line, Character: len(before) - (strings.LastIndex(before, "\n") + 1)}
}

func (c *client) at(name string, p lsp.Position) map[string]any {
	return map[string]any{"textDocument": map[string]any{"uri": c.uri(name)}, "position": p}
}

// ready waits until the server knows the CRDs of the folder.
func (c *client) ready() {
	c.t.Helper()
	c.open("ready.yaml", crontab)
	c.diagnostics("ready.yaml", 1, has("value-enum"))
}

func (c *client) complete(text string) []lsp.CompletionItem {
	c.t.Helper()
	text, at := cursor(c.t, text)
	c.open("x.yaml", text)
	var list struct{ Items []lsp.CompletionItem }
	c.call("textDocument/completion", c.at("x.yaml", at), &list)
	slices.SortStableFunc(list.Items, func(a, b lsp.CompletionItem) int { return strings.Compare(a.SortText, b.SortText) })
	return list.Items
}

func labels(items []lsp.CompletionItem) string {
	var all []string
	for _, i := range items {
		all = append(all, i.Label)
	}
	return strings.Join(all, " ")
}

const head = "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata:\n  name: a\n"

func TestCompletion(t *testing.T) {
	c := start(t, map[string]string{"crd.yaml": crontabs}, nil)
	c.ready()
	for _, tt := range []struct{ name, text, want string }{
		{"fields", head + "spec:\n  █", "schedule maxReplicas policy ports replicas suspend"},
		{"fields that are not set yet", head + "spec:\n  schedule: x\n  po█\n  suspend: true\n", "maxReplicas policy ports replicas"},
		{"before others", head + "spec:\n  █\n  suspend: true\n", "schedule maxReplicas policy ports replicas"},
		{"top", head + "█", "spec"},
		{"enum", head + "spec:\n  policy: █", "Allow Forbid Replace"},
		{"enum, half typed", head + "spec:\n  policy: Fo█\n", "Allow Forbid Replace"},
		{"boolean", head + "spec:\n  suspend: █\n", "true false"},
		{"default", head + "spec:\n  replicas: █\n", "1"},
		{"key of a list first", head + "spec:\n  ports:\n  - █", "name port"},
		{"second item", head + "spec:\n  ports:\n  - name: a\n    port: 1\n  - name: b\n    █", "port"},
		{"broken lines above", head + "spec:\n  schedule: \"x\n  policy: [\n  █", "maxReplicas ports replicas suspend"},
		{"flow", head + "spec: {schedule: x, po█}", "maxReplicas policy ports replicas suspend"},
		{"metadata", "apiVersion: stable.example.com/v1\nkind: CronTab\nmetadata:\n  name: x\n  lab█", ""},
		{"kind", "apiVersion: stable.example.com/v1\nkind: █\n", "CronTab"},
		{"apiVersion", "apiVersion: █\nkind: CronTab\n", "stable.example.com/v1"},
		{"empty document", "█", "apiVersion kind metadata"},
		{"second document", crontab + "---\n" + head + "spec:\n  ports: []\n  █", "schedule maxReplicas policy replicas suspend"},
		{"list", "apiVersion: v1\nkind: List\nitems:\n- apiVersion: stable.example.com/v1\n  kind: CronTab\n  spec:\n    policy: █\n", "Allow Forbid Replace"},
		{"text of a block", head + "spec:\n  schedule: |\n    a█\n", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.t = t
			got := labels(c.complete(tt.text))
			if tt.name == "metadata" {
				if !strings.Contains(got, "annotations") || !strings.Contains(got, "labels") || strings.Contains(" "+got+" ", " name ") {
					t.Errorf("proposed: %s", got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("proposed: %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCompletionEdits(t *testing.T) {
	c := start(t, map[string]string{"crd.yaml": crontabs}, nil)
	c.ready()
	items := c.complete(head + "spec:\n  po█\n")
	i := slices.IndexFunc(items, func(i lsp.CompletionItem) bool { return i.Label == "policy" })
	if edit := items[i].TextEdit; edit.NewText != "policy: " || edit.Range.Start.Character != 2 || edit.Range.End.Character != 4 {
		t.Errorf("the edit is %+v", edit)
	}
	if doc := items[i].Documentation; doc == nil || !strings.Contains(doc.Value, "`\"Forbid\"`") {
		t.Errorf("the documentation is %+v", doc)
	}
	json := c.complete(`{"apiVersion": "stable.example.com/v1", "kind": "CronTab", "spec": {"schedule": "x", "po█"}}`)
	j := slices.IndexFunc(json, func(i lsp.CompletionItem) bool { return i.Label == "policy" })
	if j < 0 || json[j].TextEdit.NewText != `"policy": ` || json[j].TextEdit.Range.End.Character-json[j].TextEdit.Range.Start.Character != 4 {
		t.Errorf("proposed in JSON: %+v", json)
	}
	i = slices.IndexFunc(items, func(i lsp.CompletionItem) bool { return i.Label == "ports" })
	if edit := items[i].TextEdit; edit.NewText != "ports:" {
		t.Errorf("the edit is %+v", edit)
	}
}

func TestCompletionOfBuiltinKinds(t *testing.T) {
	c := start(t, nil, nil)
	got := labels(c.complete("apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n      - name: a\n        im█\n"))
	if !strings.Contains(" "+got+" ", " image ") || !strings.Contains(got, "livenessProbe") {
		t.Errorf("proposed: %s", got)
	}
}

func TestCompletionOfValuesOfBuiltinKinds(t *testing.T) {
	c := start(t, nil, nil)
	if got := labels(c.complete("apiVersion: v1\nkind: Pod\nspec:\n  restartPolicy: █\n")); got != "Always OnFailure Never" {
		t.Errorf("proposed: %s", got)
	}
}

func TestCompletionInCRDs(t *testing.T) {
	c := start(t, nil, nil)
	got := labels(c.complete(strings.Replace(crontabs, "maxLength: 64", "█", 1)))
	for _, want := range []string{"maxLength", "pattern", "x-kubernetes-validations", "enum"} {
		if !strings.Contains(" "+got+" ", " "+want+" ") {
			t.Errorf("%s is not proposed: %s", want, got)
		}
	}
	if got := labels(c.complete(strings.Replace(crontabs, "type: boolean", "type: █", 1))); got != "object array string integer number boolean" {
		t.Errorf("proposed: %s", got)
	}
	if got := labels(c.complete(strings.Replace(crontabs, "scope: Namespaced", "scope: █", 1))); got != "Namespaced Cluster" {
		t.Errorf("proposed: %s", got)
	}
}

func TestCompletionInRules(t *testing.T) {
	c := start(t, nil, nil)
	rule := func(text string) string {
		return strings.Replace(crontabs, "self.replicas <= self.maxReplicas", text, 1)
	}
	for _, tt := range []struct{ name, text, begin, has, without string }{
		{"variables", rule("s█"), "self", "size", "startsWith"},
		{"fields", rule("self.█"), "maxReplicas", "schedule", "startsWith"},
		{"functions of strings", rule("self.schedule.st█"), "", "startsWith", "all"},
		{"variables of macros", rule("self.ports.all(p, p.█)"), "name port", "", "startsWith"},
		{"functions of lists", rule("self.ports.█"), "", "exists_one", "startsWith"},
		{"block", rule("|-\n                has(self.policy) &&\n                self.█"), "maxReplicas", "suspend", ""},
		{"index", rule("self.ports[0].█"), "name port", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.t = t
			got := labels(c.complete(tt.text))
			if !strings.HasPrefix(got, tt.begin) && tt.name != "variables" || !strings.Contains(got, tt.has) || !strings.Contains(got, tt.begin) ||
				tt.without != "" && strings.Contains(" "+got+" ", " "+tt.without+" ") {
				t.Errorf("proposed: %s", got)
			}
		})
	}
}

func (c *client) hover(text string) string {
	c.t.Helper()
	text, at := cursor(c.t, text)
	c.open("h.yaml", text)
	var result *struct{ Contents struct{ Value string } }
	c.call("textDocument/hover", c.at("h.yaml", at), &result)
	if result == nil {
		return ""
	}
	return result.Contents.Value
}

func TestHover(t *testing.T) {
	c := start(t, map[string]string{"crd.yaml": crontabs}, nil)
	c.ready()
	for _, tt := range []struct {
		name, text string
		want       []string
	}{
		{"field", head + "spec:\n  sched█ule: x\n", []string{"`spec.schedule` string", "Schedule is a time", "- required", "- maxLength: `64`"}},
		{"value", head + "spec:\n  policy: For█bid\n", []string{"- default: `\"Allow\"`", "`\"Replace\"`"}},
		{"rules", head + "sp█ec:\n  schedule: x\n", []string{"CEL rule: `self.replicas <= self.maxReplicas` replicas must not exceed maxReplicas"}},
		{"keys of a list", head + "spec:\n  po█rts: []\n", []string{"[]object", "- keys: `name`"}},
		{"built-in", "apiVersion: v1\nkind: Pod\nspec:\n  cont█ainers: []\n", []string{"`spec.containers` []object", "List of containers belonging to the pod"}},
		{"cost of a rule", strings.Replace(crontabs, "self.replicas <=", "self.repl█icas <=", 1), []string{"estimated cost: ", "of the limit of 10000000"}},
		{"keyword", strings.Replace(crontabs, "maxLength: 64", "maxLen█gth: 64", 1), []string{"greatest length"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.t = t
			got := c.hover(tt.text)
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in:\n%s", want, got)
				}
			}
		})
	}
	if got := c.hover(head + "█\n"); got != "" {
		t.Errorf("an empty line shows %q", got)
	}
}

func TestDefinition(t *testing.T) {
	c := start(t, map[string]string{"crds/crd.yaml": crontabs}, nil)
	c.ready()
	find := func(text string) lsp.Location {
		text, at := cursor(t, text)
		c.open("d.yaml", text)
		var l lsp.Location
		c.call("textDocument/definition", c.at("d.yaml", at), &l)
		return l
	}
	lines := strings.Split(crontabs, "\n")
	for _, tt := range []struct{ text, want string }{
		{head + "spec:\n  sched█ule: x\n", "schedule:"},
		{head + "spec:\n  ports:\n  - po█rt: 1\n", "port: {type: integer}"},
		{head + "spec:\n  unkn█own: 1\n", "spec:"},
	} {
		l := find(tt.text)
		if l.URI != c.uri("crds/crd.yaml") || !strings.HasPrefix(lines[l.Range.Start.Line][l.Range.Start.Character:], tt.want) {
			t.Errorf("%s is at %+v", tt.want, l)
		}
	}
	c.open("crds/crd.yaml", "# one line more\n---\n"+crontabs)
	c.diagnostics("crds/crd.yaml", 1, nil)
	if l := find(head + "spec:\n  sched█ule: x\n"); !strings.HasPrefix(lines[l.Range.Start.Line-2], "              schedule:") {
		t.Errorf("in an open file it is at %+v", l)
	}
}

// fixed applies the first action at the cursor's line.
func (c *client) fixed(text string) (title, result string) {
	c.t.Helper()
	text, at := cursor(c.t, text)
	c.open("f.yaml", text)
	var actions []lsp.CodeAction
	c.call("textDocument/codeAction", map[string]any{"textDocument": map[string]any{"uri": c.uri("f.yaml")},
		"range": lsp.Range{Start: at, End: at}, "context": map[string]any{"diagnostics": []any{}}}, &actions)
	if len(actions) == 0 {
		return "", text
	}
	lines := strings.SplitAfter(text, "\n")
	offset := func(p lsp.Position) int { return len(strings.Join(lines[:p.Line], "")) + p.Character }
	for _, e := range actions[0].Edit.Changes[c.uri("f.yaml")] {
		text = text[:offset(e.Range.Start)] + e.NewText + text[offset(e.Range.End):]
	}
	return actions[0].Title, text
}

func TestFixes(t *testing.T) {
	c := start(t, map[string]string{"crd.yaml": crontabs}, nil)
	c.ready()
	spec := head + "spec:\n  schedule: x\n"
	for _, tt := range []struct{ name, text, title, want string }{
		{"misspelt field", spec + "  su█spnd: true\n", "Change to suspend", spec + "  suspend: true\n"},
		{"misspelt value", spec + "  pol█icy: Forbit # no\n", "Change to Forbid", spec + "  policy: Forbid # no\n"},
		{"quotes too many", spec + "  repl█icas: \"3\"\n", "Remove the quotes", spec + "  replicas: 3\n"},
		{"quotes too few", head + "spec:\n  sched█ule: 5\n", "Put 5 in quotes", head + "spec:\n  schedule: \"5\"\n"},
		{"unknown field", spec + "  xyz█zy: # c\n    a: 1\n  suspend: true\n", "Remove spec.xyzzy", spec + "  suspend: true\n"},
		{"missing field", head + "sp█ec:\n  suspend: true\n", "Add schedule with an empty value", head + "spec:\n  suspend: true\n  schedule: \"\"\n"},
		{"version", "apiVersion: stable.example.com/v2█\nkind: CronTab\n", "Use stable.example.com/v1", "apiVersion: stable.example.com/v1\nkind: CronTab\n"},
		{"kind", "apiVersion: stable.example.com/v1\nkind: Crontab█\n", "Change to CronTab", "apiVersion: stable.example.com/v1\nkind: CronTab\n"},
		{"second document", "a: 1\n---\n" + spec + "  su█spnd: true\n", "Change to suspend", "a: 1\n---\n" + spec + "  suspend: true\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c.t = t
			title, got := c.fixed(tt.text)
			if title != tt.title || got != tt.want {
				t.Errorf("%s:\n%s\nwant %s:\n%s", title, got, tt.title, tt.want)
			}
		})
	}
	title, got := c.fixed("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {kind: A, plural: as}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            anyOf:\n            - properties:\n                a█: {type: string, minLength: 1}\n")
	if !strings.HasPrefix(title, "Rewrite the CRD as 'espalier fix' does") || !strings.Contains(got, "              a:") {
		t.Errorf("%s:\n%s", title, got)
	}
}
