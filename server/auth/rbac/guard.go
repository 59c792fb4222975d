package rbac

import (
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/server/apis/builtin"
	"github.com/espalier-dev/espalier/server/endpoints"
)

// guard prevents privilege escalation: users cannot grant rights that they do not have.
type guard struct {
	held  *Authorizer                        // what users have
	authz authorizer.UnconditionalAuthorizer // authorizes the verbs escalate and bind
	// The stores of roles, where bindings look up what they would grant.
	roles, clusterRoles *genericregistry.Store
}

// Resources returns roles and bindings, guarded against escalation: a user can
// write a role only with rights that they have, unless they may "escalate" it, and
// can bind a role only if they have its rights, unless they may "bind" it.
// Members of system:masters can do both, and so can the server itself.
//
// authz is the server's complete authorizer. It authorizes these two verbs; a has the
// rights of users.
func Resources(a *Authorizer, authz authorizer.UnconditionalAuthorizer) []builtin.Resource {
	g := &guard{held: a, authz: authz}
	resources := builtin.Roles()
	for i := range resources {
		r := &resources[i]
		switch r.Plural {
		case "roles":
			r.Wrap = func(s *genericregistry.Store) rest.Storage {
				g.roles = s
				return &guarded{Store: s, resource: "roles", check: g.checkRole}
			}
		case "clusterroles":
			r.Wrap = func(s *genericregistry.Store) rest.Storage {
				g.clusterRoles = s
				return &guarded{Store: s, resource: "clusterroles", check: g.checkRole}
			}
		case "rolebindings", "clusterrolebindings":
			r.Wrap = func(s *genericregistry.Store) rest.Storage {
				return &guarded{Store: s, resource: r.Plural, check: g.checkBinding}
			}
		}
	}
	return resources
}

// guarded is the store of roles or bindings, with a check before they are
// written.
type guarded struct {
	*genericregistry.Store
	resource string
	check    func(ctx context.Context, w write) error
}

// write is an object that is about to be written. Name is the request's, which is
// empty when objects are created; old is nil then.
type write struct {
	resource, name string
	obj, old       runtime.Object
}

// Create implements rest.Creater.
func (s *guarded) Create(ctx context.Context, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	if !trusted(ctx) {
		if err := s.check(ctx, write{resource: s.resource, obj: obj}); err != nil {
			return nil, err
		}
	}
	return s.Store.Create(ctx, obj, validate, options)
}

// Update implements rest.Updater. Patches and apply use it, too.
func (s *guarded) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc, update rest.ValidateObjectUpdateFunc, forceCreate bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	if !trusted(ctx) {
		info = rest.WrapUpdatedObjectInfo(info, func(ctx context.Context, obj, old runtime.Object) (runtime.Object, error) {
			if onlyForCollection(obj, old) {
				return obj, nil
			}
			return obj, s.check(ctx, write{resource: s.resource, name: name, obj: obj, old: old})
		})
	}
	return s.Store.Update(ctx, name, info, create, update, forceCreate, options)
}

// trusted reports whether the request is the server's own, or of a user whom
// nothing is denied.
func trusted(ctx context.Context) bool {
	u, ok := genericapirequest.UserFrom(ctx)
	return ok && slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup)
}

// onlyForCollection reports whether an update changes only the fields that the garbage
// collector changes. It needs no further rights for that.
func onlyForCollection(obj, old runtime.Object) bool {
	if old == nil {
		return false
	}
	changed := obj.DeepCopyObject()
	to, err := meta.Accessor(changed)
	if err != nil {
		return false
	}
	from, err := meta.Accessor(old)
	if err != nil {
		return false
	}
	to.SetOwnerReferences(from.GetOwnerReferences())
	to.SetFinalizers(from.GetFinalizers())
	to.SetManagedFields(from.GetManagedFields())
	to.SetSelfLink(from.GetSelfLink())
	// Objects of the store may have a kind, and those of requests none.
	changed.GetObjectKind().SetGroupVersionKind(old.GetObjectKind().GroupVersionKind())
	return equality.Semantic.DeepEqual(changed, old)
}

// everything is the right that a user needs to set an aggregation rule: the rule can
// select any role.
var everything = []rbacv1.PolicyRule{
	{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}},
	{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}},
}

func (g *guard) checkRole(ctx context.Context, w write) error {
	if g.allows(ctx, authorizer.AttributesRecord{Verb: "escalate", Resource: w.resource, Name: w.name, Namespace: genericapirequest.NamespaceValue(ctx)}) {
		return nil
	}
	name, rules := rulesIn(w.obj)
	if err := g.confirm(ctx, rules); err != nil {
		return apierrors.NewForbidden(rbacv1.Resource(w.resource), name, err)
	}
	if !aggregates(w.obj) && !aggregates(w.old) {
		return nil
	}
	if g.confirm(ctx, everything) != nil {
		return apierrors.NewForbidden(rbacv1.Resource(w.resource), name, errors.New("must have cluster-admin privileges to use the aggregationRule"))
	}
	return nil
}

func rulesIn(obj runtime.Object) (name string, rules []rbacv1.PolicyRule) {
	switch r := obj.(type) {
	case *rbacv1.Role:
		return r.Name, r.Rules
	case *rbacv1.ClusterRole:
		return r.Name, r.Rules
	}
	return "", everything // unknown type: only a cluster administrator may write it
}

func aggregates(obj runtime.Object) bool {
	r, ok := obj.(*rbacv1.ClusterRole)
	return ok && r.AggregationRule != nil && len(r.AggregationRule.ClusterRoleSelectors) > 0
}

func (g *guard) checkBinding(ctx context.Context, w write) error {
	var name, namespace string
	var ref rbacv1.RoleRef
	switch b := w.obj.(type) {
	case *rbacv1.RoleBinding:
		var ok bool
		// The object's own namespace may not have been filled in yet.
		if namespace, ok = genericapirequest.NamespaceFrom(ctx); !ok || namespace == "" {
			return apierrors.NewBadRequest("namespace is required")
		}
		name, ref = b.Name, b.RoleRef
	case *rbacv1.ClusterRoleBinding:
		name, ref = b.Name, b.RoleRef
	}
	if g.mayBind(ctx, ref, namespace) {
		return nil
	}
	rules, err := g.rulesOf(ctx, ref, namespace)
	if err != nil {
		return err
	}
	if err := g.confirm(ctx, rules); err != nil {
		return apierrors.NewForbidden(rbacv1.Resource(w.resource), name, err)
	}
	return nil
}

func (g *guard) mayBind(ctx context.Context, ref rbacv1.RoleRef, namespace string) bool {
	resource := "clusterroles"
	switch ref.Kind {
	case kindClusterRole:
	case kindRole:
		resource = "roles"
	default:
		return false
	}
	return ref.APIGroup == rbacv1.GroupName &&
		g.allows(ctx, authorizer.AttributesRecord{Verb: "bind", Resource: resource, Name: ref.Name, Namespace: namespace})
}

// allows reports whether the user of a request has the verb escalate or bind.
func (g *guard) allows(ctx context.Context, a authorizer.AttributesRecord) bool {
	u, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return false
	}
	a.User, a.APIGroup, a.APIVersion, a.ResourceRequest = u, rbacv1.GroupName, "*", true
	decision, _, err := g.authz.Authorize(ctx, a)
	return err == nil && decision == authorizer.DecisionAllow
}

// rulesOf returns what a binding in a namespace would grant, by what is stored
// now.
func (g *guard) rulesOf(ctx context.Context, ref rbacv1.RoleRef, namespace string) ([]rbacv1.PolicyRule, error) {
	store, plural := g.clusterRoles, "clusterroles"
	switch {
	case ref.Kind == kindClusterRole:
		namespace = ""
	case ref.Kind == kindRole && namespace != "":
		store, plural = g.roles, "roles"
	default:
		return nil, apierrors.NewBadRequest(fmt.Sprintf("unsupported role reference kind: %q", ref.Kind))
	}
	if store == nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("no roles are served that could be bound"))
	}
	obj, err := store.Get(endpoints.Within(ctx, rbacv1.Resource(plural), namespace), ref.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	_, rules := rulesIn(obj)
	return rules, nil
}

// confirm returns an error that names the rules that the user of a request does
// not have.
func (g *guard) confirm(ctx context.Context, rules []rbacv1.PolicyRule) error {
	u, ok := genericapirequest.UserFrom(ctx)
	if !ok {
		return errors.New("no user on context")
	}
	owned, resolution := g.held.rulesOf(ctx, u, genericapirequest.NamespaceValue(ctx))
	missing, err := missingRights(owned, rules)
	if err != nil {
		return fmt.Errorf("user %q (groups=%q) is attempting to grant RBAC permissions that cannot be checked: %w", u.GetName(), u.GetGroups(), err)
	}
	if len(missing) == 0 {
		return nil
	}
	text := fmt.Sprintf("user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", u.GetName(), u.GetGroups(), describeRules(missing))
	if resolution != nil {
		text += fmt.Sprintf("; resolution errors: %v", []error{resolution})
	}
	return errors.New(text)
}
