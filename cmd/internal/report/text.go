package report

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/finding"
)

// style is an ANSI colour.
type style string

const (
	bold   style = "\x1b[1m"
	red    style = "\x1b[1;31m"
	yellow style = "\x1b[1;33m"
	blue   style = "\x1b[1;34m"
	green  style = "\x1b[32m"
	dim    style = "\x1b[2m"
	plain  style = "\x1b[0m"
)

var severityStyles = map[finding.Severity]style{finding.Error: red, finding.Warning: yellow, finding.Info: blue}

// printer writes text, with colours or without.
type printer struct {
	*bufio.Writer
	color bool
}

func (p *printer) in(s style, text string) string {
	if !p.color || text == "" {
		return text
	}
	return string(s) + text + string(plain)
}

// text writes, for each diagnostic,
//
//	file:line:column: severity: what is wrong [check]
//	   12 |   type: objekt
//	      |         ^^^^^^
//	      text: …
//	      why: …
//	      fix: …
//	      also: 20:5 …
//
// and a summary. The text is the whole message, if the first line is not.
func (r *Report) text(w io.Writer, o Options) error {
	p := &printer{bufio.NewWriter(w), o.Color}
	for _, g := range r.grouped() {
		p.also(p.diagnostic(g.Diagnostic), g.also)
		fmt.Fprintln(p)
	}
	fmt.Fprintln(p, r.Summary())
	return p.Flush()
}

// diagnostic shows one finding and returns the margin.
func (p *printer) diagnostic(d *Diagnostic) (margin string) {
	text, whole := d.headline()
	fmt.Fprintf(p, "%s %s %s %s\n", p.in(bold, d.Place.String()+":"),
		p.in(severityStyles[d.Severity], d.Severity.String()+":"), printable(text), p.in(dim, "["+string(d.Check)+"]"))
	margin = p.excerpt(&d.Place, d.Severity)
	if !whole {
		p.more(margin, "text", d.Message, plain)
	}
	p.more(margin, "why", d.Why, plain)
	for _, n := range d.Notes {
		if n.File == "" {
			p.more(margin, "note", n.Message, plain)
			continue
		}
		fmt.Fprintf(p, "%s %s %s %s\n", margin, p.in(dim, "note:"), p.in(bold, n.Place.String()+":"), printable(n.Message))
		p.excerpt(&n.Place, finding.Info)
	}
	p.more(margin, "fix", d.Fix, green)
	return margin
}

func (p *printer) more(margin, label, text string, s style) {
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		switch {
		case text == "":
		case i == 0:
			fmt.Fprintf(p, "%s %s %s\n", margin, p.in(dim, label+":"), p.in(s, printable(line)))
		default:
			fmt.Fprintf(p, "%s %s  %s\n", margin, strings.Repeat(" ", len(label)), p.in(s, printable(line)))
		}
	}
}

// maxWidth is how much of a line is shown.
const maxWidth = 160

// excerpt shows the line with a caret below and returns the margin.
func (p *printer) excerpt(at *Place, s finding.Severity) (margin string) {
	number := strconv.Itoa(at.Line)
	margin = strings.Repeat(" ", len(number)+2)
	line := []rune(strings.ReplaceAll(at.Excerpt, "\t", " "))
	from, to := at.Column-1, at.EndColumn-1
	if at.Line == 0 || strings.TrimSpace(string(line)) == "" || from < 0 || from > len(line) {
		return margin
	}
	to = min(max(to, from+1), max(len(line), from+1))
	dots := ""
	if len(line) > maxWidth {
		if cut := min(from, len(line)-maxWidth); cut > 0 && to > maxWidth {
			line, from, to, dots = line[cut:], from-cut, to-cut, "…"
		}
		if len(line) > maxWidth {
			line = append(line[:maxWidth:maxWidth], '…')
			to = min(to, maxWidth)
		}
	}
	fmt.Fprintf(p, " %s %s %s%s\n", p.in(dim, number), p.in(dim, "|"), dots, printable(string(line)))
	fmt.Fprintf(p, "%s%s %s%s\n", margin, p.in(dim, "|"), strings.Repeat(" ", from+len([]rune(dots))),
		p.in(severityStyles[s], strings.Repeat("^", max(to-from, 1))))
	return margin
}

// printable replaces what could move the cursor or change colours: files are
// hostile.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '·'
		}
		return r
	}, s)
}

// String renders a place as file:line:column.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Column == 0:
		return p.File + ":" + strconv.Itoa(p.Line)
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

// Summary counts what was looked at and what was found.
func (r *Report) Summary() string {
	var found []string
	for _, s := range []finding.Severity{finding.Error, finding.Warning} {
		if n := r.Count(s); n > 0 {
			found = append(found, Counted(n, s.String()))
		}
	}
	if n := r.Count(finding.Info); n > 0 {
		found = append(found, strconv.Itoa(n)+" info")
	}
	what := "nothing found"
	if len(found) > 0 {
		what = strings.Join(found, ", ")
	}
	noun := r.Noun
	if noun == "" {
		noun = "object"
	}
	return what + " in " + Counted(len(r.Subjects), noun)
}

// Counted returns a number and a noun in the right form.
func Counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
