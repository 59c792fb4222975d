package page

import (
	"math"
	"strings"
)

// maxName bounds the names that are compared: nobody mistypes longer ones.
const maxName = 64

// Nearest returns the name that is most like the given one, or nothing if none
// is much like it. Case does not count.
func Nearest(name string, names []string) string {
	best, least := "", len(name)/3+2
	for _, other := range names {
		if d := distance(strings.ToLower(name), strings.ToLower(other)); d < least {
			best, least = other, d
		}
	}
	return best
}

// distance is the number of insertions, deletions, replacements and swaps of
// neighbours between two names.
func distance(a, b string) int {
	if len(a) > maxName || len(b) > maxName {
		return math.MaxInt
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	var last []int // the row before that
	for j := range before {
		before[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := before[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, before[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], last[j-2]+1)
			}
		}
		last, before, row = before, row, make([]int, len(b)+1)
	}
	return before[len(b)]
}
