//go:build !unix

package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
)

// replaceProcess runs another program as a child, since this system cannot replace a process, and ends with its
// exit code.
func replaceProcess(ctx context.Context, path string, argv []string) error {
	cmd := exec.CommandContext(ctx, path)
	cmd.Args = argv
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return err
}
