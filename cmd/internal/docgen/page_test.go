package docgen

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func crontab(t testing.TB) *crd.CRD {
	t.Helper()
	text, err := os.ReadFile("testdata/crontab.yaml")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	d, err := crd.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// withSchema wraps a schema in a CRD of one version.
func withSchema(t testing.TB, schema string) *crd.CRD {
	t.Helper()
	d, err := crd.Parse([]byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"trees.orchard.example"},` +
		`"spec":{"group":"orchard.example","scope":"Cluster","names":{"plural":"trees","kind":"Tree"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":` + schema + `}}]}}`))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func explain(t testing.TB, d *crd.CRD, path string, o Options) string {
	t.Helper()
	var b bytes.Buffer
	if err := Explain(&b, d, Preferred(d), strings.FieldsFunc(path, func(r rune) bool { return r == '.' }), o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestGoldens(t *testing.T) {
	d := crontab(t)
	var markdown, html bytes.Buffer
	if err := Markdown(&markdown, d, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := HTML(&html, d, Options{}); err != nil {
		t.Fatal(err)
	}
	// Style and script stand beside; the golden is about the rest.
	body := html.String()
	for _, tag := range []string{"style", "script"} {
		body = regexp.MustCompile(`(?s)<`+tag+`>.*</`+tag+`>`).ReplaceAllString(body, "<"+tag+"></"+tag+">")
	}
	body = regexp.MustCompile(`sha256-.*?&#39;`).ReplaceAllString(body, "sha256-...&#39;")
	for file, got := range map[string]string{
		"crontab.md":          markdown.String(),
		"crontab.html":        body,
		"explain.txt":         explain(t, d, "", Options{}),
		"explain-spec.txt":    explain(t, d, "spec", Options{}),
		"explain-image.txt":   explain(t, d, "spec.image", Options{}),
		"explain-steps.txt":   explain(t, d, "spec.steps", Options{}),
		"explain-recurse.txt": explain(t, d, "", Options{Recursive: true}),
	} {
		if *update {
			if err := os.WriteFile("testdata/"+file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s is not as expected (see -update):\n%s", file, got)
		}
	}
}

func TestUnknownField(t *testing.T) {
	d := crontab(t)
	for _, c := range []struct{ path, want string }{
		{"spec.imgae", `field "spec.imgae" does not exist; did you mean "spec.image"?`},
		{"spec.steps.tmeout", `field "spec.steps.tmeout" does not exist; did you mean "spec.steps.timeout"?`},
		{"Spec", `field "Spec" does not exist; did you mean "spec"?`},
		{"spec.image.tag", `field "spec.image.tag" does not exist: its parent has no fields`},
		{"weather", `field "weather" does not exist; there are spec, apiVersion, kind, metadata, status`},
	} {
		err := Explain(io.Discard, d, Preferred(d), strings.Split(c.path, "."), Options{})
		var unknown *UnknownFieldError
		if !errors.As(err, &unknown) || err.Error() != c.want {
			t.Errorf("%s: %v", c.path, err)
		}
	}
}

func TestOptions(t *testing.T) {
	d := crontab(t)
	var b bytes.Buffer
	if err := Markdown(&b, d, Options{Version: "v1alpha1"}); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); strings.Contains(text, "example.com/v1\n") || !strings.Contains(text, "**Deprecated.**") {
		t.Errorf("%s", text)
	}
	if err := HTML(io.Discard, d, Options{Version: "v7"}); err == nil || err.Error() != `crontabs.stable.example.com has no version "v7"` {
		t.Errorf("got %v", err)
	}
}

func TestPreferred(t *testing.T) {
	for _, c := range []struct {
		versions []crd.Version
		want     string
	}{
		{[]crd.Version{{Name: "a", Served: true}, {Name: "b", Served: true, Storage: true}}, "b"},
		{[]crd.Version{{Name: "a", Served: true, Deprecated: true}, {Name: "b", Served: true}, {Name: "c", Storage: true}}, "b"},
		{[]crd.Version{{Name: "a"}, {Name: "b", Storage: true}}, "a"},
	} {
		if got := Preferred(&crd.CRD{Versions: c.versions}); got.Name != c.want {
			t.Errorf("%v: %s", c.versions, got.Name)
		}
	}
	if Preferred(&crd.CRD{}) != nil {
		t.Error("a version where there is none")
	}
}

func TestLimits(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"minLength":3,"maxLength":3}`, "length: exactly 3"},
		{`{"minLength":0}`, ""},
		{`{"minimum":0.5,"exclusiveMinimum":true,"maximum":10}`, "value: more than 0.5, at most 10"},
		{`{"minimum":-1,"maximum":1e21,"multipleOf":2}`, "value: -1 to 1000000000000000000000; multiple of: 2"},
		{`{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["a","b"],"maxItems":4}`, "items: at most 4; list: one item per a, b"},
		{`{"type":"array","items":{"pattern":"x"}}`, "each item: pattern: x"},
		{`{"type":"object","additionalProperties":{"type":"array","items":{"maximum":4}}}`, "each item: value: at most 4"},
		{`{"anyOf":[{"required":["a"]},{"required":["b","c"]}]}`, "at least one of: a, b with c"},
		{`{"not":{"required":["a","b"]}}`, "not all of: a with b"},
		{`{"allOf":[{"minLength":2}]}`, `allOf: {"minLength":2}`},
		{`{"oneOf":[{"pattern":"` + strings.Repeat("x", 300) + `"},{}]}`, `oneOf: 2 schemas`},
		{`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}`, ""},
		{`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"x-kubernetes-unions":[{"fields":{"a":"","b":""}}]}`, "at most one of: a, b"},
	} {
		list, err := outline(withSchema(t, `{"properties":{"x":`+c.schema+`}}`), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, l := range list[0].Root.Fields[0].Limits {
			got = append(got, l.String())
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.schema, strings.Join(got, "; "), c.want)
		}
	}
}

func TestProse(t *testing.T) {
	const text = "See `a <b>` and https://example.com/x?a=b. Or [the\nguide](http://example.com/(y)),\nmore.\n\nOne of:\n- first\n  goes on\n- `second`\n\n```\ncode\n  more\n```\nhttp://, done `"
	var got []string
	for _, b := range prose(text) {
		if b.Code != "" {
			got = append(got, "code{"+b.Code+"}")
			continue
		}
		for _, item := range b.Items {
			line := ""
			if b.List {
				line = "* "
			}
			for _, s := range item {
				switch {
				case s.Code:
					line += "code{" + s.Text + "}"
				case s.URL != "":
					line += "link{" + s.Text + "→" + s.URL + "}"
				default:
					line += s.Text
				}
			}
			got = append(got, line)
		}
	}
	want := []string{
		"See code{a <b>} and link{https://example.com/x?a=b→https://example.com/x?a=b}. Or [the guide](link{http://example.com/→http://example.com/}(y)), more.",
		"One of:", "* first goes on", "* code{second}", "code{code\n  more}", "link{http://→http://}, done `",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSkeletonIsYAML checks that examples can be read back.
func TestSkeletonIsYAML(t *testing.T) {
	d := withSchema(t, `{"type":"object","properties":{"spec":{"type":"object","required":["a","yes","# b","list","map","obj","n"],"properties":{
		"a":{"type":"string","enum":["on","x # y"]},"yes":{"type":"string","default":"no: \"'"},"# b":{"type":"boolean"},
		"list":{"type":"array","items":{"type":"object","required":["k","v"],"properties":{"k":{"type":"string","default":"\n"},"v":{"type":"object","required":["w"],"properties":{"w":{"type":"integer","minimum":4}}}}}},
		"map":{"type":"object","additionalProperties":{"type":"object","required":["m"],"properties":{"m":{"x-kubernetes-int-or-string":true}}}},
		"obj":{"type":"object","default":{"a":[1, {"b":"c"}]}},"n":{"type":"number","example":1.5}}}}}`)
	list, err := outline(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, l := range skeleton(list[0], d.Kind, d.Namespaced) {
		text.WriteString(l.String() + "\n")
	}
	got, err := yaml.YAMLToJSON([]byte(text.String()))
	if err != nil {
		t.Fatalf("%v in\n%s", err, &text)
	}
	const want = `{"apiVersion":"orchard.example/v1","kind":"Tree","metadata":{"name":"example"},"spec":{"# b":false,"a":"on","list":[{"k":"\n","v":{"w":4}}],"map":{"key":{"m":0}},"n":1.5,"obj":{"a":[1,{"b":"c"}]},"yes":"no: \"'"}}`
	if string(got) != want {
		t.Errorf("got\n%s\nfrom\n%s", got, &text)
	}
}
