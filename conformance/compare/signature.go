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
// coarse: what a defect hides shows when the defect is fixed.
func signature(d *Difference) string {
	if strings.HasPrefix(d.What, validatePrefix) || strings.HasPrefix(d.What, crdPrefix) || strings.HasPrefix(d.What, "rules") {
		return d.What + "|" + gist(d.Ours) + "|" + gist(d.Theirs)
	}
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

// gist is the first of some errors without the names and values in it.
func gist(errors string) string {
	first, _, _ := strings.Cut(errors, "\n")
	kind, rest, ok := strings.Cut(first, "|")
	if !ok {
		rest = first
	}
	if f := strings.SplitN(rest, "|", 3); ok && len(f) == 3 { // field, value, detail and text
		rest = f[2]
		if at := strings.Index(rest, " in body "); at >= 0 {
			rest = rest[at:]
		}
	}
	var words []string
	for _, w := range strings.Fields(inQuotes.ReplaceAllString(rest, "")) {
		if w = digits.ReplaceAllString(w, "0"); !strings.ContainsAny(w, ".[|'=") && len(words) < 6 {
			words = append(words, w)
		}
	}
	return kind + " " + strings.Join(words, " ")
}

// shape is what a shrunk difference looks like without its names and numbers.
func shape(d *Difference) string {
	s := inQuotes.ReplaceAllString(d.What+"|"+d.Ours+"|"+d.Theirs, "")
	return digits.ReplaceAllString(inBrackets.ReplaceAllString(s, "[]"), "0")
}
