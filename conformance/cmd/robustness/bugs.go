package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/bug"
	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness"
)

// limit is how long a bug may stay hidden.
const limit = time.Minute

// buggy builds the server with a bug and returns its path. What builds need is kept in .bin.
func buggy(ctx context.Context, b *bug.Bug) (string, error) {
	root, err := launch.Root()
	if err != nil {
		return "", err
	}
	work := filepath.Join(root, ".bin", "bugs")
	if err := os.MkdirAll(work, 0o755); err != nil {
		return "", err
	}
	builder, err := bug.NewBuilder(ctx, root, work)
	if err != nil {
		return "", err
	}
	out := filepath.Join(work, "espalier-"+b.Name)
	return out, builder.Server(ctx, b, out)
}

// discovery is how a bug was found.
type discovery struct {
	bug     *bug.Bug
	found   bool
	after   time.Duration
	members int
	by      string // checkers
}

// findBugs looks for each bug, one at a time, and prints the table. It returns 1 if one was not found.
func findBugs(ctx context.Context, o robustness.Options) (int, error) {
	var table []discovery
	for i := range bug.Server {
		b := &bug.Server[i]
		if *bugName != "" && !slices.Contains(strings.Split(*bugName, ","), b.Name) {
			continue
		}
		binary, err := buggy(ctx, b)
		if err != nil {
			return 0, err
		}
		o.Binary = binary
		d, err := findBug(ctx, o, b)
		_ = os.Remove(binary) // a hundred megabytes each
		if err != nil {
			return 0, err
		}
		fmt.Println(d)
		table = append(table, *d)
	}
	fmt.Println("\nbug | like | found after | by")
	missed := 0
	for _, d := range table {
		fmt.Println(&d)
		if !d.found {
			missed++
		}
	}
	fmt.Printf("robustness: %d of %d bugs found\n", len(table)-missed, len(table))
	return min(missed, 1), nil
}

// String is a line of the table.
func (d *discovery) String() string {
	after, by := "not found", ""
	if d.found {
		after, by = fmt.Sprintf("%.1f s", d.after.Seconds()), d.by
		if d.members > 1 {
			after += fmt.Sprintf(" on %d members of etcd", d.members)
		}
	}
	return fmt.Sprintf("%s | %s | %s | %s", d.bug.Name, d.bug.Like, after, by)
}

// findBug plays the quick directed cases and then runs by chance, for a minute on one member of etcd, and then on three.
func findBug(ctx context.Context, o robustness.Options, b *bug.Bug) (*discovery, error) {
	d := &discovery{bug: b}
	for _, d.members = range []int{1, 3} {
		o.Members = d.members
		runner, err := robustness.New(ctx, o)
		if err != nil {
			return nil, err // a server that does not start says nothing about the harness
		}
		began := time.Now()
		found, err := search(ctx, runner, began)
		d.after = time.Since(began)
		runner.Close()
		if err != nil {
			return nil, err
		}
		if len(found) > 0 {
			d.found, d.by = true, strings.Join(found, ", ")
			return d, nil
		}
	}
	return d, nil
}

// search returns the checkers of the first violations: of the quick directed cases, of one run with quotas and owners, of runs by chance
// for half of the time, of cases in which a replica is out for longer than its lease, which chance rarely has, and of runs by chance again.
func search(ctx context.Context, runner *robustness.Runner, began time.Time) ([]string, error) {
	found, err := directedCases(ctx, runner, func(c robustness.Case) bool { return c.Quick })
	next := *seed
	once := func() {
		var result *robustness.Result
		if result, err = runner.Run(ctx, next); err == nil {
			found = checkers(fmt.Sprintf("seed %d", next), result)
		}
		next++
	}
	chance := func(until time.Duration) {
		for len(found) == 0 && err == nil && time.Since(began) < until {
			once()
		}
	}
	if len(found) == 0 && err == nil {
		asked := runner.Extras
		runner.Extras = []string{"quota", "garbage"}
		once()
		runner.Extras = asked
	}
	chance(limit / 2)
	if len(found) == 0 && err == nil {
		found, err = directedCases(ctx, runner, func(c robustness.Case) bool { return c.Name == "schemastop" || c.Name == "schemacut" })
	}
	chance(limit)
	return found, err
}

// directedCases plays some cases.
func directedCases(ctx context.Context, runner *robustness.Runner, wanted func(robustness.Case) bool) ([]string, error) {
	for _, c := range robustness.Cases {
		if !wanted(c) || c.Members != runner.Members {
			continue
		}
		result, err := runner.Direct(ctx, c)
		if err != nil {
			return []string{"directed " + c.Name + ": " + err.Error()}, ctx.Err()
		}
		if found := checkers("directed "+c.Name, result); len(found) > 0 {
			return found, nil
		}
	}
	return nil, nil
}

// checkers are those that complain.
func checkers(how string, result *robustness.Result) []string {
	if len(result.Violations) == 0 {
		return nil
	}
	out := []string{how}
	for _, v := range result.Violations {
		if !slices.Contains(out, v.Checker) {
			out = append(out, v.Checker)
		}
	}
	return out
}
