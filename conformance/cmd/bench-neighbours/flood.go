package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// asFlood is the first argument of the process that floods. It is a process of its own, so that its requests do not wait
// for the scheduler and the garbage collector of the clients that are measured, nor these for its.
//
//	bench ── "TENANT\n" ─▶ flood ══ requests ══▶ server
//	      ── "\n" ───────▶       stops
//	      ◀─ {"200":123} ─       what was answered
const asFlood = "flood"

// floodProcess is the other process, as the benchmark sees it.
type floodProcess struct {
	cmd     *exec.Cmd
	orders  io.WriteCloser
	answers *bufio.Scanner
}

// startFlood starts the process. It ends with its standard input.
func startFlood(server *launch.Server, connections int) (*floodProcess, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	f := &floodProcess{cmd: exec.Command(program, asFlood, server.Kubeconfig, strconv.Itoa(connections))}
	f.cmd.Stderr = os.Stderr
	if f.orders, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.answers = bufio.NewScanner(out)
	return f, f.cmd.Start()
}

// begin has the process send requests to a tenant.
func (f *floodProcess) begin(tenant string) error {
	_, err := fmt.Fprintln(f.orders, tenant)
	return err
}

// end has it stop, and returns how often it got which status.
func (f *floodProcess) end() (codes map[int]int64, err error) {
	if _, err := fmt.Fprintln(f.orders); err != nil {
		return nil, err
	}
	if !f.answers.Scan() {
		return nil, errors.Join(errors.New("the process that floods has ended"), f.answers.Err())
	}
	return codes, json.Unmarshal(f.answers.Bytes(), &codes)
}

func (f *floodProcess) close() error { return errors.Join(f.orders.Close(), f.cmd.Wait()) }

// A flood sends requests on many connections.
type flood struct {
	conns []*wire.Conn
	made  atomic.Int64
	codes [600]atomic.Int64
}

// runFlood is the main function of the other process.
func runFlood(ctx context.Context, kubeconfig, connections string, in io.Reader, out io.Writer) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(connections)
	if err != nil {
		return err
	}
	f := &flood{}
	if f.conns, err = wire.DialAll(config, n); err != nil {
		return err
	}
	stop := func() error { return nil }
	for orders := bufio.NewScanner(in); orders.Scan(); {
		if tenant := orders.Text(); tenant != "" {
			stop = f.pressure(ctx, tenant)
			continue
		}
		if err := stop(); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(f.answered()); err != nil {
			return err
		}
	}
	return nil
}

// pressure has a tenant send requests on all connections until the function that it returns is called.
func (f *flood) pressure(ctx context.Context, tenant string) (stop func() error) {
	ctx, cancel := context.WithCancel(ctx)
	var sending sync.WaitGroup
	errs := make([]error, len(f.conns))
	for w, conn := range f.conns {
		sending.Go(func() {
			for n := w; ctx.Err() == nil; n++ {
				if err := f.request(ctx, tenant, conn, n); err != nil && ctx.Err() == nil {
					errs[w] = err
					return
				}
			}
		})
	}
	return func() error {
		cancel()
		sending.Wait()
		return errors.Join(errs...)
	}
}

// request sends one request: to the tenant that is full a create, to the other one what is much work for the server, and little
// for the client.
func (f *flood) request(ctx context.Context, tenant string, conn *wire.Conn, n int) error {
	method, path, body := http.MethodGet, maps+"?labelSelector=of%3Dnone", []byte(nil)
	switch {
	case tenant == "full":
		method, path, body = http.MethodPost, maps, configMap(fmt.Sprintf("flood-%d", f.made.Add(1)))
	case n%4 == 1:
		method, path, body = http.MethodPost, maps, []byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"NOT VALID"}}`)
	case n%4 == 2:
		path = maps + "/one-1"
	case n%4 == 3:
		method, path, body = http.MethodPut, maps+fmt.Sprintf("/one-%d", n%listed+1), configMap(fmt.Sprintf("one-%d", n%listed+1))
	}
	code, _, _, err := conn.Do(ctx, method, at(tenant, path), body)
	if err != nil {
		return err
	}
	f.codes[code%len(f.codes)].Add(1)
	return nil
}

// answered is how often the flood got which status, since the last call.
func (f *flood) answered() map[int]int64 {
	codes := map[int]int64{}
	for code := range f.codes {
		if n := f.codes[code].Swap(0); n > 0 {
			codes[code] = n
		}
	}
	return codes
}

// text writes answers: the number of each status.
func text(codes map[int]int64) string {
	var s strings.Builder
	for code := range 600 {
		if n := codes[code]; n > 0 {
			fmt.Fprintf(&s, "  %d x %d", n, code)
		}
	}
	return s.String()
}
