package specs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// A Suite is the tests of one package, as a program.
type Suite struct {
	Name   string
	Binary string   // what `go test -c` has made
	Dir    string   // the package's folder, in which its tests expect to run
	Args   []string // besides those that write the report
	Env    []string // besides those of this process
}

// A Spec is the result of one spec.
type Spec struct {
	Name   string // the texts of its containers and its own
	State  string // passed, failed, panicked, timedout, interrupted, aborted, skipped, pending
	Took   time.Duration
	Reason string // of a failure, in one line
}

// Passed reports whether the spec has passed.
func (s Spec) Passed() bool { return s.State == "passed" }

// Ran reports whether the spec ran: it is neither pending nor left out by a filter.
func (s Spec) Ran() bool { return s.State != "pending" && s.State != "skipped" }

// Run runs a suite for at most limit, and writes its output to log. A failed spec is a result; a suite without a report is an error.
func Run(ctx context.Context, s Suite, limit time.Duration, log string) ([]Spec, error) {
	report := log + ".json"
	// The report of an earlier run must not count for a suite that writes none.
	if err := os.Remove(report); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	defer os.Remove(report)
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	// Ginkgo's own limit, which writes a report, comes before ours.
	ctx, cancel := context.WithTimeout(ctx, limit+time.Minute)
	defer cancel()
	args := append([]string{"--ginkgo.json-report=" + report, "--ginkgo.no-color", "--ginkgo.timeout=" + limit.String(), "-test.timeout=0"}, s.Args...)
	cmd := exec.CommandContext(ctx, s.Binary, args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, append(os.Environ(), s.Env...), out, out
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	failed := cmd.Run()
	data, err := os.ReadFile(report)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("%s ended without a report; its output is in %s", s.Name, log), failed)
	}
	if err != nil {
		return nil, err
	}
	return Parse(data)
}

// Parse reads a report that Ginkgo has written with --ginkgo.json-report.
func Parse(report []byte) ([]Spec, error) {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts    []string
			LeafNodeType, LeafNodeText string
			State                      string
			RunTime                    time.Duration
			Failure                    failure
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
		return nil, fmt.Errorf("reading a report of Ginkgo failed: %w", err)
	}
	var specs []Spec
	for _, suite := range suites {
		for i := range suite.SpecReports {
			r := &suite.SpecReports[i]
			if r.LeafNodeType != "It" {
				continue // set-up and clean-up of the whole suite: if they fail, so do the specs
			}
			specs = append(specs, Spec{strings.Join(append(r.ContainerHierarchyTexts, r.LeafNodeText), " "), r.State, r.RunTime, r.Failure.reason()})
		}
	}
	return specs, nil
}

// failure is why a spec has failed. If its time was over, the message says only that: the step, or what the spec said when it was
// interrupted, tells more.
type failure struct {
	Message           string
	ProgressReport    struct{ CurrentStepText string }
	AdditionalFailure *struct{ Failure struct{ Message string } }
}

// reason returns the failure in one line.
func (f failure) reason() string {
	parts := []string{f.Message}
	if f.ProgressReport.CurrentStepText != "" {
		parts = append(parts, "at the step: "+f.ProgressReport.CurrentStepText)
	}
	if f.AdditionalFailure != nil {
		parts = append(parts, f.AdditionalFailure.Failure.Message)
	}
	return strings.Join(strings.Fields(strings.Join(parts, ": ")), " ")
}

// A Score compares two runs of the same suites.
type Score struct {
	Total       int    // specs that ran in one of the runs
	There, Here int    // of them, how many passed
	Lost        []Spec // passed there and not here, as they are here
}

// Compare compares the specs of two runs by name. Specs of the same name are paired in order.
func Compare(there, here []Spec) Score {
	var s Score
	byName := map[string][]Spec{}
	for _, spec := range here {
		byName[spec.Name] = append(byName[spec.Name], spec)
	}
	count := func(a, b Spec) {
		if !a.Ran() && !b.Ran() {
			return
		}
		s.Total++
		if a.Passed() {
			s.There++
		}
		if b.Passed() {
			s.Here++
		} else if a.Passed() {
			s.Lost = append(s.Lost, b)
		}
	}
	for _, a := range there {
		b := Spec{Name: a.Name, State: "skipped", Reason: "it did not run"}
		if same := byName[a.Name]; len(same) > 0 {
			b, byName[a.Name] = same[0], same[1:]
		}
		count(a, b)
	}
	for _, rest := range byName {
		for _, b := range rest {
			count(Spec{State: "skipped"}, b)
		}
	}
	slices.SortFunc(s.Lost, func(a, b Spec) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// Add adds the score of another suite.
func (s *Score) Add(other Score) {
	s.Total += other.Total
	s.There += other.There
	s.Here += other.Here
	s.Lost = append(s.Lost, other.Lost...)
}
