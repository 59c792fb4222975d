package request

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/bridge"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/internal/plan"
)

// Decode reads an object as a client has sent it: types are checked, unknown fields
// pruned, nulls dropped, defaults filled in. The report, if not nil, lists the changes, unless all are
// quiet. The error is the one that API servers answer with.
func (s *Schema) Decode(data []byte, report *espalier.Report, quiet espalier.Changes) (*object.Object, espalier.Changes, error) {
	o, changes, err := normalize(s.Normalize, data, espalier.NormalizeOptions{Report: report, Quiet: quiet})
	if err != nil {
		return nil, 0, decodeError(data, err)
	}
	if changes&(espalier.Duplicated|espalier.Pruned) != 0 || bridge.Plan(s.Normalize).Flags&(plan.PreserveUnknown|plan.Additional) != 0 {
		// API servers look for the kind first, in all members that are called so in any case: one that is no string fails
		// the request, also if another one counts.
		if _, err := serializer.DefaultMetaFactory.Interpret(data); err != nil {
			return nil, 0, err
		}
	}
	if o.Kind() == "" {
		return nil, 0, runtime.NewMissingKindErr(string(data))
	}
	return o, changes, nil
}

// DecodeForeign reads an object of another kind than the schema's and keeps all of it:
// the request is going to be refused, in words that name it.
func DecodeForeign(data []byte) (*object.Object, error) {
	all, err := Everything()
	if err != nil {
		return nil, err
	}
	o, _, err := normalize(all, data, espalier.NormalizeOptions{})
	if err != nil {
		return nil, decodeError(data, err)
	}
	return o, nil
}

func normalize(s *espalier.Schema, data []byte, options espalier.NormalizeOptions) (*object.Object, espalier.Changes, error) {
	// Clients end bodies with a newline, which is no part of the object.
	data = bytes.TrimRight(data, "\n")
	options.Source, options.Keep = espalier.Request, true
	result, err := s.Normalize(data, options)
	if err != nil {
		return nil, 0, err
	}
	o, err := object.FromJSON(result.Bytes)
	if err != nil {
		return nil, 0, err
	}
	doc, typed := bridge.Index(&result)
	if doc == nil || !doc.Indexes(result.Bytes) {
		// The body is not what is stored: keys are not sorted, or a default was filled in.
		if doc, err = jsondoc.Parse(result.Bytes, jsondoc.Limits{}); err != nil {
			return nil, 0, err
		}
		typed = false
	}
	if !doc.Canonical() || !doc.Settled() {
		return o, result.Changes, nil // a -0 reads as 0 the next time
	}
	var by any
	if typed {
		by = s
	}
	o.SetIndex(doc, by, s)
	return o, result.Changes, nil
}

// DecodeStored reads an object as storage holds it: malformed metadata is dropped, and the
// object is brought into the form of the schema as it is now.
func (s *Schema) DecodeStored(data []byte) (*object.Object, error) {
	result, err := s.Normalize.Normalize(data, espalier.NormalizeOptions{Source: espalier.Storage})
	if err != nil {
		return nil, err
	}
	o, err := object.FromJSON(result.Bytes)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(result.Bytes, data) {
		o.SetSource(data)
	}
	if o.GetGeneration() == 0 {
		o.SetGeneration(1) // older servers did not set it
	}
	return o, nil
}

// DecodeConverted brings an object that comes from another version into the form of the schema.
// No defaults are filled in: an object has those of the version that it was sent or stored in.
func (s *Schema) DecodeConverted(o *object.Object) (*object.Object, error) {
	data := o.JSON()
	result, err := s.Normalize.Normalize(data, espalier.NormalizeOptions{Source: espalier.Converted})
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(result.Bytes, data) {
		if o, err = object.FromJSON(result.Bytes); err != nil {
			return nil, err
		}
	}
	o.SetSource(nil)
	return o, nil
}

// decodeError returns the error that API servers give for a body that they cannot read. They
// look for the kind first, then decode, then look at metadata.
func decodeError(data []byte, err error) error {
	if _, unkind := serializer.DefaultMetaFactory.Interpret(data); unkind != nil {
		return unkind
	}
	var syntax *espalier.SyntaxError
	if errors.As(err, &syntax) {
		var all map[string]any
		if undecoded := kjson.UnmarshalCaseSensitivePreserveInts(data, &all); undecoded != nil {
			return undecoded
		}
	}
	// The last kind counts. It may be null after one that is not. A version may be that of a member which is called
	// apiVersion in another case, and is not the object's.
	var last struct {
		APIVersion string  `json:"apiVersion"`
		Kind       *string `json:"kind"`
	}
	if kjson.UnmarshalCaseSensitivePreserveInts(data, &last) != nil {
		return err
	}
	if _, wrong := schema.ParseGroupVersion(last.APIVersion); wrong != nil || last.Kind == nil || *last.Kind == "" {
		return runtime.NewMissingKindErr(string(data))
	}
	return err
}

// KindOf reads the kind of a body; it is empty if the body has none.
func KindOf(data []byte) schema.GroupVersionKind {
	if gvk, err := serializer.DefaultMetaFactory.Interpret(data); err == nil {
		return *gvk
	}
	return schema.GroupVersionKind{}
}

// Pruned returns the paths of unknown fields in the order in which API servers list them:
// metadata is decoded before the schema prunes.
func Pruned(report *espalier.Report) []string {
	paths := report.Pruned()
	slices.SortStableFunc(paths, func(a, b string) int { return rank(a) - rank(b) })
	return paths
}

func rank(path string) int {
	if strings.HasPrefix(path, "metadata.") {
		return 0
	}
	return 1
}

// StrictErrors returns what strict field validation refuses: duplicate fields, and the
// unknown ones that were pruned. Duplicates are reported wherever they are, also in pruned
// fields, by the decoder that API servers use; the engine names only some of them.
func StrictErrors(data []byte, pruned []string) []error {
	var ignored map[string]any
	errs, err := kjson.UnmarshalStrict(data, &ignored, kjson.DisallowDuplicateFields)
	if err != nil {
		errs = nil // the engine has read the same bytes
	}
	for _, path := range pruned {
		errs = append(errs, fmt.Errorf(`unknown field "%s"`, path))
	}
	return errs
}
