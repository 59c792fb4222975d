package scenarios

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

// What must not be seen: secret is in every object that is outside the namespace team, neighbour in those inside that are not pots or
// config maps.
const neighbour = "thyme"

const siblingGroup = "/apis/hazards.example.community/v1"

// A trespasser has rights for one thing, and tries the others.
type trespasser struct {
	*attacker
	name      string
	forbidden []string // words that no answer may have
	own       string   // what the rights are for: a collection
	kind      string
}

// sees fails if an answer tells what is not the trespasser's.
func (x *trespasser) sees(what string, status int, answer string) {
	x.t.Helper()
	for _, word := range x.forbidden {
		if strings.Contains(answer, word) {
			x.t.Errorf("%s: %s: %d, with what is not theirs: %.400s", x.name, what, status, answer)
		}
	}
}

// denied sends what must not be found or not be allowed.
func (x *trespasser) denied(method, path, contentType, body string) {
	x.t.Helper()
	status, _, answer := x.send(method, path, contentType, body)
	if status != http.StatusForbidden && status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		x.t.Errorf("%s: %s %s: %d, not 403, 404 or 405: %.300s", x.name, method, path, status, answer)
	}
	x.sees(method+" "+path, status, answer)
}

// blind sends what may be refused, or be answered with what is the trespasser's own.
func (x *trespasser) blind(method, path, contentType, body string) (int, string) {
	x.t.Helper()
	status, _, answer := x.send(method, path, contentType, body)
	// The cache that keeps objects, which is upstream's, says this about a bad resourceVersion.
	known := status == http.StatusInternalServerError && strings.Contains(answer, `"message":"resourceVersion: Invalid value: `)
	if status >= 500 && status != http.StatusGatewayTimeout && !known {
		x.t.Errorf("%s: %s %s: %d: %.300s", x.name, method, path, status, answer)
	}
	x.sees(method+" "+path, status, answer)
	return status, answer
}

// A quarter is a server with namespaces, kinds and names that begin alike, and users with rights for a part of it.
type quarter struct {
	server                       *launch.Server
	prefix                       string
	admin                        *attacker
	potter, clerk, mayor, keeper *trespasser
}

func (q *quarter) with(t *testing.T) *quarter {
	other := *q
	other.admin = q.admin.with(t)
	for _, x := range []**trespasser{&other.potter, &other.clerk, &other.mayor, &other.keeper} {
		of := **x
		of.attacker = of.with(t)
		*x = &of
	}
	return &other
}

// TestRightsHazards is about users with rights for one thing, who try to see or change another: not found, not allowed, never data.
func TestRightsHazards(t *testing.T) {
	needsDiscovery(t)
	q := newQuarter(t)
	for _, c := range []struct {
		name string
		run  func(*quarter)
	}{
		{"siblings", (*quarter).siblings},
		{"continue tokens", (*quarter).tokens},
		{"resource versions", (*quarter).versions},
		{"watches", (*quarter).watches},
		{"selectors", (*quarter).selectors},
		{"borrowed names", (*quarter).borrowed},
		{"paths", (*quarter).paths},
		{"deletion of many", (*quarter).deletion},
		{"scope", (*quarter).scopes},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := q.rest(t)
			c.run(q.with(t))
			if after := q.rest(t); !maps.Equal(before, after) {
				for key := range after {
					if before[key] != after[key] {
						t.Errorf("%s has changed in etcd", key)
					}
				}
				t.Errorf("of %d keys that are nobody's here there are %d now", len(before), len(after))
			}
		})
	}
}

// rest is what no user may change, by key and revision: everything that is not in the namespace team, or is a Secret or a potsherd there.
func (q *quarter) rest(t *testing.T) map[string]int64 {
	t.Helper()
	keys := stored(t, q.prefix+"/")
	maps.DeleteFunc(keys, func(key string, _ int64) bool {
		key = strings.TrimPrefix(key, q.prefix)
		for _, own := range []string{"/leases/", "/events/", "/masterleases/", "/flowschemas/", "/prioritylevelconfigurations/"} {
			if strings.HasPrefix(key, own) {
				return true // the server's own
			}
		}
		return strings.Contains(key, "/team/") && !strings.HasPrefix(key, "/secrets/") && !strings.Contains(key, "/potsherds/")
	})
	if len(keys) < 30 {
		t.Fatalf("there are only %d keys to look at: %v", len(keys), slices.Sorted(maps.Keys(keys)))
	}
	return keys
}

func newQuarter(t *testing.T) *quarter {
	t.Helper()
	at := prefix()
	s := serve(t, against, at)
	q := &quarter{server: s, prefix: at, admin: newAttacker(t, s)}
	q.furnish()
	q.grant()
	own := &rightsServer{t: t, model: newRightsModel(), conns: []*wire.Conn{dial(t, s)}}
	own.readDefaults()
	own.followAggregation() // the server has written all that it writes by itself
	q.hidden()
	both := []string{secret, neighbour}
	q.potter = q.user("potter", both, hazardGroup+"/namespaces/team/pots", "Pot")
	q.clerk = q.user("clerk", both, "/api/v1/namespaces/team/configmaps", "ConfigMap")
	q.mayor = q.user("mayor", []string{secret}, hazardGroup+"/namespaces/team/pots", "Pot")
	q.keeper = q.user("keeper", both, hazardGroup+"/kilns", "Kiln")
	for _, x := range []*trespasser{q.potter, q.clerk, q.mayor} {
		eventually(t, 30*time.Second, x.name+" has rights", func() bool {
			status, _, _ := x.send(http.MethodGet, x.own, "", "")
			return status == http.StatusOK
		})
	}
	eventually(t, 30*time.Second, "keeper has rights", func() bool {
		status, _, _ := q.keeper.send(http.MethodGet, hazardGroup+"/kilns/one", "", "")
		return status == http.StatusOK
	})
	return q
}

// hidden makes sure that there is something to find.
func (q *quarter) hidden() {
	for path, word := range map[string]string{
		hazardGroup + "/pots": secret, "/api/v1/configmaps": secret, hazardGroup + "/kilns": secret, "/api/v1/namespaces": secret, rbacPath + "/clusterroles": secret,
		hazardGroup + "/namespaces/team-2/pots/one": secret, hazardGroup + "/namespaces/team/potsherds": neighbour, "/api/v1/namespaces/team/secrets": neighbour, siblingGroup + "/pots": neighbour,
	} {
		if status, _, answer := q.admin.send(http.MethodGet, path, "", ""); status != http.StatusOK || !strings.Contains(answer, word) {
			q.admin.t.Fatalf("the administrator does not see %q: GET %s: %d: %.300s", word, path, status, answer)
		}
	}
}

func (q *quarter) user(name string, forbidden []string, own, kind string) *trespasser {
	t := q.admin.t
	t.Helper()
	config, err := q.server.Client(name)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &trespasser{&attacker{t, client, q.server.URL}, name, forbidden, own, kind}
}

// furnish fills the server. The names of things begin like those of others: pots and potsherds, team and team-2, one and one-more.
func (q *quarter) furnish() {
	a := q.admin
	for _, ns := range []string{"team", "team-2", "team2", "tea"} {
		word := secret
		if ns == "team" {
			word = neighbour
		}
		a.made("/api/v1/namespaces", markedObject("v1", "Namespace", ns, word))
	}
	a.define("pots", "Pot", "Namespaced", "")
	a.define("potsherds", "Potsherd", "Namespaced", "")
	a.define("kilns", "Kiln", "Cluster", "")
	a.made(crdsPath, strings.ReplaceAll(hazardCRD("pots", "Pot", "Namespaced", ""), "hazards.example.com", "hazards.example.community"))
	eventually(a.t, 30*time.Second, "the other pots are served", func() bool {
		status, _, _ := a.send(http.MethodGet, siblingGroup+"/pots", "", "")
		return status == http.StatusOK
	})
	for _, name := range []string{"one", "one-more", "two"} {
		a.made(hazardGroup+"/namespaces/team/pots", hazard("Pot", name, `{"replicas":1}`))
		a.made("/api/v1/namespaces/team/configmaps", markedObject("v1", "ConfigMap", name, "plain"))
		a.made(hazardGroup+"/namespaces/team/potsherds", markedObject("hazards.example.com/v1", "Potsherd", name, neighbour))
		a.made(siblingGroup+"/namespaces/team/pots", markedObject("hazards.example.community/v1", "Pot", name, neighbour))
		a.made("/api/v1/namespaces/team/secrets", markedObject("v1", "Secret", name, neighbour))
		for _, ns := range []string{"team-2", "team2", "tea"} {
			a.made(hazardGroup+"/namespaces/"+ns+"/pots", markedObject("hazards.example.com/v1", "Pot", name, secret))
			a.made("/api/v1/namespaces/"+ns+"/configmaps", markedObject("v1", "ConfigMap", name, secret))
		}
		word := secret
		if name == "one" {
			word = "plain"
		}
		a.made(hazardGroup+"/kilns", markedObject("hazards.example.com/v1", "Kiln", name, word))
	}
	a.made(rbacPath+"/clusterroles", markedObject("rbac.authorization.k8s.io/v1", "ClusterRole", "one", secret))
}

// markedObject is an object with a word in it.
func markedObject(version, kind, name, word string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q,"annotations":{"word":%q}}}`, version, kind, name, word)
}

// grant gives each of the users their rights: the potter a role, the clerk a cluster role in the namespace, the mayor everything in it,
// the keeper one kiln by its name.
func (q *quarter) grant() {
	const roles, bindings = rbacPath + "/namespaces/team/roles", rbacPath + "/namespaces/team/rolebindings"
	bind := func(path, user, kind, role string) {
		q.admin.made(path, fmt.Sprintf(`{"metadata":{"name":%q},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q}}`, user, user, kind, role))
	}
	role := func(path, name, rules string) {
		q.admin.made(path, fmt.Sprintf(`{"metadata":{"name":%q},"rules":[%s]}`, name, rules))
	}
	role(roles, "potters", `{"verbs":["*"],"apiGroups":["hazards.example.com"],"resources":["pots","pots/status","pots/scale"]}`)
	bind(bindings, "potter", "Role", "potters")
	role(rbacPath+"/clusterroles", "clerks", `{"verbs":["*"],"apiGroups":[""],"resources":["configmaps"]}`)
	bind(bindings, "clerk", "ClusterRole", "clerks")
	role(rbacPath+"/clusterroles", "mayors", `{"verbs":["*"],"apiGroups":["*"],"resources":["*"]},{"verbs":["*"],"nonResourceURLs":["*"]}`)
	bind(bindings, "mayor", "ClusterRole", "mayors")
	role(rbacPath+"/clusterroles", "keepers", `{"verbs":["get","list","watch","delete","deletecollection"],"apiGroups":["hazards.example.com"],"resources":["kilns"],"resourceNames":["one"]}`)
	bind(rbacPath+"/clusterrolebindings", "keeper", "ClusterRole", "keepers")
}

var rightsAllMethods = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// rightsBody is something to send with a method.
func rightsBody(method, version, kind, name string) (contentType, body string) {
	switch method {
	case http.MethodPost:
		return jsonType, markedObject(version, kind, "new", "made")
	case http.MethodPut:
		return jsonType, markedObject(version, kind, name, "replaced")
	case http.MethodPatch:
		return "application/merge-patch+json", `{"metadata":{"annotations":{"word":"patched"}}}`
	}
	return "", ""
}

// scopes asks for what the cluster has as if it were in a namespace, as the mayor, to whom everything in the namespace is allowed; and for
// what namespaces have as if it were the cluster's (CVE-2019-11247). Every verb, every subresource.
func (q *quarter) scopes() {
	for _, of := range []struct{ group, plural, version, kind, name string }{
		{hazardGroup, "kilns", "hazards.example.com/v1", "Kiln", "two"},
		{"/api/v1", "namespaces", "v1", "Namespace", "team-2"},
		{rbacPath, "clusterroles", "rbac.authorization.k8s.io/v1", "ClusterRole", "one"},
		{rbacPath, "clusterrolebindings", "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "cluster-admin"},
		{"/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition", "pots.hazards.example.com"},
		{"/apis/admissionregistration.k8s.io/v1", "validatingwebhookconfigurations", "admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "one"},
		{"/apis/flowcontrol.apiserver.k8s.io/v1", "flowschemas", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", "exempt"},
		{"/apis/authorization.k8s.io/v1", "subjectaccessreviews", "authorization.k8s.io/v1", "SubjectAccessReview", "one"},
	} {
		for _, rest := range []string{"", "?watch=1&timeoutSeconds=1", "/" + of.name, "/" + of.name + "/status", "/" + of.name + "/scale", "/" + of.name + "/finalize"} {
			for _, method := range rightsAllMethods {
				contentType, body := rightsBody(method, of.version, of.kind, of.name)
				q.mayor.denied(method, of.group+"/namespaces/team/"+of.plural+rest, contentType, body)
			}
		}
	}
	for _, of := range []struct{ group, plural, version, kind string }{
		{hazardGroup, "pots", "hazards.example.com/v1", "Pot"},
		{"/api/v1", "configmaps", "v1", "ConfigMap"},
		{"/api/v1", "secrets", "v1", "Secret"},
	} {
		for _, rest := range []string{"/one", "/one/status", "/one/scale", "/one/token"} {
			for _, method := range rightsAllMethods {
				contentType, body := rightsBody(method, of.version, of.kind, "one")
				path := of.group + "/" + of.plural + rest
				for _, x := range []*trespasser{q.potter, q.clerk, q.mayor, {attacker: q.admin, name: "admin", forbidden: []string{secret, neighbour}}} {
					x.denied(method, path, contentType, body)
				}
			}
		}
		for _, method := range rightsAllMethods { // of all namespaces
			contentType, body := rightsBody(method, of.version, of.kind, "one")
			for _, x := range []*trespasser{q.potter, q.clerk, q.mayor} {
				x.denied(method, of.group+"/"+of.plural, contentType, body)
			}
		}
	}
	for _, path := range []string{"/metrics", "/debug/pprof/", "/logs", "/configz", "/readyz/etcd", "/"} {
		q.mayor.denied(http.MethodGet, path, "", "") // a binding in a namespace gives no paths
	}
}

// rightsList is the part of a list that tests look at.
type rightsList struct {
	Metadata struct{ ResourceVersion, Continue string }
	Items    []struct {
		Kind     string
		Metadata struct{ Namespace, Name string }
	}
}

// listing reads a list, which must be there.
func (a *attacker) listing(path string) rightsList {
	a.t.Helper()
	status, _, answer := a.send(http.MethodGet, path, "", "")
	if status != http.StatusOK {
		a.t.Fatalf("GET %s: %d: %.300s", path, status, answer)
	}
	var l rightsList
	decode(a.t, []byte(answer), &l)
	return l
}

// onlyOwn fails if a list has items of others.
func (x *trespasser) onlyOwn(what, answer string) {
	x.t.Helper()
	var l rightsList
	if err := json.Unmarshal([]byte(answer), &l); err != nil {
		x.t.Errorf("%s: %s: %v: %.300s", x.name, what, err, answer)
		return
	}
	for _, item := range l.Items {
		if item.Metadata.Namespace != "team" || item.Kind != "" && item.Kind != x.kind {
			x.t.Errorf("%s: %s has %s %s/%s", x.name, what, item.Kind, item.Metadata.Namespace, item.Metadata.Name)
		}
	}
}
