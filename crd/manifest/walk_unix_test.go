//go:build unix

package manifest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// Pipes and locks of editors are left out, and what cannot be read is reported by Open.
func TestUnreadable(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in("a.yaml"), []byte("a: 1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(in("pipe.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{".#a.yaml": "user@host.123", "gone.yaml": "nothing", "folder.yaml": ".", "z.yaml": "a.yaml"} {
		if err := os.Symlink(target, in(name)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{in("a.yaml"), in("gone.yaml"), in("z.yaml")}
	for _, named := range []string{dir, in("*.yaml")} {
		files, err := Expand([]string{named}, nil)
		if err != nil || !slices.Equal(files, want) {
			t.Errorf("%s: %v %v", named, files, err)
		}
	}
	if _, err := Open(in("gone.yaml"), nil); err == nil || !strings.Contains(err.Error(), "gone.yaml") {
		t.Error(err)
	}
}
