package deploy

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// callSet returns the system calls of a set of systemd's, those of sets in it included.
func callSet(t *testing.T, name string) map[string]bool {
	t.Helper()
	out, err := exec.Command("systemd-analyze", "syscall-filter", "--no-pager", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]bool{}
	for _, word := range strings.Fields(regexp.MustCompile(`(?m)#.*$`).ReplaceAllString(string(out), "")) {
		switch {
		case word == name:
		case strings.HasPrefix(word, "@"):
			for c := range callSet(t, word) {
				calls[c] = true
			}
		default:
			calls[word] = true
		}
	}
	return calls
}

// allowedCalls are those that the unit's filter lets through.
func allowedCalls(t *testing.T) map[string]bool {
	t.Helper()
	// systemd allows by itself what it takes to start a process and to end it.
	allowed := callSet(t, "@default")
	for _, line := range options(t, "Service")["SystemCallFilter"] {
		line, remove := strings.CutPrefix(line, "~")
		for _, set := range strings.Fields(line) {
			for c := range callSet(t, set) {
				if remove {
					delete(allowed, c)
				} else {
					allowed[c] = true
				}
			}
		}
	}
	return allowed
}

var (
	tracedCall   = regexp.MustCompile(`(?m)^\d+ +(\w+)\(`)
	tracedFamily = regexp.MustCompile(`socket\((AF_\w+)`)
	executable   = regexp.MustCompile(`(?:mmap|mprotect)\([^)]*PROT_WRITE\|PROT_EXEC`)
)

// The server does nothing that the unit forbids: it starts, serves, changes its audit log for a new one, and ends.
func TestUnitAllowsWhatTheServerDoes(t *testing.T) {
	for _, program := range []string{"strace", "systemd-analyze"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%v: what the server does cannot be seen, or what systemd lets it do cannot be asked", err)
		}
	}
	if out, err := exec.Command("strace", "-f", "-qq", "-o", os.DevNull, "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here (%v): %s", err, out)
	}
	w, dir := newTestEnvironment(t), t.TempDir()
	trace := filepath.Join(dir, "trace")
	s := w.unit(t, dir, nil, func(cmd *exec.Cmd) {
		strace, _ := exec.LookPath("strace")
		// -D: the server is our child, and strace is its. What every process does all the time is left out.
		cmd.Args = append([]string{"strace", "-D", "-f", "-qq", "--seccomp-bpf", "-o", trace,
			"-e", "trace=!read,write,futex,epoll_pwait,nanosleep,sched_yield,madvise,tgkill,getpid,rt_sigreturn", cmd.Path}, append(cmd.Args[1:], "--audit-log-maxsize=1")...)
		cmd.Path = strace
	})
	client := w.client(t, "metrics")
	eventually(t, "the audit log is never changed for a new one", func() error {
		for range 10 { // the server rejects longer ones
			if _, err := get(client, s.url+"/api?long="+strings.Repeat("x", 15_000)); err != nil {
				return err
			}
		}
		if logs, err := os.ReadDir(filepath.Join(dir, "log/espalier")); err != nil || len(logs) < 2 {
			return fmt.Errorf("%v, %v", logs, err)
		}
		return nil
	})
	endsGently(t, s, w.client(t, ""))

	allowed, text := allowedCalls(t), string(read(t, trace))
	seen := map[string]bool{}
	for _, m := range tracedCall.FindAllStringSubmatch(text, -1) {
		seen[m[1]] = true
	}
	for _, call := range []string{"execve", "accept4", "fchownat", "exit_group"} { // what is certainly in there
		if !seen[call] {
			t.Errorf("no %s among %d calls: the trace is not understood", call, len(seen))
		}
	}
	for call := range seen {
		if !allowed[call] {
			t.Errorf("SystemCallFilter forbids %s, which the server calls", call)
		}
	}
	families := strings.Fields(options(t, "Service")["RestrictAddressFamilies"][0])
	for _, m := range tracedFamily.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(" "+strings.Join(families, " ")+" ", " "+m[1]+" ") {
			t.Errorf("RestrictAddressFamilies forbids %s, which the server opens", m[1])
		}
	}
	if m := executable.FindString(text); m != "" {
		t.Errorf("MemoryDenyWriteExecute forbids %s", m)
	}
}
