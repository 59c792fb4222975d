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
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
)

// shelf lists objects by their names, and makes a row of each.
type shelf struct {
	rest.Lister
	names []string
	err   error
}

func (shelf) NewList() runtime.Object { return &metav1.PartialObjectMetadataList{} }
func (s shelf) List(context.Context, *internalversion.ListOptions) (runtime.Object, error) {
	left := int64(9)
	list := &metav1.PartialObjectMetadataList{ListMeta: metav1.ListMeta{ResourceVersion: "7", Continue: "more", RemainingItemCount: &left}}
	for _, name := range s.names {
		list.Items = append(list.Items, metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	return list, s.err
}

func (shelf) ConvertToTable(_ context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		if o.Name == "bad" {
			return nil, errors.New("a bad row")
		}
		return &metav1.Table{Rows: []metav1.TableRow{{Cells: []any{"<" + o.Name}, Object: runtime.RawExtension{Object: o}}}}, nil
	case *metav1.PartialObjectMetadataList:
		if options.(*metav1.TableOptions).IncludeObject == "Nothing" {
			return nil, errors.New("no columns")
		}
		table := &metav1.Table{ListMeta: o.ListMeta, ColumnDefinitions: []metav1.TableColumnDefinition{{Name: "Name"}}}
		if options.(*metav1.TableOptions).NoHeaders {
			table.ColumnDefinitions = nil
		}
		return table, nil
	}
	return nil, errors.New("no list")
}

// versioned converts objects by naming their version.
type versioned struct{ runtime.ObjectConvertor }

func (versioned) ConvertToVersion(in runtime.Object, to runtime.GroupVersioner) (runtime.Object, error) {
	out := in.DeepCopyObject()
	gvk, _ := to.KindForGroupVersionKinds([]schema.GroupVersionKind{{Group: "g", Version: "v3", Kind: "Book"}})
	out.GetObjectKind().SetGroupVersionKind(gvk)
	return out, nil
}

func rowsOf(s shelf, w http.ResponseWriter, kind string, options metav1.TableOptions) *rows {
	scope := &handlers.RequestScope{TableConvertor: s, Convertor: versioned{}, Kind: schema.GroupVersionKind{Group: "g", Version: "v3", Kind: "Book"}}
	return &rows{Lister: s, w: w, scope: scope, header: http.Header{}, options: options, target: metav1.SchemeGroupVersion.WithKind(kind)}
}

func TestRows(t *testing.T) {
	const about = `"metadata":{"resourceVersion":"7","continue":"more","remainingItemCount":9}`
	const header = `{"kind":"Table","apiVersion":"meta.k8s.io/v1",` + about + `,"columnDefinitions":[{"name":"Name","type":"","format":"","description":"","priority":0}],"rows":[`
	partial := func(name string) string {
		return `{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"` + name + `"}}`
	}
	row := func(name, object string) string { return `{"cells":["\u003c` + name + `"],"object":` + object + `}` }
	for _, test := range []struct {
		name, kind string
		options    metav1.TableOptions
		want       string
	}{
		{"metadata", "PartialObjectMetadataList", metav1.TableOptions{}, `{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",` + about + `,"items":[` + partial("a") + "," + partial("b") + "]}\n"},
		{"table", "Table", metav1.TableOptions{}, header + row("a", partial("a")) + "," + row("b", partial("b")) + "]}\n"},
		{"of metadata", "Table", metav1.TableOptions{IncludeObject: metav1.IncludeMetadata}, header + row("a", partial("a")) + "," + row("b", partial("b")) + "]}\n"},
		{"of nothing", "Table", metav1.TableOptions{IncludeObject: metav1.IncludeNone}, header + row("a", "null") + "," + row("b", "null") + "]}\n"},
		{
			"of objects", "Table", metav1.TableOptions{IncludeObject: metav1.IncludeObject},
			header + row("a", `{"kind":"Book","apiVersion":"g/v3","metadata":{"name":"a"}}`) + "," + row("b", `{"kind":"Book","apiVersion":"g/v3","metadata":{"name":"b"}}`) + "]}\n",
		},
		{
			"without header", "Table", metav1.TableOptions{NoHeaders: true, IncludeObject: metav1.IncludeNone},
			`{"kind":"Table","apiVersion":"meta.k8s.io/v1",` + about + `,"columnDefinitions":null,"rows":[` + row("a", "null") + "," + row("b", "null") + "]}\n",
		},
	} {
		w := httptest.NewRecorder()
		r := rowsOf(shelf{names: []string{"a", "b"}}, w, test.kind, test.options)
		r.Header().Set("X-Before", "1")
		list, err := r.List(t.Context(), nil)
		if l, ok := list.(*metav1.PartialObjectMetadataList); !ok || err != nil || len(l.Items) > 0 {
			t.Errorf("%s: the handler gets %v, %v", test.name, list, err)
		}
		// What the handler writes of the empty list is dropped.
		r.Header().Set("Content-Type", "text/plain")
		r.WriteHeader(http.StatusTeapot)
		if n, err := r.Write([]byte("xyz")); n != 3 || err != nil {
			t.Errorf("%s: %d, %v", test.name, n, err)
		}
		if got := w.Body.String(); got != test.want || w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("X-Before") != "1" {
			t.Errorf("%s: %d %v\n%s\nwant\n%s", test.name, w.Code, w.Header(), got, test.want)
		}
	}
}

// What fails before a row is sent is left to the handler, as are lists without rows.
func TestRowsThatAreNotWritten(t *testing.T) {
	failure := errors.New("no list")
	for _, test := range []struct {
		name    string
		s       shelf
		options metav1.TableOptions
		want    string
	}{
		{"empty", shelf{}, metav1.TableOptions{}, ""},
		{"no list", shelf{names: []string{"a"}, err: failure}, metav1.TableOptions{}, "no list"},
		{"no columns", shelf{names: []string{"a"}}, metav1.TableOptions{IncludeObject: "Nothing"}, "no columns"},
		{"a bad row", shelf{names: []string{"a", "bad"}}, metav1.TableOptions{}, "a bad row"},
	} {
		w := httptest.NewRecorder()
		r := rowsOf(test.s, w, "Table", test.options)
		list, err := r.List(t.Context(), nil)
		if (list == nil) == (test.want == "") && test.name != "no list" {
			t.Errorf("%s: the handler gets %v", test.name, list)
		}
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		r.Header().Set("X-Handler", "1")
		r.WriteHeader(http.StatusTeapot)
		if n, err := r.Write([]byte("xyz")); n != 3 || err != nil {
			t.Errorf("%s: %d, %v", test.name, n, err)
		}
		if w.Code != http.StatusTeapot || w.Body.String() != "xyz" || w.Header().Get("X-Handler") != "1" {
			t.Errorf("%s: %d %s", test.name, w.Code, w.Body)
		}
	}
}

// A connection that takes no more ends the rows: the writer that refuses ends the request.
func TestRowsThatAreRefused(t *testing.T) {
	w := &refusing{httptest.NewRecorder(), 1}
	r := rowsOf(shelf{names: []string{strings.Repeat("a", piece), "b", strings.Repeat("c", piece), "bad"}}, w, "PartialObjectMetadataList", metav1.TableOptions{})
	if _, err := r.List(t.Context(), nil); err != nil || !r.refused || !r.sent {
		t.Errorf("%v, refused %t", err, r.refused)
	}
}

// Which requests are answered row by row.
func TestRowsFor(t *testing.T) {
	for _, test := range []struct{ accept, query, want string }{
		{"application/json", "", ""},
		{"application/json;as=Table;v=v1;g=meta.k8s.io", "", "meta.k8s.io/v1, Kind=Table "},
		{"application/json;as=Table;v=v1beta1;g=meta.k8s.io", "?includeObject=None", "meta.k8s.io/v1beta1, Kind=Table None"},
		{"application/json;as=Table;v=v1;g=meta.k8s.io", "?includeObject=Some", ""},
		{"application/json;as=Table;v=v1;g=meta.k8s.io", "?pretty=1", ""},
		{"application/yaml;as=Table;v=v1;g=meta.k8s.io", "", ""},
		{"application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", "", "meta.k8s.io/v1, Kind=PartialObjectMetadataList "},
		{"application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io", "", ""},
		{"text/plain", "", ""},
	} {
		req := httptest.NewRequest(http.MethodGet, "/"+test.query, nil)
		req.Header.Set("Accept", test.accept)
		got := ""
		if r := (&Endpoint{Scope: scopeOfAll()}).rowsFor(shelf{}, req); r != nil {
			got = r.target.String() + " " + string(r.options.IncludeObject)
		}
		if got != test.want {
			t.Errorf("%s%s: %q, want %q", test.accept, test.query, got, test.want)
		}
	}
	if (&Endpoint{Scope: &handlers.RequestScope{}}).rowsFor(shelf{}, httptest.NewRequest(http.MethodGet, "/", nil)) != nil {
		t.Error("rows that no serializer writes")
	}
}
