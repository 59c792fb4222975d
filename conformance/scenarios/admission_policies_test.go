package scenarios

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// limits are parameters of a policy, of a kind that a CRD adds.
const limits = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"limits.harbour.example.com"},
"spec":{"group":"harbour.example.com","scope":"Namespaced","names":{"plural":"limits","kind":"Limit"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{"berths":{"type":"integer"}}}}}}}]}}`

// boatPolicies have one policy for each thing that a policy can say. Their subjects are told by labels, so that they do not meet.
const boatPolicies = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: by-configmap}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [boats]}]
    objectSelector: {matchLabels: {case: configmap}}
  validations:
  - expression: object.spec.berths <= int(params.data.berths)
    messageExpression: "'no more than ' + params.data.berths + ' berths in ' + namespaceObject.metadata.name"
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: by-configmap}
spec:
  policyName: by-configmap
  paramRef: {name: limits, parameterNotFoundAction: Deny}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: by-limit}
spec:
  paramKind: {apiVersion: harbour.example.com/v1, kind: Limit}
  matchConstraints:
    resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [boats]}]
    objectSelector: {matchLabels: {case: limit}}
  validations:
  - expression: object.spec.berths <= params.spec.berths
    messageExpression: "'no more than ' + string(params.spec.berths) + ' berths'"
    reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: by-limit}
spec:
  policyName: by-limit
  paramRef: {selector: {matchLabels: {in: force}}, namespace: default, parameterNotFoundAction: Allow}
  validationActions: [Deny]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: strict-places}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}]
    namespaceSelector: {matchLabels: {harbour: strict}}
  matchConditions:
  - {name: not-the-pilot, expression: "request.userInfo.username != 'pilot'"}
  validations: [{expression: object.spec.colour == 'red', message: red boats only}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: strict-places}
spec: {policyName: strict-places, validationActions: [Deny]}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: noted}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}]
    objectSelector: {matchLabels: {case: noted}}
  validations: [{expression: object.spec.owner != 'ada', message: ada again}]
  auditAnnotations: [{key: owner, valueExpression: "'the owner is ' + object.spec.owner"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: noted}
spec: {policyName: noted, validationActions: [Warn, Audit]}
`

// Policies refuse boats by parameters, places, labels and conditions; or warn, and leave a note.
func TestValidatingPolicies(t *testing.T) {
	log := filepath.Join(t.TempDir(), "audit.log")
	c := newCustoms(t, "--audit-policy-file="+write(t, "audit.yaml", auditPolicy), "--audit-log-path="+log)
	k := newKubectl(t, c.server)
	k.ok("create", "configmap", "limits", "--from-literal=berths=2")
	for name, label := range map[string]string{"strict": "strict", "loose": "loose"} {
		k.ok("create", "namespace", name)
		k.ok("label", "namespace", name, "harbour="+label)
	}
	c.call(http.MethodPost, crdsPath, jsonType, limits).is(http.StatusCreated)
	eventually(t, soon, "limits are made", func() bool {
		return c.call(http.MethodPost, "/apis/harbour.example.com/v1/namespaces/default/limits", jsonType,
			`{"apiVersion":"harbour.example.com/v1","kind":"Limit","metadata":{"name":"small","labels":{"in":"force"}},"spec":{"berths":3}}`).code == http.StatusCreated
	})
	k.ok("apply", "--server-side", "-f", write(t, "policies.yaml", boatPolicies))
	t.Run("configmap", func(t *testing.T) { c.in(t).byConfigMap(k.in(t)) })
	t.Run("custom resource", func(t *testing.T) { c.in(t).byLimit(k.in(t)) })
	t.Run("places and conditions", func(t *testing.T) { c.in(t).byPlace(k.in(t)) })
	t.Run("notes", func(t *testing.T) { c.in(t).withNotes(journal{t, log}) })
}

// refuses waits until a boat that a policy is against is refused.
func (c *customs) refuses(tag, spec string, code int, says string) {
	c.t.Helper()
	body := taggedBoat(tag+"-refused", tag, spec)
	c.engaged(tag, func() bool {
		return c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, body).code != http.StatusCreated
	})
	eventually(c.t, soon, says, func() bool {
		return strings.Contains(c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, body).body, says)
	})
	c.call(http.MethodPost, boatsPath, jsonType, body).is(code, says)
	if c.etcd.count(boatKey+tag+"-refused") != 0 {
		c.t.Errorf("%s: what was refused is in etcd", tag)
	}
}

func (c *customs) byConfigMap(k *kubectl) {
	c.t.Helper()
	c.refuses("configmap", `{"owner":"ada","berths":3}`, http.StatusUnprocessableEntity, "no more than 2 berths in default")
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("narrow", "configmap", `{"owner":"ada","berths":2}`)).is(http.StatusCreated)
	c.call(http.MethodPatch, boatsPath+"/narrow", mergeType, `{"spec":{"berths":3}}`).is(http.StatusUnprocessableEntity, "no more than 2 berths")
	k.ok("patch", "configmap", "limits", "-p", `{"data":{"berths":"5"}}`)
	eventually(c.t, soon, "the new parameter counts", func() bool {
		return c.call(http.MethodPatch, boatsPath+"/narrow", mergeType, `{"spec":{"berths":4}}`).code == http.StatusOK
	})
	k.ok("delete", "configmap", "limits")
	eventually(c.t, soon, "without parameters nothing goes", func() bool {
		return c.call(http.MethodPatch, boatsPath+"/narrow", mergeType, `{"spec":{"berths":1}}`).code != http.StatusOK
	})
}

func (c *customs) byLimit(k *kubectl) {
	c.t.Helper()
	c.refuses("limit", `{"owner":"ada","berths":4}`, http.StatusForbidden, "no more than 3 berths")
	k.ok("patch", "limit.harbour.example.com", "small", "--type=merge", "-p", `{"spec":{"berths":7}}`)
	eventually(c.t, soon, "the new parameter counts", func() bool {
		return c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, taggedBoat("wide", "limit", `{"owner":"ada","berths":7}`)).code == http.StatusCreated
	})
	c.refuses("limit", `{"owner":"ada","berths":8}`, http.StatusForbidden, "no more than 7 berths")
	k.ok("label", "limit.harbour.example.com", "small", "in-") // not in force any more
	eventually(c.t, soon, "without parameters everything goes", func() bool {
		return c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, taggedBoat("wide", "limit", `{"owner":"ada","berths":8}`)).code == http.StatusCreated
	})
}

func (c *customs) byPlace(k *kubectl) {
	c.t.Helper()
	post := func(c *caller, place, name, colour string) answer {
		return c.call(http.MethodPost, "/apis/harbour.example.com/v1/namespaces/"+place+"/boats", jsonType,
			fmt.Sprintf(`{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":%q},"spec":{"owner":"ada","colour":%q}}`, name, colour))
	}
	eventually(c.t, soon, "a place is strict", func() bool {
		return post(c.caller, "strict", "trial", "blue").code == http.StatusUnprocessableEntity || k.ok("delete", "boats", "--all", "-n", "strict") == ""
	})
	post(c.caller, "strict", "blue", "blue").is(http.StatusUnprocessableEntity, "red boats only")
	post(c.caller, "strict", "red", "red").is(http.StatusCreated)
	post(c.caller, "loose", "blue", "blue").is(http.StatusCreated)
	config, err := c.server.Client("pilot", "system:masters")
	if err != nil {
		c.t.Fatal(err)
	}
	post(newCaller(c.t, config), "strict", "pilot", "blue").is(http.StatusCreated)
	k.ok("label", "namespace", "loose", "harbour=strict", "--overwrite")
	eventually(c.t, soon, "another place is strict", func() bool {
		return c.call(http.MethodPost, "/apis/harbour.example.com/v1/namespaces/loose/boats?dryRun=All", jsonType, boatIn("loose", "late", "ada")).code == http.StatusUnprocessableEntity
	})
}

func (c *customs) withNotes(j journal) {
	c.t.Helper()
	c.engaged("noted", func() bool {
		return len(c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, taggedBoat("noted", "noted", `{"owner":"ada"}`)).warnings) > 0
	})
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("noted-boat", "noted", `{"owner":"ada"}`)).is(http.StatusCreated).warns("ada again")
	event := j.find("admin create boats default/noted-boat 201")
	if got := event.Annotations["noted/owner"]; got != "the owner is ada" {
		c.t.Errorf("the annotations are %v", event.Annotations)
	}
	if got := event.Annotations["validation.policy.admission.k8s.io/validation_failure"]; !strings.Contains(got, "ada again") {
		c.t.Errorf("the annotations are %v", event.Annotations)
	}
}

// A dry run reaches webhooks that have said what they do, and is known to them as one. Nothing is stored.
func TestDryRunReachesWebhooks(t *testing.T) {
	c := newCustoms(t)
	h := admitting(t, patching(`[{"op":"add","path":"/spec/length","value":7.5}]`))
	mutating(t, c.server, "careful", h, func(w *admissionv1.MutatingWebhook) {
		w.SideEffects = new(admissionv1.SideEffectClassNoneOnDryRun)
	})
	c.engaged("careful", func() bool {
		return strings.Contains(c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, taggedBoat("dry", "careful", `{"owner":"ada"}`)).body, "7.5")
	})
	for _, r := range h.reviews() {
		if r.DryRun == nil || !*r.DryRun {
			t.Errorf("a dry run is not told as one: %+v", r)
		}
	}
	if c.etcd.count(boatKey+"dry") != 0 {
		t.Error("a dry run is stored")
	}
	c.call(http.MethodPost, boatsPath, jsonType, taggedBoat("wet", "careful", `{"owner":"ada"}`)).is(http.StatusCreated, "7.5")
	reviews := h.reviews()
	if last := reviews[len(reviews)-1]; *last.DryRun || last.Name != "wet" || last.UserInfo.Username != "admin" {
		t.Errorf("what is not a dry run: %+v", last)
	}
	// A webhook that does not declare its side effects, or always has some, is not registered.
	hooks := typedClient(t, c.server.Config).AdmissionregistrationV1().MutatingWebhookConfigurations()
	stored := must[*admissionv1.MutatingWebhookConfiguration](t)(hooks.Get(t.Context(), "careful", metav1.GetOptions{}))
	for _, effects := range []*admissionv1.SideEffectClass{nil, new(admissionv1.SideEffectClassSome), new(admissionv1.SideEffectClassUnknown)} {
		other := &admissionv1.MutatingWebhookConfiguration{ObjectMeta: named("careless"), Webhooks: stored.Webhooks}
		other.Webhooks[0].SideEffects = effects
		if _, err := hooks.Create(t.Context(), other, metav1.CreateOptions{}); err == nil || !strings.Contains(err.Error(), "webhooks[0].sideEffects") {
			t.Errorf("a webhook with the side effects %v: %v", effects, err)
		}
	}
	// Built-in resources go the same way.
	mutating(t, c.server, "maps", admitting(t, patching(`[{"op":"add","path":"/data","value":{"by":"hook"}}]`)), func(w *admissionv1.MutatingWebhook) {
		w.Rules = []admissionv1.RuleWithOperations{{Operations: []admissionv1.OperationType{admissionv1.Create}, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}}}}
	})
	maps := speaking(t, c.server.Config).CoreV1().ConfigMaps("default")
	eventually(t, soon, "config maps are changed", func() bool {
		made := must[*corev1.ConfigMap](t)(maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "m-", Labels: map[string]string{"case": "maps"}}},
			metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
		return made.Data["by"] == "hook"
	})
	if c.etcd.count("/configmaps/default/m-") != 0 {
		t.Error("a dry run is stored")
	}
}
