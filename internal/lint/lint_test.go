package lint

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// root is the repository seen from this package's directory, where go test
// runs it.
const root = "../.."

type rule struct {
	name  string
	check func(*tree) []Finding
}

var rules = []rule{
	{"imports", checkImports},
	{"packages", checkPackages},
	{"sizes", checkSizes},
	{"mentions", checkMentions},
	{"open tasks", checkOpenTasks},
	{"examples", checkExamples},
	// Not active until the texts of the released modules are rewritten. To switch it on,
	// uncomment the next line.
	{"texts", checkTexts},
}

func TestHouseRules(t *testing.T) {
	repository, err := readTree(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(repository.packages) < 5 || len(repository.text) < 20 {
		t.Fatalf("read %d packages and %d text files: not the repository", len(repository.packages), len(repository.text))
	}
	for _, r := range rules {
		t.Run(r.name, func(t *testing.T) {
			for _, f := range sorted(r.check(repository)) {
				t.Error(f)
			}
		})
	}
}

func TestReadmeExampleRuns(t *testing.T) {
	markdown, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := readmeExamples(string(markdown))
	if err != nil {
		t.Fatal("README.md: ", err)
	}
	tests := []struct{ file, function string }{ // in the order of the README
		{"server/espaliertest/readme_test.go", ""}, {"example_test.go", ""},
	}
	if len(blocks) != len(tests) {
		t.Fatalf("README.md has %d blocks of Go; %d are tested", len(blocks), len(tests))
	}
	for i, test := range tests {
		source, err := os.ReadFile(root + "/" + test.file)
		if err != nil {
			t.Fatal(err)
		}
		if test.function == "" { // a whole function is shown, not the body of one
			if !strings.Contains(string(source), blocks[i]) {
				t.Errorf("an example of the README is not tested: %s has no\n%s", test.file, blocks[i])
			}
			continue
		}
		body, err := exampleBody(source, test.function)
		if err != nil {
			t.Fatal(test.file, ": ", err)
		}
		if blocks[i] != body {
			t.Errorf("an example of the README is not the one that is tested.\nREADME.md:\n%s\n%s, Example:\n%s", blocks[i], test.file, body)
		}
	}
}

// A rule that cannot fail protects nothing: each must find what is planted and
// nothing else.
func TestRulesFindWhatIsPlanted(t *testing.T) {
	const doc = "// Package x is small.\npackage x\n"
	importing := func(name, imported string) string {
		return "package " + name + "\n\nimport _ \"" + imported + "\"\n"
	}
	tests := []struct {
		name  string
		rule  func(*tree) []Finding
		files map[string]string
		want  []string // a piece of each finding, in order of file and line
	}{
		{
			"jsondoc stands on the standard library", checkImports,
			map[string]string{
				"internal/jsondoc/a.go": importing("jsondoc", "encoding/json"),
				"internal/jsondoc/b.go": importing("jsondoc", "golang.org/x/text/width"),
			},
			[]string{"internal/jsondoc/b.go:3: must not import golang.org/x/text/width: internal/jsondoc imports only the standard library"},
		},
		{
			"imports point down", checkImports,
			map[string]string{
				"internal/plan/a.go": importing("plan", module+"/internal/compile"),
				"crd/a.go":           importing("crd", module+"/server/registry"),
				"server/a.go":        importing("server", module+"/crd"),
				"a.go":               importing("espalier", module+"/internal/compile"),
			},
			[]string{
				"crd/a.go:3: must not import " + module + "/server/registry: imports point one way",
				"internal/plan/a.go:3: must not import " + module + "/internal/compile: imports point one way",
			},
		},
		{
			"same layer is not enough in the engine", checkImports,
			map[string]string{"internal/syntax/a.go": importing("syntax", module+"/internal/plan")},
			[]string{"internal/syntax imports only the standard library and jsondoc"},
		},
		{
			"an allowance is exact", checkImports,
			map[string]string{
				"internal/compile/a.go": importing("compile", apimachinery+"util/validation/field"),
				"internal/compile/b.go": importing("compile", apimachinery+"util/validation"),
				"internal/syntax/a.go":  importing("syntax", apimachinery+"util/validation/field"),
			},
			[]string{
				"internal/compile/b.go:3: must not import k8s.io/apimachinery/pkg/util/validation: internal/compile imports only",
				"internal/syntax/a.go:3: must not import",
			},
		},
		{
			"the engine imports no server, tests included", checkImports,
			map[string]string{
				"a_test.go":                  importing("espalier_test", "k8s.io/client-go/rest"),
				"b_test.go":                  importing("espalier_test", "golang.org/x/tools/txtar"),
				"internal/exec/a.go":         importing("exec", "k8s.io/apiserver/pkg/cel"),
				"internal/exec/sub/a.go":     importing("sub", "k8s.io/apiserver/pkg/cel"),
				"internal/syntax/a_test.go":  importing("syntax", apiextAPIs+"v1"),
				"crd/cel/a.go":               importing("cel", "k8s.io/apiserver/pkg/cel"),
				"internal/compile/a_test.go": importing("compile", "k8s.io/apiserverless"),
			},
			[]string{
				"a_test.go:3: must not import k8s.io/client-go/rest: the engine talks to no server",
				"internal/exec/a.go:3: must not import k8s.io/apiserver/pkg/cel: the engine is for tools",
				"internal/exec/sub/a.go:3: must not import k8s.io/apiserver/pkg/cel",
				"internal/syntax/a_test.go:3: must not import " + apiextAPIs + "v1: the engine reads schemas as bytes",
			},
		},
		{
			"of upstream only the API types", checkImports,
			map[string]string{
				"crd/a.go":    importing("crd", apiextAPIs+"v1"),
				"crd/b.go":    importing("crd", apiextAPIs+"v1beta1"),
				"crd/c.go":    importing("crd", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"),
				"crd/d.go":    importing("crd", apiextAPIs+"validation"),
				"server/a.go": importing("server", "k8s.io/apiextensions-apiserver/pkg/registry/customresource"),
				"server/b.go": importing("server", "k8s.io/apiextensions-apiserver/pkg/controller/status"),
			},
			[]string{
				"crd/c.go:3: must not import k8s.io/apiextensions-apiserver/pkg/apiserver/schema: only upstream's API types",
				"crd/d.go:3: ", "server/a.go:3: ", "server/b.go:3: ",
			},
		},
		{
			"nothing imports what is outside", checkImports,
			map[string]string{
				"server/a_test.go":        importing("server", module+"/conformance/oracle"),
				"conformance/oracle/a.go": importing("oracle", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"),
			},
			[]string{"server/a_test.go:3: must not import " + module + "/conformance/oracle: the conformance module depends on this one"},
		},
		{
			"a new package has to find its place", checkImports,
			map[string]string{"stray/a.go": "package stray\n"},
			[]string{"stray: package is in no layer"},
		},
		{
			"every package has a doc.go", checkPackages,
			map[string]string{
				"x/doc.go":        doc,
				"y/y.go":          "// Package y is documented in the wrong place.\npackage y\n",
				"tests/a_test.go": "package tests\n",
			},
			[]string{"y: package has no doc.go"},
		},
		{
			"package comments are sentences", checkPackages,
			map[string]string{
				"x/doc.go":       "// This package is x.\npackage x\n",
				"y/doc.go":       "package y\n",
				"cmd/e/doc.go":   "// Command e runs.\npackage main\n",
				"cmd/bad/doc.go": "// Package main runs.\npackage main\n",
			},
			[]string{`cmd/bad/doc.go:1: package comment must begin with "Command bad "`, "x/doc.go:1: ", "y/doc.go:1: "},
		},
		{
			"names that say nothing", checkPackages,
			map[string]string{
				"util/doc.go":    "// Package util is a drawer.\npackage util\n",
				"a/types/doc.go": "// Package kinds hides behind its directory.\npackage kinds\n",
			},
			[]string{"a/types: package kinds has a vague name", "util: package util has a vague name"},
		},
		{
			"long files", checkSizes,
			map[string]string{
				"x/ok.go":        "package x\n" + strings.Repeat("\n", maxFileLines-1),
				"x/long.go":      "package x\n" + strings.Repeat("\n", maxFileLines),
				"x/long_test.go": "package x\n" + strings.Repeat("\n", maxFileLines),
				"x/generated.go": "// Code generated by hand. DO NOT EDIT.\n\npackage x\n" + strings.Repeat("\n", maxFileLines),
			},
			[]string{"x/long.go: 601 lines; at most 600"},
		},
		{
			"paths and hosts of one machine", checkMentions,
			map[string]string{
				"a.md":           "see\n/ro" + "ot/go/pkg and `/wo" + "rk/main`, (/ho" + "me/alice)\n",
				"testdata/b.txt": "GOPROXY=htt" + "ps://mirror.example\nhttps://proxy.golang" + ".org/x\n",
				"ok.md":          "https://example.com/wo" + "rk/x, ./wo" + "rk/, spec/ro" + "ot/x, properties[/ro" + "otx]: /ro" + "ots\n",
				"binary":         "\x00/ro" + "ot/",
			},
			[]string{"a.md:2: mentions a path", "a.md:2: ", "a.md:2: ", "testdata/b.txt:1: mentions a package host", "testdata/b.txt:2: "},
		},
		{
			"work left for later", checkOpenTasks,
			map[string]string{
				"x/a.go":           "package x\n\n// TODO: finish\n\n// TODO(#12): finish\n\n/*\n * FIXME(kubernetes/kubernetes#1) x\n * FIXME soon\n */\n\nvar s = `// TODO: not a comment`\n",
				"Makefile":         "all:\n\ttrue # XXX\n",
				"testdata/a.yaml":  "a: b # TODO\n",
				"docs/approach.md": "A TODO in prose is prose.\n",
			},
			[]string{"Makefile:2: a task left", "x/a.go:3: a task left", "x/a.go:9: a task left"},
		},
		{
			"examples of entry points", checkExamples,
			map[string]string{
				"crd/lint/a.go":            "package lint\n\nfunc Check() {}\n",
				"crd/new/a.go":             "package new\n\nfunc New() {}\n",
				"crd/internal/x/a.go":      "package x\n\nfunc New() {}\n",
				"crd/fix/a.go":             "package fix\n\nfunc CRD() {}\n",
				"crd/fix/a_test.go":        "package fix_test\n\nfunc ExampleCRD() {}\n",
				"server/catalog/a.go":      "package catalog\n\nfunc New() {}\n",
				"crd/conversion/a.go":      "package conversion\n\nfunc Compile() {}\n",
				"crd/conversion/b_test.go": "package conversion\n\nfunc ExampleCompile() {}\n",
			},
			[]string{"crd/fix: has no Means", "crd/lint: has no func ExampleCheck", "crd/new: public package without entry points"},
		},
		{
			"phrases in texts", checkTexts,
			map[string]string{
				"server/a.go": "package server\n\nvar a = \"it cannot be \" +\n\t\"told whether \" + name + \" exists\"\n" +
					"var b = `Usage:\n\n  look inside of it`\n" +
					"var c = f(\"users exist, and nobody \"+g(\"we judge that\"))\n" +
					"var d = \"Who asks gets none.\"\n",
				"crd/a.go":            "package crd\n\nvar a = \"the definition of a thing\"\n",
				"cmd/x/a.go":          "package x\n\nvar a = \"a world of its own\"\n",
				"server/ok.go":        "package server\n\nimport _ \"a/judge b\"\n\ntype x struct {\n\ta int `json:\"a\" x:\"the world\"`\n}\n\n// nobody judges comments\nvar _ = []string{\"nobody\", \" definitions\", \"is \\\"nobody\\\" known\", \"a custom resource definition\", \"see `world` or world.go\", \"a: Who is it?\", \"a must not be used inside of resource meta b\"}\n",
				"server/a_test.go":    "package server\n\nvar a = \"the definition of a thing\"\n",
				"server/generated.go": "// Code generated by hand. DO NOT EDIT.\n\npackage server\n\nvar a = \"the definition of a thing\"\n",
				"conformance/a.go":    "package conformance\n\nvar a = \"the definition of a thing\"\n",
			},
			[]string{
				`cmd/x/a.go:3: "world" in a text (World)`,
				`crd/a.go:3: "definition" in a text (Definition)`,
				`server/a.go:3: "cannot be told" in a text (CannotBeTold)`,
				`server/a.go:7: "inside of" in a text (Inside)`,
				`server/a.go:8: `, `server/a.go:8: `,
				`server/a.go:9: "Who asks" in a text (Who)`,
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, content := range tt.files {
				fsys[name] = &fstest.MapFile{Data: []byte(content)}
			}
			planted, err := readTree(fsys)
			if err != nil {
				t.Fatal(err)
			}
			found := sorted(tt.rule(planted))
			for i, f := range found {
				if i < len(tt.want) && !strings.Contains(f.String(), tt.want[i]) {
					t.Errorf("found %q, want %q", f, tt.want[i])
				}
			}
			if len(found) != len(tt.want) {
				t.Errorf("found %d, want %d: %v", len(found), len(tt.want), found)
			}
		})
	}
}

// TestPhrasesAreVales compares the phrases with Vale's rules, so that texts and comments
// are held to the same words, and has each phrase find an example of its own.
func TestPhrasesAreVales(t *testing.T) {
	examples := map[string]string{
		"Absent": "it is not there yet", "Actor": "for everybody else", "Authority": "the authority signs", "CannotBeTold": "it could not be told",
		"Definition": "the definitions change", "Forgive": "it forgives errors", "Inside": "outside of it", "Judge": "it was judged",
		"Junctor": "in a junctor here", "KeepOut": "it keeps them out", "LetIn": "it lets them in", "Mend": "to mend it", "Names": "a newcomer here",
		"OfWhich": "two, of which one", "OughtTo": "it ought to", "Result": "the verdict is", "Who": "for who has one", "World": "in this world",
	}
	files, err := os.ReadDir(root + "/.vale/styles/Espalier")
	if err != nil {
		t.Fatal(err)
	}
	// Spelling has a dictionary and no phrase. golangci-lint finds misspelt words in Go files.
	files = slices.DeleteFunc(files, func(f os.DirEntry) bool { return f.Name() == "Spelling.yml" })
	for _, file := range files {
		name := strings.TrimSuffix(file.Name(), ".yml")
		i := slices.IndexFunc(phrases, func(p phrase) bool { return p.rule == name })
		if i < 0 {
			t.Errorf("Vale's rule %s has no phrase in internal/lint/dialect_test.go", name)
			continue
		}
		if example := examples[name]; !phrases[i].pattern.MatchString(example) {
			t.Errorf("the phrase of Vale's rule %s does not match %q", name, example)
		}
	}
	if len(files) != len(phrases) {
		t.Errorf("Vale has %d rules, and there are %d phrases", len(files), len(phrases))
	}
}

func TestReadmeAndExampleCanDiffer(t *testing.T) {
	source := []byte("package x\n\nfunc Example() {\n\ta()\n\n\tif b {\n\t\tc()\n\t}\n\t// Output: d\n}\n")
	body, err := exampleBody(source, "Example")
	if err != nil {
		t.Fatal(err)
	}
	const want = "a()\n\nif b {\n\tc()\n}\n// Output: d"
	if body != want {
		t.Errorf("body is %q, want %q", body, want)
	}
	blocks, err := readmeExamples("# X\n\n```yaml\na: b\n```\n\n```go\n" + want + "\n```\n\n```go\nelse()\n```\n")
	if err != nil || !slices.Equal(blocks, []string{want, "else()"}) {
		t.Errorf("blocks are %q (%v), want %q and another", blocks, err, want)
	}
	if _, err := readmeExamples("# X\n\n```go\na()\n"); err == nil {
		t.Error("a block that does not end passes")
	}
	if _, err := exampleBody(source, "ExampleOther"); err == nil {
		t.Error("an example that does not exist passes")
	}
}

func sorted(found []Finding) []Finding {
	slices.SortFunc(found, func(a, b Finding) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		return a.Line - b.Line
	})
	return found
}
