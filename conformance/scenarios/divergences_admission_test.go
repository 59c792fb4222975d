package scenarios

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// TestAdmissionDiverges pins what differs from kube-apiserver's defaults in admission.
func TestAdmissionDiverges(t *testing.T) {
	w := newSite(t, serve(t, launch.Espalier, prefix()))
	const maps = "/api/v1/namespaces/site/configmaps"
	w.admin.made(siteRoles, roleText("writers", `{"apiGroups":[""],"resources":["configmaps"],"verbs":["create","get"]}`))
	w.admin.made(siteBindings, bindingText("writers", "Role", "writers", "foreman"))
	eventually(t, 30*time.Second, "owner references need rights, by default", func() bool {
		status, _, text := w.foreman.send(http.MethodPost, maps, "application/json", `{"metadata":{"name":"a","ownerReferences":[`+
			`{"apiVersion":"v1","kind":"Secret","name":"s","uid":"1","blockOwnerDeletion":true}]}}`)
		return status == http.StatusForbidden && strings.Contains(text, "cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on")
	})
	// kube-apiserver has the verb and the user of this text the wrong way round.
	const policies = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolic"
	w.admin.made(rbacPath+"/clusterroles", `{"metadata":{"name":"authors"},"rules":[{"apiGroups":["admissionregistration.k8s.io"],"resources":["*"],"verbs":["create"]}]}`)
	w.admin.made(rbacPath+"/clusterrolebindings", `{"metadata":{"name":"authors"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"authors"},`+
		`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"foreman"}]}`)
	w.admin.made(policies+"ies", `{"metadata":{"name":"p"},"spec":{"paramKind":{"apiVersion":"v1","kind":"Secret"},"reinvocationPolicy":"Never",`+
		`"matchConstraints":{"resourceRules":[{"apiGroups":["none.dev"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["nothing"]}]},`+
		`"mutations":[{"patchType":"ApplyConfiguration","applyConfiguration":{"expression":"Object{}"}}]}}`)
	eventually(t, 30*time.Second, "the text names the user first", func() bool {
		status, _, text := w.foreman.send(http.MethodPost, policies+"ybindings", "application/json",
			`{"metadata":{"name":"b"},"spec":{"policyName":"p","paramRef":{"name":"s","namespace":"site","parameterNotFoundAction":"Deny"}}}`)
		return status == http.StatusUnprocessableEntity && strings.Contains(text, `does not have \"get\" permission on the object referenced by paramRef`)
	})
}
