package launch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// grace is how long a process may take to end after it was asked to.
const grace = 10 * time.Second

// A Process is a running child.
type Process struct {
	Pid  int
	Dir  string // temporary; removed by Stop
	Log  string // file with what it prints
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	stop sync.Once
}

// Start runs a program with its output in the file name.log of dir. It is stopped when ctx ends.
func Start(ctx context.Context, dir, name string, argv ...string) (*Process, error) {
	log := filepath.Join(dir, name+".log")
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = dieWithParent()
	err = cmd.Start()
	_ = file.Close()
	if err != nil {
		return nil, err
	}
	p := &Process{Pid: cmd.Process.Pid, Dir: dir, Log: log, cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	context.AfterFunc(ctx, p.Stop)
	return p, nil
}

// Stop ends the process, gently first, and removes its folder. Calling it again does nothing.
func (p *Process) Stop() {
	p.stop.Do(func() {
		p.End()
		_ = os.RemoveAll(p.Dir)
	})
}

// End ends the process and keeps its folder, so that its output can be read.
func (p *Process) End() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(grace):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// Kill ends the process at once, as a crash would.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// Output returns what the process has printed so far.
func (p *Process) Output() string {
	data, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// why returns the part of the output that tells most: a panic's beginning, or the end.
func (p *Process) why() string {
	lines := strings.Split(strings.TrimSpace(p.Output()), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") {
			return strings.Join(lines[i:min(len(lines), i+15)], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// Signal sends a signal to the process.
func (p *Process) Signal(s os.Signal) error { return p.cmd.Process.Signal(s) }

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Await asks until ready says yes, the process ends, or the time is over.
func (p *Process) Await(ctx context.Context, limit time.Duration, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended before it was ready\n%s", filepath.Base(p.cmd.Path), p.why())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready after %v: %w\n%s", filepath.Base(p.cmd.Path), limit, err, p.why())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Pause sleeps, unless ctx ends.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// FreePort returns a loopback port that was free a moment ago.
func FreePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// Tool returns the path of a program that `make tools` builds: etcd, kubectl, upstream.
func Tool(name string) (string, error) {
	if path := os.Getenv("ESPALIER_" + strings.ToUpper(name)); path != "" {
		return path, nil
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, ".bin", name)
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("no %s: run `make tools`", path)
	}
	return path, nil
}

// Root returns the folder of the repository.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "cmd", "espalier")); err == nil {
			return dir, nil
		}
		if filepath.Dir(dir) == dir {
			return "", errors.New("no cmd/espalier in this folder or above")
		}
		dir = filepath.Dir(dir)
	}
}

// Build compiles our server into dir with the flags given, unless ESPALIER_BIN names one, and returns its path.
func Build(ctx context.Context, dir string, flags ...string) (string, error) {
	if path := os.Getenv("ESPALIER_BIN"); path != "" {
		return filepath.Abs(path)
	}
	root, err := Root()
	if err != nil {
		return "", err
	}
	return build(ctx, root, dir, "espalier-server", flags)
}

// BuildCommandLine compiles the program with the offline commands into dir and returns its path.
func BuildCommandLine(ctx context.Context, dir string) (string, error) {
	root, err := Root()
	if err != nil {
		return "", err
	}
	return build(ctx, root, dir, "espalier", nil)
}

// build compiles a program of the repository. Its modules are joined by go.work.
func build(ctx context.Context, root, dir, program string, flags []string) (string, error) {
	path := filepath.Join(dir, program)
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"build", "-C", root, "-o", path}, flags...), "./cmd/"+program)...)
	cmd.Env = append(os.Environ(), "GOWORK="+filepath.Join(root, "go.work"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return path, nil
}
