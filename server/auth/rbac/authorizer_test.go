package rbac

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/espalier-dev/espalier/internal/costtest"
)

// comparison is an index and an oracle with the same roles and bindings.
type comparison struct {
	*rand.Rand
	a *Authorizer
	o *oracle
}

func newComparison(seed uint64) *comparison {
	return &comparison{Rand: rand.New(rand.NewPCG(seed, 1)), a: &Authorizer{index: newIndex()}, o: newOracle()}
}

var (
	someVerbs      = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "bind", "escalate", "use", "*"}
	someGroups     = []string{"", "apps", "example.com", "*"}
	someResources  = []string{"pods", "pods/log", "pods/", "/log", "deployments", "deployments/scale", "*", "*/log", "*/scale", "*/", "a/b/c"}
	someNames      = []string{"", "one", "two"}
	someURLs       = []string{"*", "/", "/a", "/a*", "/a/*", "/a**", "/b", "**", ""}
	somePaths      = []string{"", "/", "/a", "/a/b", "/ab", "/b", "/a*", "*"}
	someUsers      = []string{"ann", "bob", "system:serviceaccount:n0:x", "system:serviceaccount:n1:x", "system:serviceaccount:n1:", "system:serviceaccount::x", ""}
	someUserGroups = []string{"g0", "g1", "g2", "ann", "system:authenticated"}
	someNamespaces = []string{"n0", "n1", "n2"}
)

func (w *comparison) one(list []string) string { return list[w.IntN(len(list))] }

func (w *comparison) some(list []string, most int) []string {
	var out []string
	for range w.IntN(most + 1) {
		out = append(out, w.one(list))
	}
	return out
}

func (w *comparison) rules() []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for range w.IntN(5) {
		rules = append(rules, rbacv1.PolicyRule{
			Verbs: w.some(someVerbs, 8), APIGroups: w.some(someGroups, 4), Resources: w.some(someResources, 6),
			ResourceNames: w.some(someNames, w.IntN(2)*2), NonResourceURLs: w.some(someURLs, 2),
		})
	}
	return rules
}

func (w *comparison) subjects() []rbacv1.Subject {
	var subjects []rbacv1.Subject
	for range w.IntN(7) {
		switch w.IntN(8) {
		case 0, 1, 2:
			subjects = append(subjects, rbacv1.Subject{Kind: "User", Name: w.one(someUsers)})
		case 3, 4:
			subjects = append(subjects, rbacv1.Subject{Kind: "Group", Name: w.one(someUserGroups)})
		case 5, 6:
			subjects = append(subjects, rbacv1.Subject{Kind: "ServiceAccount", Name: w.one([]string{"x", ""}), Namespace: w.one([]string{"", "n0", "n1"})})
		default:
			subjects = append(subjects, rbacv1.Subject{Kind: "Robot", Name: "ann"})
		}
	}
	return subjects
}

func (w *comparison) ref() rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: w.one([]string{"Role", "Role", "ClusterRole", "ClusterRole", "ClusterRole", "Other"}), Name: w.roleName()}
}

func (w *comparison) roleName() string { return fmt.Sprint("r", w.IntN(5)) }

// change changes or deletes a role or binding, in both. Deletions come as
// objects or as tombstones, as informers bring them.
func (w *comparison) change() {
	m := metav1.ObjectMeta{Name: fmt.Sprint("b", w.IntN(5)), Namespace: w.one(someNamespaces)}
	gone := w.IntN(3) == 0
	x, o := w.a.index, w.o
	switch w.IntN(4) {
	case 0:
		r := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: w.roleName(), Namespace: m.Namespace}, Rules: w.rules()}
		if apply(w, gone, r, x.setObject, x.deleteRoleObject) {
			delete(o.roles, r.Namespace+"/"+r.Name)
		} else {
			o.roles[r.Namespace+"/"+r.Name] = r
		}
	case 1:
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.roleName()}, Rules: w.rules()}
		if apply(w, gone, r, x.setObject, x.deleteClusterRoleObject) {
			delete(o.clusterRoles, r.Name)
		} else {
			o.clusterRoles[r.Name] = r
		}
	case 2:
		b := &rbacv1.RoleBinding{ObjectMeta: m, RoleRef: w.ref(), Subjects: w.subjects()}
		if apply(w, gone, b, x.setObject, x.deleteBindingObject) {
			delete(o.bindings, b.Namespace+"/"+b.Name)
		} else {
			o.bindings[b.Namespace+"/"+b.Name] = b
		}
	case 3:
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: m.Name}, RoleRef: w.ref(), Subjects: w.subjects()}
		if apply(w, gone, b, x.setObject, x.deleteBindingObject) {
			delete(o.clusterBindings, b.Name)
		} else {
			o.clusterBindings[b.Name] = b
		}
	}
}

func apply(w *comparison, gone bool, obj metav1.Object, set, remove func(any)) bool {
	switch {
	case !gone:
		set(obj)
	case w.IntN(2) == 0:
		remove(obj)
	default:
		remove(cache.DeletedFinalStateUnknown{Key: strings.TrimPrefix(obj.GetNamespace()+"/"+obj.GetName(), "/"), Obj: obj})
	}
	return gone
}

func (w *comparison) user() user.Info {
	return &user.DefaultInfo{Name: w.one(someUsers), Groups: w.some(someUserGroups, 3)}
}

func (w *comparison) attributes() authorizer.AttributesRecord {
	a := authorizer.AttributesRecord{User: w.user(), Verb: w.one(someVerbs), ResourceRequest: w.IntN(4) > 0}
	if !a.ResourceRequest {
		a.Path = w.one(somePaths)
		return a
	}
	a.APIGroup, a.Name = w.one(someGroups), w.one(someNames)
	a.Resource = w.one([]string{"pods", "deployments", "*", "pods/log", "a/b", "a"})
	a.Subresource = w.one([]string{"", "", "log", "scale", "c", "b/c"})
	a.Namespace = w.one(append([]string{""}, someNamespaces...))
	return a
}

// check compares the decisions and the reasons for one request.
func (w *comparison) check(t *testing.T, a authorizer.AttributesRecord) (allowed bool) {
	t.Helper()
	want, reasons := w.o.decide(a)
	decision, reason, err := w.a.Authorize(context.Background(), a)
	if err != nil {
		t.Fatalf("%+v: %v", a, err)
	}
	if got := decision == authorizer.DecisionAllow; got != want || !got && decision != authorizer.DecisionNoOpinion {
		t.Fatalf("%+v for %+v: %v, want allowed %v", a, a.User, decision, want)
	}
	if want {
		if !slices.Contains(reasons, reason) {
			t.Fatalf("%+v for %+v: %q, want one of %q", a, a.User, reason, reasons)
		}
		return true
	}
	var missing []string
	if text, ok := strings.CutPrefix(reason, "RBAC: "); ok {
		text = strings.TrimSuffix(strings.TrimPrefix(text, "["), "]")
		missing = strings.Split(text, ", ")
		slices.Sort(missing)
	}
	if !slices.Equal(missing, reasons) {
		t.Fatalf("%+v for %+v: %q, want all of %q", a, a.User, reason, reasons)
	}
	return false
}

func (w *comparison) checkRules(t *testing.T, u user.Info, namespace string) {
	t.Helper()
	rules, _ := w.a.rulesOf(context.Background(), u, namespace)
	var got []string
	for _, r := range rules {
		got = append(got, fmt.Sprintf("%q", r))
	}
	slices.Sort(got)
	if got, want := slices.Compact(got), w.o.rules(u, namespace); !slices.Equal(got, want) {
		t.Fatalf("rules of %+v in %q: %q, want %q", u, namespace, got, want)
	}
}

func TestAsOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed:", seed)
	requests, allowed := 0, 0
	for round := range uint64(8) {
		w := newComparison(seed + round)
		for range 100 {
			for range 5 {
				w.change()
			}
			for range 10 {
				requests++
				if w.check(t, w.attributes()) {
					allowed++
				}
			}
			w.checkRules(t, w.user(), w.one(append([]string{""}, someNamespaces...)))
		}
		w.checkEmptied(t)
	}
	t.Logf("%d requests, %d of them allowed", requests, allowed)
	if allowed < requests/20 || allowed > requests*19/20 {
		t.Errorf("%d of %d requests were allowed: this compares little", allowed, requests)
	}
}

// checkEmptied deletes everything and looks for what is left.
func (w *comparison) checkEmptied(t *testing.T) {
	t.Helper()
	x := w.a.index
	for _, r := range w.o.roles {
		x.deleteRoleObject(r)
	}
	for _, b := range w.o.bindings {
		x.deleteBindingObject(b)
	}
	for _, r := range w.o.clusterRoles {
		x.deleteClusterRoleObject(r)
	}
	for _, b := range w.o.clusterBindings {
		x.deleteBindingObject(b)
	}
	empty := len(x.roles)+len(x.bindings)+x.missing == 0
	for _, s := range x.scopes {
		empty = empty && len(s.users)+len(s.groups) == 0
	}
	if !empty {
		t.Fatalf("after everything was deleted there are %d roles, %d bindings, %d missing, scopes %v", len(x.roles), len(x.bindings), x.missing, x.scopes)
	}
}

// FuzzRule compares one rule and one request with the oracle. Lists are separated
// by commas.
func FuzzRule(f *testing.F) {
	f.Add("get,list", ",apps", "pods,*/log", "", "", true, "get", "", "pods", "log", "", "")
	f.Add("*", "*", "*", "a", "/a*,/b", false, "get", "", "", "", "", "/ab")
	f.Add("use", "x", "a/b/c", "n", "**", true, "use", "x", "a/b", "c", "n", "")
	f.Fuzz(func(t *testing.T, verbs, groups, resources, names, urls string, isResource bool, verb, group, resource, subresource, name, path string) {
		split := func(s string) []string {
			if s == "" {
				return nil
			}
			return strings.Split(s, ",")
		}
		r := rbacv1.PolicyRule{Verbs: split(verbs), APIGroups: split(groups), Resources: split(resources), ResourceNames: split(names), NonResourceURLs: split(urls)}
		a := authorizer.AttributesRecord{
			ResourceRequest: isResource, Verb: verb, APIGroup: group, Resource: resource, Subresource: subresource, Name: name, Path: path,
		}
		compiled, q := compileRule(&r), requestOf(a)
		if got, want := compiled.allows(&q), plainAllows(a, r); got != want {
			t.Errorf("%q on %+v: %v, want %v", r, a, got, want)
		}
	})
}

// What is missing is what k8s.io/component-helpers says, in spite of the rules
// that are left out of the comparison.
func TestMissingRights(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Log("seed:", seed)
	const comparisons = 250
	w := newComparison(seed)
	short := 0
	for range comparisons {
		owned, wanted := w.rules(), w.rules()
		if w.IntN(2) == 0 {
			wanted = append(wanted, owned...)
		}
		missing, err := missingRights(owned, wanted)
		_, want := validation.Covers(owned, wanted)
		if err != nil || fmt.Sprintf("%q", missing) != fmt.Sprintf("%q", want) {
			t.Fatalf("owned %q, wanted %q: missing %q (%v), want %q", owned, wanted, missing, err, want)
		}
		if len(want) == 0 {
			short++
		}
	}
	if short == 0 || short == comparisons {
		t.Errorf("%d of %d were covered: this compares little", short, comparisons)
	}
}

// A rule with too many permissions to compare is rejected at once.
func TestMissingRightsBounded(t *testing.T) {
	many := make([]string, 3000)
	for i := range many {
		many[i] = fmt.Sprint("x", i)
	}
	costtest.Within(t, time.Second, func() {
		if _, err := missingRights(nil, []rbacv1.PolicyRule{{Verbs: many, APIGroups: many, Resources: many, ResourceNames: many, NonResourceURLs: many}}); err == nil {
			t.Error("want an error at once")
		}
	})
	big := []rbacv1.PolicyRule{{Verbs: many, APIGroups: many, Resources: many}}
	if missing, err := missingRights(big, big); err != nil || len(missing) > 0 {
		t.Errorf("a large rule that is owned: missing %d, %v", len(missing), err)
	}
}

func TestReasonNamesFewMissingRoles(t *testing.T) {
	w := newComparison(1)
	for i := range 1000 {
		w.a.index.setObject(&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i)},
			RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: fmt.Sprint("r", i)},
			Subjects:   []rbacv1.Subject{{Kind: "User", Name: "ann"}},
		})
	}
	_, reason, _ := w.a.Authorize(context.Background(), authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "ann"}, Verb: "get"})
	if len(reason) > 4096 || !strings.HasSuffix(reason, ", and 968 more]") {
		t.Errorf("%d bytes: %s", len(reason), reason)
	}
}

// never is a list that does not come.
type never struct{ done chan struct{} }

func (n never) Name() string          { return "never" }
func (n never) Done() <-chan struct{} { return n.done }

func TestNothingIsAllowedBeforeAllIsLoaded(t *testing.T) {
	w := newComparison(1)
	w.a.index.setObject(&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "r"}, Rules: everything})
	w.a.index.setObject(&rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"},
		RoleRef:    rbacv1.RoleRef{Kind: "ClusterRole", Name: "r"},
		Subjects:   []rbacv1.Subject{{Kind: "User", Name: "ann"}},
	})
	list := never{make(chan struct{})}
	w.a.loads = []cache.DoneChecker{list}
	ask := func(ctx context.Context) (authorizer.Decision, string) {
		decision, reason, _ := w.a.Authorize(ctx, authorizer.AttributesRecord{User: &user.DefaultInfo{Name: "ann"}, Verb: "get", ResourceRequest: true})
		return decision, reason
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if decision, reason := ask(ended); decision != authorizer.DecisionNoOpinion || reason != notLoaded {
		t.Errorf("before: %v, %q", decision, reason)
	}
	if _, err := w.a.rulesOf(ended, &user.DefaultInfo{Name: "ann"}, ""); err == nil {
		t.Error("rules before they are loaded")
	}
	answers := make(chan authorizer.Decision)
	go func() {
		decision, _ := ask(context.Background())
		answers <- decision
	}()
	close(list.done)
	if decision := <-answers; decision != authorizer.DecisionAllow || !w.a.HasSynced() {
		t.Errorf("a request that waited: %v", decision)
	}
}
