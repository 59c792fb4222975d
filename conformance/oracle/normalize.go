package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	prune "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"
)

// Source says where an object comes from. The reference is strict with requests and lenient with its own storage.
type Source uint8

const (
	Request Source = iota
	Storage
)

func (s Source) String() string { return [...]string{"request", "storage"}[s] }

// A Schema is the reference's form of a schema that serves requests. It may be used concurrently.
type Schema struct {
	structural *schema.Structural
	internal   *apiextensions.JSONSchemaProps
	lazy       validators
}

// Compile builds what the reference builds when a CRD starts to be served. It does not check the schema.
func Compile(schemaJSON []byte) (*Schema, error) {
	internal, err := Internal(schemaJSON)
	if err != nil {
		return nil, err
	}
	s, err := schema.NewStructural(internal)
	if err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(s); err != nil {
		return nil, err
	}
	return &Schema{structural: s, internal: internal}, nil
}

// Internal decodes a schema into the reference's internal type, from which all its machinery is built.
func Internal(schemaJSON []byte) (*apiextensions.JSONSchemaProps, error) {
	props, err := decode(schemaJSON)
	if err != nil {
		return nil, err
	}
	return convert(props)
}

// An Outcome is what became of one object.
type Outcome struct {
	// Bytes is the object as the reference stores it, without the newline that its encoder appends.
	Bytes []byte
	// Unknown are the paths of dropped fields, sorted.
	Unknown []string
	// Err is set when the object was refused. Malformed then says whether it was refused as JSON.
	Err       error
	Malformed bool
}

// Normalize decodes, prunes, drops nulls, coerces metadata, defaults and encodes, in the reference's order.
func (s *Schema) Normalize(object []byte, source Source) Outcome {
	obj, err := Decode(object)
	if err != nil {
		return Outcome{Err: err, Malformed: true}
	}
	unknown, err := s.apply(obj, source, true)
	if err != nil {
		return Outcome{Err: err}
	}
	defaulting.Default(obj, s.structural)
	out, err := json.Marshal(obj)
	if err != nil {
		return Outcome{Err: err}
	}
	slices.Sort(unknown)
	return Outcome{Bytes: out, Unknown: unknown}
}

// Encode is Normalize for measurements: as Normalize, and nothing is recorded about what was dropped, which is what
// the reference does for requests with fieldValidation=Ignore and for reads from storage. The result has the newline.
func (s *Schema) Encode(object []byte, source Source, dst *bytes.Buffer) error {
	obj, err := s.stored(object, source)
	if err != nil {
		return err
	}
	return json.NewEncoder(dst).Encode(obj)
}

// stored is what becomes of an object before it is validated and encoded.
func (s *Schema) stored(object []byte, source Source) (map[string]any, error) {
	obj, err := Decode(object)
	if err != nil {
		return nil, err
	}
	if _, err := s.apply(obj, source, false); err != nil {
		return nil, err
	}
	defaulting.Default(obj, s.structural)
	return obj, nil
}

// Decode reads an object as the reference does: last duplicate wins, integers are int64, other numbers float64.
func Decode(object []byte) (map[string]any, error) {
	var obj map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(object, &obj); err != nil {
		return nil, err
	}
	if obj == nil {
		// null decodes into a nil map. The reference then misses kind and answers 400, so this is no object either.
		return nil, errors.New("the document is null, not an object")
	}
	return obj, nil
}

// Marshal encodes a decoded object as the reference stores it, without the newline. Decoded JSON always encodes.
func Marshal(obj map[string]any) []byte {
	out, err := json.Marshal(obj)
	if err != nil {
		panic(err)
	}
	return out
}

// coercion says how much of an object the reference's decoder changes.
type coercion uint8

const (
	pruning    coercion = iota
	preserving          // the CRD has preserveUnknownFields
	foreign             // the object is of another kind
)

// apply makes the steps that the reference's decoder makes between decoding and defaulting, for an object whose group
// and kind are known to match.
func (s *Schema) apply(obj map[string]any, source Source, track bool) ([]string, error) {
	return s.coerce(obj, source, track, pruning)
}

func (s *Schema) coerce(obj map[string]any, source Source, track bool, how coercion) ([]string, error) {
	u := &unstructured.Unstructured{Object: obj}
	kind, hasKind, err := unstructured.NestedString(obj, "kind")
	if err != nil {
		return nil, err
	}
	apiVersion, hasAPIVersion, err := unstructured.NestedString(obj, "apiVersion")
	if err != nil {
		return nil, err
	}
	lenient := source == Storage
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{
		DropMalformedFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	if _, err := runtimeschema.ParseGroupVersion(apiVersion); err != nil {
		return nil, err
	}
	if how == pruning {
		unknown = append(unknown, prune.PruneWithOptions(obj, s.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.structural)
	}
	if how != foreign {
		fieldErr, more := objectmeta.CoerceWithOptions(nil, obj, s.structural, false, objectmeta.CoerceOptions{
			DropInvalidFields: lenient, ReturnUnknownFieldPaths: track,
		})
		if fieldErr != nil {
			return nil, fieldErr
		}
		unknown = append(unknown, more...)
	}
	// The reference dereferences the metadata without looking. Stored objects always have some; ours may not.
	if lenient && hasMeta && meta.Generation == 0 {
		meta.Generation = 1
	}
	if hasKind {
		u.SetKind(kind)
	}
	if hasAPIVersion {
		u.SetAPIVersion(apiVersion)
	}
	if hasMeta {
		if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
			return nil, err
		}
	}
	return unknown, nil
}

// String renders the outcome for a reproducer.
func (o Outcome) String() string {
	switch {
	case o.Malformed:
		return "malformed: " + o.Err.Error()
	case o.Err != nil:
		return "refused: " + o.Err.Error()
	}
	return fmt.Sprintf("%s\n  unknown: %q", o.Bytes, o.Unknown)
}
