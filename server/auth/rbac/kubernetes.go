package rbac

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/component-helpers/auth/rbac/reconciliation"
)

// kubernetesDefaults are the objects that kube-apiserver creates at its start, as one
// has answered them, without what the server sets. Each line is one. They are JSON: as YAML,
// they took a tenth of the time in which a server starts.
//
//go:embed kubernetes.json
var kubernetesDefaults []byte

// defaults are roles and bindings.
type defaults struct {
	clusterRoles        []rbacv1.ClusterRole
	clusterRoleBindings []rbacv1.ClusterRoleBinding
	roles               []rbacv1.Role
	roleBindings        []rbacv1.RoleBinding
}

// EnsureKubernetesDefaults is EnsureDefaults with all roles and bindings that
// kube-apiserver has, for servers with all its kinds.
func EnsureKubernetesDefaults(ctx context.Context, client kubernetes.Interface) error {
	return ensureDefaults(ctx, client, true)
}

func ensureDefaults(ctx context.Context, client kubernetes.Interface, ofKubernetes bool) error {
	d, err := chooseDefaults(ofKubernetes)
	if err != nil {
		return err
	}
	return d.ensure(ctx, client)
}

// chooseDefaults returns the roles and bindings of kube-apiserver, or those of every cluster.
func chooseDefaults(ofKubernetes bool) (*defaults, error) {
	if !ofKubernetes {
		return &defaults{clusterRoles: defaultRoles(), clusterRoleBindings: defaultBindings()}, nil
	}
	d, err := readKubernetes()
	if err != nil {
		return nil, fmt.Errorf("parsing the default roles of Kubernetes: %w", err)
	}
	return d, nil
}

// readKubernetes reads the file once: test processes start many servers.
var readKubernetes = sync.OnceValues(func() (*defaults, error) { return parseDefaults(kubernetesDefaults) })

// parseDefaults reads roles and bindings of all four kinds.
func parseDefaults(text []byte) (*defaults, error) {
	d := &defaults{}
	documents := json.NewDecoder(bytes.NewReader(text))
	for {
		// One type for all kinds: their fields have no name in common but metadata.
		var one struct {
			rbacv1.ClusterRole
			RoleRef  rbacv1.RoleRef   `json:"roleRef"`
			Subjects []rbacv1.Subject `json:"subjects"`
		}
		err := documents.Decode(&one)
		if errors.Is(err, io.EOF) {
			return d, nil
		}
		if err != nil {
			return nil, err
		}
		meta := one.ObjectMeta
		switch one.Kind {
		case kindClusterRole:
			d.clusterRoles = append(d.clusterRoles, rbacv1.ClusterRole{ObjectMeta: meta, Rules: one.Rules, AggregationRule: one.AggregationRule})
		case "ClusterRoleBinding":
			d.clusterRoleBindings = append(d.clusterRoleBindings, rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: one.RoleRef, Subjects: one.Subjects})
		case kindRole:
			d.roles = append(d.roles, rbacv1.Role{ObjectMeta: meta, Rules: one.Rules})
		case "RoleBinding":
			d.roleBindings = append(d.roleBindings, rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: one.RoleRef, Subjects: one.Subjects})
		default:
			return nil, fmt.Errorf("%s %s is not a role and not a binding", one.Kind, one.Name)
		}
	}
}

// wanted returns how to reconcile each. Clients change an object while they encode it,
// so each gets a copy.
func (d *defaults) wanted(client kubernetes.Interface, stored *present) []wanted {
	var all []wanted
	role := func(kind, name string, owner reconciliation.RuleOwner, modifier reconciliation.RuleOwnerModifier) {
		options := reconciliation.ReconcileRoleOptions{Role: owner, Client: &listedRole{modifier, stored.roles[kind+" "+name], false}, Confirm: true}
		all = append(all, wanted{kind, name, func() (reconciliation.ReconcileOperation, bool, error) {
			result, err := options.Run()
			if err != nil {
				return "", false, err
			}
			return result.Operation, result.Protected, nil
		}})
	}
	binding := func(kind, name string, owner reconciliation.RoleBinding, modifier reconciliation.RoleBindingModifier) {
		options := reconciliation.ReconcileRoleBindingOptions{RoleBinding: owner, Client: &listedBinding{modifier, stored.bindings[kind+" "+name], false}, Confirm: true}
		all = append(all, wanted{kind, name, func() (reconciliation.ReconcileOperation, bool, error) {
			result, err := options.Run()
			if err != nil {
				return "", false, err
			}
			return result.Operation, result.Protected, nil
		}})
	}
	api, namespaces := client.RbacV1(), client.CoreV1().Namespaces()
	for i := range d.clusterRoles {
		r := d.clusterRoles[i].DeepCopy()
		role(kindClusterRole, r.Name, reconciliation.ClusterRoleRuleOwner{ClusterRole: r}, reconciliation.ClusterRoleModifier{Client: api.ClusterRoles()})
	}
	for i := range d.clusterRoleBindings {
		b := d.clusterRoleBindings[i].DeepCopy()
		binding(kindClusterRoleBinding, b.Name, reconciliation.ClusterRoleBindingAdapter{ClusterRoleBinding: b}, reconciliation.ClusterRoleBindingClientAdapter{Client: api.ClusterRoleBindings()})
	}
	for i := range d.roles {
		r := d.roles[i].DeepCopy()
		role(kindRole, r.Namespace+"/"+r.Name, reconciliation.RoleRuleOwner{Role: r}, reconciliation.RoleModifier{Client: api, NamespaceClient: namespaces})
	}
	for i := range d.roleBindings {
		b := d.roleBindings[i].DeepCopy()
		binding(kindRoleBinding, b.Namespace+"/"+b.Name, reconciliation.RoleBindingAdapter{RoleBinding: b}, reconciliation.RoleBindingClientAdapter{Client: api, NamespaceClient: namespaces})
	}
	return all
}

// Defaults returns the default roles and bindings as objects: those of Kubernetes, or those
// of EnsureDefaults. They are copies. Aggregated roles have the rules that Aggregate would give
// them, so that they can be used at once.
func Defaults(ofKubernetes bool) ([]runtime.Object, error) {
	d, err := chooseDefaults(ofKubernetes)
	if err != nil {
		return nil, err
	}
	var all []runtime.Object
	var roles []*rbacv1.ClusterRole
	for i := range d.clusterRoles {
		roles = append(roles, d.clusterRoles[i].DeepCopy())
		all = append(all, roles[i])
	}
	if err := aggregateAll(roles); err != nil {
		return nil, err
	}
	for i := range d.clusterRoleBindings {
		all = append(all, d.clusterRoleBindings[i].DeepCopy())
	}
	for i := range d.roles {
		all = append(all, d.roles[i].DeepCopy())
	}
	for i := range d.roleBindings {
		all = append(all, d.roleBindings[i].DeepCopy())
	}
	return all, nil
}
