package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// proxy writes the modules as a proxy serves them, so that go get and go install can be tried before a release: with
// file://DIR before the other entries of GOPROXY, and GONOSUMDB=github.com/espalier-dev/*.
func (r *repository) proxy(ctx context.Context, dir string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = r.root
	listed, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("git ls-files: %w", err)
	}
	names := strings.Split(strings.TrimSuffix(string(listed), "\x00"), "\x00")
	for _, m := range r.modules {
		if err := r.publish(m, dir, names); err != nil {
			return fmt.Errorf("%s: %w", m.path(), err)
		}
	}
	return nil
}

// publish writes what a proxy has of one module.
func (r *repository) publish(m *member, dir string, names []string) error {
	folder := filepath.Join(dir, filepath.FromSlash(m.path()), "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	mod, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(m.dir), "go.mod"))
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"list":              r.version + "\n",
		r.version + ".mod":  string(mod),
		r.version + ".info": fmt.Sprintf("{\"Version\":%q}\n", r.version),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(filepath.Join(folder, r.version+".zip"))
	if err != nil {
		return err
	}
	if err := zip.Create(archive, module.Version{Path: m.path(), Version: r.version}, r.files(m, names)); err != nil {
		archive.Close()
		return err
	}
	return archive.Close()
}

// files are those of the repository that belong to a module: in its folder, and not in that of a module below it.
func (r *repository) files(m *member, names []string) []zip.File {
	nested := map[string]bool{}
	for _, name := range names {
		if path.Base(name) == "go.mod" && path.Dir(name) != m.dir {
			nested[path.Dir(name)] = true
		}
	}
	var files []zip.File
	for _, name := range names {
		relative := name
		if m.dir != "." {
			var inside bool
			if relative, inside = strings.CutPrefix(name, m.dir+"/"); !inside {
				continue
			}
		}
		if below(name, m.dir, nested) {
			continue
		}
		if info, err := os.Lstat(filepath.Join(r.root, filepath.FromSlash(name))); err == nil && info.Mode().IsRegular() {
			files = append(files, file{name: relative, path: filepath.Join(r.root, filepath.FromSlash(name))})
		}
	}
	return files
}

// below reports whether a file is in one of the folders below a folder.
func below(name, dir string, folders map[string]bool) bool {
	for parent := path.Dir(name); parent != dir && parent != "."; parent = path.Dir(parent) {
		if folders[parent] {
			return true
		}
	}
	return false
}

// file is a file of a module, as x/mod/zip asks for it.
type file struct{ name, path string }

func (f file) Path() string                 { return f.name }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(f.path) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(f.path) }
