package main

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
	"sync"
	"syscall"
	"time"
)

// fate is what became of a mutant.
type fate int

const (
	survived fate = iota
	byOwn         // noticed by the tests of its package
	byNear        // noticed by tests of packages that use it
)

// near are the packages whose tests run if those of the package itself notice nothing.
func near(name string) []string {
	switch {
	case strings.HasPrefix(name, "internal/"):
		return []string{".", "./crd", "./crd/cel"}
	case strings.HasPrefix(name, "crd"):
		return []string{"./cmd/internal/cli"}
	default:
		return []string{"./server"}
	}
}

// memory is the most that a test may map: a mutant may allocate without end. etcd maps
// 10 GB that it does not use.
const memory = "--as=21474836480"

// runner runs tests with mutants.
type runner struct {
	root    string
	dir     string // of changed files
	limit   []string
	mu      sync.Mutex
	allowed map[string]time.Duration // how long tests of a package may take
}

func newRunner(root string) (*runner, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	r := &runner{root: root, dir: dir, allowed: map[string]time.Duration{}}
	if path, err := exec.LookPath("prlimit"); err == nil {
		r.limit = []string{"-exec", path + " " + memory}
	}
	return r, nil
}

func (r *runner) close() { _ = os.RemoveAll(r.dir) }

// measure runs the tests of a package as it is. They must pass.
func (r *runner) measure(ctx context.Context, pattern string) error {
	r.mu.Lock()
	_, ok := r.allowed[pattern]
	r.mu.Unlock()
	if ok {
		return nil
	}
	began := time.Now()
	passed, output, err := r.test(ctx, pattern, "", 30*time.Minute)
	if err != nil {
		return err
	}
	if !passed {
		return fmt.Errorf("the tests of %s fail without a mutant:\n%s", pattern, output)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allowed[pattern] = 3*time.Since(began) + 30*time.Second
	return nil
}

// try runs the tests that are nearest to a mutant.
func (r *runner) try(ctx context.Context, m *mutant, content []byte) (fate, error) {
	file, err := os.CreateTemp(r.dir, "*.go")
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err := errors.Join(err, file.Close()); err != nil {
		return 0, err
	}
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {m.File: file.Name()}})
	if err != nil {
		return 0, err
	}
	list := strings.TrimSuffix(file.Name(), ".go") + ".json"
	defer os.Remove(list)
	if err := os.WriteFile(list, overlay, 0o600); err != nil {
		return 0, err
	}
	for i, pattern := range append([]string{"./" + m.Package}, near(m.Package)...) {
		if err := r.measure(ctx, pattern); err != nil {
			return 0, err
		}
		r.mu.Lock()
		allowed := r.allowed[pattern]
		r.mu.Unlock()
		passed, _, err := r.test(ctx, pattern, list, allowed)
		switch {
		case err != nil:
			return 0, err
		case !passed && i == 0:
			return byOwn, nil
		case !passed:
			return byNear, nil
		}
	}
	return survived, nil
}

// test runs the tests of a package. What takes too long has not passed.
func (r *runner) test(ctx context.Context, pattern, overlay string, allowed time.Duration) (passed bool, output []byte, err error) {
	args := []string{"test", "-count=1", "-vet=off", "-failfast", "-timeout", allowed.String()}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	args = append(append(args, r.limit...), pattern)
	limited, cancel := context.WithTimeout(ctx, allowed+2*time.Minute) // compiling takes time, too
	defer cancel()
	cmd := exec.CommandContext(limited, "go", args...)
	cmd.Dir, cmd.Env = r.root, environment(r.root)
	// Servers that a test has started go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if failed := (&exec.ExitError{}); errors.As(err, &failed) && ctx.Err() == nil {
		return false, out.Bytes(), nil
	}
	return err == nil, out.Bytes(), errors.Join(err, ctx.Err())
}

// areaOf is what results are summed up by.
func areaOf(name string) string {
	if strings.HasPrefix(name, "internal/") || name == "." {
		return "engine"
	}
	if rest, ok := strings.CutPrefix(name, "server/"); ok {
		first, _, _ := strings.Cut(rest, "/")
		return filepath.Join("server", first)
	}
	return name
}
