package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/espalier-dev/espalier/internal/markdown"
)

// markdown writes the plans for a pull request or a job's summary. Everything that objects and
// CRDs say is code, so that nothing in it is markup, a mention or a reference.
func (all Plans) markdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	for i, plan := range all {
		if i > 0 {
			fmt.Fprintln(b)
		}
		plan.markdown(b)
	}
	return b.Flush()
}

func (p *Plan) markdown(b *bufio.Writer) {
	mark := "✅"
	switch {
	case p.Breaks():
		mark = "❌"
	case p.Summary.Affected > 0:
		mark = "⚠️"
	}
	text := p.headline()
	if p.Unplanned != "" {
		text = codeLine(text) // it can repeat what the CRD says
	}
	fmt.Fprintf(b, "### %s %s: %s\n", mark, codeLine(p.CRD), text)
	for i, n := range p.Refused {
		if i == 0 {
			fmt.Fprintln(b)
		}
		at := ""
		if n.File != "" {
			at = codeLine(n.Place.String()) + ": "
		}
		fmt.Fprintf(b, "- %s%s\n", at, codeLine(shortened(n.Message)))
	}
	if effects := p.effects(); len(effects) > 0 {
		fmt.Fprint(b, "\n| what happens | where | objects | examples |\n|---|---|---:|---|\n")
		for i := range effects {
			effects[i].rows(b)
		}
		fmt.Fprintln(b)
		for i := range effects {
			fmt.Fprintf(b, "- **%s**: %s.\n", effects[i].Title(), effects[i].Fix())
		}
	}
	p.whoMarkdown(b)
	for _, n := range p.Notes {
		fmt.Fprintf(b, "\n> %s\n", escaped(n))
	}
	if p.ID != "" {
		fmt.Fprintf(b, "\nPlan %s\n", codeLine(p.ID))
	}
	if p.Approve != "" {
		fmt.Fprintf(b, "\nTo approve it:\n\n```sh\n%s\n```\n", printable(p.Approve))
	}
}

// rows are those of a table, one for each place.
func (e *planEffect) rows(b *bufio.Writer) {
	says := e.Says()
	if e.Breaks() {
		says = "**" + says + "**"
	}
	for i := range e.Groups {
		g := &e.Groups[i]
		where := codeCell(groupPlace(g))
		if text := groupMessage(g); text != "" {
			where += "<br>" + codeCell(text)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", says, where, number(g.Objects), codeCell(examples(g)))
		says = ""
	}
	if e.More > 0 {
		fmt.Fprintf(b, "| | and %s | | |\n", counted(int64(e.More), "more place"))
	}
}

func (p *Plan) whoMarkdown(b *bufio.Writer) {
	s := &p.Summary
	if len(s.Managers) > 0 {
		fmt.Fprintf(b, "\nWritten by %s.\n", codeLine(names(s.Managers)))
	}
	if len(s.Owners) > 0 {
		fmt.Fprintf(b, "\nOwned by %s.\n", codeLine(names(s.Owners)))
	}
	if len(s.Listed) == 0 {
		return
	}
	fmt.Fprintf(b, "\n<details><summary>%d of %s</summary>\n\n", len(s.Listed), counted(s.Affected, "affected object"))
	for i := range s.Listed {
		x := &s.Listed[i]
		fmt.Fprintf(b, "- %s in %s\n", codeLine(x.Path()), codeLine(x.Version))
		for _, line := range outcomeLines(x) {
			fmt.Fprintf(b, "  - %s\n", codeLine(line))
		}
	}
	fmt.Fprint(b, "\n</details>\n")
}

// codeLine is code without what could move a cursor.
func codeLine(s string) string { return markdown.Code(printable(s)) }

// codeCell is code in a cell of a table, where the bar is escaped even within code.
func codeCell(s string) string { return strings.ReplaceAll(codeLine(s), "|", `\|`) }

// escaped is a sentence of ours with names in it, in which nothing is markup.
func escaped(s string) string {
	return strings.NewReplacer(`\`, `\\`, "<", "&lt;", ">", "&gt;", "&", "&amp;", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`", "@", "&#64;", "#", `\#`, "\n", " ").Replace(printable(s))
}
