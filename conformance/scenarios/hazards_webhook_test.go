package scenarios

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A conversion webhook that sends the server elsewhere is not followed (CVE-2022-3172).
func TestConversionWebhookRedirects(t *testing.T) {
	var followed, asked atomic.Int64
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		followed.Add(1)
		_, _ = fmt.Fprint(w, `{}`)
	}))
	defer elsewhere.Close()
	status := atomic.Int64{}
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/elsewhere") {
			followed.Add(1)
			return
		}
		asked.Add(1)
		w.Header().Set("Location", []string{elsewhere.URL + "/", "/elsewhere"}[asked.Load()%2])
		w.WriteHeader(int(status.Load()))
	}))
	defer webhook.Close()
	bundle, err := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw}))
	if err != nil {
		t.Fatal(err)
	}
	a := newAttacker(t, alike(t, against, prefix()))
	a.made(crdsPath, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"urns.hazards.example.com"},
"spec":{"group":"hazards.example.com","scope":"Cluster","names":{"plural":"urns","kind":"Urn"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}],
"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"%s/convert","caBundle":%s}}}}}`, webhook.URL, bundle))
	eventually(t, 30*time.Second, "urns are made", func() bool {
		status, _, _ := a.send(http.MethodPost, hazardGroup+"/urns", jsonType, hazard("Urn", "one", `{}`))
		return status == http.StatusCreated
	})
	for _, code := range []int64{301, 302, 303, 307, 308} {
		status.Store(code)
		for range 2 {
			if got, _, answer := a.send(http.MethodGet, "/apis/hazards.example.com/v2/urns/one", "", ""); got < 400 {
				t.Errorf("a webhook that answers %d: %d: %s", code, got, answer)
			}
		}
	}
	if asked.Load() == 0 || followed.Load() != 0 {
		t.Errorf("the webhook was asked %d times, and %d times it was followed to elsewhere", asked.Load(), followed.Load())
	}
	// The stored version needs no webhook.
	if got, _, answer := a.send(http.MethodGet, hazardGroup+"/urns/one", "", ""); got != http.StatusOK {
		t.Errorf("the stored version: %d: %s", got, answer)
	}
}
