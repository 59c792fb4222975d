package builtin

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/crd/rules"
)

// resourceQuotas are the quotas of namespaces. All names that Kubernetes knows are
// accepted, including those of pods. This server has no pods, so their usage is 0.
func resourceQuotas() Resource {
	type quota = corev1.ResourceQuota
	r := Resource{
		Version: "v1", Plural: "resourcequotas", Singular: "resourcequota", Kind: "ResourceQuota", Namespaced: true, ShortNames: []string{"quota"},
		New: empty[quota], NewList: empty[corev1.ResourceQuotaList],
		Complete: true, // without it, there would be no limit
		Strategy: Ruled(&rules.ResourceQuota, Strategy{Unconditional: true}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Request", Type: "string", Description: "Request represents a minimum amount of cpu/memory that a container may consume."},
			{Name: "Limit", Type: "string", Description: "Limits control the maximum amount of cpu/memory that a container may use independent of contention on the node."},
			ageColumn,
		},
		Row:  row(quotaRow),
		Wrap: returnDeleted,
	}
	withStatus(&r, rules.ResourceQuota.Status)
	return r
}

func quotaRow(q *corev1.ResourceQuota) []any {
	var requests, limits []string
	for _, name := range slices.Sorted(maps.Keys(q.Status.Hard)) {
		used, hard := q.Status.Used[name], q.Status.Hard[name]
		text := fmt.Sprintf("%s: %s/%s", name, used.String(), hard.String())
		if strings.HasPrefix(string(name), "limits.") {
			limits = append(limits, text)
		} else {
			requests = append(requests, text)
		}
	}
	return []any{q.Name, strings.Join(requests, ", "), strings.Join(limits, ", "), created(q)}
}
