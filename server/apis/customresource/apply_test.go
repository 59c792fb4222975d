package customresource

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/storage/fieldmanager"
)

// keys is an object with many fields.
func keys(name string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":%q},"spec":{`, name)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	return b.String() + "}}"
}

// TestApplyIsBounded: the cost of an apply is quadratic in the number of fields, so
// the server rejects it above a limit.
func TestApplyIsBounded(t *testing.T) {
	for name, attended := range map[string]bool{"alone": false, "with admission": true} {
		t.Run(name, func(t *testing.T) {
			e := start(t, func(o *Options) {
				if attended {
					o.Admission = &recorder{}
				}
			})
			e.define(`
spec:
  group: example.com
  scope: Namespaced
  names: {plural: boxes, kind: Box}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, additionalProperties: {type: integer}}}}}
`)
			const path = "/apis/example.com/v1/namespaces/n/boxes"
			apply := func(name string, n, want int) {
				t.Helper()
				a := e.Do("PATCH", path+"/"+name+"?fieldManager=me&force=true", keys(name, n), "Content-Type: application/apply-patch+yaml")
				if a.Code != want || want != 413 && a.Code > 201 {
					t.Fatalf("%d keys: %d %.300s", n, a.Code, a.Body)
				}
				if want == http.StatusRequestEntityTooLarge && !strings.Contains(string(a.Body), "server-side apply is limited to 20000 fields per object, this one has ") {
					t.Errorf("%d keys: %.300s", n, a.Body)
				}
			}
			apply("small", fieldmanager.MaxFields/10, 201)
			apply("large", fieldmanager.MaxFields+1, 413)
			if a := e.Do("POST", path, keys("written", 2*fieldmanager.MaxFields)); a.Code != 201 {
				t.Fatalf("%d %.300s", a.Code, a.Body)
			}
			apply("written", 1, 413)
			// Other ways of writing go on.
			if a := e.Do("PATCH", path+"/written", `{"spec":{"k0":7}}`, "Content-Type: application/merge-patch+json"); a.Code != 200 {
				t.Errorf("%d %.300s", a.Code, a.Body)
			}
			if a := e.Do("PATCH", path+"/written", `{"spec":null}`, "Content-Type: application/merge-patch+json"); a.Code != 200 {
				t.Errorf("%d %.300s", a.Code, a.Body)
			}
			apply("written", 1, 200)
			// Fields set while managed fields are off are not lost.
			as := func(manager, body, contentType string) {
				t.Helper()
				if a := e.Do("PATCH", path+"/shared?fieldManager="+manager, body, "Content-Type: "+contentType); a.Code > 201 {
					t.Fatalf("%s: %d %.300s", manager, a.Code, a.Body)
				}
			}
			const one = `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"shared"},"spec":%s}`
			as("a", fmt.Sprintf(one, `{"f1":1,"f2":1}`), "application/apply-patch+yaml")
			as("b", strings.Replace(keys("shared", fieldmanager.MaxFields+1), `"spec":{`, `"spec":{"f1":2,`, 1), "application/merge-patch+json")
			var gone []string
			for i := range fieldmanager.MaxFields + 1 {
				gone = append(gone, fmt.Sprintf(`"k%d":null`, i))
			}
			as("b", `{"spec":{`+strings.Join(gone, ",")+`}}`, "application/merge-patch+json")
			as("a", fmt.Sprintf(one, `{"f2":1}`), "application/apply-patch+yaml")
			if a := e.Do("GET", path+"/shared", ""); !strings.Contains(string(a.Body), `"f1":2`) {
				t.Errorf("what b has set is gone: %.500s", a.Body)
			}
		})
	}
}
