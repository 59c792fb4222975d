package environment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A Child is a process that can be started again.
type Child struct {
	Name string
	dir  string

	mu      sync.Mutex
	argv    []string
	starts  int
	process *launch.Process
}

func newChild(dir, name string, argv []string) *Child {
	return &Child{Name: name, dir: dir, argv: argv}
}

// Start runs it, if it does not run. What it prints goes into a new file.
func (c *Child) Start() error {
	if c.Alive() {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.starts++
	// The folder of a child has data that outlives the process: nothing but Close removes it.
	p, err := launch.Start(context.Background(), c.dir, fmt.Sprintf("%s-%d", c.Name, c.starts), c.argv...)
	if err != nil {
		return fmt.Errorf("starting %s failed: %w", c.Name, err)
	}
	c.process = p
	return nil
}

// current is the process, nil if it was never started.
func (c *Child) current() *launch.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// Alive reports whether it runs.
func (c *Child) Alive() bool {
	p := c.current()
	if p == nil {
		return false
	}
	select {
	case <-p.Ended():
		return false
	default:
		return true
	}
}

// Kill ends it at once and waits for the end.
func (c *Child) Kill() {
	if p := c.current(); p != nil {
		p.Kill()
	}
}

// End asks it to end, and waits.
func (c *Child) End() {
	if p := c.current(); p != nil {
		p.End()
	}
}

// Freeze stops the process (SIGSTOP) and returns when all of its threads have stopped: under load that takes a while.
func (c *Child) Freeze() {
	p := c.current()
	if p == nil || p.Signal(syscall.SIGSTOP) != nil {
		return
	}
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end) && !stopped(p.Pid); {
		time.Sleep(time.Millisecond)
	}
}

func stopped(pid int) bool {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return err == nil && !slices.ContainsFunc(tasks, func(file string) bool {
		data, err := os.ReadFile(file)
		return err == nil && !strings.Contains(string(data), ") T ")
	})
}

// Thaw lets a frozen process go on.
func (c *Child) Thaw() {
	if p := c.current(); p != nil {
		_ = p.Signal(syscall.SIGCONT)
	}
}

// Output is what the current process has printed.
func (c *Child) Output() string {
	if p := c.current(); p != nil {
		return p.Output()
	}
	return ""
}

// Await asks until ready says yes, the process ends, or the time is over.
func (c *Child) Await(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	p := c.current()
	if p == nil {
		return fmt.Errorf("%s was never started", c.Name)
	}
	return p.Await(ctx, limit, ready)
}

// command replaces the command line for later starts.
func (c *Child) command(argv []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.argv = argv
}
