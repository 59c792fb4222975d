package customresource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/migration"
)

// Migration returns how the stored objects of a CRD are rewritten in its storage version.
// A rewrite is what a write that changes nothing would store: the object is normalized by
// the schema of the version that it is stored in, converted, and pruned. Managed fields of
// versions that the CRD does not have any more are dropped: they block updates
// (kubernetes#111937).
func (s *Server) Migration(e *catalog.Entry) *migration.Resource {
	resource := schema.GroupResource{Group: e.Group, Resource: e.Accepted.Plural}
	return &migration.Resource{
		Resource: resource, Folder: "/" + resource.Group + "/" + resource.Resource, CRD: e, Requirement: s.requirement(e),
		Rewrite: func(ctx context.Context, values []migration.Value) ([]migration.Rewritten, error) {
			return s.rewrite(ctx, e, values)
		},
		Current: storedIn(schema.GroupVersion{Group: e.Group, Version: e.StorageVersion}.String()),
	}
}

// storedIn returns a function that reports whether a value is of an apiVersion. Canonical
// JSON begins with it.
func storedIn(apiVersion string) func(data []byte) bool {
	first := []byte(`{"apiVersion":"` + apiVersion + `",`)
	return func(data []byte) bool {
		return bytes.HasPrefix(data, first) || request.KindOf(data).GroupVersion().String() == apiVersion
	}
}

func (s *Server) rewrite(ctx context.Context, e *catalog.Entry, values []migration.Value) ([]migration.Rewritten, error) {
	servedResource, v, err := s.enter(e, false)
	if err != nil {
		return nil, err
	}
	defer servedResource.leave(v, false)
	if !interchangeable(e, v.entry) {
		return nil, migration.ErrChanged
	}
	vt := v.storages[e.StorageVersion]
	if vt == nil {
		return nil, fmt.Errorf("there is no version %q", e.StorageVersion)
	}
	r := rewriter{decoder: vt.decoder, entry: e, known: map[string]bool{}, results: make([]migration.Rewritten, len(values))}
	for i := range e.Versions {
		r.known[schema.GroupVersion{Group: e.Group, Version: e.Versions[i].Name}.String()] = true
	}
	for i, one := range values {
		r.read(i, one)
	}
	if len(r.others) > 0 {
		converted, err := v.convert(ctx, r.others, e.StorageVersion)
		if err != nil {
			return nil, err
		}
		if len(converted) != len(r.others) {
			return nil, fmt.Errorf("%d objects were converted to %d", len(r.others), len(converted))
		}
		for k, i := range r.at {
			r.keep(i, converted[k])
		}
	}
	return r.results, nil
}

// rewriter rewrites values.
type rewriter struct {
	decoder *Decoder
	entry   *catalog.Entry
	known   map[string]bool // apiVersions
	results []migration.Rewritten
	others  []*object.Object // in other versions, and at are their indexes
	at      []int
}

// read decodes a value. One in the storage version is done with.
func (r *rewriter) read(i int, from migration.Value) {
	o, err := r.decoder.FromStorage(bytes.TrimRight(from.Data, "\n"))
	if err == nil {
		err = r.check(o, from.Name)
	}
	if err != nil {
		r.results[i].Err = err
		return
	}
	_, r.results[i].Version, _ = strings.Cut(o.APIVersion(), "/")
	switch {
	case r.results[i].Version != r.entry.StorageVersion:
		r.others, r.at = append(r.others, o), append(r.at, i)
	case r.dead(o):
		r.keep(i, o)
	}
}

// check reports an object that is not the one of its key. Requests cannot read it either.
func (r *rewriter) check(o *object.Object, name string) error {
	if o.Kind() != r.decoder.kind.Kind {
		return fmt.Errorf("it is of kind %q, not %q", o.Kind(), r.decoder.kind.Kind)
	}
	is := o.GetName()
	if r.entry.Namespaced {
		is = o.GetNamespace() + "/" + is
	} else if o.GetNamespace() != "" {
		return errors.New("it has a namespace, which objects of a cluster-scoped resource do not have")
	}
	if is != name {
		return fmt.Errorf("its name is %q, which differs from the key", is)
	}
	return nil
}

// keep notes what is to be stored.
func (r *rewriter) keep(i int, o *object.Object) {
	if r.dead(o) {
		o = o.DeepCopy()
		o.SetManagedFields(slices.DeleteFunc(slices.Clone(o.GetManagedFields()), func(entry metav1.ManagedFieldsEntry) bool { return r.gone(entry.APIVersion) }))
	}
	r.results[i].Data = append(o.AppendJSON(nil), '\n')
}

// dead reports whether an object has managed fields of versions that are gone. Most have
// none: then their entries are not decoded.
func (r *rewriter) dead(o *object.Object) bool {
	const member = `"apiVersion":"`
	for rest := o.ReadMetadata("managedFields"); ; {
		at := bytes.Index(rest, []byte(member))
		if at < 0 {
			return false
		}
		rest = rest[at+len(member):]
		if end := bytes.IndexByte(rest, '"'); end >= 0 && r.gone(string(rest[:end])) {
			return slices.ContainsFunc(o.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return r.gone(entry.APIVersion) })
		}
	}
}

// gone reports whether an apiVersion is one of the group that the CRD does not have.
func (r *rewriter) gone(apiVersion string) bool {
	group, _, ok := strings.Cut(apiVersion, "/")
	return ok && group == r.entry.Group && !r.known[apiVersion]
}
