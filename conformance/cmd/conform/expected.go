package main

import (
	"fmt"
	"slices"
	"strings"
)

// A span is how often a row of DIVERGENCES.md may explain a difference.
type span struct{ least, most int }

// inShort and inLong have the spans of all rows that explain differences, with the default seed and numbers. A row
// that explains more than before hides something, and one that explains less does not see its difference any more. After
// a change of a generator, or of what a row is about, look at the new number and write it here.
var inShort = map[string]span{
	"duplicate-schema-keys":   {60, 80},
	"embedded-root-twice":     {1, 5},
	"enum-null":               {350, 430},
	"fractional-bounds":       {2000, 2300},
	"null-deletion-timestamp": {1, 5},
	"number-form":             {150, 190},
}

var inLong = map[string]span{
	"duplicate-schema-keys":   {600, 720},
	"embedded-root-twice":     {45, 60},
	"enum-null":               {12500, 15000},
	"fractional-bounds":       {21000, 25000},
	"null-deletion-timestamp": {30, 50},
	"number-form":             {9500, 11000},
}

// unexpected lists the rows that explained more or fewer differences than they should.
func unexpected(rows map[string]int, expected map[string]span) error {
	var wrong []string
	for row := range rows {
		if _, ok := expected[row]; !ok {
			wrong = append(wrong, fmt.Sprintf("%s: %d, expected none", row, rows[row]))
		}
	}
	for row, want := range expected {
		if n := rows[row]; n < want.least || n > want.most {
			wrong = append(wrong, fmt.Sprintf("%s: %d, expected %d to %d", row, n, want.least, want.most))
		}
	}
	if len(wrong) == 0 {
		return nil
	}
	slices.Sort(wrong)
	return fmt.Errorf("rows of DIVERGENCES.md explain other numbers of differences than expected; see cmd/conform/expected.go:\n%s", strings.Join(wrong, "\n"))
}
