package scenarios

import (
	"slices"
	"strings"
	"testing"
)

const fleetRoles = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: boats-edit
  labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true"}
rules:
- {apiGroups: [harbour.example.com], resources: [boats], verbs: [create, update, patch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: boats-view
  labels: {rbac.authorization.k8s.io/aggregate-to-view: "true"}
rules:
- {apiGroups: [harbour.example.com], resources: [boats], verbs: [get, list, watch]}
`

// A team has two namespaces: alice edits in one, bob views in the other.
type team struct{ admin, alice, bob *kubectl }

// in returns the team for a subtest.
func (m team) in(t *testing.T) (admin, alice, bob *kubectl) {
	return m.admin.in(t), m.alice.in(t), m.bob.in(t)
}

// An administrator has two people, and gives each of them rights in a namespace. The subtests are one story: each goes on where the one before ended.
func TestUsers(t *testing.T) {
	needsDiscovery(t)
	s := serve(t, against, prefix())
	admin := newKubectl(t, s)
	admin.says([]string{"namespace/team-a created"}, "create", "namespace", "team-a")
	admin.says([]string{"namespace/team-b created"}, "create", "namespace", "team-b")
	admin.says([]string{"rolebinding.rbac.authorization.k8s.io/alice created"}, "create", "rolebinding", "alice", "--clusterrole=edit", "--user=alice", "-n", "team-a")
	admin.says([]string{"rolebinding.rbac.authorization.k8s.io/bob created"}, "create", "rolebinding", "bob", "--clusterrole=view", "--user=bob", "-n", "team-b")
	m := team{admin, person(t, s, "alice", "developers"), person(t, s, "bob")}
	t.Run("have their rights", m.haveTheirRights)
	t.Run("have rights of custom resources", m.haveRightsOfCustomResources)
	t.Run("ask for their rights", m.askForTheirRights)
	t.Run("act as others", m.actAsOthers)
	t.Run("give no more than they have", m.giveNoMoreThanTheyHave)
	t.Run("lose their rights", m.loseTheirRights)
}

// Each can do what the role says in the namespace of the binding, and nothing else.
func (m team) haveTheirRights(t *testing.T) {
	admin, alice, bob := m.in(t)
	alice.succeeds("configmap/plan created", "create", "configmap", "plan", "--from-literal=a=b", "-n", "team-a")
	alice.says([]string{"secret/key created"}, "create", "secret", "generic", "key", "--from-literal=a=b", "-n", "team-a")
	alice.says([]string{"plan", "DATA"}, "get", "configmaps", "-n", "team-a")
	alice.says([]string{"configmap/plan labeled"}, "label", "configmap", "plan", "x=y", "-n", "team-a")
	alice.fails([]string{`Error from server (Forbidden): configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" in the namespace "team-b"`},
		"get", "configmaps", "-n", "team-b")
	alice.fails([]string{`Error from server (Forbidden): configmaps is forbidden: User "alice" cannot list resource "configmaps" in API group "" at the cluster scope`},
		"get", "configmaps", "-A")
	alice.fails([]string{`error: failed to create configmap: configmaps is forbidden: User "alice" cannot create resource "configmaps" in API group "" in the namespace "default"`},
		"create", "configmap", "plan")
	alice.fails([]string{`Error from server (Forbidden): namespaces is forbidden: User "alice" cannot create resource "namespaces" in API group "" at the cluster scope`},
		"create", "namespace", "team-c")
	alice.fails([]string{`rolebindings.rbac.authorization.k8s.io is forbidden: User "alice" cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io" in the namespace "team-a"`},
		"create", "rolebinding", "carol", "--clusterrole=edit", "--user=carol", "-n", "team-a")
	alice.fails([]string{`Error from server (Forbidden): forbidden: User "alice" cannot get path "/metrics"`}, "get", "--raw", "/metrics")

	admin.ok("create", "configmap", "chart", "--from-literal=a=b", "-n", "team-b")
	admin.ok("create", "secret", "generic", "key", "--from-literal=a=b", "-n", "team-b")
	bob.says([]string{"chart"}, "get", "configmaps", "-n", "team-b")
	bob.fails([]string{`Error from server (Forbidden): secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace "team-b"`},
		"get", "secrets", "-n", "team-b")
	bob.fails([]string{`Error from server (Forbidden): secrets "key" is forbidden: User "bob" cannot get resource "secrets" in API group "" in the namespace "team-b"`},
		"get", "secret", "key", "-n", "team-b")
	bob.fails([]string{`Error from server (Forbidden): configmaps "chart" is forbidden: User "bob" cannot delete resource "configmaps" in API group "" in the namespace "team-b"`},
		"delete", "configmap", "chart", "-n", "team-b")
	bob.fails([]string{`configmaps "chart" is forbidden: User "bob" cannot patch resource "configmaps" in API group "" in the namespace "team-b"`},
		"label", "configmap", "chart", "x=y", "-n", "team-b")
}

// What was given can be taken: a binding, and what a role has brought into another one.
func (m team) loseTheirRights(t *testing.T) {
	admin, alice, bob := m.in(t)
	admin.says([]string{`rolebinding.rbac.authorization.k8s.io "bob" deleted`}, "delete", "rolebinding", "bob", "-n", "team-b")
	bob.turns(1, `User "bob" cannot list resource "configmaps"`, "get", "configmaps", "-n", "team-b")
	admin.ok("delete", "clusterrole", "boats-edit")
	alice.turns(1, `cannot delete resource "boats"`, "delete", "boat", "none", "-n", "team-a")
	alice.says([]string{"swan"}, "get", "boats", "-n", "team-a")
}

// The author of a CRD adds its rights to edit and view; users with these roles have them for boats from then on.
func (m team) haveRightsOfCustomResources(t *testing.T) {
	admin, alice, bob := m.in(t)
	admin.install("boats.yaml", boats)
	alice.fails([]string{`Error from server (Forbidden): boats.harbour.example.com is forbidden: User "alice" cannot list resource "boats" in API group "harbour.example.com" in the namespace "team-a"`},
		"get", "boats", "-n", "team-a")
	if out, code := admin.feed(fleetRoles, "apply", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	alice.succeeds("No resources found in team-a namespace.", "get", "boats", "-n", "team-a")
	if out, code := alice.feed(boatIn("team-a", "swan", "alice"), "create", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	alice.says([]string{"swan", "alice"}, "get", "boats", "-n", "team-a")
	alice.says([]string{"patched"}, "patch", "boat", "swan", "--type=merge", "-p", `{"spec":{"colour":"red"}}`, "-n", "team-a")
	alice.fails([]string{`cannot get resource "boats/status" in API group "harbour.example.com" in the namespace "team-a"`},
		"patch", "boat", "swan", "--subresource=status", "--type=merge", "-p", `{"status":{"phase":"x"}}`, "-n", "team-a")
	alice.fails([]string{`customresourcedefinitions.apiextensions.k8s.io is forbidden: User "alice" cannot list resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`},
		"get", "crds")
	bob.succeeds("No resources found in team-b namespace.", "get", "boats", "-n", "team-b")
	out, code := bob.feed(boatIn("team-b", "raft", "bob"), "create", "-f", "-")
	if code == 0 {
		t.Error("bob has made a boat")
	}
	contains(t, []string{"create"}, out, []string{`boats.harbour.example.com is forbidden: User "bob" cannot create resource "boats" in API group "harbour.example.com" in the namespace "team-b"`})
	bob.fails([]string{`boats.harbour.example.com "swan" is forbidden: User "bob" cannot get resource "boats" in API group "harbour.example.com" in the namespace "team-a"`},
		"get", "boat", "swan", "-n", "team-a")
}

// People ask what they may do, and who they are.
func (m team) askForTheirRights(t *testing.T) {
	admin, alice, bob := m.in(t)
	alice.can(true, "create", "boats", "-n", "team-a")
	alice.can(true, "create", "configmaps", "-n", "team-a")
	alice.can(true, "create", "serviceaccounts/token", "-n", "team-a")
	alice.can(true, "get", "configmaps/anything", "-n", "team-a")
	alice.can(true, "create", "selfsubjectaccessreviews.authorization.k8s.io")
	alice.can(true, "get", "/apis")
	alice.can(false, "get", "/metrics")
	alice.can(false, "create", "configmaps", "-n", "team-b")
	alice.can(false, "create", "configmaps", "-A")
	alice.can(false, "create", "rolebindings", "-n", "team-a")
	alice.can(false, "*", "*")
	alice.can(false, "impersonate", "users")
	admin.can(true, "*", "*", "-A")
	admin.can(true, "impersonate", "users")
	bob.can(true, "watch", "boats.harbour.example.com", "-n", "team-b")
	bob.can(false, "delete", "boats", "-n", "team-b")
	bob.can(false, "get", "secrets", "-n", "team-b")

	list := alice.ok("auth", "can-i", "--list", "-n", "team-a")
	contains(t, []string{"can-i --list"}, list, []string{"Resources", "Non-Resource URLs", "Resource Names", "Verbs",
		"boats.harbour.example.com", "configmaps", "secrets", "selfsubjectreviews.authentication.k8s.io", "[/api/*]", "[/readyz]"})
	if list := alice.ok("auth", "can-i", "--list", "-n", "team-b"); len(list) == 0 || containsAny(list, "configmaps", "boats") {
		t.Errorf("what alice may do in team-b:\n%s", list)
	}
	contains(t, []string{"can-i --list"}, admin.ok("auth", "can-i", "--list"), []string{"*.*", "[*]"})

	alice.says([]string{"ATTRIBUTE", "Username", "alice", "Groups", "[developers system:authenticated]", "Extra: authentication.kubernetes.io/credential-id"}, "auth", "whoami")
	bob.says([]string{`bob ["system:authenticated"]`}, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username} {.status.userInfo.groups}")
	// An administrator asks for others.
	admin.can(true, "create", "configmaps", "-n", "team-a", "--as=alice")
	admin.can(false, "create", "configmaps", "-n", "team-b", "--as=alice")
	admin.can(false, "create", "configmaps", "-n", "team-a", "--as=somebody", "--as-group=developers")
}

// Users with the right to impersonate act as other users, with their rights; the server refuses others.
func (m team) actAsOthers(t *testing.T) {
	admin, alice, bob := m.in(t)
	admin.says([]string{"Username", "bob", "[system:authenticated]"}, "auth", "whoami", "--as=bob")
	admin.says([]string{"chart"}, "get", "configmaps", "-n", "team-b", "--as=bob")
	admin.fails([]string{`User "bob" cannot list resource "secrets" in API group "" in the namespace "team-b"`}, "get", "secrets", "-n", "team-b", "--as=bob")
	admin.says([]string{"system:serviceaccount:team-a:default", "[system:serviceaccounts system:serviceaccounts:team-a system:authenticated]"},
		"auth", "whoami", "--as=system:serviceaccount:team-a:default")
	alice.fails([]string{"Error from server (Forbidden): ", `User "alice" cannot impersonate`},
		"get", "configmaps", "-n", "team-b", "--as=bob")

	admin.ok("create", "clusterrole", "be-bob", "--verb=impersonate", "--resource=users", "--resource-name=bob")
	admin.ok("create", "clusterrolebinding", "alice-is-bob", "--clusterrole=be-bob", "--user=alice")
	alice.succeeds("chart", "get", "configmaps", "-n", "team-b", "--as=bob")
	alice.says([]string{"bob"}, "auth", "whoami", "--as=bob")
	alice.fails([]string{`User "bob" cannot list resource "configmaps" in API group "" in the namespace "team-a"`}, "get", "configmaps", "-n", "team-a", "--as=bob")
	alice.fails([]string{"Error from server (Forbidden): ", `User "alice" cannot impersonate`}, "get", "configmaps", "-n", "team-b", "--as=admin")
	alice.fails([]string{"Error from server (Forbidden): ", `User "alice" cannot impersonate`},
		"get", "configmaps", "-n", "team-b", "--as=bob", "--as-group=system:masters")
	alice.fails([]string{"Error from server (Forbidden): ", `User "alice" cannot impersonate`},
		"get", "configmaps", "-n", "team-b", "--as=bob", "--as-uid=7")
	// edit has the service accounts of its namespace in it.
	alice.says([]string{"system:serviceaccount:team-a:default"}, "auth", "whoami", "--as=system:serviceaccount:team-a:default")
	alice.fails([]string{"Error from server (Forbidden): ", `User "alice" cannot impersonate`},
		"get", "configmaps", "-n", "team-b", "--as=system:serviceaccount:team-b:default")
	// This is how kubectl has it.
	bob.fails([]string{"error: the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it"}, "auth", "whoami", "--as=alice")
}

// Users cannot grant more than they have: an administrator of a namespace makes roles and bindings of their own rights only.
func (m team) giveNoMoreThanTheyHave(t *testing.T) {
	admin, _, _ := m.in(t)
	admin.ok("create", "rolebinding", "carol", "--clusterrole=admin", "--user=carol", "-n", "team-a")
	carol := person(t, admin.server, "carol")
	carol.succeeds("rolebinding.rbac.authorization.k8s.io/dan created", "create", "rolebinding", "dan", "--clusterrole=view", "--user=dan", "-n", "team-a")
	person(t, admin.server, "dan").succeeds("plan", "get", "configmaps", "-n", "team-a")
	carol.says([]string{"role.rbac.authorization.k8s.io/readers created"}, "create", "role", "readers", "--verb=get", "--resource=secrets", "-n", "team-a")
	carol.fails([]string{`roles.rbac.authorization.k8s.io "boaters" is forbidden: user "carol" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:`,
		`{APIGroups:["rbac.authorization.k8s.io"], Resources:["roles"], Verbs:["escalate"]}`}, "create", "role", "boaters", "--verb=escalate", "--resource=roles", "-n", "team-a")
	carol.fails([]string{`rolebindings.rbac.authorization.k8s.io "root" is forbidden: user "carol" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:`,
		`{APIGroups:["*"], Resources:["*"], Verbs:["*"]}`}, "create", "rolebinding", "root", "--clusterrole=cluster-admin", "--user=carol", "-n", "team-a")
	carol.fails([]string{`roles.rbac.authorization.k8s.io "readers" is forbidden`}, "patch", "role", "readers", "--type=json", "-p", `[{"op":"add","path":"/rules/0/verbs/-","value":"impersonate"}]`, "-n", "team-a")
	carol.fails([]string{`User "carol" cannot create resource "clusterrolebindings"`}, "create", "clusterrolebinding", "carol", "--clusterrole=view", "--user=carol")
	// With the verb bind she may.
	admin.ok("create", "clusterrole", "binder", "--verb=bind", "--resource=clusterroles", "--resource-name=cluster-admin")
	admin.ok("create", "clusterrolebinding", "carol-binds", "--clusterrole=binder", "--user=carol")
	carol.succeeds("rolebinding.rbac.authorization.k8s.io/root created", "create", "rolebinding", "root", "--clusterrole=cluster-admin", "--user=carol", "-n", "team-a")
}

func containsAny(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}
