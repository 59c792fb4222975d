package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
)

var (
	crds    = flag.Int("crds", 100, "CRDs of the measurement of time and memory")
	objects = flag.Int("objects", 1000, "objects of the measurement")
	rounds  = flag.Int("rounds", 3, "runs of each tool, in turns; the fastest and the smallest count")
	seed    = flag.Uint64("seed", 1, "seed of the objects: the same seed makes the same objects")
	prepare = flag.String("prepare", "", "only write the CRDs and objects into this folder")
	figures = results.New("compare")
)

func main() { launch.Main("compare", run) }

func run(ctx context.Context, dir string) error {
	if *prepare != "" {
		return writeInputs(ctx, *prepare)
	}
	built := os.Getenv("ESPALIER_COMPARE")
	if built == "" {
		built = filepath.Join(dir, "programs")
	}
	if err := os.MkdirAll(built, 0o755); err != nil {
		return err
	}
	tools, err := buildTools(ctx, built, dir)
	if err != nil {
		return err
	}
	inputs := filepath.Join(dir, "inputs")
	if err := prepareApart(ctx, inputs); err != nil {
		return err
	}
	if err := measure(ctx, tools, inputs); err != nil {
		return err
	}
	if err := notices(ctx, tools, filepath.Join(dir, "cases")); err != nil {
		return err
	}
	return figures.Save()
}

// prepareApart writes the inputs in another process: the peak that the kernel counts for a tool begins with the memory of the process that
// starts it.
func prepareApart(ctx context.Context, folder string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-prepare", folder, "-crds", fmt.Sprint(*crds), "-objects", fmt.Sprint(*objects), "-seed", fmt.Sprint(*seed))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
