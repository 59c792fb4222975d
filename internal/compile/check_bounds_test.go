package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/costtest"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// nest wraps inner n times.
func nest(n int, before, inner, after string) string {
	return strings.Repeat(before, n) + inner + strings.Repeat(after, n)
}

// wide makes n members of an object.
func wide(n int, member func(i int) string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = member(i)
	}
	return strings.Join(parts, ",")
}

// TestBounded checks that schemas made to have as many and as long findings as
// possible neither take quadratic memory nor lose their result.
func TestBounded(t *testing.T) {
	const (
		room  = 1 << 20
		depth = 1500
	)
	for name, src := range map[string]string{
		"deep errors":       nest(depth, `{"properties":{"a":`, `{}`, `}}`),
		"deep warnings":     `{"type":"string","properties":{"a":` + nest(depth-10, `{"type":"object","foo":1,"properties":{"a":`, `{"type":"string"}`, `}}`) + `}}`,
		"deep incomplete":   `{"type":"object","properties":{"a":` + nest(depth-10, `{"type":"object","properties":{"a":`, `{"type":"object"}`, `}}`) + `},"not":` + nest(depth-10, `{"properties":{"b":{},"a":`, `{}`, `}}`) + `}`,
		"repeated keys":     `{"type":"object","properties":{"a":{"type":"array","x-kubernetes-list-type":"map","items":{"type":"object"},"x-kubernetes-list-map-keys":[` + wide(2000, func(int) string { return `"k"` }) + `]}}}`,
		"tuples in tuples":  `{"type":"object","properties":{"a":` + nest(depth-10, `{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":[`, `{}`, `]}`) + `}}`,
		"many wrong unions": `{"type":"array","x-kubernetes-unions":[` + wide(5000, func(int) string { return `{"discriminator":"` + strings.Repeat("d", 100) + `","fields":{"x":"y"}}` }) + `]}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, src)
			list := validate(s, CheckOptions{}, room).Findings
			size, errors := 0, 0
			for i := range list {
				f := &list[i]
				size += len(f.Path) + len(f.Pointer) + len(f.Detail)
				if f.Severity == finding.Error {
					errors++
				}
			}
			if size > 3*room {
				t.Errorf("%d findings have %d bytes", len(list), size)
			}
			if errors == 0 {
				t.Error("the errors got lost")
			}
			if !slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "too-many-findings" }) {
				t.Errorf("%d findings of %d bytes are all there are?", len(list), size)
			}
		})
	}
}

// shapes are schemas that grow with n.
var shapes = map[string]func(n int) string{
	"deep": func(n int) string {
		return nest(n/20, `{"type":"object","anyOf":[{"required":["a"]}],"x-kubernetes-validations":[{"rule":"true","fieldPath":".a"}],"properties":{"a":`, `{"type":"string"}`, `}}`)
	},
	"wide": func(n int) string {
		return `{"type":"object","properties":{` + wide(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `}}`
	},
	"branches of a wide object": func(n int) string {
		return `{"type":"object","properties":{` + wide(n, func(i int) string { return fmt.Sprintf(`"p%d":{"type":"string"}`, i) }) + `},"anyOf":[` +
			wide(n, func(i int) string { return fmt.Sprintf(`{"properties":{"p%d":{"pattern":"a"}}}`, i) }) + `]}`
	},
	"nested logical keywords": func(n int) string {
		return `{"type":"object","properties":{"a":{"type":"string"}},"not":` + nest(n/40, `{"not":`, `{"properties":{"a":{"pattern":"x"}}}`, `}`) + `}`
	},
}

// TestCostIsLinear checks that the time of a check grows as fast as the schema.
func TestCostIsLinear(t *testing.T) {
	costtest.Limit(t)
	for name, shape := range shapes {
		t.Run(name, func(t *testing.T) {
			at := func(n int) costtest.Input {
				src := shape(n)
				s := parse(t, src)
				return costtest.Input{Size: len(src), Run: func() { Check(s, CheckOptions{}) }, Scattered: costtest.ReadJSON([]byte(src))}
			}
			costtest.Linear(t, at(2000), at(20000))
		})
	}
}

func FuzzCheck(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add([]byte(c.schema), c.options.StatusSubresource)
	}
	f.Fuzz(func(t *testing.T, src []byte, status bool) {
		d, err := jsondoc.Parse(src, jsondoc.Limits{MaxBytes: 1 << 16})
		if err != nil {
			return
		}
		defer d.Release()
		s, problems := syntax.Parse(d, jsondoc.Root)
		list := Check(s, CheckOptions{StatusSubresource: status})
		if !slices.IsSortedFunc(list, func(a, b finding.Finding) int { return strings.Compare(a.Path, b.Path) }) {
			t.Error("not sorted")
		}
		for i := range list {
			known := slices.ContainsFunc(Checks, func(c finding.Check) bool { return c.ID == list[i].Check })
			if !known || list[i].Error() == "" || list[i].Offset > len(src) {
				t.Errorf("finding %+v", list[i])
			}
		}
		// What a schema means does not depend on how it is written, but for
		// defaults: a float is one even if it is whole.
		if len(problems) > 0 || slices.ContainsFunc(list, func(f finding.Finding) bool { return f.Check == "items-ignored" }) {
			return
		}
		again, o := parse(t, string(s.AppendJSON(nil))), CheckOptions{StatusSubresource: status, UncheckedDefaults: true}
		if a, b := errorsOf(Check(s, o)), errorsOf(Check(again, o)); !slices.Equal(a, b) {
			t.Errorf("%s\nhas\n%s\nbut written again\n%s", src, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	})
}

func errorsOf(list []finding.Finding) []string {
	var out []string
	for i := range list {
		if list[i].Severity == finding.Error {
			out = append(out, string(list[i].Check)+" "+list[i].Error())
		}
	}
	return out
}

func BenchmarkCheck(b *testing.B) {
	s := parse(b, `{"type":"object","properties":{`+wide(30, func(i int) string {
		return fmt.Sprintf(`"f%d":{"type":"object","description":"field","properties":{"a":{"type":"string","pattern":"^[a-z]+$"},"b":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"},"c":{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}]}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, i)
	})+`}}`)
	b.ReportAllocs()
	for b.Loop() {
		if Check(s, CheckOptions{}) != nil {
			b.Fatal("not accepted")
		}
	}
}
