package cel

import (
	"strings"
	"testing"
)

// CEL evaluates literals while it plans a program. What panics there must be an
// error of the rule: a CRD must not end the process.
func TestLiteralThatPanics(t *testing.T) {
	schema := specWith(`"a":{"type":"integer"}`, `{"rule":"{b'a': 1}.size() == 1"},{"rule":"true","messageExpression":"string({b'a': 1}.size())"}`)
	found := checked(t, schema, CheckOptions{})
	if len(found) != 2 || !strings.Contains(found[0].Detail, "program instantiation failed: internal error: ") ||
		!strings.Contains(found[1].Detail, "messageExpression instantiation failed: internal error: ") {
		t.Errorf("%v", found)
	}
	v := validate(t, schema, `{"spec":{"a":1}}`, "")
	if len(v.Errors) != 1 || !strings.Contains(v.Errors[0].Detail, "rule compile error: program instantiation failed: internal error: ") {
		t.Errorf("%v", v.Errors)
	}
}

// The error of a key that is a list or an object names the API server's Go type.
func TestKeyOfWrongType(t *testing.T) {
	const list = `{"type":"array","maxItems":3,"items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]}`
	v := validate(t, specWith(`"o":{"type":"object","properties":{"k":{"type":"string"}}},"l":`+list+`},"m":`+list+`,"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]},`+
		`"s":{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`,
		`{"rule":"{}[self.o] == 1"},{"rule":"{}[self.l] == 1"},{"rule":"{}[self.m] == 1"},{"rule":"{}[self.s] == 1"},{"rule":"{}[self.m + []] == 1"},{"rule":"{}[self.s + []] == 1"}`),
		`{"spec":{"o":{},"l":[],"m":[],"s":[]}}`, "")
	for i, name := range []string{"unstructuredMap", "unstructuredList", "unstructuredMapList", "unstructuredSetList", "refValMapList", "refValSetList"} {
		if len(v.Errors) != 6 || !strings.HasPrefix(v.Errors[i].Detail, "invalid qualifier type: *common."+name+" evaluating rule: ") {
			t.Errorf("%s: %v", name, v.Errors)
		}
	}
}
