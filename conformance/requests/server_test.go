package requests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/generate"
	"github.com/espalier-dev/espalier/conformance/tree"
	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/crdinstall"
	"github.com/espalier-dev/espalier/server/espaliertest"
)

// answer is what a request is answered with, by the server or by the command line.
type answer struct {
	refused  bool
	errors   []said
	warnings []said
	infos    []string // the rules of what the command line says besides
	code     int      // the server's
	raw      string   // for reports
}

// said is something that an answer says. The command line names its rule.
type said struct{ text, rule string }

// testServer is a server that has the CRDs and old objects of all of them.
type testServer struct {
	client *http.Client
	host   string
}

// start runs our server.
func start(t *testing.T) *rest.Config {
	t.Helper()
	// Objects are in whatever namespace they say: the command line cannot know which namespaces there are.
	return espaliertest.Start(t, espaliertest.Configure(func(o *server.Options) { o.Admission.DisablePlugins = []string{"NamespaceLifecycle"} }))
}

// newTestServer stores CRDs and old objects on a server.
func newTestServer(t *testing.T, config *rest.Config, all []*testCRD) *testServer {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	w := &testServer{client: client, host: config.Host}
	installer, err := crdinstall.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	apply := func(lax bool) {
		t.Helper()
		var list []crdinstall.Definition
		for _, d := range all {
			list = append(list, d.install(lax))
		}
		if err := installer.Apply(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	apply(true)
	each(t, all, func(d *testCRD) error { return w.store(t.Context(), d) })
	apply(false)
	// Servers learn of CRDs in the order in which they are written: when this one is served, those before it are.
	last := &testCRD{Kind: "Sentinel", Schema: json.RawMessage(anything)}
	if err := last.complete(); err != nil {
		t.Fatal(err)
	}
	if err := installer.Apply(t.Context(), []crdinstall.Definition{last.install(false)}); err != nil {
		t.Fatal(err)
	}
	each(t, all, func(d *testCRD) error { return w.show(t.Context(), d) })
	return w
}

// each does something for all items of a list, some at a time.
func each[T any](t *testing.T, list []T, do func(T) error) {
	t.Helper()
	var workers errgroup.Group
	workers.SetLimit(4)
	for _, item := range list {
		workers.Go(func() error { return do(item) })
	}
	if err := workers.Wait(); err != nil {
		t.Fatal(err)
	}
}

// oldMetadata is that of the old objects of each CRD; the last one is being deleted.
var oldMetadata = []string{
	`{"name":"old-0","labels":{"app":"web"}}`,
	`{"name":"old-1","labels":{"app":"web","tier":"front"},"annotations":{"a":"b"},"finalizers":["requests.example/keep","plain"],"ownerReferences":[{"apiVersion":"v1","kind":"Node","name":"n","uid":"u"}]}`,
	`{"name":"old-2"}`,
	`{"name":"old-3","finalizers":["requests.example/keep","plain"],"labels":{"app":"web"}}`,
}

// oldMembers are what old-2 has in place of generated members: what is wrong with it, and stays.
var oldMembers = map[string]string{
	"Nested": `{"spec":{"template":{"a":1},"many":[{"kind":"K"},{"apiVersion":"v1","kind":"K","metadata":{"name":"A b"}}]},"status":{"last":{"kind":3}}}`,
	"Lists":  `{"spec":{"set":["a","a"],"plain":[1,"x"]},"status":{"conditions":[{"type":"A"},{"type":"A"}]}}`,
	"Value":  `{"spec":{"name":"A","size":1000,"list":["too long"],"deep":{"er":{"b":[{"c":"x"}]}}},"status":{"phase":"Gone","count":99,"notes":[{"text":""}]}}`,
	"Ruled":  `{"spec":{"min":5,"max":1,"tags":["bad","bad"]},"status":{"done":9}}`,
	"Frozen": `{"plain":"x","spec":{"size":1}}`,
	"Joined": `{"spec":{"a":"x","b":1,"d":3},"status":{"x":"a","y":"b"}}`,
}

// store creates the old objects of a CRD that accepts every object.
func (w *testServer) store(ctx context.Context, d *testCRD) error {
	v := d.storage()
	if v.Unserved {
		return fmt.Errorf("the storage version of %s is not served", d.Kind)
	}
	for i, metadata := range oldMetadata {
		name := fmt.Sprintf("old-%d", i)
		mode := generate.Valid
		if i == 1 || i == 2 {
			mode = []generate.Mode{generate.Near, generate.Breach}[i-1]
		}
		refused := ""
		for try := uint64(1); ; try++ {
			if try == 100 {
				return fmt.Errorf("storing %s of %s failed: %s", name, d.Kind, refused)
			}
			body := v.plan.Append(nil, try, generate.Options{Mode: mode, Size: 300, APIVersion: d.apiVersion(v), Kind: d.Kind, Metadata: metadata, Resolve: true, Compact: true})
			if refused = w.storeOne(ctx, d, name, body); refused == "" {
				break
			}
		}
		if i == len(oldMetadata)-1 {
			if a := w.do(ctx, http.MethodDelete, d.path(v, name), nil); a.refused {
				return fmt.Errorf("deleting %s of %s failed: %s", name, d.Kind, a.raw)
			}
		}
		d.olds = append(d.olds, &stored{name: name, json: map[string][]byte{}})
	}
	return nil
}

// path is where an object of the CRD is.
func (d *testCRD) path(v *version, name string) string {
	r := request{verb: update, def: d, version: v, old: &stored{name: name}}
	return r.path()
}

// storeOne creates an object with its status. It returns why the server does not take it, if it does not.
func (w *testServer) storeOne(ctx context.Context, d *testCRD, name string, body []byte) string {
	v := d.storage()
	root, err := tree.Parse(body)
	if err != nil {
		return err.Error()
	}
	collection := strings.TrimSuffix(d.path(v, name), "/"+name)
	if members, ok := oldMembers[d.Kind]; ok && name == "old-2" {
		for i, from := 0, tree.Must(members); i < len(from.Kids); i++ {
			root.Set(tree.Unquote(from.Keys[i]), from.Kids[i])
		}
	}
	made := w.do(ctx, http.MethodPost, collection+"?fieldValidation=Ignore", root.Bytes())
	if made.refused {
		return made.raw
	}
	value := root.Get("status")
	if !d.Status || value == nil {
		return ""
	}
	now := tree.Must(made.raw)
	now.Set("status", value)
	if a := w.do(ctx, http.MethodPut, d.path(v, name)+"/status?fieldValidation=Ignore", now.Bytes()); a.refused {
		w.remove(ctx, d.path(v, name))
		return a.raw
	}
	return ""
}

// remove deletes an object, whatever finalizers it has.
func (w *testServer) remove(ctx context.Context, path string) {
	w.do(ctx, http.MethodDelete, path, nil)
	w.do(ctx, http.MethodPatch, path, []byte(`{"metadata":{"finalizers":null}}`))
}

// show remembers what the server shows of the old objects, in all versions.
func (w *testServer) show(ctx context.Context, d *testCRD) error {
	for _, old := range d.olds {
		for _, v := range d.served() {
			a := w.do(ctx, http.MethodGet, d.path(v, old.name), nil)
			if a.refused {
				return fmt.Errorf("getting %s of %s failed: %s", old.name, d.Kind, a.raw)
			}
			old.json[v.Name] = []byte(a.raw)
		}
	}
	return nil
}

// stores reports whether the request is not a dry run: only storing shows what a server does about a resourceVersion of
// something new.
func (r *request) stores() bool {
	if r.verb != create {
		return false
	}
	root, err := tree.Parse(r.body)
	return err == nil && root.Get("metadata").Find("resourceVersion") >= 0
}

// send sends a request. What it creates is removed again.
func (w *testServer) send(ctx context.Context, r *request) {
	method, query := http.MethodPut, "?fieldValidation="+r.mode
	if r.verb == create {
		method = http.MethodPost
	}
	if !r.stores() {
		query += "&dryRun=All"
	}
	r.server = w.do(ctx, method, r.path()+query, r.body)
	if r.stores() && !r.server.refused {
		if name := tree.Must(r.server.raw).Get("metadata").Get("name").Text(); name != "" {
			w.remove(ctx, r.path()+"/"+name)
		}
	}
}

// do sends a request and reads the answer. A server that does not answer refuses, without a reason.
func (w *testServer) do(ctx context.Context, method, path string, body []byte) answer {
	req, err := http.NewRequestWithContext(ctx, method, w.host+path, bytes.NewReader(body))
	if err != nil {
		return answer{refused: true, raw: err.Error()}
	}
	req.Header.Set("User-Agent", "requests")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	resp, err := w.client.Do(req)
	if err != nil {
		return answer{refused: true, raw: err.Error()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return answer{refused: true, raw: err.Error()}
	}
	a := answer{code: resp.StatusCode, refused: resp.StatusCode >= 300, raw: string(text)}
	warnings, faults := utilnet.ParseWarningHeaders(resp.Header["Warning"])
	for _, f := range faults {
		a.warnings = append(a.warnings, said{text: "this is no warning: " + f.Error()})
	}
	for _, one := range warnings {
		a.warnings = append(a.warnings, said{text: one.Text})
	}
	if a.refused {
		a.errors = errorsIn(text)
	}
	return a
}

// errorsIn are the errors that a Status names.
func errorsIn(text []byte) []said {
	var s metav1.Status
	if err := json.Unmarshal(text, &s); err != nil {
		return []said{{text: string(text)}}
	}
	var list []said
	if s.Details != nil && s.Reason == metav1.StatusReasonInvalid {
		for _, cause := range s.Details.Causes {
			one := cause.Field + ": " + cause.Message
			if !slices.Contains(list, said{text: one}) {
				list = append(list, said{text: one})
			}
			if !strings.Contains(s.Message, one) {
				list = append(list, said{text: "the message does not have the cause " + one})
			}
		}
	}
	if len(list) > 0 {
		return list
	}
	message := handled.ReplaceAllString(s.Message, "")
	if faults, ok := strings.CutPrefix(message, strict); ok {
		for _, one := range splitStrict(faults) {
			list = append(list, said{text: strict + one})
		}
		return list
	}
	return []said{{text: message}}
}

// handled is the prefix that handlers add to the errors of decoders. The command line has the errors only.
var handled = regexp.MustCompile(`^\S* in version "[^"]*" cannot be handled as a \S+: `)

const strict = "strict decoding error: "

// splitStrict splits the faults that strict decoding finds, which are joined by commas.
func splitStrict(text string) []string {
	var list []string
	for from := 0; ; {
		at := nextFault.FindStringIndex(text[from:])
		if at == nil {
			return append(list, text[from:])
		}
		list = append(list, text[from:from+at[0]])
		from += at[0] + len(", ")
	}
}

var nextFault = regexp.MustCompile(`, (unknown|duplicate) field "`)
