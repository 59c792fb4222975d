package coverage

import (
	"slices"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	table := New("keyword × position", []string{"minimum", "pattern"}, []string{"root", "item", "key"})
	table.Impossible("minimum", "root", "the root is an object")
	table.Impossible("pattern", "root", "the root is an object")
	table.Impossible("pattern", "key", "keys have no pattern")
	table.Count("minimum", "item")
	table.Count("minimum", "item")
	table.Count("pattern", "key")

	want := []string{
		"keyword × position: minimum × key was never compared",
		"keyword × position: pattern × item was never compared",
		"keyword × position: pattern × key was compared 1 times, but is declared impossible: keys have no pattern",
	}
	if got := table.Missing(); !slices.Equal(got, want) {
		t.Errorf("missing:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	const text = `keyword × position: 2 of 4 cells (2 impossible)
           root  item  key
  minimum     -     2    0
  pattern     -     0    1
  impossible, because the root is an object: minimum × root, pattern × root
`
	if got := table.String(); got != text {
		t.Errorf("table:\n%s\nwant\n%s", got, text)
	}
}

func TestUnknownCells(t *testing.T) {
	table := New("t", []string{"r"}, []string{"c"})
	for name, count := range map[string]func(){
		"row":    func() { table.Count("x", "c") },
		"column": func() { table.Count("r", "x") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("an unknown %s was counted", name)
				}
			}()
			count()
		}()
	}
}
