package lint

import (
	"encoding/json"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/finding"
	schema "github.com/espalier-dev/espalier/internal/syntax"
)

// values looks at what a schema demands of values, within logical keywords too.
func (c *checker) values(n *node) {
	c.bounds(n)
	c.effects(n)
	c.enum(n)
	if n.schema.Pattern != "" {
		c.pattern(n)
	}
}

// bounds finds pairs of bounds that no value is between.
func (c *checker) bounds(n *node) {
	s := n.schema
	if n.negated {
		return
	}
	report := func(lower, upper string, low, high any) {
		c.at("bounds-contradict", n, lower, fmt.Sprintf("%s %v is above %s %v: no value is valid", lower, low, upper, high),
			fmt.Sprintf("Raise %s or lower %s.", upper, lower))
	}
	for _, b := range []struct {
		lower, upper string
		low, high    *int64
	}{
		{"minLength", "maxLength", s.MinLength, s.MaxLength},
		{"minItems", "maxItems", s.MinItems, s.MaxItems},
		{"minProperties", "maxProperties", s.MinProperties, s.MaxProperties},
	} {
		if b.low != nil && b.high != nil && *b.low > *b.high {
			report(b.lower, b.upper, *b.low, *b.high)
		}
	}
	if s.Minimum == nil || s.Maximum == nil {
		return
	}
	switch low, high := *s.Minimum, *s.Maximum; {
	case low > high:
		report("minimum", "maximum", low, high)
	case low == high && (s.ExclusiveMinimum || s.ExclusiveMaximum):
		c.at("bounds-contradict", n, "minimum", fmt.Sprintf("minimum and maximum are both %v and one is exclusive: no value is valid", low),
			"Remove exclusiveMinimum and exclusiveMaximum, or widen the bounds.")
	}
}

// restricts says which types a keyword is about.
var restricts = []struct{ keyword, kind string }{
	{"pattern", "string"}, {"minLength", "string"}, {"maxLength", "string"},
	{"minimum", "number"}, {"maximum", "number"}, {"multipleOf", "number"},
	{"minItems", "array"}, {"maxItems", "array"},
	{"minProperties", "object"}, {"maxProperties", "object"}, {"required", "object"},
}

// effects finds keywords beside a type that they say nothing about.
func (c *checker) effects(n *node) {
	s := n.schema
	kind := s.Type
	if kind == "" {
		return
	}
	if kind == "integer" {
		kind = "number"
	}
	for _, r := range restricts {
		if r.kind == kind || !s.Has(r.keyword) || r.keyword == "required" && len(s.Required) == 0 {
			continue
		}
		fix := fmt.Sprintf("Remove %s, or change the type.", r.keyword)
		if items := s.ItemSchema(); s.Type == "array" && items != nil && (items.Type == r.kind || items.Type == "integer" && r.kind == "number") {
			fix = fmt.Sprintf("Move %s to items.", r.keyword)
		}
		c.at("keyword-without-effect", n, r.keyword, fmt.Sprintf("%s restricts values of type %s; it has no effect on type %s", r.keyword, r.kind, s.Type), fix)
	}
}

func (c *checker) enum(n *node) {
	if len(n.schema.Enum) < 2 || !c.on["enum-duplicate"] {
		return
	}
	seen := make(map[string]bool, len(n.schema.Enum))
	for _, v := range n.schema.Enum {
		if seen[string(v.Raw)] {
			c.at("enum-duplicate", n, "enum", fmt.Sprintf("%s is listed more than once", short(string(v.Raw))), "Remove the duplicate.")
			return
		}
		seen[string(v.Raw)] = true
	}
}

// pattern finds patterns that refuse nothing, and those with a loose end.
func (c *checker) pattern(n *node) {
	s := n.schema
	if n.negated || s.Type != "" && s.Type != "string" {
		return
	}
	re, err := syntax.Parse(s.Pattern, syntax.Perl)
	if err != nil {
		return
	}
	switch {
	case slices.Contains([]string{".*", "^.*", "(.*)"}, s.Pattern):
		// An author who writes this does it on purpose.
	case vacuous(re):
		c.anchor(n, "pattern-vacuous", fmt.Sprintf("%s matches every string, because it matches the empty string and does not end in $", short(s.Pattern)))
	case looseEnd(re):
		c.anchor(n, "pattern-unanchored", fmt.Sprintf("%s does not end in $: the API server searches for the pattern, so any characters may follow its last repetition", short(s.Pattern)))
	}
}

// anchor reports a pattern that has no end. The fix refuses more strings, which its text
// says; it must not refuse those in the schema.
func (c *checker) anchor(n *node, check finding.ID, detail string) {
	s := n.schema
	found := c.at(check, n, "pattern", detail, "Begin the pattern with ^ and end it with $.")
	pattern := anchored(s.Pattern)
	re, err := regexp.Compile(pattern)
	if err != nil {
		return
	}
	shown := slices.Clone(s.Enum)
	for _, v := range []*schema.JSON{s.Default, s.Rare().Example} {
		if v != nil {
			shown = append(shown, *v)
		}
	}
	for _, v := range shown {
		var text string
		if json.Unmarshal(v.Raw, &text) == nil && !re.MatchString(text) {
			return // it shows that more is meant
		}
	}
	c.propose(found, "# Strings with other characters before or after the match, which are accepted today, are refused then.\npattern: "+quote(pattern), replaceString(s.At("pattern"), pattern))
}

func anchored(pattern string) string {
	if strings.Contains(pattern, "|") {
		pattern = "(?:" + strings.TrimPrefix(pattern, "^") + ")"
	}
	if !strings.HasPrefix(pattern, "^") {
		pattern = "^" + pattern
	}
	return pattern + "$"
}

func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

// vacuous reports whether an expression is certainly found in every string: it
// matches the empty string without asking for the end or for a word.
func vacuous(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest, syntax.OpBeginText, syntax.OpBeginLine:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || vacuous(re.Sub[0])
	case syntax.OpPlus, syntax.OpCapture:
		return vacuous(re.Sub[0])
	case syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !vacuous(sub) })
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, vacuous)
	}
	return false
}

// looseEnd reports whether an expression begins with ^ and ends in a repetition
// of characters other than any: the bound or the class at its end is in vain.
func looseEnd(re *syntax.Regexp) bool {
	for re.Op == syntax.OpCapture {
		re = re.Sub[0]
	}
	if re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText && re.Sub[0].Op != syntax.OpBeginLine {
		return false
	}
	last := re.Sub[len(re.Sub)-1]
	for last.Op == syntax.OpCapture {
		last = last.Sub[0]
	}
	switch last.Op {
	case syntax.OpStar, syntax.OpPlus, syntax.OpRepeat, syntax.OpQuest:
		sub := last.Sub[0]
		for sub.Op == syntax.OpCapture {
			sub = sub.Sub[0]
		}
		return sub.Op != syntax.OpAnyChar && sub.Op != syntax.OpAnyCharNotNL
	}
	return false
}
