package coverage

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
)

// A Table counts comparisons by row and column.
type Table struct {
	title         string
	rows, columns []string
	row, column   map[string]int
	cells         []atomic.Int64
	impossible    map[int]string // cell to reason
}

// New returns an empty table. Rows and columns must be distinct.
func New(title string, rows, columns []string) *Table {
	return &Table{
		title: title, rows: slices.Clone(rows), columns: slices.Clone(columns), row: positions(rows), column: positions(columns),
		cells: make([]atomic.Int64, len(rows)*len(columns)), impossible: map[int]string{},
	}
}

func positions(names []string) map[string]int {
	at := make(map[string]int, len(names))
	for i, name := range names {
		if _, twice := at[name]; twice {
			panic("coverage: " + name + " is listed twice")
		}
		at[name] = i
	}
	return at
}

// Count counts one comparison. A row or column that the table lacks is a mistake of the generator: its grammar promises
// less than it produces.
func (t *Table) Count(row, column string) { t.cells[t.cell(row, column)].Add(1) }

// Impossible excludes a cell that no input can fill, and says why. It must not be called concurrently with other methods.
func (t *Table) Impossible(row, column, why string) { t.impossible[t.cell(row, column)] = why }

func (t *Table) cell(row, column string) int {
	r, ok := t.row[row]
	if !ok {
		panic(fmt.Sprintf("coverage: table %q has no row %q", t.title, row))
	}
	c, ok := t.column[column]
	if !ok {
		panic(fmt.Sprintf("coverage: table %q has no column %q", t.title, column))
	}
	return r*len(t.columns) + c
}

// Missing lists the cells that are empty though they are possible, and those that are not empty though they were declared
// impossible.
func (t *Table) Missing() []string {
	var list []string
	for i := range t.cells {
		n := t.cells[i].Load()
		why, impossible := t.impossible[i]
		name := t.title + ": " + t.rows[i/len(t.columns)] + " × " + t.columns[i%len(t.columns)]
		switch {
		case n == 0 && !impossible:
			list = append(list, name+" was never compared")
		case n > 0 && impossible:
			list = append(list, fmt.Sprintf("%s was compared %d times, but is declared impossible: %s", name, n, why))
		}
	}
	return list
}

// String is the table as text. A dash is a cell that is impossible; the reasons follow.
func (t *Table) String() string {
	lines := make([][]string, 0, len(t.rows)+1)
	lines = append(lines, append([]string{""}, t.columns...))
	filled := 0
	var reasons []string
	for r, row := range t.rows {
		line := []string{row}
		for c, column := range t.columns {
			i := r*len(t.columns) + c
			n := t.cells[i].Load()
			why, impossible := t.impossible[i]
			if n > 0 {
				filled++
			}
			if n == 0 && impossible {
				line = append(line, "-")
				reasons = append(reasons, why+": "+row+" × "+column)
				continue
			}
			line = append(line, strconv.FormatInt(n, 10))
		}
		lines = append(lines, line)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d of %d cells", t.title, filled, len(t.cells)-len(reasons))
	if len(reasons) > 0 {
		fmt.Fprintf(&b, " (%d impossible)", len(reasons))
	}
	b.WriteByte('\n')
	widths := make([]int, len(t.columns)+1)
	for _, line := range lines {
		for i, text := range line {
			widths[i] = max(widths[i], len(text))
		}
	}
	for _, line := range lines {
		for i, text := range line {
			if i == 0 {
				fmt.Fprintf(&b, "  %-*s", widths[i], text)
				continue
			}
			fmt.Fprintf(&b, "  %*s", widths[i], text)
		}
		b.WriteByte('\n')
	}
	slices.Sort(reasons)
	for _, group := range grouped(reasons) {
		b.WriteString("  impossible, because " + group + "\n")
	}
	return b.String()
}

// grouped joins the sorted lines "reason: cell" that have the same reason.
func grouped(reasons []string) []string {
	var out []string
	last := ""
	for _, line := range reasons {
		why, cell, _ := strings.Cut(line, ": ")
		if why == last && len(out) > 0 {
			out[len(out)-1] += ", " + cell
			continue
		}
		out, last = append(out, line), why
	}
	return out
}
