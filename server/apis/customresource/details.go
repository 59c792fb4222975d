package customresource

import (
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// fieldValidationAnnotation of a CRD says how strict its resource is
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
	indexes    []store.Index  // of labels, and of fields that are selectable in this version
	scale      *request.Scale // nil if the version has no scale subresource
	// deprecation is the warning for clients; empty if the version is not deprecated.
	deprecation string
}

// newDetails returns the details of a CRD.
func newDetails(d *crd.CRD) *details {
	out := &details{annotations: d.Annotations, versions: map[string]*versionDetails{}}
	indexes, err := catalog.Indexes(d)
	if err != nil {
		klog.InfoS("The indexes that a CRD declares are not used: lists with selectors visit all objects", "crd", d.Name, "annotation", catalog.IndexesAnnotation, "err", err)
	}
	for i := range d.Versions {
		v := &d.Versions[i]
		of := &versionDetails{columns: v.Columns, selectable: v.SelectableFields, scale: request.NewScale(v.Scale)}
		for _, x := range indexes {
			if x.Label != "" || catalog.Selectable(v, x.Field) {
				of.indexes = append(of.indexes, store.Index(x))
			}
		}
		if v.Deprecated {
			of.deprecation = request.DeprecationWarning(d, v)
		}
		out.versions[v.Name] = of
	}
	return out
}
