package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
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
		return []string{".", "crd", "crd/cel"}
	case strings.HasPrefix(name, "crd"):
		return []string{"cmd/internal/cli"}
	default:
		return []string{"server"}
	}
}

// memory is the most that a test may map: a mutant may allocate without end. etcd maps
// 10 GB that it does not use.
const memory = "--as=21474836480"

// runner runs tests with mutants.
type runner struct {
	root, dir string
	source    *source
	shared    *program // with all mutants that can be chosen by number
	all       bool     // tests go on after a failure
	own       bool     // only tests of the package itself
	mu        sync.Mutex
	failed    map[string]map[string]bool // tests that failed for a mutant, by package
}

// newRunner prepares a program with the mutants.
func newRunner(root string, s *source, chosen []*mutant) (*runner, error) {
	dir, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return nil, err
	}
	r := &runner{root: root, dir: dir, source: s, failed: map[string]map[string]bool{}}
	files, err := s.variants(chosen)
	if err == nil {
		r.shared, err = newProgram(root, dir, files)
	}
	if err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *runner) close() { _ = os.RemoveAll(r.dir) }

// try runs the tests that are nearest to a mutant.
func (r *runner) try(ctx context.Context, m *mutant) (fate, error) {
	p := r.shared
	if m.number == 0 {
		var err error
		if p, err = newProgram(r.root, r.dir, map[string][]byte{m.File: r.source.changed(m)}); err != nil {
			return 0, err
		}
		defer p.close()
	}
	names := []string{m.Package}
	if !r.own {
		names = append(names, near(m.Package)...)
	}
	for i, name := range names {
		passed, err := r.test(ctx, p, name, m.number, i == 0)
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

// test runs the tests of a package. Without a mutant they have passed before.
func (r *runner) test(ctx context.Context, p *program, name string, number int, own bool) (bool, error) {
	usual, err := r.shared.suite(ctx, name)
	if err != nil {
		return false, err
	}
	if err := usual.measure(ctx, name); err != nil {
		return false, err
	}
	s := usual
	if p != r.shared {
		if s, err = p.suite(ctx, name); err != nil {
			return false, err
		}
		s.skipped, s.slow, s.allowed = usual.skipped, usual.slow, usual.allowed
	}
	var passed bool
	var output []byte
	if r.all && own {
		passed, output, err = s.run(ctx, number, s.allowed)
	} else {
		passed, output, err = s.first(ctx, number, own)
	}
	if !passed && own {
		r.note(name, output)
	}
	return passed, err
}

// note keeps the names of tests that failed.
func (r *runner) note(name string, output []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed[name] == nil {
		r.failed[name] = map[string]bool{}
	}
	for _, one := range failure.FindAllSubmatch(output, -1) {
		r.failed[name][string(one[1])] = true
	}
}

// idle are the tests of packages with mutants that failed for none of them.
func (r *runner) idle(ctx context.Context) (list []string, err error) {
	for name := range r.failed {
		s, err := r.shared.suite(ctx, name)
		if err != nil {
			return nil, err
		}
		tests, err := s.tests(ctx)
		if err != nil {
			return nil, err
		}
		for _, test := range tests {
			if !r.failed[name][test] {
				list = append(list, name+" "+test)
			}
		}
	}
	slices.Sort(list)
	return list, nil
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
