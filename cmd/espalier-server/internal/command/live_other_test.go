//go:build !unix

package command

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// liveCommands are those of scripts that stop on this system.
func liveCommands(*testing.T) map[string]func(*testscript.TestScript, bool, []string) { return nil }
