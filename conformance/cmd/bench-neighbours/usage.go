package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// usage is how many processors each process kept busy. others are those that are no part of the benchmark.
type usage struct{ server, etcd, client, looking, others float64 }

func (u usage) String() string {
	return fmt.Sprintf("processors: server %.2f, etcd %.2f, flood %.2f, measuring %.2f, others %.2f", u.server, u.etcd, u.client, u.looking, u.others)
}

// use measures what the processes use while something is done.
func (b *bench) use(do func() error) (usage, error) {
	pids := []int{b.server.Pid, b.etcd.Pid, b.flood.cmd.Process.Pid, os.Getpid()}
	now := func() (times [5]time.Duration, err error) {
		for i, pid := range pids {
			if times[i], err = launch.CPU(pid); err != nil {
				return times, err
			}
		}
		times[4], err = busy()
		return times, err
	}
	before, err := now()
	if err != nil {
		return usage{}, err
	}
	began := time.Now()
	if err := do(); err != nil {
		return usage{}, err
	}
	after, err := now()
	took := time.Since(began)
	part := func(i int) float64 { return float64(after[i]-before[i]) / float64(took) }
	u := usage{server: part(0), etcd: part(1), client: part(2), looking: part(3)}
	u.others = max(0, part(4)-u.server-u.etcd-u.client-u.looking)
	return u, err
}

// busy is the time that all processors have worked.
func busy() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(data), "\n")
	fields := strings.Fields(first) // cpu user nice system idle iowait irq softirq …
	if len(fields) < 8 {
		return 0, fmt.Errorf("/proc/stat begins with %q", first)
	}
	var ticks int64
	for _, i := range []int{1, 2, 3, 6, 7} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

func mean(all []usage) (u usage) {
	for _, one := range all {
		n := float64(len(all))
		u.server += one.server / n
		u.etcd += one.etcd / n
		u.client += one.client / n
		u.looking += one.looking / n
		u.others += one.others / n
	}
	return u
}

// profile writes a CPU profile of the server in a phase, if that was asked for.
func (b *bench) profile(ctx context.Context, name string, first bool) error {
	if *profiles == "" || !first {
		return nil
	}
	client, err := b.server.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	url := fmt.Sprintf("%s/debug/pprof/profile?seconds=%d", b.server.URL, max(1, int(phase.Seconds())-1))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the server has no profile for us: %s", resp.Status)
	}
	file, err := os.Create(filepath.Join(*profiles, name+".pprof"))
	if err != nil {
		return err
	}
	_, err = io.Copy(file, resp.Body)
	return errors.Join(err, file.Close())
}
