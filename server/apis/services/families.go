package services

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

var (
	ipsPath      = field.NewPath("spec", "clusterIPs")
	familiesPath = field.NewPath("spec", "ipFamilies")
	policyPath   = field.NewPath("spec", "ipFamilyPolicy")
)

// invalid is the error for an invalid Service; nil without errors.
func invalid(s *corev1.Service, errs ...*field.Error) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Service").GroupKind(), s.Name, errs)
}

func headless(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone }

func external(s *corev1.Service) bool { return s.Spec.Type == corev1.ServiceTypeExternalName }

// single reports whether a Service says that it has one family.
func singleStack(s *corev1.Service) bool {
	return ptr.Deref(s.Spec.IPFamilyPolicy, corev1.IPFamilyPolicySingleStack) == corev1.IPFamilyPolicySingleStack
}

// syncIPs makes clusterIPs agree with clusterIP, which older clients write alone.
func syncIPs(s, old *corev1.Service) {
	if old == nil {
		if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		}
		return
	}
	if s.Spec.ClusterIP == old.Spec.ClusterIP || !slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs) {
		if s.Spec.ClusterIP != "" && len(s.Spec.ClusterIPs) == 0 {
			s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
		}
		return
	}
	if s.Spec.ClusterIP == "" {
		s.Spec.ClusterIPs = nil
		return
	}
	s.Spec.ClusterIPs = []string{s.Spec.ClusterIP}
}

// keepIPs restores what a client left out of an update.
func keepIPs(s, old *corev1.Service) {
	if external(s) || external(old) {
		return
	}
	if s.Spec.ClusterIP == "" {
		s.Spec.ClusterIP = old.Spec.ClusterIP
	}
	if len(s.Spec.ClusterIPs) == 0 && s.Spec.ClusterIP == old.Spec.ClusterIP {
		s.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
}

// setFamilies fills in the families and their policy, and drops the second ones of a
// Service that becomes single-stack.
func (a *Allocator) setFamilies(s, old *corev1.Service) {
	if old != nil && !external(old) {
		if s.Spec.IPFamilyPolicy == nil {
			s.Spec.IPFamilyPolicy = old.Spec.IPFamilyPolicy
		}
		if len(s.Spec.IPFamilies) == 0 {
			s.Spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
		}
		trimToSingle(s, old)
	}
	open := headless(s) && len(s.Spec.Selector) == 0 // its endpoints are the client's, of whatever family
	if s.Spec.IPFamilyPolicy == nil {
		s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicySingleStack)
		if open {
			s.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyRequireDualStack)
		}
	}
	if !headless(s) {
		for i, ip := range s.Spec.ClusterIPs { // the addresses that a client asks for have families
			if i >= len(s.Spec.IPFamilies) {
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, familyOf(ip))
			}
		}
	}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = []corev1.IPFamily{a.addresses[0].family()}
	}
	if !singleStack(s) && len(s.Spec.IPFamilies) == 1 && (open || len(a.addresses) == 2) {
		other := corev1.IPv4Protocol
		if s.Spec.IPFamilies[0] == corev1.IPv4Protocol {
			other = corev1.IPv6Protocol
		}
		s.Spec.IPFamilies = append(s.Spec.IPFamilies, other)
	}
}

// trimToSingle drops the second family and address of a Service that a client makes
// single-stack, unless the client changes them.
func trimToSingle(s, old *corev1.Service) {
	if !singleStack(s) || singleStack(old) {
		return
	}
	if len(s.Spec.ClusterIPs) == 2 && slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs) {
		s.Spec.ClusterIPs = s.Spec.ClusterIPs[:1]
	}
	if len(s.Spec.IPFamilies) == 2 && slices.Equal(s.Spec.IPFamilies, old.Spec.IPFamilies) {
		s.Spec.IPFamilies = s.Spec.IPFamilies[:1]
	}
}

// familyOf is the family of an address; IPv4 if it is none.
func familyOf(ip string) corev1.IPFamily {
	if strings.Contains(ip, ":") {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// validate returns the errors of the addresses and families of a Service before any is
// allocated, in the stages of kube-apiserver: the fields by themselves, then by the ranges.
func (a *Allocator) validate(s, old *corev1.Service) error {
	if errs := validateFields(s); len(errs) > 0 {
		return invalid(s, errs...)
	}
	if old != nil && !external(old) {
		for i := range min(len(s.Spec.ClusterIPs), len(old.Spec.ClusterIPs)) {
			if s.Spec.ClusterIPs[i] != old.Spec.ClusterIPs[i] {
				return invalid(s, field.Invalid(ipsPath.Index(i), s.Spec.ClusterIPs, "may not change once set"))
			}
		}
	}
	if headless(s) && len(s.Spec.Selector) == 0 {
		return nil
	}
	var errs field.ErrorList
	if singleStack(s) && len(s.Spec.ClusterIPs) > 1 {
		errs = append(errs, field.Invalid(policyPath, s.Spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	} else if singleStack(s) && len(s.Spec.IPFamilies) > 1 {
		errs = append(errs, field.Invalid(policyPath, s.Spec.IPFamilyPolicy, "must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	for i, ip := range s.Spec.ClusterIPs {
		if family := familyOf(ip); !headless(s) && a.of(family) == nil {
			errs = append(errs, field.Invalid(ipsPath.Index(i), s.Spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", family)))
		}
	}
	if len(errs) > 0 {
		return invalid(s, errs...)
	}
	if len(a.addresses) == 1 && ptr.Deref(s.Spec.IPFamilyPolicy, "") == corev1.IPFamilyPolicyRequireDualStack {
		errs = append(errs, field.Invalid(policyPath, s.Spec.IPFamilyPolicy, "this cluster is not configured for dual-stack services"))
	}
	for i, family := range s.Spec.IPFamilies {
		if a.of(family) == nil {
			errs = append(errs, field.Invalid(familiesPath.Index(i), family, "not configured on this cluster"))
		}
	}
	return invalid(s, errs...)
}

// validateFields validates the fields without the ranges.
func validateFields(s *corev1.Service) field.ErrorList {
	var errs field.ErrorList
	if p := s.Spec.IPFamilyPolicy; p != nil && !slices.Contains(policies, *p) {
		errs = append(errs, field.NotSupported(policyPath, *p, policies))
	}
	seen := map[corev1.IPFamily]bool{}
	for i, family := range s.Spec.IPFamilies {
		switch {
		case family != corev1.IPv4Protocol && family != corev1.IPv6Protocol:
			errs = append(errs, field.NotSupported(familiesPath.Index(i), family, []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
		case seen[family]:
			errs = append(errs, field.Duplicate(familiesPath.Index(i), family))
		}
		seen[family] = true
	}
	if len(s.Spec.IPFamilies) > 2 && len(errs) == 0 {
		errs = append(errs, field.Invalid(familiesPath, s.Spec.IPFamilies, "may only hold up to 2 values"))
	}
	return append(errs, validateIPs(s)...)
}

var policies = []corev1.IPFamilyPolicy{corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack}

// validateIPs validates the addresses that a client asks for.
func validateIPs(s *corev1.Service) field.ErrorList {
	ips := s.Spec.ClusterIPs
	var errs field.ErrorList
	switch {
	case len(ips) > 0 && s.Spec.ClusterIP == "":
		errs = append(errs, field.Invalid(ipsPath, ips, "must be empty when `clusterIP` is not specified"))
	case len(ips) > 0 && ips[0] != s.Spec.ClusterIP:
		errs = append(errs, field.Invalid(ipsPath, ips, "first value must match `clusterIP`"))
	}
	if len(ips) > 1 && slices.Contains(ips, corev1.ClusterIPNone) {
		return append(errs, field.Invalid(ipsPath, ips, "'None' must be the first and only value"))
	}
	if len(ips) == 1 && ips[0] == corev1.ClusterIPNone {
		if s.Spec.Type == corev1.ServiceTypeNodePort || s.Spec.Type == corev1.ServiceTypeLoadBalancer {
			errs = append(errs, field.Invalid(ipsPath.Index(0), corev1.ClusterIPNone, fmt.Sprintf("may not be set to 'None' for %s services", s.Spec.Type)))
		}
		return errs
	}
	for i, ip := range ips {
		errs = append(errs, validateIP(ipsPath.Index(i), ip)...)
	}
	if len(ips) > 2 {
		return append(errs, field.Invalid(ipsPath, ips, "may only hold up to 2 values"))
	}
	if len(errs) > 0 {
		return errs
	}
	if len(ips) == 2 && familyOf(ips[0]) == familyOf(ips[1]) {
		return append(errs, field.Invalid(ipsPath, ips, "may specify no more than one IP for each IP family"))
	}
	for i, ip := range ips {
		if i < len(s.Spec.IPFamilies) && familyOf(ip) != s.Spec.IPFamilies[i] {
			errs = append(errs, field.Invalid(ipsPath.Index(i), ip, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", s.Spec.IPFamilies[i], i)))
		}
	}
	return errs
}

// validateIP validates one address.
func validateIP(path *field.Path, text string) field.ErrorList {
	return validation.IsValidIPForLegacyField(path, text, true, nil)
}

// parseIP reads an address that validateIP accepts.
func parseIP(text string) (netip.Addr, bool) {
	ip, ok := netip.AddrFromSlice(net.ParseIP(text))
	return ip.Unmap(), ok
}
