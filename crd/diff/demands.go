package diff

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/espalier-dev/espalier/internal/format"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/pattern"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// demand is a demand of one side that the other side does not imply.
type demand struct {
	keyword    string
	part       part   // that has it
	have, want string // what the other side says instead, and what this one says
	doubt      string // why it cannot be said that some value is refused; empty if it can
	detail     string // what is refused, if that can be named
	values     string // of an enum, that the other side lists and this one does not
	hint       string // JSON of a value that may be refused
}

// demands reports the demands of n that o does not imply and, for readers, the
// demands of o that n does not imply.
func (c *comparer) demands(o, n value, kinds plan.Kinds, at *place, in around) {
	seen := map[string]bool{}
	c.unmet(o, n, kinds, in, n.fills, func(d demand) {
		if seen[d.keyword] && d.keyword != "required" {
			return
		}
		seen[d.keyword] = true
		c.tightened(&o, d, at)
	})
	told := seen["format"] // about the type that rules see
	if c.proving == 0 {
		relaxed := map[string]bool{}
		c.unmet(n, o, kinds, in, n.fills, func(d demand) {
			if !seen[d.keyword] && (!relaxed[d.keyword] || d.keyword == "required") {
				relaxed[d.keyword] = true
				told = told || d.keyword == "format" && typedFormats[d.want]
				c.relaxed(&n, d, at, in)
			}
		})
	}
	if n.frame != nil && in.ruled && !told && kinds&stringKind != 0 && typedFormat(o.frame.s) != typedFormat(n.frame.s) {
		c.report(at, Change{Check: "format-changed", Level: Risky, Breaks: Writers | Stored, Old: o.frame.s.Format, New: n.frame.s.Format,
			OldPointer: o.at("format"), NewPointer: n.at("format"),
			Message: "the format changed: the same strings are valid, but CEL rules see the value as another type"})
	}
}

const ratcheting = "; an update may keep an invalid value that it does not change (ratcheting, Kubernetes 1.30 and later)"

// tightened reports a demand of the new CRD.
func (c *comparer) tightened(o *value, d demand, at *place) {
	words := tightenings[d.keyword]
	if d.keyword == "required" {
		at = at.property(d.want)
	}
	x := Change{Check: words.check, Level: Breaking, Breaks: Writers | Stored, Old: shorten(d.have), New: shorten(d.want),
		OldPointer: o.at(d.keyword), NewPointer: d.part.at.to(d.keyword).String()}
	switch {
	case d.keyword == "enum" && d.have != "":
		x.Check = "enum-value-removed"
	case d.keyword == "pattern" && d.have != "":
		x.Check = "pattern-changed"
	case d.keyword == "format" && d.have != "":
		x.Check = "format-changed"
	}
	switch {
	case d.keyword == "required":
		x.Message = words.what + ": "
	case d.keyword == "anyOf", d.keyword == "oneOf", d.keyword == "not": // too long to be shown
		x.Message = words.what + ": "
		if d.have == "" {
			x.Message = d.keyword + " was added: "
		}
	case d.have == "":
		x.Message = fmt.Sprintf("%s: %s was added: ", d.keyword, x.New)
	default:
		x.Message = fmt.Sprintf("%s from %s to %s: ", words.what, x.Old, x.New)
	}
	if d.detail != "" {
		x.Message += d.detail
	} else {
		x.Message += words.refused
	}
	about := subject{at: at, keyword: d.keyword, decidable: true, hint: d.hint}
	if d.doubt != "" {
		x.Level = Risky
		about.doubt = " (" + d.doubt + ")"
		x.Message += about.doubt
	}
	x.Message += ratcheting
	c.reportOn(about, x)
}

// relaxed reports a demand of the old CRD that is gone.
func (c *comparer) relaxed(n *value, d demand, at *place, in around) {
	words := relaxations[d.keyword]
	if d.keyword == "required" {
		if _, after := c.property(n, d.want, in.root); after == dropped {
			return // with the field, which is reported
		}
		at = at.property(d.want)
	}
	x := Change{Check: words.check, Level: Safe, Breaks: Readers, Old: shorten(d.want), New: shorten(d.have),
		OldPointer: d.part.at.to(d.keyword).String(), NewPointer: n.at(d.keyword)}
	switch {
	case d.keyword == "enum" && d.have != "":
		x.Check, x.Level = "enum-value-added", Risky
	case d.keyword == "enum", d.keyword == "required":
		x.Level = Risky
	}
	x.Message = words.what + ": "
	if words.refused != "" {
		x.Message += words.refused
	} else {
		x.Message += "all valid objects stay valid, but readers may get values that they did not get before"
	}
	if d.values != "" {
		x.Message += " (new values: " + d.values + ")"
	}
	if d.keyword == "format" && in.ruled && typedFormats[d.want] {
		x.Level, x.Breaks = Risky, AllAudiences
		x.Message += "; CEL rules now see the value as a string"
	}
	c.report(at, x)
}

// typedFormats are those that give a string another type in rules.
var typedFormats = map[string]bool{"date": true, "date-time": true, "duration": true, "byte": true}

// typedFormat returns the format that rules see, empty if they see a string. Those in logical keywords do not count.
func typedFormat(s *schema) string {
	if !typedFormats[s.Format] {
		return ""
	}
	return s.Format
}

// unmet calls found for each demand of want that have does not imply. kinds are
// those of the values in question; fills is the schema of the new CRD
// that fills in defaults, if there is one.
func (c *comparer) unmet(have, want value, kinds plan.Kinds, in around, fills *schema, found func(demand)) {
	for _, p := range want.parts {
		if !c.spend(len(have.parts)) {
			return
		}
		if kinds&numberKind != 0 {
			unmetNumbers(&have, p, found)
		}
		if kinds&stringKind != 0 {
			c.unmetStrings(&have, p, found)
		}
		if kinds&arrayKind != 0 {
			unmetCount(&have, p, "maxItems", func(s *schema) *int64 { return s.MaxItems }, true, found)
			unmetCount(&have, p, "minItems", func(s *schema) *int64 { return s.MinItems }, false, found)
		}
		if kinds&objectKind != 0 {
			unmetCount(&have, p, "maxProperties", func(s *schema) *int64 { return s.MaxProperties }, true, found)
			if p.s.MinProperties != nil && int64(len(required(&have))) < *p.s.MinProperties {
				unmetCount(&have, p, "minProperties", func(s *schema) *int64 { return s.MinProperties }, false, found)
			}
			unmetRequired(&have, p, fills, found)
			unmetClosed(&have, p, found)
		}
		unmetEnum(&have, p, kinds, in, found)
		c.unmetLogical(have, p, in, fills, found)
	}
}

// unmetCount compares limits of lengths and sizes: the greatest if most is set.
func unmetCount(have *value, p part, keyword string, of func(*schema) *int64, most bool, found func(demand)) {
	want := of(p.s)
	if want == nil || !most && *want <= 0 {
		return
	}
	d := demand{keyword: keyword, part: p, want: strconv.FormatInt(*want, 10)}
	var tightest *int64
	for i := range have.parts {
		n := of(have.parts[i].s)
		if n == nil {
			continue
		}
		if most && *n <= *want || !most && *n >= *want {
			return
		}
		if tightest == nil || most == (*n < *tightest) {
			tightest, d.have = n, strconv.FormatInt(*n, 10)
		}
	}
	found(d)
}

func (c *comparer) unmetStrings(have *value, p part, found func(demand)) {
	s := p.s
	listed, finite := have.texts()
	fits := func(ok func(string) bool) bool {
		return finite && !slices.ContainsFunc(listed, func(t string) bool { return !ok(t) })
	}
	shortest, most, bounded := have.lengths()
	if n := s.MaxLength; n != nil && (!bounded || most > *n) && !fits(func(t string) bool { return int64(utf8.RuneCountInString(t)) <= *n }) {
		unmetCount(have, p, "maxLength", func(s *schema) *int64 { return s.MaxLength }, true, found)
	}
	if n := s.MinLength; n != nil && shortest < *n && !fits(func(t string) bool { return int64(utf8.RuneCountInString(t)) >= *n }) {
		unmetCount(have, p, "minLength", func(s *schema) *int64 { return s.MinLength }, false, found)
	}
	if s.Pattern != "" && !fits(func(t string) bool { return matches(s.Pattern, t) }) {
		c.unmetPattern(have, p, found)
	}
	if f := formatOf(s); f != 0 && f.String() != "password" && !fits(func(t string) bool { return f.Match([]byte(t)) }) {
		d := demand{keyword: "format", part: p, want: s.Format}
		for i := range have.parts {
			h := formatOf(have.parts[i].s)
			if h == f || within[h.String()] == f.String() {
				return
			}
			if h != 0 {
				d.have = have.parts[i].s.Format
			}
		}
		found(d)
	}
}

// within are the formats that are special cases of others.
var within = map[string]string{
	"uuid3": "uuid", "uuid4": "uuid", "uuid5": "uuid", "isbn10": "isbn", "isbn13": "isbn",
}

// formatOf returns the format that strings have to have. It may be one of numbers where there are no strings.
func formatOf(s *schema) format.Format { return format.Lookup(s.Format) }

func matches(expr, text string) bool {
	p, err := pattern.Compile(expr)
	return err == nil && p.Match([]byte(text))
}

// texts returns the strings that all enums list, false if there is no enum.
func (v *value) texts() (list []string, finite bool) {
	for i := range v.parts {
		enum := v.parts[i].s.Enum
		if len(enum) == 0 {
			continue
		}
		before := sets.New(list...)
		list = nil
		for _, e := range enum {
			if text, ok := unquote(e.Raw); ok && (!finite || before.Has(text)) {
				list = append(list, text)
			}
		}
		finite = true
	}
	return list, finite
}

func unquote(raw []byte) (string, bool) {
	if raw[0] != '"' {
		return "", false
	}
	return jsondoc.Unquote(raw), true
}

// admits reports whether a string satisfies all that v says about strings
// besides its enums and logical keywords.
func (v *value) admits(text string) bool {
	length := int64(utf8.RuneCountInString(text))
	for i := range v.parts {
		s := v.parts[i].s
		if s.MaxLength != nil && length > *s.MaxLength || s.MinLength != nil && length < *s.MinLength ||
			s.Pattern != "" && !matches(s.Pattern, text) || !formatOf(s).Match([]byte(text)) {
			return false
		}
	}
	return true
}

// longest returns the greatest length of strings, if there is one.
func (v *value) longest() (most int64, ok bool) {
	for i := range v.parts {
		if n := v.parts[i].s.MaxLength; n != nil && (!ok || *n < most) {
			most, ok = *n, true
		}
	}
	return most, ok
}

// lists reports whether v has enums.
func (v *value) lists() bool {
	return slices.ContainsFunc(v.parts, func(p part) bool { return len(p.s.Enum) > 0 })
}

// chooses reports whether v has logical keywords that leave a choice.
func (v *value) chooses() bool {
	return slices.ContainsFunc(v.parts, func(p part) bool { return len(p.s.AnyOf) > 1 || len(p.s.OneOf) > 1 || p.s.Not != nil })
}

func (c *comparer) unmetPattern(have *value, p part, found func(demand)) {
	d := demand{keyword: "pattern", part: p, want: p.s.Pattern}
	subset, example := c.contains("", p.s.Pattern)
	if subset == proven {
		return
	}
	for i := range have.parts {
		expr := have.parts[i].s.Pattern
		if expr == "" {
			continue
		}
		d.have = expr
		if expr == p.s.Pattern {
			return
		}
		if subset, example = c.contains(expr, p.s.Pattern); subset == proven {
			return
		}
	}
	if expr := have.window(); expr != "" {
		if within, _ := c.contains(expr, p.s.Pattern); within == proven {
			return
		}
	}
	if most, ok := have.longest(); ok && subset == refuted && int64(utf8.RuneCountInString(example)) > most {
		return // there is none that is shorter
	}
	if subset == refuted {
		d.hint = string(encoded(example))
	}
	switch {
	case subset == unknown:
		d.doubt = "the patterns are too large to compare"
	case have.admits(example) && !have.lists() && !have.chooses():
		d.detail = fmt.Sprintf("the API server accepted strings such as %s and now rejects them", strconv.Quote(shorten(example)))
	default:
		d.doubt = "other constraints on the field may already exclude such strings"
	}
	found(d)
}

// required returns the names that objects must have, each once.
func required(v *value) []string {
	var list []string
	for i := range v.parts {
		list = append(list, v.parts[i].s.Required...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func unmetRequired(have *value, p part, fills *schema, found func(demand)) {
	if len(p.s.Required) == 0 {
		return
	}
	has := required(have)
	for _, name := range p.s.Required {
		if _, ok := slices.BinarySearch(has, name); ok {
			continue
		}
		if fills != nil {
			if q := fills.Property(name); q != nil && q.Default != nil {
				continue
			}
		}
		found(demand{keyword: "required", part: p, want: name})
	}
}

// unmetClosed compares whether fields that a part does not name are refused.
func unmetClosed(have *value, p part, found func(demand)) {
	if p.s.AdditionalProperties == nil || p.s.AdditionalProperties.Allows {
		return
	}
	for i := range have.parts {
		h := &have.parts[i]
		closed := h.s.AdditionalProperties != nil && !h.s.AdditionalProperties.Allows ||
			i == 0 && h.s.AdditionalProperties == nil && !have.keeps()
		if closed && !slices.ContainsFunc(h.s.Properties, func(q syntax.Property) bool { return p.s.Property(q.Name) == nil }) {
			return
		}
	}
	found(demand{keyword: "additionalProperties", part: p, want: "false"})
}

func unmetEnum(have *value, p part, kinds plan.Kinds, in around, found func(demand)) {
	if len(p.s.Enum) == 0 {
		return
	}
	wanted := make(map[string]bool, len(p.s.Enum))
	for _, e := range p.s.Enum {
		wanted[string(e.Raw)] = true
	}
	d := demand{keyword: "enum", part: p, want: list(p.s)}
	nulls := !p.exempt && !in.branch && have.nulls(in.item) // nulls are validated
	var gone []string
	bounded := false
	for i := range have.parts {
		h := have.parts[i]
		if len(h.s.Enum) == 0 || nulls && h.exempt {
			continue
		}
		left := gone[:0:0]
		for _, e := range h.s.Enum {
			if raw := string(e.Raw); !wanted[raw] && (e.Raw[0] != 'n' || nulls) && fits(have, e.Raw, kinds) {
				left = append(left, raw)
			}
		}
		if len(left) == 0 {
			return
		}
		if !bounded || len(left) < len(gone) {
			gone, d.have = left, list(h.s)
		}
		bounded = true
	}
	if !bounded && kinds&^boolKind == 0 && wanted["true"] && wanted["false"] && (!nulls || wanted["null"]) {
		return
	}
	if bounded {
		d.values = shorten(strings.Join(gone, ", "))
		d.detail = "the API server rejects the removed values " + d.values
	}
	found(d)
}

// fits reports whether a listed value can occur at all.
func fits(v *value, raw []byte, kinds plan.Kinds) bool {
	switch raw[0] {
	case '"':
		text, _ := unquote(raw)
		return kinds&stringKind != 0 && v.admits(text)
	case '{':
		return kinds&objectKind != 0
	case '[':
		return kinds&arrayKind != 0
	case 't', 'f':
		return kinds&boolKind != 0
	case 'n':
		return true
	}
	return kinds&numberKind != 0
}

// list renders an enum.
func list(s *schema) string {
	var b []byte
	for i, e := range s.Enum {
		if i > 0 {
			b = append(b, ", "...)
		}
		if b = append(b, e.Raw...); len(b) > maxShown {
			break
		}
	}
	return string(b)
}
