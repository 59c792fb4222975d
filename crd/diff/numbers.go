package diff

import (
	"math"
	"strconv"

	"github.com/espalier-dev/espalier/internal/exec"
	"github.com/espalier-dev/espalier/internal/plan"
)

// A side is one end of a range of numbers. What is said below about upper
// bounds holds for lower ones with all numbers negated.
type side struct {
	keyword string
	sign    float64
	of      func(*schema) (*float64, bool) // the bound, and whether it is exclusive
}

var sides = []side{
	{"maximum", 1, func(s *schema) (*float64, bool) { return s.Maximum, s.ExclusiveMaximum }},
	{"minimum", -1, func(s *schema) (*float64, bool) { return s.Minimum, s.ExclusiveMinimum }},
}

// exact is what floats count up to without gaps.
const exact = 1 << 53

// usable reports whether a bound means what it says: clusters refuse every
// number if a bound is none of the type and format beside it, and convert those
// that are too large for an integer.
func usable(s *schema, bound float64) bool {
	return math.Abs(bound) < exact &&
		(s.IntOrString || exec.Representable(plan.TypeOf(s.Type), s.Format, strconv.FormatFloat(bound, 'f', -1, 64)))
}

// limit is the end of a range: all numbers below it, and itself unless open.
type limit struct {
	at   float64
	open bool
}

func (a limit) within(b limit) bool { return a.at < b.at || a.at == b.at && (a.open || !b.open) }

// upper returns a limit that no number of a value exceeds. Clusters cut off the
// fraction of a bound before they compare it with an integer.
func (x side) upper(v *value) (best limit, shown string, ok bool) {
	take := func(l limit, text string) {
		if !ok || l.within(best) {
			best, shown, ok = l, text, true
		}
	}
	whole := v.whole()
	for i := range v.parts {
		s := v.parts[i].s
		if s.Type == "integer" && s.Format == "int32" && !s.IntOrString {
			end := limit{at: math.MaxInt32}
			if x.sign < 0 {
				end.at = -math.MinInt32
			}
			take(end, "the range of int32")
		}
		bound, open := x.of(s)
		if bound == nil || !usable(s, *bound) {
			continue
		}
		b := x.sign * *bound
		l := limit{max(b, math.Trunc(b)), open}
		if whole && open && l.at == math.Trunc(l.at) {
			l = limit{at: l.at - 1}
		}
		take(l, bounded(*bound, open))
	}
	if l, text, finite := x.listed(v); finite {
		take(l, text)
	}
	return best, shown, ok
}

// listed returns the limit that an enum sets.
func (x side) listed(v *value) (limit, string, bool) {
	for i := range v.parts {
		s := v.parts[i].s
		if len(s.Enum) == 0 {
			continue
		}
		l := limit{at: math.Inf(-1)}
		for _, e := range s.Enum {
			if f, err := strconv.ParseFloat(string(e.Raw), 64); err == nil {
				if math.Abs(f) >= exact {
					return limit{}, "", false
				}
				l.at = max(l.at, x.sign*f)
			}
		}
		return l, "an enum", true
	}
	return limit{}, "", false
}

// bounded renders a bound as CRDs have it: 2147483647, not 2.147483647e+09.
func bounded(f float64, open bool) string {
	form := byte('g')
	if math.Abs(f) < 1e21 && math.Abs(f) >= 1 {
		form = 'f'
	}
	text := strconv.FormatFloat(f, form, -1, 64)
	if open {
		text += " (exclusive)"
	}
	return text
}

func unmetNumbers(have *value, p part, found func(demand)) {
	for _, x := range sides {
		bound, open := x.of(p.s)
		if bound == nil || x.same(have, p, *bound, open) {
			continue
		}
		l, shown, ok := x.upper(have)
		d := demand{keyword: x.keyword, part: p, have: shown, want: bounded(*bound, open)}
		switch b := x.sign * *bound; {
		case !usable(p.s, *bound):
			d.detail = "kube-apiserver cannot compare numbers of this type with the bound, and rejects all numbers or none"
		case !ok || !l.within(limit{min(b, math.Trunc(b)), open}):
		default:
			continue
		}
		found(d)
	}
	unmetMultiple(have, p, found)
	unmetNumberFormat(have, p, found)
}

// same reports whether a part says the same about the same type, or more. The
// result on a bound depends on whether it stands in a logical keyword.
func (x side) same(have *value, p part, want float64, open bool) bool {
	for i := range have.parts {
		h := have.parts[i]
		bound, exclusive := x.of(h.s)
		if bound == nil || exclusive != open || h.nested != p.nested {
			continue
		}
		if *bound == want && h.s.Type == p.s.Type && h.s.Format == p.s.Format && h.s.IntOrString == p.s.IntOrString ||
			usable(h.s, *bound) && usable(p.s, want) && x.sign**bound <= x.sign*want {
			return true
		}
	}
	return false
}

func unmetMultiple(have *value, p part, found func(demand)) {
	want := p.s.MultipleOf
	if want == nil {
		return
	}
	plain := func(f float64) bool { return f >= 1 && f < exact && f == math.Trunc(f) }
	d := demand{keyword: "multipleOf", part: p, want: bounded(*want, false)}
	for i := range have.parts {
		h := have.parts[i]
		if h.s.MultipleOf == nil {
			continue
		}
		f := *h.s.MultipleOf
		if f == *want && h.nested == p.nested || have.whole() && plain(f) && plain(*want) && math.Mod(f, *want) == 0 {
			return
		}
		d.have = bounded(f, false)
	}
	if have.whole() && *want == 1 {
		return
	}
	found(d)
}

// unmetNumberFormat compares the formats of numbers that restrict them.
func unmetNumberFormat(have *value, p part, found func(demand)) {
	s := p.s
	if s.IntOrString || !(s.Type == "integer" && s.Format == "int32" || s.Type == "number" && s.Format == "float") {
		return
	}
	d := demand{keyword: "format", part: p, want: s.Format, detail: "the API server rejects numbers outside its range"}
	for i := range have.parts {
		h := have.parts[i].s
		if h.Type == s.Type && h.Format == s.Format && !h.IntOrString {
			return
		}
		if h.Format != "" {
			d.have = h.Format
		}
	}
	if s.Format == "float" && have.whole() {
		return
	}
	most, _, ok := sides[0].upper(have)
	least, _, also := sides[1].upper(have)
	if ok && also && (s.Format == "float" || most.at <= math.MaxInt32 && least.at <= -math.MinInt32) {
		return
	}
	found(d)
}
