package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/crd/diff"
	"github.com/espalier-dev/espalier/crd/lint"
	"github.com/espalier-dev/espalier/docs"
	"github.com/espalier-dev/espalier/finding"
)

// pagesDir has the pages of the checks.
const pagesDir = "../../../docs/checks/"

// entry is a rule, as the program lists it.
type entry struct {
	ID                                   finding.ID
	Group, Severity, Explanation, Source string
	Off                                  bool
}

// entries returns all rules, in the order of the program.
func entries(t *testing.T) []entry {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Main(t.Context(), "espalier", []string{"checks", "-o", "json"}, strings.NewReader(""), &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	var list []entry
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		t.Fatal(err)
	}
	if len(list) < 100 {
		t.Fatalf("there are only %d rules", len(list))
	}
	seen := map[finding.ID]bool{}
	for _, e := range list {
		if seen[e.ID] {
			t.Errorf("there are two rules called %s", e.ID)
		}
		seen[e.ID] = true
	}
	return list
}

// head is what a page repeats of the table: its title and its first paragraph.
func (e entry) head() string { return "# " + string(e.ID) + "\n\n" + wrap(e.Explanation) + "\n" }

func (e entry) line() string { return "Severity: " + e.level() + " · Source: " + e.Source }

func (e entry) level() string {
	if e.Off {
		return e.Severity + " (off by default)"
	}
	return e.Severity
}

// wrap breaks a text into lines of at most 80 characters.
func wrap(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > 80 {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

// TestGoldenPages: every rule has a page of the agreed form, and every page a rule.
func TestGoldenPages(t *testing.T) {
	known := map[string]bool{"README": true}
	for _, e := range entries(t) {
		known[string(e.ID)] = true
		page := docs.Page(e.ID)
		if page == "" {
			t.Errorf("%s has no page", e.ID)
			continue
		}
		if *update {
			page = refresh(e, page)
			if err := os.WriteFile(pagesDir+string(e.ID)+".md", []byte(page), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if !strings.HasPrefix(page, e.head()) {
			t.Errorf("%s: the page does not begin as the table does; go test -update", e.ID)
		}
		if !strings.Contains(page, "\n"+e.line()+"\n") {
			t.Errorf("%s: the page lacks the line %q; go test -update", e.ID, e.line())
		}
		var headings []string
		inside := false // a comment in YAML looks like a heading
		for line := range strings.Lines(page) {
			if strings.HasPrefix(line, "```") {
				inside = !inside
			} else if strings.HasPrefix(line, "#") && !inside {
				headings = append(headings, strings.TrimSpace(line))
			}
		}
		if got := strings.Join(headings[1:], ","); !slices.Contains([]string{"## Wrong,## Right,## How to fix", "## The change,## How to fix", "## No example,## How to fix"}, got) {
			t.Errorf("%s has the headings %s", e.ID, got)
		}
		if len(section(page, "How to fix")) < 10 || docs.Fix(e.ID) == "" {
			t.Errorf("%s does not say how to fix it", e.ID)
		}
		why, _, _ := strings.Cut(strings.TrimPrefix(page, e.head()), "\nSeverity: ")
		if len(strings.TrimSpace(why)) < 40 {
			t.Errorf("%s does not say why", e.ID)
		}
	}
	files, err := os.ReadDir(pagesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if id := strings.TrimSuffix(f.Name(), ".md"); !known[id] {
			t.Errorf("%s is the page of no rule", f.Name())
		}
	}
}

// refresh replaces what a page repeats of the table.
func refresh(e entry, page string) string {
	parts := strings.SplitN(page, "\n\n", 3)
	if len(parts) < 3 {
		return page
	}
	page = e.head() + "\n" + parts[2]
	before, after, ok := strings.Cut(page, "\nSeverity: ")
	if !ok {
		return page
	}
	_, after, _ = strings.Cut(after, "\n")
	return before + "\n" + e.line() + "\n" + after
}

// section returns the text under a heading.
func section(page, heading string) string {
	_, after, ok := strings.Cut(page, "\n## "+heading+"\n")
	if !ok {
		return ""
	}
	text, _, _ := strings.Cut(after, "\n## ")
	return strings.TrimSpace(text)
}

// documents returns the documents of the example under a heading, as JSON.
func documents(t *testing.T, page, heading string) ([][]byte, error) {
	t.Helper()
	text := section(page, heading)
	for _, language := range []string{"json", "yaml"} {
		body, ok := strings.CutPrefix(text, "```"+language+"\n")
		if !ok {
			continue
		}
		body, ok = strings.CutSuffix(body, "\n```")
		if !ok {
			break
		}
		if language == "json" {
			return [][]byte{[]byte(body)}, nil
		}
		var list [][]byte
		for _, part := range strings.Split(body, "\n---\n") {
			raw, err := yaml.YAMLToJSONStrict([]byte(part))
			if err != nil {
				return nil, err
			}
			list = append(list, raw)
		}
		return list, nil
	}
	t.Fatalf("the example under %s is not one block of yaml or json:\n%s", heading, text)
	return nil, nil
}

// crdIn puts a schema into a CRD; what is one already stays.
func crdIn(document []byte) []byte {
	if strings.Contains(string(document), `"kind":"CustomResourceDefinition"`) {
		return document
	}
	return fmt.Appendf(nil, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"webs.example.org"},`+
		`"spec":{"group":"example.org","scope":"Namespaced","names":{"plural":"webs","kind":"Web"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%s}}]}}`, document)
}

func crdOf(t *testing.T, document []byte) *crd.CRD {
	t.Helper()
	d, err := crd.Parse(crdIn(document))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// exampleFindings returns the rules that an example breaks, and the errors among the
// findings. Of two documents the first is the CRD before the change.
func exampleFindings(t *testing.T, list [][]byte) (broken []finding.ID, refused []string) {
	t.Helper()
	o := crd.ValidateOptions{Strict: true}
	if len(list) == 2 {
		o.Old = crdOf(t, list[0])
	}
	d := crdOf(t, list[len(list)-1])
	found, err := crd.Validate(d, o)
	if err != nil {
		t.Fatal(err)
	}
	_, rules, err := conversion.Compile(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(found, rules...) {
		broken = append(broken, f.Check)
		if f.Severity == finding.Error {
			refused = append(refused, string(f.Check)+": "+f.Error())
		}
	}
	var all []finding.ID
	for _, r := range lint.Checks {
		all = append(all, r.ID)
	}
	advice, err := lint.Check(d, lint.Options{Enable: all})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range advice {
		broken = append(broken, f.Check)
	}
	return broken, refused
}

// checked are the groups of rules about CRDs, whose examples can be run as
// they are.
var checked = []string{"files", "crd", "schema", "expressions", "advice"}

// TestExamples: what a page calls wrong breaks the rule, what it calls right
// does not, and is accepted.
func TestExamples(t *testing.T) {
	for _, e := range entries(t) {
		page := docs.Page(e.ID)
		if !slices.Contains(checked, e.Group) || page == "" || section(page, "No example") != "" {
			continue
		}
		t.Run(string(e.ID), func(t *testing.T) {
			wrong, err := documents(t, page, "Wrong")
			if e.ID == "syntax" {
				if err == nil {
					t.Error("the wrong example can be read")
				}
			} else if err != nil {
				t.Fatal(err)
			} else if broken, _ := exampleFindings(t, wrong); !slices.Contains(broken, e.ID) {
				t.Errorf("the wrong example breaks %v", broken)
			}
			right, err := documents(t, page, "Right")
			if err != nil {
				t.Fatal(err)
			}
			if e.ID == "syntax" {
				return // it is no whole CRD
			}
			broken, refused := exampleFindings(t, right)
			if slices.Contains(broken, e.ID) {
				t.Error("the right example breaks the rule")
			}
			if len(refused) > 0 {
				t.Errorf("the right example is refused: %v", refused)
			}
		})
	}
}

// TestChanges: what a page shows as a change is one, and of this kind.
func TestChanges(t *testing.T) {
	for _, e := range entries(t) {
		page := docs.Page(e.ID)
		if section(page, "The change") == "" {
			continue
		}
		list, err := documents(t, page, "The change")
		if err != nil || len(list) != 2 {
			t.Errorf("%s: %d documents, %v", e.ID, len(list), err)
			continue
		}
		changes, err := diff.Compare(crdOf(t, list[0]), crdOf(t, list[1]))
		if err != nil {
			t.Errorf("%s: %v", e.ID, err)
		}
		if !slices.ContainsFunc(changes, func(c diff.Change) bool { return c.Check == e.ID }) {
			t.Errorf("%s: the changes are %v", e.ID, changes)
		}
	}
}

// cells escapes what would end a cell of a table, or begin a tag.
var cells = strings.NewReplacer("|", `\|`, "<", "&lt;")

// TestGoldenIndex: the index lists all rules, by group.
func TestGoldenIndex(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Checks\n\nAll checks that the commands can report. `espalier checks ID` shows a page in the\nterminal. Change severities, and enable or disable checks, in `.espalier.yaml`.\n")
	group := ""
	for _, e := range entries(t) {
		if e.Group != group {
			group = e.Group
			fmt.Fprintf(&b, "\n## %s\n\n| check | severity | explanation |\n|---|---|---|\n", group)
		}
		fmt.Fprintf(&b, "| [%s](%[1]s.md) | %s | %s |\n", e.ID, e.level(), cells.Replace(e.Explanation))
	}
	if *update {
		if err := os.WriteFile(pagesDir+"README.md", []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got := docs.Page("README"); got != b.String() {
		t.Error("docs/checks/README.md is not up to date; go test ./cmd/internal/cli -update")
	}
}
