package robustness

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/fault"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// Options say what is run.
type Options struct {
	Engine            environment.Engine
	Members, Replicas int
	Kind              launch.Kind
	Binary            string
	Other             string   // another program for replicas, for rolling upgrades
	Bug               string   // that the program has, if it has one on purpose
	Skewed            string   // the program with a clock that can be wrong
	Faults            []string // by name; all if empty
	Extras            []string // see load.Plan
	Disk              bool     // members of etcd have file systems of their own, which can be full
	Clients           int
	Quota             int    // how many bytes etcd may have; few if 0, so that it can be filled
	Out               string // folder for violations
	Log               io.Writer
}

// quota is how many bytes etcd may have, unless Options say. MigrationQuota is for the migration, which waits when 90 % are in use:
// each of its rounds keeps pre-images.
const (
	quota          = 64 << 20
	MigrationQuota = 1 << 30
)

// disk is the size of a member's own file system: etcd allocates two segments of its log in advance, 64 MB each.
const disk = 320 << 20

// Totals count what was done.
type Totals struct {
	Runs, Operations, Unknown, Events, Writes, Faults, Acks int
	Violations                                              int
	Checkers                                                map[string]int // how many of the violations each has found
	Took                                                    time.Duration
}

// A Runner does runs on one environment.
type Runner struct {
	Options
	Totals Totals
	scene  *fault.Scene
}

// New starts the environment.
func New(ctx context.Context, o Options) (*Runner, error) {
	if err := fault.Known(o.Faults); err != nil {
		return nil, err
	}
	for _, name := range o.Extras {
		if !slices.Contains(load.Extras(), name) {
			return nil, fmt.Errorf("there is no extra activity %q: use some of %v", name, load.Extras())
		}
	}
	if o.Clients == 0 {
		o.Clients = 8
	}
	r := &Runner{Options: o}
	if err := r.start(ctx); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Runner) start(ctx context.Context) error {
	o := environment.Options{
		Engine: r.Engine, Members: r.Members, Replicas: r.Replicas, Kind: r.Kind, Binary: r.Binary,
		EtcdFlags: []string{fmt.Sprintf("--quota-backend-bytes=%d", cmp.Or(r.Quota, quota))},
	}
	if r.Disk {
		o.Disk = disk
	}
	w, err := environment.New(ctx, o)
	if err != nil {
		return err
	}
	site, err := load.Setup(ctx, w)
	if err != nil {
		w.Close()
		return err
	}
	r.scene = &fault.Scene{Environment: w, Site: site, Other: r.Other, Skewed: r.Skewed}
	return nil
}

// Close ends the environment.
func (r *Runner) Close() {
	if r.scene != nil {
		r.scene.Site.Close()
		r.scene.Environment.Close()
		r.scene = nil
	}
}

// A Result is the result of one run.
type Result struct {
	Name       string // "seed", or the name of a directed case
	Seed       uint64 // or how often the case was played before
	Steps      []fault.Step
	History    *history.History
	Violations []Violation
	Took       time.Duration
	Notes      []string // of a directed case: what was done when
	Minimised  string   // the part of the history that shows the first violation
}

// Run does the run of a seed, and checks it.
func (r *Runner) Run(ctx context.Context, seed uint64) (*Result, error) {
	if r.scene == nil {
		if err := r.start(ctx); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	steps := fault.Schedule(seed, r.scene, r.Faults)
	result := &Result{Name: "seed", Seed: seed, Steps: steps}
	h, findings, err := r.scene.Site.Run(ctx, load.Plan{
		Seed: seed, Clients: r.Clients, Pause: 16 * time.Millisecond, Least: 2 * time.Second, Extras: r.Extras,
		Harm: func(ctx context.Context, note func(string, time.Time)) error {
			return fault.Do(ctx, r.scene, steps, note)
		},
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		// Servers that do not recover from a fault violate a promise, too. Their state is unknown.
		result.Violations = []Violation{{Checker: "recovery", Message: err.Error()}}
		err = r.keep(result)
		r.Close()
		r.count(result, began)
		return result, err
	}
	h.Schedule = r.Command(seed)
	result.History = h
	for _, f := range findings {
		result.Violations = append(result.Violations, Violation{Checker: f.Checker, Message: f.Message})
	}
	result.Violations = append(result.Violations, checkAll(h)...)
	if len(result.Violations) > 0 {
		if err := r.keep(result); err != nil {
			return nil, err
		}
	}
	r.count(result, began)
	return result, r.scene.Site.Tidy(ctx)
}

func (r *Runner) count(result *Result, began time.Time) {
	result.Took = time.Since(began)
	t := &r.Totals
	t.Runs++
	t.Took += result.Took
	t.Violations += len(result.Violations)
	for _, v := range result.Violations {
		t.found(v.Checker, 1)
	}
	t.Faults += len(result.Steps)
	h := result.History
	if h == nil {
		return
	}
	t.Operations += len(h.Operations)
	t.Writes += len(h.Writes)
	t.Acks += len(h.Acks)
	for i := range h.Operations {
		if h.Operations[i].Outcome == history.Unknown {
			t.Unknown++
		}
	}
	for i := range h.Sessions {
		t.Events += len(h.Sessions[i].Events)
	}
}

// Command is the command that repeats a run.
func (r *Runner) Command(seed uint64) string {
	command := fmt.Sprintf("go run ./cmd/robustness -members %d -replicas %d -seed %d -runs 1", r.Members, r.Replicas, seed)
	if r.Engine.Kine() {
		command += " -engine " + r.Engine.String()
	}
	if r.Kind != launch.Espalier {
		command += " -server " + r.Kind.String()
	}
	if r.Bug != "" {
		command += " -bug " + r.Bug
	}
	if len(r.Faults) > 0 {
		command += " -faults " + strings.Join(r.Faults, ",")
	}
	if len(r.Extras) > 0 {
		command += " -extras " + strings.Join(r.Extras, ",")
	}
	return command
}

// keep writes what is known of a violation into the folder for them.
func (r *Runner) keep(result *Result) error {
	if r.Out == "" {
		return nil
	}
	dir := filepath.Join(r.Out, fmt.Sprintf("%s-%d", result.Name, result.Seed))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var text strings.Builder
	if result.History != nil {
		fmt.Fprintf(&text, "%s\n", result.History.Schedule)
	} else {
		fmt.Fprintf(&text, "%s\n", r.Command(result.Seed))
	}
	for _, note := range result.Notes {
		fmt.Fprintf(&text, "%s\n", note)
	}
	for _, s := range result.Steps {
		fmt.Fprintf(&text, "fault %v\n", s)
	}
	for _, v := range result.Violations {
		fmt.Fprintf(&text, "%s: %s\n", v.Checker, v.Message)
	}
	result.Minimised = minimised(result)
	text.WriteString(result.Minimised)
	errs := []error{os.WriteFile(filepath.Join(dir, "violations.txt"), []byte(text.String()), 0o600)}
	if result.History != nil {
		data, err := json.Marshal(result.History)
		errs = append(errs, err, os.WriteFile(filepath.Join(dir, "history.json"), data, 0o600), pictures(dir, result))
	}
	for _, replica := range r.scene.Environment.Replicas {
		errs = append(errs, os.WriteFile(filepath.Join(dir, replica.Name+".log"), []byte(replica.Output()), 0o600))
	}
	for _, m := range r.scene.Environment.Members {
		errs = append(errs, os.WriteFile(filepath.Join(dir, m.Name+".log"), []byte(m.Output()), 0o600))
	}
	return errors.Join(errs...)
}
