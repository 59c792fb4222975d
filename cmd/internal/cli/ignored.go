package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/espalier-dev/espalier/crd/manifest"
)

// ignored returns which files and folders below paths git ignores. git itself says so: its
// rules come from several files, and depend on what is in its index. Without git, or outside
// a repository, nothing is ignored.
func ignored(ctx context.Context, paths []string) func(path string) bool {
	all := map[string]bool{}
	for _, p := range paths {
		if p == manifest.Stdin {
			continue
		}
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			addIgnored(ctx, p, all)
		} else if err != nil && strings.ContainsAny(p, "*?[{") {
			base, _ := doublestar.SplitPattern(filepath.ToSlash(p))
			addIgnored(ctx, filepath.FromSlash(base), all)
		}
	}
	return func(path string) bool {
		if len(all) == 0 {
			return false
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return false
		}
		for !all[abs] {
			parent := filepath.Dir(abs)
			if parent == abs {
				return false
			}
			abs = parent
		}
		return true
	}
}

// addIgnored adds what git ignores below a folder, as absolute paths.
func addIgnored(ctx context.Context, dir string, into map[string]bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return
	}
	// A repository may come from anywhere: git must run no program of its configuration.
	cmd := exec.CommandContext(ctx, "git", "-c", "core.fsmonitor=false", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	cmd.Dir = abs
	output, err := cmd.Output()
	if err != nil {
		return
	}
	for name := range bytes.SplitSeq(output, []byte{0}) {
		switch string(name) {
		case "":
		case "./":
			return // the folder itself, which the user has named
		default:
			into[filepath.Join(abs, filepath.FromSlash(string(name)))] = true
		}
	}
}
