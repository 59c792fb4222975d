package scenarios

import "strings"

const foremansManifest = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: helpers, namespace: site}
rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: helpers, namespace: site}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: janitor}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: helpers}
`

// kubectlAuth is an ordinary user who asks kubectl who they are and what they may do, and reconciles roles with it.
func (w *site) kubectlAuth() {
	t := w.admin.t
	k := person(t, w.server, "foreman", "crew", "crew-2")
	k.says([]string{"Username", "foreman", "Groups", "crew", "crew-2", "system:authenticated"}, "auth", "whoami")
	k.says([]string{`"username": "foreman"`}, "auth", "whoami", "-o", "json")
	k.says([]string{"yes"}, "auth", "can-i", "get", "configmaps", "-n", "site")
	k.says([]string{"yes"}, "auth", "can-i", "get", "configmap/one", "-n", "site")
	k.fails([]string{"no"}, "auth", "can-i", "get", "configmaps", "-n", "default")
	k.fails([]string{"no"}, "auth", "can-i", "get", "configmaps", "--subresource=status", "-n", "site")
	k.fails([]string{"no"}, "auth", "can-i", "escalate", "roles", "-n", "site")
	k.fails([]string{"no"}, "auth", "can-i", "get", "configmaps", "-A")
	k.says([]string{"yes"}, "auth", "can-i", "get", "/version")
	k.fails([]string{"no"}, "auth", "can-i", "get", "/metrics")
	k.fails([]string{"Forbidden", "cannot impersonate"}, "auth", "can-i", "get", "secrets", "--as=admin", "--as-group=system:masters")

	here := rightsTable(k.ok("auth", "can-i", "--list", "-n", "site"))
	for resource, verbs := range map[string]string{
		"configmaps": "[get list]", "roles.rbac.authorization.k8s.io": "[get list watch create update patch delete deletecollection]",
		"selfsubjectreviews.authentication.k8s.io": "[create]", "selfsubjectaccessreviews.authorization.k8s.io": "[create]",
	} {
		if !strings.HasSuffix(here[resource], verbs) {
			t.Errorf("can-i --list says %q of %s, not %s", here[resource], resource, verbs)
		}
	}
	if elsewhere := rightsTable(k.ok("auth", "can-i", "--list", "-n", "default")); elsewhere["configmaps"] != "" || elsewhere["selfsubjectreviews.authentication.k8s.io"] == "" {
		t.Errorf("can-i --list of another namespace: %q", elsewhere)
	}

	manifest := write(t, "roles.yaml", foremansManifest)
	k.says([]string{"role.rbac.authorization.k8s.io/helpers reconciled", "rolebinding.rbac.authorization.k8s.io/helpers reconciled"}, "auth", "reconcile", "-f", manifest)
	const version = "jsonpath={.items[*].metadata.resourceVersion}"
	before := k.ok("get", "roles,rolebindings", "-n", "site", "-o", version)
	if out := k.ok("auth", "reconcile", "-f", manifest); strings.Contains(out, "missing") {
		t.Errorf("auth reconcile finds something missing in what it has made: %s", out)
	}
	if after := k.ok("get", "roles,rolebindings", "-n", "site", "-o", version); after != before {
		t.Errorf("auth reconcile has written what was as it should be: %s, and then %s", before, after)
	}
	more := write(t, "more.yaml", strings.Replace(foremansManifest, "verbs: [get]", "verbs: [get, list]", 1))
	k.says([]string{"role.rbac.authorization.k8s.io/helpers reconciled", "missing rules added"}, "auth", "reconcile", "-f", more)
	tooMuch := write(t, "too-much.yaml", strings.Replace(foremansManifest, "[configmaps]", "[secrets]", 1))
	k.fails([]string{"Forbidden", notHeld}, "auth", "reconcile", "-f", tooMuch)
	k.fails([]string{"Forbidden"}, "auth", "reconcile", "-f", write(t, "cluster.yaml", "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: helpers}\nrules: []\n"))
	janitor := person(t, w.server, "janitor")
	janitor.says([]string{"yes"}, "auth", "can-i", "list", "configmaps", "-n", "site")
	janitor.fails([]string{"Forbidden", `User "janitor" cannot list resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "site"`}, "get", "roles", "-n", "site")
}

// rightsTable is what kubectl prints, by the first column.
func rightsTable(text string) map[string]string {
	rows := map[string]string{}
	for line := range strings.Lines(text) {
		if first := strings.Fields(line); len(first) > 0 && !strings.HasPrefix(line, " ") {
			rows[first[0]] = strings.TrimSpace(line)
		}
	}
	return rows
}
