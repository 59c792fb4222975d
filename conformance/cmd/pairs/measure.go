package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/releases"
	"github.com/espalier-dev/espalier/conformance/search"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/diff"
)

// measurement compares pairs.
type measurement struct {
	objects, long int
	results       []result
	done          atomic.Int64
}

// result is what became of one pair.
type result struct {
	err     error
	changes []diff.Change
	took    time.Duration
	// shown are the breaking changes without a witness that a random object shows, by index.
	shown  map[int]bool
	probed int // random objects that the old CRD stores
	missed []miss
	doubt  int // breaks of random objects that the reference does not confirm
	crdify crdifyAnswer
}

type miss struct {
	version, what string
	object        []byte
}

type crdifyAnswer struct{ Errors, Warnings, Served []string }

func (m *measurement) progress(total int) {
	if n := m.done.Add(1); n%100 == 0 {
		fmt.Printf("%d of %d pairs\n", n, total)
	}
}

// alarms reports whether a change says that writers or stored objects break, or may break.
func alarms(x *diff.Change) bool {
	return x.Level != diff.Safe && x.Breaks&(diff.Writers|diff.Stored) != 0
}

// schematic reports whether a change is one of schemas, which objects can show.
func schematic(x *diff.Change) bool {
	switch x.Check {
	case "conversion-changed", "group-changed", "kind-changed", "name-changed", "plural-changed", "scale-changed", "scale-removed", "scope-changed",
		"short-name-removed", "singular-changed", "status-subresource-added", "status-subresource-removed", "storage-version-changed", "stored-version-dropped",
		"version-removed", "version-withdrawn", "list-kind-changed", "selectable-field-removed":
		return false
	}
	return true
}

func (m *measurement) pair(ctx context.Context, p *releases.Pair, seed uint64) (r result) {
	old, err := crd.Parse(p.Old)
	if err != nil {
		return result{err: err}
	}
	now, err := crd.Parse(p.New)
	if err != nil {
		return result{err: err}
	}
	began := time.Now()
	r.changes, r.err = diff.Compare(old, now)
	r.took = time.Since(began)
	r.shown = map[int]bool{}
	if r.err != nil || old.PreserveUnknownFields || now.PreserveUnknownFields {
		return r
	}
	for i := range old.Versions {
		was := &old.Versions[i]
		is := now.Version(was.Name)
		if is == nil || was.Schema == nil || is.Schema == nil || bytes.Equal(was.Schema, is.Schema) {
			continue
		}
		m.probe(ctx, &r, was, is, seed<<8+uint64(i))
	}
	return r
}

// probe tries random objects of a version: for breaks that are not reported, and for breaking changes without a
// witness.
func (m *measurement) probe(ctx context.Context, r *result, was, is *crd.Version, seed uint64) {
	budget := m.objects
	defaulted := false
	open := map[int]bool{}
	for i := range r.changes {
		x := &r.changes[i]
		if x.Version != was.Name {
			continue
		}
		defaulted = defaulted || x.Check == "default-added"
		if x.Level == diff.Breaking && schematic(x) && x.Witness.Object == "" && alarms(x) {
			open[i] = true
			budget = m.long
		}
	}
	n, err := search.Probe(ctx, was.Schema, is.Schema, seed, budget, func(b search.Break) bool {
		covered := false
		for i := range r.changes {
			x := &r.changes[i]
			if x.Version == was.Name && alarms(x) && b.Covered(*x) {
				covered = true
				if open[i] && b.What[0] != 'c' {
					r.shown[i] = true
				}
			}
		}
		if covered || defaulted && b.What[0] == 'c' {
			return true
		}
		if !b.Confirmed() {
			r.doubt++
			return true
		}
		r.missed = append(r.missed, miss{was.Name, b.What, b.Object})
		return len(r.missed) < 3
	})
	if err == nil {
		r.probed += n
	}
}

// crdify runs crdify on the pairs.
func (m *measurement) crdify(ctx context.Context, pairs []releases.Pair) error {
	tmp, err := os.MkdirTemp("", "espalier-crdify-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	program := filepath.Join(tmp, "crdify")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, ".")
	build.Dir = "crdify"
	build.Env = append(os.Environ(), "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("building crdify failed: %w: %s", err, out)
	}
	var in bytes.Buffer
	for i := range pairs {
		if err := json.NewEncoder(&in).Encode(map[string]json.RawMessage{"old": pairs[i].Old, "new": pairs[i].New}); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Stdin, cmd.Stderr = &in, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("running crdify failed: %w", err)
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<24)
	for i := range pairs {
		if !lines.Scan() {
			return fmt.Errorf("crdify answered for %d pairs only", i)
		}
		if err := json.Unmarshal(lines.Bytes(), &m.results[i].crdify); err != nil {
			return err
		}
	}
	return lines.Err()
}
