package cel

import (
	"testing"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
)

var benchRules = `{"rule":"self.s.matches('^[a-zß-ü]+$')"},{"rule":"self.l.all(x, x >= 0) && size(self.l) < 10"},{"rule":"!has(self.no) || self.no == self.s"},
	{"rule":"self.m.all(k, self.m[k] < 100)"},{"rule":"self.ml.all(x, self.ml.exists_one(y, y.k == x.k))"},{"rule":"self.i > 0 && self.i in [1, 3, 5, 7]","message":"odd"},
	{"rule":"type(self.ios) == string ? self.ios.endsWith('%') : self.ios > 0"}`

func BenchmarkRun(b *testing.B) {
	_, set := compileSchema(b, specWith(everything, benchRules))
	for name, count := range map[string]bool{"Fast": false, "Counting": true} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			d := document(b, string(document(b, anObject).AppendCanonical(nil, 0)))
			run := newRun(set, d)
			for b.Loop() {
				r := runs.Get().(*evaluation)
				r.begin(set, run)
				if ok := r.attempt(count, 10_000_000); !ok || len(run.Errors) > 0 {
					b.Fatal(run.Errors)
				}
				r.close()
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	schema := []byte(specWith(everything, benchRules))
	s, err := espalier.Compile(schema, espalier.CompileOptions{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("Set", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := compilePart(bridge.Plan(s), true); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Programs", func(b *testing.B) { // 7 rules
		b.ReportAllocs()
		set, err := compilePart(bridge.Plan(s), true)
		if err != nil {
			b.Fatal(err)
		}
		n := bridge.Plan(s).Property("spec")
		for b.Loop() {
			p := &programs{key: programsKey{n, n, false}}
			if p.compile(set.lang, set.views); len(p.rules) != 7 || p.rules[6].problem != "" {
				b.Fatal(p.rules)
			}
		}
	})
}
