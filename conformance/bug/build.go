package bug

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// library is the module that bugs may be in besides ours. The compiler takes other
// contents only for files outside the module cache, so it is copied.
const library = "k8s.io/apiserver"

// A Builder compiles programs with a bug.
type Builder struct {
	root string // our module
	work string // what is kept between builds
	copy string // of the library
	path string // of our module
}

// NewBuilder prepares to compile programs of the repository at root. What it needs is
// kept in the folder work, so that the next bug takes seconds and not minutes.
func NewBuilder(ctx context.Context, root, work string) (*Builder, error) {
	b := &Builder{}
	var err error
	if b.root, err = filepath.Abs(root); err != nil {
		return nil, err
	}
	if b.work, err = filepath.Abs(work); err != nil {
		return nil, err
	}
	if b.path, err = b.run(ctx, b.root, "list", "-f", "{{.Module.Path}}", "."); err != nil {
		return nil, fmt.Errorf("finding the module at %s failed: %w", b.root, err)
	}
	from, err := b.run(ctx, b.root, "list", "-m", "-f", "{{.Dir}}", library)
	if err != nil {
		return nil, fmt.Errorf("finding %s failed: %w", library, err)
	}
	// The name has the version: another version is another copy.
	b.copy = filepath.Join(b.work, filepath.Base(from))
	if err := copyModule(from, b.copy); err != nil {
		return nil, fmt.Errorf("copying %s failed: %w", library, err)
	}
	return b, b.writeWorkspace()
}

// writeWorkspace writes a go.work like the repository's, in which the library is the copy.
func (b *Builder) writeWorkspace() error {
	text, err := os.ReadFile(filepath.Join(b.root, "go.work"))
	if err != nil {
		return err
	}
	content := strings.NewReplacer("\t.\n", "\t"+b.root+"\n", "\t./", "\t"+b.root+"/", "=> ./", "=> "+b.root+"/").Replace(string(text))
	content += fmt.Sprintf("\nreplace %s => %s\n", library, b.copy)
	if err := os.WriteFile(b.workspace(), []byte(content), 0o600); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(b.root, "go.work.sum"))
	if err != nil {
		return err
	}
	return os.WriteFile(b.workspace()+".sum", sums, 0o644)
}

// workspace is the path of that go.work.
func (b *Builder) workspace() string { return filepath.Join(b.work, "go.work") }

// copyModule copies a module, unless it was copied before. The copy gets its name when all is there.
func copyModule(from, to string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	part := to + ".part"
	if err := os.RemoveAll(part); err != nil {
		return err
	}
	if err := os.CopyFS(part, os.DirFS(from)); err != nil {
		return err
	}
	return os.Rename(part, to)
}

// run runs the go command in a folder and returns what it prints.
func (b *Builder) run(ctx context.Context, dir string, arguments ...string) (string, error) {
	command := exec.CommandContext(ctx, "go", arguments...)
	command.Dir = dir
	workspace := b.workspace()
	if _, err := os.Stat(workspace); err != nil {
		workspace = filepath.Join(b.root, "go.work") // there is no copy of the library yet
	}
	if dir == b.conformance() {
		workspace = "off"
	}
	command.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK="+workspace, "GOFLAGS=")
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("go %s: %w: %s", arguments[0], err, bytes.TrimSpace(failed.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}

// Server compiles the server with a bug to a file.
func (b *Builder) Server(ctx context.Context, bug *Bug, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := b.compile(ctx, b.root, bug, "-trimpath", "-ldflags=-s -w", "-o", out, "./cmd/espalier-server"); err != nil {
		return fmt.Errorf("building the server with bug %s failed: %w", bug.Name, err)
	}
	return nil
}

// Comparison compiles the comparison with upstream, whose engine has a bug, to a file.
func (b *Builder) Comparison(ctx context.Context, bug *Bug, out string) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := b.compile(ctx, b.conformance(), bug, "-o", out, "./cmd/conform"); err != nil {
		return fmt.Errorf("building the comparison with bug %s failed: %w", bug.Name, err)
	}
	return nil
}

// conformance is the folder of the module with the comparison, which is no part of the workspace.
func (b *Builder) conformance() string { return filepath.Join(b.root, "conformance") }

// compile builds packages with a bug.
func (b *Builder) compile(ctx context.Context, dir string, bug *Bug, arguments ...string) error {
	overlay, err := b.overlay(bug)
	if err != nil {
		return err
	}
	_, err = b.run(ctx, dir, append([]string{"build", "-overlay", overlay}, arguments...)...)
	return err
}

// overlay writes the changed files, and what tells the compiler of them.
func (b *Builder) overlay(bug *Bug) (string, error) {
	files, err := b.apply(bug)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(b.work, "changed", bug.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for path, content := range files {
		changed := filepath.Join(folder, fmt.Sprintf("%d-%s", len(replace), filepath.Base(path)))
		if err := os.WriteFile(changed, content, 0o600); err != nil {
			return "", err
		}
		replace[path] = changed
	}
	encoded, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(folder, "overlay.json")
	return path, os.WriteFile(path, encoded, 0o600)
}

// apply returns the contents of the files that the bug changes, by their paths.
func (b *Builder) apply(bug *Bug) (map[string][]byte, error) {
	files := map[string][]byte{}
	for _, e := range bug.Edits {
		folder, err := b.folder(e.Package)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, e.File)
		content, ok := files[path]
		if !ok {
			if content, err = os.ReadFile(path); err != nil {
				return nil, err
			}
		}
		if n := bytes.Count(content, []byte(e.Old)); n != 1 {
			return nil, fmt.Errorf("%s/%s has this text %d times, not once: %s", e.Package, e.File, n, e.Old)
		}
		files[path] = bytes.Replace(content, []byte(e.Old), []byte(e.New), 1)
	}
	return files, nil
}

// folder returns where a package is: in the copy of the library, or in our module.
func (b *Builder) folder(pkg string) (string, error) {
	if inside, ok := strings.CutPrefix(pkg, library); ok {
		return filepath.Join(b.copy, filepath.FromSlash(inside)), nil
	}
	inside, ok := strings.CutPrefix(pkg, b.path)
	if !ok {
		return "", fmt.Errorf("package %s is neither in %s nor in %s", pkg, b.path, library)
	}
	return filepath.Join(b.root, filepath.FromSlash(inside)), nil
}
