package spelling

import "iter"

// maxName and maxCandidate bound the names that are compared: longer ones get no suggestion.
const (
	maxName      = 64
	maxCandidate = 80
)

// Limit is the distance from which on a candidate is not what was meant by name;
// 0 if the name is too long to be anything.
func Limit(name string) int {
	if len(name) > maxName {
		return 0
	}
	return min(3, len(name)/3) + 1
}

// Nearest returns the candidate that is most like name, the first of several,
// or nothing if none is alike enough to be what was meant.
func Nearest(name string, candidates iter.Seq[string]) string {
	best, least := "", Limit(name)
	for c := range candidates {
		if d := Distance(name, c, least); d < least {
			best, least = c, d
		}
	}
	return best
}

// Distance is the optimal string alignment distance of a and b, where a change
// of case costs nothing; limit if it is that or more.
func Distance(a, b string, limit int) int {
	if d := len(b) - len(a); d >= limit || -d >= limit || len(b) > maxCandidate {
		return limit
	}
	var rows [3][maxCandidate + 2]int
	prev2, prev, cur := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if lower(a[i-1]) == lower(b[j-1]) {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
			least = min(least, cur[j])
		}
		if least >= limit {
			return limit
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return min(prev[len(b)], limit)
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c |= 0x20
	}
	return c
}
