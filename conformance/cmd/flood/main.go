package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"time"

	"github.com/espalier-dev/espalier/conformance/flood"
	"github.com/espalier-dev/espalier/conformance/launch"
)

var (
	pattern = flag.String("run", "", "run only the scenarios whose name matches this regular expression")
	program = flag.String("espalier", "", "use this espalier program instead of building one")
)

func main() { launch.Main("flood", run) }

// scenarioTime ends a scenario that does not end by itself.
const scenarioTime = 10 * time.Minute

func run(ctx context.Context, dir string) error {
	wanted, err := regexp.Compile(*pattern)
	if err != nil {
		return err
	}
	binary := *program
	if binary == "" {
		if binary, err = launch.Espalier.Program(ctx, dir); err != nil {
			return err
		}
	}
	var worst flood.Figures
	var errs []error
	n := 0
	for _, sc := range flood.All {
		if !wanted.MatchString(sc.Name) || ctx.Err() != nil {
			continue
		}
		f, err := measure(ctx, &sc, binary)
		if err != nil {
			errs = append(errs, err)
		}
		n++
		fmt.Printf("%-9s memory %4d MB, p99 %4d ms of %d requests of another user (%d failed), ends in %.1f s\n",
			sc.Name, f.Memory>>20, f.P99.Milliseconds(), f.Requests, f.Failures, f.End.Seconds())
		worst.Memory, worst.P99, worst.End = max(worst.Memory, f.Memory), max(worst.P99, f.P99), max(worst.End, f.End)
	}
	if n == 0 {
		return fmt.Errorf("no scenario has a name that matches %q", *pattern)
	}
	fmt.Printf("flood: %d scenarios, worst memory %d MB, worst p99 %d ms, ends in %.1f s\n", n, worst.Memory>>20, worst.P99.Milliseconds(), worst.End.Seconds())
	return errors.Join(errs...)
}

// measure runs one scenario against a server and an etcd of its own.
func measure(ctx context.Context, sc *flood.Scenario, binary string) (flood.Figures, error) {
	ctx, cancel := context.WithTimeout(ctx, scenarioTime)
	defer cancel()
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync", "--quota-backend-bytes=4294967296")
	if err != nil {
		return flood.Figures{}, err
	}
	defer etcd.Stop()
	s, err := launch.StartServer(ctx, launch.Spec{Binary: binary, Etcd: etcd.URL, Prefix: "/flood", Namespaces: []string{"default"}})
	if err != nil {
		return flood.Figures{}, err
	}
	defer s.Stop()
	return sc.Measure(ctx, s, func(format string, args ...any) { fmt.Printf("  "+format+"\n", args...) })
}
