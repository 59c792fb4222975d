package services

import (
	"fmt"
	"net"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/crd/offline"
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
	if old == nil || s.Spec.ClusterIP == old.Spec.ClusterIP || !slices.Equal(s.Spec.ClusterIPs, old.Spec.ClusterIPs) {
		offline.SyncServiceIPs(s)
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
				s.Spec.IPFamilies = append(s.Spec.IPFamilies, offline.FamilyOf(ip))
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

// validate returns the errors of the addresses and families of a Service before any is
// allocated, in the stages of kube-apiserver: the fields by themselves, then by the ranges.
func (a *Allocator) validate(s, old *corev1.Service) error {
	if errs := offline.ServiceAddressErrors(s); len(errs) > 0 {
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
	errs := offline.ServicePolicyErrors(s)
	for i, ip := range s.Spec.ClusterIPs {
		if family := offline.FamilyOf(ip); !headless(s) && a.of(family) == nil {
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

// parseIP reads an address that is valid.
func parseIP(text string) (netip.Addr, bool) {
	ip, ok := netip.AddrFromSlice(net.ParseIP(text))
	return ip.Unmap(), ok
}
