package customresource

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

const (
	anyBoxes = `
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, x-kubernetes-preserve-unknown-fields: true}}}}
`
	boxesPath = "/apis/example.com/v1/namespaces/n/boxes"
)

// boxOf is an object with a spec.
func boxOf(name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":%q},"spec":%s}`, name, spec)
}

// deep wraps a value into many objects, each with what stands before the next.
func deep(levels int, before, value string) string {
	return strings.Repeat("{"+before+`"a":`, levels) + value + strings.Repeat("}", levels)
}

// TestDeepObjectsAreNotIndented: the white space before a line is as long as the
// line is deep, so that 56 KB would become 400 MB.
func TestDeepObjectsAreNotIndented(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	e.Do("POST", boxesPath, boxOf("deep", deep(9000, "", "["+strings.Repeat("1,", 1000)+"1]"))).Is(201)
	for _, path := range []string{boxesPath + "/deep", boxesPath} {
		plain := e.Do("GET", path, "").Is(200)
		if a := e.Do("GET", path+"?pretty=true", "").Is(200); len(a.Body) > 2*len(plain.Body) {
			t.Errorf("%s: %d bytes with indentation, %d without", path, len(a.Body), len(plain.Body))
		}
		a := e.Do("GET", path, "", "Accept: application/yaml")
		if a.Code != http.StatusNotAcceptable || !strings.Contains(string(a.Body), "ask for JSON") {
			t.Errorf("%s: %d, %d bytes: %.300s", path, a.Code, len(a.Body), a.Body)
		}
	}
	// Words may be on lines of their own, in YAML.
	e.Do("POST", boxesPath, boxOf("words", deep(5000, "", `"`+strings.Repeat("a ", 1000)+`"`))).Is(201)
	if a := e.Do("GET", boxesPath+"/words", "", "Accept: application/yaml"); a.Code != http.StatusNotAcceptable {
		t.Errorf("%d, %d bytes", a.Code, len(a.Body))
	}
}

// TestWhatCannotBeYAML: an item that has no form in YAML has the list answered
// with the reason.
func TestWhatCannotBeYAML(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	e.Do("POST", boxesPath, boxOf("control", `{"a":"\u007f"}`)).Is(201)
	one := e.Do("GET", boxesPath+"/control", "", "Accept: application/yaml")
	for _, accept := range []string{"application/yaml", "application/yaml;as=Table;v=v1;g=meta.k8s.io"} {
		a := e.Do("GET", boxesPath+"?includeObject=Object", "", "Accept: "+accept)
		says := strings.Join(strings.Fields(string(a.Body)), " ")
		if a.Code != one.Code || !strings.Contains(says, "NotAcceptable") || !strings.Contains(says, "s 0 to 0 of the answer cannot be written as YAML: yaml: control characters are not allowed") {
			t.Errorf("%s: %d %.300s, alone %d %.300s", accept, a.Code, a.Body, one.Code, one.Body)
		}
	}
}

// TestDeepApplyIsBounded: an apply takes the length of the paths of its fields.
func TestDeepApplyIsBounded(t *testing.T) {
	e := start(t)
	e.define(anyBoxes)
	apply := func(name, spec string, want int) {
		t.Helper()
		a := e.Do("PATCH", boxesPath+"/"+name+"?fieldManager=me&force=true", boxOf(name, spec), "Content-Type: application/apply-patch+yaml")
		if a.Code != want || want == 413 && !strings.Contains(string(a.Body), "server-side apply is limited to 500000 for the sum of the depths of all fields") {
			t.Errorf("%s: %d %.300s", name, a.Code, a.Body)
		}
	}
	apply("deep", deep(9000, `"l0":1,`, "1"), 413)
	apply("items", deep(4000, "", "["+strings.Repeat("1,", 10_000)+"1]"), 413) // less than 80 KB
	var wide strings.Builder
	for i := range 2850 { // 19,950 fields
		fmt.Fprintf(&wide, `"k%d":{"b":{"c":{"d":{"e":{"f":{"g":1}}}}}},`, i)
	}
	apply("wide", "{"+wide.String()+`"end":1}`, 201)
}
