package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/espalier-dev/espalier/conformance/attack"
	"github.com/espalier-dev/espalier/conformance/launch"
)

var (
	only    = flag.String("only", "espalier,kube-apiserver", "servers to attack")
	pattern = flag.String("run", "", "run only attacks whose ID matches this regular expression")
	program = flag.String("espalier", "", "use this espalier program instead of building one")
)

func main() { launch.Main("attack", run) }

func run(ctx context.Context, dir string) error {
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return err
	}
	attacks := slices.DeleteFunc(slices.Clone(attack.All), func(a attack.Attack) bool { return !wanted.MatchString(a.ID) })
	if len(attacks) == 0 {
		return fmt.Errorf("no attack has an ID that matches %q", *pattern)
	}
	results := map[launch.Kind][]attack.Result{}
	var errs []error
	for _, name := range strings.Split(*only, ",") {
		kind, err := launch.Named(name)
		if err != nil {
			return err
		}
		results[kind], err = against(ctx, kind, dir, attacks)
		if err != nil && kind == launch.Espalier {
			errs = append(errs, err)
		} else if err != nil {
			// A server may answer in a way of its own; the table says so.
			fmt.Fprintln(os.Stderr, "attack:", err)
		}
		if results[kind] == nil {
			return err
		}
	}
	table(os.Stdout, attacks, results)
	return errors.Join(append(errs, succeeded(attacks, results[launch.Espalier])...)...)
}

// against attacks one server; the result of what could not be attempted is absent.
func against(ctx context.Context, kind launch.Kind, dir string, attacks []attack.Attack) ([]attack.Result, error) {
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return nil, err
	}
	defer etcd.Stop()
	spec := launch.Spec{Kind: kind, Binary: *program, Etcd: etcd.URL, Prefix: "/attack"}
	if kind != launch.Espalier || *program == "" {
		if spec.Binary, err = kind.Program(ctx, dir); err != nil {
			return nil, err
		}
	}
	site, err := attack.Open(ctx, spec)
	if err != nil {
		return nil, err
	}
	defer site.Close()
	results := make([]attack.Result, len(attacks))
	var errs []error
	for i := range attacks {
		start := time.Now()
		results[i], err = attacks[i].Try(ctx, site)
		if err != nil {
			errs = append(errs, err)
			results[i] = attack.Absent("could not be attempted")
		}
		fmt.Fprintf(os.Stderr, "%s: %d of %d: %s: %s (%s)\n", kind, i+1, len(attacks), attacks[i].ID, results[i], time.Since(start).Round(time.Millisecond))
	}
	return results, errors.Join(errs...)
}

// succeeded returns an error for each attack that reached its aim here.
func succeeded(attacks []attack.Attack, results []attack.Result) []error {
	var errs []error
	for i, r := range results {
		if r.Outcome == attack.OutcomeSucceeded {
			errs = append(errs, fmt.Errorf("%s succeeded: %s: %s", attacks[i].ID, attacks[i].What, r.Detail))
		}
	}
	return errs
}

// table prints a row for each attack and the line that sums up.
func table(w io.Writer, attacks []attack.Attack, results map[launch.Kind][]attack.Result) {
	cell := func(kind launch.Kind, i int) string {
		if results[kind] == nil {
			return "not run"
		}
		return results[kind][i].String()
	}
	refused := func(kind launch.Kind) (n int) {
		for _, r := range results[kind] {
			if r.Outcome == attack.OutcomeRefused {
				n++
			}
		}
		return n
	}
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "attack\tours\tkube-apiserver\twhat")
	for i := range attacks {
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", attacks[i].ID, cell(launch.Espalier, i), cell(launch.Kubernetes, i), attacks[i].What)
	}
	_ = columns.Flush()
	fmt.Fprintf(w, "attack: %d attacks, refused here %d, refused by kube-apiserver %d\n", len(attacks), refused(launch.Espalier), refused(launch.Kubernetes))
}
