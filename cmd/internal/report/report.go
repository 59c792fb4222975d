package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

// Diagnostic is one thing found.
type Diagnostic struct {
	Check    finding.ID       `json:"rule"` // as listed by `espalier checks`
	Severity finding.Severity `json:"severity"`
	Message  string           `json:"message"`           // what is wrong; a server's words where it has some
	Summary  string           `json:"summary,omitempty"` // what the text output shows first, if not empty
	Complete bool             `json:"-"`                 // the summary says all that the message does, for people
	Why      string           `json:"why,omitempty"`     // one sentence
	Fix      string           `json:"fix,omitempty"`     // what to do, where that can be said
	Object   string           `json:"object,omitempty"`  // such as CustomResourceDefinition/foos.example.com
	Path     string           `json:"path,omitempty"`    // field path in the object
	Pointer  string           `json:"pointer,omitempty"`
	Place
	Last  bool   `json:"-"`               // it follows from others of the file, and comes after them
	Notes []Note `json:"notes,omitempty"` // more about it: the branches of allOf, anyOf and oneOf, the other side of a comparison
}

// Place is where in a file something is. Lines and columns count from 1; a line
// of 0 means the file as a whole.
type Place struct {
	File      string `json:"file,omitempty"`
	Line      int    `json:"line,omitempty"`
	Column    int    `json:"column,omitempty"`
	EndColumn int    `json:"endColumn,omitempty"`
	Excerpt   string `json:"excerpt,omitempty"` // the text of the line
}

// Note belongs to a diagnostic.
type Note struct {
	Message string `json:"message"`
	Place
}

// maxExcerpt bounds the line that is kept with a diagnostic.
const maxExcerpt = 400

// At makes a Place of a position in a file.
func At(f *manifest.File, p manifest.Position) Place {
	place := Place{File: f.Name, Line: p.Line, Column: p.Column, EndColumn: p.EndColumn}
	if line := f.Line(p.Line); len(line) <= maxExcerpt {
		place.Excerpt = line
	}
	return place
}

// Report is the outcome of a run.
type Report struct {
	Diagnostics []Diagnostic
	Subjects    []Subject   // what was looked at, in order
	Checks      []CheckInfo // the checks that diagnostics refer to
	Noun        string      // what a subject is, in the singular: "CRD"
}

// Subject is something that was looked at: a CRD, an object.
type Subject struct {
	File   string `json:"file"`
	Object string `json:"object"`
}

// CheckInfo is what formats say about a check.
type CheckInfo struct {
	finding.Check
	Help string // Markdown
}

// Sort brings diagnostics into the order of the files' first mention, then of
// lines; the gravest first where several are at one place. Those that follow from
// others come last in their file.
func (r *Report) Sort() {
	order := make(map[string]int)
	for _, s := range r.Subjects {
		if _, ok := order[s.File]; !ok {
			order[s.File] = len(order) + 1
		}
	}
	slices.SortStableFunc(r.Diagnostics, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(order[a.File], order[b.File]), cmp.Compare(a.File, b.File),
			last(&a)-last(&b), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Message, b.Message),
		)
	})
}

func last(d *Diagnostic) int {
	if d.Last {
		return 1
	}
	return 0
}

// Count returns how many diagnostics are of a severity.
func (r *Report) Count(s finding.Severity) int {
	n := 0
	for i := range r.Diagnostics {
		if r.Diagnostics[i].Severity == s {
			n++
		}
	}
	return n
}

// Options say how a report is written.
type Options struct {
	Color   bool   // text: with colours
	Version string // SARIF: of this program
	Command string // SARIF, JUnit: what was run
}

// Formats are the output formats, the default first.
var Formats = []string{"text", "json", "sarif", "github", "junit"}

// Write writes the report in a format.
func (r *Report) Write(w io.Writer, format string, o Options) error {
	switch format {
	case "", "text":
		return r.text(w, o)
	case "json":
		return r.json(w)
	case "sarif":
		return r.sarif(w, o)
	case "github":
		return r.github(w)
	case "junit":
		return r.junit(w, o)
	}
	return UnknownFormat(format)
}

// UnknownFormat is the error for a format that does not exist.
func UnknownFormat(format string) error {
	return fmt.Errorf("there is no output format %q: use one of %v", format, Formats)
}
