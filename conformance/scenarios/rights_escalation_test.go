package scenarios

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	siteRoles    = rbacPath + "/namespaces/site/roles"
	siteBindings = rbacPath + "/namespaces/site/rolebindings"
	notHeld      = "is attempting to grant RBAC permissions not currently held"
	mergePatch   = "application/merge-patch+json"
	strategic    = "application/strategic-merge-patch+json"
	applyPatch   = "application/apply-patch+yaml"

	readMaps    = `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get"]}`
	readSecrets = `{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}`
)

// A site is a server with a namespace whose foreman may edit its roles and bindings, and has no other rights than to read config maps.
type site struct {
	server  *launch.Server
	admin   *attacker
	foreman *attacker
}

func newSite(t *testing.T, s *launch.Server) *site {
	t.Helper()
	w := &site{server: s, admin: newAttacker(t, s), foreman: attackerAs(t, s, "foreman")}
	w.admin.made("/api/v1/namespaces", `{"metadata":{"name":"site"}}`)
	// Not the star, which would be the verbs escalate and bind, too.
	w.admin.made(siteRoles, roleText("foremen", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles","rolebindings"],"verbs":["get","list","watch","create","update","patch","delete","deletecollection"]}`, `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"]}`))
	w.admin.made(siteBindings, bindingText("foremen", "Role", "foremen", "foreman"))
	w.admin.made(siteRoles, roleText("keyholders", readSecrets))
	w.admin.made(siteBindings, bindingText("keyholders", "Role", "keyholders", "janitor"))
	w.admin.made(siteRoles, roleText("readers", readMaps))
	w.admin.made(siteBindings, bindingText("readers", "Role", "readers", "janitor"))
	eventually(t, 30*time.Second, "the foreman may list roles", func() bool {
		status, _, _ := w.foreman.send(http.MethodGet, siteRoles, "", "")
		return status == http.StatusOK
	})
	return w
}

// attackerAs sends requests with a certificate of a user.
func attackerAs(t *testing.T, s *launch.Server, user string, groups ...string) *attacker {
	t.Helper()
	config, err := s.Client(user, groups...)
	if err != nil {
		t.Fatal(err)
	}
	own := *s
	own.Config = config
	return newAttacker(t, &own)
}

// set writes over an object as the administrator.
func (w *site) set(path, body string) {
	w.admin.t.Helper()
	if status, _, answer := w.admin.send(http.MethodPut, path, jsonType, body); status != http.StatusOK {
		w.admin.t.Fatalf("PUT %s: %d: %s", path, status, answer)
	}
}

func roleText(name string, rules ...string) string {
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":%q},"rules":[%s]}`, name, strings.Join(rules, ","))
}

func clusterRoleText(name string, rules ...string) string {
	return strings.Replace(roleText(name, rules...), `"Role"`, `"ClusterRole"`, 1)
}

// bindingText binds a role to users.
func bindingText(name, kind, role string, users ...string) string {
	var subjects []string
	for _, u := range users {
		subjects = append(subjects, fmt.Sprintf(`{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":%q}`, u))
	}
	return fmt.Sprintf(`{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":%q},"subjects":[%s],"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":%q,"name":%q}}`,
		name, strings.Join(subjects, ","), kind, role)
}

// A rightsWrite is a way to write roles or bindings.
type rightsWrite struct{ method, path, contentType, body string }

func (w rightsWrite) String() string {
	return fmt.Sprintf("%s %s (%s) %.200s", w.method, w.path, w.contentType, w.body)
}

// TestRightsEscalation is about users who may edit roles: they cannot grant others or themselves more than they have.
func TestRightsEscalation(t *testing.T) {
	needsDiscovery(t)
	w := newSite(t, serve(t, against, prefix()))
	for _, c := range []struct {
		name string
		run  func(*site)
	}{
		{"kubectl auth", (*site).kubectlAuth},
		{"bindings", (*site).escalateByBindings},
		{"cluster", (*site).escalateInCluster},
		{"roles", (*site).escalateByRoles}, // gives the foreman more at the end
	} {
		t.Run(c.name, func(t *testing.T) {
			c.run(&site{w.server, w.admin.with(t), w.foreman.with(t)})
		})
	}
}

// kept sends writes that must be refused with words, and sees that roles and bindings are as before.
func (w *site) kept(who *attacker, words string, writes ...rightsWrite) {
	w.admin.t.Helper()
	for _, x := range writes {
		_, _, roles := w.admin.send(http.MethodGet, siteRoles, "", "")
		_, _, bindings := w.admin.send(http.MethodGet, siteBindings, "", "")
		status, _, answer := who.send(x.method, x.path, x.contentType, x.body)
		if status != http.StatusForbidden || !strings.Contains(answer, words) {
			w.admin.t.Errorf("%v: %d, where 403 and %q are due: %.400s", x, status, words, answer)
		}
		_, _, after := w.admin.send(http.MethodGet, siteRoles, "", "")
		_, _, bound := w.admin.send(http.MethodGet, siteBindings, "", "")
		if rightsItems(after) != rightsItems(roles) || rightsItems(bound) != rightsItems(bindings) {
			w.admin.t.Errorf("%v has changed something", x)
		}
	}
}

// rightsItems is a list without its own resourceVersion.
func rightsItems(list string) string {
	_, items, _ := strings.Cut(list, `"items":`)
	return items
}

// done sends writes that must be accepted.
func (w *site) done(who *attacker, writes ...rightsWrite) {
	w.admin.t.Helper()
	for _, x := range writes {
		if status, _, answer := who.send(x.method, x.path, x.contentType, x.body); status != http.StatusOK && status != http.StatusCreated {
			w.admin.t.Errorf("%v: %d: %.400s", x, status, answer)
		}
	}
}

// escalateByRoles writes roles in all ways that there are.
func (w *site) escalateByRoles() {
	own, other := siteRoles+"/mine", siteRoles+"/applied"
	apply := "?fieldManager=foreman&force=true"
	w.done(w.foreman,
		rightsWrite{"POST", siteRoles, jsonType, roleText("mine", readMaps)},
		rightsWrite{"PUT", own, jsonType, roleText("mine", readMaps, `{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","list"],"resourceNames":["one"]}`)},
		rightsWrite{"PATCH", own, mergePatch, `{"metadata":{"labels":{"a":"b"}}}`},
		rightsWrite{"PATCH", own, jsonPatchType, `[{"op":"add","path":"/rules/-","value":` + readMaps + `}]`},
		rightsWrite{"PATCH", other + apply, applyPatch, roleText("applied", readMaps)},
	)
	for _, rule := range []string{
		readSecrets,
		`{"apiGroups":[""],"resources":["configmaps"],"verbs":["update"]}`,
		`{"apiGroups":[""],"resources":["configmaps"],"verbs":["*"]}`,
		`{"apiGroups":[""],"resources":["*"],"verbs":["get"]}`,
		`{"apiGroups":["*"],"resources":["configmaps"],"verbs":["get"]}`,
		`{"apiGroups":[""],"resources":["configmaps/status"],"verbs":["get"]}`,
		`{"apiGroups":["","apps"],"resources":["configmaps","secrets"],"verbs":["get","list"]}`,
		`{"apiGroups":[""],"resources":["secrets"],"resourceNames":["one"],"verbs":["get"]}`,
		`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}`,
		`{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["*"]}`,
		`{"apiGroups":[""],"resources":["serviceaccounts"],"verbs":["impersonate"]}`,
	} {
		w.kept(w.foreman, notHeld,
			rightsWrite{"POST", siteRoles, jsonType, roleText("more", rule)},
			rightsWrite{"POST", siteRoles, jsonType, roleText("more", readMaps, rule)},
			rightsWrite{"PUT", own, jsonType, roleText("mine", readMaps, rule)},
			rightsWrite{"PATCH", other + apply, applyPatch, roleText("applied", rule)},
		)
	}
	w.kept(w.foreman, notHeld,
		rightsWrite{"POST", siteRoles + "?dryRun=All", jsonType, roleText("more", readSecrets)},
		rightsWrite{"POST", siteRoles, yamlType, roleText("more", readSecrets)},
		rightsWrite{"POST", siteRoles, jsonType, strings.Replace(roleText("", readSecrets), `"name":""`, `"generateName":"more-"`, 1)},
		rightsWrite{"PUT", siteRoles + "/more", jsonType, roleText("more", readSecrets)},
		rightsWrite{"PUT", siteRoles + "/foremen", jsonType, roleText("foremen", readSecrets)},
		rightsWrite{"PATCH", siteRoles + "/foremen", jsonPatchType, `[{"op":"add","path":"/rules/-","value":{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}}]`},
		rightsWrite{"PATCH", own, mergePatch, `{"rules":[` + readSecrets + `]}`},
		rightsWrite{"PATCH", own, strategic, `{"rules":[` + readSecrets + `]}`},
		rightsWrite{"PATCH", own, jsonPatchType, `[{"op":"replace","path":"/rules/0/resources/0","value":"secrets"}]`},
		rightsWrite{"PATCH", siteRoles + "/more" + apply, applyPatch, roleText("more", readSecrets)},
		rightsWrite{"PATCH", siteRoles + "/keyholders", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`},
		rightsWrite{"PATCH", siteRoles + "/keyholders?dryRun=All", jsonPatchType, `[{"op":"add","path":"/rules/-","value":` + readMaps + `}]`},
	)
	// Rights in one namespace are none elsewhere.
	w.kept(w.foreman, "cannot",
		rightsWrite{"POST", rbacPath + "/namespaces/default/roles", jsonType, roleText("mine", readMaps)},
		rightsWrite{"POST", rbacPath + "/clusterroles", jsonType, clusterRoleText("mine", readMaps)},
		rightsWrite{"POST", rbacPath + "/clusterrolebindings", jsonType, strings.Replace(bindingText("mine", "ClusterRole", "view", "foreman"), "RoleBinding", "ClusterRoleBinding", 1)},
	)
	w.escalates()
}

// escalates: with the verb escalate the foreman can write any role, and for this one name only; a role alone is not yet a right.
func (w *site) escalates() {
	t := w.admin.t
	t.Helper()
	w.admin.made(siteRoles, roleText("climbers", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"],"resourceNames":["mine"]}`))
	w.admin.made(siteBindings, bindingText("climbers", "Role", "climbers", "foreman"))
	eventually(t, 30*time.Second, "the foreman may escalate", func() bool {
		status, _, _ := w.foreman.send(http.MethodPut, siteRoles+"/mine", jsonType, roleText("mine", readSecrets))
		return status == http.StatusOK
	})
	w.kept(w.foreman, notHeld,
		rightsWrite{"PUT", siteRoles + "/applied", jsonType, roleText("applied", readSecrets)},
		rightsWrite{"POST", siteRoles, jsonType, roleText("more", readSecrets)},
		rightsWrite{"POST", siteBindings, jsonType, bindingText("climbed", "Role", "mine", "foreman")},
	)
	w.set(siteRoles+"/climbers", roleText("climbers", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["escalate"]}`))
	eventually(t, 30*time.Second, "the foreman may escalate all roles", func() bool {
		status, _, _ := w.foreman.send(http.MethodPost, siteRoles, jsonType, roleText("more", readSecrets))
		return status == http.StatusCreated
	})
	w.kept(w.foreman, "cannot get resource", rightsWrite{"GET", "/api/v1/namespaces/site/secrets/one", "", ""})
}

// escalateByBindings binds roles with more rights than the binding users have.
func (w *site) escalateByBindings() {
	t := w.admin.t
	apply := "?fieldManager=foreman&force=true"
	w.done(w.foreman,
		rightsWrite{"POST", siteBindings, jsonType, bindingText("mine", "Role", "readers", "foreman", "janitor")},
		rightsWrite{"PUT", siteBindings + "/readers", jsonType, bindingText("readers", "Role", "readers", "porter")},
		rightsWrite{"PATCH", siteBindings + "/applied" + apply, applyPatch, bindingText("applied", "Role", "readers", "porter")},
		rightsWrite{"PATCH", siteBindings + "/mine", mergePatch, `{"subjects":[]}`},
	)
	for _, role := range [][2]string{{"Role", "keyholders"}, {"ClusterRole", "cluster-admin"}, {"ClusterRole", "admin"}, {"ClusterRole", "edit"}, {"ClusterRole", "view"}} {
		w.kept(w.foreman, notHeld,
			rightsWrite{"POST", siteBindings, jsonType, bindingText("more", role[0], role[1], "foreman")},
			rightsWrite{"POST", siteBindings + "?dryRun=All", jsonType, bindingText("more", role[0], role[1], "foreman")},
			rightsWrite{"PUT", siteBindings + "/more", jsonType, bindingText("more", role[0], role[1], "foreman")},
			rightsWrite{"PATCH", siteBindings + "/more" + apply, applyPatch, bindingText("more", role[0], role[1], "foreman")},
		)
	}
	w.kept(w.foreman, notHeld,
		rightsWrite{"PUT", siteBindings + "/keyholders", jsonType, bindingText("keyholders", "Role", "keyholders", "foreman")},
		rightsWrite{"PATCH", siteBindings + "/keyholders", mergePatch, `{"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"foreman"}]}`},
		rightsWrite{"PATCH", siteBindings + "/keyholders", jsonPatchType, `[{"op":"replace","path":"/subjects/0/name","value":"foreman"}]`},
		rightsWrite{"PATCH", siteBindings + "/keyholders" + apply, applyPatch, bindingText("keyholders", "Role", "keyholders", "foreman")},
		rightsWrite{"PUT", siteBindings + "/readers", jsonType, bindingText("readers", "Role", "keyholders", "foreman")},
	)
	// The roleRef of a binding is immutable for all users.
	if status, _, answer := w.admin.send(http.MethodPut, siteBindings+"/readers", jsonType, bindingText("readers", "Role", "keyholders", "foreman")); status != http.StatusUnprocessableEntity {
		t.Errorf("an administrator changes the role of a binding: %d: %s", status, answer)
	}
	// A role that does not exist yet could become anything.
	if status, _, answer := w.foreman.send(http.MethodPost, siteBindings, jsonType, bindingText("later", "Role", "later", "foreman")); status != http.StatusNotFound {
		t.Errorf("a binding to a role that does not exist: %d: %s", status, answer)
	}
	w.admin.made(siteRoles, roleText("binders", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles"],"verbs":["bind"],"resourceNames":["keyholders","later"]}`, `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles"],"verbs":["bind"],"resourceNames":["view"]}`))
	w.admin.made(siteBindings, bindingText("binders", "Role", "binders", "foreman"))
	eventually(t, 30*time.Second, "the foreman may bind", func() bool {
		status, _, _ := w.foreman.send(http.MethodPost, siteBindings, jsonType, bindingText("more", "Role", "keyholders", "porter"))
		return status == http.StatusCreated
	})
	w.done(w.foreman,
		rightsWrite{"POST", siteBindings, jsonType, bindingText("viewers", "ClusterRole", "view", "porter")},
		rightsWrite{"POST", siteBindings, jsonType, bindingText("later", "Role", "later", "porter")},
	)
	w.kept(w.foreman, notHeld,
		rightsWrite{"POST", siteBindings, jsonType, bindingText("admins", "ClusterRole", "admin", "foreman")},
		rightsWrite{"POST", siteRoles, jsonType, roleText("more", readSecrets)},
	)
}

// escalateInCluster does so with roles of the cluster, and tries to aggregate others.
func (w *site) escalateInCluster() {
	t := w.admin.t
	const roles, bindings = rbacPath + "/clusterroles", rbacPath + "/clusterrolebindings"
	inCluster := func(text string) string {
		return strings.Replace(text, `"RoleBinding"`, `"ClusterRoleBinding"`, 1)
	}
	w.admin.made(roles, clusterRoleText("architects", `{"apiGroups":["rbac.authorization.k8s.io"],"resources":["clusterroles","clusterrolebindings","rolebindings"],"verbs":["get","list","create","update","patch","delete"]}`, readMaps))
	w.admin.made(bindings, inCluster(bindingText("architects", "ClusterRole", "architects", "architect")))
	architect := attackerAs(t, w.server, "architect")
	eventually(t, 30*time.Second, "the architect may make roles", func() bool {
		status, _, _ := architect.send(http.MethodPost, roles, jsonType, clusterRoleText("drawn", readMaps))
		return status == http.StatusCreated
	})
	aggregate := func(name string, rules ...string) string {
		return strings.Replace(clusterRoleText(name, rules...), `"rules":`, `"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"kubernetes.io/bootstrapping":"rbac-defaults"}}]},"rules":`, 1)
	}
	w.kept(architect, notHeld,
		rightsWrite{"POST", roles, jsonType, clusterRoleText("more", readSecrets)},
		rightsWrite{"POST", roles, jsonType, clusterRoleText("more", `{"nonResourceURLs":["/metrics"],"verbs":["get"]}`)},
		rightsWrite{"POST", roles, jsonType, clusterRoleText("more", `{"nonResourceURLs":["*"],"verbs":["get"]}`)},
		rightsWrite{"PUT", roles + "/architects", jsonType, clusterRoleText("architects", `{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}`)},
		rightsWrite{"PATCH", roles + "/cluster-admin", mergePatch, `{"metadata":{"labels":{"a":"b"}}}`},
		rightsWrite{"PATCH", roles + "/system:aggregate-to-view", jsonPatchType, `[{"op":"add","path":"/rules/-","value":` + readSecrets + `}]`},
		rightsWrite{"PATCH", bindings + "/cluster-admin", jsonPatchType, `[{"op":"add","path":"/subjects/-","value":{"apiGroup":"rbac.authorization.k8s.io","kind":"User","name":"architect"}}]`},
		rightsWrite{"POST", bindings, jsonType, inCluster(bindingText("more", "ClusterRole", "cluster-admin", "architect"))},
		rightsWrite{"POST", siteBindings, jsonType, bindingText("more", "ClusterRole", "cluster-admin", "architect")},
		rightsWrite{"POST", siteBindings, jsonType, bindingText("more", "Role", "keyholders", "architect")},
	)
	w.kept(architect, "must have cluster-admin privileges to use the aggregationRule",
		rightsWrite{"POST", roles, jsonType, aggregate("more")},
		rightsWrite{"POST", roles, jsonType, aggregate("more", readMaps)},
		rightsWrite{"PUT", roles + "/drawn", jsonType, aggregate("drawn", readMaps)},
		rightsWrite{"PATCH", roles + "/drawn", mergePatch, `{"aggregationRule":{"clusterRoleSelectors":[{}]}}`},
		rightsWrite{"PATCH", roles + "/drawn?fieldManager=x&force=true", applyPatch, aggregate("drawn")},
	)
	w.done(architect,
		rightsWrite{"POST", bindings, jsonType, inCluster(bindingText("drawn", "ClusterRole", "drawn", "porter"))},
		rightsWrite{"POST", siteBindings, jsonType, bindingText("drawn", "ClusterRole", "drawn", "porter")},
		// What is held may be added to the roles that aggregate.
		rightsWrite{"PATCH", roles + "/drawn", mergePatch, `{"metadata":{"labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}}}`},
	)
	if status, _, answer := w.admin.send(http.MethodGet, roles+"/more", "", ""); status != http.StatusNotFound {
		t.Errorf("a ClusterRole has been made all the same: %d: %s", status, answer)
	}
	for _, role := range []string{"drawn", "architects"} {
		if _, _, answer := w.admin.send(http.MethodGet, roles+"/"+role, "", ""); strings.Contains(answer, `"clusterRoleSelectors":`) || strings.Contains(answer, `"*"`) {
			t.Errorf("the ClusterRole %s has changed: %s", role, answer)
		}
	}
}
