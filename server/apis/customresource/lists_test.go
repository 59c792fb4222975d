package customresource

import (
	"fmt"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// TestLayouts is about lists for human readers and tables: as those of Kubernetes,
// written piece by piece, until the client stops reading.
func TestLayouts(t *testing.T) {
	e := start(t)
	e.define(`
spec:
  group: example.com
  scope: Namespaced
  names: {plural: pages, kind: Page}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Title, type: string, jsonPath: .spec.title}]
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`)
	for i := range 40 {
		body := fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Page","metadata":{"name":"p%d","annotations":{"a":%q}},"spec":{"title":"t: %d",
			"numbers":[1,-0,1.0,1.5e3,9007199254740993,0.1,1e21],"empty":{},"none":[],"null":null,"text":"%s","lines":"a\nb\n","odd":"é\u0001\u2028<&>\"\\","no":"no","date":"2020-01-01","long":%q}}`,
			i, strings.Repeat("note ", 6000), i, strings.Repeat("word ", 200), strings.Repeat("x", 2000))
		if a := e.Do("POST", "/apis/example.com/v1/namespaces/n/pages", body); a.Code != 201 {
			t.Fatalf("%d: %s", a.Code, a.Body)
		}
	}
	apitest.Layouts(t, e.handler, "/apis/example.com/v1/namespaces/n/pages")
}
