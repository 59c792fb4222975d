package customresourcedefinition

import (
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/object"
)

// complain returns the errors of a v1beta1 CRD that are impossible in v1: v1beta1
// allows some fields both in spec and in each version.
func complain(old *v1beta1.CustomResourceDefinition) (field.ErrorList, error) {
	x, err := internal(old)
	if err != nil {
		return nil, err
	}
	var list field.ErrorList
	spec, path := &x.Spec, field.NewPath("spec")
	for _, part := range []struct {
		name, plural, shared string
		onTop                bool
		of                   func(*apiextensions.CustomResourceDefinitionVersion) any // nil if it has none
	}{
		{"validation", "schemas", "validation", spec.Validation != nil, func(v *apiextensions.CustomResourceDefinitionVersion) any {
			if v.Schema == nil {
				return nil
			}
			return v.Schema
		}},
		{"subresources", "subresources", "subresources", spec.Subresources != nil, func(v *apiextensions.CustomResourceDefinitionVersion) any {
			if v.Subresources == nil {
				return nil
			}
			return v.Subresources
		}},
		{"additionalPrinterColumns", "additionalPrinterColumns", "additionalPrinterColumns", len(spec.AdditionalPrinterColumns) > 0, func(v *apiextensions.CustomResourceDefinitionVersion) any {
			if len(v.AdditionalPrinterColumns) == 0 {
				return nil
			}
			return v.AdditionalPrinterColumns
		}},
	} {
		some, same := false, len(spec.Versions) > 0
		for i := range spec.Versions {
			value := part.of(&spec.Versions[i])
			some = some || value != nil
			same = same && value != nil && equality.Semantic.DeepEqual(value, part.of(&spec.Versions[0]))
		}
		if part.onTop && some {
			list = append(list, field.Forbidden(path.Child(part.name), "top-level and per-version "+part.plural+" are mutually exclusive"))
		}
		if same {
			list = append(list, field.Invalid(path.Child("versions"), spec.Versions,
				fmt.Sprintf("per-version %s may not all be set to identical values (top-level %s should be used instead)", part.plural, part.shared)))
		}
	}
	if spec.Version != "" && len(spec.Versions) > 0 && spec.Versions[0].Name != spec.Version {
		list = append(list, field.Invalid(path.Child("version"), spec.Version, "must match the first version in spec.versions"))
	}
	return list, nil
}

// structural are the checks for structural schemas. They do not apply to v1beta1 CRDs
// that do not need structural schemas.
var structural = []finding.ID{
	"type-required", "root-type-object", "items-required", "root-additional-properties",
	"embedded-type", "embedded-additional-properties", "embedded-properties",
	"type-meta-string", "metadata-object", "root-metadata", "int-or-string-exclusive", "pattern-invalid", "incomplete",
	"junctor-type", "junctor-additional-properties", "junctor-default", "junctor-title", "junctor-description", "junctor-nullable",
	"junctor-preserve-unknown-fields", "junctor-embedded-resource", "junctor-int-or-string",
	"junctor-list-map-keys", "junctor-list-type", "junctor-map-type", "junctor-validations", "junctor-metadata",
	"unsupported-schema",
}

// newer are checks that came with v1 and were never applied to v1beta1.
var newer = []finding.ID{
	"preserve-unknown-fields", "api-approval", "type-unknown",
	"list-set-atomic", "list-map-key-optional", "list-map-key-nullable", "list-items-nullable",
}

// concede drops the findings that do not apply to a v1beta1 CRD.
func concede(o *object.Object, found []finding.Finding) ([]finding.Finding, error) {
	if len(found) == 0 {
		return found, nil
	}
	d, err := crd.Parse(o.JSON())
	if err != nil {
		return nil, err
	}
	defer d.Release()
	free := false // schemas need not be structural
	if d.PreserveUnknownFields {
		needed, err := needsStructure(o)
		if err != nil {
			return nil, err
		}
		free = !needed
	}
	kept := found[:0]
	for _, f := range found {
		switch {
		case slices.Contains(newer, f.Check), free && slices.Contains(structural, f.Check):
			continue
		case f.Check == "schema-required":
			var i int
			if _, err := fmt.Sscanf(f.Path, "spec.versions[%d]", &i); d.PreserveUnknownFields || err != nil || i >= len(d.Versions) || !d.Versions[i].Served {
				continue
			}
			f.Detail = "because otherwise all fields are pruned"
		}
		kept = append(kept, f)
	}
	return kept, nil
}

// forStructural are the keywords that only structural schemas may have: what
// the documents call new features.
var forStructural = []string{
	"default", "x-kubernetes-embedded-resource", "x-kubernetes-int-or-string", "x-kubernetes-list-map-keys", "x-kubernetes-list-type",
	"x-kubernetes-preserve-unknown-fields", "x-kubernetes-unions", "x-kubernetes-validations",
}

// needsStructure reports whether a schema of a CRD of v1 uses what only
// structural schemas may.
func needsStructure(o *object.Object) (bool, error) {
	content, err := decode(o.JSON())
	if err != nil {
		return false, err
	}
	found := false
	for _, s := range schemasOf(content, stable).each {
		each(s, func(s map[string]any) {
			found = found || slices.ContainsFunc(forStructural, func(keyword string) bool { return s[keyword] != nil })
		})
	}
	return found, nil
}
