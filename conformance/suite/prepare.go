package suite

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// Module is where the tests come from; the version is the one that go.mod requires.
const Module = "k8s.io/apiextensions-apiserver"

var packages = []string{"test/integration", "test/integration/conversion"}

//go:embed server.go.txt
var fixture []byte

// A binary holds the tests of one package.
type binary struct {
	path, dir string // dir: the package's, in the copy
	functions []string
}

// prepare copies the module into a folder of the user's cache and builds its tests, with our fixture or with upstream's own.
func prepare(ctx context.Context, own fixtureChoice, say io.Writer) ([]binary, error) {
	root, err := launch.Root()
	if err != nil {
		return nil, err
	}
	conformance := filepath.Join(root, "conformance")
	copied, err := CopyModule(ctx, Module, string(own), say)
	if err != nil {
		return nil, err
	}
	work := filepath.Dir(copied)
	if own == ourFixture {
		if err := os.WriteFile(filepath.Join(copied, "test/integration/fixtures/server.go"), fixture, 0o644); err != nil {
			return nil, err
		}
	}
	modfile, err := Replaced(Module, copied)
	if err != nil {
		return nil, err
	}
	var binaries []binary
	for _, p := range packages {
		b := binary{path: filepath.Join(work, filepath.Base(p)+".test"), dir: filepath.Join(copied, p)}
		fmt.Fprintf(say, "building the tests of %s\n", p)
		if _, err := command(ctx, conformance, "go", "test", "-c", "-mod=mod", "-modfile="+modfile, "-o", b.path, Module+"/"+p); err != nil {
			return nil, err
		}
		list, err := command(ctx, b.dir, b.path, "-test.list", "^Test")
		if err != nil {
			return nil, err
		}
		for name := range strings.Lines(string(list)) {
			if name = strings.TrimSpace(name); strings.HasPrefix(name, "Test") {
				b.functions = append(b.functions, name)
			}
		}
		binaries = append(binaries, b)
	}
	return binaries, nil
}

// Replaced writes a go.mod like this module's, in which another module is a copy, and returns its path, for -modfile: tests of the copy are
// built with the versions that this module pins, and may import its packages.
func Replaced(module, copied string) (string, error) {
	root, err := launch.Root()
	if err != nil {
		return "", err
	}
	mod, err := os.ReadFile(filepath.Join(root, "conformance", "go.mod"))
	if err != nil {
		return "", err
	}
	sum, err := os.ReadFile(filepath.Join(root, "conformance", "go.sum"))
	if err != nil {
		return "", err
	}
	mod = append(mod, fmt.Sprintf("\nreplace %s => %s\n", module, copied)...)
	work := filepath.Dir(copied)
	modfile := filepath.Join(work, "suite.mod")
	if err := os.WriteFile(modfile, mod, 0o644); err != nil {
		return "", err
	}
	return modfile, os.WriteFile(filepath.Join(work, "suite.sum"), sum, 0o644)
}

// CopyModule copies a module of conformance/go.mod into a folder of the user's cache, where its tests can be built and run, and returns the
// folder. Each use, which may change the copy, has one of its own.
func CopyModule(ctx context.Context, module, use string, say io.Writer) (string, error) {
	root, err := launch.Root()
	if err != nil {
		return "", err
	}
	// `go list -m` names no folder of a module that was not downloaded.
	out, err := command(ctx, filepath.Join(root, "conformance"), "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	var source struct{ Dir, Version string }
	if err := json.Unmarshal(out, &source); err != nil {
		return "", fmt.Errorf("go mod download -json %s: %w", module, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	copied := filepath.Join(cache, "espalier-conformance", path.Base(module), source.Version+"-"+use, "module")
	fmt.Fprintf(say, "copying %s@%s to %s\n", module, source.Version, copied)
	return copied, copyTree(source.Dir, copied)
}

// copyTree copies the files of a module, writable, and leaves those alone that are equal already, so that nothing is built twice.
func copyTree(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if old, err := os.ReadFile(target); err == nil && bytes.Equal(old, data) {
			return nil
		}
		return os.WriteFile(target, data, 0o644)
	})
}

func command(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off")
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s%s", strings.Join(argv, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes(), nil
}
