package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/results"
	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/internal/costtest"
)

var figures = results.New("bench-conversion")

var (
	count  = flag.Int("objects", 10_000, "objects in a list")
	rounds = flag.Int("rounds", 7, "how often each list is measured")
)

//go:embed crd.yaml
var definition []byte

func main() {
	flag.Parse()
	launch.Main("bench-conversion", run)
}

func run(ctx context.Context, dir string) error {
	document, err := yaml.YAMLToJSON(definition)
	if err != nil {
		return err
	}
	plan, err := compile(document)
	if err != nil {
		return err
	}
	other, err := compile(bytes.ReplaceAll(document, []byte("bench.example.com"), []byte("hook.example.com")))
	if err != nil {
		return err
	}
	micros, err := single(plan)
	if err != nil {
		return err
	}
	b := &bench{plan: other}
	if err := b.start(ctx, dir); err != nil {
		return err
	}
	defer b.stop()
	ratio, against, err := b.lists(ctx, document)
	if err != nil {
		return err
	}
	figures.Set("object", "%.1f µs", micros)
	figures.Set("list", "%.2f", ratio)
	figures.Set("webhook", "%.1f", against)
	fmt.Printf("conversion: %.1f µs for 2 KB | list10k x%.2f | webhook/ours %.1f\n", micros, ratio, against)
	return figures.Save()
}

func compile(document []byte) (*conversion.Plan, error) {
	d, err := crd.Parse(document)
	if err != nil {
		return nil, err
	}
	plan, found, err := conversion.Compile(d)
	if len(found) > 0 {
		err = found[0]
	}
	return plan, err
}

// object returns an object of about 2 KB in v1, as a server stores it.
func object(i int) []byte {
	var ports, env []string
	for p := range 10 {
		ports = append(ports, fmt.Sprintf(`{"name":"port-%d","number":%d,"tls":%t}`, p, 8000+p, p%2 == 0))
		env = append(env, fmt.Sprintf(`"VARIABLE_%d":"%s"`, p, strings.Repeat("value ", 8)))
	}
	return fmt.Appendf(nil, `{"apiVersion":"bench.example.com/v1","kind":"Widget","metadata":{"labels":{"app":"web"},"name":"w-%05d","namespace":"default"},"spec":{"capacity":{"size":%d,"unit":"Gi"},`+
		`"environment":{%s},"hosts":["www.example.com"],"image":{"name":"registry.example.com/team/image","tag":"1.2.3"},"mode":"a","note":%q,"port":5432,"ports":[%s],"server":"db.example.com"},"status":{"ready":true}}`,
		i, i, strings.Join(env, ","), strings.Repeat("some text ", 40), strings.Join(ports, ","))
}

// single measures the conversion of one object, there and back; the slower direction counts.
func single(plan *conversion.Plan) (float64, error) {
	in := object(1)
	there, err := plan.Convert(nil, in, "v1alpha1")
	if err != nil {
		return 0, err
	}
	back, err := plan.Convert(nil, there, "v1")
	if err != nil {
		return 0, err
	}
	if !bytes.Equal(in, back) {
		return 0, fmt.Errorf("the object came back as %s", back)
	}
	slowest := 0.0
	for _, c := range []struct {
		object []byte
		to     string
	}{{in, "v1alpha1"}, {there, "v1"}} {
		const times = 2000
		best := 0.0
		buf := make([]byte, 0, 8<<10)
		for range 20 {
			// Processor time: other programs on the machine do not count.
			took := costtest.Time(func() {
				for range times {
					if _, err = plan.Convert(buf[:0], c.object, c.to); err != nil {
						return
					}
				}
			})
			if err != nil {
				return 0, err
			}
			if each := took.Seconds() * 1e6 / times; best == 0 || each < best {
				best = each
			}
		}
		fmt.Printf("to %-8s %4d bytes: %.1f µs of processor time, the best of 20 runs\n", c.to, len(c.object), best)
		slowest = max(slowest, best)
	}
	return slowest, nil
}

// bench is a server and a webhook.
type bench struct {
	plan    *conversion.Plan // of the webhook
	etcd    *launch.Etcd
	server  *launch.Server
	client  *http.Client
	hook    string
	ca      []byte
	calls   atomic.Int64
	closers []func()
}

func (b *bench) start(ctx context.Context, dir string) error {
	program, err := launch.Espalier.Program(ctx, dir)
	if err != nil {
		return err
	}
	if b.etcd, err = launch.StartEtcd(ctx, "--unsafe-no-fsync"); err != nil {
		return err
	}
	b.closers = append(b.closers, b.etcd.Stop)
	hook, ca, err := launch.StartWebhook(http.HandlerFunc(b.review))
	if err != nil {
		return err
	}
	b.closers = append(b.closers, hook.Close)
	b.hook, b.ca = hook.URL, ca
	if b.server, err = launch.StartServer(ctx, launch.Spec{Binary: program, Etcd: b.etcd.URL, Prefix: "/bench"}); err != nil {
		return err
	}
	b.closers = append(b.closers, b.server.Stop)
	b.client, err = rest.HTTPClientFor(b.server.Config)
	return err
}

func (b *bench) stop() {
	for _, f := range slices.Backward(b.closers) {
		f()
	}
}

// review is a conversion webhook that uses the same rules.
func (b *bench) review(w http.ResponseWriter, req *http.Request) {
	b.calls.Add(1)
	var review struct {
		APIVersion string `json:"apiVersion"`
		Request    struct {
			UID     string            `json:"uid"`
			Desired string            `json:"desiredAPIVersion"`
			Objects []json.RawMessage `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	_, version, _ := strings.Cut(review.Request.Desired, "/")
	out := fmt.Appendf(nil, `{"apiVersion":%q,"kind":"ConversionReview","response":{"uid":%q,"result":{"status":"Success"},"convertedObjects":[`, review.APIVersion, review.Request.UID)
	for i, o := range review.Request.Objects {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = b.plan.Convert(out, o, version); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(out, "]}}"...))
}

// do makes a request, and returns the time until the whole answer is read.
func (b *bench) do(ctx context.Context, method, path string, body []byte) ([]byte, time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, method, b.server.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	resp, err := b.client.Do(req)
	if err != nil {
		return nil, 0, err
	}
	answer, err := io.ReadAll(resp.Body)
	took := time.Since(began)
	if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode >= 300 {
		err = fmt.Errorf("%s %s: %s: %.300s", method, path, resp.Status, answer)
	}
	return answer, took, err
}

const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

// install creates a CRD, and objects in its stored version.
func (b *bench) install(ctx context.Context, document []byte, group string) error {
	if _, _, err := b.do(ctx, http.MethodPost, crds, document); err != nil {
		return err
	}
	path := "/apis/" + group + "/v1/namespaces/default/widgets"
	for deadline := time.Now().Add(time.Minute); ; launch.Pause(ctx, 50*time.Millisecond) {
		if _, _, err := b.do(ctx, http.MethodGet, path, nil); err == nil {
			break
		} else if time.Now().After(deadline) {
			return err
		}
	}
	var all errgroup.Group
	all.SetLimit(16)
	for i := range *count {
		all.Go(func() error {
			_, _, err := b.do(ctx, http.MethodPost, path, bytes.Replace(object(i), []byte("bench.example.com"), []byte(group), 1))
			return err
		})
	}
	return all.Wait()
}

// forget makes the server start anew after a write of each kind: its caches do not have the revision before.
func (b *bench) forget(ctx context.Context) error {
	for _, group := range []string{"bench.example.com", "hook.example.com"} {
		path := "/apis/" + group + "/v1/namespaces/default/widgets/w-00000"
		old, _, err := b.do(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		if _, _, err := b.do(ctx, http.MethodPut, path, bytes.Replace(old, []byte(`"mode":"a"`), []byte(`"mode":"b"`), 1)); err != nil {
			return err
		}
	}
	if err := b.server.Restart(ctx); err != nil {
		return err
	}
	var err error
	b.client, err = rest.HTTPClientFor(b.server.Config)
	return err
}

// lists measures lists in turns.
func (b *bench) lists(ctx context.Context, document []byte) (ratio, against float64, err error) {
	if err := b.install(ctx, document, "bench.example.com"); err != nil {
		return 0, 0, err
	}
	if document, err = b.withWebhook(document); err != nil {
		return 0, 0, err
	}
	if err := b.install(ctx, document, "hook.example.com"); err != nil {
		return 0, 0, err
	}
	revision, _, err := b.do(ctx, http.MethodGet, "/apis/bench.example.com/v1/widgets?limit=1", nil)
	if err != nil {
		return 0, 0, err
	}
	var page struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal(revision, &page); err != nil {
		return 0, 0, err
	}
	exact := "?resourceVersionMatch=Exact&resourceVersion=" + page.Metadata.ResourceVersion
	if err := b.forget(ctx); err != nil {
		return 0, 0, err
	}
	names := []string{"stored", "rules", "webhook"}
	medians := map[string]time.Duration{}
	for _, query := range []string{"", exact} {
		taken := map[string][]time.Duration{}
		for round := range *rounds + 1 {
			for i, name := range names {
				path := "/apis/" + []string{"bench", "bench", "hook"}[i] + ".example.com/" + []string{"v1", "v1alpha1", "v1alpha1"}[i] + "/widgets" + query
				answer, took, err := b.do(ctx, http.MethodGet, path, nil)
				for tries := 0; err != nil && tries < 120 && strings.Contains(err.Error(), "initializing"); tries++ {
					launch.Pause(ctx, time.Second) // the watch cache is being filled
					answer, took, err = b.do(ctx, http.MethodGet, path, nil)
				}
				if err != nil {
					return 0, 0, err
				}
				if n := bytes.Count(answer, []byte(`"name":"w-`)); n != *count {
					return 0, 0, fmt.Errorf("%s: there are %d objects, not %d", path, n, *count)
				}
				if round == 0 {
					fmt.Printf("%-8s %-8s first list of %d: %v, %d MB\n", name, kindOf(query), *count, took.Round(time.Millisecond), len(answer)>>20)
					continue // it fills caches
				}
				taken[name] = append(taken[name], took)
			}
		}
		for _, name := range names {
			slices.Sort(taken[name])
			medians[name+query] = taken[name][len(taken[name])/2]
			fmt.Printf("%-8s %-8s median of %d lists: %v\n", name, kindOf(query), *rounds, medians[name+query].Round(time.Millisecond))
		}
	}
	of := func(a, b, query string) float64 { return float64(medians[a+query]) / float64(medians[b+query]) }
	fmt.Printf("rules/stored: default %.2f, from etcd %.2f; webhook/rules: default %.2f, from etcd %.2f; %d calls of the webhook\n",
		of("rules", "stored", ""), of("rules", "stored", exact), of("webhook", "rules", ""), of("webhook", "rules", exact), b.calls.Load())
	return of("rules", "stored", ""), of("webhook", "rules", exact), nil
}

func kindOf(query string) string {
	if query == "" {
		return "default"
	}
	return "etcd"
}

// withWebhook returns the CRD in another group, without rules and with a webhook that runs them.
func (b *bench) withWebhook(document []byte) ([]byte, error) {
	var d map[string]any
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, err
	}
	d["metadata"] = map[string]any{"name": "widgets.hook.example.com"}
	spec := d["spec"].(map[string]any)
	spec["group"] = "hook.example.com"
	spec["conversion"] = map[string]any{"strategy": "Webhook", "webhook": map[string]any{
		"conversionReviewVersions": []string{"v1"}, "clientConfig": map[string]any{"url": b.hook + "/convert", "caBundle": b.ca},
	}}
	return json.Marshal(d)
}
