package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A program is the repository with changed files. Tests are compiled from it.
type program struct {
	root, dir string
	overlay   string
	mu        sync.Mutex
	suites    map[string]*suite
}

// newProgram keeps the changed files in a new folder below dir.
func newProgram(root, dir string, files map[string][]byte) (*program, error) {
	dir, err := os.MkdirTemp(dir, "program-")
	if err != nil {
		return nil, err
	}
	replace := map[string]string{}
	for i, path := range slices.Sorted(maps.Keys(files)) {
		replace[path] = filepath.Join(dir, strconv.Itoa(i)+".go")
		if err := os.WriteFile(replace[path], files[path], 0o600); err != nil {
			return nil, err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return nil, err
	}
	p := &program{root: root, dir: dir, overlay: filepath.Join(dir, "overlay.json"), suites: map[string]*suite{}}
	return p, os.WriteFile(p.overlay, list, 0o600)
}

func (p *program) close() { _ = os.RemoveAll(p.dir) }

// A suite is the compiled tests of a package.
type suite struct {
	mu        sync.Mutex // held while it is compiled and measured
	binary    string
	dir       string
	short     bool
	skipped   []string         // tests that fail without a mutant
	slow      []string         // tests that take long; they run after the others
	allowed   time.Duration    // 0 until it is measured
	reachFile string           // where tests write the mutants that they reach
	reached   map[int][]string // tests that call the function of a mutant, by its number; nil if that is not known
}

// suite compiles the tests of a package, once.
func (p *program) suite(ctx context.Context, name string) (*suite, error) {
	p.mu.Lock()
	s := p.suites[name]
	if s == nil {
		s = &suite{dir: filepath.Join(p.root, name), short: name == "server"} // whose tests take minutes
		p.suites[name] = s
	}
	p.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.binary != "" {
		return s, nil
	}
	binary := filepath.Join(p.dir, strings.ReplaceAll(strings.Trim(name, "./"), "/", "-")+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", p.overlay, "-o", binary, "./"+name)
	cmd.Dir, cmd.Env = p.root, environment(p.root)
	if output, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile the tests of %s: %w\n%s", name, err, output)
	}
	s.binary = binary
	return s, nil
}

// failure is how a test is named that fails.
var failure = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)

// measure runs the tests without a mutant. Those that fail for what the program is, with more and other functions than
// usual, are left out from then on.
func (s *suite) measure(ctx context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.allowed == 0 {
		began := time.Now()
		passed, output, err := s.run(ctx, 0, 20*time.Minute, "-test.v")
		if err != nil {
			return err
		}
		if passed {
			all := time.Since(began)
			s.allowed, s.slow = 4*all+10*time.Second, slow(output, all)
			if all > worthReach {
				return s.reach(ctx)
			}
			return nil
		}
		failed := failure.FindAllSubmatch(output, -1)
		if len(failed) == 0 || len(s.skipped) > 10 {
			return fmt.Errorf("the tests of %s fail without a mutant:\n%s", name, output)
		}
		for _, one := range failed {
			s.skipped = append(s.skipped, string(one[1]))
		}
	}
	return nil
}

// took is how a test is named that passes, and its time.
var took = regexp.MustCompile(`(?m)^--- PASS: (\S+) \((\d+\.\d+)s\)`)

// slow are the tests that take more than a twentieth of the time.
func slow(output []byte, all time.Duration) (names []string) {
	for _, one := range took.FindAllSubmatch(output, -1) {
		if t, err := strconv.ParseFloat(string(one[2]), 64); err == nil && t > all.Seconds()/20 {
			names = append(names, string(one[1]))
		}
	}
	return names
}

// first runs the tests with a mutant until one fails. Most mutants fail a test that is quick.
// Of another package, and if it is known which tests call the function, it leaves out those
// that take long: they wait for faults of machines, minutes for each mutant.
func (s *suite) first(ctx context.Context, number int, own bool) (passed bool, output []byte, err error) {
	rounds := [][]string{nil, s.slow}
	if s.reached != nil && number > 0 {
		quick, slow := s.split(s.reached[number])
		if !own {
			slow = nil
		}
		rounds = [][]string{quick, slow}
	}
	for i, tests := range rounds {
		all := i == 0 && (s.reached == nil || number == 0)
		if len(tests) == 0 && !all {
			continue
		}
		run, flags := s, []string{"-test.failfast"}
		if all {
			run = s.without(s.slow)
		} else {
			flags = append(flags, "-test.run="+exactly(tests))
		}
		if passed, output, err = run.run(ctx, number, s.allowed, flags...); err != nil || !passed {
			return passed, output, err
		}
	}
	return true, output, nil
}

// split parts tests into those that are quick and those that are slow.
func (s *suite) split(tests []string) (quick, slow []string) {
	for _, test := range tests {
		if slices.Contains(s.slow, test) {
			slow = append(slow, test)
		} else {
			quick = append(quick, test)
		}
	}
	return quick, slow
}

// exactly is a pattern for some tests.
func exactly(tests []string) string { return "^(" + strings.Join(tests, "|") + ")$" }

// without is the suite without some tests.
func (s *suite) without(names []string) *suite {
	return &suite{binary: s.binary, dir: s.dir, short: s.short, skipped: slices.Concat(s.skipped, names)}
}

// run runs the tests with a mutant. Tests that take too long have not passed.
func (s *suite) run(ctx context.Context, number int, allowed time.Duration, flags ...string) (passed bool, output []byte, err error) {
	limited, cancel := context.WithTimeout(ctx, allowed)
	defer cancel()
	args := []string{s.binary, "-test.paniconexit0", "-test.timeout=0"}
	if limit, err := exec.LookPath("prlimit"); err == nil {
		args = append([]string{limit, memory}, args...)
	}
	if s.short {
		args = append(args, "-test.short")
	}
	args = append(args, flags...)
	if len(s.skipped) > 0 {
		args = append(args, "-test.skip="+exactly(s.skipped))
	}
	cmd := exec.CommandContext(limited, args[0], args[1:]...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), switchVariable+"="+strconv.Itoa(number), reachVariable+"="+s.reachFile)
	// Servers that a test has started go with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
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

// tests lists the tests of a suite.
func (s *suite) tests(ctx context.Context) ([]string, error) {
	cmd := exec.CommandContext(ctx, s.binary, "-test.list", "^Test")
	cmd.Dir = s.dir
	output, err := cmd.Output()
	return strings.Fields(string(output)), err
}
