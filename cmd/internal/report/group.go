package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/espalier-dev/espalier/finding"
)

// maxHeadline bounds the first line of a finding: place, what is wrong, check.
const maxHeadline = 120

// leastText is how much of a text is shown beside a long name of a file.
const leastText = 40

// headline is what is wrong, cut so that its line is short. whole reports whether it says all
// of the message.
func (d *Diagnostic) headline() (text string, whole bool) {
	text = d.Summary
	if text == "" {
		text = d.Message
	}
	whole = text == d.Message || d.Complete
	if line, _, more := strings.Cut(text, "\n"); more {
		text, whole = line, false
	}
	around := len(d.Place.String()) + len(d.Severity.String()) + len(d.Check) + len(":  :  []") - 1
	room := max(maxHeadline-around, leastText)
	if utf8.RuneCountInString(text) <= room {
		return text, whole
	}
	runes := []rune(text)[:room-1]
	cut := string(runes)
	// A part of the supported values misleads; all of them are below.
	if what, _, listed := strings.Cut(cut, ": supported values: "); listed {
		return what, false
	}
	// Between words, unless that leaves little.
	if at := strings.LastIndexByte(cut, ' '); at > len(cut)/2 {
		cut = cut[:at]
	}
	return strings.TrimRight(cut, " ,:;") + "…", false
}

// cause is what makes findings of one file the same: they are shown once, with all places.
type cause struct {
	file     string
	check    finding.ID
	severity finding.Severity
	fix, why string
}

// group is a finding and the others of the same cause.
type group struct {
	*Diagnostic
	also []*Diagnostic
}

// grouped brings together the diagnostics of one cause, at the place of the first. Those
// with notes, and about whole files, stay alone.
func (r *Report) grouped() []group {
	var all []group
	index := map[cause]int{}
	for i := range r.Diagnostics {
		d := &r.Diagnostics[i]
		if len(d.Notes) == 0 && d.Line > 0 {
			c := cause{file: d.File, check: d.Check, severity: d.Severity, fix: d.Fix, why: d.Why}
			if at, known := index[c]; known {
				all[at].also = append(all[at].also, d)
				continue
			}
			index[c] = len(all)
		}
		all = append(all, group{Diagnostic: d})
	}
	return all
}

// maxAlso bounds the places of a cause that are listed.
const maxAlso = 12

// also lists the other places of a finding.
func (p *printer) also(margin string, others []*Diagnostic) {
	if len(others) == 0 {
		return
	}
	shown := others[:min(len(others), maxAlso)]
	width := 0
	for _, d := range shown {
		width = max(width, len(at(d)))
	}
	for i, d := range shown {
		label := "also:"
		if i > 0 {
			label = "     "
		}
		text, _ := d.headline()
		fmt.Fprintf(p, "%s %s %s%s %s\n", margin, p.in(dim, label), at(d), strings.Repeat(" ", width-len(at(d))), printable(text))
	}
	if more := len(others) - len(shown); more > 0 {
		fmt.Fprintf(p, "%s       and %s\n", margin, Counted(more, "more place"))
	}
}

// at is a place in a file whose name is known.
func at(d *Diagnostic) string {
	return strings.Join(slices.DeleteFunc([]string{strconv.Itoa(d.Line), strconv.Itoa(d.Column)}, func(s string) bool { return s == "0" }), ":")
}
