package accessreview

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// attributesOf returns the attributes for the authorizer. One of resource and other is
// not nil.
func attributesOf(u user.Info, resource *authorizationv1.ResourceAttributes, other *authorizationv1.NonResourceAttributes) authorizer.AttributesRecord {
	if resource == nil {
		return authorizer.AttributesRecord{User: u, Verb: other.Verb, Path: other.Path}
	}
	a := authorizer.AttributesRecord{
		User:            u,
		Verb:            resource.Verb,
		Namespace:       resource.Namespace,
		APIGroup:        resource.Group,
		APIVersion:      cmp.Or(resource.Version, "*"),
		Resource:        resource.Resource,
		Subresource:     resource.Subresource,
		Name:            resource.Name,
		ResourceRequest: true,
	}
	if s := resource.FieldSelector; s != nil {
		a.FieldSelectorRequirements, a.FieldSelectorParsingErr = fieldRequirements(s)
	}
	if s := resource.LabelSelector; s != nil {
		a.LabelSelectorRequirements, a.LabelSelectorParsingErr = labelRequirements(s)
	}
	return a
}

// fieldRequirements returns the supported requirements of a selector, and an error about
// the others. Without these the review covers more objects than intended, which is safe.
func fieldRequirements(s *authorizationv1.FieldSelectorAttributes) (fields.Requirements, error) {
	if len(s.Requirements) == 0 {
		selector, err := fields.ParseSelector(s.RawSelector)
		if err != nil {
			return nil, err
		}
		return selector.Requirements(), nil
	}
	var known fields.Requirements
	var errs []error
	for _, r := range s.Requirements {
		requirement, err := fieldRequirement(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known = append(known, requirement)
	}
	return known, utilerrors.NewAggregate(errs)
}

func fieldRequirement(r metav1.FieldSelectorRequirement) (fields.Requirement, error) {
	if len(r.Values) > 1 {
		return fields.Requirement{}, errors.New("fieldSelectors do not yet support multiple values")
	}
	switch r.Operator {
	case metav1.FieldSelectorOpIn:
		if len(r.Values) == 0 {
			return fields.Requirement{}, errors.New("fieldSelectors in must have one value")
		}
		return fields.Requirement{Field: r.Key, Operator: selection.Equals, Value: r.Values[0]}, nil
	case metav1.FieldSelectorOpNotIn:
		if len(r.Values) == 0 {
			return fields.Requirement{}, errors.New("fieldSelectors not in must have one value")
		}
		return fields.Requirement{Field: r.Key, Operator: selection.NotEquals, Value: r.Values[0]}, nil
	case metav1.FieldSelectorOpExists, metav1.FieldSelectorOpDoesNotExist:
		return fields.Requirement{}, fmt.Errorf("fieldSelectors do not yet support %v", r.Operator)
	}
	return fields.Requirement{}, fmt.Errorf("%q is not a valid field selector operator", r.Operator)
}

// labelRequirements is like fieldRequirements.
func labelRequirements(s *authorizationv1.LabelSelectorAttributes) (labels.Requirements, error) {
	if len(s.Requirements) == 0 {
		selector, err := labels.Parse(s.RawSelector)
		if err != nil {
			return nil, err
		}
		requirements, _ := selector.Requirements()
		return requirements, nil
	}
	var known labels.Requirements
	var errs []error
	for _, r := range s.Requirements {
		requirement, err := labelRequirement(r)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		known = append(known, *requirement)
	}
	return known, utilerrors.NewAggregate(errs)
}

func labelRequirement(r metav1.LabelSelectorRequirement) (*labels.Requirement, error) {
	operators := map[metav1.LabelSelectorOperator]selection.Operator{
		metav1.LabelSelectorOpIn:           selection.In,
		metav1.LabelSelectorOpNotIn:        selection.NotIn,
		metav1.LabelSelectorOpExists:       selection.Exists,
		metav1.LabelSelectorOpDoesNotExist: selection.DoesNotExist,
	}
	operator, ok := operators[r.Operator]
	if !ok {
		return nil, fmt.Errorf("%q is not a valid label selector operator", r.Operator)
	}
	return labels.NewRequirement(r.Key, operator, r.Values)
}

// evaluationError says what could not be taken into account.
func evaluationError(err error, a *authorizer.AttributesRecord) string {
	var texts []string
	if err != nil {
		texts = append(texts, err.Error())
	}
	ignored := func(selector string, err error, requirements int) {
		switch {
		case err == nil:
		case requirements > 0:
			texts = append(texts, "spec.resourceAttributes."+selector+" partially ignored due to parse error")
		default:
			texts = append(texts, "spec.resourceAttributes."+selector+" ignored due to parse error")
		}
	}
	ignored("fieldSelector", a.FieldSelectorParsingErr, len(a.FieldSelectorRequirements))
	ignored("labelSelector", a.LabelSelectorParsingErr, len(a.LabelSelectorRequirements))
	return strings.Join(texts, "; ")
}
