package customresource

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// If a webhook fails to convert an object, the client is told which webhook, and what
// it answered. The object is not corrupt.
func TestFailingConversionIsNamed(t *testing.T) {
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "the converter's database is down", http.StatusInternalServerError)
	}))
	defer hook.Close()
	const boxes = "/apis/example.com/v1/boxes"
	e := start(t)
	e.define(`
spec:
  group: example.com
  scope: Cluster
  names: {plural: boxes, kind: Box}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}
  - {name: v2, served: true, storage: false, schema: {openAPIV3Schema: {type: object, properties: {a: {type: string}}}}}
`, func(d map[string]any) {
		d["spec"].(map[string]any)["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
			"conversionReviewVersions": []any{"v1"},
			"clientConfig":             map[string]any{"url": hook.URL, "caBundle": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})},
		}}
	})
	v2 := strings.Replace(boxes, "v1", "v2", 1)
	e.Do("POST", boxes, `{"apiVersion":"example.com/v1","kind":"Box","metadata":{"name":"one"},"a":"1"}`).Is(http.StatusCreated)
	says := fmt.Sprintf(`conversion webhook for example.com/%%s, Kind=Box failed: Post "%s/?timeout=30s": the webhook answered 500 Internal Server Error`, hook.URL)
	for what, a := range map[string]struct{ method, path, body, from string }{
		"get":    {"GET", v2 + "/one", "", "v1"},
		"list":   {"GET", v2, "", "v1"},
		"create": {"POST", v2, `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"two"},"a":"1"}`, "v2"},
		"update": {"PUT", v2 + "/one", `{"apiVersion":"example.com/v2","kind":"Box","metadata":{"name":"one","resourceVersion":"1"},"a":"1"}`, "v1"},
		"delete": {"DELETE", v2 + "/one", "", "v1"},
	} {
		answer := e.Do(a.method, a.path, a.body).Is(http.StatusInternalServerError).Mentions(fmt.Sprintf(says, a.from))
		for _, not := range []string{"corrupt", "StorageError", "database"} {
			if strings.Contains(string(answer.Body), not) {
				t.Errorf("%s: %s", what, answer.Body)
			}
		}
	}
	e.Do("GET", boxes+"/one", "").Is(http.StatusOK)
	// The way out: an operator whose webhook is gone for good deletes what it would have converted.
	e.Do("DELETE", v2+"/one", `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}`).Is(http.StatusOK)
	e.Do("GET", boxes+"/one", "").Is(http.StatusNotFound)
}
