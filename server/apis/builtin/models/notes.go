package models

import (
	"reflect"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
)

// isRequired returns whether a field must be there: if nothing in its tag lets
// it be left out, and unless its comment says otherwise.
func isRequired(model, field string, mayBeOmitted bool) bool {
	key := model + "." + field
	return required[key] || !mayBeOmitted && !optional[key]
}

// required are the fields that may be left out by their tags, and not by their
// comments.
var required = map[string]bool{
	"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBinding.spec":                  true,
	"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.policyName":        true,
	"io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicyBindingSpec.validationActions": true,

	"io.k8s.api.authentication.v1.TokenReviewSpec.token": true,

	"io.k8s.api.flowcontrol.v1.FlowSchema.spec":                                 true,
	"io.k8s.api.flowcontrol.v1.FlowSchemaCondition.type":                        true,
	"io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration.limitResponse": true,
	"io.k8s.api.flowcontrol.v1.PriorityLevelConfiguration.spec":                 true,
	"io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationCondition.type":        true,
}

// optional are the fields that may be left out by their comments, though Go
// writes them when they are empty.
var optional = map[string]bool{
	"io.k8s.api.authentication.v1.TokenRequest.spec":                      true,
	"io.k8s.api.authentication.v1.TokenRequestSpec.audiences":             true,
	"io.k8s.api.authentication.v1.TokenRequestSpec.boundObjectRef":        true,
	"io.k8s.api.authentication.v1.TokenRequestSpec.expirationSeconds":     true,
	"io.k8s.api.authentication.v1.TokenRequestStatus.expirationTimestamp": true,
	"io.k8s.api.authentication.v1.TokenRequestStatus.token":               true,

	"io.k8s.api.core.v1.Event.reportingComponent": true,
	"io.k8s.api.core.v1.Event.reportingInstance":  true,

	"io.k8s.api.flowcontrol.v1.FlowSchemaSpec.matchingPrecedence":                          true,
	"io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration.nominalConcurrencyShares": true,
	"io.k8s.api.flowcontrol.v1.QueuingConfiguration.handSize":                              true,
	"io.k8s.api.flowcontrol.v1.QueuingConfiguration.queueLengthLimit":                      true,
	"io.k8s.api.flowcontrol.v1.QueuingConfiguration.queues":                                true,
	"io.k8s.api.flowcontrol.v1.ResourcePolicyRule.namespaces":                              true,

	"io.k8s.api.rbac.v1.ClusterRole.rules": true,
	"io.k8s.api.rbac.v1.Role.rules":        true,
	"io.k8s.api.rbac.v1.RoleRef.apiGroup":  true,
}

// enums are the values, in order, of the types that have no others.
var enums = map[reflect.Type][]any{
	reflect.TypeFor[certificatesv1.KeyUsage](): values(
		certificatesv1.UsageAny, certificatesv1.UsageCertSign, certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageContentCommitment,
		certificatesv1.UsageCRLSign, certificatesv1.UsageDataEncipherment, certificatesv1.UsageDecipherOnly, certificatesv1.UsageDigitalSignature, certificatesv1.UsageEmailProtection,
		certificatesv1.UsageEncipherOnly, certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageKeyAgreement,
		certificatesv1.UsageKeyEncipherment, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC, certificatesv1.UsageOCSPSigning, certificatesv1.UsageSMIME,
		certificatesv1.UsageServerAuth, certificatesv1.UsageSigning, certificatesv1.UsageTimestamping),
	reflect.TypeFor[admissionv1.FailurePolicyType]():      values(admissionv1.Fail, admissionv1.Ignore),
	reflect.TypeFor[admissionv1.MatchPolicyType]():        values(admissionv1.Equivalent, admissionv1.Exact),
	reflect.TypeFor[admissionv1.OperationType]():          values(admissionv1.OperationAll, admissionv1.Connect, admissionv1.Create, admissionv1.Delete, admissionv1.Update),
	reflect.TypeFor[admissionv1.PatchType]():              values(admissionv1.PatchTypeApplyConfiguration, admissionv1.PatchTypeJSONPatch),
	reflect.TypeFor[admissionv1.ReinvocationPolicyType](): values(admissionv1.IfNeededReinvocationPolicy, admissionv1.NeverReinvocationPolicy),
	reflect.TypeFor[admissionv1.SideEffectClass]():        values(admissionv1.SideEffectClassNone, admissionv1.SideEffectClassNoneOnDryRun, admissionv1.SideEffectClassSome, admissionv1.SideEffectClassUnknown),
	reflect.TypeFor[admissionv1.ValidationAction]():       values(admissionv1.Audit, admissionv1.Deny, admissionv1.Warn),
	reflect.TypeFor[corev1.NamespacePhase]():              values(corev1.NamespaceActive, corev1.NamespaceTerminating),
	reflect.TypeFor[corev1.ResourceQuotaScope](): values(corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeCrossNamespacePodAffinity, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeVolumeAttributesClass),
	reflect.TypeFor[corev1.ScopeSelectorOperator](): values(corev1.ScopeSelectorOpDoesNotExist, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn),
}

// values are those of an enum as JSON has them.
func values[T ~string](list ...T) []any {
	out := make([]any, len(list))
	for i, v := range list {
		out[i] = string(v)
	}
	return out
}
