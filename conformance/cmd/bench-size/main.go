package main

import (
	"context"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
)

var (
	figures = results.New("bench-size")
	rounds  = flag.Int("rounds", 5, "runs of each command; the smallest counts")
)

const (
	testdata = "conformance/scenarios/testdata/"
	pod      = "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: a, image: b}]}\n"
)

func main() { launch.Main("bench-size", run) }

func run(ctx context.Context, dir string) error {
	root, err := launch.Root()
	if err != nil {
		return err
	}
	for _, program := range []string{"espalier", "espalier-server"} {
		path := filepath.Join(dir, program)
		cmd := exec.CommandContext(ctx, "go", "build", "-C", root, "-trimpath", "-ldflags=-s -w", "-o", path, "./cmd/"+program)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+filepath.Join(root, "go.work"))
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("building %s failed: %w\n%s", program, err, out)
		}
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		show(program+".size", info.Size())
	}
	file := filepath.Join(dir, "pod.yaml")
	if err := os.WriteFile(file, []byte(pod), 0o600); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		args []string
	}{
		{"version", []string{"--version"}},
		{"validate", []string{"validate", "--crd", testdata + "boats.yaml", testdata + "albatros.yaml"}},
		{"validate built-in", []string{"validate", file}},
	} {
		least := int64(math.MaxInt64)
		for range *rounds {
			cmd := exec.CommandContext(ctx, filepath.Join(dir, "espalier"), c.args...)
			cmd.Dir = root
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%v: %w\n%s", c.args, err, out)
			}
			least = min(least, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss*1024)
		}
		show(c.name+".memory", least)
	}
	return figures.Save()
}

// show prints a figure and keeps it.
func show(name string, bytes int64) {
	figures.Set(name, "%.0f MB", float64(bytes)/1e6)
	fmt.Printf("%-26s %6.1f MB\n", name, float64(bytes)/1e6)
}
