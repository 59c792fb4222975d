package compile

import (
	"fmt"
	"slices"
	"testing"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/plan"
)

// TestBoundsWarnOfWhatThePlanDoes checks the two warnings about bounds against
// what the bounds are lowered to.
func TestBoundsWarnOfWhatThePlanDoes(t *testing.T) {
	types := []string{`"type":"integer"`, `"type":"number"`, `"x-kubernetes-int-or-string":true`}
	formats := []string{"", `,"format":"int32"`, `,"format":"int64"`, `,"format":"float"`, `,"format":"foo"`}
	for _, typ := range types {
		for _, format := range formats {
			for _, bound := range []string{"0", "2", "2.5", "-0.5", "4294967296", "9223372036854775808", "1e39", "1e300"} {
				for _, keyword := range []string{"minimum", "maximum", "multipleOf"} {
					src := fmt.Sprintf(`{"type":"object","properties":{"a":{%s%s,"%s":%s}}}`, typ, format, keyword, bound)
					s := parse(t, src)
					n, err := Lower(s, LowerOptions{})
					if err != nil {
						t.Fatal(err)
					}
					warned := slices.ContainsFunc(Check(s, CheckOptions{}), func(f finding.Finding) bool { return f.Check == "bound-out-of-range" })
					asserts := n.Props.At(0).Node.Asserts
					if out := asserts[len(asserts)-1].OutOfRange; out != warned {
						t.Errorf("%s: out of range is %v, warned of is %v", src, out, warned)
					}
					plan.Release(n)
				}
			}
		}
	}
}
