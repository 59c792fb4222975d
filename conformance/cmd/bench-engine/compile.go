package main

import (
	"fmt"
	"runtime"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	upstreamcel "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd/cel"
	"github.com/espalier-dev/espalier/finding"
)

// upstreamSchema is what the reference keeps for a version that it serves, as far as pruning, defaulting and
// validation need it.
type upstreamSchema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
	rules      *upstreamcel.Validator
}

// compileAll compiles the same schemas with both sides, twice: without rules, then with them. Ours checks the schema as
// well; the reference does that elsewhere.
func compileAll(schemas []corpus.Schema, crds int) error {
	var usable [][]byte
	total, ruled := 0, 0
	for _, s := range schemas {
		// Compiling here would leave parts behind that the measured compilation then shares.
		if structural(s.JSON) {
			usable = append(usable, s.JSON)
			total += len(s.JSON)
			if corpus.HasRules(s.JSON) {
				ruled++
			}
		}
	}
	if len(usable) == 0 {
		return fmt.Errorf("no schema compiles")
	}
	fmt.Printf("compile, from bytes, one thread, %d schemas (%d with rules), %.1f MB, results retained; heap after garbage collection.\n", len(usable), ruled, float64(total)/1e6)
	p := compilation{schemas: usable, crds: crds}
	if err := p.values(); err != nil {
		return err
	}
	return p.withRules()
}

// A compilation compiles schemas and prints what it took.
type compilation struct {
	schemas [][]byte
	crds    int // how many CRDs the schemas are of
}

func (p *compilation) line(name string, c cost) {
	n := float64(len(p.schemas))
	fmt.Printf("%-22s %8.1f µs/schema %8.2f s in all %9.1f KB/schema %9.1f KB/CRD retained %8.1f MB in all\n", name,
		float64(c.took.Microseconds())/n, c.took.Seconds(), float64(c.heap)/1024/n, float64(c.heap)/1024/float64(p.crds), float64(c.heap)/1e6)
}

// values compiles what pruning, defaulting and validating values needs.
func (p *compilation) values() error {
	ours := make([]*espalier.Schema, len(p.schemas))
	mine, err := retained(p.schemas, func(i int, b []byte) (err error) {
		ours[i], err = espalier.Compile(b, espalier.CompileOptions{})
		return err
	})
	if err != nil {
		return err
	}
	theirs := make([]upstreamSchema, len(p.schemas))
	spine, err := retained(p.schemas, func(i int, b []byte) error {
		internal, err := oracle.Internal(b)
		if err != nil {
			return err
		}
		theirs[i].structural, err = schema.NewStructural(internal)
		return err
	})
	if err != nil {
		return err
	}
	clear(theirs)
	upstream, err := retained(p.schemas, func(i int, b []byte) error { return theirs[i].compile(b, false) })
	if err != nil {
		return err
	}
	p.line("ours", mine)
	p.line("upstream", upstream)
	p.line("structural", spine)
	fmt.Println("upstream: NewStructural and NewSchemaValidator; structural: NewStructural alone, which is what pruning and defaulting use.")
	figures.Set("compile.time", "%.1f", upstream.took.Seconds()/mine.took.Seconds())
	figures.Set("compile.heap", "%.0f", float64(upstream.heap)/float64(mine.heap))
	fmt.Printf("compile: upstream/ours time=%.2f heap=%.2f\n", upstream.took.Seconds()/mine.took.Seconds(), float64(upstream.heap)/float64(mine.heap))
	runtime.KeepAlive(ours)
	runtime.KeepAlive(theirs)
	return nil
}

// withRules compiles rules as well. Ours builds programs on first use, so that there is a third run in which every rule
// is compiled and checked, which is what creating a CRD takes.
func (p *compilation) withRules() error {
	type compiled struct {
		schema *espalier.Schema
		rules  *espalier.Rules
	}
	ours := make([]compiled, len(p.schemas))
	mine, err := retained(p.schemas, func(i int, b []byte) (err error) {
		if ours[i].schema, err = espalier.Compile(b, espalier.CompileOptions{}); err == nil {
			ours[i].rules, err = cel.Compile(ours[i].schema)
		}
		return err
	})
	if err != nil {
		return err
	}
	checked, err := retained(p.schemas, func(_ int, b []byte) error {
		_, err := cel.Check(b, cel.CheckOptions{})
		return err
	})
	if err != nil {
		return err
	}
	theirs := make([]upstreamSchema, len(p.schemas))
	upstream, err := retained(p.schemas, func(i int, b []byte) error { return theirs[i].compile(b, true) })
	if err != nil {
		return err
	}
	p.line("ours, rules", mine)
	p.line("ours, rules checked", checked)
	p.line("upstream, rules", upstream)
	fmt.Println("ours, rules: programs are built on first use; rules checked: every rule is compiled and its cost estimated, as for a new CRD, nothing of it retained; upstream: with cel.NewValidator.")
	figures.Set("compile with rules.time", "%.1f", upstream.took.Seconds()/mine.took.Seconds())
	figures.Set("compile with rules.checked", "%.1f", upstream.took.Seconds()/(mine.took+checked.took).Seconds())
	perCRD := func(c cost) float64 { return float64(c.heap) / 1000 / float64(p.crds) }
	figures.Set("crd.heap.ours", "%.1f KB", perCRD(mine))
	figures.Set("crd.heap.upstream", "%.0f KB", perCRD(upstream))
	timePerCRD := func(c cost) float64 { return c.took.Seconds() * 1000 / float64(p.crds) }
	figures.Set("crd.compile.ours", "%.1f ms", timePerCRD(mine))
	figures.Set("crd.compile.checked", "%.1f ms", timePerCRD(checked))
	figures.Set("crd.compile.upstream", "%.1f ms", timePerCRD(upstream))
	fmt.Printf("compile with rules: upstream/ours time=%.2f heap=%.2f, upstream/checked time=%.2f\n",
		upstream.took.Seconds()/mine.took.Seconds(), float64(upstream.heap)/float64(mine.heap), upstream.took.Seconds()/(mine.took+checked.took).Seconds())
	runtime.KeepAlive(ours)
	runtime.KeepAlive(theirs)
	return nil
}

// compile builds what the reference builds for a version that it serves.
func (u *upstreamSchema) compile(b []byte, withRules bool) error {
	internal, err := oracle.Internal(b)
	if err != nil {
		return err
	}
	if u.structural, err = schema.NewStructural(internal); err != nil {
		return err
	}
	if u.validator, _, err = validation.NewSchemaValidator(internal); err == nil && withRules {
		u.rules = upstreamcel.NewValidator(u.structural, true, celconfig.PerCallLimit)
	}
	return err
}

func structural(schema []byte) bool {
	findings, err := espalier.Check(schema, espalier.CheckOptions{})
	for _, f := range findings {
		if f.Severity == finding.Error {
			return false
		}
	}
	return err == nil
}

// A cost is how long work took and by how much the live heap has grown.
type cost struct {
	took time.Duration
	heap int64
}

// retained runs the work over all schemas.
func retained(schemas [][]byte, work func(i int, b []byte) error) (cost, error) {
	before := live()
	began := time.Now()
	for i, b := range schemas {
		if err := work(i, b); err != nil {
			return cost{}, err
		}
	}
	took := time.Since(began)
	return cost{took, live() - before}, nil
}

// live is the size of what is reachable. Cleanups and pools take more than one collection to let go.
func live() int64 {
	for range 4 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
