package launch

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

// Main is the main function of a command whose flags are defined. A signal ends the context of run, and its folder is removed when it
// returns. The command exits with 1 if run returns an error.
func Main(name string, run func(ctx context.Context, dir string) error) {
	flag.Parse()
	if err := inFolder(name, run); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		os.Exit(1)
	}
}

func inFolder(name string, run func(ctx context.Context, dir string) error) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	return run(ctx, dir)
}
