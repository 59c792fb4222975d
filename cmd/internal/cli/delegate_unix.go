//go:build unix

package cli

import (
	"context"
	"fmt"
	"os"
	"syscall"
)

// replaceProcess makes this process another program: signals and the exit code are then that program's own.
func replaceProcess(_ context.Context, path string, argv []string) error {
	if err := syscall.Exec(path, argv, os.Environ()); err != nil {
		return fmt.Errorf("run %s: %w", path, err)
	}
	return nil
}
