package scenarios

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	urns      = "urns.hazards.example.com"
	urnsStore = hazardGroup + "/urns"
	urnsOther = "/apis/hazards.example.com/v2/urns"
)

// A potter is a conversion webhook whose mind can be changed.
type potter struct {
	*hook
	mu     sync.Mutex
	answer func(w http.ResponseWriter, r *http.Request, review map[string]any)
}

func newPotter(t *testing.T) *potter {
	t.Helper()
	p := &potter{}
	p.hook = hooked(t, func(w http.ResponseWriter, r *http.Request) {
		var review map[string]any
		data, err := io.ReadAll(r.Body)
		if err == nil {
			err = json.Unmarshal(data, &review)
		}
		if err != nil {
			t.Errorf("a conversion webhook is sent %.200q: %v", data, err)
		}
		p.mu.Lock()
		answer := p.answer
		p.mu.Unlock()
		w.Header().Set("Content-Type", jsonType)
		answer(w, r, review)
	})
	p.set(p.honest)
	return p
}

func (p *potter) set(answer func(http.ResponseWriter, *http.Request, map[string]any)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = answer
}

// converted are the objects of a review in the version that is asked for.
func converted(review map[string]any) (objects []any) {
	request := review["request"].(map[string]any)
	for _, o := range request["objects"].([]any) {
		o.(map[string]any)["apiVersion"] = request["desiredAPIVersion"]
		objects = append(objects, o)
	}
	return objects
}

// replies writes an answer, after a change.
func replies(w io.Writer, review map[string]any, change func(response map[string]any)) {
	response := map[string]any{"uid": review["request"].(map[string]any)["uid"], "result": map[string]any{"status": "Success"}, "convertedObjects": converted(review)}
	change(response)
	delete(review, "request")
	review["response"] = response
	_ = json.NewEncoder(w).Encode(review)
}

func (p *potter) honest(w http.ResponseWriter, _ *http.Request, review map[string]any) {
	replies(w, review, func(map[string]any) {})
}

// lying answers with a changed review.
func lying(change func(response map[string]any)) func(http.ResponseWriter, *http.Request, map[string]any) {
	return func(w http.ResponseWriter, _ *http.Request, review map[string]any) { replies(w, review, change) }
}

// firstOf is the first object of an answer.
func firstOf(response map[string]any) map[string]any {
	return response["convertedObjects"].([]any)[0].(map[string]any)
}

// pottery makes the CRD of urns, in two versions, and two of them.
func (c *customs) pottery(p *potter) {
	c.t.Helper()
	bundle := encode(c.t, certificateOf(p.Server))
	c.call(http.MethodPost, crdsPath, jsonType, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":%q},
"spec":{"group":"hazards.example.com","scope":"Cluster","names":{"plural":"urns","kind":"Urn"},"versions":[
{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}},
{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}],
"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"%s/convert","caBundle":%s}}}}}`, urns, p.URL, bundle)).is(http.StatusCreated)
	for _, name := range []string{"one", "two"} {
		eventually(c.t, soon, "urns are made", func() bool {
			return c.call(http.MethodPost, urnsStore, jsonType, hazard("Urn", name, `{"size":1}`)).code == http.StatusCreated
		})
	}
}

// Conversion webhooks that fail, lie or redirect fail the requests that need them, and those only.
func TestFailingConversions(t *testing.T) {
	c := newCustoms(t)
	p, elsewhere := newPotter(t), admitting(t, nil)
	c.pottery(p)
	c.call(http.MethodGet, urnsOther+"/one", "", "").is(http.StatusOK, `"size":1`, `"apiVersion":"hazards.example.com/v2"`)
	plain := func(code int, body string) func(http.ResponseWriter, *http.Request, map[string]any) {
		return func(w http.ResponseWriter, _ *http.Request, _ map[string]any) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request, map[string]any){
		"broken": plain(http.StatusInternalServerError, "out of order"),
		"html":   plain(http.StatusOK, "<html>"),
		"empty":  plain(http.StatusOK, "{}"),
		"huge":   lying(func(r map[string]any) { r["padding"] = strings.Repeat("x", 8<<20) }), // and otherwise the truth
		"redirect": func(w http.ResponseWriter, r *http.Request, _ map[string]any) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		},
		"uid":       lying(func(r map[string]any) { r["uid"] = "of another request" }),
		"failure":   lying(func(r map[string]any) { r["result"] = map[string]any{"status": "Failed", "message": "no clay"} }),
		"fewer":     lying(func(r map[string]any) { r["convertedObjects"] = []any{} }),
		"more":      lying(func(r map[string]any) { r["convertedObjects"] = append(r["convertedObjects"].([]any), firstOf(r)) }),
		"name":      lying(func(r map[string]any) { firstOf(r)["metadata"].(map[string]any)["name"] = "other" }),
		"identity":  lying(func(r map[string]any) { firstOf(r)["metadata"].(map[string]any)["uid"] = "mine" }),
		"version":   lying(func(r map[string]any) { firstOf(r)["apiVersion"] = "hazards.example.com/v9" }),
		"kind":      lying(func(r map[string]any) { firstOf(r)["kind"] = "Secret" }),
		"no object": lying(func(r map[string]any) { r["convertedObjects"] = []any{"urn"} }),
	} {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			p.set(answer)
			c.call(http.MethodGet, urnsOther+"/one", "", "").is(http.StatusInternalServerError, "conversion webhook for hazards.example.com")
			c.call(http.MethodPost, urnsOther, jsonType, strings.Replace(hazard("Urn", "three", `{}`), "/v1", "/v2", 1)).is(http.StatusInternalServerError)
			c.call(http.MethodGet, urnsStore+"/one", "", "").is(http.StatusOK, `"size":1`)
		})
	}
	if n := len(elsewhere.reviews()); n != 0 || c.etcd.count("/hazards.example.com/urns/three") != 0 {
		t.Errorf("%d requests were redirected, and there are %d urns that could not be made", n, c.etcd.count("/hazards.example.com/urns/three"))
	}
	p.set(lying(func(r map[string]any) { // what the schema does not specify does not come through conversions either
		firstOf(r)["spec"] = map[string]any{"size": 3, contraband: "x"}
	}))
	if a := c.call(http.MethodGet, urnsOther+"/one", "", "").is(http.StatusOK, `"size":3`); strings.Contains(a.body, contraband) {
		t.Errorf("a conversion smuggles: %s", a.body)
	}
	p.set(p.honest)
	c.call(http.MethodGet, urnsOther+"/one", "", "").is(http.StatusOK)
	p.discreet(t)
	p.Close()
	c.call(http.MethodGet, urnsOther+"/one", "", "").is(http.StatusInternalServerError, "conversion webhook for hazards.example.com")
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("free", "none", `{"owner":"ada"}`)).is(http.StatusCreated)
}

// Requests that hang in a slow conversion webhook do not slow down others, and hang no longer than their callers want.
func TestSlowConversions(t *testing.T) {
	c := newCustoms(t)
	p := newPotter(t)
	sluice := newSluice(t)
	c.pottery(p)
	pilot := others(t, c.server)
	before, _ := pilot.latencies("before")
	p.set(func(w http.ResponseWriter, r *http.Request, review map[string]any) {
		sluice.wait(r)
		p.honest(w, r, review)
	})
	answers := crowded(t, c.caller, func(int) (string, string, string, string) {
		return http.MethodGet, urnsOther + "/one?timeout=25s", "", ""
	})
	hangs := func() bool { return sluice.waiting.Load() >= stuck }
	eventually(t, soon, "requests hang", hangs)
	pilot.unaffected(hangs, "meanwhile", before)
	c.call(http.MethodGet, urnsStore+"/one", "", "").is(http.StatusOK)
	for _, path := range []string{urnsOther + "/one?timeout=2s", urnsOther + "?timeout=2s"} {
		if a := c.call(http.MethodGet, path, "", ""); a.code < 500 || a.took > 10*time.Second {
			t.Errorf("%s: who has two seconds is answered after %v: %d %s", path, a.took, a.code, a.body)
		}
	}
	sluice.release()
	if codes := answers(); codes[http.StatusOK] != stuck {
		t.Errorf("once the webhook answers: %v", codes)
	}
	p.discreet(t)
}
