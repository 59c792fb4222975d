package builtin

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"
)

// ComponentStatuses is the health of the parts of a cluster: of etcd, which the server
// asks, and of the scheduler and the controller manager, which this server does not know.
func ComponentStatuses(etcd func(context.Context) error) Resource {
	r := Resource{
		Version: "v1", Plural: "componentstatuses", Singular: "componentstatus", Kind: "ComponentStatus", ShortNames: []string{"cs"},
		Deprecated: "v1 ComponentStatus is deprecated in v1.19+",
		New:        empty[corev1.ComponentStatus], NewList: empty[corev1.ComponentStatusList],
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Status", Type: "string", Description: "Status of the component conditions"},
			{Name: "Message", Type: "string", Description: "Message of the component conditions"},
			{Name: "Error", Type: "string", Description: "Error of the component conditions"},
		},
		Row: row(componentRow),
	}
	r.Virtual = &components{etcd: etcd, table: newTable(&r)}
	return r
}

func componentRow(c *corev1.ComponentStatus) []any {
	status, message, failure := "Unknown", "", ""
	for _, condition := range c.Conditions {
		if condition.Type != corev1.ComponentHealthy {
			continue
		}
		status = "Unhealthy"
		if condition.Status == corev1.ConditionTrue {
			status = "Healthy"
		}
		message, failure = condition.Message, condition.Error
	}
	return []any{c.Name, status, message, failure}
}

// components serves the resource.
type components struct {
	table
	etcd func(context.Context) error
}

var (
	_ rest.Lister               = (*components)(nil)
	_ rest.Getter               = (*components)(nil)
	_ rest.Scoper               = (*components)(nil)
	_ rest.SingularNameProvider = (*components)(nil)
)

// New implements rest.Storage.
func (*components) New() runtime.Object { return &corev1.ComponentStatus{} }

// NewList implements rest.Lister.
func (*components) NewList() runtime.Object { return &corev1.ComponentStatusList{} }

// Destroy implements rest.Storage.
func (*components) Destroy() {}

// NamespaceScoped implements rest.Scoper.
func (*components) NamespaceScoped() bool { return false }

// GetSingularName implements rest.SingularNameProvider.
func (*components) GetSingularName() string { return "componentstatus" }

// Get implements rest.Getter.
func (c *components) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	for _, one := range c.all(ctx) {
		if one.Name == name {
			return &one, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("componentstatus"), name)
}

// List implements rest.Lister.
func (c *components) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	list := &corev1.ComponentStatusList{Items: []corev1.ComponentStatus{}}
	for _, one := range c.all(ctx) {
		labelled := o == nil || o.LabelSelector == nil || o.LabelSelector.Matches(labels.Set{})
		if labelled && (o == nil || o.FieldSelector == nil || o.FieldSelector.Matches(fields.Set{"metadata.name": one.Name})) {
			list.Items = append(list.Items, one)
		}
	}
	return list, nil
}

func (c *components) all(ctx context.Context) []corev1.ComponentStatus {
	list := []corev1.ComponentStatus{
		component("scheduler", corev1.ConditionFalse, "this server does not ask it"),
		component("controller-manager", corev1.ConditionFalse, "this server does not ask it"),
		component("etcd-0", corev1.ConditionTrue, "ok"),
	}
	if err := c.etcd(ctx); err != nil {
		list[2] = component("etcd-0", corev1.ConditionFalse, err.Error())
	}
	return list
}

func component(name string, status corev1.ConditionStatus, message string) corev1.ComponentStatus {
	return corev1.ComponentStatus{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Conditions: []corev1.ComponentCondition{{Type: corev1.ComponentHealthy, Status: status, Message: message}},
	}
}
