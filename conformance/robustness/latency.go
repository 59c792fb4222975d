package robustness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/espalier-dev/espalier/conformance/robustness/load"
)

const (
	// payload makes objects as large as ordinary ones: about 2 KB.
	payload = 1500
	// behind is how many requests after its creation an object is deleted.
	behind = 20
	// present is how many objects a list has to choose its page from, and page how large it is.
	present, page = 1000, 100
)

// latencies are how long the requests of one verb took, from the time at which they were due: a request that has to wait for the one before
// it counts its wait.
type latencies struct {
	mu     sync.Mutex
	took   []time.Duration
	failed []string
}

func (l *latencies) add(took time.Duration, failure string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.took = append(l.took, took)
	if failure != "" {
		l.failed = append(l.failed, failure)
	}
}

func (l *latencies) quantile(q float64) time.Duration {
	if len(l.took) == 0 {
		return 0
	}
	slices.Sort(l.took)
	return l.took[min(int(q*float64(len(l.took))), len(l.took)-1)]
}

// A visitor sends the requests of one verb to one replica.
type visitor struct {
	client  *load.Client
	replica int
	path    string // of the collection
	name    string // of its own object
	sent    int
	version string // resourceVersion of its own object
}

func (v *visitor) object(name string) []byte {
	meta := map[string]any{"name": name}
	if v.version != "" {
		meta["resourceVersion"] = v.version
	}
	meta["annotations"] = map[string]string{"n": fmt.Sprint(v.sent), "filler": strings.Repeat("x", payload)}
	text, err := json.Marshal(map[string]any{"apiVersion": load.Group + "/v1", "kind": load.Kind(load.Things), "metadata": meta, "spec": map[string]any{"log": []string{}}})
	if err != nil {
		panic(err) // strings and maps can always be encoded
	}
	return text
}

func (v *visitor) ask(ctx context.Context, method, path, contentType string, body []byte) *load.Answer {
	var content io.Reader
	if body != nil {
		content = strings.NewReader(string(body))
	}
	a := v.client.Ask(ctx, v.replica, method, v.path+path, contentType, content)
	var o struct {
		Metadata struct{ ResourceVersion string }
	}
	if a.OK() && json.Unmarshal(a.Data, &o) == nil {
		v.version = o.Metadata.ResourceVersion
	}
	return a
}

func (v *visitor) create(ctx context.Context, name string) *load.Answer {
	v.version = ""
	return v.ask(ctx, http.MethodPost, "", "application/json", v.object(name))
}

// verbs are what is measured. Delete takes what create has made, so that it waits for no request but its own.
var verbs = []struct {
	name string
	ask  func(context.Context, *visitor) *load.Answer
}{
	{"get", func(ctx context.Context, v *visitor) *load.Answer {
		return v.ask(ctx, http.MethodGet, "/"+v.name, "", nil)
	}},
	{"list", func(ctx context.Context, v *visitor) *load.Answer {
		return v.ask(ctx, http.MethodGet, fmt.Sprintf("?limit=%d", page), "", nil)
	}},
	{"create", func(ctx context.Context, v *visitor) *load.Answer {
		return v.create(ctx, fmt.Sprintf("%s-%d", v.name, v.sent))
	}},
	{"update", func(ctx context.Context, v *visitor) *load.Answer {
		return v.ask(ctx, http.MethodPut, "/"+v.name, "application/json", v.object(v.name))
	}},
	{"patch", func(ctx context.Context, v *visitor) *load.Answer {
		return v.ask(ctx, http.MethodPatch, "/"+v.name, "application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"annotations":{"n":"%d"}}}`, v.sent))
	}},
	{"apply", func(ctx context.Context, v *visitor) *load.Answer {
		v.version = ""
		return v.ask(ctx, http.MethodPatch, "/"+v.name+"?fieldManager=latency&force=true", "application/apply-patch+yaml", v.object(v.name))
	}},
	{"delete", func(ctx context.Context, v *visitor) *load.Answer {
		return v.ask(ctx, http.MethodDelete, fmt.Sprintf("/create-%d-%d", v.replica, v.sent-behind), "", nil)
	}},
}

// Latency asks every replica for every verb at a steady rate per second, and prints how long the answers took; for watches, how long after the time at
// which a patch was due its event came, from another replica.
func (r *Runner) Latency(ctx context.Context, w io.Writer, rate int, lasts time.Duration) error {
	stage, err := r.scene.Site.Stage(ctx)
	if err != nil {
		return err
	}
	replicas := len(r.scene.Environment.Replicas)
	path := fmt.Sprintf("/apis/%s/v1/namespaces/%s/%s", load.Group, stage.Namespace(), load.Things)
	visit := func(replica int, name string) (*visitor, error) {
		c, err := stage.Client(10 * time.Second)
		return &visitor{client: c, replica: replica, path: path, name: name}, err
	}
	filler, err := visit(0, "present")
	for i := 0; err == nil && i < present; i++ {
		if a := filler.create(ctx, fmt.Sprintf("present-%d", i)); !a.OK() {
			err = fmt.Errorf("create: %v", a)
		}
	}
	if err != nil {
		return r.over(ctx, stage, err)
	}
	all := make([]latencies, len(verbs)+1)
	events := &all[len(verbs)]
	var due sync.Map // when patches were due, by name and number
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var asking, watchers sync.WaitGroup
	for replica := range replicas {
		if err := r.listen(watching, &watchers, stage.Namespace(), replica, &due, events); err != nil {
			return r.over(ctx, stage, err)
		}
	}
	began := time.Now().Add(time.Second)
	for i, verb := range verbs {
		for replica := range replicas {
			v, err := visit(replica, fmt.Sprintf("%s-%d", verb.name, replica))
			if err != nil {
				return r.over(ctx, stage, err)
			}
			if a := v.create(ctx, v.name); !a.OK() {
				return r.over(ctx, stage, fmt.Errorf("create: %v", a))
			}
			asking.Go(func() {
				first := 0
				if verb.name == "delete" {
					first = behind
				}
				for n := first; ; n++ {
					v.sent = n
					at := began.Add(time.Duration(n)*time.Second/time.Duration(rate) + time.Duration(i*replicas+replica)*time.Millisecond)
					if at.After(began.Add(lasts)) || ctx.Err() != nil {
						return
					}
					time.Sleep(time.Until(at))
					if verb.name == "patch" {
						due.Store(fmt.Sprintf("%s %d", v.name, n), at)
					}
					a := verb.ask(ctx, v)
					failure := ""
					if !a.OK() {
						failure = a.String()
					}
					all[i].add(time.Since(at), failure)
				}
			})
		}
	}
	asking.Wait()
	time.Sleep(time.Second) // for the last events
	stop()
	watchers.Wait()
	fmt.Fprintf(w, "%d members, %d replicas, %d requests a second of each verb, %d in all, for %v; objects of 2 KB, %d in the namespace, pages of %d\n",
		r.Members, replicas, rate*replicas, rate*replicas*len(verbs), lasts, present, page)
	for i := range all {
		name := "watch"
		if i < len(verbs) {
			name = verbs[i].name
		}
		l := &all[i]
		fmt.Fprintf(w, "  %-7s %5d  p50 %7.1f ms  p99 %7.1f ms  longest %7.1f ms  failed %d\n", name, len(l.took), ms(l.quantile(0.5)), ms(l.quantile(0.99)), ms(l.quantile(1)), len(l.failed))
		for _, text := range l.failed[:min(len(l.failed), 3)] {
			fmt.Fprintf(w, "          %s\n", text)
		}
	}
	return r.over(ctx, stage, nil)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// listen watches at a replica for the patches that another one is asked for.
func (r *Runner) listen(ctx context.Context, all *sync.WaitGroup, namespace string, replica int, due *sync.Map, events *latencies) error {
	client, err := dynamic.NewForConfig(r.scene.Environment.Replicas[replica].Config())
	if err != nil {
		return err
	}
	from := fmt.Sprintf("patch-%d", (replica+1)%len(r.scene.Environment.Replicas))
	things := client.Resource(schema.GroupVersionResource{Group: load.Group, Version: "v1", Resource: load.Things}).Namespace(namespace)
	watch, err := things.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + from})
	if err != nil {
		return err
	}
	all.Go(func() {
		defer watch.Stop()
		for e := range watch.ResultChan() {
			o, ok := e.Object.(*unstructured.Unstructured)
			if !ok {
				continue
			}
			if at, ok := due.Load(from + " " + o.GetAnnotations()["n"]); ok && e.Type != "ADDED" {
				events.add(time.Since(at.(time.Time)), "")
			}
		}
	})
	return nil
}
