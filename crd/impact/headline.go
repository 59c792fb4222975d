package impact

import (
	"strconv"
	"strings"
)

// maxHeadline is how many effects a headline names.
const maxHeadline = 4

// Headline says in one sentence what a change does to the objects, the most severe effects first.
func (s *Summary) Headline() string {
	of := " of " + grouped(s.Objects) + " objects "
	if s.Affected == 0 {
		return "nothing changes for " + grouped(s.Objects) + " stored objects"
	}
	var parts []string
	for i := range effects {
		n := s.Counts[effects[i].name]
		if n == 0 {
			continue
		}
		if len(parts) == maxHeadline {
			parts = append(parts, "and more")
			break
		}
		parts = append(parts, grouped(n)+of+effects[i].says)
		of = " "
	}
	return strings.Join(parts, ", ")
}

// grouped writes a number with commas between thousands.
func grouped(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}
