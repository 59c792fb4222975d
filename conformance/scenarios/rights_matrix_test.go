package scenarios

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
	"github.com/espalier-dev/espalier/conformance/wire"
)

const (
	rbacPath        = "/apis/rbac.authorization.k8s.io/v1"
	reviewsPath     = "/apis/authorization.k8s.io/v1"
	rightsRounds    = 4
	rightsQuestions = 5_200 // in each round
	rightsRequests  = 250   // in each round
	rightsWorkers   = 8
)

// rightsSeed is new for each run, unless RIGHTS_SEED repeats one.
func rightsSeed(t *testing.T) uint64 {
	t.Helper()
	seed := rand.Uint64()
	if text := os.Getenv("RIGHTS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("RIGHTS_SEED=%d", seed)
	return seed
}

// A rightsServer is a server together with what it should hold.
type rightsServer struct {
	t     *testing.T
	d     rightsDice
	model *rightsModel
	conns []*wire.Conn // an administrator's
	round int
}

// Random roles and bindings, changed a few times, and random questions about them: the server answers as the documentation says, in
// reviews of access and in requests of the users concerned.
func TestRightsMatrix(t *testing.T) {
	needsDiscovery(t)
	s := serve(t, against, prefix())
	seed := rightsSeed(t)
	conns, err := wire.DialAll(s.Config, rightsWorkers)
	if err != nil {
		t.Fatal(err)
	}
	r := &rightsServer{t: t, d: rightsDice{rand.New(rand.NewPCG(seed, 0))}, model: newRightsModel(), conns: conns}
	began := time.Now()
	r.furnish(newAttacker(t, s))
	callers := r.callers(s)
	r.readDefaults()
	furnished := time.Now()
	r.begin()
	t.Logf("furnished in %v; %d roles and bindings in %v", furnished.Sub(began).Round(time.Millisecond),
		len(r.model.roles)+len(r.model.clusterRoles)+len(r.model.bindings)+len(r.model.clusterBindings), time.Since(furnished).Round(time.Millisecond))
	for r.round = range pick(rightsRounds, 1) {
		if r.round > 0 {
			r.change()
		}
		r.model.known = nil
		began := time.Now()
		r.settle()
		settled := time.Now()
		yes := r.askAll()
		asked := time.Now()
		r.tryAll(callers)
		t.Logf("round %d: settled after %v; %d reviews in %v, %d%% allowed; %d requests in %v", r.round, settled.Sub(began).Round(time.Millisecond),
			rightsQuestions, asked.Sub(settled).Round(time.Millisecond), yes*100/rightsQuestions, rightsRequests, time.Since(asked).Round(time.Millisecond))
	}
}

// furnish makes the namespaces, the kinds and the objects that questions are about.
func (r *rightsServer) furnish(a *attacker) {
	r.t.Helper()
	for _, ns := range rightsNamespaces {
		if ns != "default" {
			a.made("/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, ns))
		}
	}
	a.define("pots", "Pot", "Namespaced", "")
	a.define("potsherds", "Potsherd", "Namespaced", "")
	a.define("kilns", "Kiln", "Cluster", "")
	for _, resource := range rightsResources {
		for _, name := range rightsNames {
			switch {
			case resource.kind == "":
			case resource.namespaced:
				for _, ns := range rightsNamespaces {
					a.made(resource.path(ns), resource.object(name))
				}
			default:
				a.made(resource.path(""), resource.object(name))
			}
		}
	}
}

// path is where the objects of a resource are.
func (r rightsResource) path(namespace string) string {
	path := "/apis/" + r.group + "/" + r.version
	if r.group == "" {
		path = "/api/" + r.version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + r.plural
}

func (r rightsResource) object(name string) string {
	group := r.group + "/"
	if r.group == "" {
		group = ""
	}
	return fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":%q},%s}`, group+r.version, r.kind, name, r.body)
}

// readDefaults takes the roles that the server brings along into the model. Those that aggregate are worked out again.
func (r *rightsServer) readDefaults() {
	r.t.Helper()
	var roles rbacv1.ClusterRoleList
	decode(r.t, get(r.t, r.conns[0], rbacPath+"/clusterroles"), &roles)
	for i := range roles.Items {
		r.model.clusterRoles[roles.Items[i].Name] = &roles.Items[i]
	}
	var bindings rbacv1.ClusterRoleBindingList
	decode(r.t, get(r.t, r.conns[0], rbacPath+"/clusterrolebindings"), &bindings)
	for i := range bindings.Items {
		r.model.clusterBindings[bindings.Items[i].Name] = &bindings.Items[i]
	}
	if len(roles.Items) == 0 || len(bindings.Items) == 0 {
		r.t.Fatal("the server has no default roles")
	}
}

const rightsRoleCount = 30 // names that bindings refer to; not all of the roles are there

// begin makes the first roles and bindings.
func (r *rightsServer) begin() {
	for i := range rightsRoleCount {
		if i%7 != 6 {
			r.putClusterRole(r.d.clusterRole(i))
		}
		if i%5 != 4 {
			r.putRole(r.d.role(i))
		}
	}
	for i := range 60 {
		r.putBinding(r.d.binding(i, rightsRoleCount))
	}
	for i := range 15 {
		r.putClusterBinding(r.d.clusterBinding(i, rightsRoleCount))
	}
	r.tides(http.MethodPost)
}

// change changes some roles and bindings of each kind, takes some away, and makes some that were missing.
func (r *rightsServer) change() {
	for range 6 {
		role := r.d.role(r.d.IntN(rightsRoleCount))
		r.putRole(role)
		r.putClusterRole(r.d.clusterRole(r.d.IntN(rightsRoleCount)))
		key := anyKey(r.d, r.model.roles)
		r.remove("/namespaces/"+r.model.roles[key].Namespace+"/roles/"+r.model.roles[key].Name, func() { delete(r.model.roles, key) })
	}
	for range 10 {
		key := anyKey(r.d, r.model.bindings)
		b := r.model.bindings[key].DeepCopy()
		b.Subjects = r.d.subjects() // whom a binding is for can change, what it is for cannot
		r.putBinding(b)
		key = anyKey(r.d, r.model.bindings)
		r.remove("/namespaces/"+r.model.bindings[key].Namespace+"/rolebindings/"+r.model.bindings[key].Name, func() { delete(r.model.bindings, key) })
		r.putBinding(r.d.binding(100*(r.round+1)+r.d.IntN(100), rightsRoleCount))
	}
	for i := range 3 {
		name := fmt.Sprintf("rights-%d", r.d.IntN(15))
		if r.model.clusterBindings[name] != nil {
			r.remove("/clusterrolebindings/"+name, func() { delete(r.model.clusterBindings, name) })
		}
		r.putClusterBinding(r.d.clusterBinding(100*(r.round+1)+i, rightsRoleCount))
	}
	name := fmt.Sprintf("rights-%d", r.d.IntN(rightsRoleCount))
	if r.model.clusterRoles[name] != nil {
		r.remove("/clusterroles/"+name, func() { delete(r.model.clusterRoles, name) })
	}
	r.tides(http.MethodPut)
}

func (r *rightsServer) putRole(o *rbacv1.Role) {
	key := o.Namespace + "/" + o.Name
	r.write(r.model.roles[key] != nil, "/namespaces/"+o.Namespace+"/roles", o.Name, o)
	r.model.roles[key] = o
}

func (r *rightsServer) putClusterRole(o *rbacv1.ClusterRole) {
	r.write(r.model.clusterRoles[o.Name] != nil, "/clusterroles", o.Name, o)
	r.model.clusterRoles[o.Name] = o
}

func (r *rightsServer) putBinding(o *rbacv1.RoleBinding) {
	key := o.Namespace + "/" + o.Name
	if old := r.model.bindings[key]; old != nil {
		o.RoleRef = old.RoleRef
	}
	r.write(r.model.bindings[key] != nil, "/namespaces/"+o.Namespace+"/rolebindings", o.Name, o)
	r.model.bindings[key] = o
}

func (r *rightsServer) putClusterBinding(o *rbacv1.ClusterRoleBinding) {
	if old := r.model.clusterBindings[o.Name]; old != nil {
		o.RoleRef = old.RoleRef
	}
	r.write(r.model.clusterBindings[o.Name] != nil, "/clusterrolebindings", o.Name, o)
	r.model.clusterBindings[o.Name] = o
}

// write makes an object, or writes over it if it is there.
func (r *rightsServer) write(there bool, collection, name string, object any) {
	r.t.Helper()
	if there {
		expect(r.t, r.conns[0], http.StatusOK, http.MethodPut, rbacPath+collection+"/"+name, encode(r.t, object))
	} else {
		post(r.t, r.conns[0], rbacPath+collection, encode(r.t, object))
	}
}

func (r *rightsServer) remove(path string, forget func()) {
	r.t.Helper()
	if _, err := r.conns[0].Expect(r.t.Context(), http.StatusOK, http.MethodDelete, rbacPath+path, nil); err != nil {
		r.t.Fatal(err)
	}
	forget()
}

// tides writes, last of all, one object of each of the four kinds that grants something new to a user whom nothing else is about. The
// server hears of the objects of one kind in their order: once a tide shows, all writes before it have arrived.
func (r *rightsServer) tides(method string) {
	r.t.Helper()
	if method == http.MethodPut {
		r.followAggregation()
	}
	seen := []rbacv1.PolicyRule{{Verbs: []string{fmt.Sprintf("round-%d", r.round)}, APIGroups: []string{"tides"}, Resources: []string{"tides"}}}
	always := []rbacv1.PolicyRule{{Verbs: []string{"rise"}, APIGroups: []string{"tides"}, Resources: []string{"tides"}}}
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }
	user := func(name string) []rbacv1.Subject {
		return []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}}
	}
	to := func(kind, name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}
	}
	last := fmt.Sprintf("tide-%d", r.round)
	there := method == http.MethodPut
	const in = "/namespaces/default"
	r.write(there, "/clusterroles", "tide", rbacv1.ClusterRole{ObjectMeta: named("tide"), Rules: seen})
	r.write(there, in+"/roles", "tide", rbacv1.Role{ObjectMeta: named("tide"), Rules: seen})
	r.write(there, "/clusterrolebindings", "tide-subject", rbacv1.ClusterRoleBinding{ObjectMeta: named("tide-subject"), RoleRef: to("ClusterRole", "tide-always"), Subjects: user(last + "-cluster")})
	r.write(there, in+"/rolebindings", "tide-subject", rbacv1.RoleBinding{ObjectMeta: named("tide-subject"), RoleRef: to("ClusterRole", "tide-always"), Subjects: user(last + "-namespace")})
	if !there {
		r.write(false, "/clusterroles", "tide-always", rbacv1.ClusterRole{ObjectMeta: named("tide-always"), Rules: always})
		r.write(false, "/clusterrolebindings", "tide", rbacv1.ClusterRoleBinding{ObjectMeta: named("tide"), RoleRef: to("ClusterRole", "tide"), Subjects: user("tide-cluster")})
		r.write(false, in+"/rolebindings", "tide", rbacv1.RoleBinding{ObjectMeta: named("tide"), RoleRef: to("Role", "tide"), Subjects: user("tide-namespace")})
		r.followAggregation()
	}
}

// followAggregation waits until the aggregated roles have the rules of those that they select.
func (r *rightsServer) followAggregation() {
	r.t.Helper()
	for name, role := range r.model.clusterRoles {
		if role.AggregationRule == nil {
			continue
		}
		var stored rbacv1.ClusterRole
		eventually(r.t, 30*time.Second, "the ClusterRole "+name+" has the rules of those that it aggregates", func() bool {
			stored = rbacv1.ClusterRole{}
			decode(r.t, get(r.t, r.conns[0], rbacPath+"/clusterroles/"+name), &stored)
			return sameRules(stored.Rules, r.model.rulesOfClusterRole(name))
		})
	}
}

// settle waits until the server has heard of everything that was written.
func (r *rightsServer) settle() {
	r.t.Helper()
	tide := rightsQuestion{group: "tides", resource: "tides"}
	last := fmt.Sprintf("tide-%d", r.round)
	for _, q := range []rightsQuestion{
		{user: "tide-cluster", verb: fmt.Sprintf("round-%d", r.round)},
		{user: "tide-namespace", verb: fmt.Sprintf("round-%d", r.round), namespace: "default"},
		{user: last + "-cluster", verb: "rise"},
		{user: last + "-namespace", verb: "rise", namespace: "default"},
	} {
		q.group, q.resource = tide.group, tide.resource
		eventually(r.t, 30*time.Second, q.String(), func() bool {
			yes, err := rightsReview(r.t.Context(), r.conns[0], q)
			if err != nil {
				r.t.Fatal(err)
			}
			return yes
		})
	}
}

// rightsReview asks the server, as an administrator.
func rightsReview(ctx context.Context, c *wire.Conn, q rightsQuestion) (bool, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{User: q.user, Groups: q.groups}
	path := reviewsPath + "/subjectaccessreviews"
	var in metav1.ObjectMeta
	if q.path != "" {
		spec.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: q.path, Verb: q.verb}
	} else {
		spec.ResourceAttributes = &authorizationv1.ResourceAttributes{Namespace: q.namespace, Verb: q.verb, Group: q.group, Version: "v1", Resource: q.resource, Subresource: q.subresource, Name: q.name}
		if q.namespace == "red-1" { // there are two ways to ask; one namespace takes the other
			path, in.Namespace = reviewsPath+"/namespaces/red-1/localsubjectaccessreviews", "red-1"
		}
	}
	body, err := json.Marshal(authorizationv1.SubjectAccessReview{ObjectMeta: in, Spec: spec})
	if err != nil {
		return false, err
	}
	// The status of a question is not sent.
	answer, err := c.Expect(ctx, http.StatusCreated, http.MethodPost, path, bytes.Replace(body, []byte(`,"status":{"allowed":false}`), nil, 1))
	if err != nil {
		return false, err
	}
	var said authorizationv1.SubjectAccessReview
	if err := json.Unmarshal(answer, &said); err != nil {
		return false, err
	}
	if said.Status.Denied {
		return said.Status.Allowed, fmt.Errorf("%v: denied is set, but RBAC never denies", q)
	}
	return said.Status.Allowed, nil
}

// askAll asks the questions of a round over all connections, and returns how many were allowed.
func (r *rightsServer) askAll() int {
	r.t.Helper()
	type asked struct {
		rightsQuestion
		want bool
	}
	questions := make([]asked, rightsQuestions)
	yes := 0
	for i := range questions {
		q := r.d.question(r.model, r.randomUser())
		questions[i] = asked{q, r.model.allows(q)}
		if questions[i].want {
			yes++
		}
	}
	var wrong atomic.Int64
	rightsSpread(r.conns, questions, func(c *wire.Conn, q asked) {
		got, err := rightsReview(r.t.Context(), c, q.rightsQuestion)
		if (err != nil || got != q.want) && wrong.Add(1) <= 5 {
			r.t.Errorf("round %d: %v: allowed %v, where it should be %v (%v)", r.round, q.rightsQuestion, got, q.want, err)
		}
	})
	if wrong.Load() > 0 {
		r.t.Fatalf("round %d: %d of %d answers are wrong", r.round, wrong.Load(), len(questions))
	}
	if share := yes * 100 / len(questions); share < 10 || share > 90 {
		r.t.Errorf("round %d: %d%% of the questions are to be answered with yes: they say little", r.round, share)
	}
	return yes
}

// randomUser is one of the users, seldom with fewer or other groups.
func (r *rightsServer) randomUser() rightsUser {
	u := rightsPick(r.d, rightsUsers)
	switch r.d.IntN(40) {
	case 0:
		return rightsUser{"", []string{rightsPick(r.d, rightsGroups)}}
	case 1:
		return rightsUser{u.name, nil}
	case 2:
		return rightsUser{u.name, append([]string{"system:masters"}, u.groups...)}
	case 3, 4, 5, 6:
		return rightsUser{u.name, append([]string{rightsPick(r.d, rightsGroups)}, u.groups...)}
	}
	return u
}

// rightsSpread hands each item to one of the workers.
func rightsSpread[W, T any](workers []W, items []T, do func(W, T)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for _, w := range workers {
		all.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)); i = next.Add(1) - 1 {
				do(w, items[i])
			}
		})
	}
	all.Wait()
}

// callers are the users as clients: some with certificates, the service accounts with tokens, the others impersonated.
func (r *rightsServer) callers(s *launch.Server) []rightsCaller {
	r.t.Helper()
	var all []rightsCaller
	for i, u := range rightsUsers {
		all = append(all, newRightsCaller(r.t, s, u, i))
	}
	return all
}
