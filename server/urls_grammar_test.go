package server

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// asked is a request that the grammar has made.
type asked struct {
	method, target, contentType, body string
	header                            map[string]string
}

func (a asked) String() string { return a.method + " " + a.target }

// grammar makes requests at random: about a quarter succeed, the others differ in one
// or more places from such a request.
type grammar struct{ *rand.Rand }

// one returns one of several, each as likely as the others.
func (g grammar) one(of ...string) string { return of[g.IntN(len(of))] }

// often returns usual, and in one of n cases one of the others.
func (g grammar) often(n int, usual string, others ...string) string {
	if g.IntN(n) > 0 {
		return usual
	}
	return g.one(others...)
}

// kind is a resource of the test.
type kind struct {
	group, version, plural, kind string
	namespaced                   bool
	prefix                       string // of its keys
	subresources                 []string
}

// apiVersion is what its objects say.
func (k *kind) apiVersion() string {
	if k.group == "" {
		return k.version
	}
	return k.group + "/" + k.version
}

// urlKinds are the resources that the test's URLs are about. The CRDs are chosen to
// collide: groups that end like others, plural names that are groups elsewhere or
// words that mean something in a path.
var urlKinds = []kind{
	{"", "v1", "configmaps", "ConfigMap", true, "/configmaps/", nil},
	{"", "v1", "secrets", "Secret", true, "/secrets/", nil},
	{"", "v1", "serviceaccounts", "ServiceAccount", true, "/serviceaccounts/", []string{"token"}},
	{"", "v1", "events", "Event", true, "/events/", nil},
	{"events.k8s.io", "v1", "events", "Event", true, "/events/", nil},
	{"", "v1", "namespaces", "Namespace", false, "/namespaces/", []string{"status", "finalize"}},
	{"coordination.k8s.io", "v1", "leases", "Lease", true, "/leases/", nil},
	{"rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", false, "/clusterroles/", nil},
	{"rbac.authorization.k8s.io", "v1", "roles", "Role", true, "/roles/", nil},
	{"flowcontrol.apiserver.k8s.io", "v1", "flowschemas", "FlowSchema", false, "/flowschemas/", []string{"status"}},
	{"apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false, "/apiextensions.k8s.io/customresourcedefinitions/", []string{"status"}},
	{"acme.cert-manager.io", "v1", "challenges", "Challenge", true, "/acme.cert-manager.io/challenges/", []string{"status", "scale"}},
	{"acme.cert-manager.io", "v2", "challenges", "Challenge", true, "/acme.cert-manager.io/challenges/", []string{"status", "scale"}},
	{"cert-manager.io", "v1", "challenges", "Challenge", true, "/cert-manager.io/challenges/", []string{"status", "scale"}},
	{"cert-manager.io", "v1", "acme", "Acme", false, "/cert-manager.io/acme/", []string{"status", "scale"}},
	{"acme.cert-manager.io", "v1", "orders", "Order", false, "/acme.cert-manager.io/orders/", []string{"status", "scale"}},
	{"words.example.io", "v1", "namespaces", "Namespace", true, "/words.example.io/namespaces/", []string{"status", "scale"}},
	{"words.example.io", "v1", "watch", "Watch", true, "/words.example.io/watch/", []string{"status", "scale"}},
	{"words.example.io", "v1", "status", "Status", true, "/words.example.io/status/", []string{"status", "scale"}},
	{"words.example.io", "v1", "proxy", "Proxy", false, "/words.example.io/proxy/", []string{"status", "scale"}},
	{"words.example.io", "v1", "configmaps", "ConfigMap", true, "/words.example.io/configmaps/", []string{"status", "scale"}},
}

var (
	urlNamespaces = []string{"one", "two", "default"}
	urlNames      = []string{"a", "b", "one", "status"}
	oddSegments   = []string{"", ".", "..", "%2e", "%2e%2e", "%2F", "a%2Fb", "a%2fstatus", "%252e", "a%25b", "*", "A", "a%00", "a%20b", "system:x", "one%2Fconfigmaps%2Fa", "-", "a;b", "namespaces", "watch"}
)

// request returns a request.
func (g grammar) request() asked {
	k := urlKinds[g.IntN(len(urlKinds))]
	method := g.one("GET", "GET", "GET", "GET", "POST", "POST", "PUT", "PATCH", "PATCH", "DELETE", "DELETE", "HEAD")
	method = g.often(30, method, "OPTIONS", "get", "Post", "TRACE", "CONNECT", "WATCH", "LIST", "PROXY")
	namespace, name, subresource := g.one(urlNamespaces...), g.one(urlNames...), ""
	if k.plural == "namespaces" && k.group == "" {
		name = namespace
	}
	if k.plural == "customresourcedefinitions" {
		name = g.one("challenges.cert-manager.io", "challenges.acme.cert-manager.io", "others.example.io", "acme.cert-manager.io")
	}
	if g.IntN(4) == 0 && len(k.subresources) > 0 {
		subresource = g.one(k.subresources...)
	}
	item := method != "POST" && (method != "GET" && method != "DELETE" || g.IntN(2) == 0) || subresource != ""
	if g.IntN(15) == 0 {
		item = !item
	}
	a := asked{method: method, header: map[string]string{}}
	a.target = g.path(&k, namespace, name, subresource, item)
	if g.IntN(40) == 0 {
		a.header["X-HTTP-Method-Override"] = g.one("DELETE", "POST", "GET", "PUT")
	}
	a.body, a.contentType = g.content(&k, method, namespace, name, subresource)
	if query := g.query(&k, method, name); query != "" {
		a.target += "?" + query
	}
	return a
}

// path returns the path of a request, in one of three cases with something odd
// about it.
func (g grammar) path(k *kind, namespace, name, subresource string, item bool) string {
	group, version, plural := k.group, k.version, k.plural
	scoped := k.namespaced && (item || g.IntN(4) > 0)
	var extra, before string
	if g.IntN(3) == 0 {
		for range 1 + g.IntN(2) {
			g.oddity(&group, &version, &plural, &namespace, &name, &subresource, &extra, &before, &scoped, &item)
		}
	}
	parts := []string{"apis", group, version}
	if group == "" {
		parts = []string{"api", version}
	}
	if before != "" {
		parts = append(parts, before)
	}
	if scoped {
		parts = append(parts, "namespaces", namespace)
	}
	parts = append(parts, plural)
	if item {
		parts = append(parts, name)
		if subresource != "" {
			parts = append(parts, subresource)
		}
	}
	if extra != "" {
		parts = append(parts, extra)
	}
	return g.slashes("/" + strings.Join(parts, "/"))
}

// oddity changes one part of a path.
func (g grammar) oddity(group, version, plural, namespace, name, subresource, extra, before *string, scoped, item *bool) {
	switch g.IntN(14) {
	case 0: // a group that ends, or begins, elsewhere
		if i := strings.Index(*group, "."); i >= 0 {
			*plural, *group = *plural+"."+(*group)[:i], (*group)[i+1:]
		}
	case 1:
		i := strings.LastIndex(*group, ".")
		if i >= 0 {
			*plural, *group = *plural+"."+(*group)[:i], (*group)[i+1:]
		}
	case 2:
		*group = g.one("io", "manager.io", "cert-manager.io.", ".cert-manager.io", "acme", "Cert-Manager.io", "..", "apis", "k8s.io", "", *group+".")
	case 3:
		*version = g.one("v2", "V1", "v1beta1", "v", "", "v1%2Fnamespaces", "..")
	case 4:
		*plural = g.one(strings.ToUpper(*plural), *plural+".", *plural+"%2Fa", "challenge", "pods", "configmaps%2e", "challenges.acme", "challenges.acme.cert-manager", "namespaces", "events", "watch", "proxy")
	case 5:
		*namespace = g.one(oddSegments...)
		*scoped = true
	case 6:
		*name = g.one(oddSegments...)
		*item = true
	case 7:
		*subresource = g.one("status", "scale", "finalize", "token", "proxy", "Status", "log", "status%2Fx", "..", "approval", "exec")
		*item = true
	case 8:
		*extra = g.one("x", "status", "..", "%2e%2e", "a%2Fb")
	case 9, 10:
		*before = g.one("watch", "watch", "watch", "proxy", "Watch", "%77atch")
	case 11:
		*scoped = !*scoped
	case 12:
		*item = !*item
	default:
		*before = "namespaces"
	}
}

// slashes puts slashes into a path where they do not belong, and writes letters in
// other ways.
func (g grammar) slashes(path string) string {
	switch g.IntN(24) {
	case 0:
		return path + "/"
	case 1:
		return path + "//"
	case 2:
		return "/" + path
	case 3:
		i := g.IntN(len(path))
		if j := strings.IndexByte(path[i:], '/'); j >= 0 {
			return path[:i+j] + "/" + path[i+j:]
		}
	case 4:
		i := 1 + g.IntN(len(path)-1)
		if c := path[i]; c != '/' && c != '%' && (i < 2 || path[i-1] != '%' && path[i-2] != '%') {
			return fmt.Sprintf("%s%%%02x%s", path[:i], c, path[i+1:])
		}
	case 5:
		i := strings.LastIndexByte(path, '/')
		return path[:i] + g.one("/./", "/../", "%2F", "/%2e/", "\\") + path[i+1:]
	}
	return path
}

// query returns the parameters. What would take the test's ground away happens dry.
func (g grammar) query(k *kind, method, name string) string {
	var list []string
	dry := g.IntN(3) == 0
	if k.plural == "customresourcedefinitions" || k.plural == "namespaces" || method == "DELETE" && g.IntN(16) > 0 {
		dry = method != "GET" && method != "HEAD"
	}
	if dry {
		list = append(list, "dryRun=All")
	}
	for range g.IntN(3) {
		list = append(list, g.one(
			"watch=true", "watch=1", "watch=0", "watch=false", "watch=bogus", "watch", "Watch=true",
			"fieldSelector=metadata.name%3D"+name, "fieldSelector=metadata.name%3D"+name+",metadata.name%3Db", "fieldSelector=metadata.name%3D..",
			"fieldSelector=metadata.namespace%3Done", "fieldSelector=bogus%3D1", "fieldSelector=metadata.name!%3Da", "fieldSelector=,",
			"labelSelector=a%3Db", "labelSelector=(", "limit=1", "limit=x", "resourceVersion=0", "resourceVersion=x",
			"name=b", "namespace=two", "fieldManager=m", "pretty=1", "%zz=1", "a;b=1", "timeoutSeconds=1", "fieldValidation=Strict", "fieldValidation=x",
		))
	}
	return strings.Join(list, "&")
}

// content returns a body, mostly one that fits the path that was meant, and its type.
func (g grammar) content(k *kind, method, namespace, name, subresource string) (body, contentType string) {
	if method == "GET" || method == "HEAD" {
		return "", ""
	}
	if method == "DELETE" {
		return g.often(3, "", `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, `{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}`, `{"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":"Background"}`), "application/json"
	}
	name = g.often(8, name, "other", "b", "..")
	namespace = g.often(8, namespace, "two", "", "..", "other")
	apiVersion, kind := k.apiVersion(), k.kind
	if g.IntN(20) == 0 {
		apiVersion, kind = g.one("cert-manager.io/v1", "acme.cert-manager.io/v1", "v1"), g.one("Challenge", "Order", "ConfigMap")
	}
	named := fmt.Sprintf(`"name":%q`, name)
	if method == "POST" && g.IntN(6) == 0 {
		named = `"generateName":"g-"`
	}
	if k.namespaced {
		named += fmt.Sprintf(`,"namespace":%q`, namespace)
	}
	body = fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s}%s}`, apiVersion, kind, named, g.rest(k))
	switch {
	case subresource == "token":
		return `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`, "application/json"
	case subresource == "scale":
		body = fmt.Sprintf(`{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{%s},"spec":{"replicas":2}}`, named)
	}
	if method == "PATCH" {
		return g.patch(k, body)
	}
	return body, "application/json"
}

// rest is what an object has beside its metadata.
func (g grammar) rest(k *kind) string {
	switch {
	case strings.HasSuffix(k.group, "example.io") || strings.HasSuffix(k.group, "cert-manager.io"):
		return `,"spec":{"replicas":1},"status":{"replicas":1}`
	case k.plural == "events":
		about, by := "involvedObject", "reportingComponent"
		if k.group != "" {
			about, by = "regarding", "reportingController"
		}
		return fmt.Sprintf(`,%q:{"namespace":%q},%q:"a.b/c","eventTime":"2026-01-01T00:00:00.000000Z","reportingInstance":"x","action":"a","reason":"r","type":"Normal"`, about, g.one(urlNamespaces...), by)
	case k.plural == "customresourcedefinitions":
		return `,"spec":{"group":"example.io","scope":"Namespaced","names":{"plural":"others","kind":"Other"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}`
	}
	return ""
}

func (g grammar) patch(k *kind, body string) (patch, contentType string) {
	switch g.IntN(4) {
	case 0:
		return body, "application/apply-patch+yaml"
	case 1:
		return `[{"op":"add","path":"/metadata/annotations","value":{"x":"y"}}]`, "application/json-patch+json"
	case 2:
		return g.one(`{"metadata":{"name":"b"}}`, `{"metadata":{"namespace":"two"}}`, `{"metadata":{"annotations":{"n":"1"}}}`, `{"kind":"Order"}`, `{"apiVersion":"cert-manager.io/v1"}`), "application/merge-patch+json"
	}
	return fmt.Sprintf(`{"metadata":{"annotations":{"n":"%d"}}}`, g.IntN(1000)), "application/merge-patch+json"
}
