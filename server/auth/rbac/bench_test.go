package rbac

import (
	"context"
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// large is 10,000 bindings: 1,000 of the cluster, and nine in each of 1,000
// namespaces. They bind 100 roles to 2,000 users.
func large() *comparison {
	w := newComparison(1)
	for i := range 100 {
		r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("r", i)}}
		for j := range 10 {
			r.Rules = append(r.Rules, rbacv1.PolicyRule{
				Verbs: []string{"get", "list", "watch"}, APIGroups: []string{fmt.Sprint("group", j)}, Resources: []string{fmt.Sprint("things", i)},
			})
		}
		w.a.index.setObject(r)
		w.o.clusterRoles[r.Name] = r
	}
	for i := range 1000 {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i)}, RoleRef: largeRef(i), Subjects: largeSubjects(i)}
		w.a.index.setObject(b)
		w.o.clusterBindings[b.Name] = b
	}
	for i := range 9000 {
		b := largeBinding(i)
		w.a.index.setObject(b)
		w.o.bindings[b.Namespace+"/"+b.Name] = b
	}
	return w
}

func largeRef(i int) rbacv1.RoleRef {
	return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprint("r", i%100)}
}

func largeSubjects(i int) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: "Group", Name: fmt.Sprint("team", i)}, {Kind: "User", Name: fmt.Sprint("user", i%2000)}}
}

func largeBinding(i int) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("n", i%1000), Name: fmt.Sprint("b", i)},
		RoleRef:    largeRef(i), Subjects: largeSubjects(i),
	}
}

func largeRequests() map[string]*authorizer.AttributesRecord {
	request := func(verb string) *authorizer.AttributesRecord {
		return &authorizer.AttributesRecord{
			User: &user.DefaultInfo{Name: "user1500", Groups: []string{"team7000", "system:authenticated"}},
			Verb: verb, APIGroup: "group9", Resource: "things0", Name: "one", Namespace: "n500", ResourceRequest: true,
		}
	}
	return map[string]*authorizer.AttributesRecord{"allowed": request("list"), "denied": request("delete")}
}

func TestAllowedRequestsAllocateNothing(t *testing.T) {
	w := large()
	request := largeRequests()["allowed"]
	if n := testing.AllocsPerRun(100, func() {
		if decision, _, _ := w.a.Authorize(context.Background(), request); decision != authorizer.DecisionAllow {
			t.Fatal(decision)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAuthorize(b *testing.B) {
	w := large()
	for name, request := range largeRequests() {
		want := name == "allowed"
		b.Run(name+"/index", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if decision, _, _ := w.a.Authorize(context.Background(), request); (decision == authorizer.DecisionAllow) != want {
					b.Fatal(decision)
				}
			}
		})
		b.Run(name+"/plain", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if w.o.allowed(request) != want {
					b.Fatal(want)
				}
			}
		})
	}
}

// BenchmarkChange is what one changed binding among 10,000 costs.
func BenchmarkChange(b *testing.B) {
	w := large()
	one, other := largeBinding(4500), largeBinding(4500)
	other.Subjects = largeSubjects(4501)
	b.ReportAllocs()
	for b.Loop() {
		w.a.index.setObject(other)
		w.a.index.setObject(one)
	}
}
