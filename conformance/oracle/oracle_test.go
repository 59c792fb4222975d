package oracle

import (
	"slices"
	"strings"
	"testing"
)

func TestResults(t *testing.T) {
	for name, c := range map[string]struct {
		schema string
		status bool
		want   []string // parts of the errors, in order
	}{
		"accepted":       {schema: `{"type":"object"}`},
		"no type":        {schema: `{}`, want: []string{`type: Required value: must not be empty at the root`}},
		"bad rule":       {schema: `{"type":"object","x-kubernetes-validations":[{"rule":"self =="}]}`},
		"costly rule":    {schema: `{"type":"object","properties":{"a":{"type":"array","items":{"type":"string"},"x-kubernetes-validations":[{"rule":"self.all(x, self.all(y, self.all(z, x == y)))"}]}}}`},
		"blank rule":     {schema: `{"type":"object","x-kubernetes-validations":[{"rule":" "}]}`, want: []string{`x-kubernetes-validations[0].rule: Required value: rule is not specified`}},
		"reason":         {schema: `{"type":"object","x-kubernetes-validations":[{"rule":"true","reason":"No"}]}`, want: []string{`reason: Unsupported value: "No"`}},
		"bad default":    {schema: `{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}`},
		"default at top": {schema: `{"type":"object","properties":{"kind":{"type":"string","default":"x"}}}`, want: []string{`default: Forbidden: must not be set in top-level kind`}},
		"status":         {schema: `{"type":"object","anyOf":[{"required":["a"]}]}`, status: true, want: []string{`only [Description Type`}},
		"twice":          {schema: `{"type":"object","properties":{"a":{},"b":{}}}`, want: []string{`properties[a].type: Required`, `properties[b].type: Required`}},
	} {
		v := Check([]byte(c.schema), c.status)
		if v.Undecodable != nil || len(v.Elsewhere) > 0 {
			t.Errorf("%s: %v %v", name, v.Undecodable, v.Elsewhere)
		}
		if !slices.EqualFunc(v.Errors, c.want, strings.Contains) {
			t.Errorf("%s: %q", name, v.Errors)
		}
	}
}

func TestWhatIsTakenOutIsKept(t *testing.T) {
	if v := Check([]byte(`{"type":"object","x-kubernetes-validations":[{"rule":"self =="}]}`), false); len(v.CEL) != 1 || !v.Accepted() {
		t.Errorf("CEL: %+v", v)
	}
	if v := Check([]byte(`{"type":"object","properties":{"a":{"type":"integer","default":"x"}}}`), false); len(v.Defaults) != 1 || !v.Accepted() {
		t.Errorf("defaults: %+v", v)
	}
}

func TestUndecodable(t *testing.T) {
	for _, schema := range []string{``, `[]`, `{"type":3}`, `{"maxLength":1.5}`, `{"additionalProperties":3}`, `{"type":"object"`} {
		if v := Check([]byte(schema), false); v.Undecodable == nil {
			t.Errorf("%q was decoded", schema)
		}
	}
	// what the reference's decoder lets pass
	for _, schema := range []string{`null`, `{"type":"object","items":3}`, `{"type":"object","Type":3,"unknown":1e400}`, `{"type":"object","properties":{"a":null}}`} {
		if v := Check([]byte(schema), false); v.Undecodable != nil {
			t.Errorf("%q: %v", schema, v.Undecodable)
		}
	}
}

func TestNormalize(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"type":"integer","default":7},"n":{"type":"string"},"t":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ in, request, storage, unknown string }{
		{`{"x":1,"n":null,"metadata":{"name":"m","foo":1}}`, `{"a":7,"metadata":{"name":"m"}}`, `{"a":7,"metadata":{"generation":1,"name":"m"}}`, `metadata.foo x`},
		{`{"metadata":{"name":3,"uid":"u"}}`, `refused`, `{"a":7,"metadata":{"generation":1,"uid":"u"}}`, ``},
		{`{"kind":3}`, `refused`, `refused`, ``},
		{`{"apiVersion":"a/b/c"}`, `refused`, `refused`, ``},
		{`null`, `malformed`, `malformed`, ``},
		{`[]`, `malformed`, `malformed`, ``},
		{`{"a":1,"a":2}`, `{"a":2}`, `{"a":2}`, ``},
		{`{"t":{"kind":3}}`, `refused`, `{"a":7,"t":{}}`, ``},
	} {
		for source, want := range map[Source]string{Request: c.request, Storage: c.storage} {
			out := s.Normalize([]byte(c.in), source)
			if got := strings.SplitN(out.String(), "\n", 2)[0]; got != want && !(out.Err != nil && strings.HasPrefix(got, want)) {
				t.Errorf("%s of %s: %s, want %s", source, c.in, got, want)
			}
			if got := strings.Join(out.Unknown, " "); got != c.unknown && out.Err == nil {
				t.Errorf("%s of %s: unknown %q, want %q", source, c.in, got, c.unknown)
			}
		}
	}
}

func TestValidate(t *testing.T) {
	s, err := Compile([]byte(`{"type":"object","properties":{"a":{"type":"string","maxLength":2,"x-kubernetes-validations":[{"rule":"self != 'b'"},{"rule":"self == oldSelf"}]},"n":{"type":"integer","maximum":3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		object string
		o      ValidateOptions
		want   string
	}{
		{`{"a":"x"}`, ValidateOptions{}, "valid"},
		{`{"a":"b"}`, ValidateOptions{}, `a: Invalid value: "b": failed rule: self != 'b'`},
		{`{"a":"b"}`, ValidateOptions{NoRules: true}, "valid"},
		{`{"a":"b"}`, ValidateOptions{Old: []byte(`{"a":"b"}`), Ratchet: true}, `warning: a: Invalid value: "b": failed rule: self != 'b'`},
		{`{"a":"b"}`, ValidateOptions{Old: []byte(`{"a":"c"}`)}, "a: Invalid value: \"b\": failed rule: self != 'b'\na: Invalid value: \"b\": failed rule: self == oldSelf"},
		{`{"n":5}`, ValidateOptions{Old: []byte(`{"n":5,"a":"x"}`), Ratchet: true}, "valid"},
		{`{"n":5}`, ValidateOptions{Old: []byte(`{"n":5}`)}, "n: Invalid value: 5: n in body should be less than or equal to 3"},
		{`{"metadata":{"name":"n"}}`, ValidateOptions{Scope: Cluster}, "valid"},
		{`[]`, ValidateOptions{}, "malformed"},
	} {
		v := s.Validate([]byte(c.object), c.o)
		if got := v.Text(); got != c.want && !(c.want == "malformed" && v.Undecodable != nil) {
			t.Errorf("%s %+v: %s, want %s", c.object, c.o, got, c.want)
		}
	}
	if v := s.Validate([]byte(`{"a":1}`), ValidateOptions{}); !v.Blocked || len(v.Errors) != 2 {
		t.Error(v.String())
	}
}

func TestCosts(t *testing.T) {
	costs, rules, err := Costs([]byte(`{"type":"object","properties":{"l":{"type":"array","maxItems":5,"items":{"type":"integer","x-kubernetes-validations":[{"rule":"self > 1","messageExpression":"'x'"},{"rule":"self =="}]}}}}`))
	if err != nil || rules != 2 || len(costs) != 2 {
		t.Fatal(costs, rules, err)
	}
	if costs[1].Path != "properties[l].items.x-kubernetes-validations[0].rule" || costs[1].Times != 5 || costs[1].Total != 5*costs[1].Cost {
		t.Error(costs)
	}
}
