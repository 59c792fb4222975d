package mixed

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/mutate"
)

// Config says how much to compare.
type Config struct {
	Seed     uint64
	Families int      // of twins grown from the schemas, besides those of the table
	Workers  int      // default 2
	Command  []string // starts a process that calls Answer
	Show     int      // differences to print; default 10
	Progress io.Writer
}

// Counts is what has been compared.
type Counts struct {
	Families, Schemas, Refused, Orders, Answers, Differences int
}

// String is the line that a run ends with.
func (c *Counts) String() string {
	return fmt.Sprintf("mixed: %d schemas (%d refused) of %d families, each alone in a process and in %d orders with all others in use; answers %d, unexplained %d",
		c.Schemas, c.Refused, c.Families, c.Orders, c.Answers, c.Differences)
}

// orders is in how many orders the schemas are compiled.
const orders = 3

// twinsPerFamily and objectsPerFamily are the sizes of a family that is grown from a schema.
const (
	twinsPerFamily   = 4
	objectsPerFamily = 16
)

// Run compares the answers of schemas that are in use together with those of each alone. The error is for a comparison
// that could not be made.
func Run(ctx context.Context, schemas []corpus.Schema, cfg Config) (Counts, error) {
	if cfg.Workers <= 0 {
		cfg.Workers = 2
	}
	if cfg.Show <= 0 {
		cfg.Show = 10
	}
	questions, families, err := questions(schemas, cfg)
	if err != nil {
		return Counts{}, err
	}
	r := runner{Config: cfg, questions: questions}
	r.counts = Counts{Families: families, Schemas: len(questions), Orders: orders}
	r.say("%d schemas of %d families, each alone in a process", len(questions), families)
	if err := r.alone(ctx); err != nil {
		return r.counts, err
	}
	for order := range orders {
		r.say("all of them together, order %d", order+1)
		r.together(ctx, rand.New(rand.NewPCG(cfg.Seed, uint64(order))))
	}
	return r.counts, ctx.Err()
}

// questions makes the families. All schemas of a family are asked about the same objects.
func questions(schemas []corpus.Schema, cfg Config) (list []*Question, families int, err error) {
	var objects [][]byte
	for _, value := range mutate.TwinValues {
		objects = append(objects, []byte(`{"x":`+value+`}`))
	}
	for _, family := range mutate.TwinTable(cfg.Seed) {
		families++
		for _, schema := range family {
			list = append(list, &Question{Schema: schema, Objects: objects})
		}
	}
	pool := &mutate.Pool{}
	for _, s := range schemas {
		if err := pool.Add(s.Name, s.JSON, 2); err != nil {
			return nil, 0, fmt.Errorf("%s: %w", s.Name, err)
		}
	}
	if pool.Len() == 0 {
		return list, families, nil
	}
	for i := range cfg.Families {
		seed := cfg.Seed + uint64(i)
		family := pool.Twins(seed, twinsPerFamily)
		plan, err := generate.Compile(family[0])
		if err != nil {
			continue
		}
		var objects [][]byte
		for n := range objectsPerFamily {
			mode := [...]generate.Mode{generate.Breach, generate.Valid, generate.Near}[n%3]
			objects = append(objects, plan.Append(nil, seed<<8+uint64(n), generate.Options{Mode: mode, Size: 300, Resolve: true}))
		}
		families++
		for _, schema := range family {
			list = append(list, &Question{Schema: schema, Objects: objects})
		}
	}
	return list, families, nil
}

type runner struct {
	Config
	questions []*Question
	want      [][]string // of each question
	mu        sync.Mutex
	counts    Counts
}

func (r *runner) say(format string, args ...any) {
	if r.Progress != nil {
		fmt.Fprintf(r.Progress, format+"\n", args...)
	}
}

// each runs n pieces of work on the workers.
func (r *runner) each(ctx context.Context, n int, work func(i int)) {
	var workers errgroup.Group
	workers.SetLimit(r.Workers)
	for i := 0; i < n && ctx.Err() == nil; i++ {
		workers.Go(func() error { work(i); return nil })
	}
	_ = workers.Wait() // there are no errors
}

// alone asks a process for every question.
func (r *runner) alone(ctx context.Context) error {
	r.want = make([][]string, len(r.questions))
	failed := make([]error, len(r.questions))
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	r.each(ctx, len(r.questions), func(i int) {
		if r.want[i], failed[i] = alone(ctx, r.Command, r.questions[i]); failed[i] != nil {
			stop()
		}
	})
	for i, err := range failed {
		if err != nil {
			return fmt.Errorf("asking a process about %s: %w", r.questions[i].Schema, err)
		}
	}
	for _, answers := range r.want {
		if len(answers) == 1 { // the schema's
			r.counts.Refused++
		}
	}
	return ctx.Err()
}

// together compiles all schemas in a random order and then asks them in another.
func (r *runner) together(ctx context.Context, dice *rand.Rand) {
	// What another order has left must not decide for this one.
	runtime.GC()
	runtime.GC()
	all := make([]asked, len(r.questions))
	order := dice.Perm(len(all))
	r.each(ctx, len(all), func(i int) { all[order[i]] = r.questions[order[i]].compile() })
	order = dice.Perm(len(all))
	r.each(ctx, len(all), func(i int) { r.compare(order[i], all[order[i]].answers()) })
	runtime.KeepAlive(all)
}

func (r *runner) compare(i int, got []string) {
	want := r.want[i]
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.Answers += len(got)
	for k := range max(len(got), len(want)) {
		ours, alone := answer(got, k), answer(want, k)
		if ours == alone {
			continue
		}
		if r.counts.Differences++; r.counts.Differences > r.Show {
			continue
		}
		object := "(none)"
		if k > 0 {
			object = string(r.questions[i].Objects[k-1])
		}
		r.say("DIFFERENCE (mixed)\nschema:   %s\nobject:   %s\ntogether: %s\nalone:    %s", r.questions[i].Schema, object, ours, alone)
	}
}

func answer(list []string, k int) string {
	if k < len(list) {
		return list[k]
	}
	return "(nothing)"
}
