package flood

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	webhookTime    = 30 * time.Second
	webhookLists   = 10  // in parallel, for each webhook
	webhookObjects = 200 // of a few hundred bytes, for each webhook
)

// Webhooks floods a server with lists of objects that conversion webhooks make large: just within what a list may have, far beyond it, and
// so slowly that the answer never ends. One reader in two takes its list slowly.
func Webhooks(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error {
	webhook, ca, err := launch.StartWebhook(http.HandlerFunc(floodConversion))
	if err != nil {
		return err
	}
	defer webhook.Close()
	for _, user := range []string{"flooder", "bystander"} {
		if err := grant(ctx, s, user); err != nil {
			return err
		}
	}
	var groups []string // of the resources, each with one kind of webhook
	for _, behaviour := range []string{"large", "huge", "endless"} {
		group := behaviour + ".flood.example.com"
		groups = append(groups, group)
		if err := prepareConversion(ctx, s, group, webhook.URL+"/"+behaviour, ca); err != nil {
			return err
		}
	}
	client, err := clientOf(s, "bystander")
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	stop := look(ctx, s, client, 10*time.Millisecond, func(i int) []request {
		name := fmt.Sprintf("bystander-%d", i)
		return []request{{http.MethodPost, configMaps, configMap(name)}, {http.MethodGet, configMaps + "/" + name, ""},
			{http.MethodGet, configMaps + "?limit=10", ""}, {http.MethodDelete, configMaps + "/" + name, ""}}
	})
	var o outcomes
	var tasks sync.WaitGroup
	for _, group := range groups {
		for i := range webhookLists {
			tasks.Go(func() { listConverted(ctx, s, group, i%2 == 0, &o) })
		}
	}
	tasks.Wait()
	f := stop()
	report("webhooks: %d lists in parallel for %v: %v", len(groups)*webhookLists, webhookTime, &o)
	report("webhooks: resident memory at most %d MiB; %d requests of another user, p99 %v, %d failed", f.Memory>>20, f.Requests, f.P99.Round(time.Millisecond), f.Failures)
	err = f.check("webhooks", 0)
	if o.whole.Load() == 0 || o.refused.Load() == 0 {
		err = errors.Join(err, fmt.Errorf("webhooks: %d lists were answered and %d refused: the flood was none", o.whole.Load(), o.refused.Load()))
	}
	return err
}

// floodPadding makes an object of 200 such that all together are just within what the answers to one list may have.
var floodPadding = strings.Repeat("x", 80<<10)

// prepareConversion creates a CRD whose objects a webhook converts, and objects of it.
func prepareConversion(ctx context.Context, s *launch.Server, group, url string, ca []byte) error {
	const schema = `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	if err := must(ctx, s, crds, fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.%[1]s"},"spec":{
		"group":%[1]q,"scope":"Cluster","names":{"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"},
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%[2]q,"caBundle":%[3]q}}},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":%[4]s},{"name":"v2","served":true,"storage":false,"schema":%[4]s}]}}`,
		group, url, base64.StdEncoding.EncodeToString(ca), schema)); err != nil {
		return err
	}
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	for i := range webhookObjects {
		object := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Gadget","metadata":{"name":"o-%d"}}`, group, i)
		if err := until(ctx, client, http.MethodPost, s.URL+"/apis/"+group+"/v1/gadgets", object, http.StatusCreated); err != nil {
			return err
		}
	}
	return nil
}

// floodConversion answers a ConversionReview as its path says.
func floodConversion(w http.ResponseWriter, req *http.Request) {
	var review struct {
		Request struct {
			UID               string
			DesiredAPIVersion string
			Objects           []map[string]any
		}
	}
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":%q,"result":{"status":"Success"},"convertedObjects":[`, review.Request.UID)
	if req.URL.Path == "/endless" {
		// A little at a time, until the caller has had enough.
		for req.Context().Err() == nil {
			if _, err := io.WriteString(w, floodPadding[:16<<10]); err != nil {
				return
			}
			if flusher, ok := w.(http.Flusher); ok {
				flusher.Flush()
			}
			time.Sleep(50 * time.Millisecond)
		}
		return
	}
	for i, o := range review.Request.Objects {
		o["apiVersion"] = review.Request.DesiredAPIVersion
		object, err := json.Marshal(o)
		if err != nil {
			return
		}
		comma := ","
		if i == 0 {
			comma = ""
		}
		if _, err := fmt.Fprintf(w, `%s%s,"added":"`, comma, object[:len(object)-1]); err != nil {
			return
		}
		times := 1
		if req.URL.Path == "/huge" {
			times = 16
		}
		for range times {
			if _, err := io.WriteString(w, floodPadding); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}`)
	}
	_, _ = io.WriteString(w, `]}}`)
}

// listConverted lists a resource in the version that has to be converted, again and again.
func listConverted(ctx context.Context, s *launch.Server, group string, slowly bool, o *outcomes) {
	client, err := clientOf(s, "flooder")
	if err != nil {
		o.add(0, err)
		return
	}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/apis/"+group+"/v2/gadgets", nil)
		if err != nil {
			o.add(0, err)
			return
		}
		resp, err := client.Do(req)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			o.add(0, err)
			continue
		}
		o.add(resp.StatusCode, nil)
		if slowly {
			_, _ = io.CopyN(io.Discard, resp.Body, 1<<20)
			select {
			case <-ctx.Done():
			case <-time.After(2 * time.Second):
			}
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
	}
}
