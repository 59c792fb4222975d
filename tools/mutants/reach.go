package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// worthReach is how long a suite takes for which it is worth to run each test alone once, to
// know which mutants it can notice.
const worthReach = 10 * time.Second

// together is how many tests run at a time to find out what they reach: they wait more than
// they compute.
const together = 4

// reach runs each test alone, without a mutant, and keeps which functions with mutants it
// calls. A test that calls none of a mutant's function cannot notice it.
func (s *suite) reach(ctx context.Context) error {
	tests, err := s.tests(ctx)
	if err != nil {
		return err
	}
	found := make([][]int, len(tests))
	failures := make([]error, len(tests))
	var wait sync.WaitGroup
	places := make(chan struct{}, together)
	for i, test := range tests {
		places <- struct{}{}
		wait.Go(func() {
			found[i], failures[i] = s.reachedBy(ctx, test)
			<-places
		})
	}
	wait.Wait()
	s.reached = map[int][]string{}
	for i, numbers := range found {
		for _, number := range numbers {
			s.reached[number] = append(s.reached[number], tests[i])
		}
	}
	return errors.Join(failures...)
}

// reachedBy returns the mutants whose functions a test calls.
func (s *suite) reachedBy(ctx context.Context, test string) ([]int, error) {
	alone := s.without(nil)
	alone.reachFile = s.binary + "." + test + ".reached"
	if _, _, err := alone.run(ctx, -1, s.allowed, "-test.run="+exactly([]string{test})); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(alone.reachFile)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	_ = os.Remove(alone.reachFile)
	var numbers []int
	for _, field := range strings.Fields(strings.NewReplacer("[", " ", "]", " ").Replace(string(content))) {
		number, err := strconv.Atoi(field)
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	return slices.Compact(numbers), nil // programs that the test starts write the same
}
