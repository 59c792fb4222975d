package compile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/costtest"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// TestSoundDefaults checks what package cel gets.
func TestSoundDefaults(t *testing.T) {
	const src = `{"type":"object","x-kubernetes-validations":[{"rule":"true"}],"default":{"apiVersion":"v1","kind":"K"},"properties":{
		"good":{"type":"object","properties":{"a":{"type":"number"}},"default":{"a":1.0,"a":2.0}},
		"bad":{"type":"integer","default":"x"},
		"map":{"type":"object","additionalProperties":{"type":"integer","default":1}},
		"list":{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{
			"metadata":{"type":"object","properties":{"name":{"type":"string","default":"n"}}}},
			"default":{"apiVersion":"v1","kind":"K","metadata":{"unknown":1,"name":"x"}}}}}}`
	s := parse(t, src)
	v := Validate(s, CheckOptions{Path: field.NewPath("schema")})
	if v.Sound {
		t.Error("the schema has a default that does not fit, and passes for sound")
	}
	root, err := Lower(s, LowerOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Release(root)
	var got []string
	for i := range v.Defaults {
		d := &v.Defaults[i]
		text := fmt.Sprintf("%s %s %s resource=%v inMetadata=%v", d.Path(), d.Pointer(), d.Value, d.Resource, d.InMetadata)
		if n := d.In(root); n.Type != plan.TypeOf(d.Schema.Type) || n.Rare == nil || n.Rare.Default == "" {
			text += " has the wrong node"
		}
		got = append(got, text)
	}
	want := []string{
		`schema.default /default {"apiVersion":"v1","kind":"K"} resource=true inMetadata=false`,
		`schema.properties[good].default /properties/good/default {"a":2.0} resource=false inMetadata=false`,
		`schema.properties[list].items.default /properties/list/items/default {"apiVersion":"v1","kind":"K","metadata":{"name":"x"}} resource=true inMetadata=false`,
		`schema.properties[list].items.properties[metadata].properties[name].default /properties/list/items/properties/metadata/properties/name/default "n" resource=false inMetadata=true`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestSound checks under which circumstances rules are looked at.
func TestSound(t *testing.T) {
	for src, want := range map[string]bool{
		`{"type":"object"}`: true,
		`{"type":"object","properties":{"a":{"type":"integer","default":1}}}`:                                            true,
		`{"type":"object","properties":{"a":{"type":"integer","default":"1"}}}`:                                          false,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":{"type":"integer","default":"1"}}}}`: true,
		`{"type":"object","properties":{"a":{"type":"object","additionalProperties":true,"default":{"b":1}}}}`:           true,
		`{"type":"object","properties":{"a":{}}}`:                                                                        false,
		`{"type":"object","not":{"type":"object"}}`:                                                                      false,
		`{"type":"object","$schema":"x"}`:                                                                                false,
		`{"type":"object","nullable":true,"properties":{"a":{"type":"integer","default":1}}}`:                            true, // refused, but not for its structure
	} {
		v := Validate(parse(t, src), CheckOptions{})
		if v.Sound != want {
			t.Errorf("%s: sound is %v", src, v.Sound)
		}
		if v.Defaults != nil {
			t.Errorf("%s: there are no rules, and defaults for them", src)
		}
	}
	if Validate(parse(t, `{"type":"object"}`), CheckOptions{NonStructural: true}).Sound {
		t.Error("a schema passes for structural that need not be")
	}
}

func TestUncheckedDefaults(t *testing.T) {
	s := parse(t, `{"type":"object","properties":{"a":{"type":"integer","default":"1"}}}`)
	if list := Check(s, CheckOptions{UncheckedDefaults: true}); len(list) != 0 {
		t.Errorf("defaults are checked all the same: %v", render(list))
	}
}

// TestDefaultsBounded checks that hostile defaults neither take time that grows
// with the square of the schema nor leave anything behind.
func TestDefaultsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine with much to do: it runs without the race detector")
	}
	before := plan.Count()
	for name, src := range map[string]string{
		"nested":            nest(4000, `{"type":"object","default":{},"x-kubernetes-validations":[{"rule":"true"}],"properties":{"a":`, `{"type":"string"}`, `}}`),
		"nested and wrong":  nest(4000, `{"type":"object","default":{"b":1},"properties":{"a":`, `{"type":"string"}`, `}}`),
		"nested, unchecked": `{"type":"object","properties":{"m":{"type":"object","additionalProperties":` + nest(4000, `{"type":"object","default":{"b":1},"properties":{"a":`, `{"type":"string"}`, `}}`) + `}}}`,
		"deep and wrong": `{"type":"object","properties":{"x":` + strings.Replace(nest(4000, `{"type":"object","properties":{"a":`, `{"type":"string"}`, `}}`),
			`{"type":"object"`, `{"type":"object","default":`+nest(3999, `{"b":1,"a":`, `{}`, `}`), 1) + `}}`,
		"deep, enum at every level": `{"type":"object","properties":{"x":` + strings.Replace(nest(4000, `{"type":"object","enum":[1],"properties":{"a":`, `{"type":"string"}`, `}}`),
			`{"type":"object"`, `{"type":"object","default":`+nest(3999, `{"a":`, `{"a":"`+strings.Repeat("x", 100_000)+`"}`, `}`), 1) + `}}`,
		"wide and wrong": `{"type":"object","properties":{"x":{"type":"array","items":{"type":"string","enum":[` +
			wide(1000, func(i int) string { return fmt.Sprintf(`"v%d"`, i) }) + `]},"default":[` + wide(50_000, func(i int) string { return fmt.Sprint(i) }) + `]}}}`,
		"in metadata": `{"type":"object","properties":{"x":{"type":"object","x-kubernetes-embedded-resource":true,"properties":{"metadata":` +
			nest(3000, `{"type":"object","default":{},"properties":{"a":`, `{"type":"string"}`, `}}`) + `}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := parse(t, src)
			var v Result
			costtest.Within(t, time.Minute, func() { v = Validate(s, CheckOptions{}) })
			size := 0
			for i := range v.Findings {
				size += len(v.Findings[i].Path) + sizeOf(v.Findings[i].BadValue)
			}
			if size > 4*maxRendered {
				t.Errorf("findings of %d bytes", size)
			}
		})
	}
	if n := plan.Count(); n != before {
		t.Errorf("%d nodes are left behind", n-before)
	}
}

func FuzzDefaults(f *testing.F) {
	for _, c := range readCases(f) {
		f.Add([]byte(c.schema))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := jsondoc.Parse(src, jsondoc.Limits{MaxDepth: 500})
		if err != nil {
			return
		}
		defer d.Release()
		s, problems := syntax.Parse(d, jsondoc.Root)
		if len(problems) > 0 {
			return
		}
		all := Validate(s, CheckOptions{})
		rest := slices.DeleteFunc(slices.Clone(all.Findings), func(f finding.Finding) bool {
			switch f.Check {
			case "default-unknown-fields", "default-metadata", "default-value", "default-unchecked":
				return true
			}
			return false
		})
		unchecked := Check(s, CheckOptions{UncheckedDefaults: true})
		if !slices.Equal(render(rest), render(unchecked)) {
			t.Errorf("checking defaults changes other findings:\n%s\n%s", render(rest), render(unchecked))
		}
		if all.Sound == slices.ContainsFunc(all.Findings, func(f finding.Finding) bool {
			return f.Check != "default-unchecked" && strings.HasPrefix(string(f.Check), "default-") && f.Check != "default-forbidden"
		}) && all.Sound {
			t.Error("a schema with wrong defaults passes for sound")
		}
		for i := range all.Defaults {
			if v, err := jsondoc.Parse(all.Defaults[i].Value, jsondoc.Limits{}); err != nil {
				t.Errorf("%s: %v", all.Defaults[i].Path(), err)
			} else {
				v.Release()
			}
		}
	})
}
