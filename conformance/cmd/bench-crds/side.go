package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	crdsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	writers  = 8
)

// A side is one server with what has been created on it.
type side struct {
	name    string
	server  *launch.Server
	etcd    *launch.Etcd
	conns   []*wire.Conn
	shows   bool // whether it serves /apis and publishes OpenAPI
	present []*benchCRD
	refused int
	probed  int
	began   time.Time
}

// A state is what the process has at one moment.
type state struct {
	present, connections       int
	resident, heap, goroutines int64
}

func (s *side) state(ctx context.Context) (state, error) {
	var errs [4]error
	st := state{present: len(s.present)}
	st.heap, errs[0] = s.server.Heap(ctx)
	st.resident, errs[1] = launch.RSS(s.server.Pid)
	st.goroutines, errs[2] = s.server.Goroutines(ctx)
	st.connections, errs[3] = launch.Connections(s.server.Pid, s.etcd.Port)
	return st, errors.Join(errs[:]...)
}

// fill creates CRDs until n are there, ctx is done, or the list is at its end. Those that the server refuses are counted.
func (s *side) fill(ctx context.Context, n int, next func() *benchCRD) error {
	var mu sync.Mutex
	var first error
	take := func() *benchCRD {
		mu.Lock()
		defer mu.Unlock()
		if len(s.present) >= n || first != nil || ctx.Err() != nil {
			return nil
		}
		d := next()
		if d != nil {
			s.present = append(s.present, d)
			if len(s.present)%500 == 0 {
				s.progress()
			}
		}
		return d
	}
	refuse := func(d *benchCRD, err error) {
		mu.Lock()
		defer mu.Unlock()
		for i, p := range s.present {
			if p == d {
				s.present = append(s.present[:i], s.present[i+1:]...)
				break
			}
		}
		if err == nil {
			s.refused++
		} else if first == nil {
			first = err
		}
	}
	var wg sync.WaitGroup
	for _, conn := range s.conns {
		wg.Go(func() {
			for d := take(); d != nil; d = take() {
				body, err := d.body()
				if err != nil {
					refuse(d, err)
					return
				}
				status, _, answer, err := conn.Do(ctx, http.MethodPost, crdsPath, body)
				switch {
				case err != nil:
					refuse(d, err)
				case status == http.StatusUnprocessableEntity || status == http.StatusConflict || status == http.StatusForbidden:
					refuse(d, nil)
				case status != http.StatusCreated:
					refuse(d, fmt.Errorf("%s.%s: %d %.300s", d.plural, d.group, status, answer))
				}
			}
		})
	}
	wg.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return first
}

func (s *side) progress() {
	resident, err := launch.RSS(s.server.Pid)
	if err == nil {
		fmt.Fprintf(os.Stderr, "%s: %d CRDs after %.0f s, %d MB resident\n", s.name, len(s.present), time.Since(s.began).Seconds(), resident>>20)
	}
}

// settle waits until the last CRD is served.
func (s *side) settle(ctx context.Context) error {
	_, err := until(ctx, time.Now(), func() (bool, error) { return isServed(ctx, s.conns[0], s.present[len(s.present)-1]) })
	return err
}

// touch lists the objects of every CRD once: each must be served.
func (s *side) touch(ctx context.Context) error {
	var at atomic.Int64
	errs := make([]error, len(s.conns))
	var wg sync.WaitGroup
	for w, conn := range s.conns {
		wg.Go(func() {
			for i := int(at.Add(1)) - 1; i < len(s.present) && errs[w] == nil; i = int(at.Add(1)) - 1 {
				if ok, err := isServed(ctx, conn, s.present[i]); err != nil {
					errs[w] = err
				} else if !ok {
					errs[w] = fmt.Errorf("%s is not served", s.present[i].collection())
				}
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func isServed(ctx context.Context, conn *wire.Conn, d *benchCRD) (bool, error) {
	status, _, _, err := conn.Do(ctx, http.MethodGet, d.collection(), nil)
	return status == http.StatusOK, err
}
