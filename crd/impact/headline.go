package impact

import (
	"strconv"
	"strings"
)

// Headline says in one sentence what a change does to the objects: first how many lose data, then
// the other effects that break, or those that do not if none breaks.
func (s *Summary) Headline() string {
	switch {
	case s.Objects == 0:
		return "there are no objects"
	case s.Affected == 0 && s.Objects == 1:
		return "the only object stays as it is"
	case s.Affected == 0:
		return "all " + Number(s.Objects) + " objects stay as they are"
	}
	var parts []string
	add := func(n int64, one, several string) {
		text := several
		if n == 1 {
			text = one
		}
		if len(parts) == 0 && s.Objects == 1 {
			text = "of 1 object " + text
		} else if len(parts) == 0 {
			text = "of " + Number(s.Objects) + " objects " + text
		}
		parts = append(parts, Number(n)+" "+text)
	}
	if s.Losing > 0 {
		add(s.Losing, "loses data", "lose data")
	}
	shown := Breaking &^ Loss
	if s.Breaking == 0 {
		shown = ^Breaking
	}
	for _, e := range shown.Each() {
		if n := s.Counts[e.String()]; n > 0 {
			add(n, e.SaysOf(1), e.Says())
		}
	}
	if other := s.Affected - s.Breaking; other > 0 && s.Breaking > 0 {
		add(other, "changes otherwise", "change otherwise")
	}
	if same := s.Objects - s.Affected; same > 0 {
		add(same, "stays as it is", "stay as they are")
	}
	return strings.Join(parts, ", ")
}

// Number writes a number with commas between thousands.
func Number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
