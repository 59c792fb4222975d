package scenarios

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// failingHooks are webhooks that do not do what they should. elsewhere is where one of them sends its callers.
func failingHooks(t *testing.T, elsewhere *hook) map[string]*hook {
	t.Helper()
	plain := func(code int, contentType, body string) *hook {
		return hooked(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		})
	}
	dead := admitting(t, nil)
	dead.Close()
	return map[string]*hook{
		"dead":   dead,
		"broken": plain(http.StatusInternalServerError, "text/plain", "out of order"),
		"html":   plain(http.StatusOK, "text/html", "<html>"),
		"empty":  plain(http.StatusOK, jsonType, "{}"),
		"other":  plain(http.StatusOK, jsonType, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"uid":"1"}}`),
		"huge": admitting(t, func(_ *admissionreview.AdmissionRequest, response *admissionreview.AdmissionResponse) {
			response.Warnings = []string{strings.Repeat("x", 16<<20)} // and otherwise as it should be
		}),
		"uid": admitting(t, func(_ *admissionreview.AdmissionRequest, response *admissionreview.AdmissionResponse) {
			response.UID = "of another request"
		}),
		"moved": hooked(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, elsewhere.URL, http.StatusTemporaryRedirect)
		}),
		"found": hooked(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }),
	}
}

// A webhook that is dead, broken, lies or sends its callers elsewhere stops requests or not, as its failure policy says. It stops no
// other request, and receives no credentials.
func TestFailingWebhooks(t *testing.T) {
	c := newCustoms(t)
	elsewhere := admitting(t, nil)
	hooks := failingHooks(t, elsewhere)
	stranger := admitting(t, nil)
	for name, h := range hooks {
		for _, policy := range []admissionv1.FailurePolicyType{admissionv1.Ignore, admissionv1.Fail} { // a server that knows the second knows the first
			tag := name + "-" + strings.ToLower(string(policy))
			mutating(t, c.server, tag, h, func(w *admissionv1.MutatingWebhook) { w.FailurePolicy = &policy })
			validating(t, c.server, "v"+tag, h, func(w *admissionv1.ValidatingWebhook) { w.FailurePolicy = &policy })
		}
	}
	untrusted := func(w *admissionv1.MutatingWebhook) { w.ClientConfig.CABundle = c.server.Config.CAData }
	mutating(t, c.server, "untrusted-fail", stranger, untrusted)
	c.stops("untrusted-fail", "certificate")
	reasons := map[string]string{"huge": "the answer of the webhook is longer than 8388608 bytes", "moved": "which is not followed", "found": "which is not followed",
		"broken": "the text of the answer is in this server's log"}
	for name, h := range hooks {
		t.Run(name, func(t *testing.T) {
			c := c.in(t)
			for _, kind := range []string{"", "v"} {
				c.stops(kind+name+"-fail", cmp.Or(reasons[name], "failed calling webhook"))
				c.call(http.MethodPost, boatsPath, jsonType, taggedBoat(kind+name, kind+name+"-ignore", `{"owner":"ada"}`)).is(http.StatusCreated)
			}
			if name != "dead" {
				h.discreet(t)
			}
		})
	}
	if n := len(elsewhere.reviews()) + len(stranger.reviews()); n != 0 {
		t.Errorf("%d requests went where they should not", n)
	}
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("free", "none", `{"owner":"ada"}`)).is(http.StatusCreated)
	must[*corev1.ConfigMap](t)(typedClient(t, c.server.Config).CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("tides")}, metav1.CreateOptions{}))
}

// There are no services. A webhook that names one fails, as its failure policy says, and the client is told what to do.
func TestWebhookServices(t *testing.T) {
	c := newCustoms(t)
	for _, policy := range []admissionv1.FailurePolicyType{admissionv1.Ignore, admissionv1.Fail} {
		mutating(t, c.server, "service-"+strings.ToLower(string(policy)), admitting(t, nil), func(w *admissionv1.MutatingWebhook) {
			w.ClientConfig, w.FailurePolicy = admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "default", Name: "hook"}}, &policy
		})
	}
	c.stops("service-fail", "this server does not route requests to Services, so it cannot call default/hook at port 443: set the url of the webhook's clientConfig")
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("lucky", "service-ignore", `{"owner":"ada"}`)).is(http.StatusCreated)
}

// The server connects only to allowed addresses. A flag that all servers of these tests have allows 127.0.0.1.
func TestWebhookNetworks(t *testing.T) {
	c := newCustoms(t)
	for tag, host := range map[string]string{"loopback": "127.0.0.2", "mapped": "[::ffff:127.0.0.2]", "unspecified": "0.0.0.0"} {
		mutating(t, c.server, tag, admitting(t, nil), func(w *admissionv1.MutatingWebhook) {
			url := strings.Replace(*w.ClientConfig.URL, "127.0.0.1", host, 1)
			w.ClientConfig.URL = &url
		})
		c.stops(tag, "which this server does not connect to: an operator can allow its network with --webhook-allowed-networks")
	}
	mutating(t, c.server, "allowed", admitting(t, nil), func(*admissionv1.MutatingWebhook) {})
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("allowed", "allowed", `{"owner":"ada"}`)).is(http.StatusCreated)
}

// stops demands that boats of a tag cannot be made, as soon as the server knows of the webhook.
func (c *customs) stops(tag, says string) {
	c.t.Helper()
	body := taggedBoat(tag, tag, `{"owner":"ada"}`)
	c.engaged(tag, func() bool {
		return c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, body).code != http.StatusCreated
	})
	c.call(http.MethodPost, boatsPath, jsonType, body).is(http.StatusInternalServerError, says)
	if c.etcd.count(boatKey+tag) != 0 {
		c.t.Errorf("%s: what was refused is in etcd", tag)
	}
}

// A sluice is where calls of a slow webhook wait.
type sluice struct {
	waiting atomic.Int64
	open    chan struct{}
	once    sync.Once
}

func (g *sluice) release() { g.once.Do(func() { close(g.open) }) }

// wait waits until the sluice is open, or the caller has gone.
func (g *sluice) wait(r *http.Request) {
	g.waiting.Add(1)
	defer g.waiting.Add(-1)
	select {
	case <-g.open:
	case <-r.Context().Done():
	}
}

func newSluice(t *testing.T) *sluice {
	t.Helper()
	g := &sluice{open: make(chan struct{})}
	t.Cleanup(g.release)
	return g
}

// stuck is how many requests hang in a slow webhook at once.
const stuck = 50

// crowded sends many requests that hang, and returns a function that waits for their answers.
func crowded(t *testing.T, c *caller, send func(i int) (method, path, contentType, body string)) (answers func() map[int]int) {
	t.Helper()
	var mu sync.Mutex
	var all sync.WaitGroup
	codes := map[int]int{}
	for i := range stuck {
		all.Go(func() {
			method, path, contentType, body := send(i)
			a, err := c.try(method, path, contentType, body)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			codes[a.code]++
		})
	}
	return func() map[int]int { all.Wait(); return codes }
}

// others is a service account that no webhook is about.
func others(t *testing.T, s *launch.Server) *caller {
	t.Helper()
	k := newKubectl(t, s)
	k.ok("create", "serviceaccount", "pilot")
	must[*rbacv1.ClusterRoleBinding](t)(typedClient(t, s.Config).RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: named("pilot"),
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "pilot"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}}, metav1.CreateOptions{}))
	config := bearing(s, strings.TrimSpace(k.ok("create", "token", "pilot")))
	kubectlAs(t, s, config).succeeds("default", "get", "namespaces")
	return newCaller(t, config)
}

// latencies makes and reads objects that have nothing to do with the webhooks, and returns the median time and the longest.
func (c *caller) latencies(round string) (median, longest time.Duration) {
	c.t.Helper()
	var all []time.Duration
	for i := range 10 {
		name := fmt.Sprintf("%s-%d", round, i)
		for _, a := range []answer{
			c.call(http.MethodPost, "/api/v1/namespaces/default/configmaps", jsonType, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"`+name+`"}}`).is(http.StatusCreated),
			c.call(http.MethodPost, boatsPath, jsonType, taggedBoat(name, "none", `{"owner":"ada"}`)).is(http.StatusCreated),
			c.call(http.MethodGet, boatsPath+"/"+name, "", "").is(http.StatusOK),
			c.call(http.MethodGet, "/api/v1/namespaces/default/configmaps?limit=5", "", "").is(http.StatusOK),
		} {
			all = append(all, a.took)
		}
	}
	slices.Sort(all)
	return all[len(all)/2], all[len(all)-1]
}

// unaffected demands that others are as fast as before while requests hang. A request that waits for one that hangs takes longer than
// the limit, however slow the machine is: those hang until the test lets them go.
func (c *caller) unaffected(hangs func() bool, round string, before time.Duration) {
	c.t.Helper()
	median, longest := c.latencies(round)
	c.t.Logf("median %v before, %v while %d requests hang; longest %v", before, median, stuck, longest)
	if median > 4*before+100*time.Millisecond || longest > 5*time.Second {
		c.t.Errorf("others wait: median %v, and %v before; longest %v", median, before, longest)
	}
	if !hangs() {
		c.t.Error("the requests did not hang all the while")
	}
}

// Requests that hang in a slow webhook do not slow down others, and hang no longer than their callers want.
func TestSlowWebhooks(t *testing.T) {
	c := newCustoms(t)
	slow := admitting(t, nil)
	sluice := newSluice(t) // opens before the webhook is closed
	slow.pause = sluice.wait
	seconds := func(n int32, policy admissionv1.FailurePolicyType) func(*admissionv1.MutatingWebhook) {
		return func(w *admissionv1.MutatingWebhook) { w.TimeoutSeconds, w.FailurePolicy = &n, &policy }
	}
	mutating(t, c.server, "second-ignore", slow, seconds(1, admissionv1.Ignore))
	mutating(t, c.server, "long-ignore", slow, seconds(30, admissionv1.Ignore))
	mutating(t, c.server, "long-fail", slow, seconds(30, admissionv1.Fail))
	mutating(t, c.server, "second-fail", slow, seconds(1, admissionv1.Fail))
	pilot := others(t, c.server)
	before, _ := pilot.latencies("before")
	c.stops("second-fail", "failed calling webhook")

	answers := crowded(t, c.caller, func(i int) (string, string, string, string) {
		return http.MethodPost, boatsPath, jsonType, taggedBoat(fmt.Sprintf("slow-%d", i), "long-fail", `{"owner":"ada"}`)
	})
	hangs := func() bool { return sluice.waiting.Load() >= stuck }
	eventually(t, soon, "requests hang", hangs)
	pilot.unaffected(hangs, "meanwhile", before)
	for tag, codes := range map[string][]int{"long-fail": {500, 504}, "long-ignore": {500, 504}} {
		a := c.call(http.MethodPost, boatsPath+"?timeout=2s", jsonType, taggedBoat("hasty-"+tag, tag, `{"owner":"ada"}`))
		if !slices.Contains(codes, a.code) || a.took > 10*time.Second || c.etcd.count(boatKey+"hasty-"+tag) != 0 {
			t.Errorf("%s: who has two seconds is answered after %v: %d %s", tag, a.took, a.code, a.body)
		}
	}
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("second-ignore", "second-ignore", `{"owner":"ada"}`)).is(http.StatusCreated)
	sluice.release()
	if codes := answers(); codes[http.StatusCreated] != stuck {
		t.Errorf("once the webhook answers: %v", codes)
	}
	pilot.call(http.MethodPost, boatsPath, jsonType, taggedBoat("token", "long-fail", `{"owner":"ada"}`)).is(http.StatusCreated)
	slow.discreet(t)
}
