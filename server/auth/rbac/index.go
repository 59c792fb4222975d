package rbac

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// index is all roles and bindings, found by subject.
type index struct {
	mu       sync.RWMutex
	roles    map[roleKey]*role
	bindings map[bindingKey]*binding
	scopes   map[string]*scope // by namespace; "" is the cluster
	missing  int               // roles that are referred to and not there
}

// scope is where bindings apply: everywhere, or in a namespace. Service accounts
// are found by their user names.
type scope struct {
	users, groups map[string][]*grant
}

// grant is one subject of a binding. Its reason is formatted on first use.
type grant struct {
	binding *binding
	subject int
	reason  atomic.Pointer[string]
}

type bindingKey struct {
	namespace, name string // namespace is "" for those of the cluster
}

type binding struct {
	bindingKey
	role     *role
	ref      rbacv1.RoleRef
	subjects []rbacv1.Subject
}

type roleKey struct {
	kind, namespace, name string
}

// role is shared by all bindings that refer to it. It exists before the role is created
// and after it is deleted, while a binding refers to it.
type role struct {
	roleKey
	known    bool
	bindings int
	rules    []rule
	source   []rbacv1.PolicyRule
}

func newIndex() *index {
	return &index{
		roles:    map[roleKey]*role{},
		bindings: map[bindingKey]*binding{},
		scopes:   map[string]*scope{},
	}
}

const (
	kindRole        = "Role"
	kindClusterRole = "ClusterRole"
)

// keyOf returns what a binding in a namespace refers to.
func keyOf(ref rbacv1.RoleRef, namespace string) roleKey {
	if ref.Kind == kindClusterRole {
		namespace = ""
	}
	return roleKey{kind: ref.Kind, namespace: namespace, name: ref.Name}
}

// err is the error of kube-apiserver's listers for a missing role.
func (r *role) err() error {
	switch r.kind {
	case kindRole, kindClusterRole:
		return apierrors.NewNotFound(rbacv1.Resource(strings.ToLower(r.kind)), r.name)
	}
	return fmt.Errorf("unsupported role reference kind: %q", r.kind)
}

func (r *role) allows(q *request) bool {
	for i := range r.rules {
		if r.rules[i].allows(q) {
			return true
		}
	}
	return false
}

func (x *index) setRole(key roleKey, rules []rbacv1.PolicyRule) {
	compiled := compile(rules)
	x.mu.Lock()
	defer x.mu.Unlock()
	r := x.role(key)
	if !r.known {
		r.known = true
		x.missing--
	}
	r.rules, r.source = compiled, rules
}

func (x *index) deleteRole(key roleKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	r, ok := x.roles[key]
	if !ok || !r.known {
		return
	}
	r.known, r.rules, r.source = false, nil, nil
	x.missing++
	x.release(r)
}

// role returns the entry of a role, which is made if need be.
func (x *index) role(key roleKey) *role {
	r, ok := x.roles[key]
	if !ok {
		r = &role{roleKey: key}
		x.roles[key] = r
		x.missing++
	}
	return r
}

// release removes a missing role that no binding refers to.
func (x *index) release(r *role) {
	if !r.known && r.bindings == 0 {
		delete(x.roles, r.roleKey)
		x.missing--
	}
}

func (x *index) setBinding(key bindingKey, ref rbacv1.RoleRef, subjects []rbacv1.Subject) {
	x.mu.Lock()
	defer x.mu.Unlock()
	old, ok := x.bindings[key]
	if ok && old.ref == ref && slices.Equal(old.subjects, subjects) {
		return
	}
	b := &binding{bindingKey: key, role: x.role(keyOf(ref, key.namespace)), ref: ref, subjects: subjects}
	b.role.bindings++
	if ok {
		x.remove(old)
	}
	x.add(b)
}

func (x *index) deleteBinding(key bindingKey) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if b, ok := x.bindings[key]; ok {
		x.remove(b)
	}
}

func (x *index) add(b *binding) {
	x.bindings[b.bindingKey] = b
	s, ok := x.scopes[b.namespace]
	if !ok {
		s = &scope{users: map[string][]*grant{}, groups: map[string][]*grant{}}
		x.scopes[b.namespace] = s
	}
	for i := range b.subjects {
		holders, name := s.holders(&b.subjects[i], b.namespace)
		if holders == nil {
			continue
		}
		grants := holders[name]
		// A subject that is named twice keeps its first place.
		if at, found := find(grants, b); !found {
			holders[name] = slices.Insert(grants, at, &grant{binding: b, subject: i})
		}
	}
}

func (x *index) remove(b *binding) {
	delete(x.bindings, b.bindingKey)
	b.role.bindings--
	defer x.release(b.role)
	s, ok := x.scopes[b.namespace]
	if !ok {
		return // it had no subjects
	}
	for i := range b.subjects {
		holders, name := s.holders(&b.subjects[i], b.namespace)
		grants := holders[name]
		at, found := find(grants, b)
		switch {
		case !found:
		case len(grants) == 1:
			delete(holders, name)
		default:
			holders[name] = slices.Delete(grants, at, at+1)
		}
	}
	if len(s.users)+len(s.groups) == 0 {
		delete(x.scopes, b.namespace)
	}
}

// holders returns where the grants of a subject are, and under which name. It is
// nil for subjects that no user can match.
func (s *scope) holders(subject *rbacv1.Subject, namespace string) (map[string][]*grant, string) {
	switch subject.Kind {
	case rbacv1.UserKind:
		return s.users, subject.Name
	case rbacv1.GroupKind:
		return s.groups, subject.Name
	case rbacv1.ServiceAccountKind:
		if namespace = cmp.Or(subject.Namespace, namespace); namespace != "" {
			return s.users, serviceaccount.ServiceAccountUsernamePrefix + namespace +
				serviceaccount.ServiceAccountUsernameSeparator + subject.Name
		}
	}
	return nil, ""
}

// find returns the place of a binding among grants, which are sorted by role and
// then by the binding's name. All are of one scope.
func find(grants []*grant, b *binding) (int, bool) {
	return slices.BinarySearchFunc(grants, b, func(g *grant, b *binding) int {
		if g.binding.role == b.role {
			return strings.Compare(g.binding.name, b.name)
		}
		return compareRoles(g.binding.role, b.role)
	})
}

func compareRoles(a, b *role) int {
	if c := strings.Compare(a.name, b.name); c != 0 {
		return c
	}
	if c := strings.Compare(a.kind, b.kind); c != 0 {
		return c
	}
	return strings.Compare(a.namespace, b.namespace)
}

// find returns a grant that allows the request to the user, or nil.
func (s *scope) find(u user.Info, q *request) *grant {
	if s == nil {
		return nil
	}
	g := firstThatAllows(s.users[u.GetName()], q)
	for _, group := range u.GetGroups() {
		if g != nil {
			break
		}
		g = firstThatAllows(s.groups[group], q)
	}
	if g == nil || g.subject == 0 {
		return g
	}
	return s.earliest(g.binding, u)
}

func firstThatAllows(grants []*grant, q *request) *grant {
	var refused *role
	for _, g := range grants {
		if g.binding.role == refused {
			continue
		}
		if g.binding.role.allows(q) {
			return g
		}
		refused = g.binding.role
	}
	return nil
}

// earliest returns the first subject of a binding that the user is, which is the
// one that reasons name.
func (s *scope) earliest(b *binding, u user.Info) *grant {
	var first *grant
	look := func(grants []*grant) {
		if at, ok := find(grants, b); ok && (first == nil || grants[at].subject < first.subject) {
			first = grants[at]
		}
	}
	look(s.users[u.GetName()])
	for _, group := range u.GetGroups() {
		look(s.groups[group])
	}
	return first
}

// visit calls f with each role that is bound to a user, for the whole cluster and
// in a namespace if there is one.
func (x *index) visit(u user.Info, namespace string, f func(*role)) {
	seen := map[*role]bool{}
	each := func(grants []*grant) {
		for _, g := range grants {
			if r := g.binding.role; !seen[r] {
				seen[r] = true
				f(r)
			}
		}
	}
	for i, name := range []string{"", namespace} {
		s := x.scopes[name]
		if s == nil || i > 0 && name == "" {
			continue
		}
		each(s.users[u.GetName()])
		for _, group := range u.GetGroups() {
			each(s.groups[group])
		}
	}
}
