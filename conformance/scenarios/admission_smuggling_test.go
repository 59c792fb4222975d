package scenarios

import (
	"net/http"
	"strings"
	"testing"

	admissionreview "k8s.io/api/admission/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

const (
	mergeType = "application/merge-patch+json"
	applyType = "application/apply-patch+yaml"
	boatKey   = "/harbour.example.com/boats/default/"
)

// contraband is what hooks and policies of these tests try to get into etcd.
const contraband = "contraband"

// A customs is a server with boats, and a look at what it has stored of them.
type customs struct {
	*caller
	server *launch.Server
	etcd   vault
}

func newCustoms(t *testing.T, flags ...string) *customs {
	t.Helper()
	s, etcd := own(t, flags...)
	installWithClient(t, s.Config)
	return &customs{newCaller(t, s.Config), s, etcd}
}

func (c *customs) in(t *testing.T) *customs {
	return &customs{c.caller.in(t), c.server, vault{t, c.etcd.client, c.etcd.prefix}}
}

// clean demands that what is stored of a boat has some words and nothing that was smuggled, not even in its managed fields.
func (c *customs) clean(name string, words ...string) {
	c.t.Helper()
	value := string(c.etcd.value(boatKey + name))
	if strings.Contains(value, contraband) {
		c.t.Errorf("etcd has it: %s", value)
	}
	for _, word := range words {
		if !strings.Contains(value, word) {
			c.t.Errorf("no %s in etcd: %s", word, value)
		}
	}
}

// A webhook or a policy adds to an object what its schema does not specify: the object comes without it into etcd, whatever the verb,
// and who has sent the object is told.
func TestSmuggling(t *testing.T) {
	c := newCustoms(t)
	mutating(t, c.server, "hook", admitting(t, func(request *admissionreview.AdmissionRequest, response *admissionreview.AdmissionResponse) {
		patch := `[{"op":"add","path":"/spec/length","value":7.5},{"op":"add","path":"/spec/contraband","value":{"deep":[1]}},{"op":"add","path":"/spec/crew","value":[{"name":"stowaway","contraband":1}]},
{"op":"add","path":"/metadata/contraband","value":"x"},{"op":"add","path":"/contraband","value":"x"}]`
		if request.SubResource == "status" {
			patch = `[{"op":"add","path":"/status/moored","value":7},{"op":"add","path":"/status/contraband","value":"x"}]`
		}
		patching(patch)(request, response)
	}))
	smugglingPolicy(t, c.server, "policy")
	for _, tag := range []string{"hook", "policy"} {
		t.Run(tag, func(t *testing.T) { c.in(t).searched(tag) })
	}
	t.Run("wrong", func(t *testing.T) { c.in(t).wrongAdditions() })
}

// smugglingPolicy has a mutating policy do what a webhook could.
func smugglingPolicy(t *testing.T, s *launch.Server, name string) {
	t.Helper()
	r := typedClient(t, s.Config).AdmissionregistrationV1()
	rules := func(resource string) *admissionv1.MatchResources {
		return &admissionv1.MatchResources{ObjectSelector: tagged(name), ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: boatRules(resource)[0]}}}
	}
	for resource, patch := range map[string]string{
		"boats": `[JSONPatch{op: "add", path: "/spec/length", value: 7.5}, JSONPatch{op: "add", path: "/spec/contraband", value: {"deep": [1]}},
JSONPatch{op: "add", path: "/spec/crew", value: [{"name": dyn("stowaway"), "contraband": dyn(1)}]}, JSONPatch{op: "add", path: "/metadata/contraband", value: "x"}, JSONPatch{op: "add", path: "/contraband", value: "x"}]`,
		"boats/status": `[JSONPatch{op: "add", path: "/status/moored", value: 7}, JSONPatch{op: "add", path: "/status/contraband", value: "x"}]`,
	} {
		policy := name + strings.ReplaceAll(strings.TrimPrefix(resource, "boats"), "/", "-")
		must[*admissionv1.MutatingAdmissionPolicy](t)(r.MutatingAdmissionPolicies().Create(t.Context(), &admissionv1.MutatingAdmissionPolicy{ObjectMeta: named(policy),
			Spec: admissionv1.MutatingAdmissionPolicySpec{MatchConstraints: rules(resource), ReinvocationPolicy: admissionv1.NeverReinvocationPolicy, FailurePolicy: new(admissionv1.Fail),
				Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{Expression: patch}}}}}, metav1.CreateOptions{}))
		must[*admissionv1.MutatingAdmissionPolicyBinding](t)(r.MutatingAdmissionPolicyBindings().Create(t.Context(), &admissionv1.MutatingAdmissionPolicyBinding{ObjectMeta: named(policy),
			Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: policy}}, metav1.CreateOptions{}))
	}
}

// searched sends boats in all the ways there are.
func (c *customs) searched(tag string) {
	c.t.Helper()
	name := tag + "-boat"
	at := boatsPath + "/" + name
	c.engaged(tag, func() bool {
		dry := c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, taggedBoat(name, tag, `{"owner":"ada"}`))
		return strings.Contains(dry.body, "stowaway")
	})
	spec := []string{`"length":7.5`, `{"name":"stowaway","rank":"sailor"}`}
	warned := func(a answer, code int) {
		c.t.Helper()
		for _, field := range []string{"spec.contraband", "spec.crew[0].contraband", "metadata.contraband", "contraband"} {
			a.is(code).warns(`unknown field "` + field + `"`)
		}
		if strings.Contains(a.body, contraband) {
			c.t.Errorf("%s is answered with it: %s", a.what, a.body)
		}
		c.clean(name, spec...)
	}
	warned(c.call(http.MethodPost, boatsPath, jsonType, taggedBoat(name, tag, `{"owner":"ada"}`)), http.StatusCreated)
	update := c.call(http.MethodGet, at, "", "").object()
	update["spec"].(map[string]any)["owner"] = "grace"
	warned(c.call(http.MethodPut, at, jsonType, encode(c.t, update)), http.StatusOK)
	warned(c.call(http.MethodPatch, at, mergeType, `{"spec":{"berths":2}}`), http.StatusOK)
	warned(c.call(http.MethodPatch, at, jsonPatchType, `[{"op":"replace","path":"/spec/berths","value":3}]`), http.StatusOK)
	warned(c.call(http.MethodPatch, at+"?fieldManager=a&force=true", applyType, taggedBoat(name, tag, `{"owner":"ada","berths":4}`)), http.StatusOK)
	warned(c.call(http.MethodPatch, at+"?fieldValidation=Strict", mergeType, `{"spec":{"berths":5}}`), http.StatusOK) // the client's own fields are known

	status := func(a answer) {
		c.t.Helper()
		a.is(http.StatusOK).warns(`unknown field "status.contraband"`)
		c.clean(name, append(spec, `"moored":7`)...)
	}
	status(c.call(http.MethodPatch, at+"/status", mergeType, `{"status":{"phase":"Moored"}}`))
	update = c.call(http.MethodGet, at, "", "").object()
	update["status"] = map[string]any{"phase": "Sunk"}
	status(c.call(http.MethodPut, at+"/status", jsonType, encode(c.t, update)))
	status(c.call(http.MethodPatch, at+"/status?fieldManager=b&force=true", applyType, `{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{"name":"`+name+`"},"status":{"phase":"Found"}}`))
	// A boat that is made by applying it.
	name, at = tag+"-applied", boatsPath+"/"+tag+"-applied"
	warned(c.call(http.MethodPatch, at+"?fieldManager=a", applyType, taggedBoat(name, tag, `{"owner":"ada"}`)), http.StatusCreated)
}

// wrongAdditions are answers of webhooks that make an object invalid, or incomplete.
func (c *customs) wrongAdditions() {
	c.t.Helper()
	for tag, hook := range map[string]struct {
		patch string
		code  int
		says  string
	}{
		"required": {`[{"op":"remove","path":"/spec/owner"}]`, http.StatusUnprocessableEntity, "spec.owner: Required value"},
		"mistyped": {`[{"op":"add","path":"/spec/berths","value":"many"}]`, http.StatusUnprocessableEntity, "spec.berths: Invalid value"},
		"bounds":   {`[{"op":"add","path":"/spec/berths","value":11}]`, http.StatusUnprocessableEntity, "spec.berths in body should be less than or equal to 10"},
		"rule":     {`[{"op":"add","path":"/spec/length","value":1000}]`, http.StatusUnprocessableEntity, "too long for its berths"},
		"parent":   {`[{"op":"add","path":"/spec/crew","value":[{"name":"joan"}]}]`, http.StatusCreated, `{"name":"joan","rank":"sailor"}`},
		"default":  {`[{"op":"remove","path":"/spec/colour"}]`, http.StatusCreated, `"colour":"blue"`},
	} {
		c.t.Run(tag, func(t *testing.T) {
			c := c.in(t)
			mutating(t, c.server, tag, admitting(t, patching(hook.patch)))
			body := taggedBoat(tag, tag, `{"owner":"ada","colour":"red"}`)
			c.engaged(tag, func() bool {
				return strings.Contains(c.call(http.MethodPost, boatsPath+"?dryRun=All", jsonType, body).body, hook.says)
			})
			c.call(http.MethodPost, boatsPath, jsonType, body).is(hook.code, hook.says)
			if hook.code == http.StatusCreated {
				c.clean(tag, hook.says)
			} else if n := c.etcd.count(boatKey + tag); n != 0 {
				t.Errorf("a boat that was refused is in etcd")
			}
		})
	}
}
