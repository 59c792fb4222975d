package crdcontroller

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
)

// decoded is the input of next: an entry, and the parts of the CRD that the entry
// does not have.
type decoded struct {
	entry  *catalog.Entry
	status *v1.CustomResourceDefinitionStatus
	// The conditions that depend on nothing but the CRD; nil for none.
	approval, unstructural *v1.CustomResourceDefinitionCondition
	invalidBundle          bool
}

// unpack reads a CRD.
func unpack(e *catalog.Entry) (*decoded, error) {
	data, err := e.JSON()
	if err != nil {
		return nil, err
	}
	o, err := object.FromJSON(data)
	if err != nil {
		return nil, err
	}
	d := &decoded{entry: e, approval: approval(e.Group, o.GetAnnotations())}
	if d.status, err = StatusOf(o); err != nil {
		return nil, err
	}
	if d.unstructural, err = unstructural(e, data); err != nil {
		return nil, err
	}
	d.invalidBundle = invalidBundle(o)
	return d, nil
}

// next computes the status of a CRD from the names that CRDs of its group have and ask
// for. It does not set storedVersions. contended says that the outcome may depend on
// other CRDs.
func next(c claims, d *decoded, now time.Time) (status *v1.CustomResourceDefinitionStatus, contended bool) {
	generation := d.entry.Generation
	status = d.status.DeepCopy()
	award := newRegistrar(c).award(d.entry)
	status.AcceptedNames = namesV1(&award.names)
	SetCondition(status, award.condition, generation, now)
	SetCondition(status, established(status, d.invalidBundle), generation, now)
	if d.unstructural != nil {
		SetCondition(status, *d.unstructural, generation, now)
	} else {
		unset(status, v1.NonStructuralSchema)
	}
	if d.approval != nil {
		SetCondition(status, *d.approval, generation, now)
	}
	status.ObservedGeneration = generation
	return status, award.contended
}

// established is the condition Established beside the other conditions. What is
// established stays so, whatever becomes of its names.
func established(status *v1.CustomResourceDefinitionStatus, invalidBundle bool) v1.CustomResourceDefinitionCondition {
	old := find(status, v1.Established)
	names := find(status, v1.NamesAccepted)
	switch {
	case old != nil && old.Status == v1.ConditionTrue:
		return *old
	case names.Status == v1.ConditionTrue && invalidBundle:
		return v1.CustomResourceDefinitionCondition{
			Type: v1.Established, Status: v1.ConditionFalse,
			Reason: "InvalidCABundle", Message: "The conversion webhook CABundle is invalid",
		}
	case names.Status == v1.ConditionTrue:
		return v1.CustomResourceDefinitionCondition{
			Type: v1.Established, Status: v1.ConditionTrue,
			Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
		}
	case old != nil:
		return *old
	default:
		return v1.CustomResourceDefinitionCondition{
			Type: v1.Established, Status: v1.ConditionFalse,
			Reason: "NotAccepted", Message: "not all names are accepted",
		}
	}
}

// invalidBundle reports whether the CRD has a conversion webhook whose
// caBundle cannot be used.
func invalidBundle(o *object.Object) bool {
	raw := o.Lookup("spec", "conversion", "webhook", "clientConfig")
	if raw == nil || string(raw) == "null" {
		return false
	}
	var config struct {
		CABundle []byte `json:"caBundle"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return true
	}
	return len(webhook.ValidateCABundle(nil, config.CABundle)) > 0
}

// protected reports whether a group belongs to the Kubernetes community.
func protected(group string) bool {
	for _, domain := range []string{"k8s.io", "kubernetes.io"} {
		if group == domain || strings.HasSuffix(group, "."+domain) {
			return true
		}
	}
	return false
}

// approval returns the condition about the api-approved annotation of a CRD in a
// protected group.
func approval(group string, annotations map[string]string) *v1.CustomResourceDefinitionCondition {
	if !protected(group) {
		return nil
	}
	const see = "see https://github.com/kubernetes/enhancements/pull/1111"
	c := &v1.CustomResourceDefinitionCondition{Type: v1.KubernetesAPIApprovalPolicyConformant, Status: v1.ConditionFalse}
	value := annotations[v1.KubeAPIApprovedAnnotation]
	u, err := url.ParseRequestURI(value)
	switch {
	case value == "":
		c.Reason = "MissingAnnotation"
		c.Message = fmt.Sprintf("protected groups must have approval annotation %q, %s", v1.KubeAPIApprovedAnnotation, see)
	case strings.HasPrefix(value, "unapproved"):
		c.Reason = "UnapprovedAnnotation"
		c.Message = fmt.Sprintf("not approved: %q", value)
	case err == nil && u.Host != "" && u.Scheme != "":
		c.Status = v1.ConditionTrue
		c.Reason = "ApprovedAnnotation"
		c.Message = "approved in " + value
	default:
		c.Reason = "InvalidAnnotation"
		c.Message = fmt.Sprintf("protected groups must have approval annotation %q with either a URL or a reason starting with \"unapproved\", %s", v1.KubeAPIApprovedAnnotation, see)
	}
	return c
}
