package builtin

import (
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd/rules"
)

func leases() Resource {
	return Resource{
		Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Singular: "lease", Kind: "Lease", Namespaced: true,
		New:      empty[coordinationv1.Lease],
		NewList:  empty[coordinationv1.LeaseList],
		Strategy: Ruled(&rules.Lease, Strategy{CreateOnUpdate: true}),
		Columns: []metav1.TableColumnDefinition{
			nameColumn,
			{Name: "Holder", Type: "string", Description: coordinationv1.LeaseSpec{}.SwaggerDoc()["holderIdentity"]},
			ageColumn,
		},
		Row: row(func(o *coordinationv1.Lease) []any {
			return []any{o.Name, ptr.Deref(o.Spec.HolderIdentity, ""), created(o)}
		}),
	}
}
