package builtin

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/crd/rules"
)

func configMaps() Resource {
	return Resource{
		Version: "v1", Plural: "configmaps", Singular: "configmap", Kind: "ConfigMap", Namespaced: true, ShortNames: []string{"cm"},
		New:      empty[corev1.ConfigMap],
		NewList:  empty[corev1.ConfigMapList],
		Strategy: Ruled(&rules.ConfigMap, Strategy{Unconditional: true}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Data", Type: "string", Description: corev1.ConfigMap{}.SwaggerDoc()["data"]},
			ageColumn,
		},
		Row: row(func(o *corev1.ConfigMap) []any {
			return []any{o.Name, int64(len(o.Data) + len(o.BinaryData)), created(o)}
		}),
	}
}
