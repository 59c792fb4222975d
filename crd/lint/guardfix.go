package lint

import (
	"fmt"
	"slices"
	"strings"
)

// A fix of a rule that reads an absent field puts a test of the field before a part of
// the rule. It must not change the result of the rule for any object for which the rule
// has one: && and || have a result in spite of an error on one side, so a test before
// the whole rule can make true what is false today.
//
// The proof: the test goes before a part that fails whenever the field is absent
// (strict). Where the part has a value, the field is present, the test changes nothing,
// and the part keeps its value. Where the part fails, it gets a value instead; and what
// has a result in spite of a failing part has the same result for every value of the
// part. So only objects change for which the rule fails today, and the API server
// refuses all of these. The text of the fix names them.

// unguardedRead is one read of an optional field.
type unguardedRead struct {
	offset int    // in characters of the rule
	path   string // as the rule writes it
}

// guardPlan is a test to be put before a part.
type guardPlan struct {
	part  *logic
	reads []string
}

// maxGuarded is how many reads a fix takes care of.
const maxGuarded = 32

// guarding returns the rule with tests for what it reads, and what that changes. It
// returns "" if the fix has no proof.
func guarding(rule string, reads []unguardedRead) (fixed, changes string) {
	if len(reads) == 0 || len(reads) > maxGuarded {
		return "", ""
	}
	r, root := readLogic(rule)
	if root == nil {
		return "", ""
	}
	var plans []*guardPlan
	for _, read := range reads {
		part := root.at(read.offset)
		if read.offset < 0 || strings.Contains(read.path, "…") || !r.strict(part)[read.path] {
			return "", ""
		}
		// As far out as the rule fails without the field: one test for several reads.
		for p := part.parent; p != nil && p.kind != isAll && p.kind != isExists && r.strict(p)[read.path]; p = p.parent {
			part = p
		}
		i := slices.IndexFunc(plans, func(g *guardPlan) bool { return g.part == part })
		if i < 0 {
			i = len(plans)
			plans = append(plans, &guardPlan{part: part})
		}
		if !slices.Contains(plans[i].reads, read.path) {
			plans[i].reads = append(plans[i].reads, read.path)
		}
	}
	return r.rewrite(plans), describe(r, plans)
}

// absentIs says what a part counts as without the field. A requirement counts as
// satisfied, because the field is optional. An alternative counts as false, and so
// does a condition: there is nothing that could satisfy it.
func (n *logic) absentIs() bool {
	requirement := true
	for at := n; at.parent != nil; at = at.parent {
		p := at.parent
		switch {
		case p.kind == isNot:
			return false
		case p.kind == isChoice && p.parts[0] == at:
			return n.unequal // x != 'a' is true of an absent x
		case p.kind == isOr, p.kind == isExists:
			requirement = false
		case p.kind == isAll:
			// Each element is a requirement again. That the whole is an
			// alternative to something else does not matter to it.
			return requirement
		}
	}
	return requirement
}

// rewrite puts the tests into the text.
func (r *logicReader) rewrite(plans []*guardPlan) string {
	slices.SortFunc(plans, func(a, b *guardPlan) int { return a.part.from - b.part.from })
	type insert struct {
		at   int
		text string
	}
	var list []insert
	var ends []insert // innermost last
	flush := func(upTo int) {
		for len(ends) > 0 && ends[len(ends)-1].at <= upTo {
			list = append(list, ends[len(ends)-1])
			ends = ends[:len(ends)-1]
		}
	}
	for _, g := range plans {
		flush(g.part.from)
		before, after := g.around()
		list = append(list, insert{g.part.from, before})
		if after != "" {
			ends = append(ends, insert{g.part.to, after})
		}
	}
	flush(len(r.text))
	var b strings.Builder
	at := 0
	for _, t := range r.tokens[1:] {
		for len(list) > 0 && list[0].at <= t.from {
			if strings.HasPrefix(list[0].text, ")") {
				b.WriteString(list[0].text)
				list = list[1:]
				continue
			}
			break
		}
		switch gap := string(r.text[at:t.from]); {
		case strings.Contains(gap, "\n"), strings.Contains(gap, "//"):
			b.WriteByte(' ') // a comment would end at the end of the line, which is not kept
		case b.Len() > 0:
			b.WriteString(gap)
		}
		for len(list) > 0 && list[0].at <= t.from {
			b.WriteString(list[0].text)
			list = list[1:]
		}
		b.WriteString(t.text)
		at = t.to
	}
	for _, i := range list {
		b.WriteString(i.text)
	}
	return strings.TrimSpace(b.String())
}

// around returns what is written before and after the part.
func (g *guardPlan) around() (before, after string) {
	operator := " && "
	if g.part.absentIs() {
		operator = " || "
	}
	var b strings.Builder
	if !g.part.closed {
		b.WriteByte('(')
		after = ")"
	}
	for _, read := range g.reads {
		if operator == " || " {
			b.WriteByte('!')
		}
		b.WriteString(presence(read))
		b.WriteString(operator)
	}
	binds := g.part.kind == isChoice || operator == " && " && g.part.kind == isOr
	if binds {
		b.WriteByte('(')
		after += ")"
	}
	return b.String(), after
}

// describe says what a fix changes.
func describe(r *logicReader, plans []*guardPlan) string {
	var lines []string
	for _, g := range plans {
		fields := strings.Join(g.reads, " or ")
		if g.part.parent == nil {
			lines = append(lines, fmt.Sprintf("# Objects without %s are accepted. Today the rule fails, and the API server refuses them. To refuse them still, require the field.", fields))
			continue
		}
		text := strings.Join(strings.Fields(string(r.text[g.part.from:g.part.to])), " ")
		lines = append(lines, fmt.Sprintf("# Without %s, %s counts as %v. Today the rule fails, and the API server refuses the object.", fields, short(text), g.part.absentIs()))
	}
	return strings.Join(lines, "\n")
}
