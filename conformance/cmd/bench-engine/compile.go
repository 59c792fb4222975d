package main

import (
	"fmt"
	"runtime"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/oracle"
)

// upstreamSchema is what the reference keeps for a version that it serves, as far as pruning, defaulting and
// validation need it.
type upstreamSchema struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
}

// compileAll compiles the same schemas with both sides. Ours checks the schema as well; the reference does that elsewhere.
func compileAll(schemas []corpus.Schema) error {
	var usable [][]byte
	total := 0
	for _, s := range schemas {
		// Compiling here would leave parts behind that the measured compilation then shares.
		if structural(s.JSON) {
			usable = append(usable, s.JSON)
			total += len(s.JSON)
		}
	}
	n := len(usable)
	if n == 0 {
		return fmt.Errorf("no schema compiles")
	}
	fmt.Printf("compile, from bytes, one thread, %d schemas, %.1f MB, results retained; heap after garbage collection.\n", n, float64(total)/1e6)

	ours := make([]*espalier.Schema, n)
	oursTime, oursHeap, err := retained(usable, func(i int, b []byte) (err error) {
		ours[i], err = espalier.Compile(b, espalier.CompileOptions{})
		return err
	})
	if err != nil {
		return err
	}
	theirs := make([]upstreamSchema, n)
	structuralTime, structuralHeap, err := retained(usable, func(i int, b []byte) error {
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
	theirTime, theirHeap, err := retained(usable, func(i int, b []byte) error {
		internal, err := oracle.Internal(b)
		if err != nil {
			return err
		}
		if theirs[i].structural, err = schema.NewStructural(internal); err != nil {
			return err
		}
		theirs[i].validator, _, err = validation.NewSchemaValidator(internal)
		return err
	})
	if err != nil {
		return err
	}
	line := func(name string, d time.Duration, heap int64) {
		fmt.Printf("%-10s %8.1f µs/schema %8.2f s in all %9.1f KB/schema retained %8.1f MB in all\n", name,
			float64(d.Microseconds())/float64(n), d.Seconds(), float64(heap)/1024/float64(n), float64(heap)/1e6)
	}
	line("ours", oursTime, oursHeap)
	line("upstream", theirTime, theirHeap)
	line("structural", structuralTime, structuralHeap)
	fmt.Println("upstream: NewStructural and NewSchemaValidator; structural: NewStructural alone, which is what pruning and defaulting use.")
	fmt.Printf("compile: upstream/ours time=%.2f heap=%.2f\n", theirTime.Seconds()/oursTime.Seconds(), float64(theirHeap)/float64(oursHeap))
	runtime.KeepAlive(ours)
	runtime.KeepAlive(theirs)
	return nil
}

func structural(schema []byte) bool {
	findings, err := espalier.Check(schema, espalier.CheckOptions{})
	for _, f := range findings {
		if f.Severity == espalier.Error {
			return false
		}
	}
	return err == nil
}

// retained runs the work over all schemas and returns how long it took and by how much the live heap has grown.
func retained(schemas [][]byte, work func(i int, b []byte) error) (time.Duration, int64, error) {
	before := live()
	began := time.Now()
	for i, b := range schemas {
		if err := work(i, b); err != nil {
			return 0, 0, err
		}
	}
	took := time.Since(began)
	return took, live() - before, nil
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
