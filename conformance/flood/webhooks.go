package flood

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// The bounds of a server whose conversion webhooks answer with too much, or too slowly.
const (
	webhookMemory  = 1 << 30     // resident, at any moment
	webhookLatency = time.Second // of another user's requests, 99th percentile
	webhookTime    = 30 * time.Second
	webhookLists   = 10  // in parallel, for each webhook
	webhookObjects = 200 // of a few hundred bytes, for each webhook
)

// Webhooks floods a server with lists of objects that conversion webhooks make large: just within what a list may have, far beyond it, and
// so slowly that the answer never ends. One reader in two takes its list slowly.
func Webhooks(ctx context.Context, s *launch.Server, report func(format string, args ...any)) error {
	f := &webhookFlood{server: s}
	if err := f.prepare(ctx); err != nil {
		return err
	}
	defer f.close()
	ctx, cancel := context.WithTimeout(ctx, webhookTime)
	defer cancel()
	var tasks sync.WaitGroup
	for _, group := range f.groups {
		for i := range webhookLists {
			tasks.Go(func() { f.list(ctx, group, i%2 == 0) })
		}
	}
	tasks.Go(func() { f.watchMemory(ctx) })
	f.bystander(ctx)
	tasks.Wait()
	return f.result(report)
}

type webhookFlood struct {
	server *launch.Server
	groups []string // of the resources, each with one kind of webhook
	close  func()

	peak, whole, refused, broken atomic.Int64
	latencies                    []time.Duration
	failures                     int
}

// floodPadding makes an object of 200 such that all together are just within what the answers to one list may have.
var floodPadding = strings.Repeat("x", 80<<10)

// prepare starts the webhooks and creates CRDs and objects.
func (f *webhookFlood) prepare(ctx context.Context) error {
	admin, err := f.server.HTTP()
	if err != nil {
		return err
	}
	signer, err := launch.NewCA()
	if err != nil {
		return err
	}
	webhook, err := startFloodWebhook(signer)
	if err != nil {
		return err
	}
	f.close = webhook.Close
	must := func(path, body string) error {
		code, text, err := floodCall(ctx, admin, http.MethodPost, f.server.URL+path, body)
		if err == nil && code != http.StatusCreated {
			err = fmt.Errorf("POST %s: %d: %.300s", path, code, text)
		}
		return err
	}
	for _, user := range []string{"flooder", "bystander"} {
		if err := must("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"flood-%[1]s"},
			"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":%[1]q}]}`, user)); err != nil {
			return err
		}
	}
	for _, behaviour := range []string{"large", "huge", "endless"} {
		group := behaviour + ".flood.example.com"
		f.groups = append(f.groups, group)
		const schema = `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
		if err := must("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.%[1]s"},"spec":{
			"group":%[1]q,"scope":"Cluster","names":{"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"},
			"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%[2]q,"caBundle":%[3]q}}},
			"versions":[{"name":"v1","served":true,"storage":true,"schema":%[4]s},{"name":"v2","served":true,"storage":false,"schema":%[4]s}]}}`,
			group, webhook.URL+"/"+behaviour, base64.StdEncoding.EncodeToString(signer.CA), schema)); err != nil {
			return err
		}
		path := "/apis/" + group + "/v1/gadgets"
		for i := range webhookObjects {
			for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) { // a CRD is served a moment after it is created
				err := must(path, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Gadget","metadata":{"name":"o-%d"}}`, group, i))
				if err == nil {
					break
				}
				if i > 0 || time.Since(begin) > 30*time.Second {
					return err
				}
			}
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

// list lists a resource in the version that has to be converted, again and again.
func (f *webhookFlood) list(ctx context.Context, group string, slowly bool) {
	client, err := f.client("flooder")
	if err != nil {
		f.broken.Add(1)
		return
	}
	defer client.CloseIdleConnections()
	for ctx.Err() == nil {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.server.URL+"/apis/"+group+"/v2/gadgets", nil)
		if err != nil {
			f.broken.Add(1)
			return
		}
		resp, err := client.Do(req)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			f.broken.Add(1)
			time.Sleep(100 * time.Millisecond)
			continue
		case resp.StatusCode == http.StatusOK:
			f.whole.Add(1)
		default:
			f.refused.Add(1)
		}
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

// bystander creates, reads and deletes objects that have nothing to do with webhooks, and notes how long each request takes.
func (f *webhookFlood) bystander(ctx context.Context) {
	client, err := f.client("bystander")
	if err != nil {
		f.failures++
		return
	}
	defer client.CloseIdleConnections()
	const path = "/api/v1/namespaces/default/configmaps"
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("bystander-%d", i)
		for _, r := range []struct{ method, path, body string }{
			{http.MethodPost, path, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"a":"b"}}`, name)},
			{http.MethodGet, path + "/" + name, ""},
			{http.MethodGet, path + "?limit=10", ""},
			{http.MethodDelete, path + "/" + name, ""},
		} {
			begin := time.Now()
			code, _, err := floodCall(ctx, client, r.method, f.server.URL+r.path, r.body)
			if ctx.Err() != nil {
				return
			}
			f.latencies = append(f.latencies, time.Since(begin))
			if err != nil || code >= http.StatusBadRequest {
				f.failures++
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (f *webhookFlood) watchMemory(ctx context.Context) {
	for ctx.Err() == nil {
		if now, err := launch.RSS(f.server.Pid); err == nil && now > f.peak.Load() {
			f.peak.Store(now)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (f *webhookFlood) client(user string) (*http.Client, error) {
	config, err := f.server.Client(user)
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// result reports the measurements and says which bound is exceeded.
func (f *webhookFlood) result(report func(format string, args ...any)) error {
	if len(f.latencies) == 0 {
		return errors.New("webhooks: the server answered no request of the other user")
	}
	slices.Sort(f.latencies)
	p99 := f.latencies[len(f.latencies)*99/100]
	report("webhooks: %d lists in parallel for %v: %d answered, %d refused, %d broken", len(f.groups)*webhookLists, webhookTime, f.whole.Load(), f.refused.Load(), f.broken.Load())
	report("webhooks: resident memory at most %d MiB; %d requests of another user, p99 %v, %d failed", f.peak.Load()>>20, len(f.latencies), p99.Round(time.Millisecond), f.failures)
	var errs []error
	if f.peak.Load() >= webhookMemory {
		errs = append(errs, fmt.Errorf("webhooks: the server took %d MiB", f.peak.Load()>>20))
	}
	if p99 >= webhookLatency {
		errs = append(errs, fmt.Errorf("webhooks: the p99 of another user's requests was %v", p99))
	}
	if f.failures > 0 {
		errs = append(errs, fmt.Errorf("webhooks: %d of %d requests of another user failed", f.failures, len(f.latencies)))
	}
	if f.whole.Load() == 0 || f.refused.Load() == 0 {
		errs = append(errs, fmt.Errorf("webhooks: %d lists were answered and %d refused: the flood was none", f.whole.Load(), f.refused.Load()))
	}
	return errors.Join(errs...)
}
