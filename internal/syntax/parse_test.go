package syntax

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

func parse(t testing.TB, src string) (*Schema, []Problem) {
	t.Helper()
	d, err := jsondoc.Parse([]byte(src), jsondoc.Limits{})
	if err != nil {
		t.Fatalf("%v in %s", err, src)
	}
	s, problems := Parse(d, jsondoc.Root)
	d.Release()
	return s, problems
}

func mustParse(t testing.TB, src string) *Schema {
	t.Helper()
	s, problems := parse(t, src)
	if len(problems) > 0 {
		t.Fatalf("%v in %s", problems, src)
	}
	return s
}

// TestParse checks what is read, by writing it again.
func TestParse(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{`null`, `{}`},
		{`{}`, `{}`},
		{`{"type":"object","description":"a\u003cb"}`, `{"description":"a\u003cb","type":"object"}`},
		{`{"x-kubernetes-validations":[{"rule":"r","message":"m","reason":"x","optionalOldSelf":false,"fieldPath":".a","messageExpression":"e","more":1},null]}`,
			`{"x-kubernetes-validations":[{"fieldPath":".a","message":"m","messageExpression":"e","optionalOldSelf":false,"reason":"x","rule":"r"},{"rule":""}]}`},
		// null is nothing for a keyword, and an empty one for what a keyword holds.
		{`{"type":null,"default":null,"items":null,"properties":null,"allOf":null,"maximum":null,"maxLength":null,"nullable":null,"additionalProperties":null,"not":null,"enum":null,"x-kubernetes-list-type":null,"x-kubernetes-unions":null,"readOnly":null}`, `{}`},
		{`{"properties":{"a":null},"allOf":[null],"required":[null],"enum":[null],"dependencies":{"a":null}}`,
			`{"allOf":[{}],"dependencies":{"a":null},"enum":[null],"properties":{"a":{}},"required":[""]}`},
		// Empty is not absent.
		{`{"enum":[],"required":[],"properties":{},"allOf":[],"definitions":{},"x-kubernetes-validations":[],"$ref":"","type":"","items":[],"externalDocs":{},"x-kubernetes-unions":[{}]}`,
			`{"$ref":"","allOf":[],"definitions":{},"enum":[],"externalDocs":{},"items":[],"properties":{},"required":[],"type":"","x-kubernetes-unions":[{}],"x-kubernetes-validations":[]}`},
		// items may be anything.
		{`{"items":3}`, `{"items":null}`},
		{`{"items":"x"}`, `{"items":null}`},
		{`{"items":{"items":[{},{"type":"string"}]}}`, `{"items":{"items":[{},{"type":"string"}]}}`},
		{`{"additionalProperties":false,"additionalItems":{"type":"string"}}`, `{"additionalItems":{"type":"string"},"additionalProperties":false}`},
		{`{"dependencies":{"b":["x"],"a":{"type":"string"},"c":7}}`, `{"dependencies":{"a":{"type":"string"},"b":["x"],"c":null}}`},
		// Values become canonical, numbers keep their kind.
		{`{"default":{"b":1.0,"a":[1e2,-0]},"maximum":1e2,"maxLength":-0,"example":" "}`, `{"default":{"a":[100,0],"b":1},"example":" ","maxLength":0,"maximum":100}`},
		{`{"maximum":1e21,"minimum":0.0000001,"multipleOf":2.50}`, `{"maximum":1e+21,"minimum":1e-7,"multipleOf":2.5}`},
		{`{"externalDocs":{"url":"u","description":"d","x":1}}`, `{"externalDocs":{"description":"d","url":"u"}}`},
		{`{"x-kubernetes-unions":[{"fields":{"b":"B","a":null},"discriminator":"d"}],"readOnly":true}`, `{"readOnly":true,"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"","b":"B"}}]}`},
		// Unknown keywords stay, names are case-sensitive, the last duplicate wins.
		{`{"zzz":1,"Type":"x","a":{"c":1,"b":2},"type":"y"}`, `{"Type":"x","a":{"b":2,"c":1},"type":"y","zzz":1}`},
		{`{"type":"a","properties":{"p":{"type":"b"},"p":{"format":"c"}},"type":"d"}`, `{"properties":{"p":{"format":"c"}},"type":"d"}`},
		// What upstream does not know is no reason to refuse.
		{`{"readOnly":"yes","x-kubernetes-unions":"no"}`, `{}`},
	} {
		s := mustParse(t, c.src)
		if got := string(s.AppendJSON(nil)); got != c.want {
			t.Errorf("%s\ngot  %s\nwant %s", c.src, got, c.want)
		}
	}
	if got := string((*Schema)(nil).AppendJSON(nil)); got != "null" {
		t.Errorf("no schema is written %s", got)
	}
}

func TestProblems(t *testing.T) {
	for _, c := range []struct{ src, pointer, message string }{
		{`3`, ``, `must be a schema, but is a number`},
		{`[]`, ``, `must be a schema, but is an array`},
		{`{"type":["string"]}`, `/type`, `must be a string, but is an array`},
		{`{"nullable":"true"}`, `/nullable`, `must be a boolean, but is a string`},
		{`{"maximum":"1"}`, `/maximum`, `must be a number, but is a string`},
		{`{"maxLength":"1"}`, `/maxLength`, `must be an integer, but is a string`},
		{`{"maxLength":1.0}`, `/maxLength`, `must be an integer of 64 bits without fraction or exponent`},
		{`{"maxLength":1e3}`, `/maxLength`, `must be an integer of 64 bits without fraction or exponent`},
		{`{"maxLength":9223372036854775808}`, `/maxLength`, `must be an integer of 64 bits without fraction or exponent`},
		{`{"enum":{}}`, `/enum`, `must be an array, but is an object`},
		{`{"required":"a"}`, `/required`, `must be an array of strings, but is a string`},
		{`{"required":["a",1]}`, `/required/1`, `must be a string, but is a number`},
		{`{"properties":[]}`, `/properties`, `must be an object of schemas, but is an array`},
		{`{"properties":{"a/b":{"properties":{"~":true}}}}`, `/properties/a~1b/properties/~0`, `must be a schema, but is a boolean`},
		{`{"allOf":{}}`, `/allOf`, `must be an array of schemas, but is an object`},
		{`{"anyOf":[{},{"not":1}]}`, `/anyOf/1/not`, `must be a schema, but is a number`},
		{`{"additionalProperties":[]}`, `/additionalProperties`, `must be a schema or a boolean, but is an array`},
		{`{"additionalProperties":{"type":1}}`, `/additionalProperties/type`, `must be a string, but is a number`},
		{`{"items":[{"type":1}]}`, `/items/0/type`, `must be a string, but is a number`},
		{`{"items":[3]}`, `/items/0`, `must be a schema, but is a number`},
		{`{"dependencies":[]}`, `/dependencies`, `must be an object of schemas or arrays of strings, but is an array`},
		{`{"dependencies":{"a":[1]}}`, `/dependencies/a/0`, `must be a string, but is a number`},
		{`{"dependencies":{"a":[],"b":{"type":1}}}`, `/dependencies/b/type`, `must be a string, but is a number`},
		{`{"externalDocs":"x"}`, `/externalDocs`, `must be an object, but is a string`},
		{`{"externalDocs":{"url":1}}`, `/externalDocs/url`, `must be a string, but is a number`},
		{`{"x-kubernetes-validations":{}}`, `/x-kubernetes-validations`, `must be an array of rules, but is an object`},
		{`{"x-kubernetes-validations":["x"]}`, `/x-kubernetes-validations/0`, `must be a rule, but is a string`},
		{`{"x-kubernetes-validations":[{"rule":true}]}`, `/x-kubernetes-validations/0/rule`, `must be a string, but is a boolean`},
		{`{"x-kubernetes-preserve-unknown-fields":"true"}`, `/x-kubernetes-preserve-unknown-fields`, `must be a boolean, but is a string`},
		{`{"x-kubernetes-list-type":1}`, `/x-kubernetes-list-type`, `must be a string, but is a number`},
	} {
		s, problems := parse(t, c.src)
		if len(problems) != 1 {
			t.Errorf("%s: %v", c.src, problems)
			continue
		}
		p := problems[0]
		if p.Pointer != c.pointer || p.Message != c.message || p.Error() == "" {
			t.Errorf("%s: %v", c.src, p)
		}
		s.AppendJSON(nil) // what could be read is still a tree
	}
	if _, problems := parse(t, `{"required":[`+strings.Repeat(`1,`, 1000)+`1]}`); len(problems) != maxProblems {
		t.Errorf("%d problems", len(problems))
	}
}

func TestPositions(t *testing.T) {
	src := `{ "type": "object", "x": 1, "properties": {"b": {"enum": [1, null]}, "a": null},
	  "x-kubernetes-validations": [{"message": "m", "rule": "r", "fieldPath": null}], "default" : {"q":1}, "format": null }`
	s := mustParse(t, src)
	at := func(what string, offset int, want string) {
		t.Helper()
		if !strings.HasPrefix(src[offset:], want) {
			t.Errorf("%s is at %d: %.10s", what, offset, src[offset:])
		}
	}
	at("the schema", s.Offset, `{ "type"`)
	at("type", s.At("type"), `"object"`)
	at("format", s.At("format"), `null`)
	at("items", s.At("items"), `{ "type"`)
	at("no keyword", s.At(""), `{ "type"`)
	at("default", s.Default.Offset, `{"q"`)
	at("b", s.Properties[1].Offset, `"b"`)
	at("its schema", s.Properties[1].Schema.Offset, `{"enum"`)
	at("its enum", s.Property("b").Enum[1].Offset, `null]`)
	at("a's schema", s.Property("a").Offset, `null}`)
	at("the rule", s.Validations[0].Offset, `{"message"`)
	at("its rule", s.Validations[0].At("rule"), `"r"`)
	at("its reason", s.Validations[0].At("reason"), `{"message"`)
	at("x", s.Rare().Unknown[0].Value.Offset, `1`)
	if !s.Has("type") || s.Has("format") || s.Has("items") || s.Has("nonsense") {
		t.Error("Has is wrong")
	}
	if s.Property("c") != nil || s.ItemSchema() != nil {
		t.Error("found what is not there")
	}
	if r := &s.Validations[0]; !r.Has("rule") || r.Has("reason") || r.Has("fieldPath") {
		t.Error("Rule.Has is wrong")
	}
}

func TestDuplicates(t *testing.T) {
	src := `{"type":"a","properties":{"p":{},"p":{}},"type":"b","foo":1,"foo":2,"dependencies":{"d":1,"d":2}}`
	var got []string
	for _, d := range mustParse(t, src).Rare().Duplicates {
		got = append(got, d.In+"/"+d.Name+" "+src[d.Offset:d.Offset+4])
	}
	slices.Sort(got)
	want := []string{`/foo "foo`, `/type "typ`, `dependencies/d "d":`, `properties/p "p":`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestKeywordTable(t *testing.T) {
	names := Keywords()
	if !slices.IsSorted(names) || len(slices.Compact(names)) != len(keywords) {
		t.Error("the table is not sorted")
	}
	if len(keywords) > 64 {
		t.Error("a set has room for 64 keywords only")
	}
	for _, name := range append(names, "", "Type", "x-kubernetes-preserve-unknown-fields-too") {
		k, known := byName[name]
		if got, found := lookup([]byte(name)); got != k || found != known {
			t.Errorf("lookup(%q) = %d, %v", name, got, found)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	var src strings.Builder
	src.WriteString(`{"properties":{`)
	for i := range 100 {
		if i > 0 {
			src.WriteByte(',')
		}
		fmt.Fprintf(&src, `"field%02d":{"description":"What this field is about, and when\nto leave it out; about as long as they are.","properties":{"name":{"description":"The name of the thing that is meant.","minLength":1,"type":"string"},"values":{"items":{"enum":["A","B"],"type":"string"},"type":"array","x-kubernetes-list-type":"set"}},"required":["name"],"type":"object"}`, i)
	}
	src.WriteString(`},"type":"object"}`)
	d, err := jsondoc.Parse([]byte(src.String()), jsondoc.Limits{})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(src.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, problems := Parse(d, jsondoc.Root); problems != nil {
			b.Fatal(problems)
		}
	}
}

// TestDeep checks that the deepest document does not exhaust the stack.
func TestDeep(t *testing.T) {
	for _, level := range []struct {
		before, after string
		times         int
	}{
		{`{"not":`, `}`, 9999},
		{`{"items":`, `}`, 9999},
		{`{"allOf":[`, `]}`, 4999},
		{`{"properties":{"a":`, `}}`, 4999},
	} {
		s := mustParse(t, strings.Repeat(level.before, level.times)+`{}`+strings.Repeat(level.after, level.times))
		if len(s.AppendJSON(nil)) != level.times*len(level.before+level.after)+2 {
			t.Error("something got lost")
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"string","enum":["x",null],"default":1.0}}}`,
		`{"items":[{"type":"string"},null],"additionalItems":true,"dependencies":{"a":["b"],"c":{}}}`,
		`{"allOf":[{"anyOf":[{"not":{}}]}],"oneOf":null,"patternProperties":{"^a":{}},"foo":[1]}`,
		`{"x-kubernetes-unions":[{"discriminator":"d","fields":{"a":"A"}}],"readOnly":true,"x-kubernetes-validations":[{"rule":"r","reason":"x"}]}`,
		`{"type":1,"maxLength":1.5,"maximum":1e308,"properties":{"a":1,"a":{}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, err := jsondoc.Parse(src, jsondoc.Limits{MaxBytes: 1 << 16})
		if err != nil {
			return
		}
		s, problems := Parse(d, jsondoc.Root)
		d.Release()
		for _, p := range problems {
			if p.Offset > len(src) || p.Message == "" {
				t.Errorf("%v", p)
			}
		}
		out := s.AppendJSON(nil)
		if len(problems) > 0 {
			return
		}
		// Written and read twice, nothing changes any more. (The first time,
		// items that are no schema become null and then vanish.)
		second := mustParse(t, string(out)).AppendJSON(nil)
		if third := mustParse(t, string(second)).AppendJSON(nil); string(second) != string(third) {
			t.Errorf("%s\nbecomes\n%s\nbecomes\n%s", src, second, third)
		}
	})
}

func TestProblemsSayWhereAndWhat(t *testing.T) {
	p := Problem{Pointer: "/properties/a", Offset: 12, Message: "must be a string"}
	if got, want := p.Error(), `schema at byte 12 ("/properties/a"): must be a string`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestNumbersThatWereProblems: a schema with numbers that JSON does not have is written, too.
func TestNumbersThatWereProblems(t *testing.T) {
	d, err := jsondoc.Parse([]byte(`{"maximum":1,"type":"number"}`), jsondoc.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Release()
	s, _ := Parse(d, jsondoc.Root)
	*s.Maximum = math.Inf(1)
	if got, want := string(s.AppendJSON([]byte("x "))), `x {"maximum":null,"type":"number"}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
