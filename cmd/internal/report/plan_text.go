package report

import (
	"bufio"
	"fmt"
	"io"

	"github.com/espalier-dev/espalier/crd/impact"
)

// text writes, for each plan,
//
//	crons.example.com: 3 of 10 objects lose data, 7 stay as they are
//
//	3 objects lose fields:
//	  spec.note (v1): 3 objects: team/a, team/b, team/c
//	  fix: …
//
// and who is affected. Names and messages are those of objects, and hostile.
func (all Plans) text(w io.Writer, o Options) error {
	p := &printer{bufio.NewWriter(w), o.Color}
	for i, plan := range all {
		if i > 0 {
			fmt.Fprintln(p)
		}
		p.plan(plan)
	}
	return p.Flush()
}

func (p *printer) plan(plan *Plan) {
	color := green
	switch {
	case plan.Breaks():
		color = red
	case plan.Summary.Affected > 0:
		color = yellow
	}
	fmt.Fprintf(p, "%s %s\n", p.in(bold, printable(plan.CRD)+":"), p.in(color, printable(plan.headline())))
	for _, n := range plan.Refused {
		at := ""
		if n.File != "" {
			at = n.Place.String() + ": "
		}
		fmt.Fprintf(p, "  %s%s\n", p.in(bold, printable(at)), printable(shortened(n.Message)))
	}
	for _, e := range plan.effects() {
		p.effect(&e)
	}
	p.affected(plan)
	p.listed(plan.Summary.Listed)
	for i, n := range plan.Notes {
		if i == 0 {
			fmt.Fprintln(p)
		}
		fmt.Fprintf(p, "%s %s\n", p.in(dim, "note:"), printable(n))
	}
	if plan.ID != "" {
		fmt.Fprintf(p, "\n%s %s\n", p.in(dim, "plan:"), printable(plan.ID))
	}
	if plan.Approve != "" {
		fmt.Fprintf(p, "%s %s\n", p.in(dim, "approve:"), printable(plan.Approve))
	}
}

func (p *printer) effect(e *planEffect) {
	color := yellow
	if e.Breaks() {
		color = red
	}
	fmt.Fprintf(p, "\n%s\n", p.in(color, printable(e.Title())+":"))
	for i := range e.Groups {
		g := &e.Groups[i]
		fmt.Fprintf(p, "  %s: %s\n", p.in(bold, printable(groupPlace(g))), printable(join(counted(g.Objects, "object"), examples(g))))
		if text := groupMessage(g); text != "" {
			fmt.Fprintf(p, "    %s\n", printable(text))
		}
	}
	if e.More > 0 {
		fmt.Fprintf(p, "  and %s\n", counted(int64(e.More), "more place"))
	}
	fmt.Fprintf(p, "  %s %s\n", p.in(dim, "fix:"), p.in(green, e.Fix()))
}

func join(count, examples string) string {
	if examples == "" {
		return count
	}
	return count + ": " + examples
}

// affected says who writes and owns the objects.
func (p *printer) affected(plan *Plan) {
	s := &plan.Summary
	if len(s.Managers)+len(s.Owners) > 0 {
		fmt.Fprintln(p)
	}
	if len(s.Managers) > 0 {
		fmt.Fprintf(p, "%s %s\n", p.in(dim, "written by:"), printable(names(s.Managers)))
	}
	if len(s.Owners) > 0 {
		fmt.Fprintf(p, "%s %s\n", p.in(dim, "owned by:"), printable(names(s.Owners)))
	}
}

// listed says what happens to single objects.
func (p *printer) listed(list []impact.Outcome) {
	for i := range list {
		fmt.Fprintf(p, "\n%s %s\n", p.in(bold, printable(shortened(list[i].Path()))), p.in(dim, "("+printable(shortened(list[i].Version))+")"))
		for _, line := range outcomeLines(&list[i]) {
			fmt.Fprintf(p, "  %s\n", printable(line))
		}
	}
}
