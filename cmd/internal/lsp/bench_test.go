package lsp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/cmd/internal/lsp"
)

// BenchmarkKey types a letter in a file of 200 KB, and waits for the diagnostics.
func BenchmarkKey(b *testing.B) {
	for _, bb := range []struct {
		name, text string
		line       int
	}{
		{"objects", strings.Repeat("---\n"+crontab+strings.Repeat("  # a comment\n", 60), 200), 6},
		{"crd", largeCRD(), 4},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c := start(b, map[string]string{"crd.yaml": crontabs}, nil)
			c.ready()
			c.open("a.yaml", bb.text)
			c.diagnostics("a.yaml", 1, nil)
			b.ResetTimer()
			for i := range b.N {
				at := lsp.Position{Line: bb.line, Character: 2}
				r := lsp.Range{Start: at, End: at}
				text := "#"
				if i%2 == 1 {
					r.End.Character, text = 3, ""
				}
				c.change("a.yaml", i+2, change{&r, text})
				c.diagnostics("a.yaml", i+2, nil)
			}
		})
	}
}

// largeCRD has 200 KB.
func largeCRD() string {
	var fields strings.Builder
	for i := range 1200 {
		fmt.Fprintf(&fields, "              field%d:\n                description: A field that says something about the object, in a sentence of usual length.\n                type: string\n                maxLength: 64\n", i)
	}
	return strings.Replace(crontabs, "              schedule:\n", fields.String()+"              schedule:\n", 1)
}
