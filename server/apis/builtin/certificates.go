package builtin

import (
	"context"
	"maps"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd/rules"
)

// csr is a request for a certificate.
type csr = certificatesv1.CertificateSigningRequest

// CertificateSigningRequests are the requests for certificates. Approval and Status are
// the strategies of its subresources. The caller authorizes writes to them.
func CertificateSigningRequests() (r Resource, approval, status Strategy) {
	r = Resource{
		Group: certificatesv1.GroupName, Version: "v1", Plural: "certificatesigningrequests", Singular: "certificatesigningrequest", Kind: "CertificateSigningRequest",
		ShortNames: []string{"csr"},
		New:        empty[csr],
		NewList:    empty[certificatesv1.CertificateSigningRequestList],
		Strategy: Ruled(&rules.CertificateSigningRequest, Strategy{
			Create:        func(ctx context.Context, obj runtime.Object) { requestedBy(ctx, obj.(*csr)) },
			Unconditional: true,
			Reset:         ResetFields("certificates.k8s.io/v1", "spec", "status"),
		}),
		Columns: []metav1.TableColumnDefinition{ // with the descriptions of v1beta1, as in kube-apiserver
			nameColumn, ageColumn,
			{Name: "SignerName", Type: "string", Description: certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["signerName"]},
			{Name: "Requestor", Type: "string", Description: certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["request"]},
			{Name: "RequestedDuration", Type: "string", Description: certificatesv1beta1.CertificateSigningRequestSpec{}.SwaggerDoc()["expirationSeconds"]},
			{Name: "Condition", Type: "string", Description: certificatesv1beta1.CertificateSigningRequestStatus{}.SwaggerDoc()["conditions"]},
		},
		Row:    row(csrRow),
		Fields: func(obj runtime.Object) fields.Set { return fields.Set{"spec.signerName": obj.(*csr).Spec.SignerName} },
	}
	approval = PartRuled(&rules.CertificateApproval, Strategy{Unconditional: true, Reset: resetCSR("certificate")})
	status = PartRuled(rules.CertificateSigningRequest.Status, Strategy{Unconditional: true, Reset: resetCSR("conditions")})
	return r, approval, status
}

// resetCSR is a value for Strategy.Reset: the spec, and one field of the status.
func resetCSR(name string) map[string]*fieldpath.Set {
	return map[string]*fieldpath.Set{"certificates.k8s.io/v1": fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", name))}
}

// requestedBy records the user of the request. Clients cannot set it, nor create a
// request that is already approved.
func requestedBy(ctx context.Context, o *csr) {
	rules.CertificateSigningRequest.Prepare(o, nil)
	if u, ok := request.UserFrom(ctx); ok {
		o.Spec.Username, o.Spec.UID, o.Spec.Groups = u.GetName(), u.GetUID(), slices.Clone(u.GetGroups())
		if extra := u.GetExtra(); len(extra) > 0 {
			o.Spec.Extra = make(map[string]certificatesv1.ExtraValue, len(extra))
			for _, key := range slices.Sorted(maps.Keys(extra)) {
				o.Spec.Extra[key] = extra[key]
			}
		}
	}
}

func csrRow(o *csr) []any {
	wanted := "<none>"
	if s := o.Spec.ExpirationSeconds; s != nil {
		wanted = duration.HumanDuration(time.Duration(*s) * time.Second)
	}
	condition := "Pending"
	switch {
	case len(rules.ConditionsOf(o, certificatesv1.CertificateDenied)) > 0:
		condition = "Denied"
	case len(rules.ConditionsOf(o, certificatesv1.CertificateApproved)) > 0:
		condition = "Approved"
	}
	if len(rules.ConditionsOf(o, certificatesv1.CertificateFailed)) > 0 {
		condition += ",Failed"
	}
	if len(o.Status.Certificate) > 0 {
		condition += ",Issued"
	}
	return []any{o.Name, created(o), o.Spec.SignerName, o.Spec.Username, wanted, condition}
}
