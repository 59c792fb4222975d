package customresource

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// selection says by what the objects of a version can be selected: labels,
// name, namespace and the fields that the CRD lists.
type selection struct {
	namespaced bool
	fields     []selectable
	tenants    bool         // the tenant is a field, too
	arrays     []selectable // that are indexed: an extension
	indexed    []string     // fields: only the first one, which is what the watch cache goes by
}

type selectable struct {
	name string // as selectors write it, without the dot in front
	path path
	err  error // why the path cannot be read
}

func newSelection(v *versionDetails, namespaced bool) *selection {
	s := &selection{namespaced: namespaced, fields: make([]selectable, len(v.selectable))}
	for i, f := range v.selectable {
		p, err := parsePath(f.JSONPath)
		s.fields[i] = selectable{name: strings.TrimPrefix(f.JSONPath, "."), path: p, err: err}
	}
	for _, i := range v.indexes {
		if array, ok := i.Array(); ok {
			p, err := parsePath("." + array)
			s.arrays = append(s.arrays, selectable{name: array, path: p, err: err})
		} else if i.Field != "" && s.indexed == nil {
			s.indexed = []string{i.Field}
		}
	}
	return s
}

// triggers has the watch cache pass on events only to those watches with a selector for one value of
// the indexed field that the event is for. The cacher of k8s.io/apiserver takes one such function.
func (s *selection) triggers() storage.IndexerFuncs {
	if len(s.indexed) == 0 {
		return nil
	}
	field := s.indexed[0]
	return storage.IndexerFuncs{field: func(obj runtime.Object) string {
		_, set, err := s.attributes(obj)
		if err != nil {
			return "" // the cacher has not taken an object whose attributes cannot be read
		}
		return set[field]
	}}
}

// attributes implements storage.AttrFunc.
func (s *selection) attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(*object.Object)
	if !ok {
		return nil, nil, fmt.Errorf("an object of type %T where bytes were expected", obj)
	}
	set := make(fields.Set, 2+len(s.fields))
	set["metadata.name"] = o.GetName()
	if s.namespaced {
		set["metadata.namespace"] = o.GetNamespace()
	}
	if s.tenants {
		set[TenantAnnotation] = o.GetAnnotations()[TenantAnnotation]
	}
	content := subject{object: o}
	for i := range s.fields {
		f := &s.fields[i]
		if f.err != nil {
			return nil, nil, fmt.Errorf("unexpected error parsing jsonPath: %w", f.err)
		}
		value, _, err := f.path.find(&content)
		if err != nil {
			return nil, nil, fmt.Errorf("unexpected error finding value with jsonPath: %w", err)
		}
		set[f.name] = ""
		if value != nil {
			set[f.name] = fmt.Sprint(value)
		}
	}
	for i := range s.arrays {
		s.arrays[i].items(&content, set)
	}
	return o.GetLabels(), set, nil
}

// items adds the values of an array. What is no scalar, and more than there may be, was stored with another
// schema.
func (f *selectable) items(of *subject, set fields.Set) {
	if f.err != nil {
		return
	}
	value, _, err := f.path.find(of)
	list, ok := value.([]any)
	if err != nil || !ok {
		return
	}
	for _, item := range list[:min(len(list), catalog.MaxIndexedItems)] {
		switch item.(type) {
		case string, bool, int64:
			set[store.ItemField(f.name, fmt.Sprint(item))] = store.ItemValue
		}
	}
}

// predicate selects the objects that a list or watch asks for.
func (s *selection) predicate(label labels.Selector, field fields.Selector) storage.SelectionPredicate {
	return storage.SelectionPredicate{Label: label, Field: field, GetAttrs: s.attributes, IndexFields: s.indexed}
}

// term returns what a term of a field selector is about, or an error if the field cannot be selected by.
func (s *selection) term(label, value string) (field, wanted string, err error) {
	if label == "metadata.name" || s.namespaced && label == "metadata.namespace" || s.tenants && label == TenantAnnotation {
		return label, value, nil
	}
	if slices.ContainsFunc(s.fields, func(f selectable) bool { return f.name == label }) {
		return label, value, nil
	}
	if slices.ContainsFunc(s.arrays, func(f selectable) bool { return f.name == label }) {
		return store.ItemField(label, value), store.ItemValue, nil
	}
	return "", "", fmt.Errorf("field label not supported: %s", label)
}
