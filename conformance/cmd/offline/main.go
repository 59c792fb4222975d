package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/espalier-dev/espalier/conformance/kinds"
	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/offline"
)

var (
	only    = flag.String("kinds", "", "kinds to compare, separated by commas (default: all)")
	objects = flag.Int("objects", 100, "objects of each kind")
	seed    = flag.Uint64("seed", 1, "seed of the generator: the same seed makes the same objects")
	show    = flag.Int("show", 20, "differences to print")
	beside  = flag.Bool("kubeconform", false, "run kubeconform on the same files, too")
	files   = flag.String("files", "", "folder to keep the files in (default: they are removed)")
)

func main() { launch.Main("offline", run) }

func run(ctx context.Context, dir string) error {
	program, err := launch.BuildCommandLine(ctx, dir)
	if err != nil {
		return err
	}
	client, stop, err := server(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	var names []string
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	samples, err := kinds.Samples(ctx, client, names, *seed, *objects)
	if err != nil {
		return err
	}
	folder := *files
	if folder == "" {
		folder = filepath.Join(dir, "objects")
	}
	if err := write(folder, samples); err != nil {
		return err
	}
	found, took, err := validate(ctx, program, folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "offline: espalier validate took %s\n", took)
	refused, differ := compare(ctx, client, samples, found)
	if refused == nil || !*beside {
		return differ
	}
	theirs, tookTheirs, err := kubeconform(ctx, dir, folder, client, samples)
	if err != nil {
		return err
	}
	ours := map[string]bool{}
	for file, f := range found {
		ours[file] = len(f.Errors)+len(f.Fields) > 0
	}
	contrast(samples, refused, ours, theirs, took, tookTheirs)
	return differ
}

// server starts ours with all kinds.
func server(ctx context.Context, dir string) (*kinds.Client, func(), error) {
	binary, err := launch.Espalier.Program(ctx, dir)
	if err != nil {
		return nil, nil, err
	}
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return nil, nil, err
	}
	s, err := launch.StartServer(ctx, launch.Spec{Kind: launch.Espalier, Binary: binary, Etcd: etcd.URL, Prefix: "/offline",
		Flags: []string{"--kinds=all", "--controllers=", "--disable-admission-plugins=ServiceAccount", "--enable-priority-and-fairness=false"}})
	if err != nil {
		etcd.Stop()
		return nil, nil, err
	}
	stop := func() { s.Stop(); etcd.Stop() }
	client, err := kinds.NewClient("espalier", s.Config, 4)
	if err != nil {
		stop()
	}
	return client, stop, err
}

// name is the file of a sample.
func name(s kinds.Sample) string { return fmt.Sprintf("%s-%05d.json", s.Kind.ID, s.Index) }

func write(folder string, samples []kinds.Sample) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for _, s := range samples {
		text, err := json.Marshal(s.Object)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, name(s)), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// validate runs the command line over the folder. It returns the findings by file.
func validate(ctx context.Context, program, folder string) (map[string]*offline.Findings, cost, error) {
	out, took, err := measured(exec.CommandContext(ctx, program, "validate", "--config", "none", "--severity", "info", "-o", "json", folder))
	if err != nil {
		return nil, cost{}, err
	}
	var report struct {
		Diagnostics []struct{ Rule, Severity, Message, File string }
	}
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		return nil, cost{}, err
	}
	found := map[string]*offline.Findings{}
	for _, d := range report.Diagnostics {
		file := filepath.Base(d.File)
		if found[file] == nil {
			found[file] = &offline.Findings{}
		}
		found[file].Add(d.Rule, d.Severity, d.Message)
	}
	return found, took, nil
}

// compare asks the server about all samples, and prints the differences. It returns the files that the server refuses, nil if it
// did not answer.
func compare(ctx context.Context, client *kinds.Client, samples []kinds.Sample, found map[string]*offline.Findings) (map[string]bool, error) {
	var mutex sync.Mutex
	var counts [offline.Differs + 1]int
	seen, refused := map[string]bool{}, map[string]bool{}
	work := make(chan kinds.Sample)
	var wait sync.WaitGroup
	var failed error
	for range 4 {
		wait.Go(func() {
			for s := range work {
				strict, err := client.Create(ctx, s, "Strict")
				ignore, otherErr := client.Create(ctx, s, "Ignore")
				mutex.Lock()
				if err := errors.Join(err, otherErr); err != nil {
					failed = err
					mutex.Unlock()
					continue
				}
				f := found[name(s)]
				if f == nil {
					f = &offline.Findings{}
				}
				outcome, text := offline.Compare(f, strict, ignore)
				counts[outcome]++
				seen[s.Kind.ID] = true
				if !strict.Accepted() {
					refused[name(s)] = true
				}
				if outcome == offline.Differs && counts[outcome] <= *show {
					fmt.Printf("%s: %s\n", name(s), text)
				}
				mutex.Unlock()
			}
		})
	}
	for _, s := range samples {
		work <- s
	}
	close(work)
	wait.Wait()
	if failed != nil {
		return nil, failed
	}
	fmt.Printf("offline: %d kinds, %d objects, %d refused by the server: %d same, %d same as far as the rules are known, %d decided by the cluster, %d differences\n",
		len(seen), len(samples), len(refused), counts[offline.Same], counts[offline.Partial], counts[offline.Cluster], counts[offline.Differs])
	if counts[offline.Differs] > 0 {
		return refused, errors.New("espalier validate and the server differ")
	}
	return refused, nil
}
