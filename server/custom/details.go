package custom

import (
	"strings"

	"github.com/espalier-dev/espalier/crd"
)

// fieldValidationAnnotation of a definition says how strict its resource is
// with clients that do not say: warn, strict or ignore.
const fieldValidationAnnotation = "espalier.dev/field-validation"

// details are what a CRD says about serving its resource, besides the schemas and what its
// catalog entry has. They do not keep the JSON of the CRD.
type details struct {
	annotations map[string]string
	versions    map[string]*versionDetails
}

// versionDetails are those of one version.
type versionDetails struct {
	columns    []crd.Column
	selectable []crd.SelectableField
	scale      *scalePaths // nil if the version has no scale subresource
}

// newDetails returns the details of a CRD.
func newDetails(d *crd.CRD) *details {
	out := &details{annotations: d.Annotations, versions: map[string]*versionDetails{}}
	for i := range d.Versions {
		v := &d.Versions[i]
		out.versions[v.Name] = &versionDetails{columns: v.Columns, selectable: v.SelectableFields, scale: newScalePaths(v.Scale)}
	}
	return out
}

// scalePaths are where a resource has what its scale subresource shows.
type scalePaths struct {
	spec, status, selector string // as written, with a dot in front; selector may be empty
}

func newScalePaths(s *crd.Scale) *scalePaths {
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
