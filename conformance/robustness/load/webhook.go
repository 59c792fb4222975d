package load

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A Webhook is the harness's own: it converts coins, and it admits what is labelled slow, slowly.
type Webhook struct {
	// Admission and Conversion are how long an answer takes, in nanoseconds.
	Admission, Conversion atomic.Int64
	// Broken answers with 500.
	Broken atomic.Bool

	ca     []byte
	server *httptest.Server
}

// StartWebhook serves on a free port.
func StartWebhook() (*Webhook, error) {
	h := &Webhook{}
	h.Admission.Store(int64(30 * time.Millisecond))
	mux := http.NewServeMux()
	mux.HandleFunc("/convert", h.convert)
	mux.HandleFunc("/admit", h.admit)
	var err error
	h.server, h.ca, err = launch.StartWebhook(mux)
	return h, err
}

// Close ends it. Answers that are late do not hold it up.
func (h *Webhook) Close() {
	h.server.CloseClientConnections()
	h.server.Close()
}

// Heal undoes what faults have done to it.
func (h *Webhook) Heal() {
	h.Admission.Store(int64(30 * time.Millisecond))
	h.Conversion.Store(0)
	h.Broken.Store(false)
}

func (h *Webhook) client(path string) map[string]any {
	return map[string]any{"url": h.server.URL + path, "caBundle": h.ca}
}

func (h *Webhook) convert(w http.ResponseWriter, req *http.Request) {
	var review struct {
		Request struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if h.late(w, req, &h.Conversion) {
		return
	}
	for _, o := range review.Request.Objects {
		o["apiVersion"] = review.Request.DesiredAPIVersion
	}
	reply(w, "apiextensions.k8s.io/v1", "ConversionReview", map[string]any{
		"uid": review.Request.UID, "convertedObjects": review.Request.Objects, "result": map[string]any{"status": "Success"},
	})
}

func (h *Webhook) admit(w http.ResponseWriter, req *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if h.late(w, req, &h.Admission) {
		return
	}
	reply(w, "admission.k8s.io/v1", "AdmissionReview", map[string]any{"uid": review.Request.UID, "allowed": true})
}

// late waits, and reports whether the request is answered already.
func (h *Webhook) late(w http.ResponseWriter, req *http.Request, d *atomic.Int64) bool {
	select {
	case <-req.Context().Done():
		return true
	case <-time.After(time.Duration(d.Load())):
	}
	if h.Broken.Load() {
		http.Error(w, "the webhook is broken", http.StatusInternalServerError)
		return true
	}
	return false
}

func reply(w http.ResponseWriter, version, kind string, response any) {
	w.Header().Set("Content-Type", asJSON)
	_, _ = w.Write(encode(map[string]any{"apiVersion": version, "kind": kind, "response": response}))
}

// configuration has the webhook asked about things that are labelled slow.
func (h *Webhook) configuration() []byte {
	return encode(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": map[string]any{"name": "slow." + Group},
		"webhooks": []any{map[string]any{
			"name": "slow." + Group, "sideEffects": "None", "admissionReviewVersions": []string{"v1"}, "timeoutSeconds": 5, "failurePolicy": "Fail",
			"clientConfig": h.client("/admit"), "objectSelector": map[string]any{"matchLabels": map[string]string{"slow": "yes"}},
			"rules": []any{map[string]any{"apiGroups": []string{Group}, "apiVersions": []string{"*"}, "resources": []string{Things}, "operations": []string{"CREATE", "UPDATE"}}},
		}},
	})
}
