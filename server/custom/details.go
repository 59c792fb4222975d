package custom

import (
	"fmt"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/server/catalog"
)

// fieldValidationAnnotation of a definition says how strict its resource is
// with clients that do not say: warn, strict or ignore.
const fieldValidationAnnotation = "espalier.dev/field-validation"

// details are what a definition says about serving its resource, besides the
// schemas and what its catalog entry has.
type details struct {
	annotations map[string]string
	versions    map[string]*versionDetails
}

// versionDetails are those of one version.
type versionDetails struct {
	Name         string                                         `json:"name"`
	Subresources apiextensions.CustomResourceSubresources       `json:"subresources"`
	Columns      []apiextensions.CustomResourceColumnDefinition `json:"additionalPrinterColumns"`
	Selectable   []apiextensions.SelectableField                `json:"selectableFields"`
}

// readDetails reads what is needed of a definition; schemas are skipped over.
func readDetails(e *catalog.Entry) (*details, error) {
	data, err := e.JSON()
	if err != nil {
		return nil, err
	}
	var definition struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
		Spec struct {
			Versions []versionDetails `json:"versions"`
		} `json:"spec"`
	}
	if err := json.UnmarshalCaseSensitivePreserveInts(data, &definition); err != nil {
		return nil, fmt.Errorf("definition %s: %w", e.Name, err)
	}
	d := &details{annotations: definition.Metadata.Annotations, versions: map[string]*versionDetails{}}
	for i := range definition.Spec.Versions {
		v := &definition.Spec.Versions[i]
		d.versions[v.Name] = v
	}
	return d, nil
}

// scalePaths are where a resource has what its scale subresource shows.
type scalePaths struct {
	spec, status, selector string // as written, with a dot in front; selector may be empty
}

// scalePaths returns nil if the version has no scale subresource.
func (v *versionDetails) scalePaths() *scalePaths {
	s := v.Subresources.Scale
	if s == nil {
		return nil
	}
	p := &scalePaths{spec: s.SpecReplicasPath, status: s.StatusReplicasPath}
	if s.LabelSelectorPath != nil {
		p.selector = *s.LabelSelectorPath
	}
	return p
}

// splitPath splits a path that API servers take for member names with dots.
func splitPath(path string) []string { return strings.Split(strings.TrimPrefix(path, "."), ".") }
