package oracle

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	servervalidation "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"
)

// CRDOptions say how a CRD comes to the reference.
type CRDOptions struct {
	Old      []byte // the CRD before the change; nil if it is created
	Verbatim bool   // validate what is given, rather than what the server would make of a request with it
	// Compatibility is the compatibility version; empty for the reference's own. To the reference, see SetCompatibility.
	Compatibility string
}

// A CRDResult is what the reference says about a whole CRD.
type CRDResult struct {
	Undecodable error
	Panic       any
	Errors      []string // rendered field errors, sorted
	Ordered     []string // the same in the order in which they were found (DIVERGENCES.md, finding-order)
	Warnings    []string // sorted, each text once
}

// CRD returns the reference's result for a CRD of v1.
func CRD(doc []byte, o CRDOptions) (v CRDResult) {
	defer func() {
		if p := recover(); p != nil {
			v = CRDResult{Panic: crashed(p)}
		}
	}()
	ctx := context.Background()
	crd, err := internalCRD(doc)
	if err != nil {
		return CRDResult{Undecodable: err}
	}
	var errs field.ErrorList
	v.Warnings = crdWarnings(&crd.Spec)
	if o.Old == nil {
		if !o.Verbatim {
			crd.Status = apiextensions.CustomResourceDefinitionStatus{}
			crd.Generation = 1
			addStored(crd)
		}
		errs = validation.ValidateCustomResourceDefinition(ctx, crd)
	} else {
		old, err := internalCRD(o.Old)
		if err != nil {
			return CRDResult{Undecodable: fmt.Errorf("old: %w", err)}
		}
		if !o.Verbatim {
			old.Status.DeepCopyInto(&crd.Status)
			addStored(crd)
			keepSystemFields(crd, old)
		}
		before := crdWarnings(&old.Spec)
		v.Warnings = slices.DeleteFunc(v.Warnings, func(w string) bool { return slices.Contains(before, w) })
		errs = validation.ValidateCustomResourceDefinitionUpdate(ctx, crd, old)
	}
	pristine, err := internalCRD(doc)
	if err != nil {
		return CRDResult{Undecodable: err}
	}
	for _, e := range errs {
		undump(e, pristine)
		v.Errors = append(v.Errors, render(e))
	}
	v.Ordered = slices.Clone(v.Errors)
	slices.Sort(v.Errors)
	return v
}

// addStored is the strategy's preparation of the list of stored versions. The strategy itself is not imported: it comes
// with a client of etcd.
func addStored(crd *apiextensions.CustomResourceDefinition) {
	for _, v := range crd.Spec.Versions {
		if !v.Storage {
			continue
		}
		if !apiextensions.IsStoredVersion(crd, v.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, v.Name)
		}
		return
	}
}

// crdWarnings are the warnings of the strategy for a new CRD, sorted, each text once. For a changed one it leaves
// out those that the old one has.
func crdWarnings(crd *apiextensions.CustomResourceDefinitionSpec) []string {
	var list []string
	validation.HasSchemaWith(crd, func(root *apiextensions.JSONSchemaProps) bool {
		return validation.SchemaHas(root, func(s *apiextensions.JSONSchemaProps) bool {
			if s.Format != "" {
				only := &spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}
				for _, f := range servervalidation.GetUnrecognizedFormats(only, environment.DefaultCompatibilityVersion()) {
					list = append(list, fmt.Sprintf("unrecognized format %q", f))
				}
			}
			if s.XListType != nil && *s.XListType == "set" && s.Items != nil && s.Items.Schema != nil && (s.Items.Schema.Type == "object" || s.Items.Schema.Type == "array") {
				list = append(list, fmt.Sprintf("x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL validation rules", s.Items.Schema.Type))
			}
			return false
		})
	})
	slices.Sort(list)
	return slices.Compact(list)
}

// internalCRD reads a CRD as the API server does.
func internalCRD(doc []byte) (*apiextensions.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, crd); err != nil {
		return nil, err
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	return internal, apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil)
}

// keepSystemFields does to metadata what the generic registry does before an update that is a patch.
func keepSystemFields(crd, old *apiextensions.CustomResourceDefinition) {
	crd.Generation = old.Generation
	if crd.UID == "" {
		crd.UID = old.UID
	}
	if crd.ResourceVersion == "" {
		crd.ResourceVersion = "1"
	}
	if !old.CreationTimestamp.IsZero() {
		crd.CreationTimestamp = old.CreationTimestamp
	}
	if !old.DeletionTimestamp.IsZero() {
		crd.DeletionTimestamp = old.DeletionTimestamp
	}
	if crd.DeletionGracePeriodSeconds == nil {
		crd.DeletionGracePeriodSeconds = old.DeletionGracePeriodSeconds
	}
}

var versionOf = regexp.MustCompile(`^spec\.versions\[(\d+)\]`)

// undump replaces schemas that an error shows by what they were: the step that validates defaults normalizes some of the
// defaults that it shares with the dump (DIVERGENCES.md, schema-dump-defaults).
func undump(e *field.Error, pristine *apiextensions.CustomResourceDefinition) {
	switch e.BadValue.(type) {
	case []apiextensions.CustomResourceDefinitionVersion:
		e.BadValue = pristine.Spec.Versions
	case apiextensions.JSONSchemaProps:
		s := pristine.Spec.Validation
		if m := versionOf.FindStringSubmatch(e.Field); m != nil {
			i, _ := strconv.Atoi(m[1])
			s = pristine.Spec.Versions[i].Schema
		}
		e.BadValue = *s.OpenAPIV3Schema
	}
}

// String renders the result for a reproducer.
func (v CRDResult) String() string {
	switch {
	case v.Undecodable != nil:
		return "undecodable: " + v.Undecodable.Error()
	case v.Panic != nil:
		return fmt.Sprint("panic: ", v.Panic)
	case len(v.Errors)+len(v.Warnings) == 0:
		return "accepted"
	}
	return fmt.Sprintf("%d errors:\n  %s\nwarnings:\n  %s", len(v.Errors), strings.Join(v.Errors, "\n  "), strings.Join(v.Warnings, "\n  "))
}
