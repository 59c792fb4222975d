package launch

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tick is the unit in which the kernel counts CPU time for /proc; Linux has had 100 a second on every platform that Go knows.
const tick = 10 * time.Millisecond

// CPU returns the CPU time that a process has used.
func CPU(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The second field is the program's name in parentheses and may contain anything.
	fields := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/%d/stat has %d fields", pid, len(fields))
	}
	user, err := strconv.ParseInt(fields[11], 10, 64)
	if err != nil {
		return 0, err
	}
	system, err := strconv.ParseInt(fields[12], 10, 64)
	if err != nil {
		return 0, err
	}
	return time.Duration(user+system) * tick, nil
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB`)

// RSS returns the resident memory of a process in bytes.
func RSS(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := resident.FindSubmatch(data)
	if m == nil {
		return 0, fmt.Errorf("/proc/%d/status has no VmRSS", pid)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n * 1024, err
}

// Sockets returns the inodes of the sockets that a process has.
func Sockets(pid int) (map[string]bool, error) {
	sockets := map[string]bool{}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return nil, err
	}
	for _, fd := range fds {
		if target, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, fd.Name())); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	return sockets, nil
}

// Connections counts the established connections of a process to a TCP port of this machine.
func Connections(pid, port int) (int, error) {
	sockets, err := Sockets(pid)
	if err != nil {
		return 0, err
	}
	const established = "01"
	remote, n := fmt.Sprintf(":%04X", port), 0
	for _, table := range []string{"tcp", "tcp6"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil {
			return 0, err
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			if len(f) > 9 && strings.HasSuffix(f[2], remote) && f[3] == established && sockets[f[9]] {
				n++
			}
		}
	}
	return n, nil
}

var (
	heapAlloc  = regexp.MustCompile(`(?m)^# HeapAlloc = (\d+)`)
	goroutines = regexp.MustCompile(`(?m)^goroutine profile: total (\d+)`)
)

// Heap returns the bytes of the server's live objects: twice collected, so that pools are empty.
func (s *Server) Heap(ctx context.Context) (int64, error) {
	if _, err := s.figure(ctx, "/debug/pprof/heap?gc=1&debug=1", heapAlloc); err != nil {
		return 0, err
	}
	return s.figure(ctx, "/debug/pprof/heap?gc=1&debug=1", heapAlloc)
}

// Goroutines returns how many goroutines the server has.
func (s *Server) Goroutines(ctx context.Context) (int64, error) {
	return s.figure(ctx, "/debug/pprof/goroutine?debug=1", goroutines)
}

// figure reads one number out of a page of the server.
func (s *Server) figure(ctx context.Context, path string, find *regexp.Regexp) (int64, error) {
	client, err := s.HTTP()
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+path, nil)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	m := find.FindSubmatch(body)
	if m == nil {
		return 0, fmt.Errorf("%s: %s, and no %s in it", path, resp.Status, find)
	}
	return strconv.ParseInt(string(m[1]), 10, 64)
}
