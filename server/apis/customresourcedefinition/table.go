package customresourcedefinition

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/internal/object"
)

var metadataDocs = metav1.ObjectMeta{}.SwaggerDoc()

// columns are what kubectl prints. Those of priority 1 are for -o wide.
var columns = []metav1.TableColumnDefinition{
	{Name: "Name", Type: "string", Format: "name", Description: metadataDocs["name"]},
	{Name: "Scope", Type: "string", Description: "Cluster/Namespaced"},
	{Name: "Versions", Type: "string", Description: "Served versions"},
	{Name: "Created At", Type: "date", Description: metadataDocs["creationTimestamp"]},
	{Name: "Group", Type: "string", Priority: 1, Description: "API group"},
	{Name: "Kind", Type: "string", Priority: 1, Description: "CustomResource kind"},
	{Name: "ShortNames", Type: "string", Priority: 1, Description: "Short names"},
	{Name: "Established", Type: "boolean", Priority: 1, Description: "Established status"},
}

// table makes tables of CRDs. The objects in the rows are of the version
// that the convertor gives.
type table struct{ convertor convertor }

// ConvertToTable implements rest.TableConvertor.
func (t table) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, _ := options.(*metav1.TableOptions); o == nil || !o.NoHeaders {
		out.ColumnDefinitions = columns
	}
	switch x := obj.(type) {
	case *object.Object:
		out.ResourceVersion = x.GetResourceVersion()
		return out, t.add(out, x)
	case *object.List:
		out.ListMeta = metav1.ListMeta{ResourceVersion: x.ResourceVersion, Continue: x.Continue, RemainingItemCount: x.RemainingItemCount}
		out.Rows = make([]metav1.TableRow, 0, len(x.Items))
		for i := range x.Items {
			if err := t.add(out, &x.Items[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return nil, fmt.Errorf("a %T is not a CRD", obj)
}

// add adds the row of a CRD.
func (t table) add(out *metav1.Table, o *object.Object) error {
	d, err := crd.Parse(o.JSON())
	if err != nil {
		return err
	}
	defer d.Release()
	var served []string
	for i := range d.Versions {
		switch v := &d.Versions[i]; {
		case v.Served && v.Storage:
			served = append(served, v.Name+"(storage)")
		case v.Served:
			served = append(served, v.Name)
		}
	}
	slices.Sort(served)
	scope := v1.ClusterScoped
	if d.Namespaced {
		scope = v1.NamespaceScoped
	}
	shown, err := t.convertor.object(o)
	if err != nil {
		return err
	}
	out.Rows = append(out.Rows, metav1.TableRow{
		Object: runtime.RawExtension{Object: shown},
		Cells: []any{
			o.GetName(), string(scope), strings.Join(served, ","), o.GetCreationTimestamp().UTC().Format(time.RFC3339),
			d.Group, d.Kind, strings.Join(d.ShortNames, ","), d.Status.True(string(v1.Established)),
		},
	})
	return nil
}
