package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
)

var (
	only    = flag.String("only", "kube-apiserver,espalier", "`servers` to run the specs with, for example -only espalier")
	all     = flag.Bool("all", false, "run all conformance specs, also those that need nodes, for example -all -limit 45s -workers 8")
	focus   = flag.String("focus", "", "run only specs whose name matches this `pattern`, for example -focus 'sig-auth.*ServiceAccounts'")
	limit   = flag.Duration("limit", 5*time.Minute, "`time` for one spec, for example -limit 1m")
	workers = flag.Int("workers", 3, "`number` of specs that run at the same time, for example -workers 8; specs marked [Serial] run alone")
	args    = flag.String("args", "--kinds=all --protect-instances=false", "`flags` of espalier serve, separated by spaces, for example -args '--kinds=all -v=2'")
	tenant  = flag.String("tenant", "", "run the specs also in a tenant of this name of our server, and compare, for example -only espalier -tenant suite")
	logs    = flag.String("logs", "", "`folder` for the output of specs and servers, for example -logs /tmp/logs (default: a temporary one, which is removed)")
	least   = flag.Int("least", 0, "fail if fewer than this `number` of specs pass with our server, for example -least 100")
	inside  = flag.Int("least-tenant", 0, "fail if fewer than this `number` of specs pass in the tenant, for example -tenant suite -least-tenant 100")
	record  = flag.Bool("record", false, "write the specs that pass with kube-apiserver to reference.txt, or with -controllers to controllers.txt, for example -only kube-apiserver -all -record")
	manager = flag.String("controllers", "", "run this kube-controller-manager `program` beside kube-apiserver, with only the controllers that our server has, for example -controllers /tmp/kube-controller-manager")
)

// tenantSide is what the tenant of our server is called.
const tenantSide = "espalier-tenant"

func main() { launch.Main("kubernetes-conformance", run) }

// lists are the specs to run.
type lists struct {
	reference   []string // pass with kube-apiserver alone
	controllers []string // need only controllers that our server has
	other       []string // need more
}

func run(ctx context.Context, dir string) error {
	kinds, err := parseFlags(dir)
	if err != nil {
		return err
	}
	known, err := load(ctx, dir)
	if err != nil {
		return err
	}
	results := map[string][]specs.Spec{}
	for _, kind := range kinds {
		names := known.of(kind)
		if len(names) == 0 {
			return fmt.Errorf("no spec to run with %s: -focus matches none", kind)
		}
		if results[kind.String()], err = against(ctx, kind, "", dir, names); err != nil {
			return fmt.Errorf("%s: %w", kind, err)
		}
		if kind != launch.Espalier || *tenant == "" {
			continue
		}
		if results[tenantSide], err = against(ctx, kind, *tenant, dir, names); err != nil {
			return fmt.Errorf("%s: %w", tenantSide, err)
		}
	}
	if *record {
		if err := write(results[launch.Kubernetes.String()], known); err != nil {
			return err
		}
	}
	return report(known, results)
}

// parseFlags checks the flags before anything is started, and returns the servers.
func parseFlags(dir string) ([]launch.Kind, error) {
	var kinds []launch.Kind
	for name := range strings.SplitSeq(*only, ",") {
		kind, err := launch.Named(name)
		if err != nil {
			return nil, err
		}
		if kind == launch.Upstream {
			return nil, errors.New("-only: upstream's server has none of the kinds that the specs need")
		}
		kinds = append(kinds, kind)
	}
	switch {
	case *workers < 1:
		return nil, errors.New("-workers must be at least 1")
	case *limit <= 0:
		return nil, errors.New("-limit must be positive")
	case (*tenant != "" || *inside > 0) && !slices.Contains(kinds, launch.Espalier):
		return nil, errors.New("-tenant is for our server only: add espalier to -only")
	case *inside > 0 && *tenant == "":
		return nil, errors.New("-least-tenant needs -tenant")
	case *record && (!*all || *focus != "" || !slices.Contains(kinds, launch.Kubernetes)):
		return nil, errors.New("-record needs -all without -focus, and kube-apiserver")
	}
	if *logs == "" {
		*logs = dir
	}
	return kinds, os.MkdirAll(*logs, 0o755)
}

// load reads the lists, and with -all asks the suite for the other specs.
func load(ctx context.Context, dir string) (lists, error) {
	pattern, err := regexp.Compile(*focus)
	if err != nil {
		return lists{}, fmt.Errorf("-focus: %w", err)
	}
	var known lists
	if known.reference, err = readList(referenceList); err != nil {
		return lists{}, err
	}
	if known.controllers, err = readList(controllersList); err != nil {
		return lists{}, err
	}
	if twice := without(known.controllers, without(known.controllers, known.reference)); len(twice) > 0 {
		return lists{}, fmt.Errorf("%s and %s both list: %s", referenceList, controllersList, twice[0])
	}
	if *all {
		suite, err := program(dir, "", "")
		if err != nil {
			return lists{}, err
		}
		p := &pool{suite: suite, limit: *limit, logs: *logs}
		every, err := p.list(ctx)
		if err != nil {
			return lists{}, err
		}
		fmt.Fprintf(os.Stderr, "the suite has %d conformance specs\n", len(every))
		known.other = without(without(every, known.reference), known.controllers)
	}
	for _, list := range []*[]string{&known.reference, &known.controllers, &known.other} {
		*list = matching(*list, pattern)
	}
	return known, nil
}

// of returns the specs that a server runs: those of the lists, without what can pass only after minutes of waiting, unless all are asked for.
func (l lists) of(kind launch.Kind) []string {
	if kind == launch.Kubernetes && *manager == "" && !*all {
		return l.reference
	}
	return slices.Concat(l.reference, l.controllers, l.other)
}

// against runs specs with one server, or with a tenant of it.
func against(ctx context.Context, kind launch.Kind, tenant, dir string, names []string) ([]specs.Spec, error) {
	name := kind.String()
	if tenant != "" {
		name = tenantSide
	}
	// A spec waits until etcd has been compacted, by default for five minutes.
	flags := []string{"--etcd-compaction-interval=1m"}
	if kind == launch.Kubernetes {
		// Privileged pods are allowed in every cluster that the suite is made for.
		flags = append(flags, "--allow-privileged=true")
	} else {
		flags = append(flags, strings.Fields(*args)...)
	}
	fmt.Fprintf(os.Stderr, "starting etcd and %s\n", name)
	s, err := startSide(ctx, kind, dir, *manager, tenant, flags)
	if err != nil {
		return nil, err
	}
	defer s.stop()
	kubectl, err := launch.Tool("kubectl")
	if err != nil {
		return nil, err
	}
	suite, err := program(dir, s.Kubeconfig, kubectl)
	if err != nil {
		return nil, err
	}
	p := &pool{suite: suite, server: name, workers: *workers, limit: *limit, logs: filepath.Join(*logs, name),
		progress: func(format string, arguments ...any) { fmt.Fprintf(os.Stderr, format, arguments...) }}
	results, err := p.run(ctx, names)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(p.logs, "server.log"), []byte(s.Output()), 0o644); err != nil {
		return nil, err
	}
	select {
	case <-s.Ended():
		return nil, fmt.Errorf("the server ended while specs ran\n%.4000s", s.Output())
	default:
		return results, nil
	}
}

// write writes the list that this run has measured.
func write(results []specs.Spec, known lists) error {
	passed := passing(results)
	if *manager == "" {
		return writeList(referenceList, passed)
	}
	return writeList(controllersList, without(passed, known.reference))
}

// report prints what our server and its tenant lose, what kube-apiserver fails though it is listed, and the score.
func report(known lists, results map[string][]specs.Spec) error {
	there, here, within := results[launch.Kubernetes.String()], results[launch.Espalier.String()], results[tenantSide]
	wanted := slices.Concat(known.reference, known.controllers)
	show(os.Stdout, "of the lists fail with kube-apiserver", failures(there, known.reference))
	show(os.Stdout, "are lost with espalier", failures(here, wanted))
	show(os.Stdout, "pass with espalier and not in its tenant", failures(within, passing(here)))
	show(os.Stdout, "pass in the tenant and not with espalier", failures(here, passing(within)))
	line := fmt.Sprintf("kubernetes conformance: kube-apiserver %s, espalier %s", score(there), score(here))
	if within != nil {
		line += ", its tenant " + score(within)
	}
	fmt.Printf("\n%s of %d\n", line, len(wanted)+len(known.other))
	var errs []error
	if n := len(passing(here)); here != nil && n < *least {
		errs = append(errs, fmt.Errorf("%d specs pass with our server, fewer than %d", n, *least))
	}
	if n := len(passing(within)); n < *inside {
		errs = append(errs, fmt.Errorf("%d specs pass in the tenant, fewer than %d", n, *inside))
	}
	return errors.Join(errs...)
}

// failures returns the results of the specs of a list that have not passed.
func failures(results []specs.Spec, list []string) []specs.Spec {
	var failed []specs.Spec
	for _, s := range results {
		if !s.Passed() && slices.Contains(list, s.Name) {
			failed = append(failed, s)
		}
	}
	return failed
}

// passing returns the names of the specs that have passed.
func passing(results []specs.Spec) []string {
	var names []string
	for _, s := range results {
		if s.Passed() {
			names = append(names, s.Name)
		}
	}
	return names
}

// score is the number of specs that have passed, or a dash where none have run.
func score(results []specs.Spec) string {
	if results == nil {
		return "-"
	}
	return fmt.Sprint(len(passing(results)))
}
