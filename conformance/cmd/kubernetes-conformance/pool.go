package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/specs"
)

// serial marks specs that expect to have the server for themselves.
const serial = "[Serial]"

// A pool runs specs, each in a process of its own: one that hangs or ends its process takes no other with it.
type pool struct {
	suite    specs.Suite
	server   string        // its name, for messages
	workers  int           // processes at the same time
	limit    time.Duration // for one spec
	logs     string        // folder
	progress func(format string, arguments ...any)
}

// list returns the names of all conformance specs.
func (p *pool) list(ctx context.Context) ([]string, error) {
	s := p.suite
	s.Args = append([]string{"--ginkgo.dry-run", `--ginkgo.focus=\[Conformance\]`}, s.Args...)
	all, err := specs.Run(ctx, s, p.limit, filepath.Join(p.logs, "list.log"))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, spec := range all {
		if spec.Ran() {
			names = append(names, spec.Name)
		}
	}
	return names, nil
}

// run runs specs and returns their results in the order of names. Serial specs run last, one after another.
func (p *pool) run(ctx context.Context, names []string) ([]specs.Spec, error) {
	if err := os.MkdirAll(p.logs, 0o755); err != nil {
		return nil, err
	}
	var together, alone []int
	for i, name := range names {
		if strings.Contains(name, serial) {
			alone = append(alone, i)
		} else {
			together = append(together, i)
		}
	}
	results := make([]specs.Spec, len(names))
	var mu sync.Mutex
	done, passed := 0, 0
	one := func(i int) {
		results[i] = p.one(ctx, i, names[i])
		if ctx.Err() != nil {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		if results[i].Passed() {
			passed++
		}
		p.progress("%s: %d of %d specs, %d passed: %s after %.0f s: %s\n",
			p.server, done, len(names), passed, results[i].State, results[i].Took.Seconds(), names[i])
	}
	spread(ctx, together, p.workers, one)
	spread(ctx, alone, 1, one)
	return results, ctx.Err()
}

// spread calls f for each item, in as many goroutines as there are workers, until ctx ends.
func spread(ctx context.Context, items []int, workers int, f func(int)) {
	queue := make(chan int)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range queue {
				f(i)
			}
		})
	}
	for _, i := range items {
		select {
		case queue <- i:
			continue
		case <-ctx.Done():
		}
		break
	}
	close(queue)
	wg.Wait()
}

// one runs one spec. Also a process that ends without a report is a result: the spec may have ended it.
func (p *pool) one(ctx context.Context, i int, name string) specs.Spec {
	s := p.suite
	s.Args = append([]string{"--ginkgo.focus=" + regexp.QuoteMeta(name) + "$"}, s.Args...)
	began := time.Now()
	all, err := specs.Run(ctx, s, p.limit, filepath.Join(p.logs, logName(i, name)))
	if err != nil {
		reason, _, _ := strings.Cut(err.Error(), "\n")
		return specs.Spec{Name: name, State: "crashed", Took: time.Since(began), Reason: reason}
	}
	for _, spec := range all {
		if spec.Name == name && spec.Ran() {
			return spec
		}
	}
	for _, spec := range all {
		if spec.Name == name && spec.Reason != "" {
			return spec // skipped by itself, with a reason
		}
	}
	return specs.Spec{Name: name, State: "missing", Took: time.Since(began), Reason: "the suite did not run a spec of this name"}
}

var notInFile = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// logName is the name of the file with a spec's output. Names of specs may be longer than those of files.
func logName(i int, name string) string {
	slug := strings.Trim(notInFile.ReplaceAllString(name, "-"), "-")
	return fmt.Sprintf("%03d-%.120s.log", i, slug)
}
