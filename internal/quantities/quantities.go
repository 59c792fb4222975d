package quantities

import "strings"

const (
	// MaxLength is the longest quantity that is read. The library takes quadratic time:
	// 400,000 digits take seconds, and every rule that compares the quantity reads it again.
	MaxLength = 4096
	// MaxExponent is how many digits the exponent of a quantity may have: 1e99999999 has a
	// hundred million digits, and takes minutes. A number of twenty digits with the exponent
	// 9999 takes a tenth of a second to write, and one request can have thousands of them.
	// kube-apiserver has no such bound.
	MaxExponent = 2
)

// Costly reports whether a text is a number with a large exponent, or a long number.
func Costly(text string) bool {
	text = strings.TrimSpace(text)
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	rest := strings.TrimLeft(text, ".0123456789")
	if len(text)-len(rest) > MaxLength {
		return true
	}
	end := ExponentEnd(rest)
	return end > 0 && strings.Trim(rest[end:], "0123456789") == ""
}

// ExponentEnd returns the end of a large exponent that a text begins with, zero if it
// begins with none. Further digits may follow: the first ones are enough to tell.
func ExponentEnd[T string | []byte](text T) int {
	if len(text) == 0 || text[0] != 'e' && text[0] != 'E' {
		return 0
	}
	at := 1
	if at < len(text) && (text[at] == '+' || text[at] == '-') {
		at++
	}
	for at < len(text) && text[at] == '0' {
		at++
	}
	first := at
	for at < len(text) && at-first <= MaxExponent && text[at] >= '0' && text[at] <= '9' {
		at++
	}
	if at-first <= MaxExponent {
		return 0
	}
	return at
}
