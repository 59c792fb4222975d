package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/specs"
	"github.com/espalier-dev/espalier/conformance/suite"
)

// module has the suites. The version is the one that conformance/go.mod requires.
const module = "sigs.k8s.io/controller-runtime"

// packages are those whose suites start servers.
const packages = "builder,cache,client,cluster,controller,controller/controllerutil,handler,internal/controller,internal/recorder,manager,metrics/filters,reconcile,source,webhook"

var (
	only  = flag.String("packages", packages, "packages below pkg/, separated by commas")
	limit = flag.Duration("limit", 10*time.Minute, "time for one suite with one server")
	logs  = flag.String("logs", "", "folder for the output of the suites (default: a temporary one, which is removed)")
	focus = flag.String("focus", "", "only specs that match this regular expression")
	least = flag.Int("least", 0, "fail if fewer specs pass with our server")
)

func main() { launch.Main("controller-runtime", run) }

// A side is a server that the suites are run with.
type side struct {
	name   string
	assets string // KUBEBUILDER_ASSETS
	took   time.Duration
}

func run(ctx context.Context, dir string) error {
	if *logs == "" {
		*logs = dir
	}
	if err := os.MkdirAll(*logs, 0o755); err != nil {
		return err
	}
	there, here, err := sides(ctx, dir)
	if err != nil {
		return err
	}
	copied, err := suite.CopyModule(ctx, module, os.Stderr)
	if err != nil {
		return err
	}
	var total specs.Score
	fmt.Printf("%-28s %14s %9s\n", "package", "kube-apiserver", "espalier")
	for name := range strings.SplitSeq(*only, ",") {
		s, err := build(ctx, dir, copied, name)
		if err != nil {
			return err
		}
		reference, err := there.run(ctx, s)
		if err != nil {
			return err // there is nothing to compare with
		}
		got, err := here.run(ctx, s)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err) // all its specs are lost
		}
		score := specs.Compare(reference, got)
		fmt.Printf("%-28s %14s %9s\n", name, fmt.Sprintf("%d/%d", score.There, score.Total), fmt.Sprintf("%d/%d", score.Here, score.Total))
		total.Add(score)
	}
	show(total.Lost)
	fmt.Printf("\ncontroller-runtime: kube-apiserver %d, espalier %d of %d specs; %.0f s, %.0f s\n",
		total.There, total.Here, total.Total, there.took.Seconds(), here.took.Seconds())
	if total.Here < *least {
		return fmt.Errorf("%d specs pass with our server, fewer than %d", total.Here, *least)
	}
	return nil
}

// sides returns kube-apiserver and our server, each in a folder as envtest expects it.
func sides(ctx context.Context, dir string) (there, here *side, err error) {
	there = &side{name: "kube-apiserver", assets: filepath.Join(dir, "assets")}
	if err := os.Mkdir(there.assets, 0o755); err != nil {
		return nil, nil, err
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kubectl"} {
		path, err := launch.Tool(name)
		if err != nil {
			return nil, nil, err
		}
		if err := os.Symlink(path, filepath.Join(there.assets, name)); err != nil {
			return nil, nil, err
		}
	}
	binary, err := launch.Build(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	here = &side{name: "espalier", assets: filepath.Join(dir, "ours")}
	if out, err := exec.CommandContext(ctx, binary, "envtest", here.assets).CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("espalier-server envtest: %w\n%s", err, out)
	}
	return there, here, nil
}

// build builds the suite of a package in the copy of the module, once for both sides.
func build(ctx context.Context, dir, copied, name string) (specs.Suite, error) {
	s := specs.Suite{Name: name, Binary: filepath.Join(dir, strings.ReplaceAll(name, "/", "-")+".test"), Dir: filepath.Join(copied, "pkg", name)}
	if *focus != "" {
		s.Args = []string{"--ginkgo.focus=" + *focus}
	}
	fmt.Fprintf(os.Stderr, "building the suite of %s\n", name)
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-o", s.Binary, "./pkg/"+name)
	cmd.Dir, cmd.Env = copied, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return s, fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return s, nil
}

// run runs a suite with the server, and stops the servers that the suite has left running.
func (d *side) run(ctx context.Context, s specs.Suite) ([]specs.Spec, error) {
	defer launch.StopPrograms(d.assets)
	s.Env = []string{"KUBEBUILDER_ASSETS=" + d.assets}
	began := time.Now()
	got, err := specs.Run(ctx, s, *limit, filepath.Join(*logs, strings.ReplaceAll(s.Name, "/", "-")+"-"+d.name+".log"))
	d.took += time.Since(began)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.name, err)
	}
	return got, nil
}

// show prints the specs that only our server fails.
func show(lost []specs.Spec) {
	for i, s := range lost {
		if i == 0 {
			fmt.Printf("\n%d specs pass with kube-apiserver and not with our server:\n", len(lost))
		}
		fmt.Printf("  %s: %s: %.200s\n", s.State, s.Name, s.Reason)
	}
}
