package builtin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// TestLayouts is about lists for human readers and tables; see its namesake in
// package custom.
func TestLayouts(t *testing.T) {
	e := start(t)
	if a := e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`); a.Code != 201 {
		t.Fatalf("%d: %s", a.Code, a.Body)
	}
	for i := range 40 {
		body := fmt.Sprintf(`{"metadata":{"name":"c%d","annotations":{"a":%q}},"data":{"a":"1","b":"yes","c":"l1\nl2: x\n","d":%q,"e":"\"\\<>"},"binaryData":{"z":"AAEC"}}`,
			i, strings.Repeat("note ", 6000), strings.Repeat("word ", 300))
		if a := e.Do("POST", "/api/v1/namespaces/n/configmaps", body); a.Code != 201 {
			t.Fatalf("%d: %s", a.Code, a.Body)
		}
	}
	apitest.Layouts(t, withFilters(e.resources), "/api/v1/namespaces/n/configmaps")
}

// TestApplyIsBounded: see its namesake in package custom.
func TestApplyIsBounded(t *testing.T) {
	e := start(t)
	if a := e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`); a.Code != 201 {
		t.Fatalf("%d: %s", a.Code, a.Body)
	}
	for n, want := range map[int]int{1000: 201, 25_000: 413} {
		var data []string
		for i := range n {
			data = append(data, fmt.Sprintf(`"k%d":"v"`, i))
		}
		name := fmt.Sprintf("c%d", n)
		body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{` + strings.Join(data, ",") + `}}`
		a := e.Do("PATCH", "/api/v1/namespaces/n/configmaps/"+name+"?fieldManager=me", body, "Content-Type: application/apply-patch+yaml")
		if a.Code != want {
			t.Errorf("%d keys: %d %.300s", n, a.Code, a.Body)
		}
	}
}

// Managed fields that are not sorted take quadratic time to decode.
func TestManagedFieldsAreBounded(t *testing.T) {
	e := start(t)
	if a := e.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`); a.Code != 201 {
		t.Fatalf("%d: %s", a.Code, a.Body)
	}
	const path = "/api/v1/namespaces/n/configmaps"
	if a := e.Do("POST", path, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}`); a.Code != 201 {
		t.Fatalf("%d: %s", a.Code, a.Body)
	}
	managed := func(n int) string {
		var fields []string
		for i := range n {
			fields = append(fields, fmt.Sprintf(`"f:%07d":{}`, n-i))
		}
		return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s","managedFields":[{"manager":"m","operation":"Update","apiVersion":"v1","time":"2024-01-01T00:00:00Z",` +
			`"fieldsType":"FieldsV1","fieldsV1":{` + strings.Join(fields, ",") + `}}]},"data":{"a":"b"}}`
	}
	for _, c := range []struct{ method, path, name, contentType string }{
		{"POST", path + "?dryRun=All", "new", "application/json"},
		{"PUT", path + "/a", "a", "application/json"},
		{"PATCH", path + "/a", "a", "application/merge-patch+json"},
		{"PATCH", path + "/a", "a", "application/strategic-merge-patch+json"},
	} {
		a := e.Do(c.method, c.path, fmt.Sprintf(managed(25_000), c.name), "Content-Type: "+c.contentType)
		if strings.Contains(c.contentType, "strategic") {
			if a.Code != 400 || !strings.Contains(string(a.Body), "metadata.managedFields has too many fields") {
				t.Errorf("%s: %d %.300s", c.contentType, a.Code, a.Body)
			}
		} else if a.Code > 201 || strings.Contains(string(a.Body), "f:0024999") {
			t.Errorf("%s %s %s: %d %.300s", c.method, c.path, c.contentType, a.Code, a.Body)
		}
		if a := e.Do(c.method, c.path, fmt.Sprintf(managed(5_000), c.name), "Content-Type: "+c.contentType); a.Code != 200 && a.Code != 201 {
			t.Errorf("%s %s %s with fewer: %d %.300s", c.method, c.path, c.contentType, a.Code, a.Body)
		}
	}
}
