package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/results"
)

var figures = results.New("bench-cli")

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench-cli:", err)
		os.Exit(1)
	}
}

// side is one of the programs.
type side struct {
	name string
	argv []string
	best measure
}

// measure is what a run took.
type measure struct {
	wall, cpu time.Duration
	peak      int64 // bytes
	crds      int
}

func run() error {
	rounds := flag.Int("rounds", 5, "runs of each program, alternating; the fastest and the smallest count")
	dir := flag.String("dir", "", "folder with CRDs (default: the corpus, unpacked)")
	unpack := flag.String("unpack", "", "only unpack the corpus to this folder")
	flag.Parse()
	ctx := context.Background()
	if *unpack != "" {
		files, size, err := corpus.Unpack(ctx, *unpack, corpus.Options{Progress: os.Stderr})
		if err == nil {
			fmt.Printf("corpus: %d files, %.1f MB\n", files, float64(size)/1e6)
		}
		return err
	}
	work, err := os.MkdirTemp("", "espalier-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	folder := *dir
	if folder == "" {
		folder = filepath.Join(work, "crds")
		if err := unpackApart(ctx, folder); err != nil {
			return err
		}
	}
	workspace, err := filepath.Abs("../go.work")
	if err != nil {
		return err
	}
	ours, theirs := filepath.Join(work, "espalier"), filepath.Join(work, "upstream-check")
	for _, build := range [][]string{
		{"env", "GOWORK=" + workspace, "go", "build", "-C", "..", "-trimpath", "-ldflags=-s -w", "-o", ours, "./cmd/espalier"},
		{"go", "build", "-trimpath", "-ldflags=-s -w", "-o", theirs, "./cmd/upstream-check"},
	} {
		cmd := exec.CommandContext(ctx, build[0], build[1:]...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w\n%s", build, err, out)
		}
	}
	sides := []*side{
		{name: "upstream", argv: []string{theirs, folder}},
		{name: "espalier check --no-lint", argv: []string{ours, "check", "--config", "none", "--severity", "error", "--no-lint", folder}},
		{name: "espalier check", argv: []string{ours, "check", "--config", "none", folder}},
	}
	for i := range *rounds {
		for _, s := range sides {
			fmt.Fprintf(os.Stderr, "\rround %d of %d: %-30s", i+1, *rounds, s.name)
			if err := s.run(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Fprint(os.Stderr, "\r\x1b[K")
	show(sides, *rounds)
	return figures.Save()
}

// unpackApart unpacks in another process: the peak that the kernel counts for a
// program begins with that of the process that starts it.
func unpackApart(ctx context.Context, folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-unpack", folder)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}

var counted = regexp.MustCompile(`in (\d+) (?:definitions?|CRDs?)\s*$`)

// run runs the program once and keeps the best of each figure.
func (s *side) run(ctx context.Context) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, s.argv[0], s.argv[1:]...)
	cmd.Stdout = &out
	began := time.Now()
	err := cmd.Run()
	m := measure{wall: time.Since(began)}
	if state := cmd.ProcessState; state == nil || state.ExitCode() < 0 || state.ExitCode() > 1 {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	n := counted.FindSubmatch(out.Bytes())
	if n == nil {
		return fmt.Errorf("%s: no count in its last line", s.name)
	}
	if m.crds, err = strconv.Atoi(string(n[1])); err != nil {
		return err
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	m.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	m.peak = usage.Maxrss * 1024
	if s.best.wall == 0 {
		s.best = m
		return nil
	}
	if m.crds != s.best.crds {
		return fmt.Errorf("%s counted %d CRDs, then %d", s.name, s.best.crds, m.crds)
	}
	s.best.wall, s.best.cpu, s.best.peak = min(s.best.wall, m.wall), min(s.best.cpu, m.cpu), min(s.best.peak, m.peak)
	return nil
}

func show(sides []*side, rounds int) {
	fmt.Printf("%d runs each, alternating, on %d cores; best of each figure. Memory is the peak resident size of the process.\n\n", rounds, runtime.NumCPU())
	fmt.Printf("%-26s %12s %12s %12s %12s\n", "", "CRDs", "time", "CPU time", "memory")
	base := sides[0].best
	for _, s := range sides {
		fmt.Printf("%-26s %12d %12s %12s %9.1f MB\n", s.name, s.best.crds,
			s.best.wall.Round(10*time.Millisecond), s.best.cpu.Round(10*time.Millisecond), float64(s.best.peak)/1e6)
		figures.Set(s.name+".time", "%.1f s", s.best.wall.Seconds())
		figures.Set(s.name+".cpu", "%.1f s", s.best.cpu.Seconds())
		figures.Set(s.name+".memory", "%.0f MB", float64(s.best.peak)/1e6)
	}
	fmt.Println()
	for _, s := range sides[1:] {
		figures.Set(s.name+".speed", "%.1f", float64(base.wall)/float64(s.best.wall))
		fmt.Printf("%-26s %.2f times as fast (%.2f by CPU time), %.2f of the memory\n", s.name,
			float64(base.wall)/float64(s.best.wall), float64(base.cpu)/float64(s.best.cpu), float64(s.best.peak)/float64(base.peak))
	}
}
