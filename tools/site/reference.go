package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// buildPrograms builds both programs, which describe themselves.
func (s *site) buildPrograms(ctx context.Context) error {
	if err := os.MkdirAll(s.programs, 0o755); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", s.programs+"/", "./cmd/espalier", "./cmd/espalier-server")
	cmd.Dir, cmd.Stderr = s.root, os.Stderr
	cmd.Env = append(os.Environ(), "GOWORK=") // the repository's go.work joins the modules
	return cmd.Run()
}

// commands writes a page for each command.
func (s *site) commands(ctx context.Context) error {
	dir := filepath.Join(filepath.Dir(s.programs), "commands")
	for _, program := range []string{"espalier", "espalier-server"} {
		if out, err := exec.CommandContext(ctx, filepath.Join(s.programs, program), "man", "--markdown", dir).CombinedOutput(); err != nil {
			return fmt.Errorf("%s man: %w\n%s", program, err, out)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.md"))
	if err != nil {
		return err
	}
	list := strings.Builder{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		// Cobra begins with a heading, and what the command does.
		title, body, _ := strings.Cut(strings.TrimPrefix(string(text), "## "), "\n")
		about := first.FindString(body)
		if err := s.write("reference/commands/"+strings.ToLower(filepath.Base(file)), title, about, "", strings.ReplaceAll(body, "\n### ", "\n## ")); err != nil {
			return err
		}
		fmt.Fprintf(&list, "| [`%s`](%s) | %s |\n", title, filepath.Base(file), plain(about))
	}
	return s.write("reference/commands/_index.md", "Commands", "All commands and flags of both programs.", "", "All commands and flags, as `--help` prints them.\n\n| command | |\n|---|---|\n"+list.String())
}

// settings writes the page of .espalier.yaml, from its JSON schema.
func (s *site) settings(context.Context) error {
	data, err := os.ReadFile(filepath.Join(s.root, "docs", "espalier.schema.json"))
	if err != nil {
		return err
	}
	var schema setting
	if err := json.Unmarshal(data, &schema); err != nil {
		return err
	}
	var rows []string
	schema.resolve(schema.Definitions)
	schema.rows("", &rows)
	if len(rows) < 5 {
		return errors.New("docs/espalier.schema.json has no properties: is its form still the one that this program reads?")
	}
	body := "The settings of a folder are in `.espalier.yaml`, in this folder or above. [The command line](../docs/guides/command-line.md) has examples.\n\n| setting | type | |\n|---|---|---|\n" + strings.Join(rows, "") +
		"\nThe flags of the server are those of [`espalier-server serve`](commands/espalier-server_serve.md).\n"
	return s.write("reference/settings.md", "Settings: .espalier.yaml", "All settings of .espalier.yaml.", "", body)
}

// setting is a JSON schema, as far as settings need it.
type setting struct {
	Type                 any
	Ref                  string `json:"$ref"`
	Description          string
	Enum                 []any
	Properties           map[string]setting
	Items                *setting
	AnyOf                []setting
	Definitions          map[string]setting
	AdditionalProperties json.RawMessage
}

// rows adds the rows of a table about the properties.
func (x setting) rows(path string, rows *[]string) {
	for _, name := range slices.Sorted(maps.Keys(x.Properties)) {
		p, at := x.Properties[name], strings.TrimPrefix(path+"."+name, ".")
		*rows = append(*rows, fmt.Sprintf("| `%s` | %s | %s |\n", at, p.kind(), cell(p.about())))
		if p.Ref == "#/definitions/checks" {
			*rows = append(*rows, fmt.Sprintf("| `%s.CHECK` | string | The severity of one of the [checks](../docs/checks/README.md). |\n", at))
		}
		p.rows(at, rows)
		if p.Items != nil {
			p.Items.rows(at+"[]", rows)
		}
		var values setting
		if json.Unmarshal(p.AdditionalProperties, &values) == nil {
			values.rows(at+".NAME", rows)
		}
	}
}

// resolve puts the schema of the items of a list in place of its name.
func (x setting) resolve(definitions map[string]setting) {
	for name, p := range x.Properties {
		if p.Items == nil {
			continue
		}
		for _, one := range append([]setting{*p.Items}, p.Items.AnyOf...) {
			if d, ok := definitions[strings.TrimPrefix(one.Ref, "#/definitions/")]; ok {
				p.Items = &d
			}
		}
		x.Properties[name] = p
	}
}

func (x setting) kind() string {
	if x.Type == nil {
		return ""
	}
	return strings.Trim(fmt.Sprint(x.Type), "[]")
}

func (x setting) about() string {
	if len(x.Enum) == 0 {
		return x.Description
	}
	values := make([]string, len(x.Enum))
	for i, v := range x.Enum {
		values[i] = fmt.Sprintf("`%v`", v)
	}
	return x.Description + " One of " + strings.Join(values, ", ") + "."
}

// cell is a text as a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(wrapped.ReplaceAllString(strings.TrimSpace(text), " "), "|", `\|`)
}

// sample is a CRD and an object: some metrics exist only for what is used.
const sample = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: webs.example.com},
 spec: {group: example.com, scope: Namespaced, names: {plural: webs, kind: Web}, versions: [{name: v1, served: true, storage: true,
  schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {image: {type: string}}}}}}}]}}
`

var (
	help = regexp.MustCompile(`^# HELP (\S+) (?:\[([A-Z]+)\] ?)?(.*)$`)
	kind = regexp.MustCompile(`^# TYPE (\S+) (\S+)$`)
)

// metrics writes the page of metrics: those of a server that has served a few requests.
func (s *site) metrics(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tmp := filepath.Dir(s.programs)
	data, crds := filepath.Join(tmp, "dev"), filepath.Join(tmp, "webs.yaml")
	if err := save(crds, []byte(sample)); err != nil {
		return err
	}
	dev := exec.CommandContext(ctx, filepath.Join(s.programs, "espalier-server"), "dev", "--quiet", "--port", "0", "--data-dir", data, "--crds", crds)
	dev.Stderr = os.Stderr
	dev.Cancel = func() error { return dev.Process.Signal(os.Interrupt) }
	if err := dev.Start(); err != nil {
		return err
	}
	defer func() {
		_ = dev.Cancel()
		_ = dev.Wait()
	}()
	kubectl := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, filepath.Join(s.root, ".bin", "kubectl"), append([]string{"--kubeconfig", filepath.Join(data, "kubeconfig")}, args...)...)
		return cmd.Output()
	}
	for {
		if _, err := kubectl("get", "webs"); err == nil {
			break
		} else if ctx.Err() != nil {
			return fmt.Errorf("wait for the server: %w", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, command := range []string{"create ns a", "create configmap a", "label configmap a a=b", "get configmaps --watch --request-timeout=1s", "delete configmap a"} {
		_, _ = kubectl(strings.Fields(command)...) // what is counted, whatever becomes of it
	}
	text, err := kubectl("get", "--raw", "/metrics")
	if err != nil {
		return fmt.Errorf("read /metrics: %w", err)
	}
	return s.write("reference/metrics.md", "Metrics", "The metrics that a server exports at /metrics.", "", metricsPage(string(text)))
}

// metricsPage lists what a server exports: first ours, then those of Kubernetes' libraries.
func metricsPage(text string) string {
	type metric struct{ name, kind, stability, about string }
	all, last := []*metric{}, &metric{}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := help.FindStringSubmatch(line); m != nil {
			last = &metric{name: m[1], stability: strings.ToLower(m[2]), about: m[3]}
			all = append(all, last)
		} else if m := kind.FindStringSubmatch(line); m != nil && m[1] == last.name {
			last.kind = m[2]
		}
	}
	slices.SortFunc(all, func(a, b *metric) int { return cmp.Compare(a.name, b.name) })
	table := func(title string, of func(name string) bool) string {
		b := "\n## " + title + "\n\n| metric | type | stability | |\n|---|---|---|---|\n"
		for _, m := range all {
			if of(m.name) {
				b += fmt.Sprintf("| `%s` | %s | %s | %s |\n", m.name, m.kind, m.stability, cell(m.about))
			}
		}
		return b
	}
	ours := func(name string) bool { return strings.HasPrefix(name, "espalier_") }
	runtime := func(name string) bool { return strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") }
	return fmt.Sprintf("A server that has served a few requests exports these %d metrics at `/metrics`. Metrics of features that it\n"+
		"has not used yet come with their first use. [Production](../docs/guides/production.md#what-to-watch) says which to watch.\n", len(all)) +
		table("Espalier's own", ours) +
		table("As kube-apiserver has them", func(name string) bool { return !ours(name) && !runtime(name) }) +
		table("The process", runtime)
}
