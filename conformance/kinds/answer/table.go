package answer

import (
	"fmt"
	"regexp"
	"strings"
)

// age matches how old an object of this run is, or how long something took.
var age = regexp.MustCompile(`^[0-9]{1,2}s$|^[0-9]m[0-9]{0,2}s?$`)

// ages are columns with a time since.
func ages(column string) bool {
	if column == "?" { // kube-apiserver gives IPAddresses a cell without a column
		return true
	}
	for _, word := range []string{"Age", "Duration", "Last", "First"} {
		if strings.HasPrefix(column, word) {
			return true
		}
	}
	return false
}

// Columns compares the columns of two tables.
func Columns(there, here map[string]any) []Miss {
	var out []Miss
	for _, d := range Differences(there["columnDefinitions"], here["columnDefinitions"]) {
		out = append(out, Miss{TableMiss, "columnDefinitions" + d.Path + " " + d.What, d.Detail})
	}
	return out
}

// Rows compares the cells of two tables.
func Rows(there, here *Side) []Miss {
	if there.Accepted() != here.Accepted() {
		return []Miss{{TableMiss, fmt.Sprintf("HTTP code %d there, %d here", there.Code, here.Code), message(here)}}
	}
	t, h := cells(there), cells(here)
	if len(t) != len(h) {
		return []Miss{{TableMiss, "number of cells", fmt.Sprintf("there: %v\nhere:  %v", t, h)}}
	}
	names := columnNames(there.Object())
	var out []Miss
	for i := range t {
		name := "?"
		if i < len(names) {
			name = names[i]
		}
		a, b := fmt.Sprint(t[i]), fmt.Sprint(h[i])
		if a == b || ages(name) && age.MatchString(a) && age.MatchString(b) {
			continue
		}
		out = append(out, Miss{TableMiss, "cell " + name, fmt.Sprintf("there: %s\nhere:  %s", cut(a, 300), cut(b, 300))})
	}
	return out
}

func cells(s *Side) []any {
	rows, _ := s.Object()["rows"].([]any)
	var out []any
	for _, r := range rows {
		row, _ := r.(map[string]any)
		list, _ := row["cells"].([]any)
		for _, c := range list {
			if text, ok := c.(string); ok {
				c = s.Normalizer.Text(text)
			}
			out = append(out, c)
		}
	}
	return out
}

func columnNames(table map[string]any) []string {
	list, _ := table["columnDefinitions"].([]any)
	var out []string
	for _, c := range list {
		column, _ := c.(map[string]any)
		name, _ := column["name"].(string)
		out = append(out, name)
	}
	return out
}
