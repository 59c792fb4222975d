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
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// A csr is a CertificateSigningRequest. Its spec never changes; what is decided about
// it is written through the subresource approval, and the certificate through status.
type csr = certificatesv1.CertificateSigningRequest

// CertificateSigningRequests are the requests for certificates. Approval and Status are
// the strategies of its subresources. The caller authorizes writes to them.
func CertificateSigningRequests() (r Resource, approval, status Strategy) {
	r = Resource{
		Group: certificatesv1.GroupName, Version: "v1", Plural: "certificatesigningrequests", Singular: "certificatesigningrequest", Kind: "CertificateSigningRequest",
		ShortNames: []string{"csr"},
		New:        empty[csr],
		NewList:    empty[certificatesv1.CertificateSigningRequestList],
		Strategy: Strategy{
			Name:   segmentName,
			Create: func(ctx context.Context, obj runtime.Object) { requestedBy(ctx, obj.(*csr)) },
			Update: func(_ context.Context, obj, old runtime.Object) {
				obj.(*csr).Spec, obj.(*csr).Status = old.(*csr).Spec, old.(*csr).Status
			},
			Validate:       func(_ context.Context, obj runtime.Object) field.ErrorList { return validateCSR(obj.(*csr), nil) },
			ValidateUpdate: csrUpdate(csrMay{}),
			Unconditional:  true, QualifiedFinalizers: true,
			Reset: ResetFields("certificates.k8s.io/v1", "spec", "status"),
		},
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
	approval = Strategy{
		Update: func(_ context.Context, obj, old runtime.Object) {
			o, before := obj.(*csr), old.(*csr)
			stampConditions(o, before)
			conditions := o.Status.Conditions
			o.Spec, o.Status = before.Spec, before.Status
			o.Status.Conditions = conditions
			keepMetadata(o, before)
		},
		ValidateUpdate: csrUpdate(csrMay{approve: true}),
		Unconditional:  true,
		Reset:          resetCSR("certificate"),
	}
	status = Strategy{
		Update: func(_ context.Context, obj, old runtime.Object) {
			o, before := obj.(*csr), old.(*csr)
			o.Spec = before.Spec
			keepMetadata(o, before)
			keepConditions(o, before, certificatesv1.CertificateApproved)
			keepConditions(o, before, certificatesv1.CertificateDenied)
			stampConditions(o, before)
		},
		ValidateUpdate: csrUpdate(csrMay{issue: true}),
		Unconditional:  true,
		Reset:          resetCSR("conditions"),
	}
	return r, approval, status
}

// resetCSR is a value for Strategy.Reset: the spec, and one field of the status.
func resetCSR(name string) map[string]*fieldpath.Set {
	return map[string]*fieldpath.Set{"certificates.k8s.io/v1": fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("status", name))}
}

// requestedBy records the user of the request. Clients cannot set it, nor create a
// request that is already approved.
func requestedBy(ctx context.Context, o *csr) {
	o.Spec.Username, o.Spec.UID, o.Spec.Groups, o.Spec.Extra = "", "", nil, nil
	if u, ok := request.UserFrom(ctx); ok {
		o.Spec.Username, o.Spec.UID, o.Spec.Groups = u.GetName(), u.GetUID(), slices.Clone(u.GetGroups())
		if extra := u.GetExtra(); len(extra) > 0 {
			o.Spec.Extra = make(map[string]certificatesv1.ExtraValue, len(extra))
			for _, key := range slices.Sorted(maps.Keys(extra)) {
				o.Spec.Extra[key] = extra[key]
			}
		}
	}
	o.Status = certificatesv1.CertificateSigningRequestStatus{}
}

// keepConditions restores the former conditions of a type. If their number differs it
// does not change them, and validation rejects them.
func keepConditions(o, before *csr, kind certificatesv1.RequestConditionType) {
	was := conditionsOf(before, kind)
	if len(conditionsOf(o, kind)) != len(was) {
		return
	}
	for i := range o.Status.Conditions {
		if o.Status.Conditions[i].Type == kind {
			o.Status.Conditions[i], was = was[0], was[1:]
		}
	}
}

func conditionsOf(o *csr, kind certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
	var found []certificatesv1.CertificateSigningRequestCondition
	for _, c := range o.Status.Conditions {
		if c.Type == kind {
			found = append(found, c)
		}
	}
	return found
}

// stampConditions fills in the times that are left out.
func stampConditions(o, before *csr) {
	now := metav1.Now()
	for i := range o.Status.Conditions {
		c := &o.Status.Conditions[i]
		if c.LastUpdateTime.IsZero() {
			c.LastUpdateTime = now
		}
		if !c.LastTransitionTime.IsZero() {
			continue
		}
		c.LastTransitionTime = now
		for _, was := range conditionsOf(before, c.Type) {
			if was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
				break
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
	case len(conditionsOf(o, certificatesv1.CertificateDenied)) > 0:
		condition = "Denied"
	case len(conditionsOf(o, certificatesv1.CertificateApproved)) > 0:
		condition = "Approved"
	}
	if len(conditionsOf(o, certificatesv1.CertificateFailed)) > 0 {
		condition += ",Failed"
	}
	if len(o.Status.Certificate) > 0 {
		condition += ",Issued"
	}
	return []any{o.Name, created(o), o.Spec.SignerName, o.Spec.Username, wanted, condition}
}
