package endpoints

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
)

// manyRows lists objects, and makes rows of them until the context ends with the
// one that is named last.
type manyRows struct {
	rest.Lister
	last string
	end  func()
}

func (manyRows) NewList() runtime.Object { return &metav1.PartialObjectMetadataList{} }
func (manyRows) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	var list metav1.PartialObjectMetadataList
	for _, name := range []string{"a", "b", "c"} {
		o := metav1.PartialObjectMetadata{}
		o.Name = name
		list.Items = append(list.Items, o)
	}
	return &list, nil
}

func (m manyRows) ConvertToTable(ctx context.Context, obj, _ runtime.Object) (*metav1.Table, error) {
	o, ok := obj.(*metav1.PartialObjectMetadata)
	if !ok {
		return &metav1.Table{}, nil
	}
	if o.Name == m.last {
		m.end()
		return nil, context.Cause(ctx)
	}
	return &metav1.Table{Rows: []metav1.TableRow{{Cells: []any{strings.Repeat("x", 2*piece)}, Object: runtime.RawExtension{Object: o}}}}, nil
}

// TestRowsEndWithTheirContext: what is sent of a table is not taken for the whole
// if a row fails, whether the context has ended or not.
func TestRowsEndWithTheirContext(t *testing.T) {
	for last, sent := range map[string]bool{"a": false, "c": true} {
		t.Run(last, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			storage := manyRows{last: last, end: func() { cancel(errors.New("over")) }}
			var failed error
			var aborted any
			w := httptest.NewRecorder()
			func() {
				defer func() { aborted = recover() }()
				untilEnd(func(w http.ResponseWriter, req *http.Request) {
					r := &rows{Lister: storage, w: w, scope: &handlers.RequestScope{TableConvertor: storage}, header: http.Header{}, target: metav1.SchemeGroupVersion.WithKind("Table")}
					_, failed = r.List(req.Context(), nil)
				})(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
			}()
			switch {
			case sent && (aborted != any(http.ErrAbortHandler) || w.Body.Len() == 0):
				t.Errorf("%v after %d bytes, error %v", aborted, w.Body.Len(), failed)
			case !sent && (failed == nil || aborted != nil || w.Body.Len() > 0):
				t.Errorf("%v after %d bytes, error %v", aborted, w.Body.Len(), failed)
			}
		})
	}
}
