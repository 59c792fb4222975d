package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "modules:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("modules", flag.ContinueOnError)
	root := flags.String("root", "..", "the repository")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r, err := load(*root)
	if err != nil {
		return err
	}
	switch command := flags.Arg(0); {
	case command == "tidy" && flags.NArg() == 1:
		return r.tidy(ctx, false, out)
	case command == "tidy" && flags.Arg(1) == "-check":
		return r.tidy(ctx, true, out)
	case command == "version" && flags.NArg() == 2:
		return r.setVersion(flags.Arg(1))
	case command == "proxy" && flags.NArg() == 2:
		return r.proxy(ctx, flags.Arg(1))
	}
	return errors.New("usage: modules [-root DIR] tidy [-check] | version VERSION | proxy DIR")
}

// repository is what go.work joins.
type repository struct {
	root    string
	modules []*member
	version string // that the modules require of each other
}

// member is a module of the repository.
type member struct {
	dir  string // relative to the root, with slashes
	file *modfile.File
}

func (m *member) path() string { return m.file.Module.Mod.Path }

// load reads go.work and the modules that it uses.
func load(root string) (*repository, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	work, err := readWork(root)
	if err != nil {
		return nil, err
	}
	r := &repository{root: root}
	for _, use := range work.Use {
		name := filepath.Join(root, use.Path, "go.mod")
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		file, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		if len(file.Replace) > 0 {
			return nil, fmt.Errorf("%s has a replace line: go install refuses modules that have one", name)
		}
		r.modules = append(r.modules, &member{dir: filepath.ToSlash(filepath.Clean(use.Path)), file: file})
	}
	return r, r.agree(work)
}

func readWork(root string) (*modfile.WorkFile, error) {
	name := filepath.Join(root, "go.work")
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return modfile.ParseWork(name, text, nil)
}

// agree finds the version that all modules require of each other.
func (r *repository) agree(work *modfile.WorkFile) error {
	note := func(where string, v module.Version) error {
		if r.member(v.Path) == nil {
			return nil
		}
		if r.version == "" {
			r.version = v.Version
		}
		if v.Version != r.version {
			return fmt.Errorf("%s has %s, another one %s: run `go run ./modules version %[3]s` in tools", where, v, r.version)
		}
		return nil
	}
	for _, m := range r.modules {
		for _, require := range m.file.Require {
			if err := note(m.dir+"/go.mod", require.Mod); err != nil {
				return err
			}
		}
	}
	for _, replace := range work.Replace {
		if err := note("go.work", replace.Old); err != nil {
			return err
		}
	}
	return nil
}

// member returns the module of a path, or nil.
func (r *repository) member(path string) *member {
	for _, m := range r.modules {
		if m.path() == path {
			return m
		}
	}
	return nil
}

// tidy runs `go mod tidy` for every module, with replace lines for the others that are gone when it is done.
func (r *repository) tidy(ctx context.Context, check bool, out io.Writer) error {
	for _, m := range r.modules {
		changed, err := r.tidyModule(ctx, m, check)
		if err != nil {
			return fmt.Errorf("%s: %w", m.dir, err)
		}
		switch {
		case changed && check:
			return fmt.Errorf("%s/go.mod is not tidy: run `make tidy`", m.dir)
		case changed:
			fmt.Fprintf(out, "%s/go.mod changed\n", m.dir)
		}
	}
	return nil
}

func (r *repository) tidyModule(ctx context.Context, m *member, check bool) (changed bool, err error) {
	dir := filepath.Join(r.root, filepath.FromSlash(m.dir))
	temporary, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temporary)
	before, err := readPair(dir)
	if err != nil {
		return false, err
	}
	with, err := r.withReplaces(m, before.mod)
	if err != nil {
		return false, err
	}
	if err := (pair{with, before.sum}).write(temporary); err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "go", "mod", "tidy", "-modfile="+filepath.Join(temporary, "go.mod"))
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return false, fmt.Errorf("go mod tidy: %w\n%s", err, text)
	}
	after, err := readPair(temporary)
	if err != nil {
		return false, err
	}
	if after.mod, err = withoutReplaces(after.mod); err != nil {
		return false, err
	}
	if bytes.Equal(after.mod, before.mod) && bytes.Equal(after.sum, before.sum) {
		return false, nil
	}
	if check {
		return true, nil
	}
	return true, after.write(dir)
}

// pair is a go.mod and its go.sum.
type pair struct{ mod, sum []byte }

func readPair(dir string) (p pair, err error) {
	if p.mod, err = os.ReadFile(filepath.Join(dir, "go.mod")); err != nil {
		return p, err
	}
	p.sum, err = os.ReadFile(filepath.Join(dir, "go.sum"))
	return p, err
}

func (p pair) write(dir string) error {
	return errors.Join(os.WriteFile(filepath.Join(dir, "go.mod"), p.mod, 0o644), os.WriteFile(filepath.Join(dir, "go.sum"), p.sum, 0o644))
}

func (r *repository) withReplaces(m *member, mod []byte) ([]byte, error) {
	file, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return nil, err
	}
	for _, other := range r.modules {
		if other == m {
			continue
		}
		if err := file.AddReplace(other.path(), "", filepath.Join(r.root, filepath.FromSlash(other.dir)), ""); err != nil {
			return nil, err
		}
	}
	return file.Format()
}

func withoutReplaces(mod []byte) ([]byte, error) {
	file, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return nil, err
	}
	for _, replace := range file.Replace {
		if err := file.DropReplace(replace.Old.Path, replace.Old.Version); err != nil {
			return nil, err
		}
	}
	file.Cleanup()
	return file.Format()
}

// setVersion makes the modules require another version of each other.
func (r *repository) setVersion(version string) error {
	if !semver.IsValid(version) || semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version such as v1.2.3", version)
	}
	for _, m := range r.modules {
		for _, require := range m.file.Require {
			if r.member(require.Mod.Path) == nil {
				continue
			}
			if err := m.file.AddRequire(require.Mod.Path, version); err != nil {
				return err
			}
		}
		text, err := m.file.Format()
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(r.root, filepath.FromSlash(m.dir), "go.mod"), text, 0o644); err != nil {
			return err
		}
	}
	work, err := readWork(r.root)
	if err != nil {
		return err
	}
	for _, replace := range slices.Clone(work.Replace) {
		old, to := replace.Old, replace.New.Path // dropping clears them
		if err := errors.Join(work.DropReplace(old.Path, old.Version), work.AddReplace(old.Path, version, to, "")); err != nil {
			return err
		}
	}
	work.Cleanup()
	return os.WriteFile(filepath.Join(r.root, "go.work"), modfile.Format(work.Syntax), 0o644)
}
