package compile

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
)

var flagNames = strings.Fields(`preserve embedded nullable int-or-string whole additional additional-false default defaults-below
	set map atomic map-atomic map-granular read-only strict literal exposed rules-below lists-below embedded-below unions-below
	read-only-below asserts-below`)

var opNames = strings.Fields(`format maximum exclusiveMaximum minimum exclusiveMinimum multipleOf maxLength minLength maxItems minItems
	maxProperties minProperties pattern enum required allOf anyOf oneOf not type uniqueItems`)

// dumpPlan writes a line for each node of a plan.
func dumpPlan(n *plan.Node, at string) (lines []string) {
	line := at + ":"
	if n.Type != plan.Untyped {
		line += " " + n.Type.String()
	}
	if n.Accepts == plan.AnyKind {
		line += " accepts anything"
	} else {
		line += " accepts"
		for k := jsondoc.Null; k <= jsondoc.Object; k++ {
			if n.Accepts.Has(k) {
				line += " " + k.String()
			}
		}
	}
	for i, name := range flagNames {
		if n.Flags>>i&1 != 0 {
			line += ", " + name
		}
	}
	if r := n.Rare; r != nil {
		if r.Default != "" {
			line += "; default " + r.Default
		}
		if len(r.ListMapKeys) > 0 {
			line += fmt.Sprintf("; keys %q", r.ListMapKeys)
		}
		for _, u := range r.Unions {
			line += fmt.Sprintf("; union %q %v", u.Discriminator, u.Fields)
		}
		for _, rule := range r.Rules {
			line += fmt.Sprintf("; rule %+v", rule)
		}
	}
	lines = append(lines, line)
	for _, a := range n.Asserts {
		lines = append(lines, dumpAssert(&a, at)...)
	}
	for i := range n.Props.Len() {
		name := n.Props.At(i).Name
		if n.Props.IsRequired(i) {
			name += "!"
		}
		lines = append(lines, dumpPlan(n.Props.At(i).Node, at+"."+name)...)
	}
	if n.Items != nil {
		lines = append(lines, dumpPlan(n.Items, at+"[]")...)
	}
	if n.Additional != nil {
		lines = append(lines, dumpPlan(n.Additional, at+".*")...)
	}
	return lines
}

func dumpAssert(a *plan.Assert, at string) []string {
	at += " " + opNames[a.Op]
	line := at
	switch {
	case a.Op >= plan.Maximum && a.Op <= plan.MultipleOf:
		line += fmt.Sprintf(" %v", math.Float64frombits(a.Num))
	case a.Op == plan.Format:
		line += fmt.Sprintf(" %s, of strings %v, of numbers %v", a.Text, a.Form != 0, a.Num != 0)
	case a.Text != "":
		line += " " + a.Text
	case a.Operands == nil:
		line += fmt.Sprint(" ", int64(a.Num))
	}
	if a.OutOfRange {
		line += " out of range"
	}
	if a.Operands == nil {
		return []string{line}
	}
	if a.List != nil {
		line += fmt.Sprintf(" %s", a.List)
	}
	for i := range a.Names.Len() {
		line += " by " + a.Names.At(i).Name
	}
	if a.Mixed {
		line += ", mixed"
	}
	if a.Op == plan.Pattern && a.Match == nil {
		line += ", no expression"
	}
	lines := []string{line}
	for i, b := range a.Nodes {
		lines = append(lines, dumpPlan(b, fmt.Sprintf("%s %d", at, i))...)
	}
	return lines
}

// TestLower compares the plans of schemas with those in testdata/lower.txt: a line "# name
// [option]…", the schema, and a line "=> …" for each node and assertion.
func TestLower(t *testing.T) {
	const file = "testdata/lower.txt"
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, block := range strings.Split(strings.TrimSpace(string(b)), "\n\n") {
		name, rest, _ := strings.Cut(block, "\n")
		schema, _, _ := strings.Cut(rest, "\n")
		has := func(option string) bool { return strings.Contains(name, "["+option+"]") }
		n, err := Lower(parse(t, schema), LowerOptions{
			InheritPreserve: has("inherit"), Strict: has("strict"), ValidationOnly: has("validation only"), Defaults: has("defaults"),
		})
		got := name + "\n" + schema
		if err != nil {
			got += "\n=> error " + err.Error()
		} else {
			got += "\n=> " + strings.Join(dumpPlan(n, "x"), "\n=> ")
			plan.Release(n)
		}
		if !*update && got != block {
			t.Errorf("got\n%s\nwant\n%s", got, block)
		}
		out = append(out, got)
	}
	if *update {
		if err := os.WriteFile(file, []byte(strings.Join(out, "\n\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
