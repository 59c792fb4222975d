package customresource

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/crd/request"
	"github.com/espalier-dev/espalier/internal/object"
)

// Decoder decodes the objects of one version of a resource. It implements
// codec.Decoder.
type Decoder struct {
	kind    schema.GroupVersionKind
	schemas *atomic.Pointer[schemaSet] // of the resource, shared by the decoders of all versions
}

// decodeResult is the marker of a decoded object that was pruned or has values of
// the wrong type. The decoder does not know the request, so admission reports both.
type decodeResult struct {
	schema     *versionSchema
	mismatched bool     // a value is not of its schema's type
	pruned     []string // paths
}

// schemaMarkerOf returns the schema that has normalized an object, nil if unknown.
func schemaMarkerOf(o *object.Object) *versionSchema {
	switch s := o.Stamp().(type) {
	case *versionSchema:
		return s
	case *decodeResult:
		return s.schema
	}
	return nil
}

// Kind implements codec.Decoder.
func (f *Decoder) Kind() schema.GroupVersionKind { return f.kind }

// Identifier changes with the schema. Watches share encoded events that have the
// same identifier.
func (f *Decoder) Identifier() string { return f.current(f.kind.Version).id }

// current returns the schema of a version of the resource, nil if it has no
// such version.
func (f *Decoder) current(version string) *versionSchema { return (*f.schemas.Load())[version] }

// FromRequest implements codec.Decoder. It does not use the defaults: a custom
// resource must have apiVersion and kind.
func (f *Decoder) FromRequest(data []byte, _ *schema.GroupVersionKind, strict bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	s, err := f.current(f.kind.Version).compiled()
	if err != nil {
		return nil, f.kind, nil, err
	}
	var report espalier.Report
	o, changes, err := s.Decode(data, &report, espalier.Defaulted)
	if err != nil {
		gvk := request.KindOf(data)
		if gvk == f.kind || gvk.Kind == "" {
			return nil, gvk, nil, err
		}
		// The schema has nothing to say about an object of another kind.
		other, err := request.DecodeForeign(data)
		return other, gvk, nil, err
	}
	gvk := o.GroupVersionKind()
	if gvk != f.kind {
		// The handlers reject it. Until then it is not converted.
		other, err := request.DecodeForeign(data)
		return other, gvk, nil, err
	}
	if changes&^espalier.Defaulted == 0 {
		o.SetStamp(s)
		return o, gvk, nil, nil
	}
	note := &decodeResult{schema: s, mismatched: changes&espalier.Mismatched != 0, pruned: request.Pruned(&report)}
	o.SetStamp(s)
	if note.mismatched || len(note.pruned) > 0 {
		o.SetStamp(note)
	}
	if !strict {
		return o, gvk, nil, nil
	}
	return o, gvk, request.StrictErrors(data, note.pruned), nil
}

// FromStorage implements codec.Decoder.
func (f *Decoder) FromStorage(data []byte) (*object.Object, error) {
	s := f.storedSchema(data)
	if s == nil {
		// The object is stored in a version that the CRD no longer has. No converter
		// accepts it, and one such object would fail the conversion of a whole list.
		return nil, storedError(data)
	}
	s, err := s.compiled()
	if err != nil {
		return nil, err
	}
	o, err := s.DecodeStored(data)
	if err != nil {
		return nil, err
	}
	o.SetStamp(s)
	return o, nil
}

// FromWritten implements codec.Rereading.
func (f *Decoder) FromWritten(data []byte, normalized any) (*object.Object, bool) {
	s := f.storedSchema(data)
	if s == nil {
		return nil, false
	}
	if s, err := s.compiled(); err != nil || normalized != s.Normalize {
		return nil, false
	}
	o, err := object.FromJSON(data)
	if err != nil || o.GetGeneration() == 0 {
		return nil, false
	}
	o.SetStamp(s)
	return o, true
}

// storedError says why a stored value is not an object of a version of the CRD. The
// text for unknown versions is upstream's.
func storedError(data []byte) error {
	kind, err := serializer.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return err
	}
	return fmt.Errorf("request to convert CR from an invalid group/version: %s", kind.GroupVersion())
}

// storedSchema returns the schema of the version that an object was stored in,
// nil if there is none.
func (f *Decoder) storedSchema(data []byte) *versionSchema {
	const first = `{"apiVersion":"`
	if rest, ok := bytes.CutPrefix(data, []byte(first)); ok {
		if end := bytes.IndexByte(rest, '"'); end > 0 {
			group, version, ok := bytes.Cut(rest[:end], []byte("/"))
			if ok && string(group) == f.kind.Group {
				return (*f.schemas.Load())[string(version)]
			}
		}
	}
	kind := request.KindOf(data)
	if kind.Group != f.kind.Group {
		return nil
	}
	return f.current(kind.Version)
}

// currentFor returns the schema for an object, nil if the object is of another
// resource or of a version that the CRD does not have.
func (f *Decoder) currentFor(o *object.Object) *versionSchema {
	group, version, ok := strings.Cut(o.APIVersion(), "/")
	if !ok || group != f.kind.Group || o.Kind() != f.kind.Kind {
		return nil
	}
	return f.current(version)
}

// Renormalize implements codec.Decoder. If normalizing fails, it returns the object
// unchanged: it was readable before, and clients need to see it to repair it.
func (f *Decoder) Renormalize(o *object.Object) *object.Object {
	s := f.currentFor(o)
	if s == nil || schemaMarkerOf(o) == s {
		return o
	}
	renormalized, err := renew(o, s)
	if err != nil {
		return o
	}
	return renormalized
}

// renew normalizes an object again. Its metadata stays: the resourceVersion,
// for one, is not among the stored bytes.
func renew(o *object.Object, s *versionSchema) (*object.Object, error) {
	s, err := s.compiled()
	if err != nil {
		return nil, err
	}
	before := o.JSON()
	from := before
	if o.Source() != nil && schemaMarkerOf(o) != nil { // otherwise the object is no longer what was stored
		from = o.Source()
	}
	result, err := s.Normalize.Normalize(from, espalier.NormalizeOptions{Source: espalier.Storage})
	if err != nil {
		return nil, err
	}
	renormalized := o.DeepCopy()
	if !bytes.Equal(result.Bytes, before) {
		if err := replaceBody(renormalized, before, result.Bytes); err != nil {
			return nil, err
		}
		renormalized.SetSource(from)
	}
	renormalized.SetStamp(s)
	return renormalized, nil
}

// replaceBody sets everything in o but apiVersion, kind and metadata, which SetMember
// leaves alone, to what is in now; before is o's own JSON.
func replaceBody(o *object.Object, before, now []byte) error {
	var old, members map[string]json.RawMessage
	if err := json.Unmarshal(before, &old); err != nil {
		return err
	}
	if err := json.Unmarshal(now, &members); err != nil {
		return err
	}
	for name := range old {
		if _, ok := members[name]; !ok {
			o.SetMember(name, nil)
		}
	}
	for name, value := range members {
		if !bytes.Equal(value, old[name]) {
			o.SetMember(name, value)
		}
	}
	return nil
}
