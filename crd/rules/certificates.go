package rules

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/kinds"
)

// A csr is a CertificateSigningRequest. Its spec never changes; what is decided about
// it is written through the subresource approval, and the certificate through status.
type csr = certificatesv1.CertificateSigningRequest

// CertificateSigningRequest are the rules of requests for certificates.
var CertificateSigningRequest = Rules{
	GroupVersionKind: certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"),
	Name:             kinds.PathSegmentName, LooseGenerateName: true,
	Prepare: func(obj, old runtime.Object) {
		o := obj.(*csr)
		if old == nil {
			// The server sets the user. No client can create a request that is approved.
			o.Spec.Username, o.Spec.UID, o.Spec.Groups, o.Spec.Extra = "", "", nil, nil
			o.Status = certificatesv1.CertificateSigningRequestStatus{}
			return
		}
		o.Spec, o.Status = old.(*csr).Spec, old.(*csr).Status
	},
	Validate: csrUpdate(csrMay{}),
	Status: &StatusRules{
		Prepare: func(obj, old runtime.Object) {
			o, before := obj.(*csr), old.(*csr)
			o.Spec = before.Spec
			KeepMetadata(o, before)
			keepConditions(o, before, certificatesv1.CertificateApproved)
			keepConditions(o, before, certificatesv1.CertificateDenied)
			stampConditions(o, before)
		},
		Validate: csrUpdate(csrMay{issue: true}),
	},
}

// CertificateApproval are the rules of writes through the subresource approval.
var CertificateApproval = StatusRules{
	Prepare: func(obj, old runtime.Object) {
		o, before := obj.(*csr), old.(*csr)
		stampConditions(o, before)
		conditions := o.Status.Conditions
		o.Spec, o.Status = before.Spec, before.Status
		o.Status.Conditions = conditions
		KeepMetadata(o, before)
	},
	Validate: csrUpdate(csrMay{approve: true}),
}

const (
	// maxCSR bounds a request, and maxRSA its key: verifying a signature takes time
	// that grows with the square of the key, which is the requester's own choice.
	// A request of 8192 bits with a dozen names has 3 KB.
	maxCSR = 16 << 10
	maxRSA = 8192
	// maxCertificate bounds what a signer writes: a chain of a dozen certificates.
	maxCertificate = 64 << 10
	maxConditions  = 32
)

// legacySigner is a name that v1 does not accept.
const legacySigner = "kubernetes.io/legacy-unknown"

// knownUsages are all that a certificate can be for.
var knownUsages = sets.New(
	certificatesv1.UsageSigning, certificatesv1.UsageDigitalSignature, certificatesv1.UsageContentCommitment, certificatesv1.UsageKeyEncipherment,
	certificatesv1.UsageKeyAgreement, certificatesv1.UsageDataEncipherment, certificatesv1.UsageCertSign, certificatesv1.UsageCRLSign,
	certificatesv1.UsageEncipherOnly, certificatesv1.UsageDecipherOnly, certificatesv1.UsageAny, certificatesv1.UsageServerAuth,
	certificatesv1.UsageClientAuth, certificatesv1.UsageCodeSigning, certificatesv1.UsageEmailProtection, certificatesv1.UsageSMIME,
	certificatesv1.UsageIPsecEndSystem, certificatesv1.UsageIPsecTunnel, certificatesv1.UsageIPsecUser, certificatesv1.UsageTimestamping,
	certificatesv1.UsageOCSPSigning, certificatesv1.UsageMicrosoftSGC, certificatesv1.UsageNetscapeSGC,
)

// ParseCSR reads the request within a CertificateSigningRequest.
func ParseCSR(text []byte) (*x509.CertificateRequest, error) {
	if len(text) > maxCSR {
		return nil, fmt.Errorf("must have at most %d bytes", maxCSR)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE REQUEST" {
		return nil, errors.New("PEM block type must be CERTIFICATE REQUEST")
	}
	parsed, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, err
	}
	if key, ok := parsed.PublicKey.(*rsa.PublicKey); ok && key.N.BitLen() > maxRSA {
		return nil, fmt.Errorf("must have an RSA key of at most %d bits", maxRSA)
	}
	return parsed, nil
}

// validateCSR looks at a new or changed request. What was wrong before is accepted as
// it was: an update cannot change the spec.
func validateCSR(o, before *csr) field.ErrorList {
	var errs field.ErrorList
	if before == nil {
		errs = validateCSRSpec(o, field.NewPath("spec"))
	}
	errs = append(errs, validateCSRConditions(o, before, field.NewPath("status", "conditions"))...)
	if before == nil || !bytes.Equal(o.Status.Certificate, before.Status.Certificate) {
		if err := validateCertificate(o.Status.Certificate); err != nil {
			errs = append(errs, field.Invalid(field.NewPath("status", "certificate"), "<certificate data>", err.Error()))
		}
	}
	return errs
}

func validateCSRSpec(o *csr, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	parsed, err := ParseCSR(o.Spec.Request)
	if err == nil {
		err = parsed.CheckSignature()
	}
	if err != nil {
		errs = append(errs, field.Invalid(path.Child("request"), o.Spec.Request, err.Error()))
	}
	errs = append(errs, validateUsages(o.Spec.Usages, path.Child("usages"))...)
	if o.Spec.SignerName == legacySigner {
		errs = append(errs, field.Invalid(path.Child("signerName"), o.Spec.SignerName, "the legacy signerName is not allowed via this API version"))
	} else {
		errs = append(errs, validateSignerName(o.Spec.SignerName, path.Child("signerName"))...)
	}
	if s := o.Spec.ExpirationSeconds; s != nil && *s < 600 {
		errs = append(errs, field.Invalid(path.Child("expirationSeconds"), *s, "may not specify a duration less than 600 seconds (10 minutes)"))
	}
	return errs
}

func validateUsages(usages []certificatesv1.KeyUsage, path *field.Path) field.ErrorList {
	switch {
	case len(usages) == 0:
		return field.ErrorList{field.Required(path, "")}
	case len(usages) > 2*len(knownUsages): // the errors below would be as many, and long
		return field.ErrorList{field.TooMany(path, len(usages), len(knownUsages))}
	}
	var errs field.ErrorList
	for i, usage := range usages {
		if !knownUsages.Has(usage) {
			errs = append(errs, field.NotSupported(path.Index(i), usage, sets.List(knownUsages)))
		}
	}
	for i, usage := range usages {
		if slices.Contains(usages[:i], usage) {
			errs = append(errs, field.Duplicate(path.Index(i), usage))
		}
	}
	return errs
}

func validateSignerName(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	domain, rest, ok := strings.Cut(name, "/")
	if !ok || strings.Contains(rest, "/") {
		return field.ErrorList{field.Invalid(path, name, "must be a fully qualified domain and path of the form 'example.com/signer-name'")}
	}
	var errs field.ErrorList
	if len(domain) > validation.DNS1123SubdomainMaxLength {
		errs = append(errs, field.TooLong(path, "", validation.DNS1123SubdomainMaxLength))
	}
	labels := strings.Split(domain, ".")
	errs = append(errs, validateLabels(labels, domain, validation.IsDNS1123Label, path)...)
	if len(labels) < 2 {
		errs = append(errs, field.Invalid(path, domain, "should be a domain with at least two segments separated by dots"))
	}
	errs = append(errs, validateLabels(strings.Split(rest, "."), rest, validation.IsDNS1123Subdomain, path)...)
	if most := validation.DNS1123SubdomainMaxLength + validation.DNS1123LabelMaxLength + 1; len(rest) > most {
		errs = append(errs, field.TooLong(path, "", most))
	}
	return errs
}

// validateLabels returns the error of the first invalid label.
func validateLabels(labels []string, whole string, check func(string) []string, path *field.Path) (errs field.ErrorList) {
	for _, label := range labels {
		for _, wrong := range check(label) {
			errs = append(errs, field.Invalid(path, whole, fmt.Sprintf("validating label %q: %s", label, wrong)))
		}
		if len(errs) > 0 {
			break
		}
	}
	return errs
}

func validateCSRConditions(o, before *csr, path *field.Path) field.ErrorList {
	if before != nil && equality.Semantic.DeepEqual(o.Status.Conditions, before.Status.Conditions) {
		return nil
	}
	if n := len(o.Status.Conditions); n > maxConditions {
		return field.ErrorList{field.TooMany(path, n, maxConditions)}
	}
	var errs field.ErrorList
	seen := sets.New[certificatesv1.RequestConditionType]()
	for i, c := range o.Status.Conditions {
		at := path.Index(i)
		if c.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), ""))
		}
		possible := []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionUnknown}
		if c.Type == certificatesv1.CertificateApproved || c.Type == certificatesv1.CertificateDenied || c.Type == certificatesv1.CertificateFailed {
			possible = possible[1:2]
		}
		switch {
		case c.Status == "":
			errs = append(errs, field.Required(at.Child("status"), ""))
		case !slices.Contains(possible, c.Status):
			errs = append(errs, field.NotSupported(at.Child("status"), c.Status, possible))
		}
		if c.Type == certificatesv1.CertificateApproved && seen.Has(certificatesv1.CertificateDenied) || c.Type == certificatesv1.CertificateDenied && seen.Has(certificatesv1.CertificateApproved) {
			errs = append(errs, field.Invalid(path, c.Type, "Approved and Denied conditions are mutually exclusive"))
		}
		if seen.Has(c.Type) {
			errs = append(errs, field.Duplicate(at.Child("type"), c.Type))
		}
		seen.Insert(c.Type)
	}
	return errs
}

func validateCertificate(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	if len(text) > maxCertificate {
		return fmt.Errorf("must have at most %d bytes", maxCertificate)
	}
	for blocks := 0; ; blocks++ {
		block, rest := pem.Decode(text)
		switch {
		case block == nil && blocks == 0:
			return errors.New("must contain at least one CERTIFICATE PEM block")
		case block == nil:
			return nil
		case block.Type != "CERTIFICATE":
			return fmt.Errorf("only CERTIFICATE PEM blocks are allowed, found %q", block.Type)
		case len(block.Headers) > 0:
			return errors.New("no PEM block headers are permitted")
		}
		certs, err := x509.ParseCertificates(block.Bytes)
		if err != nil {
			return err
		}
		if len(certs) == 0 {
			return errors.New("found CERTIFICATE PEM block containing 0 certificates")
		}
		text = rest
	}
}

// csrMay is what can be written through an endpoint.
type csrMay struct{ approve, issue bool }

// csrUpdate is a value for Rules.Validate.
func csrUpdate(may csrMay) func(obj, old runtime.Object) field.ErrorList {
	return func(obj, old runtime.Object) field.ErrorList {
		if old == nil {
			return validateCSR(obj.(*csr), nil)
		}
		o, before := obj.(*csr), old.(*csr)
		errs := validateCSR(o, before)
		conditions, certificate := field.NewPath("status", "conditions"), field.NewPath("status", "certificate")
		for _, kind := range []certificatesv1.RequestConditionType{certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed} {
			now, was := ConditionsOf(o, kind), ConditionsOf(before, kind)
			switch {
			case len(now) < len(was):
				errs = append(errs, field.Forbidden(conditions, fmt.Sprintf("updates may not remove a condition of type %q", kind)))
			case may.approve || kind == certificatesv1.CertificateFailed:
			case len(now) > len(was):
				errs = append(errs, field.Forbidden(conditions, fmt.Sprintf("updates may not add a condition of type %q", kind)))
			case !equality.Semantic.DeepEqual(now, was):
				errs = append(errs, field.Forbidden(conditions, fmt.Sprintf("updates may not modify a condition of type %q\n%v", kind, diff.Diff(was, now))))
			}
		}
		if !bytes.Equal(o.Status.Certificate, before.Status.Certificate) {
			if !may.issue {
				errs = append(errs, field.Forbidden(certificate, "updates may not set certificate content"))
			} else if len(before.Status.Certificate) > 0 {
				errs = append(errs, field.Forbidden(certificate, "updates may not modify existing certificate content"))
			}
		}
		return errs
	}
}

// keepConditions restores the former conditions of a type. If their number differs it
// does not change them, and validation rejects them.
func keepConditions(o, before *csr, kind certificatesv1.RequestConditionType) {
	was := ConditionsOf(before, kind)
	if len(ConditionsOf(o, kind)) != len(was) {
		return
	}
	for i := range o.Status.Conditions {
		if o.Status.Conditions[i].Type == kind {
			o.Status.Conditions[i], was = was[0], was[1:]
		}
	}
}

// ConditionsOf returns the conditions of a type.
func ConditionsOf(o *csr, kind certificatesv1.RequestConditionType) []certificatesv1.CertificateSigningRequestCondition {
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
		for _, was := range ConditionsOf(before, c.Type) {
			if was.Status == c.Status && !was.LastTransitionTime.IsZero() {
				c.LastTransitionTime = was.LastTransitionTime
				break
			}
		}
	}
}
