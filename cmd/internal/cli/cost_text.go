package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/espalier-dev/espalier/crd/cel"
)

// maxShownParts is how many parts of an expression are shown, and minShare the
// share of its cost that they have at least, in per cent.
const (
	maxShownParts = 6
	minShare      = 5
)

// costText shows costs to people.
func (a *App) costText(c *costing) error {
	var b strings.Builder
	for i, e := range c.shown() {
		if i > 0 {
			b.WriteByte('\n')
		}
		e.write(&b)
	}
	if n := len(c.expressions) - len(c.shown()); n > 0 {
		fmt.Fprintf(&b, "\nand %s; --top 0 shows all\n", count(n, "more expression"))
	}
	if len(c.expressions) > 0 {
		b.WriteByte('\n')
	}
	versions := c.versions
	if n := c.options.top; n > 0 {
		versions = versions[:min(n, len(versions))]
	}
	for _, v := range versions {
		fmt.Fprintf(&b, "%s: %s %s: %s, %s for all", v.File, v.Object, v.Version, count(v.Expressions, "expression"), ofLimit(v.Total, cel.MaxSchemaCost))
		if v.Over {
			b.WriteString(": TOO MUCH")
		}
		b.WriteByte('\n')
		v.remedy(&b)
		if v.Errors > 0 {
			fmt.Fprintf(&b, "  it has %s, and rules with errors have no cost: '%s check' says more\n", count(v.Errors, "error"), a.Name)
		}
	}
	if n := len(c.versions) - len(versions); n > 0 {
		fmt.Fprintf(&b, "and %s\n", count(n, "more version"))
	}
	_, err := fmt.Fprint(a.Out, b.String())
	return err
}

func (e *expressionCost) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s:%d:%d: %s for one", e.File, e.Line, e.Column, ofLimit(e.Total, cel.MaxRuleCost))
	if e.Over {
		b.WriteString(": TOO MUCH")
	}
	fmt.Fprintf(b, "\n  %s\n", e.Path)
	for line := range strings.Lines(e.Expression) {
		fmt.Fprintf(b, "  │ %s\n", strings.TrimRight(line, "\r\n"))
	}
	fmt.Fprintf(b, "  costs %s", thousands(e.Cost))
	if e.Times != 1 {
		fmt.Fprintf(b, ", %s times: %s", thousands(e.Times), thousands(e.Total))
	}
	b.WriteByte('\n')
	for _, p := range e.largestParts() {
		fmt.Fprintf(b, "  %5s  %s at %d:%d\n", share(p.Cost, e.Cost), e.name(p), p.Line, p.Column)
	}
	for i, x := range e.Bounds {
		add := "add"
		if i > 0 {
			add = "and"
		}
		fmt.Fprintf(b, "  %s %s: %d at %s (%s): then %s\n", add, x.Keyword, x.Value, x.Path, x.Why, ofLimit(x.Total, cel.MaxRuleCost))
	}
}

// remedy shows what brings a version below the limits.
func (v *versionCost) remedy(b *strings.Builder) {
	switch {
	case !v.exceeds:
	case len(v.Bounds) == 0:
		b.WriteString("  found no set of bounds that allows real values and keeps the limits: simplify the rules\n")
	default:
		verb := "bring"
		if len(v.Bounds) == 1 {
			verb = "brings"
		}
		fmt.Fprintf(b, "  %s %s it below all limits, from %s to %s:\n", count(len(v.Bounds), "bound"), verb, thousands(v.Total), thousands(v.After))
		for _, x := range v.Bounds {
			fmt.Fprintf(b, "    %s: %d at %s (%s)\n", x.Keyword, x.Value, x.Path, x.Why)
		}
	}
}

// largestParts returns the parts that the cost comes from.
func (e *expressionCost) largestParts() []partCost {
	var list []partCost
	for _, p := range e.Parts {
		if float64(p.Cost) < float64(e.Cost)*minShare/100 || p.Cost < 10 {
			continue
		}
		list = append(list, p)
	}
	slices.SortStableFunc(list, func(a, b partCost) int { return cmp.Compare(b.Cost, a.Cost) })
	return list[:min(len(list), maxShownParts)]
}

// name is what a part is called in the expression. Macros are expanded to loops;
// the place of one is that of the bracket after its name.
func (e *expressionCost) name(p partCost) string {
	if p.What != "for" {
		return p.What
	}
	lines := strings.Split(e.Expression, "\n")
	if p.Line > len(lines) {
		return p.What
	}
	line := []rune(lines[p.Line-1])
	end := min(p.Column-1, len(line))
	begin := end
	for begin > 0 && (line[begin-1] == '_' || unicode.IsLetter(line[begin-1])) {
		begin--
	}
	if begin == end {
		return p.What
	}
	return string(line[begin:end])
}

// share renders a part of a whole in per cent.
func share(part, whole uint64) string {
	p := float64(part) / float64(max(whole, 1)) * 100
	switch {
	case p == 0:
		return "0 %"
	case p < 1:
		return "<1 %"
	}
	return strconv.FormatFloat(p, 'f', 0, 64) + " %"
}

// ofLimit is share for a limit, which can be exceeded by any amount.
func ofLimit(cost, limit uint64) string {
	if cost/1000 > limit {
		return "over 1000 times the limit"
	}
	return share(cost, limit) + " of the limit"
}

// thousands renders a number with separators.
func thousands(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(uint64(n)) + " " + noun + "s"
}
