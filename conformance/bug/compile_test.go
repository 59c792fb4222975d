package bug

import (
	"flag"
	"slices"
	"testing"
)

var compile = flag.Bool("compile", false, "compile the packages of every bug (takes minutes)")

// What a bug makes is not only Go but compiles.
func TestEveryBugCompiles(t *testing.T) {
	if !*compile {
		t.Skip("takes minutes: give -compile; `robustness -bugs` compiles them all as well")
	}
	builder, err := NewBuilder(t.Context(), "../..", "../../.bin/bugs")
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range slices.Concat(Server, Engine) {
		var packages []string
		for _, e := range b.Edits {
			packages = append(packages, e.Package)
		}
		if err := builder.compile(t.Context(), builder.root, &b, packages...); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
}
