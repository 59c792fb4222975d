package endpoints

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	metav1beta1 "k8s.io/apimachinery/pkg/apis/meta/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/registry/rest"
)

// piece is how many bytes of rows are written at a time.
const piece = 64 << 10

// list is the handler of list requests. Tables, and lists of metadata, are
// written row by row: k8s.io/apiserver makes all rows first, encodes them into
// one buffer, and then writes it.
func (e *Endpoint) list(s rest.Lister, watcher rest.Watcher) http.HandlerFunc {
	ordinary := handlers.ListResource(s, watcher, e.Scope, false, e.MinRequestTimeout)
	return func(w http.ResponseWriter, req *http.Request) {
		r := e.rowsFor(s, req)
		if r == nil {
			ordinary(w, req)
			return
		}
		r.w = w
		handlers.ListResource(r, watcher, e.Scope, false, e.MinRequestTimeout)(r, req)
	}
}

// rowsFor returns the writer for a request for rows in JSON, or nil. k8s.io/apiserver
// answers invalid requests, because its error texts are expected. It also answers
// requests whose response goes into the audit log, which has it as a whole anyway.
func (e *Endpoint) rowsFor(s rest.Lister, req *http.Request) *rows {
	if a := audit.AuditContextFrom(req.Context()); a != nil && a.Enabled() && !a.GetEventLevel().Less(auditapi.LevelRequestResponse) {
		return nil
	}
	if e.Scope.Serializer == nil {
		return nil
	}
	options, info, err := negotiation.NegotiateOutputMediaType(req, e.Scope.Serializer, e.Scope)
	if err != nil || options.Convert == nil || info.MediaType != runtime.ContentTypeJSON || info.Serializer == info.PrettySerializer {
		return nil
	}
	target := *options.Convert
	if v := target.GroupVersion(); v != metav1.SchemeGroupVersion && v != metav1beta1.SchemeGroupVersion {
		return nil
	}
	r := &rows{Lister: s, scope: e.Scope, target: target, header: http.Header{}}
	switch target.Kind {
	case "PartialObjectMetadataList":
	case "Table":
		if err := metascheme.ParameterCodec.DecodeParameters(req.URL.Query(), metav1.SchemeGroupVersion, &r.options); err != nil {
			return nil
		}
		if len(validation.ValidateTableOptions(&r.options)) > 0 {
			return nil
		}
	default:
		return nil
	}
	return r
}

// rows replaces the storage and the connection of a handler. When the objects are
// listed it writes the response itself. Then it returns an empty list to the handler and
// drops its encoding. Errors of the storage pass through the handler.
type rows struct {
	rest.Lister
	w       http.ResponseWriter
	scope   *handlers.RequestScope
	target  schema.GroupVersionKind
	options metav1.TableOptions

	done    bool
	header  http.Header // of what is dropped
	buffer  []byte
	sent    bool // a part of the answer
	refused bool // the next part
}

// Header implements http.ResponseWriter.
func (r *rows) Header() http.Header {
	if r.done {
		return r.header
	}
	return r.w.Header()
}

// WriteHeader implements http.ResponseWriter.
func (r *rows) WriteHeader(code int) {
	if !r.done {
		r.w.WriteHeader(code)
	}
}

// Write implements http.ResponseWriter.
func (r *rows) Write(p []byte) (int, error) {
	if r.done {
		return len(p), nil
	}
	return r.w.Write(p)
}

// List implements rest.Lister.
func (r *rows) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list, err := r.Lister.List(ctx, options)
	if err != nil || meta.LenList(list) == 0 {
		return list, err
	}
	opening, err := r.opening(ctx, list)
	if err != nil {
		return nil, err
	}
	r.w.Header().Set("Content-Type", runtime.ContentTypeJSON)
	r.done = true
	r.buffer = append(r.buffer, opening...)
	first := true
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if !first {
			r.buffer = append(r.buffer, ',')
		}
		first = false
		if err := r.append(ctx, item); err != nil {
			return err
		}
		return r.flush(piece)
	})
	if err == nil {
		r.buffer = append(r.buffer, "]}\n"...)
		err = r.flush(0)
	}
	switch {
	case err == nil || r.refused:
		// The writer that rejects the data ends the request: untilEnd or forReaders.
	case r.sent:
		panic(http.ErrAbortHandler) // the response is incomplete
	default:
		r.done = false // k8s.io/apiserver reports the error
		return nil, err
	}
	return r.NewList(), nil
}

func (r *rows) flush(above int) error {
	if len(r.buffer) <= above {
		return nil
	}
	_, err := r.w.Write(r.buffer)
	r.sent, r.refused = true, err != nil
	r.buffer = r.buffer[:0]
	return err
}

// opening is the answer up to its first row.
func (r *rows) opening(ctx context.Context, list runtime.Object) ([]byte, error) {
	from, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	shell := r.NewList() // as the list, without its items
	about, err := meta.ListAccessor(shell)
	if err != nil {
		return nil, err
	}
	about.SetResourceVersion(from.GetResourceVersion())
	about.SetContinue(from.GetContinue())
	about.SetRemainingItemCount(from.GetRemainingItemCount())
	if from, ok := list.(metav1.ShardedListInterface); ok {
		if about, ok := shell.(metav1.ShardedListInterface); ok {
			about.SetShardInfo(from.GetShardInfo())
		}
	}
	kind := metav1.TypeMeta{APIVersion: r.target.GroupVersion().String(), Kind: r.target.Kind}
	var empty any
	if r.target.Kind == "Table" {
		table, err := r.scope.TableConvertor.ConvertToTable(ctx, shell, &r.options)
		if err != nil {
			return nil, err
		}
		empty = &metav1.Table{TypeMeta: kind, ListMeta: table.ListMeta, ColumnDefinitions: table.ColumnDefinitions, Rows: []metav1.TableRow{}}
	} else {
		empty = &metav1.PartialObjectMetadataList{TypeMeta: kind, Items: []metav1.PartialObjectMetadata{}, ListMeta: metav1.ListMeta{
			ResourceVersion: about.GetResourceVersion(), Continue: about.GetContinue(), RemainingItemCount: about.GetRemainingItemCount(),
		}}
	}
	data, err := json.Marshal(empty)
	if err != nil {
		return nil, err
	}
	opening, ok := bytes.CutSuffix(data, []byte("]}"))
	if !ok {
		return nil, fmt.Errorf("%s does not end with its rows", r.target.Kind)
	}
	return opening, nil
}

// append adds an object to what is to be written.
func (r *rows) append(ctx context.Context, item runtime.Object) error {
	if r.target.Kind != "Table" {
		return r.marshal(r.partial(item))
	}
	table, err := r.scope.TableConvertor.ConvertToTable(ctx, item, &r.options)
	if err != nil {
		return err
	}
	for i := range table.Rows {
		row := &table.Rows[i]
		switch r.options.IncludeObject {
		case metav1.IncludeObject:
			row.Object.Object, err = r.scope.Convertor.ConvertToVersion(row.Object.Object, r.scope.Kind.GroupVersion())
		case metav1.IncludeNone:
			row.Object.Object = nil
		default:
			row.Object.Object, err = r.partial(row.Object.Object)
		}
		if err := r.marshal(row, err); err != nil {
			return err
		}
	}
	return nil
}

// partial is the metadata of an object.
func (r *rows) partial(item runtime.Object) (*metav1.PartialObjectMetadata, error) {
	m, err := meta.Accessor(item)
	if err != nil {
		return nil, err
	}
	partial := meta.AsPartialObjectMetadata(m)
	partial.SetGroupVersionKind(r.target.GroupVersion().WithKind("PartialObjectMetadata"))
	return partial, nil
}

func (r *rows) marshal(v any, err error) error {
	if err != nil {
		return err
	}
	data, err := json.Marshal(v)
	r.buffer = append(r.buffer, data...)
	return err
}
