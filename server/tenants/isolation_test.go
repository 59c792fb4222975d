package tenants_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

var (
	isolationTenants  = flag.Int("tenants", 6, "tenants of TestIsolation")
	isolationRequests = flag.Int("requests", 1500, "requests of TestIsolation")
	isolationSeed     = flag.Uint64("seed", 22, "seed of TestIsolation")
)

// A victim is a tenant whose objects have a text that no other user may see.
type victim struct {
	name, secret, token, uid, next, version string
	client                                  *http.Client
}

// TestIsolation sends generated requests of tenants for what belongs to other tenants: by
// their paths, names, UIDs, tokens, continue tokens and revisions. No answer may have the
// secret of another tenant; and what is asked of another tenant, or of the server, is
// answered as if neither existed.
func TestIsolation(t *testing.T) {
	ts := startServer(t)
	config := ts.Config()
	all := make([]*victim, *isolationTenants)
	var group sync.WaitGroup
	for i := range all {
		group.Go(func() { all[i] = newVictim(t, config, i) })
	}
	group.Wait()
	if t.Failed() {
		return
	}
	var leaks, refused, allowed atomic.Int64
	var next atomic.Int64
	const workers = 8
	for w := range workers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(*isolationSeed, uint64(w)))
			for int(next.Add(1)) <= *isolationRequests {
				by, of := all[random.IntN(len(all))], all[random.IntN(len(all))]
				if by == of {
					continue
				}
				a := attackOf(random, by, of)
				status, body := a.send(t, config.Host, by)
				if status == http.StatusUnauthorized {
					refused.Add(1)
				} else {
					allowed.Add(1)
				}
				if why := a.leak(status, body, by, all); why != "" && leaks.Add(1) < 10 {
					t.Errorf("%s %s %s\n%d %s\n%s", a.method, a.path, a.body, status, body, why)
				}
			}
		})
	}
	group.Wait()
	t.Logf("isolation: %d requests of %d tenants, %d refused without being known, %d answered by the own tenant, %d leaks",
		refused.Load()+allowed.Load(), len(all), refused.Load(), allowed.Load(), leaks.Load())
	if refused.Load() == 0 || allowed.Load() == 0 {
		t.Error("one kind of requests was not sent")
	}
}

// newVictim makes a tenant with objects.
func newVictim(t *testing.T, config *rest.Config, n int) *victim {
	v := &victim{name: fmt.Sprintf("tenant-%d", n), secret: fmt.Sprintf("s3cr3t-%d-%x", n, rand.Uint64())}
	create(t, config, v.name)
	own := token(t, within(config, v.name))
	v.token = own.BearerToken
	var err error
	if v.client, err = rest.HTTPClientFor(own); err != nil {
		t.Error(err)
		return v
	}
	v.client.Timeout = time.Minute
	c := client(t, within(config, v.name))
	for i := range 5 {
		m, err := c.CoreV1().ConfigMaps("default").Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", v.secret, i), Labels: map[string]string{"of": v.secret}},
			Data:       map[string]string{"secret": v.secret},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Error(err)
			return v
		}
		v.uid, v.version = string(m.UID), m.ResourceVersion
	}
	list, err := c.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil {
		t.Error(err)
		return v
	}
	v.next = list.Continue
	return v
}

// attack is a request of one tenant for what is another one's.
type attack struct {
	method, path, body string
	header             map[string]string
	foreign            bool // it goes to another tenant, or to the server
}

var resources = []string{
	"/api/v1/configmaps", "/api/v1/namespaces/default/configmaps", "/api/v1/secrets", "/api/v1/namespaces", "/api/v1/events",
	"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/espalier.dev/v1alpha1/tenants",
	"/apis", "/api", "/openapi/v2", "/openapi/v3", "/version", "/healthz", "/readyz", "/livez", "/metrics", "/debug/pprof/", "/debug/pprof/goroutine?debug=2",
	"/.well-known/openid-configuration", "/openid/v1/jwks", "/apis/coordination.k8s.io/v1/leases", "/apis/espalier.dev/v1alpha1/tenants?watch=true&timeoutSeconds=1",
}

// attackOf makes a request of a tenant for what is another one's.
func attackOf(r *rand.Rand, by, of *victim) attack {
	a := attack{method: http.MethodGet}
	mine, theirs := "/clusters/"+by.name, "/clusters/"+of.name
	resource := resources[r.IntN(len(resources))]
	query := func(values ...string) string {
		q := url.Values{}
		for i := 0; i < len(values); i += 2 {
			q.Set(values[i], values[i+1])
		}
		return "?" + q.Encode()
	}
	maps := mine + "/api/v1/namespaces/default/configmaps"
	switch r.IntN(14) {
	case 0, 1: // another tenant
		a.path, a.foreign = theirs+resource, true
	case 2: // the server itself
		a.path, a.foreign = resource, true
	case 3: // a tenant that does not exist
		a.path, a.foreign = fmt.Sprintf("/clusters/nobody-%d%s", r.IntN(1000), resource), true
	case 4: // names that are read in two ways
		ways := []string{
			mine + "/../" + of.name + resource, mine + "/%2e%2e/" + of.name + resource, mine + "/..%2f" + of.name + resource, "/clusters/" + by.name + "%2f.." + "%2f" + of.name + resource,
			mine + theirs + resource, "//clusters/" + of.name + resource, "/clusters//" + of.name + resource, "/clusters/./" + of.name + resource,
			mine + "/api/v1/../../../" + of.name + resource, "/clusters/*" + resource, "/clusters/%2a" + resource, "/CLUSTERS/" + of.name + resource,
			"/clusters/" + strings.ToUpper(of.name) + resource, "/clusters/" + of.name + "%20" + resource, "/clusters/" + of.name + "%00" + resource, "/clusters" + resource,
		}
		a.path = ways[r.IntN(len(ways))]
	case 5: // by name
		a.path = maps + "/" + of.secret + fmt.Sprintf("-%d", r.IntN(5))
		a.method = []string{http.MethodGet, http.MethodDelete}[r.IntN(2)]
	case 6: // by selectors
		a.path = maps + query([]string{"labelSelector", "fieldSelector"}[r.IntN(2)], []string{"of=" + of.secret, "metadata.name=" + of.secret + "-0"}[r.IntN(2)])
	case 7: // by a continue token
		a.path = mine + "/api/v1/configmaps" + query("limit", "2", "continue", of.next)
	case 8: // by a revision
		a.path = maps + query("resourceVersion", of.version, "resourceVersionMatch", []string{"Exact", "NotOlderThan"}[r.IntN(2)], "limit", "500")
	case 9: // a watch since a revision of another tenant
		a.path = mine + "/api/v1/configmaps" + query("watch", "true", "resourceVersion", of.version, "timeoutSeconds", "1", "allowWatchBookmarks", "true")
	case 10: // is a token good here?
		a.method, a.path = http.MethodPost, mine+"/apis/authentication.k8s.io/v1/tokenreviews"
		a.body = fmt.Sprintf(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","spec":{"token":%q,"audiences":["https://kubernetes.default.svc/clusters/%s"]}}`, of.token, of.name)
	case 11: // the name of another user
		a.path, a.foreign = []string{theirs, ""}[r.IntN(2)]+resource, true
		a.header = map[string]string{"Impersonate-User": "root", "Impersonate-Group": "system:masters"}
	case 12: // in the own tenant, as any user
		a.path = mine + resource
		a.header = map[string]string{"Impersonate-User": "system:apiserver", "Impersonate-Group": "system:masters"}
	case 13: // an object of the other tenant's UID
		a.method, a.path = http.MethodDelete, maps+"/x"
		a.body = fmt.Sprintf(`{"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":%q}}`, of.uid)
	}
	return a
}

// send sends a request with the token of a tenant.
func (a *attack) send(t *testing.T, host string, by *victim) (status int, body string) {
	target, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	path, query, _ := strings.Cut(a.path, "?")
	target.RawQuery = query
	if target.Path, err = url.PathUnescape(path); err != nil {
		t.Fatal(err)
	}
	target.RawPath = path
	req, err := http.NewRequestWithContext(t.Context(), a.method, target.String(), bytes.NewReader([]byte(a.body)))
	if err != nil {
		t.Fatal(err)
	}
	req.URL = target
	req.Header.Set("Content-Type", "application/json")
	for name, value := range a.header {
		req.Header.Set(name, value)
	}
	resp, err := by.client.Do(req)
	if err != nil {
		t.Errorf("%s %s: %v", a.method, a.path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<20)) // a watch may end in the middle
	return resp.StatusCode, string(data)
}

// leak says what an answer must not say.
func (a *attack) leak(status int, body string, by *victim, all []*victim) string {
	for _, other := range all {
		if other != by && strings.Contains(body, other.secret) && !strings.Contains(a.path+a.body, other.secret) {
			return "the answer has the secret of " + other.name
		}
		if other != by && strings.Contains(body, other.uid) && !strings.Contains(a.path+a.body, other.uid) {
			return "the answer has a UID of " + other.name
		}
	}
	if strings.Contains(body, "goroutine ") || strings.Contains(body, "# HELP ") {
		return "the answer is about the process"
	}
	switch {
	case a.foreign && status != http.StatusUnauthorized:
		return "the tenant is known elsewhere"
	case a.foreign && !sameRefusal(body):
		return "the refusal differs from that of others"
	case strings.HasSuffix(a.path, "/tokenreviews") && strings.Contains(body, `"authenticated":true`):
		return "the token of another tenant is accepted"
	case a.method == http.MethodDelete && status == http.StatusOK:
		return "something was deleted"
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable:
		return "the server has failed"
	}
	return ""
}

// sameRefusal reports whether an answer is the one for requests without valid credentials.
func sameRefusal(body string) bool {
	var status metav1.Status
	return json.Unmarshal([]byte(body), &status) == nil && status.Message == "Unauthorized" && status.Details == nil
}
