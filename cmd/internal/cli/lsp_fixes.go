package cli

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/cmd/internal/lsp"
	"github.com/espalier-dev/espalier/cmd/internal/report"
	rewrite "github.com/espalier-dev/espalier/crd/fix"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/crd/splice"
)

// The hints that say exactly what to write. A test of fixes fails if their words change.
var (
	hintNear    = regexp.MustCompile(`^did you mean (?:kind )?("(?:[^"\\]|\\.)*")\?`)
	hintBare    = regexp.MustCompile(`^remove the quotes: (.+)$`)
	hintQuoted  = regexp.MustCompile(`^put it in quotes: (.+)$`)
	hintServed  = regexp.MustCompile(`^use a version that is served: (.+)$`)
	hintVersion = regexp.MustCompile(`^use apiVersion: (.+)$`)
	hintAdd     = regexp.MustCompile(`^add ([^ ,:]+), of type (\w+)(?:, one of ([^,:]+))?`)
)

// Fixes returns the edits that correct a finding, if the finding determines them.
func (e *lspEngine) Fixes(d *manifest.Document, x *report.Diagnostic, _ lsp.Kinds) []lsp.Fix {
	if typeMetaOf(d).isCRD() {
		return append(replacements(x), rewriting(d, x)...)
	}
	fixes := replacements(x)
	switch x.Check {
	case idVersionUnknown, idVersionUnserved:
		fixes = append(fixes, versions(d, x)...)
	case idNamespaceIgnored, idStatusIgnored, idResourceVersion:
		fixes = append(fixes, lsp.Fix{Title: "Remove " + x.Path, Edits: []splice.Edit{{Op: splice.Remove, Pointer: x.Pointer}}, Preferred: true})
	case idFieldUnknown:
		if pointer, ok := pointerOf(d, x); ok {
			fixes = append(fixes, lsp.Fix{Title: "Remove " + x.Path, Edits: []splice.Edit{{Op: splice.Remove, Pointer: pointer}}})
		}
	case "value-required":
		fixes = append(fixes, additions(d, x)...)
	}
	return fixes
}

// replacements are fixes of the text that the finding is at.
func replacements(x *report.Diagnostic) []lsp.Fix {
	if m := hintNear.FindStringSubmatch(x.Fix); m != nil {
		var name string
		if json.Unmarshal([]byte(m[1]), &name) != nil {
			return nil
		}
		text := lsp.Scalar(name)
		if strings.HasPrefix(token(x.Place), `"`) {
			text = m[1]
		}
		return []lsp.Fix{{Title: "Change to " + name, Text: text, Preferred: true}}
	}
	if m := hintBare.FindStringSubmatch(x.Fix); m != nil {
		return []lsp.Fix{{Title: "Remove the quotes", Text: m[1], Preferred: true}}
	}
	if m := hintQuoted.FindStringSubmatch(x.Fix); m != nil {
		return []lsp.Fix{{Title: "Put " + token(x.Place) + " in quotes", Text: m[1], Preferred: true}}
	}
	return nil
}

// token is the text at a place.
func token(at report.Place) string {
	line := []rune(at.Excerpt)
	if at.Column < 1 || at.EndColumn < at.Column || at.EndColumn-1 > len(line) {
		return ""
	}
	return string(line[at.Column-1 : at.EndColumn-1])
}

// versions are fixes for an object of a version that servers do not have.
func versions(d *manifest.Document, x *report.Diagnostic) []lsp.Fix {
	var all []string
	if m := hintServed.FindStringSubmatch(x.Fix); m != nil {
		for version := range strings.SplitSeq(m[1], ", ") {
			all = append(all, typeMetaOf(d).group()+"/"+version)
		}
	} else if m := hintVersion.FindStringSubmatch(x.Fix); m != nil {
		all = strings.Split(m[1], " or ")
	}
	var fixes []lsp.Fix
	for i, version := range all {
		value, _ := json.Marshal(version)
		fixes = append(fixes, lsp.Fix{Title: "Use " + version, Edits: []splice.Edit{{Op: splice.Set, Pointer: "/apiVersion", Value: value}}, Preferred: i == 0})
	}
	return fixes
}

// pointerOf is the JSON pointer of the field that a finding is at. It reports false if the path does not lead to
// the finding's place, which happens with names that have dots.
func pointerOf(d *manifest.Document, x *report.Diagnostic) (string, bool) {
	pointer := pointerTo(request.Steps(x.Path))
	at, found := d.LocateKey(pointer)
	return pointer, found && at.Line == x.Line && at.Column == x.Column
}

func pointerTo(steps []string) string {
	var b []byte
	for _, s := range steps {
		b = appendToken(b, s)
	}
	return string(b)
}

// empty are the values to start with.
var empty = map[string]string{"string": `""`, "integer": "0", "number": "0", "boolean": "false", "object": "{}", "array": "[]"}

// additions are fixes for a field that is missing: with the first of the values that are allowed, or an empty one.
func additions(d *manifest.Document, x *report.Diagnostic) []lsp.Fix {
	m := hintAdd.FindStringSubmatch(x.Fix)
	steps := request.Steps(x.Path)
	if m == nil || len(steps) == 0 || steps[len(steps)-1] != m[1] || empty[m[2]] == "" {
		return nil
	}
	if _, found := d.Locate(pointerTo(steps[:len(steps)-1])); !found {
		return nil
	}
	value, title := empty[m[2]], "Add "+m[1]+" with an empty value"
	if json.Valid([]byte(m[3])) {
		value, title = m[3], "Add "+m[1]+": "+m[3]
	}
	return []lsp.Fix{{Title: title, Edits: []splice.Edit{{Op: splice.Insert, Pointer: pointerTo(steps), Value: []byte(value)}}}}
}

// rewriting is what the command fix does, for findings that it corrects.
func rewriting(d *manifest.Document, x *report.Diagnostic) []lsp.Fix {
	result, err := rewrite.CRD(d.JSON)
	if err != nil || !result.Changed || !slices.ContainsFunc(result.Edits, func(e rewrite.Edit) bool { return e.Check == x.Check }) {
		return nil
	}
	title := "Rewrite the CRD as 'espalier fix' does: " + count(len(result.Edits), "change")
	return []lsp.Fix{{Title: title, Edits: inText("", result.Edits)}}
}
