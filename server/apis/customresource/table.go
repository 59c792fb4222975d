package customresource

import (
	"bytes"
	"context"
	"fmt"
	"reflect"

	"k8s.io/apimachinery/pkg/api/meta"
	metatable "k8s.io/apimachinery/pkg/api/meta/table"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/jsonpath"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

var metadataDescriptions = metav1.ObjectMeta{}.SwaggerDoc()

// ageColumn is what a version without columns of its own shows.
func ageColumn() crd.Column {
	return crd.Column{
		Name: "Age", Type: "date", Description: metadataDescriptions["creationTimestamp"], JSONPath: ".metadata.creationTimestamp",
	}
}

// table prints objects as rows.
type table struct {
	decoder *Decoder // nil for scales
	headers []metav1.TableColumnDefinition
	columns []path // those after the name
}

// newTable returns the table with the columns of a CRD. A CRD that another server has
// stored without validation may have a column that cannot be parsed. Then the table has
// the columns before it, and newTable returns an error.
func newTable(decoder *Decoder, columns []crd.Column) (*table, error) {
	t := &table{decoder: decoder, headers: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: metadataDescriptions["name"]},
	}}
	if len(columns) == 0 {
		columns = []crd.Column{ageColumn()}
	}
	for _, c := range columns {
		p, err := parsePath(c.JSONPath)
		if err != nil {
			return t, fmt.Errorf("unrecognized column definition %q", c.JSONPath)
		}
		description := c.Description
		if description == "" {
			description = "Custom resource definition column (in JSONPath format): " + c.JSONPath
		}
		if p.costly {
			description += " (It is always empty: paths with more than one .. are not followed.)"
		}
		t.columns = append(t.columns, p)
		t.headers = append(t.headers, metav1.TableColumnDefinition{
			Name: c.Name, Type: c.Type, Format: c.Format, Description: description, Priority: c.Priority,
		})
	}
	return t, nil
}

// scaleColumns are those of the scale subresource.
func scaleColumns(p *request.Scale) []crd.Column {
	var columns []crd.Column
	if p.SpecReplicas != "" {
		columns = append(columns, crd.Column{
			Name: "Desired", Type: "integer", Description: "Number of desired replicas", JSONPath: ".spec.replicas",
		})
	}
	if p.StatusReplicas != "" {
		columns = append(columns, crd.Column{
			Name: "Available", Type: "integer", Description: "Number of actual replicas", JSONPath: ".status.replicas",
		})
	}
	return append(columns, ageColumn())
}

// ConvertToTable implements rest.TableConvertor.
func (t *table) ConvertToTable(_ context.Context, obj runtime.Object, options runtime.Object) (*metav1.Table, error) {
	out := &metav1.Table{}
	if o, ok := options.(*metav1.TableOptions); !ok || o == nil || !o.NoHeaders {
		out.ColumnDefinitions = t.headers
	}
	if list, ok := obj.(*object.List); ok {
		out.ListMeta = list.ListMeta
		out.SelfLink = ""
		out.Rows = make([]metav1.TableRow, len(list.Items))
		for i := range list.Items {
			if err := t.row(&out.Rows[i], &list.Items[i]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	m, err := meta.CommonAccessor(obj)
	if err != nil {
		return nil, err
	}
	out.ResourceVersion = m.GetResourceVersion()
	out.Rows = make([]metav1.TableRow, 1)
	return out, t.row(&out.Rows[0], obj)
}

func (t *table) row(row *metav1.TableRow, obj runtime.Object) error {
	var s subject
	if o, ok := obj.(*object.Object); ok {
		if t.decoder != nil {
			o = t.decoder.Renormalize(o)
		}
		s.object, obj = o, o
	} else {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
		if err != nil {
			return err
		}
		s.content = content
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return err
	}
	row.Object.Object = obj
	row.Cells = make([]any, 1, len(t.headers))
	row.Cells[0] = m.GetName()
	for i, p := range t.columns {
		value, ok, err := p.find(&s)
		if err != nil || !ok {
			row.Cells = append(row.Cells, nil)
			continue
		}
		row.Cells = append(row.Cells, cell(t.headers[i+1].Type, value))
	}
	return nil
}

// cell returns a value as a column of a type shows it; nil if it cannot.
func cell(columnType string, value any) any {
	if columnType == "string" {
		if s, ok := value.(string); ok {
			return s
		}
		var text bytes.Buffer
		if err := jsonpath.New("cell").PrintResults(&text, []reflect.Value{reflect.ValueOf(value)}); err != nil {
			return nil
		}
		return text.String()
	}
	switch columnType {
	case "integer":
		switch v := value.(type) {
		case int64:
			return v
		case float64:
			return int64(v)
		}
	case "number":
		switch v := value.(type) {
		case int64:
			return float64(v)
		case float64:
			return v
		}
	case "boolean":
		if v, ok := value.(bool); ok {
			return v
		}
	case "date":
		if v, ok := value.(string); ok {
			var t metav1.Time
			if t.UnmarshalQueryParameter(v) != nil {
				return "<invalid>"
			}
			return metatable.ConvertToHumanReadableDateType(t)
		}
	}
	return nil
}
