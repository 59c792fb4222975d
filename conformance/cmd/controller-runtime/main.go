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
	chosen      = flag.String("packages", packages, "packages below pkg/, separated by commas")
	limit       = flag.Duration("limit", 10*time.Minute, "time for one suite with one server")
	logs        = flag.String("logs", "", "folder for the output of the suites (default: a temporary one, which is removed)")
	focus       = flag.String("focus", "", "only specs that match this regular expression")
	least       = flag.Int("least", 0, "fail if fewer specs pass with our server")
	leastImport = flag.Int("least-import", 0, "fail if fewer specs pass with the import changed")
)

func main() { launch.Main("controller-runtime", run) }

func run(ctx context.Context, dir string) error {
	if *logs == "" {
		*logs = dir
	}
	if err := os.MkdirAll(*logs, 0o755); err != nil {
		return err
	}
	sides, err := prepare(ctx, dir)
	if err != nil {
		return err
	}
	scores := map[string]*specs.Score{envtest: {}, imported: {}}
	fmt.Printf("%-28s %14s %12s %12s\n", "package", kubernetes, envtest, imported)
	for name := range strings.SplitSeq(*chosen, ",") {
		line, err := compare(ctx, name, sides, scores)
		if err != nil {
			return err
		}
		fmt.Println(line)
	}
	for _, s := range []string{imported, envtest} {
		show(s, scores[s].Lost)
	}
	return conclude(sides, scores)
}

// prepare makes the sides that -only names.
func prepare(ctx context.Context, dir string) (map[string]*side, error) {
	sides := map[string]*side{}
	for name := range strings.SplitSeq(*only, ",") {
		if !slices.Contains([]string{kubernetes, envtest, imported}, name) {
			return nil, fmt.Errorf("-only: no server %q; there are %s, %s and %s", name, kubernetes, envtest, imported)
		}
		s, err := newSide(ctx, dir, name)
		if err != nil {
			return nil, err
		}
		sides[name] = s
	}
	return sides, nil
}

// compare runs the suite of a package with all sides, adds to the scores of our server, and returns a line about it.
func compare(ctx context.Context, name string, sides map[string]*side, scores map[string]*specs.Score) (string, error) {
	var reference []specs.Spec
	there := "-"
	if s := sides[kubernetes]; s != nil {
		var err error
		if reference, err = s.run(ctx, name); err != nil {
			return "", err // there is nothing to compare with
		}
		score := specs.Compare(reference, reference)
		there = fmt.Sprintf("%d/%d", score.There, score.Total)
	}
	cells := []any{name, there}
	for _, server := range []string{envtest, imported} {
		s := sides[server]
		if s == nil {
			cells = append(cells, "-")
			continue
		}
		got, err := s.run(ctx, name)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // all its specs are lost
		}
		expected := reference
		if sides[kubernetes] == nil {
			expected = passing(got)
		}
		score := specs.Compare(expected, got)
		cells = append(cells, fmt.Sprintf("%d/%d", score.Here, score.Total))
		scores[server].Add(score)
	}
	return fmt.Sprintf("%-28s %14s %12s %12s", cells...), nil
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

// conclude prints the sums, and fails if our server passes too few specs.
func conclude(sides map[string]*side, scores map[string]*specs.Score) error {
	var errs []error
	if s, score := sides[imported], scores[imported]; s != nil {
		fmt.Printf("\nwith the import changed: %d of %d specs; %.0f s\n", score.Here, score.Total, s.took.Seconds())
		if score.Here < *leastImport {
			errs = append(errs, fmt.Errorf("%d specs pass with the import changed, fewer than %d", score.Here, *leastImport))
		}
	}
	s, score := sides[envtest], scores[envtest]
	if s == nil {
		return errors.Join(errs...)
	}
	there, took := "-", 0.0
	if k := sides[kubernetes]; k != nil {
		there, took = fmt.Sprint(score.There), k.took.Seconds()
	}
	fmt.Printf("\ncontroller-runtime: kube-apiserver %s, espalier %d of %d specs; %.0f s, %.0f s\n", there, score.Here, score.Total, took, s.took.Seconds())
	if score.Here < *least {
		errs = append(errs, fmt.Errorf("%d specs pass with our server, fewer than %d", score.Here, *least))
	}
	return errors.Join(errs...)
}

// show prints the specs that pass with kube-apiserver and fail with a server of ours.
func show(server string, lost []specs.Spec) {
	for i, s := range lost {
		if i == 0 {
			fmt.Printf("\n%d specs pass with kube-apiserver and not with %s:\n", len(lost), server)
		}
		fmt.Printf("  %s: %s: %.200s\n", s.State, s.Name, s.Reason)
	}
}
