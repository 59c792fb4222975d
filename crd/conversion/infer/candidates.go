package infer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/spelling"
)

// candidate is a pair of fields that may be the same.
type candidate struct {
	a, b  *node
	score int // of 100
	why   string
	wrap  int // 1: b is a list of a; -1: a is a list of b
	keyed bool
}

// What scores mean.
const (
	least = 50 // to be proposed
	sure  = 85
)

// match finds rules for the open fields of a context: the best candidates first.
func (w *work) match(open *[2][]*node) {
	var all []candidate
	byName, byText := map[string][]*node{}, map[string][]*node{}
	siblings := map[string][]*node{}
	for _, n := range open[1] {
		byName[strings.ToLower(n.name)] = append(byName[strings.ToLower(n.name)], n)
		if text := description(n); text != "" {
			byText[text] = append(byText[text], n)
		}
		siblings[n.parent.path] = append(siblings[n.parent.path], n)
	}
	for _, a := range open[0] {
		if a.taken {
			continue
		}
		const near = 64
		var partners []*node
		for _, list := range [][]*node{byName[strings.ToLower(a.name)], byText[description(a)], siblings[a.parent.path]} {
			partners = append(partners, list[:min(len(list), near)]...)
		}
		for _, b := range partners {
			if !b.taken {
				if c := compare(a, b); c.score >= least {
					all = append(all, c)
				}
			}
		}
	}
	slices.SortStableFunc(all, func(x, y candidate) int { return y.score - x.score })
	for _, c := range all {
		if c.a.blocked() || c.b.blocked() {
			continue
		}
		w.accept(c)
	}
}

// blocked reports whether the node, or what holds it, is part of a rule already.
func (n *node) blocked() bool {
	for up := n; up != nil; up = up.parent {
		if up.taken {
			return true
		}
	}
	return false
}

func (w *work) accept(c candidate) {
	certain := c.score >= sure
	switch {
	case c.keyed:
		if !w.keyed(c.a, c.b, certain, c.why) {
			return
		}
	case c.wrap > 0:
		w.rule(certain, c.why, "wrap: {from: %s, to: %s}", quote(c.a.path), quote(c.b.path))
	case c.wrap < 0:
		w.rule(certain, c.why, "unwrap: {from: %s, to: %s}", quote(c.a.path), quote(c.b.path))
	case w.enum(c.a, c.b):
	default:
		w.rule(certain, c.why, "move: {from: %s, to: %s}", quote(c.a.path), quote(c.b.path))
	}
	// What is below them is paired like the rest.
	if c.wrap == 0 && !c.keyed {
		var inner [2][]*node
		w.same(c.a, c.b, &inner)
		for side := range inner {
			for _, n := range inner[side] {
				if !n.taken {
					w.left[side] = append(w.left[side], n)
				}
			}
		}
	}
	c.a.taken, c.b.taken = true, true
}

func description(n *node) string {
	if n.schema == nil || len(n.schema.Description) < 12 {
		return ""
	}
	return n.schema.Description
}

// compare says how likely it is that two fields are the same.
func compare(a, b *node) candidate {
	c := candidate{a: a, b: b}
	x, y := a, b
	switch {
	case alike(a, b):
	case b.kind == list && identical(a, b.item()):
		c.wrap, y = 1, b.item()
	case a.kind == list && identical(b, a.item()):
		c.wrap, x = -1, a.item()
	case a.kind == list && b.kind == mapping || a.kind == mapping && b.kind == list:
		c.keyed = true
	default:
		return c
	}
	together := a.parent.path == b.parent.path
	name, why := likeness(a.name, b.name, c.wrap != 0)
	c.score, c.why = name, why
	text := description(a)
	switch {
	case text != "" && text == description(b):
		c.score += 40
		c.why += ", and the descriptions are the same"
	case text != "" && description(b) != "" && overlap(text, description(b)) > 60:
		c.score += 25
		c.why += ", and the descriptions are similar"
	}
	if together {
		c.score += 15
	} else if a.name != b.name {
		c.score -= 15
	} else {
		c.why += fmt.Sprintf(", in %s instead of %s", orRoot(b.parent.path), orRoot(a.parent.path))
	}
	switch {
	case a.kind == object && c.wrap == 0:
		share := sameMembers(a, b)
		c.score += share/2 - 25
	case x.kind == leaf && y.kind == leaf && len(a.enum()) > 0 && slices.Equal(a.enum(), b.enum()):
		c.score += 25
		c.why += ", and both have the same enum"
	case a.schema != nil && b.schema != nil && a.schema.Format != b.schema.Format:
		c.score -= 15
	}
	c.why = strings.TrimPrefix(c.why, ", and ")
	return c
}

func orRoot(path string) string {
	if path == "" {
		return "the object"
	}
	return path
}

// likeness scores two names.
func likeness(a, b string, plural bool) (int, string) {
	if a == b {
		return 70, "the names are the same"
	}
	if strings.EqualFold(a, b) || strings.EqualFold(strings.Join(words(a), ""), strings.Join(words(b), "")) {
		return 72, "the names differ in upper case"
	}
	if singular(a) == singular(b) {
		if plural {
			return 75, "one name is the plural of the other"
		}
		return 60, "one name is the plural of the other"
	}
	if limit := spelling.Limit(a); spelling.Distance(a, b, limit) < limit {
		return 50, fmt.Sprintf("%s and %s are spelt alike", a, b)
	}
	x, y := words(a), words(b)
	common := 0
	for _, p := range x {
		if slices.Contains(y, p) {
			common++
		}
	}
	if common > 0 {
		return 20 + 40*common/max(len(x), len(y)), fmt.Sprintf("%s and %s have words in common", a, b)
	}
	return 0, ""
}

// overlap returns how much of the words of two texts are the same, in percent.
func overlap(a, b string) int {
	const most = 200
	x, y := strings.Fields(a), strings.Fields(b)
	x, y = x[:min(len(x), most)], y[:min(len(y), most)]
	have := map[string]int{}
	for _, word := range x {
		have[word]++
	}
	common := 0
	for _, word := range y {
		if have[word] > 0 {
			have[word]--
			common++
		}
	}
	return 200 * common / (len(x) + len(y))
}

// sameMembers returns how many of the fields of two objects are the same, in percent.
func sameMembers(a, b *node) int {
	common, all := 0, len(b.schema.Properties)
	for _, p := range a.schema.Properties {
		if b.schema.Property(p.Name) != nil {
			common++
		} else {
			all++
		}
	}
	if all == 0 {
		return 50
	}
	return 100 * common / all
}
