package robustness

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/history"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// A Case reproduces one suspected bug, step by step.
type Case struct {
	Name    string
	Members int // of etcd, that it needs
	Quick   bool
	About   string
	play    func(*play, context.Context)
}

// Cases are all directed cases.
var Cases = []Case{
	{"resurrect", 1, true, "a create is done and its answer lost; meanwhile the object is deleted: it must not come back", func(p *play, ctx context.Context) { p.lostAnswer(ctx, false) }},
	{"exists", 1, true, "the same, and another object takes the name: the create must not be refused as AlreadyExists", func(p *play, ctx context.Context) { p.lostAnswer(ctx, true) }},
	{"patchtwice", 1, true, "a JSON patch is done and its answer lost: it must not be applied twice", (*play).patchTwice},
	{"restartwatch", 1, true, "a replica is killed and started while a client writes elsewhere: watches that go on there must show the writes", (*play).restartWatch},
	{"compactwatch", 1, true, "a replica is cut off while a client writes elsewhere and etcd is compacted: watches there must end, or show the writes", (*play).compactWatch},
	{"watchbegin", 1, true, "watches begin while a client writes: they must show every write once", (*play).watchBegin},
	{"held", 1, true, "an object with a finalizer is deleted: it must stay until the finalizer is taken away", (*play).held},
	{"contend", 1, true, "clients update, patch, delete and create the same objects at the same time: every write must have its effect once, or none", (*play).contend},
	{"behind", 1, true, "a replica hears nothing from etcd while a client writes elsewhere: reads that name the revision of the write, or none, must have it", (*play).behind},
	{"pages", 1, true, "a client writes between the pages of a list: all pages must be of one revision", (*play).pages},
	{"quotarush", 1, true, "many clients create at the same moment on all replicas: a quota must not be exceeded", (*play).quotaRush},
	{"latewrite", 1, false, "an update waits on its way to etcd while the schema changes: it must not be stored by the old schema", (*play).lateWriteCase},
	{"latestorage", 1, false, "a create waits on its way to etcd while its version is dropped: it must not be stored in that version", func(p *play, ctx context.Context) { p.lateStorage(ctx, false) }},
	{"latecreate", 1, false, "a create waits on its way to etcd while its CRD is deleted: it must not be stored", func(p *play, ctx context.Context) { p.lateCreate(ctx, false) }},
	{"slowstorage", 1, true, "a create has a slow body while its version is dropped: it must not be stored in that version", func(p *play, ctx context.Context) { p.lateStorage(ctx, true) }},
	{"slowcreate", 1, true, "a create has a slow body while its CRD is deleted: it must not be stored", func(p *play, ctx context.Context) { p.lateCreate(ctx, true) }},
	{"schemawatch", 1, true, "right after the acknowledgement of a schema a client writes: watches elsewhere must show it by that schema", (*play).schemaWatch},
	{"schemastop", 1, false, "a replica is stopped for longer than its lease while the schema changes: nothing it sends after that may be of the old schema", func(p *play, ctx context.Context) {
		p.schemaLease(ctx, func() { p.replica(0).Freeze() }, func() { p.replica(0).Thaw() })
	}},
	{"schemahold", 1, false, "the same with a half-open link", func(p *play, ctx context.Context) {
		p.schemaLease(ctx, func() { p.replica(0).Etcd.Each((*environment.Link).Hold) }, func() { p.replica(0).Etcd.Each((*environment.Link).Heal) })
	}},
	{"schemacut", 1, false, "the same with a cut link", func(p *play, ctx context.Context) {
		p.schemaLease(ctx, func() { p.replica(0).Etcd.Each((*environment.Link).Cut) }, func() { p.replica(0).Etcd.Each((*environment.Link).Heal) })
	}},
	{"migration", 1, false, "replicas and etcd are killed 50 times during storage version migrations: no object may be lost, no more than a page be written twice, and the migration must end by itself", (*play).migration},
	{"longcut", 1, false, "a link to etcd is cut for 100 s: the replica must answer 3 s after it has healed", (*play).longCut},
	{"frozen", 3, true, "a create waits in a frozen member of etcd, is done elsewhere and deleted: it must not come back when the member goes on", (*play).frozen},
	{"frozenlong", 3, false, "one member of three is frozen for 55 s: no replica may be without answers for more than 5 s", (*play).frozenLong},
	{"restore", 1, false, "etcd is restored from a backup with a revision bump: replicas and informers must follow", func(p *play, ctx context.Context) { p.restore(ctx, 1_000_000_000) }},
	{"restoreback", 1, false, "etcd is restored from a backup without a revision bump: replicas must serve what etcd has, once they are restarted", func(p *play, ctx context.Context) { p.restore(ctx, 0) }},
}

// Select returns the cases of some names; all are those of the probe and the restores.
func Select(names string) ([]Case, error) {
	if names == "all" {
		return Cases, nil
	}
	var out []Case
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(Cases, func(c Case) bool { return c.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no directed case %q; there are:\n%s", name, CaseHelp())
		}
		out = append(out, Cases[i])
	}
	return out, nil
}

// CaseHelp explains the cases, one per line.
func CaseHelp() string {
	var b strings.Builder
	for _, c := range Cases {
		fmt.Fprintf(&b, "  %-12s %s\n", c.Name, c.About)
	}
	return b.String()
}

// play is one execution of a case.
type play struct {
	*load.Stage
	environment *environment.Environment
	a, b        *load.Client // at replica 0, to which things happen, and at replica 1
	mu          sync.Mutex
	notes       []string
	bad         []Violation
}

func (p *play) note(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, fmt.Sprintf("%7.3f ", float64(p.Now())/1e9)+fmt.Sprintf(format, a...))
}

// fail records that the suspected bug occurred.
func (p *play) fail(format string, a ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bad = append(p.bad, Violation{Checker: "directed", Message: fmt.Sprintf(format, a...)})
}

func (p *play) replica(i int) *environment.Replica { return p.environment.Replicas[i] }

// Direct plays a case once on the runner's environment, and prints what happened if it fails.
func (r *Runner) Direct(ctx context.Context, c Case) (*Result, error) {
	if len(r.scene.Environment.Members) < c.Members {
		return nil, fmt.Errorf("the case %s needs %d members of etcd", c.Name, c.Members)
	}
	began := time.Now()
	stage, err := r.scene.Site.Stage(ctx)
	if err != nil {
		return nil, err
	}
	p := &play{Stage: stage, environment: r.scene.Environment}
	if p.a, err = stage.Client(50 * time.Second); err != nil {
		return nil, err
	}
	if p.b, err = stage.Client(20 * time.Second); err != nil {
		return nil, err
	}
	c.play(p, ctx)
	if err := r.scene.Environment.Heal(); err != nil {
		return nil, err
	}
	for _, replica := range r.scene.Environment.Replicas {
		if err := replica.AwaitReady(ctx, environment.Patience); err != nil {
			return nil, err
		}
	}
	// A restore loses acknowledged writes and etcd's log on purpose.
	restores := strings.HasPrefix(c.Name, "restore")
	h, findings, err := end(stage, restores)
	if err != nil {
		return nil, fmt.Errorf("directed %s: %w", c.Name, err)
	}
	result := &Result{Name: c.Name, Seed: uint64(r.Totals.Runs), History: h, Violations: p.bad, Notes: p.notes}
	for _, f := range findings {
		result.Violations = append(result.Violations, Violation{Checker: f.Checker, Message: f.Message})
	}
	if !restores {
		result.Violations = append(result.Violations, checkAll(h)...)
	}
	h.Schedule = "go run ./cmd/robustness -directed " + c.Name
	r.count(result, began)
	if len(result.Violations) > 0 {
		if err := r.keep(result); err != nil {
			return nil, err
		}
	}
	return result, r.scene.Site.Tidy(ctx)
}

func end(stage *load.Stage, drop bool) (*history.History, []load.Finding, error) {
	if drop {
		h, findings := stage.Drop()
		return h, findings, nil
	}
	return stage.End()
}

// PrintCase shows the outcome of a case.
func PrintCase(w io.Writer, c Case, n int, result *Result) {
	fmt.Fprintf(w, "directed %s %d: %d operations, %d writes in %.1f s: %d violations\n", c.Name, n, len(result.History.Operations), len(result.History.Writes), result.Took.Seconds(), len(result.Violations))
	if len(result.Violations) > 0 {
		for _, line := range result.Notes {
			fmt.Fprintln(w, "    "+line)
		}
	}
	for _, v := range result.Violations {
		fmt.Fprintf(w, "    %s: %s\n", v.Checker, v.Message)
	}
}
