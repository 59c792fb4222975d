package docs_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// units are what scale.md says things cost: of a row of its tables, the number
// before a unit.
var units = map[string]struct{ row, number string }{
	"server":     {"a server at rest", `([\d.]+) MB`},
	"goroutines": {"a server at rest", `to ([\d.]+) goroutines`},
	"definition": {"a CRD", `([\d.]+) KB, no goroutine`},
	"watched":    {"a CRD that is watched", `([\d.]+) KB \(`},
	"routines":   {"a CRD that is watched", `([\d.]+) goroutines`},
	"object":     {"an object of 1 KB in a watch cache", `([\d.]+) KB \(`},
	"watch":      {"a watch", `([\d.]+) KB \(`},
	"perWatch":   {"a watch", `([\d.]+) goroutines`},
	"stored":     {"an object of 1 KB", `([\d.]+) KB`},
	"stored2":    {"an object of 2.4 KB", `([\d.]+) KB`},
	"schema":     {"a CRD", `([\d.]+) KB on average`},
}

// TestScale: the worked examples are what the costs of the page come to, and so
// is the arithmetic in its text.
func TestScale(t *testing.T) {
	text, err := os.ReadFile("scale.md")
	if err != nil {
		t.Fatal(err)
	}
	page := regexp.MustCompile(`<!--.*?-->`).ReplaceAllString(string(text), "")
	u := map[string]float64{}
	for name, unit := range units {
		u[name] = unitOf(t, page, unit.row, unit.number)
	}
	examples := rows(page, "## Worked examples")
	if len(examples) < 4 {
		t.Fatalf("there are %d examples", len(examples))
	}
	for _, row := range examples {
		n := func(i int) float64 { return number(t, row[i]) }
		crds, watched, objects, further := n(1), n(2), n(3), n(4)
		resident := u["server"] + (u["definition"]*crds+u["watched"]*watched+u["object"]*objects+u["watch"]*further)/1000
		routines := u["goroutines"] + u["routines"]*watched + u["perWatch"]*further
		stored := (u["stored"]*objects + u["schema"]*crds) / 1e6
		// Rounding goes up where memory is given: what is too little fails.
		for i, want := range map[int]string{
			5: grouped(resident) + " MB",
			6: fmt.Sprintf("%.1f GB", math.Ceil(2*resident/100)/10),
			7: grouped(math.Floor(routines/100) * 100),
			8: fmt.Sprintf("%.2f GB", stored),
		} {
			if row[i] != want {
				t.Errorf("%s: column %d says %s, the costs come to %s", row[0], i, row[i], want)
			}
		}
	}
	const quota = 8 << 30
	beyond := (u["stored"]*1e7 + u["schema"]*1e4) * 1000
	for _, want := range []string{
		fmt.Sprintf("(%s bytes)", grouped(quota)),
		fmt.Sprintf("%.1f million objects of 1 KB, or %.1f million of", quota/u["stored"]/1e9, quota/u["stored2"]/1e9),
		fmt.Sprintf("which is %.1f and %.1f million", 0.8*quota/u["stored"]/1e9, 0.8*quota/u["stored2"]/1e9),
		fmt.Sprintf("are %.2f GB.", 500*600*u["stored"]/1e6),
		fmt.Sprintf("the sum above says %.0f", u["server"]+u["definition"]*10),
		fmt.Sprintf("(2,617 MB; %s)", grouped(u["server"]+u["object"]*1000)),
		fmt.Sprintf("3,333 each, %.0f MB\ninstead of %.0f MB", u["watch"]*3333/1000, u["watch"]*10),
		fmt.Sprintf("the %s MB of a million\nobjects are %s MB", grouped(u["object"]*1000), grouped(u["object"]*3000)),
		fmt.Sprintf("%.2f GB, or %s etcds", beyond/1e9, map[float64]string{2: "two", 3: "three", 4: "four"}[math.Ceil(beyond/(0.8*quota))]),
		fmt.Sprintf("%s delivered", grouped(50*805)),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q, which its costs come to", want)
		}
	}
}

// unitOf finds a number in the only row of this name that has one.
func unitOf(t *testing.T, page, row, pattern string) float64 {
	t.Helper()
	var found []string
	for line := range strings.Lines(page) {
		if cells := strings.Split(line, " | "); cells[0] == "| "+row && len(cells) > 1 {
			if m := regexp.MustCompile(pattern).FindStringSubmatch(cells[1]); m != nil {
				found = append(found, m[1])
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("%q has %d times %s", row, len(found), pattern)
	}
	return number(t, found[0])
}

// rows are the cells of the first table below a heading, without its head.
func rows(page, heading string) [][]string {
	_, after, _ := strings.Cut(page, "\n"+heading+"\n")
	var table [][]string
	for line := range strings.Lines(after) {
		if !strings.HasPrefix(line, "|") {
			if len(table) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		table = append(table, cells)
	}
	return table[min(2, len(table)):]
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// grouped writes a whole number with commas.
func grouped(n float64) string {
	digits := strconv.FormatInt(int64(math.Round(n)), 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
