package builtin

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd/rules"
)

// secrets are the secrets. Those of type kubernetes.io/service-account-token are
// accepted like any other: this server does not add tokens to them, which would never
// expire. Clients get tokens that expire from the subresource token of service accounts.
func secrets() Resource {
	return Resource{
		Version: "v1", Plural: "secrets", Singular: "secret", Kind: "Secret", Namespaced: true,
		New:      empty[corev1.Secret],
		NewList:  empty[corev1.SecretList],
		Strategy: Ruled(&rules.Secret, Strategy{Unconditional: true}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Type", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["type"]},
			{Name: "Data", Type: "string", Description: corev1.Secret{}.SwaggerDoc()["data"]},
			ageColumn,
		},
		Row: row(func(o *corev1.Secret) []any {
			return []any{o.Name, string(o.Type), int64(len(o.Data)), created(o)}
		}),
		Fields: func(obj runtime.Object) fields.Set { return fields.Set{"type": string(obj.(*corev1.Secret).Type)} },
	}
}
