package bindings_test

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/tenants"
)

var (
	isolationRequests = flag.Int("requests", 800, "requests of TestIsolation")
	isolationSeed     = flag.Uint64("seed", 22, "seed of TestIsolation")
)

// party is a tenant whose objects have a text that only some may see.
type party struct {
	name, secret, uid, object, next, version string
	client                                   *http.Client
	sees                                     []string // whose secrets, besides its own
}

// account returns a client with the token of a service account, which may do everything in the
// tenant if it is an administrator.
func (w *shop) account(tenant, name string, admin bool) *http.Client {
	w.Helper()
	c := rest.CopyConfig(w.config)
	c.Host += tenants.Path(tenant)
	client, err := kubernetes.NewForConfig(c)
	if err != nil {
		w.Fatal(err)
	}
	accounts := client.CoreV1().ServiceAccounts("kube-system")
	if _, err := accounts.Create(w.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		w.Fatal(err)
	}
	if admin {
		_, err := client.RbacV1().ClusterRoleBindings().Create(w.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "kube-system", Name: name}},
		}, metav1.CreateOptions{})
		if err != nil {
			w.Fatal(err)
		}
	}
	request, err := accounts.CreateToken(w.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.Fatal(err)
	}
	own := rest.AnonymousClientConfig(c)
	own.BearerToken = request.Status.Token
	made, err := rest.HTTPClientFor(own)
	if err != nil {
		w.Fatal(err)
	}
	made.Timeout = time.Minute
	return made
}

// TestIsolation sends generated requests of providers and consumers for what they have not been
// granted: by paths, names, UIDs, selectors, continue tokens and revisions. Nothing is seen of a
// tenant but what it has bound and accepted, and nothing is changed.
func TestIsolation(t *testing.T) {
	w := start(t, "provider", "rival", "one", "two", "hidden", "outside")
	w.provide("provider", toAll)
	w.provide("rival", toAll)
	w.bind("one", "provider", everything)
	w.bind("two", "provider", accept(reads, "webs.example.com"))
	w.bind("hidden", "provider")
	w.create(w.in("outside").Resource(crds), crd("webs", "Web"))
	all := []*party{}
	for _, name := range []string{"provider", "rival", "one", "two", "hidden", "outside"} {
		p := &party{name: name, secret: fmt.Sprintf("s3cr3t-%s-%x", name, rand.Uint64()), uid: w.uid(name), client: w.account(name, "tester", true)}
		c := w.in(name).Resource(webs).Namespace("default")
		for i := range 3 {
			o := web(fmt.Sprintf("%s-%d", p.secret, i), "x")
			o.SetLabels(map[string]string{"of": p.secret})
			w.eventually(func() error {
				made, err := c.Create(t.Context(), o, metav1.CreateOptions{})
				if err == nil {
					p.object, p.version = string(made.GetUID()), made.GetResourceVersion()
				}
				return err
			})
		}
		list, err := c.List(t.Context(), metav1.ListOptions{Limit: 1})
		if err != nil {
			t.Fatal(err)
		}
		p.next = list.GetContinue()
		all = append(all, p)
	}
	all[0].sees = []string{"one", "two"}
	page, err := w.of("provider", "*").Resource(webs).List(t.Context(), metav1.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	viewNext := page.GetContinue()
	// Someone of the provider without a role for the export.
	all = append(all, &party{name: "provider", secret: "none", uid: "none", object: "none", client: w.account("provider", "nobody", false)})
	before := len(w.keys("/webs/"))
	var next, leaks, seen, refused atomic.Int64
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(*isolationSeed, uint64(i)))
			for int(next.Add(1)) <= *isolationRequests {
				by, of := all[random.IntN(len(all))], all[random.IntN(6)]
				method, path := intrusion(random, by, of, viewNext)
				status, body := send(t, w.config.Host, by.client, method, path)
				if status < 300 {
					seen.Add(1)
				} else {
					refused.Add(1)
				}
				if why := leak(by, all, method, path, status, body); why != "" && leaks.Add(1) < 10 {
					t.Errorf("%s, by %s: %s %s\n%d %s", why, by.name, method, path, status, body)
				}
			}
		})
	}
	group.Wait()
	t.Logf("isolation: %d requests, %d answered, %d refused, %d leaks", seen.Load()+refused.Load(), seen.Load(), refused.Load(), leaks.Load())
	if after := len(w.keys("/webs/")); after != before {
		t.Errorf("there were %d keys of objects, and are %d", before, after)
	}
	if seen.Load() == 0 || refused.Load() == 0 {
		t.Error("one kind of requests was not sent")
	}
	// What differs between a tenant that has not bound and one that does not exist?
	texts := map[string]bool{}
	for _, name := range []string{"hidden", "outside", "nobody"} {
		_, body := send(t, w.config.Host, all[0].client, http.MethodGet, "/clusters/provider/clusters/"+name+"/apis/example.com/v1/webs")
		texts[strings.ReplaceAll(body, name, "X")] = true
	}
	if len(texts) != 1 {
		t.Errorf("the provider can tell tenants apart that it must not see: %v", texts)
	}
}

// intrusion is a request for what is another's.
func intrusion(r *rand.Rand, by, of *party, viewNext string) (method, path string) {
	mine, theirs := "/clusters/"+by.name, "/clusters/"+of.name
	resources := []string{
		"/apis/example.com/v1/webs", "/apis/example.com/v1/namespaces/default/webs", "/api/v1/secrets", "/api/v1/namespaces/default/configmaps", "/api/v1/namespaces",
		"/apis/apis.espalier.dev/v1alpha1/apibindings", "/apis/apis.espalier.dev/v1alpha1/apiexports", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"/apis/rbac.authorization.k8s.io/v1/clusterroles", "/apis", "/openapi/v2", "/metrics", "/healthz", "/apis/example.com/v1/namespaces/default/webs/" + of.secret + "-0",
		"/apis/example.com/v1/namespaces/default/webs/" + of.secret + "-0/status", "/apis/example.com/v1/namespaces/default/webs/" + of.secret + "-0/scale",
	}
	resource := resources[r.IntN(len(resources))]
	ways := []string{
		theirs, mine + theirs, mine + "/clusters/*", theirs + mine, theirs + "/clusters/*", "/clusters/*", "/clusters/*" + theirs, mine + "/clusters/*" + theirs,
		mine + theirs + "/clusters/*", mine + "/clusters/%2a", mine + "/clusters/..%2f" + of.name, mine + "/clusters/../" + of.name, mine + "/clusters/" + of.uid,
		mine + "/clusters/" + strings.ToUpper(of.name), mine + "/clusters/" + of.name + "%20", mine + "/clusters//" + of.name, mine,
	}
	path = ways[r.IntN(len(ways))] + resource
	if r.IntN(3) == 0 { // by what belongs to the other
		q := url.Values{}
		switch r.IntN(6) {
		case 0:
			q.Set("limit", "5")
			q.Set("continue", []string{of.next, viewNext}[r.IntN(2)])
		case 1:
			q.Set("labelSelector", "of="+of.secret)
		case 2:
			q.Set("fieldSelector", []string{"espalier.dev/tenant=" + of.name, "metadata.name=" + of.secret + "-0", "metadata.namespace=default"}[r.IntN(3)])
		case 3:
			q.Set("resourceVersion", of.version)
			q.Set("resourceVersionMatch", []string{"Exact", "NotOlderThan"}[r.IntN(2)])
		case 4:
			q.Set("watch", "true")
			q.Set("timeoutSeconds", "1")
			q.Set("resourceVersion", []string{of.version, "0", "1"}[r.IntN(3)])
		case 5:
			q.Set("watch", "true")
			q.Set("timeoutSeconds", "1")
			q.Set("sendInitialEvents", "true")
			q.Set("resourceVersionMatch", "NotOlderThan")
			q.Set("allowWatchBookmarks", "true")
		}
		path += "?" + q.Encode()
	}
	method = http.MethodGet
	// What may be deleted is not of a victim: the provider may delete objects of one.
	if of.name != by.name && (by.name != "provider" || of.name != "one") && strings.Contains(resource, of.secret) && r.IntN(2) == 0 {
		method = []string{http.MethodDelete, http.MethodPut, http.MethodPatch}[r.IntN(3)]
	}
	return method, path
}

func send(t *testing.T, host string, client *http.Client, method, path string) (int, string) {
	target, err := url.Parse(host)
	if err != nil {
		t.Fatal(err)
	}
	raw, query, _ := strings.Cut(path, "?")
	target.RawPath, target.RawQuery = raw, query
	if target.Path, err = url.PathUnescape(raw); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, target.String(), strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.URL = target
	req.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := client.Do(req)
	if err != nil {
		t.Errorf("%s %s: %v", method, path, err)
		return 0, ""
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 8<<20)) // a watch may end in the middle
	return resp.StatusCode, string(data)
}

// leak says what an answer must not say.
func leak(by *party, all []*party, method, path string, status int, body string) string {
	for _, other := range all[:6] {
		if other.name == by.name && by.secret != "none" || slices.Contains(by.sees, other.name) {
			continue
		}
		for _, text := range []string{other.secret, other.object} {
			if strings.Contains(body, text) && !strings.Contains(path, text) {
				return "the answer is about an object of " + other.name
			}
		}
	}
	switch {
	case method != http.MethodGet && status < 300:
		return "something was changed"
	case strings.Contains(body, "# HELP "):
		return "the answer is about the process"
	case status >= http.StatusInternalServerError && status != http.StatusServiceUnavailable:
		return "the server has failed"
	}
	return ""
}
