package rbac

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	rbaclisters "k8s.io/client-go/listers/rbac/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
)

// aggregating is a role that is made of those with a label.
func aggregating(name, label string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules,
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{label: "true"}}}},
	}
}

func partOf(label, name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}, Rules: rules}
}

var (
	getPods  = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}
	getNodes = rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"nodes"}}
)

// The rules are those of the roles that a selector selects, each once, and never its own.
func TestUnion(t *testing.T) {
	roles := []*rbacv1.ClusterRole{partOf("x", "a", getMaps, getPods), partOf("y", "b", getNodes), partOf("x", "c", getPods), partOf("z", "d", everything...)}
	of := aggregating("all", "x", everything...)
	of.Labels = map[string]string{"x": "true"}
	of.AggregationRule.ClusterRoleSelectors = append(of.AggregationRule.ClusterRoleSelectors, metav1.LabelSelector{MatchLabels: map[string]string{"y": "true"}})
	rules, err := union(of, append(roles, of))
	if err != nil || !reflect.DeepEqual(rules, []rbacv1.PolicyRule{getMaps, getPods, getNodes}) {
		t.Errorf("%v, %v", rules, err)
	}
	of.AggregationRule.ClusterRoleSelectors[1] = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Nonsense"}}}
	if rules, err := union(of, roles); len(rules) > 0 || err == nil || !strings.HasPrefix(err.Error(), "aggregationRule.clusterRoleSelectors[1]: ") {
		t.Errorf("%v, %v", rules, err)
	}
}

// Updates that change neither labels nor rules cause no pass over all roles.
func TestConcernsAggregation(t *testing.T) {
	old := aggregating("a", "x", getMaps)
	for name, test := range map[string]struct {
		change func(r *rbacv1.ClusterRole)
		want   bool
	}{
		"nothing":          {func(*rbacv1.ClusterRole) {}, false},
		"annotations":      {func(r *rbacv1.ClusterRole) { r.Annotations = map[string]string{"a": "b"} }, false},
		"labels":           {func(r *rbacv1.ClusterRole) { r.Labels = map[string]string{"a": "b"} }, true},
		"rules":            {func(r *rbacv1.ClusterRole) { r.Rules = nil }, true},
		"aggregation rule": {func(r *rbacv1.ClusterRole) { r.AggregationRule = nil }, true},
	} {
		obj := old.DeepCopy()
		test.change(obj)
		if got := concernsAggregation(old, obj); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !concernsAggregation(old, nil) || !concernsAggregation(nil, old) {
		t.Error("an unknown object concerns nothing")
	}
}

// failing lets updates of some roles fail.
func failing(client *fake.Clientset, errs map[string]error) {
	client.PrependReactor("update", "clusterroles", func(action clienttesting.Action) (bool, runtime.Object, error) {
		err := errs[action.(clienttesting.UpdateAction).GetObject().(*rbacv1.ClusterRole).Name]
		return err != nil, nil, err
	})
}

// All roles are tried. A conflict is named only if there is nothing worse.
func TestAggregationTriesAll(t *testing.T) {
	conflict := apierrors.NewConflict(rbacv1.Resource("clusterroles"), "x", errors.New("changed"))
	gone := apierrors.NewNotFound(rbacv1.Resource("clusterroles"), "x")
	first, second := errors.New("first"), errors.New("second")
	wrong := aggregating("b0", "x")
	wrong.AggregationRule.ClusterRoleSelectors[0] = metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Nonsense"}}}
	for _, test := range []struct {
		errs map[string]error
		want error
	}{
		{nil, nil},
		{map[string]error{"b1": gone}, nil},
		{map[string]error{"b1": conflict}, conflict},
		{map[string]error{"b1": first, "b2": second}, first},
		{map[string]error{"b1": conflict, "b2": second}, second},
		{map[string]error{"b1": first, "b2": conflict}, first},
		{map[string]error{"b1": gone, "b2": conflict}, conflict},
	} {
		client := fake.NewClientset()
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		for _, r := range []*rbacv1.ClusterRole{
			wrong, aggregating("b1", "x"), aggregating("b2", "x"), aggregating("b3", "x"), aggregating("same", "x", getPods), partOf("x", "part", getPods), partOf("y", "other", getNodes),
		} {
			if err := indexer.Add(r); err != nil {
				t.Fatal(err)
			}
			if err := client.Tracker().Add(r.DeepCopy()); err != nil {
				t.Fatal(err)
			}
		}
		failing(client, test.errs)
		a := aggregation{roles: rbaclisters.NewClusterRoleLister(indexer), client: client}
		if err := a.run(t.Context()); !errors.Is(err, test.want) {
			t.Errorf("%v: %v", test.errs, err)
		}
		var written []string
		for _, action := range client.Actions() {
			update := action.(clienttesting.UpdateActionImpl)
			r := update.Object.(*rbacv1.ClusterRole)
			written = append(written, r.Name)
			if !reflect.DeepEqual(r.Rules, []rbacv1.PolicyRule{getPods}) || update.UpdateOptions.FieldManager != "clusterrole-aggregation-controller" {
				t.Errorf("%s: %v by %q", r.Name, r.Rules, update.UpdateOptions.FieldManager)
			}
		}
		if !slices.Equal(written, []string{"b1", "b2", "b3"}) {
			t.Errorf("%v: written are %v", test.errs, written)
		}
	}
}

// broken is a lister that fails.
type broken struct{ rbaclisters.ClusterRoleLister }

func (broken) List(labels.Selector) ([]*rbacv1.ClusterRole, error) {
	return nil, errors.New("no list")
}

func TestAggregationNeedsItsList(t *testing.T) {
	a := aggregation{roles: broken{}, client: fake.NewClientset()}
	if err := a.run(t.Context()); err == nil || err.Error() != "no list" {
		t.Error(err)
	}
}

// What fails is tried again, after a conflict soon and after other errors later.
func TestAggregationIsTriedAgain(t *testing.T) {
	for _, test := range []struct {
		name  string
		err   error
		after time.Duration
	}{
		{"conflict", apierrors.NewConflict(rbacv1.Resource("clusterroles"), "x", errors.New("changed")), 100 * time.Millisecond},
		{"failure", errors.New("no answer"), 2 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := fake.NewClientset(aggregating("all", "x"), partOf("x", "part", getPods))
			ctx, cancel := context.WithCancel(t.Context())
			var tried []time.Time
			client.PrependReactor("update", "clusterroles", func(clienttesting.Action) (bool, runtime.Object, error) {
				tried = append(tried, time.Now())
				if len(tried) == 3 {
					cancel()
				}
				return true, nil, test.err
			})
			factory := informers.NewSharedInformerFactory(client, 0)
			done := make(chan error)
			go func() { done <- Aggregate(ctx, factory, client) }()
			synctest.Wait() // the informer is known to the factory
			factory.Start(ctx.Done())
			if err := <-done; err != nil {
				t.Error(err)
			}
			factory.Shutdown()
			for i := range len(tried) - 1 {
				if got := tried[i+1].Sub(tried[i]); got != test.after {
					t.Errorf("%s: again after %v", test.name, got)
				}
			}
		})
	}
}

func TestParseDefaults(t *testing.T) {
	const meta = `"metadata":{"name":"n","namespace":"ns"},`
	d, err := parseDefaults([]byte(`{"kind":"ClusterRole",` + meta + `"rules":[{"verbs":["a"]}],"aggregationRule":{}}
{"kind":"ClusterRoleBinding",` + meta + `"roleRef":{"name":"b"},"subjects":[{"name":"b"}]}
{"kind":"Role",` + meta + `"rules":[{"verbs":["c"]}]}
{"kind":"RoleBinding",` + meta + `"roleRef":{"name":"d"},"subjects":[{"name":"d"}]}`))
	m := metav1.ObjectMeta{Name: "n", Namespace: "ns"}
	want := &defaults{
		clusterRoles:        []rbacv1.ClusterRole{{ObjectMeta: m, Rules: []rbacv1.PolicyRule{{Verbs: []string{"a"}}}, AggregationRule: &rbacv1.AggregationRule{}}},
		clusterRoleBindings: []rbacv1.ClusterRoleBinding{{ObjectMeta: m, RoleRef: rbacv1.RoleRef{Name: "b"}, Subjects: []rbacv1.Subject{{Name: "b"}}}},
		roles:               []rbacv1.Role{{ObjectMeta: m, Rules: []rbacv1.PolicyRule{{Verbs: []string{"c"}}}}},
		roleBindings:        []rbacv1.RoleBinding{{ObjectMeta: m, RoleRef: rbacv1.RoleRef{Name: "d"}, Subjects: []rbacv1.Subject{{Name: "d"}}}},
	}
	if err != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, %v", d, err)
	}
	for text, want := range map[string]string{
		`{"kind":"Secret","metadata":{"name":"s"}}`: "Secret s is not a role and not a binding",
		`{`: "unexpected EOF",
	} {
		if d, err := parseDefaults([]byte(text)); d != nil || err == nil || err.Error() != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
	}
}

// Each list that fails is an error of its own, and nothing is written then.
func TestDefaultsNeedTheirLists(t *testing.T) {
	for _, resource := range []string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"} {
		client := fake.NewClientset()
		client.PrependReactor("list", resource, func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, errors.New("no answer") })
		if err := EnsureDefaults(t.Context(), client); err == nil || err.Error() != "listing the default roles and bindings: no answer" {
			t.Errorf("%s: %v", resource, err)
		}
		for _, action := range client.Actions() {
			if action.GetVerb() != "list" {
				t.Errorf("%s: %s %s", resource, action.GetVerb(), action.GetResource().Resource)
			}
		}
	}
}

// All defaults are tried, and the error names those that failed.
func TestDefaultsThatFail(t *testing.T) {
	client := fake.NewClientset()
	fails := func(action clienttesting.Action) (bool, runtime.Object, error) {
		name := action.(clienttesting.CreateAction).GetObject().(metav1.Object).GetName()
		if name != "edit" && name != "system:discovery" {
			return false, nil, nil
		}
		return true, nil, fmt.Errorf("no %s", name)
	}
	client.PrependReactor("create", "*", fails)
	err := EnsureDefaults(t.Context(), client)
	const want = "ClusterRole system:discovery: no system:discovery\nClusterRole edit: no edit\nClusterRoleBinding system:discovery: no system:discovery"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	roles, err := client.RbacV1().ClusterRoles().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(roles.Items) != len(defaultRoles())-2 {
		t.Errorf("%d roles, %v", len(roles.Items), err)
	}
}

// After a conflict, what is there now is read and completed.
func TestDefaultsAfterAConflict(t *testing.T) {
	stale := defaultRoles()[1] // system:discovery
	stale.Rules = nil
	binding := defaultBindings()[2] // system:discovery
	binding.Subjects = nil
	client := fake.NewClientset(&stale, &binding)
	tried := map[string]int{}
	client.PrependReactor("update", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		resource := action.GetResource().Resource
		if tried[resource]++; tried[resource] == 1 {
			return true, nil, apierrors.NewConflict(rbacv1.Resource(resource), "system:discovery", errors.New("changed"))
		}
		return false, nil, nil
	})
	if err := EnsureDefaults(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	reads := map[string]int{}
	for _, action := range client.Actions() {
		if action.GetVerb() == "get" {
			reads[action.GetResource().Resource]++
		}
	}
	// Only what had a conflict is read singly.
	if want := map[string]int{"clusterroles": 1, "clusterrolebindings": 1}; !reflect.DeepEqual(reads, want) || !reflect.DeepEqual(tried, map[string]int{"clusterroles": 2, "clusterrolebindings": 2}) {
		t.Errorf("read %v, written %v", reads, tried)
	}
	got, err := client.RbacV1().ClusterRoles().Get(t.Context(), "system:discovery", metav1.GetOptions{})
	if err != nil || len(got.Rules) != 11 { // one for each path
		t.Errorf("%v, %v", got, err)
	}
	bound, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), "system:discovery", metav1.GetOptions{})
	if err != nil || len(bound.Subjects) != 1 {
		t.Errorf("%v, %v", bound, err)
	}
}

// What is protected is left alone without an error.
func TestEnsureReportsErrorsOnly(t *testing.T) {
	failure := errors.New("no answer")
	for _, test := range []struct {
		protected bool
		err       error
		want      string
	}{{false, nil, ""}, {true, nil, ""}, {false, failure, "Role n: no answer"}, {true, failure, "Role n: no answer"}} {
		w := wanted{"Role", "n", func() (reconciliation.ReconcileOperation, bool, error) {
			return reconciliation.ReconcileUpdate, test.protected, test.err
		}}
		got := ""
		if err := w.ensure(); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%v: %s", test, got)
		}
	}
}
