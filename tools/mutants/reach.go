package main

import (
	"context"
	"os"
	"strconv"
	"strings"
	"time"
)

// worthReach is how long a suite takes for which it is worth to run each test alone once, to
// know which mutants it can notice.
const worthReach = 10 * time.Second

// reachFile is where the tests write the numbers of the mutants that they reach.
func (s *suite) reachFile() string { return s.binary + ".reached" }

// reach runs each test alone, without a mutant, and keeps which functions with mutants it
// calls. A test that calls none of a mutant's function cannot notice it.
func (s *suite) reach(ctx context.Context) error {
	tests, err := s.tests(ctx)
	if err != nil {
		return err
	}
	s.reached = map[int][]string{}
	for _, test := range tests {
		_ = os.Remove(s.reachFile())
		if _, _, err := s.run(ctx, -1, s.allowed, "-test.run="+exactly([]string{test})); err != nil {
			return err
		}
		content, err := os.ReadFile(s.reachFile())
		if err != nil && !os.IsNotExist(err) {
			return err
		}
		for _, field := range strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(string(content))) {
			number, err := strconv.Atoi(field)
			if err != nil {
				return err
			}
			// Programs that the test starts write the same numbers.
			if known := s.reached[number]; len(known) == 0 || known[len(known)-1] != test {
				s.reached[number] = append(known, test)
			}
		}
	}
	return nil
}
