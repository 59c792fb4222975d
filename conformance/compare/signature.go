package compare

import (
	"regexp"
	"strings"
)

var (
	inBrackets = regexp.MustCompile(`\[[^\]]*\]`)
	inQuotes   = regexp.MustCompile(`"(?:[^"\\]|\\.)*"`)
	pathBefore = regexp.MustCompile(`^[^ ]*: `)
	digits     = regexp.MustCompile(`\d+`)
)

// signature names the kind of a difference, so that one defect is printed once and not ten thousand times. It is
// coarse: what a defect hides shows when the defect is mended.
func signature(d *Difference) string {
	kind := func(s string) string {
		first, _, _ := strings.Cut(s, "\n")
		if strings.HasPrefix(first, "{") {
			return "object"
		}
		if route, _, ok := strings.Cut(first, ": {"); ok && !strings.HasPrefix(first, "refused") {
			return route
		}
		first = pathBefore.ReplaceAllString(first, "")
		first = inBrackets.ReplaceAllString(first, "[]")
		first = inQuotes.ReplaceAllString(first, "")
		first = digits.ReplaceAllString(first, "0")
		if len(first) > 200 {
			first = first[:60] + first[len(first)-100:]
		}
		return first
	}
	a, b := kind(d.Ours), kind(d.Theirs)
	if a == "object" && b == "object" {
		// which part differs: the bytes, or the list of unknown fields
		x, _, _ := strings.Cut(d.Ours, "\n")
		y, _, _ := strings.Cut(d.Theirs, "\n")
		if x == y {
			b = "unknown fields"
		}
	}
	return d.What + "|" + a + "|" + b
}

// shape is what a shrunk difference looks like without its names and numbers.
func shape(d *Difference) string {
	s := inQuotes.ReplaceAllString(d.What+"|"+d.Ours+"|"+d.Theirs, "")
	return digits.ReplaceAllString(inBrackets.ReplaceAllString(s, "[]"), "0")
}
