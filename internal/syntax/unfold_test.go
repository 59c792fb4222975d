package syntax

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

func parseSchema(t testing.TB, src string) *Schema {
	t.Helper()
	d, err := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	t.Cleanup(d.Release)
	s, problems := Parse(d, jsondoc.Root)
	if len(problems) > 0 {
		t.Fatalf("%s: %v", src, problems)
	}
	return s
}

func TestUnfold(t *testing.T) {
	const (
		ab       = `"properties":{"a":{"type":"object"},"b":{"type":"object"},"c":{"type":"object"},"e":{"enum":["A","B"],"type":"string"},"d":{"type":"string"}}`
		abSorted = `"properties":{"a":{"type":"object"},"b":{"type":"object"},"c":{"type":"object"},"d":{"type":"string"},"e":{"enum":["A","B"],"type":"string"}}`
		withEnum = `"properties":{"a":{"type":"object"},"b":{"type":"object"},"c":{"type":"object"},"d":{"enum":["A","B"],"type":"string"},"e":{"enum":["A","B"],"type":"string"}}`
		byE      = `{"discriminator":"e","fields":{"a":"A","b":"B"}}`
		byD      = `{"discriminator":"d","fields":{"a":"A","b":"B"}}`
		plainBC  = `{"fields":{"b":"","c":""}}`
		plainAB  = `{"fields":{"a":"","b":""}}`
		oneOfAB  = `"oneOf":[{"required":["a"]},{"required":["b"]}]`
		couple   = `{"anyOf":[{"properties":{"%[1]s":{"enum":["A"]}},"required":["a"]},{"properties":{"%[1]s":{"enum":["B"]}},"required":["b"]}]}`
		plainOne = `"oneOf":[{"required":["a"]},{"required":["b"]},{"not":{"anyOf":[{"required":["a"]},{"required":["b"]}]}}]`
	)
	coupleE, coupleD := fmt.Sprintf(couple, "e"), fmt.Sprintf(couple, "d")
	for _, c := range []struct{ name, schema, want string }{
		{"enum is there", `{"type":"object",` + ab + `,"x-kubernetes-unions":[` + byE + `]}`,
			`{"allOf":[` + coupleE + `],` + oneOfAB + `,` + abSorted + `,"type":"object","x-kubernetes-unions":[` + byE + `]}`},
		{"enum is added", `{"type":"object",` + ab + `,"x-kubernetes-unions":[` + byD + `]}`,
			`{"allOf":[` + coupleD + `],` + oneOfAB + `,` + withEnum + `,"type":"object","x-kubernetes-unions":[` + byD + `]}`},
		{"no discriminator", `{"type":"object",` + ab + `,"x-kubernetes-unions":[` + plainAB + `]}`,
			`{` + plainOne + `,` + abSorted + `,"type":"object","x-kubernetes-unions":[` + plainAB + `]}`},
		{"oneOf is taken", `{"type":"object",` + ab + `,"oneOf":[{"maxProperties":2}],"allOf":[{"minProperties":1}],"x-kubernetes-unions":[` + byE + `]}`,
			`{"allOf":[{` + oneOfAB + `},` + coupleE + `,{"minProperties":1}],"oneOf":[{"maxProperties":2}],` + abSorted + `,"type":"object","x-kubernetes-unions":[` + byE + `]}`},
		{"oneOf is the union's", `{"type":"object",` + ab + `,` + oneOfAB + `,"x-kubernetes-unions":[` + byE + `]}`,
			`{"allOf":[` + coupleE + `],` + oneOfAB + `,` + abSorted + `,"type":"object","x-kubernetes-unions":[` + byE + `]}`},
		{"several", `{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}},` + plainBC + `]}`,
			`{"allOf":[{"oneOf":[{"required":["a"]}]},{"oneOf":[{"required":["b"]},{"required":["c"]},{"not":{"anyOf":[{"required":["b"]},{"required":["c"]}]}}]},{"anyOf":[{"properties":{"d":{"enum":["A"]}},"required":["a"]}]}],"properties":{"a":{},"b":{},"c":{},"d":{"enum":["A"],"type":"string"}},"type":"object","x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}},` + plainBC + `]}`},
	} {
		s := parseSchema(t, c.schema)
		before := string(s.AppendJSON(nil))
		once := Unfold(s)
		got := string(once.AppendJSON(nil))
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
		if after := string(s.AppendJSON(nil)); after != before {
			t.Errorf("%s: the input has changed to %s", c.name, after)
		}
		if twice := string(Unfold(parseSchema(t, got)).AppendJSON(nil)); twice != got {
			t.Errorf("%s: unfolded again:\n%s\nwant\n%s", c.name, twice, got)
		}
		// The same wherever a value can be, and nowhere else.
		for _, around := range []string{`{"properties":{"x":%s}}`, `{"items":%s}`, `{"additionalProperties":%s}`, `{"items":{"properties":{"a":{},"x":{"items":%s}}}}`} {
			if got := string(Unfold(parseSchema(t, fmt.Sprintf(around, c.schema))).AppendJSON(nil)); got != fmt.Sprintf(around, c.want) {
				t.Errorf("%s: in %s:\n%s", c.name, around, got)
			}
		}
		for _, around := range []string{`{"allOf":[%s]}`, `{"not":%s}`, `{"anyOf":[{"properties":{"x":%s}}]}`} {
			nested := parseSchema(t, fmt.Sprintf(around, c.schema))
			if Unfold(nested) != nested {
				t.Errorf("%s: unfolded in %s", c.name, around)
			}
		}
	}
	if Unfold(nil) != nil {
		t.Error("nil unfolds to something")
	}
}

// TestIllFormedUnions: they are not unfolded, and neither is anything else.
func TestIllFormedUnions(t *testing.T) {
	for name, src := range map[string]string{
		"no type":                 `{"properties":{"a":{},"b":{}},"x-kubernetes-unions":[{"fields":{"a":"","b":""}}]}`,
		"array":                   `{"type":"array","properties":{"a":{},"b":{}},"x-kubernetes-unions":[{"fields":{"a":"","b":""}}]}`,
		"no fields":               `{"type":"object","x-kubernetes-unions":[{}]}`,
		"no list":                 `{"type":"object","x-kubernetes-unions":{}}`,
		"malformed":               `{"type":"object","properties":{"a":{},"b":{}},"x-kubernetes-unions":[{"discriminator":1,"fields":{"a":"","b":""}}]}`,
		"unknown member":          `{"type":"object","properties":{"a":{}},"x-kubernetes-unions":[{"fields":{"a":"","b":""}}]}`,
		"unknown discriminator":   `{"type":"object","properties":{"a":{}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}]}`,
		"number as discriminator": `{"type":"object","properties":{"a":{},"d":{"type":"integer"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}]}`,
		"discriminator as member": `{"type":"object","properties":{"a":{},"d":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A","d":"D"}}]}`,
		"no value":                `{"type":"object","properties":{"a":{},"d":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":""}}]}`,
		"the same value":          `{"type":"object","properties":{"a":{},"b":{},"d":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A","b":"A"}}]}`,
		"a value for nothing":     `{"type":"object","properties":{"a":{},"b":{}},"x-kubernetes-unions":[{"fields":{"a":"A","b":""}}]}`,
		"enum without a value":    `{"type":"object","properties":{"a":{},"d":{"type":"string","enum":["B"]}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}]}`,
		"enum with other values":  `{"type":"object","properties":{"a":{},"d":{"type":"string","enum":["A","B"]}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}]}`,
		"an empty enum":           `{"type":"object","properties":{"a":{},"d":{"type":"string","enum":[]}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}]}`,
	} {
		if s := parseSchema(t, src); Unfold(s) != s || WellFormedUnions(s) != nil {
			t.Errorf("%s: %s", name, Unfold(s).AppendJSON(nil))
		}
	}
	for name, src := range map[string]string{
		"overlap":              `{"type":"object","properties":{"a":{},"b":{},"c":{}},"x-kubernetes-unions":[{"fields":{"a":"","b":""}},{"fields":{"b":"","c":""}}]}`,
		"shared discriminator": `{"type":"object","properties":{"a":{},"b":{},"d":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}},{"discriminator":"d","fields":{"b":"A"}}]}`,
	} {
		if list := WellFormedUnions(parseSchema(t, src)); len(list) != 1 || list[0].Fields[0].Name != "a" {
			t.Errorf("%s: %v", name, list)
		}
	}
}

// TestUnfoldIsLinear: ten times the members take ten times the memory.
func TestUnfoldIsLinear(t *testing.T) {
	wide := func(n int) *Schema {
		var fields, properties []string
		for i := range n {
			fields = append(fields, fmt.Sprintf(`"m%d":"V%d"`, i, i))
			properties = append(properties, fmt.Sprintf(`"m%d":{}`, i))
		}
		return parseSchema(t, `{"type":"object","properties":{"d":{"type":"string"},`+strings.Join(properties, ",")+`},"x-kubernetes-unions":[{"discriminator":"d","fields":{`+strings.Join(fields, ",")+`}}]}`)
	}
	small, large := wide(2_000), wide(20_000)
	allocs := func(s *Schema) float64 { return testing.AllocsPerRun(1, func() { Unfold(s) }) }
	if a, b := allocs(small), allocs(large); b > 15*a {
		t.Errorf("2,000 members take %v allocations, 20,000 take %v", a, b)
	}
	a, b := len(Unfold(small).AppendJSON(nil)), len(Unfold(large).AppendJSON(nil))
	if b > 15*a || a < 100_000 {
		t.Errorf("2,000 members take %d bytes, 20,000 take %d", a, b)
	}
}

// FuzzUnfold: unfolding never fails, is done once, and keeps what can be read.
func FuzzUnfold(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{},"b":{"items":{"type":"object"}},"d":{"type":"string"}},"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A","b":"B"}}],"oneOf":[{"required":["a"]}]}`))
	f.Add([]byte(`{"items":{"type":"object","properties":{"a":{},"b":{}},"x-kubernetes-unions":[{"fields":{"a":null}},{"fields":{"b":""}}]}}`))
	f.Add([]byte(`{"type":"object","properties":{"0":{}},"x-kubernetes-unions":[{"unknown":"","fields":{"0":""}}]}`))
	r := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		f.Add([]byte(randomUnions(r)))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := jsondoc.Parse(src, jsondoc.Limits{MaxDepth: 100})
		if err != nil {
			return
		}
		defer d.Release()
		s, problems := Parse(d, jsondoc.Root)
		if len(problems) > 0 {
			return
		}
		// What is malformed about unions is lost in writing them, so it is
		// what was written that is unfolded.
		s = parseSchema(t, string(s.AppendJSON(nil)))
		before := string(s.AppendJSON(nil))
		once := string(Unfold(s).AppendJSON(nil))
		if after := string(s.AppendJSON(nil)); after != before {
			t.Fatalf("%s has become %s", before, after)
		}
		if twice := string(Unfold(parseSchema(t, once)).AppendJSON(nil)); twice != once {
			t.Fatalf("%s\nunfolds to\n%s\nand that to\n%s", before, once, twice)
		}
	})
}

// randomUnions makes a schema with unions, right or wrong.
func randomUnions(r *rand.Rand) string {
	of := func(list ...string) string { return list[r.IntN(len(list))] }
	var unions []string
	for range 1 + r.IntN(3) {
		var fields []string
		for _, name := range []string{"a", "b", "c", "d"} {
			if r.IntN(2) == 0 {
				fields = append(fields, fmt.Sprintf("%q:%q", name, of("", "A", "B", "C")))
			}
		}
		unions = append(unions, fmt.Sprintf(`{"discriminator":%q,"fields":{%s}}`, of("", "d", "e", "f"), strings.Join(fields, ",")))
	}
	return fmt.Sprintf(`{"type":"object","properties":{"a":{},"b":{},"c":{},"d":{"type":"string"},"e":{"type":"string"%s}},%s"x-kubernetes-unions":[%s]}`,
		of("", `,"enum":["A","B"]`), of("", `"oneOf":[{"required":["a"]},{"required":["b"]}],`, `"allOf":[{}],`), strings.Join(unions, ","))
}
