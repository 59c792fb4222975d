package diff

import (
	"slices"
	"strconv"

	"github.com/espalier-dev/espalier/internal/plan"
)

// What is tried of logical keywords: more branches are left undecided.
const maxBranches = 64

// unmetLogical calls found for the logical keywords of a part that have does not imply.
func (c *comparer) unmetLogical(have value, p part, in around, fills *schema, found func(demand)) {
	s := p.s
	if len(s.AnyOf) > 1 && !c.impliesAny(have, p, "anyOf", s.AnyOf, in, fills) {
		found(demand{keyword: "anyOf", part: p, have: shownBranches(have, "anyOf"), want: strconv.Itoa(len(s.AnyOf)) + " branches",
			doubt: "Espalier could not prove that every old valid value matches a branch"})
	}
	if len(s.OneOf) > 1 && !c.impliesOne(have, p, in, fills) {
		found(demand{keyword: "oneOf", part: p, have: shownBranches(have, "oneOf"), want: strconv.Itoa(len(s.OneOf)) + " branches",
			doubt: "Espalier could not prove that every old valid value matches exactly one branch"})
	}
	if s.Not != nil && !c.impliesNot(have, p, in, fills) {
		found(demand{keyword: "not", part: p, have: shownBranches(have, "not"), want: "a schema",
			doubt: "Espalier could not prove that no old valid value matches the schema"})
	}
}

func shownBranches(v value, keyword string) string {
	for _, p := range v.parts {
		if p.s.Has(keyword) {
			return "another"
		}
	}
	return ""
}

// impliesBranch proves that values satisfy one branch of a logical keyword.
func (c *comparer) impliesBranch(have value, p part, in around, fills *schema) bool {
	want := value{parts: c.flatten(nil, p), fills: fills}
	in.branch = true
	return c.proves(have, want, nil, in)
}

// impliesAny proves that values satisfy one of the branches: all of them the
// same, or those of each alternative one.
func (c *comparer) impliesAny(have value, p part, keyword string, branches []*schema, in around, fills *schema) bool {
	wanted := map[digest]bool{}
	for _, b := range branches {
		wanted[c.digest(b)] = true
	}
	try := func(v value) bool {
		for i, b := range branches[:min(len(branches), maxBranches)] {
			if c.impliesBranch(v, branch(p, keyword, i, b), in, fills) {
				return true
			}
		}
		return false
	}
	for _, q := range have.parts {
		for _, alternatives := range []struct {
			keyword string
			list    []*schema
		}{{"anyOf", q.s.AnyOf}, {"oneOf", q.s.OneOf}} {
			if len(alternatives.list) < 2 {
				continue
			}
			left := slices.DeleteFunc(slices.Clone(alternatives.list), func(b *schema) bool { return wanted[c.digest(b)] })
			if len(left) > maxBranches {
				continue
			}
			if !slices.ContainsFunc(left, func(b *schema) bool {
				return !try(c.under(have, branch(q, alternatives.keyword, 0, b)))
			}) {
				return true
			}
		}
	}
	if try(have) {
		return true
	}
	kinds := byKind(&have)
	return len(kinds) > 1 && !slices.ContainsFunc(kinds, func(s *schema) bool {
		return !try(c.under(have, part{s: s, nested: true, exempt: true}))
	})
}

// byKind returns a schema for each kind of values that a value may have.
func byKind(v *value) (list []*schema) {
	k := v.kinds(true)
	number := "number"
	if v.whole() || v.intOrString() {
		number = "integer"
	}
	for _, x := range []struct {
		kind plan.Kinds
		name string
	}{{objectKind, "object"}, {arrayKind, "array"}, {stringKind, "string"}, {numberKind, number}, {boolKind, "boolean"}} {
		if k&x.kind != 0 {
			list = append(list, &schema{Type: x.name})
		}
	}
	return list
}

// impliesOne proves that values satisfy one branch and no other: the same
// logical keyword is there already, or no value can satisfy two.
func (c *comparer) impliesOne(have value, p part, in around, fills *schema) bool {
	want := c.branches(nil, p.s.OneOf)
	for _, q := range have.parts {
		if string(c.branches(nil, q.s.OneOf)) == string(want) {
			return true
		}
	}
	return c.exclusive(have, p, in, fills) && c.impliesAny(have, p, "oneOf", p.s.OneOf, in, fills)
}

// exclusive reports whether the branches of oneOf admit different kinds of
// values, or all but one admit none.
func (c *comparer) exclusive(have value, p part, in around, fills *schema) bool {
	var seen plan.Kinds
	for i, b := range p.s.OneOf {
		if i < maxBranches && c.impossible(have, branch(p, "oneOf", i, b), in, fills) {
			continue
		}
		v := c.under(have, branch(p, "oneOf", i, b))
		k := v.kinds(false) & have.kinds(true) &^ null
		if k&seen != 0 {
			return false
		}
		seen |= k
	}
	return true
}

// impliesNot proves that no value of have satisfies the schema below not. Either the
// two have no type in common, or have negates a schema already that accepts
// everything that this one accepts.
func (c *comparer) impliesNot(have value, p part, in around, fills *schema) bool {
	negated := negation(p)
	both := c.under(have, negated)
	if both.kinds(false)&have.kinds(true)&^null == 0 || c.impossible(have, negated, in, fills) {
		return true
	}
	for _, q := range have.parts {
		if q.s.Not == nil {
			continue
		}
		if c.digest(q.s.Not) == c.digest(p.s.Not) || c.impliesBranch(both, negation(q), in, nil) {
			return true
		}
	}
	return false
}

// impossible proves that no value of have satisfies a branch: it requires a field that have does not keep and that the
// new CRD does not fill in, or it negates what all values satisfy.
func (c *comparer) impossible(have value, p part, in around, fills *schema) bool {
	if have.frame == nil || have.kinds(true)&^null != objectKind || have.nulls(in.item) {
		return false
	}
	for _, q := range c.flatten(nil, p) {
		if !c.spend(1) {
			return false
		}
		for _, name := range q.s.Required {
			if _, how := c.property(&have, name, in.root); how != dropped {
				continue
			}
			if fills == nil || fills.Property(name) == nil || fills.Property(name).Default == nil {
				return true
			}
		}
		if q.s.Not != nil && c.impliesBranch(have, negation(q), in, fills) {
			return true
		}
	}
	return false
}
