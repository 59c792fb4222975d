package kinds

import (
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
)

func TestCheckDevice(t *testing.T) {
	for _, c := range []struct{ expression, want string }{
		{"true", ""},
		{`device.driver == "x"`, ""},
		{`device.attributes["x"].y`, ""},
		{`device.attributes["x"].y == 1`, ""},
		{`device.capacity["x"].y.compareTo(quantity("1")) > 0`, ""},
		{"device.allowMultipleAllocations", ""},
		{`cel.bind(x, device.attributes["x"], x.y)`, ""},
		{"1", "must evaluate to bool or the unknown type, not int"},
		{"", "compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'"},
		{"foo", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'foo' (in container '')"},
		{"device.foo", "compilation failed: ERROR: <input>:1:7: undefined field 'foo'"},
	} {
		list := plain(checkDevice(types.String(c.expression))).([]any)
		if c.want == "" && len(list) > 0 || c.want != "" && (len(list) != 1 || !strings.HasPrefix(list[0].(string), c.want)) {
			t.Errorf("%s: %q, want %q", c.expression, list, c.want)
		}
	}
}

func TestDeviceNames(t *testing.T) {
	for _, c := range []struct {
		check func(string) []string
		name  string
		valid bool
	}{
		{attributeName, "a", true},
		{attributeName, "x.y/a_B1", true},
		{attributeName, "a b", false},
		{attributeName, "", false},
		{attributeName, "/a", false},
		{attributeName, "a/", false},
		{attributeName, strings.Repeat("a", 33), false},
		{attributeName, strings.Repeat("a", 64) + "/a", false},
		{attributeFullName, "x/a", true},
		{attributeFullName, "a", false},
		{attributeFullName, "X/a", false},
		{attributeFullName, "/a", false},
		{attributeFullName, "x/", false},
		{poolName, "a/b.c", true},
		{poolName, "/", false},
		{poolName, "a/b c", false},
		{poolName, strings.Repeat("a", 254), false},
	} {
		if got := c.check(c.name); (len(got) == 0) != c.valid {
			t.Errorf("%q: %q", c.name, got)
		}
	}
}

// TestCost evaluates an expression whose cost Kubernetes' environment guesses too high.
func TestCost(t *testing.T) {
	loadAll(t)
	attributes := map[string]any{}
	for _, name := range []string{"a", "b", "c d"} {
		attributes[name] = map[string]any{"int": int64(1)}
	}
	device := &object{readTypes()["resource/v1.Device"], map[string]any{"attributes": attributes}}
	e := &expr{source: "self.attributes.filter(k, check('attribute-name', k).size() > 0)"}
	v, err := e.eval(&scope{self: device})
	if err != nil || len(plain(v).([]any)) != 1 {
		t.Errorf("%v, %v, want 1 name", v, err)
	}
}

// TestTaintTime has the time of a taint begin with its effect, unless the client says otherwise.
func TestTaintTime(t *testing.T) {
	rules := Find("resource.k8s.io", "v1", "devicetaintrules")
	rule := func(effect, added string) map[string]any {
		taint := map[string]any{"key": "a", "effect": effect}
		if added != "" {
			taint["timeAdded"] = added
		}
		tree := map[string]any{"metadata": map[string]any{"name": "r"}, "spec": map[string]any{"taint": taint}}
		if _, err := rules.Default(tree); err != nil {
			t.Fatal(err)
		}
		return tree
	}
	const before, other = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"
	for name, test := range map[string]struct {
		tree, old map[string]any
		want      string // empty for now
	}{
		"created without":  {rule("None", ""), nil, ""},
		"created with":     {rule("None", before), nil, before},
		"the same effect":  {rule("None", before), rule("None", before), before},
		"another effect":   {rule("NoExecute", before), rule("None", before), ""},
		"another and time": {rule("NoExecute", other), rule("None", before), other},
	} {
		if _, err := rules.Prepare(test.tree, test.old); err != nil {
			t.Fatal(name, err)
		}
		got := test.tree["spec"].(map[string]any)["taint"].(map[string]any)["timeAdded"]
		if test.want == "" && (got == nil || got == before) || test.want != "" && got != test.want {
			t.Errorf("%s: the time is %v, want %q", name, got, test.want)
		}
	}
}
