package offline

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/crd/kinds"
	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/spelling"
)

// DecodeError says why an object cannot be read.
type DecodeError struct {
	Kind   *Kind
	Err    error
	Offset int    // of the value in the JSON
	Type   string // that the value must have: string, integer, number, boolean, or empty

	said         schema.GroupVersionKind // that the object says; empty if it is that of Kind
	unrecognized bool                    // the kind cannot be read
}

// Error returns the text of API servers.
func (e *DecodeError) Error() string {
	if e.unrecognized {
		return fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v", e.Kind.Kind, e.Err)
	}
	said := e.said
	if said.Empty() {
		said = e.Kind.GroupVersionKind
	}
	return fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", said.Kind, said.Version, e.Kind.Kind, e.Err)
}

// Unwrap returns the error of the decoder.
func (e *DecodeError) Unwrap() error { return e.Err }

// FieldError is a field that strict decoding refuses.
type FieldError struct {
	Path    string
	Unknown bool   // and not duplicate
	Nearest string // what was probably meant
	Since   string // the version of Kubernetes that added the field; empty if none has it
}

// Error returns the text of API servers.
func (e *FieldError) Error() string {
	what := "duplicate"
	if e.Unknown {
		what = "unknown"
	}
	return what + ` field "` + e.Path + `"`
}

// Decode reads an object as an API server of a version of Kubernetes does. It returns
// the fields that strict decoding refuses; the error is a [DecodeError].
func (k *Kind) Decode(data []byte, version Version) (runtime.Object, []*FieldError, error) {
	// Servers look for the kind first, in keys of any case: the last of them counts.
	said, err := serializer.DefaultMetaFactory.Interpret(data)
	if err != nil {
		return nil, nil, &DecodeError{Kind: k, Err: err, unrecognized: true}
	}
	if *said != k.GroupVersionKind && said.Kind != "" && said.Version != "" {
		err := runtime.NewNotRegisteredErrForKind(scheme(k.GroupVersion()).Name(), *said)
		return nil, nil, &DecodeError{Kind: k, Err: err, said: *said}
	}
	if err := kinds.LongQuantity(data, func(short []byte) error {
		if err := kjson.UnmarshalCaseSensitivePreserveInts(short, k.New()); err != nil {
			return k.decodeError(short, err)
		}
		return nil
	}); err != nil {
		return nil, nil, err
	}
	obj := k.New()
	strict, err := kjson.UnmarshalStrict(data, obj)
	if err != nil {
		return nil, nil, k.decodeError(data, err)
	}
	return obj, k.fieldErrors(data, obj, strict, version), nil
}

// fieldErrors are the errors of the strict decoder, and the fields that the version does
// not have.
func (k *Kind) fieldErrors(data []byte, obj runtime.Object, strict []error, version Version) []*FieldError {
	var list []*FieldError
	t := reflect.TypeOf(obj).Elem()
	for _, err := range strict {
		text := err.Error()
		path, unknown := strings.CutPrefix(text, `unknown field "`)
		path = strings.TrimSuffix(strings.TrimPrefix(path, `duplicate field "`), `"`)
		one := &FieldError{Path: path, Unknown: unknown}
		if unknown {
			one.Nearest = nearest(t, path)
		}
		list = append(list, one)
	}
	if version < Latest {
		list = append(list, newer(data, obj, version)...)
	}
	return list
}

// nearest returns the field that is most like the last of a path.
func nearest(t reflect.Type, path string) string {
	steps := splitPath(path)
	if len(steps) == 0 {
		return "" // a key may be empty
	}
	for _, step := range steps[:len(steps)-1] {
		switch t = pointed(t); t.Kind() {
		case reflect.Struct:
			next, ok := fieldsOf(t)[step]
			if !ok {
				return ""
			}
			t = next
		case reflect.Slice, reflect.Map:
			t = t.Elem()
		default:
			return ""
		}
	}
	if t = pointed(t); t.Kind() != reflect.Struct {
		return ""
	}
	return spelling.Nearest(steps[len(steps)-1], func(yield func(string) bool) {
		for _, name := range namesOf(t) {
			if !yield(name) {
				return
			}
		}
	})
}

// splitPath splits a path of the decoder, such as spec.containers[0].name. Indexes keep a
// bracket, because nothing reads them.
func splitPath(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' })
}

// decodeError finds where an error of the decoder is.
func (k *Kind) decodeError(data []byte, err error) *DecodeError {
	e := &DecodeError{Kind: k, Err: err}
	doc, parseErr := jsondoc.Parse(data, jsondoc.Limits{})
	if parseErr != nil {
		return e
	}
	defer doc.Release()
	var mistyped *json.UnmarshalTypeError
	if errors.As(err, &mistyped) {
		e.Type = typeName(mistyped.Type)
		e.Offset = doc.Offset(valueBefore(doc, int(mistyped.Offset)))
		return e
	}
	f := finder{doc: doc, text: err.Error()}
	if v, ok := f.find(jsondoc.Root, reflect.TypeOf(k.New()).Elem()); ok {
		e.Offset = doc.Offset(v)
	}
	return e
}

// valueBefore returns the last value or key that begins before an offset. The decoder
// says how far it has read, which is the end of a scalar, or behind the first byte of a
// list or object.
func valueBefore(doc *jsondoc.Doc, offset int) jsondoc.Value {
	low, high := jsondoc.Root, doc.Next(jsondoc.Root)
	for high-low > 1 {
		if middle := low + (high-low)/2; doc.Offset(middle) < offset {
			low = middle
		} else {
			high = middle
		}
	}
	return low
}

// typeName is the name of a scalar type in schemas.
func typeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "integer"
	case reflect.Float32, reflect.Float64:
		return "number"
	}
	return ""
}

// finder looks for the value that a type with a decoder of its own refuses: quantities,
// times, durations, bytes. Their errors say no offset.
type finder struct {
	doc  *jsondoc.Doc
	text string // of the error
}

func (f *finder) find(v jsondoc.Value, t reflect.Type) (jsondoc.Value, bool) {
	t = pointed(t)
	_, custom := reflect.New(t).Interface().(json.Unmarshaler)
	if custom || t == bytesType {
		err := json.Unmarshal(f.doc.Raw(v), reflect.New(t).Interface())
		return v, err != nil && err.Error() == f.text
	}
	switch {
	case t.Kind() == reflect.Struct && f.doc.Kind(v) == jsondoc.Object:
		fields := fieldsOf(t)
		for m := range f.doc.Members(v) {
			if below, ok := fields[string(f.doc.Key(m.Key))]; ok {
				if found, ok := f.find(m.Value, below); ok {
					return found, true
				}
			}
		}
	case t.Kind() == reflect.Map && f.doc.Kind(v) == jsondoc.Object:
		for m := range f.doc.Members(v) {
			if found, ok := f.find(m.Value, t.Elem()); ok {
				return found, true
			}
		}
	case t.Kind() == reflect.Slice && f.doc.Kind(v) == jsondoc.Array:
		for _, item := range f.doc.Items(v) {
			if found, ok := f.find(item, t.Elem()); ok {
				return found, true
			}
		}
	}
	return v, false
}
