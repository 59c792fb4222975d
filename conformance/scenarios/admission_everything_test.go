package scenarios

import (
	"context"
	"net/http"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A user registers a webhook for everything, and it dies. No client can write any more, but an administrator can still delete the
// webhook configuration, even on a server that starts in the meantime.
func TestDeadWebhookForEverything(t *testing.T) {
	c := newCustoms(t)
	k := newKubectl(t, c.server)
	dead := admitting(t, nil)
	dead.Close()
	mutating(t, c.server, "everything", dead, func(w *admissionv1.MutatingWebhook) {
		w.ObjectSelector = nil
		w.Rules = []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.OperationAll}, Rule: admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*/*"}}}}
	})
	c.stops("any", "failed calling webhook")
	k.fails([]string{"failed calling webhook"}, "create", "configmap", "tides")
	k.fails([]string{"failed calling webhook"}, "delete", "crd", boats)
	k.fails([]string{"failed calling webhook"}, "create", "namespace", "bay")
	k.ok("get", "boats,configmaps,crds")
	late := newKubectl(t, soonReady(t, c.etcd.prefix))
	late.fails([]string{"failed calling webhook"}, "create", "configmap", "tides")
	late.ok("patch", "mutatingwebhookconfiguration", "everything", "-p", `{"webhooks":[{"name":"everything.example.com","timeoutSeconds":1}]}`)
	late.says([]string{"deleted"}, "delete", "mutatingwebhookconfiguration", "everything")
	k.succeeds("created", "create", "configmap", "tides")
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("any", "any", `{"owner":"ada"}`)).is(http.StatusCreated)
}

// soonReady starts one more server, which must be ready soon.
func soonReady(t *testing.T, prefix string) *launch.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*soon)
	t.Cleanup(cancel)
	s, err := launch.StartServer(ctx, launch.Spec{Kind: launch.Espalier, Binary: binaries[launch.Espalier], Etcd: etcd.URL, Prefix: prefix})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

const denyEverything = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: nothing}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: ["*"], operations: ["*"], resources: ["*/*"]}]
  validations: [{expression: "!(request.userInfo.username == 'admin')", message: not today}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: nothing}
spec: {policyName: nothing, validationActions: [Deny]}
`

// A policy against everything is not one against policies, or against questions about rights.
func TestPolicyAgainstEverything(t *testing.T) {
	s, _ := own(t)
	k := newKubectl(t, s)
	k.ok("create", "serviceaccount", "pilot")
	k.ok("apply", "-f", write(t, "policy.yaml", denyEverything))
	k.turns(1, "not today", "create", "configmap", "tides", "--dry-run=server")
	k.fails([]string{`The namespaces "bay" is invalid: : ValidatingAdmissionPolicy 'nothing' with binding 'nothing' denied request: not today`}, "create", "namespace", "bay")
	k.fails([]string{"not today"}, "create", "token", "pilot")
	k.can(true, "create", "configmaps")
	k.says([]string{"admin"}, "auth", "whoami")
	k.says([]string{"deleted"}, "delete", "validatingadmissionpolicybinding", "nothing")
	k.succeeds("created", "create", "configmap", "tides")
}
