package markdown

import "strings"

// Code marks text as code, whatever is in it, on one line.
func Code(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	switch n := longestRun(text); {
	case text == "":
		return ""
	case n == 0:
		return "`" + text + "`"
	default:
		fence := strings.Repeat("`", n+1)
		return fence + " " + text + " " + fence
	}
}

// Fence returns the line before and after a block of code with this text.
func Fence(text string) string { return strings.Repeat("`", max(3, longestRun(text)+1)) }

// longestRun is the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}
