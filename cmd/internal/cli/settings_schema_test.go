package cli

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

// settingsSchema is what editors complete and check .espalier.yaml with.
const settingsSchema = "../../../docs/espalier.schema.json"

// keywords are a part of a JSON Schema.
type keywords = map[string]any

// keysOf describes the members of a type of settings; TestGoldenSettingsSchema holds it against the fields.
type keysOf struct {
	of       reflect.Type
	required []string
	keys     keywords
	more     keywords // keywords
}

func (k keysOf) schema() keywords {
	s := keywords{"type": "object", "additionalProperties": false, "properties": k.keys}
	if len(k.required) > 0 {
		s["required"] = k.required
	}
	maps.Copy(s, k.more)
	return s
}

func described(text string, s keywords) keywords {
	s = maps.Clone(s)
	s["description"] = text
	return s
}

// orNull permits a key without a value, such as a list whose items are comments.
func orNull(s keywords) keywords {
	s = maps.Clone(s)
	s["type"] = []any{s["type"], "null"}
	return s
}

func listOf(items keywords) keywords { return orNull(keywords{"type": "array", "items": items}) }

// settingsKeys describes the settings. Each check is a key of its own, so that editors complete it and show what it is about.
func settingsKeys() (top keysOf, parts []keysOf) {
	text := keywords{"type": "string"}
	all, changes := []string{}, []string{}
	severities := keywords{}
	for _, c := range catalog() {
		all = append(all, string(c.ID))
		if c.Group == "changes" {
			changes = append(changes, string(c.ID))
		}
		severities[string(c.ID)] = keywords{"description": c.Explanation, "enum": []any{"error", "warning", "info", off, false}} // false is what a bare off is in YAML 1.1
	}
	checks := keywords{"$ref": "#/definitions/checks"}
	oneName := keywords{"not": keywords{"required": []string{"checks", "rules"}}}
	check := listOf(keywords{"$ref": "#/definitions/check"})
	exclude := keysOf{reflect.TypeFor[exclusion](), []string{"path"}, keywords{
		"path":   described("Pattern of files, relative to the folder of the settings, such as config/crd/legacy-*.yaml.", keywords{"type": "string", "minLength": 1}),
		"checks": described("The checks that are turned off for these files. Without them, the files are not read.", check),
		"rules":  described("The old name of checks.", check),
	}, oneName}
	accept := keysOf{reflect.TypeFor[waiver](), []string{"reason"}, keywords{
		"crd":    described("Pattern of names of CRDs. Without it, all.", text),
		"path":   described("Pattern of field paths in objects, such as spec.template.*. Without it, all.", text),
		"checks": described("Checks of changes. Without them, all.", listOf(keywords{"type": "string", "enum": changes})),
		"reason": described("Why the change is accepted.", keywords{"type": "string", "minLength": 1}),
		"until":  described("The last day of the waiver, such as 2027-01-31.", keywords{"type": "string", "pattern": `^([0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01]))?$`}),
	}, keywords{"anyOf": []keywords{
		{"required": []string{"crd"}, "properties": keywords{"crd": keywords{"minLength": 1}}},
		{"required": []string{"path"}, "properties": keywords{"path": keywords{"minLength": 1}}},
		{"required": []string{"checks"}, "properties": keywords{"checks": keywords{"type": "array", "minItems": 1}}},
	}}}
	named := keysOf{reflect.TypeFor[clusterSettings](), nil, keywords{
		"context": described("A context of the user's kubeconfig.", text),
	}, nil}
	top = keysOf{reflect.TypeFor[settings](), nil, keywords{
		"checks":   described("The severity of checks: error, warning, info or off.", checks),
		"rules":    described("The old name of checks.", checks),
		"exclude":  described("Files that are not read unless they are named, and checks that are turned off for files.", listOf(keywords{"anyOf": []keywords{{"type": "string", "minLength": 1}, {"$ref": "#/definitions/exclusion"}}})),
		"crds":     described("Files, folders and patterns with CRDs, as --crd names them.", listOf(text)),
		"failOn":   described("The least severity of findings with which check and validate exit with 1.", keywords{"type": []string{"string", "null"}, "enum": []any{"error", "warning", "info", failNever, "", nil}}),
		"baseline": described("File with findings that are known, and not reported again.", orNull(text)),
		"cluster":  described("The cluster of the project, for diff --cluster, plan and the language server.", orNull(named.schema())),
		"waivers":  described("Changes of CRDs that diff does not report.", listOf(keywords{"$ref": "#/definitions/waiver"})),
	}, oneName}
	top.more = maps.Clone(top.more)
	top.more["definitions"] = keywords{
		"checks":    orNull(keywords{"type": "object", "additionalProperties": false, "properties": severities}),
		"check":     keywords{"type": "string", "enum": all},
		"exclusion": exclude.schema(),
		"waiver":    accept.schema(),
	}
	return top, []keysOf{exclude, accept, named}
}

// TestGoldenSettingsSchema: docs/espalier.schema.json has the keys that the reader has, with all checks.
func TestGoldenSettingsSchema(t *testing.T) {
	top, parts := settingsKeys()
	for _, part := range append(parts, top) {
		var fields []string
		for _, f := range reflect.VisibleFields(part.of) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				fields = append(fields, name)
			}
		}
		slices.Sort(fields)
		if keys := slices.Sorted(maps.Keys(part.keys)); !slices.Equal(keys, fields) {
			t.Errorf("%v has the keys %v, the schema %v", part.of, fields, keys)
		}
	}
	root := top.schema()
	root["$schema"] = "http://json-schema.org/draft-07/schema#" // the newest that yaml-language-server knows completely
	root["title"] = "Settings of espalier: " + settingsName
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(settingsSchema, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if stored, err := os.ReadFile(settingsSchema); err != nil || !bytes.Equal(stored, text.Bytes()) {
		t.Errorf("%s is not what the settings are: go test ./cmd/internal/cli -run SettingsSchema -update: %v", settingsSchema, err)
	}
}

// TestSettingsSchemaAgrees gives settings to the reader and to the schema: the examples of the guides, and mistakes.
// Only the reader knows which patterns are valid.
func TestSettingsSchemaAgrees(t *testing.T) {
	compiled, err := jsonschema.NewCompiler().Compile(settingsSchema)
	if err != nil {
		t.Fatal(err)
	}
	good := []string{
		"{}", "checks: {pattern-unanchored: off, description-missing: warning}", `checks: {pattern-unanchored: "off"}`, "rules: {object-empty: info}",
		"exclude: [a, {path: b}, {path: c, checks: [object-empty]}, {path: d, rules: [object-empty]}]", "crds: [config/crd]", "exclude:\nchecks:\ncrds:\n",
		"failOn: never", "failOn: error", "failOn: \"\"", "baseline: known.json",
		"cluster: {context: a}", "cluster:",
		"waivers: [{crd: a, reason: b}, {path: a, reason: b, until: \"2027-01-31\"}, {checks: [field-removed], reason: b}]",
	}
	bad := []string{
		"check: {}", "checks: []", "checks: {nothing: off}", "checks: {object-empty: fatal}", "checks: {object-empty: true}", "checks: {}\nrules: {}",
		"exclude: a", `exclude: [""]`, "exclude: [{checks: [object-empty]}]", "exclude: [{path: a, checks: [nothing]}]", "exclude: [{path: a, check: []}]", "exclude: [{path: a, checks: [], rules: []}]",
		"crds: a", "failOn: fatal", "baseline: [a]",
		"cluster: a", "cluster: {kubeconfig: a}",
		"waivers: [{crd: a}]", "waivers: [{reason: a}]", `waivers: [{crd: "", reason: a}]`, "waivers: [{checks: [], reason: a}]", "waivers: [{checks: [object-empty], reason: a}]",
		"waivers: [{crd: a, reason: b, until: tomorrow}]", "waivers: [{crd: a, reason: b, until: \"2027-13-01\"}]", "waivers: [{crd: a, reason: \"\"}]", "waivers: [{crd: a, reason: b, by: c}]",
	}
	guides, err := filepath.Glob("../../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, guide := range guides {
		text, err := os.ReadFile(guide)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?ms)^```yaml title="+regexp.QuoteMeta(settingsName)+"\n(.*?)^```\n").FindAllSubmatch(text, -1) {
			good = append(good, string(m[1]))
			shown++
		}
	}
	if shown == 0 {
		t.Error("the guides show no settings: is this test still about their form?")
	}
	file := filepath.Join(t.TempDir(), "settings.yaml")
	for i, text := range slices.Concat(good, bad) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, reading := (&App{Name: "espalier", config: file}).settings()
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		checking := compiled.Validate(value)
		if want := i < len(good); (reading == nil) != want || (checking == nil) != want {
			t.Errorf("%s\nreader: %v\nschema: %v", text, reading, checking)
		}
	}
}
