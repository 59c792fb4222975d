package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/manifest"
)

// FuzzAdmit demands that the text and the JSON that are printed say what the
// engine says is stored, and that doing it again changes nothing.
func FuzzAdmit(f *testing.F) {
	for _, name := range []string{"web.yaml", "alias.yaml", "done.yaml", "strange.yaml"} {
		f.Add(string(scenario(f, "admit.txtar", name)))
	}
	for _, spec := range []string{
		"{image: a, x: 1}", "{}", "null", "{ports: [{name: a, x: {y: 1}}, null, {}]}", "{ports: [], tier: null, shell: null}",
		"\n  ports:\n  - x: 1\n  -\n    y: 2\n  - name: z # kept\n    # and this\n    q: 1\n", "&a {ports: [*a]}", "{\"a~b/c\": 1, ports: [{\"~\": 2}]}",
	} {
		f.Add("apiVersion: example.com/v1\nkind: Web\nmetadata: {name: a}\nspec: " + spec + "\n")
		f.Add("kind: List\nitems:\n- apiVersion: example.com/v1\n  kind: Web\n  spec: " + strings.ReplaceAll(spec, "\n", "\n    ") + "\n")
	}
	all := scenarioResources(f)
	f.Fuzz(func(t *testing.T, text string) {
		file := &manifest.File{Name: "a.yaml", Text: []byte(text)}
		if _, err := manifest.Parse(file); err != nil {
			return
		}
		run := &admission{resources: all, options: admitOptions{steps: steps{true, true}}}
		result := run.file(file)
		for _, o := range result.objects {
			want := stored(all, o.document)
			if got := canonicalJSON(o.json); !bytes.Equal(got, want) {
				t.Errorf("%q: %s\nis stored as %s", text, got, want)
			}
			if string(want) == "null" {
				continue // no document when it is read again
			}
			rendered, err := yamlOf(o.json)
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			if got := canonicalJSON(documentOf(t, string(rendered)).JSON); !bytes.Equal(got, want) {
				t.Errorf("%q: rendered as %q\nwhich is %s", text, rendered, got)
			}
		}
		edited, ok := result.text()
		if !ok {
			return
		}
		again := run.file(&manifest.File{Name: "a.yaml", Text: edited})
		if len(again.objects) != len(result.objects) || again.altered() {
			t.Fatalf("%q: the result changes again: %q", text, edited)
		}
		for i, o := range again.objects {
			if !bytes.Equal(canonicalJSON(o.document.JSON), canonicalJSON(result.objects[i].json)) {
				t.Errorf("%q: edited to %q", text, edited)
			}
		}
	})
}

// stored is what the engine makes of an object, if it can be read.
func stored(all resources, d *manifest.Document) []byte {
	version, _ := all.find(typeMetaOf(d))
	if version == nil || !version.load() {
		return canonicalJSON(d.JSON)
	}
	r, err := version.schema.Normalize.Normalize(d.JSON, espalier.NormalizeOptions{})
	if err != nil {
		return canonicalJSON(d.JSON)
	}
	return r.Bytes
}

// The steps of pruning and defaulting, one after the other, are what both do at
// once.
func TestStepsAddUp(t *testing.T) {
	all := scenarioResources(t)
	document := documentOf(t, string(scenario(t, "admit.txtar", "web.yaml")))
	object := document.JSON
	take := func(object []byte, s steps) []byte {
		version, _ := all.find(typeMetaOf(document))
		if version == nil || !version.load() {
			t.Fatal("the CRD cannot be used")
		}
		var changes espalier.Report
		r, err := version.schema.Normalize.Normalize(object, espalier.NormalizeOptions{Report: &changes})
		if err != nil {
			t.Fatal(err)
		}
		c, err := compare(object, r.Bytes, s, changes.Changes)
		if err != nil {
			t.Fatal(err)
		}
		return c.out
	}
	want := stored(all, document)
	both := []steps{{prune: true}, {fill: true}}
	for _, order := range [][]steps{both, {both[1], both[0]}} {
		if got := canonicalJSON(take(take(object, order[0]), order[1])); !bytes.Equal(got, want) {
			t.Errorf("%v: %s, not %s", order, got, want)
		}
	}
	if pruned := string(take(object, both[0])); strings.Contains(pruned, "replicas") || strings.Contains(pruned, "prot") || !strings.Contains(pruned, `"tier":null`) {
		t.Errorf("pruned: %s", pruned)
	}
	if filled := string(take(object, both[1])); !strings.Contains(filled, `"replicas":1`) || !strings.Contains(filled, `"prot":5`) {
		t.Errorf("with defaults: %s", filled)
	}
}

// Files of any size keep their comments, whether it is one object that is large
// or there are many.
func TestLargeFilesKeepComments(t *testing.T) {
	const head = "apiVersion: example.com/v1\nkind: Web\nmetadata: {name: a}\nspec:\n  image: a # kept\n"
	for name, text := range map[string]string{
		"members":   head + strings.Repeat("  # kept\n", 9_000) + numbered(9_000, "  unknown%d: 1\n"),
		"items":     head + "  ports:\n" + strings.Repeat("  - name: a # kept\n    unknown: 1\n", 9_000),
		"flow":      head + "  ports: [" + strings.Repeat("{name: a, unknown: 1}, ", 9_000) + "]\n",
		"documents": strings.Repeat(head+"  unknown: 1\n---\n", 1_000),
		"list":      "kind: List\nitems:\n" + strings.Repeat("- "+strings.ReplaceAll(strings.TrimSpace(head), "\n", "\n  ")+"\n    unknown: 1\n", 1_000),
	} {
		t.Run(name, func(t *testing.T) {
			run := &admission{resources: scenarioResources(t), options: admitOptions{steps: steps{prune: true}}}
			got, ok := run.file(&manifest.File{Name: "a.yaml", Text: []byte(text)}).text()
			if !ok {
				t.Fatal("the text cannot be edited")
			}
			if strings.Contains(string(got), "unknown") || strings.Count(string(got), "# kept") != strings.Count(text, "# kept") {
				t.Errorf("%.1000s", got)
			}
		})
	}
}

// numbered joins n texts that are made from their numbers.
func numbered(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestComparedLines(t *testing.T) {
	lines := func(n int, extra ...string) string {
		return strings.Repeat("a\n", n) + strings.Join(extra, "\n")
	}
	for _, c := range []struct{ was, is, want string }{
		{"a\n", "a\n", ""},
		{"a\nb\n", "a\n", " a -b"},
		{"a\n", "a\nb\n", " a +b"},
		{"\na\r\n", "\nb\r\n", "  -a +b"},
		{"a", "b", "-a +b"},
		{lines(9, "x\n"), lines(9, "y\n"), "@  a  a  a -x +y"},
	} {
		var got []string
		for _, l := range comparedLines([]byte(c.was), []byte(c.is)) {
			got = append(got, string(l.sign)+l.text)
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%q to %q: %q", c.was, c.is, g)
		}
	}
}
