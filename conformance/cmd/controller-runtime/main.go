package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
)

// packages are those whose suites start servers.
const packages = "builder,cache,client,cluster,controller,controller/controllerutil,handler,internal/controller,internal/recorder,manager,metrics/filters,reconcile,source,webhook"

var (
	only        = flag.String("only", kubernetes+","+envtest+","+imported, "servers, separated by commas; without kube-apiserver every spec counts as one that passes there")
	tenant      = flag.String("tenant", "", "run the suites in a tenant of this name of each of our servers, too, and compare with the server itself, for example -tenant suite")
	chosen      = flag.String("packages", packages, "packages below pkg/, separated by commas")
	limit       = flag.Duration("limit", 10*time.Minute, "time for one suite with one server")
	logs        = flag.String("logs", "", "folder for the output of the suites (default: a temporary one, which is removed)")
	focus       = flag.String("focus", "", "only specs that match this regular expression")
	least       = flag.Int("least", 0, "fail if fewer specs pass with our server")
	leastImport = flag.Int("least-import", 0, "fail if fewer specs pass with the import changed")
	leastTenant = flag.Int("least-tenant", 0, "fail if fewer specs pass in one of the tenants, for example -tenant suite -least-tenant 1000")
)

func main() { launch.Main("controller-runtime", run) }

func run(ctx context.Context, dir string) error {
	if *logs == "" {
		*logs = dir
	}
	if err := os.MkdirAll(*logs, 0o755); err != nil {
		return err
	}
	names, err := choose(*only, *tenant)
	if err != nil {
		return err
	}
	var sides []*side
	title := fmt.Sprintf("%-28s", "package")
	for _, name := range names {
		s, err := newSide(ctx, dir, name)
		if err != nil {
			return err
		}
		sides = append(sides, s)
		title += fmt.Sprintf(" %19s", name)
	}
	fmt.Println(title)
	for name := range strings.SplitSeq(*chosen, ",") {
		line, err := compare(ctx, name, sides)
		if err != nil {
			return err
		}
		fmt.Println(line)
	}
	return conclude(sides)
}

// choose returns the names of the sides, each after the one that it is compared with.
func choose(servers, tenant string) ([]string, error) {
	all := []string{kubernetes, envtest, imported}
	asked := strings.Split(servers, ",")
	for _, name := range asked {
		if !slices.Contains(all, name) {
			return nil, fmt.Errorf("-only: no server %q; there are %s, %s and %s", name, kubernetes, envtest, imported)
		}
	}
	names := slices.DeleteFunc(all, func(name string) bool { return !slices.Contains(asked, name) })
	if tenant == "" {
		if *leastTenant > 0 {
			return nil, errors.New("-least-tenant needs -tenant")
		}
		return names, nil
	}
	for _, name := range slices.Clone(names) {
		if name != kubernetes {
			names = append(names, name+inside)
		}
	}
	if names[len(names)-1] == kubernetes {
		return nil, errors.New("-tenant: kube-apiserver has no tenants; add espalier or espaliertest to -only")
	}
	return names, nil
}

// compare runs the suite of a package with all sides, adds to their scores, and returns a line about it.
func compare(ctx context.Context, name string, sides []*side) (string, error) {
	results := map[string][]specs.Spec{}
	line := fmt.Sprintf("%-28s", name)
	for _, s := range sides {
		got, err := s.run(ctx, name)
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err != nil && s.name == kubernetes:
			return "", err // there is nothing to compare with
		case err != nil:
			fmt.Fprintln(os.Stderr, err) // all its specs are lost
		}
		results[s.name] = got
		expected, ran := results[s.reference()]
		if !ran {
			expected = passing(got)
		}
		score := specs.Compare(expected, got)
		s.score.Add(score)
		line += fmt.Sprintf(" %19s", fmt.Sprintf("%d/%d", score.Here, score.Total))
	}
	return line, nil
}

// passing are specs as they should be.
func passing(list []specs.Spec) []specs.Spec {
	all := slices.Clone(list)
	for i := range all {
		if all[i].Ran() {
			all[i].State = "passed"
		}
	}
	return all
}

// conclude prints what is lost and the sums, and fails if our server passes too few specs.
func conclude(sides []*side) error {
	for _, s := range sides {
		if s.name != kubernetes {
			show(s, sides)
		}
	}
	fmt.Println()
	var errs []error
	for _, s := range sides {
		fmt.Printf("controller-runtime: %s passes %d of %d specs; %.0f s\n", s.name, s.score.Here, s.score.Total, s.took.Seconds())
		bound := s.least()
		if s.score.Here < bound {
			errs = append(errs, fmt.Errorf("%d specs pass with %s, fewer than %d", s.score.Here, s.name, bound))
		}
	}
	return errors.Join(errs...)
}

// least is how many specs must pass with a side.
func (s *side) least() int {
	switch {
	case s.name != s.server():
		return *leastTenant
	case s.name == envtest:
		return *least
	case s.name == imported:
		return *leastImport
	}
	return 0
}

// show prints the specs that a side loses. They pass with its reference, or should, if that did not run.
func show(s *side, sides []*side) {
	title := "do not pass with " + s.name
	if slices.ContainsFunc(sides, func(other *side) bool { return other.name == s.reference() }) {
		title = fmt.Sprintf("pass with %s and not with %s", s.reference(), s.name)
	}
	for i, spec := range s.score.Lost {
		if i == 0 {
			fmt.Printf("\n%d specs %s:\n", len(s.score.Lost), title)
		}
		fmt.Printf("  %s: %s: %.200s\n", spec.State, spec.Name, spec.Reason)
	}
}
