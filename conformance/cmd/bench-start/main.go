package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
)

var figures = results.New("bench-start")

var (
	rounds  = flag.Int("rounds", 5, "how often each start is timed")
	servers = flag.Int("servers", 200, "number of test servers to run at a time in one process")
	child   = flag.String("child", "", "for its own use: espalier, upstream or servers")
	crds    = flag.String("crds", "", "for its own use: a folder")
	etcd    = flag.String("etcd", "", "for its own use: a URL")
)

func main() {
	if flag.Parse(); *child == "" {
		launch.Main("bench-start", run)
	} else if err := runChild(*child, *crds, *etcd, *servers); err != nil {
		fmt.Fprintln(os.Stderr, "bench-start:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string) error {
	b := &bench{dir: dir}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	if err := b.starts(ctx, *rounds); err != nil {
		return err
	}
	if err := b.dev(ctx, *rounds); err != nil {
		return err
	}
	if err := b.servers(ctx, *servers); err != nil {
		return err
	}
	return figures.Save()
}

// A bench is one run.
type bench struct {
	dir      string
	espalier string // the binary
	sizes    []size
}

// size is a folder of CRDs.
type size struct {
	count int
	dir   string
}

// timing is what a child process measured.
type timing struct {
	First, Further time.Duration // the first start in the process, and the next
	Listed         time.Duration // the first, up to a list of the objects of every CRD
	CPU            time.Duration // of the first, with the lists
	Memory         memory
}

// starts times both sides in turns, each in a new process.
func (b *bench) starts(ctx context.Context, rounds int) error {
	etcd, err := launch.StartEtcd(ctx, "--unsafe-no-fsync")
	if err != nil {
		return err
	}
	defer etcd.Stop()
	fmt.Printf("Each start in a new process, %d rounds in turns. Ours starts its own etcd within the time; upstream finds one running.\n\n", rounds)
	fmt.Printf("%-10s %5s %14s %14s %14s %14s\n", "server", "CRDs", "first start", "all listed", "CPU of that", "further start")
	for _, s := range b.sizes {
		taken := map[string][]timing{}
		for range rounds {
			for _, side := range sides {
				var t timing
				if err := ask(ctx, &t, "-child", side, "-crds", s.dir, "-etcd", etcd.URL); err != nil {
					return fmt.Errorf("%s with %d CRDs: %w", side, s.count, err)
				}
				taken[side] = append(taken[side], t)
			}
		}
		median := map[string]time.Duration{}
		for _, side := range sides {
			all := taken[side]
			median[side] = middle(all, func(t timing) time.Duration { return t.First })
			figures.Set(fmt.Sprintf("%s.%d.first", side, s.count), "%.2f s", median[side].Seconds())
			figures.Set(fmt.Sprintf("%s.%d.further", side, s.count), "%.2f s", middle(all, func(t timing) time.Duration { return t.Further }).Seconds())
			fmt.Printf("%-10s %5d %14v %14v %14v %14v\n", side, s.count, median[side].Round(time.Millisecond),
				middle(all, func(t timing) time.Duration { return t.Listed }).Round(time.Millisecond),
				middle(all, func(t timing) time.Duration { return t.CPU }).Round(time.Millisecond),
				middle(all, func(t timing) time.Duration { return t.Further }).Round(time.Millisecond))
		}
		fmt.Printf("start with %d CRDs: upstream/ours=%.1f\n\n", s.count, float64(median[upstream])/float64(median[ours]))
	}
	return nil
}

// middle is the median of a figure.
func middle(all []timing, of func(timing) time.Duration) time.Duration {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b timing) int { return cmp.Compare(of(a), of(b)) })
	return of(sorted[len(sorted)/2])
}

// dev times `espalier dev` from its start to the end of the first kubectl that it
// answers, in a new folder and in that folder again.
func (b *bench) dev(ctx context.Context, rounds int) error {
	kubectl, err := launch.Tool("kubectl")
	if err != nil {
		return err
	}
	var fresh, again []timing
	for i := range rounds {
		data := filepath.Join(b.dir, fmt.Sprint("data", i))
		for _, into := range []*[]timing{&fresh, &again} {
			took, err := b.devOnce(ctx, kubectl, data)
			if err != nil {
				return err
			}
			*into = append(*into, timing{First: took})
		}
	}
	first := func(t timing) time.Duration { return t.First }
	figures.Set("dev.new", "%.2f s", middle(fresh, first).Seconds())
	figures.Set("dev.again", "%.2f s", middle(again, first).Seconds())
	fmt.Printf("espalier dev to the answer of `kubectl get crd`: %v in a new folder, %v in the same again\n\n",
		middle(fresh, first).Round(time.Millisecond), middle(again, first).Round(time.Millisecond))
	return nil
}

func (b *bench) devOnce(ctx context.Context, kubectl, data string) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	began := time.Now()
	dev := exec.Command(b.espalier, "dev", "--quiet", "--port", "0", "--data-dir", data, "--crds", b.sizes[0].dir)
	dev.Stderr = os.Stderr
	if err := dev.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = dev.Process.Signal(syscall.SIGTERM)
		err = errors.Join(err, dev.Wait())
	}()
	for {
		get := exec.CommandContext(ctx, kubectl, "get", "crd", "--kubeconfig", filepath.Join(data, "kubeconfig"))
		if out, err := get.Output(); err == nil && len(out) > 0 {
			return time.Since(began), nil
		}
		select {
		case <-ctx.Done():
			return 0, errors.New("espalier dev has not answered within a minute")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// servers runs many test servers at a time.
func (b *bench) servers(ctx context.Context, count int) error {
	var t timing
	if err := ask(ctx, &t, "-child", "servers", "-servers", fmt.Sprint(count), "-crds", b.sizes[0].dir); err != nil {
		return err
	}
	m := t.Memory
	figures.Set("servers.ready", "%.0f s", t.First.Seconds())
	figures.Set("servers.memory", "%.1f MB", m.Process/float64(count))
	figures.Set("servers.heap", "%.1f MB", m.Heap/float64(count))
	figures.Set("servers.goroutines", "%d", m.Goroutines/count)
	fmt.Printf("%d test servers with one CRD each at a time in one process: all ready after %v; %.1f MB each of the process (%.1f MB heap, %.1f MB stacks), %d goroutines each\n",
		count, t.First.Round(time.Millisecond), m.Process/float64(count), m.Heap/float64(count), m.Stacks/float64(count), m.Goroutines/count)
	return nil
}

// ask runs a child and reads its answer.
func ask(ctx context.Context, answer *timing, args ...string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return err
	}
	return json.Unmarshal(out, answer)
}
