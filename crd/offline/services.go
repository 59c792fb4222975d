package offline

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var (
	ipsPath      = field.NewPath("spec", "clusterIPs")
	familiesPath = field.NewPath("spec", "ipFamilies")
	policyPath   = field.NewPath("spec", "ipFamilyPolicy")
)

// SyncServiceIPs makes clusterIPs of a new Service agree with clusterIP, which older
// clients write alone.
func SyncServiceIPs(s *corev1.Service) {
	if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
		s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
	}
}

// ServiceAddressErrors returns the errors of the addresses and families of a Service that
// no range of a cluster decides. Servers find them before they allocate, and before all
// other errors.
func ServiceAddressErrors(s *corev1.Service) field.ErrorList {
	if s.Spec.Type == corev1.ServiceTypeExternalName {
		return forbidIPs(s)
	}
	return slices.Concat(validateFirstIP(s), validateFamilies(s), validateIPs(s))
}

// ServicePolicyErrors returns the errors of addresses and families that the policy does
// not allow. Servers find them after those of the addresses.
func ServicePolicyErrors(s *corev1.Service) field.ErrorList {
	policy := ptr.To(ptr.Deref(s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack))
	if s.Spec.ClusterIP == corev1.ClusterIPNone && len(s.Spec.Selector) == 0 || *policy != corev1.IPFamilyPolicySingleStack {
		return nil
	}
	switch {
	case len(s.Spec.ClusterIPs) > 1:
		return field.ErrorList{field.Invalid(policyPath, policy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified")}
	case len(s.Spec.IPFamilies) > 1:
		return field.ErrorList{field.Invalid(policyPath, policy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified")}
	}
	return nil
}

// forbidIPs rejects addresses of a Service that has none.
func forbidIPs(s *corev1.Service) field.ErrorList {
	const text = "may not be set for ExternalName services"
	var errs field.ErrorList
	if len(s.Spec.ClusterIPs) > 0 {
		errs = append(errs, field.Forbidden(ipsPath, text))
	}
	if len(s.Spec.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(familiesPath, text))
	}
	if s.Spec.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(policyPath, text))
	}
	return errs
}

// validateFirstIP compares the two fields for addresses.
func validateFirstIP(s *corev1.Service) field.ErrorList {
	ips := s.Spec.ClusterIPs
	switch {
	case len(ips) > 0 && s.Spec.ClusterIP == "":
		return field.ErrorList{field.Invalid(ipsPath, ips, "must be empty when `clusterIP` is not specified")}
	case len(ips) > 0 && ips[0] != s.Spec.ClusterIP:
		return field.ErrorList{field.Invalid(ipsPath, ips, "first value must match `clusterIP`")}
	}
	return nil
}

// validateFamilies validates the families and the policy by themselves.
func validateFamilies(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	for i, family := range s.Spec.IPFamilies {
		if !slices.Contains(families, family) {
			errs = append(errs, field.NotSupported(familiesPath.Index(i), family, families))
		}
		if slices.Contains(s.Spec.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(familiesPath.Index(i), family))
		}
	}
	if p := s.Spec.IPFamilyPolicy; p != nil && !slices.Contains(policies, *p) {
		errs = append(errs, field.NotSupported(policyPath, *p, policies))
	}
	return errs
}

// What is supported, in the order of the errors that list it.
var (
	families = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	policies = []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack}
)

// validateIPs validates the addresses that a client asks for.
func validateIPs(s *corev1.Service) field.ErrorList {
	ips := s.Spec.ClusterIPs
	if len(ips) == 1 && ips[0] == corev1.ClusterIPNone {
		if s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			return field.ErrorList{field.Invalid(ipsPath.Index(0), corev1.ClusterIPNone, fmt.Sprintf("may not be set to 'None' for %s services", s.Spec.Type))}
		}
		return nil
	}
	var errs field.ErrorList
	for i, ip := range ips {
		if i == 0 && ip == corev1.ClusterIPNone {
			errs = append(errs, field.Invalid(ipsPath, ips, "'None' must be the first and only value"))
			continue
		}
		errs = append(errs, validation.IsValidIPForLegacyField(ipsPath.Index(i), ip, true, nil)...)
	}
	unusable := len(errs) > 0
	if len(ips) > 2 {
		errs = append(errs, field.Invalid(ipsPath, ips, "may only hold up to 2 values"))
	}
	if unusable {
		return errs
	}
	if len(ips) > 1 && !slices.ContainsFunc(ips, func(ip string) bool { return FamilyOf(ip) != FamilyOf(ips[0]) }) {
		errs = append(errs, field.Invalid(ipsPath, ips, "may specify no more than one IP for each IP family"))
	}
	for i, ip := range ips[:min(len(ips), len(s.Spec.IPFamilies))] {
		if want := s.Spec.IPFamilies[i]; FamilyOf(ip) != want && slices.Contains(families, want) {
			errs = append(errs, field.Invalid(ipsPath.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", want, i)))
		}
	}
	return errs
}

// FamilyOf is the family of an address; IPv4 if it is none.
func FamilyOf(ip string) corev1.IPFamily {
	if strings.Contains(ip, ":") {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
