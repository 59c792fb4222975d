package builtin

import (
	"context"
	"fmt"
	"slices"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/endpoints"
)

// The server reads the parameters of admission policies with rights of its own,
// and expressions show them to others. So the author of a policy needs the right to
// get all objects of its paramKind. The author of a binding needs the right to get
// the objects of its paramRef, or to list them if it has no name. Kubernetes requires
// the same.

// PolicyOptions are what policies are authorized with.
type PolicyOptions struct {
	Authorizer authorizer.UnconditionalAuthorizer
	// Resource returns the resource of a kind, if it is served. While it is not,
	// authors need the right for all resources of the group.
	Resource func(schema.GroupVersionKind) (resource schema.GroupVersionResource, served bool)
}

// Policies returns the admission policies and their bindings.
func Policies(o PolicyOptions) []Resource {
	return slices.Concat(
		guardedPolicies(o, validatingAdmissionPolicies(), validatingAdmissionPolicyBindings()),
		guardedPolicies(o, mutatingAdmissionPolicies(), mutatingAdmissionPolicyBindings()),
	)
}

// guardedPolicies are policies of one kind and their bindings.
func guardedPolicies(o PolicyOptions, policies, bindings Resource) []Resource {
	g := &parameterGuard{options: o, resource: policies.resource()}
	policies.Wrap = func(s *genericregistry.Store) rest.Storage { g.policies = s; return s }
	policies.Strategy.Authorize = g.authorizePolicy
	bindings.Strategy.Authorize = g.authorizeBinding
	return []Resource{policies, bindings}
}

// parameterGuard authorizes the parameters of policies of one kind.
type parameterGuard struct {
	options  PolicyOptions
	resource schema.GroupResource
	policies *genericregistry.Store // where bindings look up the paramKind
}

// authorizePolicy is a value for Strategy.Authorize. A paramKind that stays the same
// was authorized when it was set.
func (g *parameterGuard) authorizePolicy(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	kind := paramKindOf(obj)
	if kind == nil {
		return nil
	}
	if before := paramKindOf(old); before != nil && *before == *kind {
		return nil
	}
	if err := g.mayReadKind(ctx, kind); err != nil {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "paramKind"), err.Error())}
	}
	return nil
}

// authorizeBinding is a value for Strategy.Authorize. It asks again with every
// update, as Kubernetes does: another policyName, matchResources or policy makes
// another use of the same paramRef.
func (g *parameterGuard) authorizeBinding(ctx context.Context, obj, _ runtime.Object) field.ErrorList {
	policy, ref := paramRefOf(obj)
	if ref == nil {
		return nil
	}
	if err := g.mayReadRef(ctx, policy, ref); err != nil {
		return field.ErrorList{field.Forbidden(field.NewPath("spec", "paramRef"), err.Error())}
	}
	return nil
}

func paramKindOf(obj runtime.Object) *admissionv1.ParamKind {
	switch p := obj.(type) {
	case *admissionv1.ValidatingAdmissionPolicy:
		return p.Spec.ParamKind
	case *admissionv1.MutatingAdmissionPolicy:
		return p.Spec.ParamKind
	}
	return nil
}

func paramRefOf(obj runtime.Object) (policy string, ref *admissionv1.ParamRef) {
	switch b := obj.(type) {
	case *admissionv1.ValidatingAdmissionPolicyBinding:
		return b.Spec.PolicyName, b.Spec.ParamRef
	case *admissionv1.MutatingAdmissionPolicyBinding:
		return b.Spec.PolicyName, b.Spec.ParamRef
	}
	return "", nil
}

// mayReadKind returns why the user of a request may not read all objects of a kind.
func (g *parameterGuard) mayReadKind(ctx context.Context, kind *admissionv1.ParamKind) error {
	u, ok := request.UserFrom(ctx)
	switch {
	case !ok:
		return fmt.Errorf("cannot identify user to authorize read access to paramKind resources")
	case privileged(u):
		return nil
	}
	a, _ := g.attributes(kind)
	a.User, a.Verb, a.Namespace, a.Name = u, "get", "*", "*"
	decision, _, err := g.options.Authorizer.Authorize(ctx, a)
	if err == nil && decision != authorizer.DecisionAllow {
		err = fmt.Errorf(`user %v must have "get" permission on all objects of the referenced paramKind (kind=%s, apiVersion=%s)`, u, kind.Kind, kind.APIVersion)
	}
	return err
}

// mayReadRef returns why the user of a request may not read what a paramRef refers
// to. Without a namespace that is the same name in all namespaces.
func (g *parameterGuard) mayReadRef(ctx context.Context, policy string, ref *admissionv1.ParamRef) error {
	u, ok := request.UserFrom(ctx)
	switch {
	case !ok:
		return fmt.Errorf("cannot identify user to authorize read access to paramRef object")
	case privileged(u):
		return nil
	}
	kind, unknown := g.kindOf(ctx, policy)
	a, unresolved := g.attributes(kind)
	a.User, a.Verb, a.Namespace, a.Name = u, "get", ref.Namespace, ref.Name
	if ref.Name == "" {
		a.Verb = "list"
	}
	decision, _, err := g.options.Authorizer.Authorize(ctx, a)
	if err != nil {
		return fmt.Errorf("failed to authorize request: %w", err)
	}
	if decision == authorizer.DecisionAllow {
		return nil
	}
	const everything = `to determine minimum required permissions and user %v does not have "%v" permission for all groups, versions and resources`
	switch {
	case unknown != nil:
		return fmt.Errorf("unable to get policy %s "+everything, policy, u, a.Verb)
	case unresolved != "":
		return fmt.Errorf("unable to %s paramKind &{%s %s} "+everything, unresolved, kind.APIVersion, kind.Kind, u, a.Verb)
	}
	return fmt.Errorf(`user %v does not have "%v" permission on the object referenced by paramRef`, u, a.Verb)
}

// kindOf returns the paramKind of a policy as it is stored now.
func (g *parameterGuard) kindOf(ctx context.Context, policy string) (*admissionv1.ParamKind, error) {
	obj, err := g.policies.Get(endpoints.Within(ctx, g.resource, ""), policy, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return paramKindOf(obj), nil
}

// attributes name the resource of a kind. If it is unknown they name all resources: a
// right to some resources may not include the one that the kind turns out to be.
func (g *parameterGuard) attributes(kind *admissionv1.ParamKind) (a authorizer.AttributesRecord, unresolved string) {
	a = authorizer.AttributesRecord{ResourceRequest: true, APIGroup: "*", APIVersion: "*", Resource: "*"}
	if kind == nil {
		return a, ""
	}
	version, err := schema.ParseGroupVersion(kind.APIVersion)
	if err != nil {
		return a, "parse"
	}
	a.APIGroup, a.APIVersion = version.Group, version.Version
	found, ok := g.options.Resource(version.WithKind(kind.Kind))
	if !ok {
		return a, "resolve"
	}
	a.Resource = found.Resource
	return a, ""
}

// privileged reports whether a user may do everything, like the server itself.
func privileged(u user.Info) bool { return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) }
