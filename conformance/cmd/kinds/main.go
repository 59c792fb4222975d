package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/kinds"
	"github.com/espalier-dev/espalier/conformance/launch"
)

// quiet turns API priority and fairness off: its controller writes to FlowSchemas while they are compared.
const quiet = "--enable-priority-and-fairness=false"

// data has our server serve all kinds as data, without controllers that kube-apiserver does not have. None creates service accounts,
// so that both servers run without the plugin that pods need them for.
const data = "--kinds=all --controllers= --disable-admission-plugins=ServiceAccount " + quiet

var (
	only     = flag.String("kinds", "", "kinds to compare, separated by commas: plural, plural.group or plural.version.group (default: all)")
	objects  = flag.Int("objects", 100, "objects of each kind")
	seed     = flag.Uint64("seed", 1, "seed of the generator: the same seed makes the same objects")
	limit    = flag.Duration("limit", 0, "stop after this time with what was compared (default: no limit)")
	out      = flag.String("out", "", "write the report to this file, too")
	asJSON   = flag.Bool("json", false, "print the report as JSON, with an example of each miss in detail")
	args     = flag.String("server-args", data, "flags of our server, separated by spaces; those that it does not have are left out")
	kubeArgs = flag.String("kube-args", quiet+" --allow-privileged", "further flags of kube-apiserver, separated by spaces")
	workers  = flag.Int("workers", 4, "kinds that are compared at the same time")
	serve    = flag.Bool("serve", false, "start both servers, print their kubeconfig files, and wait for a signal")
	show     = flag.String("show", "", "run the requests of objects, KIND/NUMBER separated by commas, and print the requests and both answers")
	check    = flag.Bool("check-seeds", false, "create the seeds as they are on kube-apiserver, and fail if it refuses one")
	fixtures = flag.String("fixtures", "", "folder whose objects are created, as they are and changed, in place of generated ones; \"kubernetes\" is the source of Kubernetes")
	control  = flag.Bool("control", false, "compare kube-apiserver with a second kube-apiserver: what differs is noise")

	leastEqual   = flag.Float64("least-equal", 0, "fail if fewer percent of the objects that both accept are stored equal")
	leastFields  = flag.Float64("least-fields", 0, "fail if fewer percent of the refusals name the same fields")
	mostRefused  = flag.Int("most-refused", -1, "fail if more requests are refused here and accepted there (default: no limit)")
	mostAccepted = flag.Float64("most-accepted", 100, "fail if more percent of the requests refused there are accepted here")
)

func main() { launch.Main("kinds", run) }

func run(ctx context.Context, dir string) error {
	there, err := start(ctx, dir, launch.Kubernetes, "kube-apiserver")
	if err != nil {
		return err
	}
	defer there.stop()
	o := kinds.Options{There: there.client, Objects: *objects, Seed: *seed, Workers: max(*workers, 1), Progress: os.Stderr}
	if *only != "" {
		o.Kinds = strings.Split(*only, ",")
	}
	if *fixtures != "" {
		if o.Fixtures, err = fixtureFolder(ctx); err != nil {
			return err
		}
	}
	if *check {
		return kinds.CheckSeeds(ctx, o)
	}
	other, name := launch.Espalier, "espalier"
	if *control {
		other, name = launch.Kubernetes, "second kube-apiserver"
	}
	here, err := start(ctx, dir, other, name)
	if err != nil {
		return err
	}
	defer here.stop()
	o.Here = here.client
	switch {
	case *serve:
		fmt.Printf("kube-apiserver: KUBECONFIG=%s\n%s: KUBECONFIG=%s\n", there.server.Kubeconfig, name, here.server.Kubeconfig)
		<-ctx.Done()
		return nil
	case *show != "":
		for name := range strings.SplitSeq(*show, ",") {
			if err := showOne(ctx, o, name); err != nil {
				return err
			}
		}
		return nil
	}
	if *limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *limit)
		defer cancel()
	}
	began := time.Now()
	report, err := kinds.Run(ctx, o)
	if report == nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "kinds: compared for %s\n", time.Since(began).Round(time.Second))
	return errors.Join(err, output(report), gates(report.Total()))
}

// fixtureFolder is the folder of -fixtures.
func fixtureFolder(ctx context.Context) (string, error) {
	if *fixtures != "kubernetes" {
		return *fixtures, nil
	}
	root, err := launch.Root()
	if err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	cmd.Dir = filepath.Join(root, "conformance", "kubernetes")
	cmd.Env = append(os.Environ(), "GOWORK=off")
	dir, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("finding the source of Kubernetes failed: %w", err)
	}
	return strings.TrimSpace(string(dir)), nil
}

// A started server has an etcd of its own.
type started struct {
	etcd   *launch.Etcd
	server *launch.Server
	client *kinds.Client
}

func (s *started) stop() {
	s.server.Stop()
	s.etcd.Stop()
}

func start(ctx context.Context, dir string, kind launch.Kind, name string) (*started, error) {
	binary, err := kind.Program(ctx, dir)
	if err != nil {
		return nil, err
	}
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return nil, err
	}
	flags := strings.Fields(*kubeArgs)
	if kind == launch.Espalier {
		if flags, err = known(ctx, binary, strings.Fields(*args)); err != nil {
			etcd.Stop()
			return nil, err
		}
	}
	server, err := launch.StartServer(ctx, launch.Spec{Kind: kind, Binary: binary, Etcd: etcd.URL, Prefix: "/kinds", Flags: flags})
	if err != nil {
		etcd.Stop()
		return nil, err
	}
	s := &started{etcd: etcd, server: server}
	if s.client, err = kinds.NewClient(name, server.Config, *workers); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// known returns the flags that our server has. A flag that this version lacks would end it.
func known(ctx context.Context, binary string, flags []string) ([]string, error) {
	help, err := exec.CommandContext(ctx, binary, "serve", "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("espalier serve --help failed: %w", err)
	}
	var out []string
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		if regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(name) + `\b`).Match(help) {
			out = append(out, f)
		} else {
			fmt.Fprintf(os.Stderr, "kinds: our server has no flag %s\n", name)
		}
	}
	return out, nil
}

func showOne(ctx context.Context, o kinds.Options, name string) error {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return fmt.Errorf("-show %s must be KIND/NUMBER", name)
	}
	index, err := strconv.Atoi(name[i+1:])
	if err != nil || index < 0 {
		return fmt.Errorf("-show %s must end in a number", name)
	}
	return kinds.Show(ctx, o, name[:i], index, os.Stdout)
}

// output prints the report, and writes it to a file if one is asked for.
func output(report *kinds.Report) error {
	var text strings.Builder
	if *asJSON {
		document, err := report.JSON()
		if err != nil {
			return err
		}
		text.Write(document)
		text.WriteByte('\n')
	} else {
		report.Write(&text)
	}
	if _, err := os.Stdout.WriteString(text.String()); err != nil {
		return err
	}
	if *out != "" {
		return os.WriteFile(*out, []byte(text.String()), 0o600)
	}
	return nil
}

// gates returns an error for each bound that the result misses.
func gates(s kinds.Score) error {
	var errs []error
	if s.EqualPercent() < *leastEqual {
		errs = append(errs, fmt.Errorf("%.2f %% are stored equal, fewer than %.2f", s.EqualPercent(), *leastEqual))
	}
	if s.FieldPercent() < *leastFields {
		errs = append(errs, fmt.Errorf("%.2f %% of the refusals name the same fields, fewer than %.2f", s.FieldPercent(), *leastFields))
	}
	if *mostRefused >= 0 && s.RefusedHere > *mostRefused {
		errs = append(errs, fmt.Errorf("%d requests are refused here only, more than %d", s.RefusedHere, *mostRefused))
	}
	if s.AcceptedPercent() > *mostAccepted {
		errs = append(errs, fmt.Errorf("%.2f %% of the refusals there are accepted here, more than %.2f", s.AcceptedPercent(), *mostAccepted))
	}
	return errors.Join(errs...)
}
