package main

import (
	"os"
	"strings"
	"testing"
)

// Only rows that DIVERGENCES.md has can explain a difference, and every one has to stay within its span.
func TestExpected(t *testing.T) {
	table, err := os.ReadFile("../../DIVERGENCES.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, expected := range []map[string]span{inShort, inLong} {
		rows := map[string]int{}
		for row, e := range expected {
			if !strings.Contains(string(table), "\n| "+row+" |") {
				t.Errorf("DIVERGENCES.md has no row %s", row)
			}
			rows[row] = e.most
		}
		if err := unexpected(rows, expected); err != nil {
			t.Error(err)
		}
		rows["number-form"] = 1_000_000
		delete(rows, "enum-null")
		rows["no-such-row"] = 1
		err = unexpected(rows, expected)
		for _, part := range []string{"\nenum-null: 0, expected", "\nno-such-row: 1, expected none", "\nnumber-form: 1000000, expected"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q is missing in %v", part, err)
			}
		}
	}
}
