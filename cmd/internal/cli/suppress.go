package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/cmd/internal/report"
	"github.com/espalier-dev/espalier/crd/manifest"
	"github.com/espalier-dev/espalier/finding"
)

// The checks of suppressions.
const (
	idSuppression       finding.ID = "suppression"
	idSuppressionUnused finding.ID = "suppression-unused"
)

// suppressionMark is what a comment contains that suppresses findings.
const suppressionMark = "espalier:ignore"

// suppressionForm is a comment that suppresses findings of some checks: those of its line, of
// the next line if it has a line of its own, or of the file.
//
//	maxLength: 5 # espalier:ignore pattern-and-length the API is frozen
var suppressionForm = regexp.MustCompile(`(?:^|\s)#\s*` + suppressionMark + `(-file)?(?:\s+([^\s]*)(?:\s+(.*))?)?$`)

// suppression is one comment and what it is about.
type suppression struct {
	checks []finding.ID
	used   []bool // by check
	line   int    // of the findings; 0 for the file
	place  report.Place
}

// suppressions reads the comments of a file, and reports those that say too little.
func suppressions(f *manifest.File, into *findings) []*suppression {
	if !bytes.Contains(f.Text, []byte(suppressionMark)) {
		return nil
	}
	var all []*suppression
	for _, mark := range comments(f, marks(f)) {
		n, line, m := mark.number, mark.line, mark.match
		text := func(i int) string {
			if m[2*i] < 0 {
				return ""
			}
			return line[m[2*i]:m[2*i+1]]
		}
		column := utf8.RuneCountInString(line[:strings.Index(line, suppressionMark)]) + 1
		s := &suppression{line: n, place: report.At(f, manifest.Position{Line: n, Column: column, EndColumn: column + len(suppressionMark)})}
		switch {
		case text(1) != "":
			s.line = 0
		case strings.HasPrefix(strings.TrimSpace(line), "#"):
			s.line = contentAfter(f, n)
		}
		for id := range strings.SplitSeq(text(2), ",") {
			if _, known := checkByID(finding.ID(id)); !known {
				into.add(s.wrong(fmt.Sprintf("there is no check %q", id)))
				continue
			}
			s.checks = append(s.checks, finding.ID(id))
		}
		if strings.TrimSpace(text(3)) == "" {
			into.add(s.wrong("a suppression needs a reason"))
			continue
		}
		s.used = make([]bool, len(s.checks))
		all = append(all, s)
	}
	return all
}

// mark is a line that seems to have a comment that suppresses findings.
type mark struct {
	number int // of the line
	line   string
	match  []int // of suppressionForm
	offset int   // of suppressionMark in the file
}

func marks(f *manifest.File) (all []mark) {
	offset := 0
	for n := 1; n <= f.Lines(); n++ {
		line := f.Line(n)
		if m := suppressionForm.FindStringSubmatchIndex(line); m != nil {
			all = append(all, mark{n, line, m, offset + m[0] + strings.Index(line[m[0]:], suppressionMark)})
		}
		next := bytes.IndexByte(f.Text[offset:], '\n')
		if next < 0 {
			break
		}
		offset += next + 1
	}
	return all
}

// mostParsed bounds what is parsed to tell comments from texts, in bytes. Without texts that look like
// comments, a file is parsed twice.
const mostParsed = 64 << 20

// comments returns the marks that are in comments, not in texts such as descriptions: without them the file says
// the same. Where nothing can be told any more, they are none.
func comments(f *manifest.File, all []mark) []mark {
	left := mostParsed
	before, failures := contents(f.Text)
	var among func(some []mark) []mark
	among = func(some []mark) []mark {
		if left -= len(f.Text); len(some) == 0 || left < 0 {
			return nil
		}
		text := bytes.Clone(f.Text)
		for _, m := range some {
			text[m.offset+strings.IndexByte(suppressionMark, ':')] = '-'
		}
		switch after, n := contents(text); {
		case n == failures && slices.EqualFunc(after, before, bytes.Equal):
			return some
		case len(some) == 1:
			return nil
		}
		return slices.Concat(among(some[:len(some)/2]), among(some[len(some)/2:]))
	}
	return among(all)
}

// contents returns what the documents of a file say, and how many cannot be read.
func contents(text []byte) (documents [][]byte, failures int) {
	parsed, err := manifest.Parse(&manifest.File{Text: text})
	for _, d := range parsed {
		documents = append(documents, d.JSON)
	}
	return documents, len(manifest.Errors(err))
}

// wrong reports a comment that suppresses nothing because it says too little.
func (s *suppression) wrong(message string) report.Diagnostic {
	return report.Diagnostic{Check: idSuppression, Severity: finding.Warning, Message: message, Place: s.place,
		Why: explanation(idSuppression), Fix: fix(idSuppression)}
}

// contentAfter is the next line after n that is neither empty nor a comment.
func contentAfter(f *manifest.File, n int) int {
	for n++; n <= f.Lines(); n++ {
		if text := strings.TrimSpace(f.Line(n)); text != "" && text[0] != '#' {
			break
		}
	}
	return n
}

// suppress removes the findings that comments of the file suppress, and reports comments that
// suppress nothing, of checks that have run.
func (f *findings) suppress(all []*suppression) {
	if len(all) == 0 {
		return
	}
	kept := f.diagnostics[:0]
	for _, d := range f.diagnostics {
		if !suppressed(all, &d) {
			kept = append(kept, d)
		}
	}
	f.diagnostics = kept
	for _, s := range all {
		for i, id := range s.checks {
			if r, _ := checkByID(id); !s.used[i] && f.ran[r.Group] && !r.Off {
				f.add(report.Diagnostic{Check: idSuppressionUnused, Severity: finding.Info, Place: s.place,
					Message: fmt.Sprintf("the comment suppresses nothing: there is no finding of %s", id),
					Why:     explanation(idSuppressionUnused), Fix: fix(idSuppressionUnused)})
			}
		}
	}
}

// suppressed reports whether a comment suppresses a finding. A finding may be at the place of
// several comments: all of them are used.
func suppressed(all []*suppression, d *report.Diagnostic) (found bool) {
	for _, s := range all {
		for i, id := range s.checks {
			if id == d.Check && (s.line == 0 || s.line == d.Line) {
				s.used[i], found = true, true
			}
		}
	}
	return found
}
