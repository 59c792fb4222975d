package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/conformance/bug"
	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/fault"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

var (
	minutes      = flag.Float64("minutes", 0, "run for this many `minutes`; example: -minutes 60")
	short        = flag.Bool("short", false, "run for three minutes; example: -short")
	runs         = flag.Int("runs", 0, "`number` of runs, or of repetitions of directed cases; example: -runs 20")
	members      = flag.Int("members", 0, "`members` of etcd, 1 or 3; half of the runs on each if 0; example: -members 3")
	engine       = flag.String("engine", "etcd", "`engine` that stores everything: etcd, or kine (see 'make kine') in front of sqlite or postgres, as one member, for runs by chance; example: -engine sqlite")
	replicas     = flag.Int("replicas", 3, "`replicas` of the server; example: -replicas 2")
	seed         = flag.Uint64("seed", 0, "`seed` of the first run; each further run adds one; taken from the clock if 0; example: -seed 4711 -runs 1")
	faultNames   = flag.String("faults", "", "`names` of faults, separated by commas, all if empty; example: -faults cut,kill-replica\n"+fault.Help())
	extraNames   = flag.String("extras", "", "`names` of activities besides the ordinary operations, separated by commas, out of "+strings.Join(load.Extras(), ", ")+"; the seed chooses if empty; example: -extras quota,leader")
	server       = flag.String("server", "espalier", "`server`: espalier (built from this repository), upstream, kube-apiserver, or the path of an espalier binary; example: -server .bin/espalier")
	other        = flag.String("other", "", "`path` of another espalier binary, for the fault upgrade; example: -other .bin/espalier-before -faults upgrade")
	skew         = flag.Bool("skew", false, "build the server once more, with a clock that can be wrong, for the fault clock (takes minutes); example: -skew -faults clock")
	disk         = flag.Bool("disk", false, "give members of etcd file systems of their own, for the fault disk (needs root); example: -disk -faults disk")
	out          = flag.String("out", "robustness-out", "`folder` for histories and pictures of runs with violations; example: -out /tmp/out")
	clients      = flag.Int("clients", 8, "`clients` that write and read at the same time; example: -clients 4")
	directed     = flag.String("directed", "", "play directed `cases` instead, separated by commas, or all; example: -directed resurrect,exists -runs 20\n"+robustness.CaseHelp())
	availability = flag.Bool("availability", false, "measure how soon replicas answer again after a fault, on one member of etcd and on three; example: -availability")
	outage       = flag.String("outage", "", "with -availability, only outages whose name has this `text`; example: -availability -outage 'leader of three'")
	rate         = flag.Int("rate", 10, "with -latency, `requests` a second of each verb to each replica; example: -latency -rate 5")
	latency      = flag.Bool("latency", false, "measure how long each verb takes at a steady rate, without faults, for a minute or -minutes, on one member of etcd and on three; example: -latency -members 3")
	bugName      = flag.String("bug", "", "build the server with this known `bug`; with -bugs, look only for these, separated by commas; example: -bug create-again -directed resurrect")
	allBugs      = flag.Bool("bugs", false, "look for each known bug, a minute each, and print which checker found it when; example: -bugs")
)

func main() {
	flag.Parse()
	// client-go tells of every connection that a fault has broken.
	klog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "robustness:", err)
		code = 2
	}
	os.Exit(code)
}

func run(ctx context.Context) (int, error) {
	dir, err := os.MkdirTemp("", "robustness-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	o, err := options(ctx, dir)
	if err != nil {
		return 0, err
	}
	if *minutes == 0 && *runs == 0 && !*short {
		*runs = 2
	}
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano()) % 1e9
	}
	var total robustness.Totals
	if *allBugs {
		return findBugs(ctx, o)
	}
	if *availability {
		return onBoth(ctx, o, func(r *robustness.Runner) (bool, error) { return r.Availability(ctx, os.Stdout, *outage) })
	}
	if *latency {
		lasts := time.Minute
		if *minutes > 0 {
			lasts = time.Duration(*minutes * float64(time.Minute))
		}
		return onBoth(ctx, o, func(r *robustness.Runner) (bool, error) {
			return true, r.Latency(ctx, os.Stdout, max(1, *rate), lasts)
		})
	}
	if *directed != "" {
		if err := direct(ctx, o, &total); err != nil {
			return 0, err
		}
		return finish(&total), nil
	}
	for _, p := range parts() {
		o.Members = p.members
		if err := p.run(ctx, o, *seed, &total); err != nil {
			return 0, err
		}
	}
	return finish(&total), nil
}

// parts are the environments to run on, one after another.
func parts() []part {
	lasts := time.Duration(*minutes * float64(time.Minute))
	if *short {
		lasts = 3 * time.Minute
	}
	if environment.Engine(*engine).Kine() {
		return []part{{1, lasts, *runs}}
	}
	if *members > 0 {
		return []part{{*members, lasts, *runs}}
	}
	return []part{{1, lasts / 2, (*runs + 1) / 2}, {3, lasts / 2, *runs / 2}}
}

// onBoth measures on both kinds of environments.
func onBoth(ctx context.Context, o robustness.Options, measure func(*robustness.Runner) (kept bool, err error)) (int, error) {
	code := 0
	for _, o.Members = range []int{1, 3} {
		if *members != 0 && *members != o.Members {
			continue
		}
		runner, err := robustness.New(ctx, o)
		if err != nil {
			return 0, err
		}
		kept, err := measure(runner)
		runner.Close()
		if err != nil {
			return 0, err
		}
		if !kept {
			code = 1
		}
	}
	return code, nil
}

// finish prints the counts and returns the exit code.
func finish(total *robustness.Totals) int {
	if by := total.ByChecker(); by != "" {
		fmt.Printf("robustness: violations: %s\n", by)
	}
	fmt.Printf("robustness: %d runs, %d operations, %d events, %d faults: %d violations\n", total.Runs, total.Operations, total.Events, total.Faults, total.Violations)
	if total.Violations > 0 {
		return 1
	}
	return 0
}

// direct plays cases, each on an environment with as many members of etcd as it needs.
func direct(ctx context.Context, o robustness.Options, total *robustness.Totals) error {
	cases, err := robustness.Select(*directed)
	if err != nil {
		return err
	}
	for _, o.Members = range []int{1, 3} {
		if err := directOn(ctx, o, cases, max(*runs, 1), total); err != nil {
			return err
		}
	}
	return nil
}

func directOn(ctx context.Context, o robustness.Options, cases []robustness.Case, times int, total *robustness.Totals) error {
	cases = slices.DeleteFunc(slices.Clone(cases), func(c robustness.Case) bool { return c.Members != o.Members })
	if len(cases) == 0 {
		return nil
	}
	runner, err := robustness.New(ctx, o)
	if err != nil {
		return err
	}
	defer runner.Close()
	for _, c := range cases {
		for n := range times {
			result, err := runner.Direct(ctx, c)
			if err != nil {
				return err
			}
			robustness.PrintCase(os.Stdout, c, n+1, result)
		}
	}
	total.Add(&runner.Totals)
	return nil
}

func options(ctx context.Context, dir string) (robustness.Options, error) {
	o := robustness.Options{Members: *members, Replicas: *replicas, Other: *other, Disk: *disk, Clients: *clients, Out: *out, Log: os.Stdout}
	if strings.Contains(*directed, "migration") {
		o.Quota = robustness.MigrationQuota
	}
	if *faultNames != "" {
		o.Faults = strings.Split(*faultNames, ",")
	}
	if *extraNames != "" {
		o.Extras = strings.Split(*extraNames, ",")
	}
	var err error
	if o.Engine, err = onEngine(); err != nil {
		return o, err
	}
	if *skew {
		folder := filepath.Join(dir, "skew")
		if err := os.Mkdir(folder, 0o700); err != nil {
			return o, err
		}
		if o.Skewed, err = fault.Skew(ctx, folder); err != nil {
			return o, err
		}
	}
	if strings.ContainsRune(*server, filepath.Separator) {
		o.Binary, err = filepath.Abs(*server)
		return o, err
	}
	if o.Kind, err = launch.Named(*server); err != nil {
		return o, err
	}
	if *allBugs {
		return o, nil // each has a program of its own
	}
	if *bugName != "" {
		b, err := bug.Named(bug.Server, *bugName)
		if err != nil {
			return o, err
		}
		o.Bug = *bugName
		o.Binary, err = buggy(ctx, b)
		return o, err
	}
	o.Binary, err = o.Kind.Program(ctx, dir)
	return o, err
}

// onEngine returns the engine, unless other flags ask for what it does not have.
func onEngine() (environment.Engine, error) {
	e, err := environment.EngineNamed(*engine)
	if err == nil && e.Kine() && (*members > 1 || *disk || *directed != "" || *availability || *latency || *allBugs) {
		err = fmt.Errorf("-engine %s has one member and runs by chance only: leave out -members, -disk, -directed, -availability, -latency and -bugs", e)
	}
	return e, err
}

// part is runs on one kind of environment.
type part struct {
	members int
	lasts   time.Duration
	runs    int
}

func (p *part) run(ctx context.Context, o robustness.Options, seed uint64, total *robustness.Totals) error {
	if p.lasts == 0 && p.runs == 0 {
		return nil
	}
	runner, err := robustness.New(ctx, o)
	if err != nil {
		return err
	}
	defer runner.Close()
	began, printed := time.Now(), time.Now()
	for n := uint64(0); (p.runs == 0 || int(n) < p.runs) && (p.lasts == 0 || time.Since(began) < p.lasts); n++ {
		result, err := runner.Run(ctx, seed+n)
		if errors.Is(err, context.Canceled) {
			break
		}
		if err != nil {
			return err
		}
		// An hour has a thousand runs: those that are not counted on show up in the sums.
		if p.lasts == 0 || len(result.Violations) > 0 {
			robustness.Print(os.Stdout, runner, result)
		}
		if time.Since(printed) > 30*time.Second {
			printed = time.Now()
			fmt.Printf("%v: %s\n", time.Since(began).Round(time.Second), runner.Totals.String())
		}
	}
	if o.Engine.Kine() {
		fmt.Printf("kine in front of %s: %s\n", o.Engine, runner.Totals.String())
	} else {
		fmt.Printf("%d members of etcd: %s\n", p.members, runner.Totals.String())
	}
	total.Add(&runner.Totals)
	return nil
}
