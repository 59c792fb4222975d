package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// A known survivor has a mutant and why no test notices it.
type known struct {
	equivalent bool // no test can notice it
	why        string
}

// readKnown reads the list of survivors. A line is
//
//	equivalent | why | ID
//	unnoticed  | why | ID
//
// Empty lines and lines that begin with # are comments.
func readKnown(path string) (map[string]*known, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	all := map[string]*known{}
	scanner := bufio.NewScanner(file)
	for n := 1; scanner.Scan(); n++ {
		line := strings.TrimSpace(scanner.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		parts := strings.SplitN(line, "|", 3)
		if len(parts) != 3 {
			return nil, fmt.Errorf("%s:%d: a line is: equivalent or unnoticed | why | ID", path, n)
		}
		kind, why, id := strings.TrimSpace(parts[0]), strings.TrimSpace(parts[1]), strings.TrimSpace(parts[2])
		if kind != "equivalent" && kind != "unnoticed" || why == "" || id == "" || all[id] != nil {
			return nil, fmt.Errorf("%s:%d: the line must say equivalent or unnoticed and why, once for each mutant", path, n)
		}
		all[id] = &known{equivalent: kind == "equivalent", why: why}
	}
	return all, scanner.Err()
}

// listed are the mutants of the list.
func listed(all map[string]*known, every []*mutant) (list []*mutant) {
	for _, m := range every {
		if all[m.ID] != nil {
			list = append(list, m)
		}
	}
	return list
}

// stale are the entries about mutants that do not exist in packages that were read.
func stale(all map[string]*known, s *source, every []*mutant) (list []string) {
	exists := map[string]bool{}
	for _, m := range every {
		exists[m.ID] = true
	}
	for id := range all {
		name, _, _ := strings.Cut(id, " ")
		if s.all[name] != nil && !exists[id] {
			list = append(list, id)
		}
	}
	return list
}
