package builtin

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/espalier-dev/espalier/crd/kinds"
)

var metadataDocs = metav1.ObjectMeta{}.SwaggerDoc()

var (
	// nameColumn and ageColumn are what most tables begin and end with.
	nameColumn = metav1.TableColumnDefinition{Name: "Name", Type: "string", Format: "name", Description: metadataDocs["name"]}
	ageColumn  = metav1.TableColumnDefinition{Name: "Age", Type: "string", Description: metadataDocs["creationTimestamp"]}
	// nameAndAge are the columns of kinds without any of their own.
	nameAndAge = []metav1.TableColumnDefinition{nameColumn, ageColumn}
)

// age is how long ago something was, as kubectl shows it.
func age(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}

// created is the age of an object.
func created(m metav1.Object) string { return age(m.GetCreationTimestamp().Time) }

// table makes tables of the objects of a resource.
type table struct {
	columns func() []metav1.TableColumnDefinition
	row     func(runtime.Object) []any
}

var _ rest.TableConvertor = table{}

func newTable(r *Resource) table {
	if r.Row == nil {
		return table{func() []metav1.TableColumnDefinition { return nameAndAge }, func(obj runtime.Object) []any {
			m := kinds.Metadata(obj)
			return []any{m.GetName(), created(m)}
		}}
	}
	if r.columns != nil {
		return table{r.columns, r.Row}
	}
	return table{func() []metav1.TableColumnDefinition { return r.Columns }, r.Row}
}

// ConvertToTable implements rest.TableConvertor.
func (t table) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, _ := options.(*metav1.TableOptions); o == nil || !o.NoHeaders {
		out.ColumnDefinitions = t.columns()
	}
	add := func(item runtime.Object) error {
		out.Rows = append(out.Rows, metav1.TableRow{Cells: t.row(item), Object: runtime.RawExtension{Object: item}})
		return nil
	}
	if !meta.IsListType(obj) {
		out.ResourceVersion = kinds.Metadata(obj).GetResourceVersion()
		return out, add(obj)
	}
	list, err := meta.ListAccessor(obj)
	if err != nil {
		return nil, err
	}
	out.ListMeta = metav1.ListMeta{
		ResourceVersion: list.GetResourceVersion(), Continue: list.GetContinue(), RemainingItemCount: list.GetRemainingItemCount(),
	}
	return out, meta.EachListItem(obj, add)
}
