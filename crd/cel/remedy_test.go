package cel

import (
	"fmt"
	"strings"
	"testing"
)

// The smallest sets of bounds with which schemas keep the limits.
func TestRemedies(t *testing.T) {
	const search = `self.%[1]s.all(x, self.%[1]s.exists_one(y, x == y))`
	rule := func(list ...string) string {
		var rules []string
		for _, name := range list {
			rules = append(rules, fmt.Sprintf(`{"rule":"%s"}`, fmt.Sprintf(search, name)))
		}
		return strings.Join(rules, ",")
	}
	for _, c := range []struct{ name, schema, want string }{
		{"within the limits", specWith(`"a":{"type":"array","maxItems":4,"items":{"type":"string","maxLength":9}}`, rule("a")), "none"},
		{"one bound for two rules", specWith(`"hosts":{"type":"array","maxItems":90,"items":{"type":"string"}}`, rule("hosts", "hosts")), "maxLength 253 at /properties/spec/properties/hosts/items"},
		{"two lists", specWith(`"hosts":{"type":"array","maxItems":90,"items":{"type":"string"}},"roleArns":{"type":"array","maxItems":90,"items":{"type":"string"}}`, rule("hosts", "roleArns")),
			"maxLength 253 at /properties/spec/properties/hosts/items, maxLength 2048 at /properties/spec/properties/roleArns/items"},
		{"only together too much", specWith(`"hosts":{"type":"array","maxItems":9,"items":{"type":"string"}}`, strings.Repeat(`{"rule":"self.hosts.all(x, x != 'a')"},`, 49)+rule("hosts", "hosts")), "maxLength 253 at /properties/spec/properties/hosts/items"},
		{"real values are too much", specWith(`"caBundles":{"type":"array","maxItems":2000,"items":{"type":"string"}}`, rule("caBundles")), ""},
		{"what has no bound", `{"type":"object","x-kubernetes-validations":[{"rule":"self.metadata.name.matches('` + strings.Repeat("a", 2000) + `')"}]}`, "none"},
		{"a message", specWith(`"hosts":{"type":"array","maxItems":90,"items":{"type":"string"}}`, `{"rule":"true","messageExpression":"`+fmt.Sprintf(search, "hosts")+` ? 'a' : 'b'"}`), "maxLength 253 at /properties/spec/properties/hosts/items"},
		{"values of a map", specWith(`"hosts":{"type":"object","maxProperties":90,"additionalProperties":{"type":"string"}}`, `{"rule":"self.hosts.all(k, self.hosts.exists_one(l, self.hosts[k] == self.hosts[l]))"}`), "maxLength 253 at /properties/spec/properties/hosts/additionalProperties"},
		{"a loop around and a text", specWith(`"l":{"type":"array","items":{"type":"object","properties":{"host":{"type":"string","x-kubernetes-validations":[{"rule":"self.matches('^[a-z]+$')"}]}}}}`, `{"rule":"true"}`),
			"maxItems 1024 at /properties/spec/properties/l, maxLength 253 at /properties/spec/properties/l/items/properties/host"},
	} {
		r, err := Remedies([]byte(c.schema), CheckOptions{})
		if err != nil {
			t.Fatal(c.name, err)
		}
		got := "none"
		if r != nil {
			var list []string
			for _, b := range r.Bounds {
				list = append(list, fmt.Sprintf("%s %d at %s", b.Keyword, b.Value, b.Pointer))
				if c.schema[b.Offset] != '{' || b.Why == "" {
					t.Errorf("%s: %+v", c.name, b)
				}
			}
			got = strings.Join(list, ", ")
			if len(list) > 0 && (r.After >= r.Before || r.After != r.Bounds[len(list)-1].Total) || len(list) == 0 && r.After != r.Before {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		if got != c.want {
			t.Errorf("%s: %s, not %s", c.name, got, c.want)
		}
	}
	if _, err := Remedies([]byte(`{`), CheckOptions{}); err == nil {
		t.Error("no error for what is no JSON")
	}
}

// Many expensive rules do not take time without end: the search gives up.
func TestEffortIsBounded(t *testing.T) {
	var fields, rules []string
	for i := range 300 {
		fields = append(fields, fmt.Sprintf(`"l%d":{"type":"array","items":{"type":"string"}}`, i))
		rules = append(rules, fmt.Sprintf(`{"rule":"self.l%d.all(x, self.l%d.exists_one(y, x == y))"}`, i, (i+1)%300))
	}
	schema := specWith(strings.Join(fields, ","), strings.Join(rules, ","))
	if r, err := Remedies([]byte(schema), CheckOptions{}); err != nil || r == nil || len(r.Bounds) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if costs := costsOf(t, schema); len(costs) != 300 {
		t.Error(len(costs))
	}
}
