package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/robustness/environment"
	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

// A Scene holds what faults hit.
type Scene struct {
	Environment *environment.Environment
	Site        *load.Site
	// Other is another program for replicas, which a rolling upgrade changes to and back; none if empty.
	Other string
	// Skewed is a program whose clock is wrong by the seconds in the variable SkewVariable; none if empty.
	Skewed string
}

// A Step is one fault of a schedule.
type Step struct {
	Fault   string
	At, For time.Duration
	Target  int // which replica or member, modulo their number
	Dose    int // 0 to 99: how much of it
}

// String is for the record.
func (t Step) String() string {
	return fmt.Sprintf("%s(%d) at %.1fs for %.1fs", t.Fault, t.Target, t.At.Seconds(), t.For.Seconds())
}

// A kind is a sort of fault.
type kind struct {
	name string
	help string
	// from and to are how long it lasts, in seconds.
	from, to float64
	// long: it may also last longer than the lease of a replica.
	long  bool
	needs func(*Scene) bool
	// alone: it has to be the only fault of a run, because it needs the rest of the environment to work; and it takes long, so that it does
	// not come often by chance.
	alone bool
	begin func(context.Context, *Scene, *Step) error
	end   func(context.Context, *Scene, *Step) error
}

// lease is how long replicas wait for one that does not answer.
const lease = 10 * time.Second

// Names are the faults that a scene can have.
func Names(s *Scene) []string {
	var out []string
	for _, k := range kinds {
		if k.needs == nil || k.needs(s) {
			out = append(out, k.name)
		}
	}
	return out
}

// Help explains all faults, one per line.
func Help() string {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "  %-18s %s\n", k.name, k.help)
	}
	return b.String()
}

// Known returns an error if a name is not that of a fault.
func Known(names []string) error {
	for _, name := range names {
		if find(name) == nil {
			return fmt.Errorf("there is no fault %q; there are:\n%s", name, Help())
		}
	}
	return nil
}

func find(name string) *kind {
	for i := range kinds {
		if kinds[i].name == name {
			return &kinds[i]
		}
	}
	return nil
}

// Schedule decides by a seed which faults a run has: one or two, out of names or out of all.
func Schedule(seed uint64, s *Scene, names []string) []Step {
	rng := rand.New(rand.NewPCG(seed, 0xfa))
	all := len(names) == 0
	if all {
		names = Names(s)
	}
	count := 1 + rng.IntN(2)
	var steps []Step
	for range count {
		k := find(names[rng.IntN(len(names))])
		for all && k.alone && rng.IntN(6) > 0 {
			k = find(names[rng.IntN(len(names))])
		}
		if k.alone && len(steps) > 0 {
			break
		}
		seconds := k.from + rng.Float64()*(k.to-k.from)
		step := Step{Fault: k.name, At: time.Duration((0.2 + 0.8*rng.Float64()) * float64(time.Second)), Target: rng.IntN(6), Dose: rng.IntN(100)}
		step.For = time.Duration(seconds * float64(time.Second))
		if long := rng.IntN(25) == 0; k.long && long {
			step.For += lease
		}
		steps = append(steps, step)
		if k.alone {
			break
		}
	}
	slices.SortFunc(steps, func(a, b Step) int { return int(a.At - b.At) })
	return steps
}

// Do carries out a schedule, and heals the environment at its end. note is called when a fault is over.
func Do(ctx context.Context, s *Scene, steps []Step, note func(name string, begin time.Time)) error {
	began := time.Now()
	var all sync.WaitGroup
	errs := make([]error, len(steps))
	for i := range steps {
		all.Go(func() { errs[i] = steps[i].do(ctx, s, began, note) })
	}
	all.Wait()
	s.Site.Webhook.Heal()
	return errors.Join(append(errs, s.Environment.Heal())...)
}

func (t *Step) do(ctx context.Context, s *Scene, began time.Time, note func(string, time.Time)) error {
	k := find(t.Fault)
	if k.needs != nil && !k.needs(s) {
		return fmt.Errorf("this environment cannot have the fault %s", t.Fault)
	}
	launch.Pause(ctx, time.Until(began.Add(t.At)))
	begin := time.Now()
	err := k.begin(ctx, s, t)
	if err == nil {
		launch.Pause(ctx, t.For)
	}
	if k.end != nil {
		err = errors.Join(err, k.end(ctx, s, t))
	}
	note(t.String(), begin)
	if err != nil {
		return fmt.Errorf("fault %s: %w", t.Fault, err)
	}
	return nil
}
