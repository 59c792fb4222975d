package conformance

import (
	"context"
	"testing"

	"github.com/espalier-dev/espalier/conformance/corpus"
	"github.com/espalier-dev/espalier/conformance/oracle"
	"github.com/espalier-dev/espalier/crd"
)

// BenchmarkCRDs checks whole CRDs from JSON: those of the archive if there is one, of the small modules otherwise.
func BenchmarkCRDs(b *testing.B) {
	set, err := corpus.Load(context.Background(), corpus.Options{NoModules: true})
	if err != nil {
		set, err = corpus.Load(context.Background(), corpus.Options{Short: true, NoArchive: true})
	}
	if err != nil {
		b.Skip("no corpus: ", err)
	}
	run := func(name string, check func(doc []byte) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			size := int64(0)
			for b.Loop() {
				size = 0
				for i := range set.CRDs {
					size += int64(len(set.CRDs[i].JSON))
					if err := check(set.CRDs[i].JSON); err != nil {
						b.Fatal(set.CRDs[i].Name, err)
					}
				}
			}
			b.SetBytes(size)
			b.ReportMetric(float64(len(set.CRDs)), "CRDs/op")
		})
	}
	run("espalier", func(doc []byte) error {
		d, err := crd.Parse(doc)
		if err != nil {
			return err
		}
		defer d.Release()
		_, err = crd.Validate(d, crd.ValidateOptions{})
		return err
	})
	run("upstream", func(doc []byte) error {
		return oracle.CRD(doc, oracle.CRDOptions{}).Undecodable
	})
}
