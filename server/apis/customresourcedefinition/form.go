package customresourcedefinition

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/espalier-dev/espalier/internal/jsondoc"
	"github.com/espalier-dev/espalier/internal/object"
)

// Form reads definitions that clients send in one version, and those that etcd
// holds. Whatever version they come in, the result is of v1. It is safe for
// concurrent use.
type Form struct{ version schema.GroupVersion }

// NewForm returns the form of a version, v1 or v1beta1.
func NewForm(version string) Form {
	return Form{schema.GroupVersion{Group: stable.Group, Version: version}}
}

// Kind is what clients that use this form send and receive.
func (f Form) Kind() schema.GroupVersionKind { return f.version.WithKind(kind) }

// FromRequest reads the JSON of a request body, of either version: that it is
// the one of the form is the handler's business. The texts of strictErrs and of
// err are those of the ordinary decoder for the Go types.
func (f Form) FromRequest(data []byte, defaults *schema.GroupVersionKind, wantStrict bool) (*object.Object, schema.GroupVersionKind, []error, error) {
	decoder := lenient
	if wantStrict {
		decoder = strict
	}
	r, gvk, err := read(data, defaults, decoder)
	if err != nil {
		return nil, gvk, nil, err
	}
	scheme.Default(r.typed)
	o, err := r.object(stable)
	return o, gvk, r.complaints, err
}

// stored is how definitions begin that this package has written. No other
// program begins so: upstream writes kind first.
var stored = []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{`)

// FromStorage reads what etcd holds: as it is, if it is ours; otherwise what
// upstream has written, in v1 or, very long ago, in v1beta1.
func (f Form) FromStorage(data []byte) (*object.Object, error) {
	if bytes.HasPrefix(data, stored) {
		return object.FromJSON(data)
	}
	r, _, err := read(data, nil, lenient)
	if err != nil {
		return nil, err
	}
	scheme.Default(r.typed)
	return r.object(stable)
}

// Types has the Go types of both versions. They have a protobuf form, which is
// what generated clients use.
func (f Form) Types() *runtime.Scheme { return scheme }

// Fresh returns o: definitions have one shape.
func (f Form) Fresh(o *object.Object) *object.Object { return o }

// reading is a definition that has been decoded, and where from.
type reading struct {
	typed      runtime.Object // of v1 or v1beta1
	source     []byte
	survey     survey
	complaints []error // of the strict decoder
}

var errCostly = errors.New("the definition is too large for how deeply it is nested")

// read decodes a definition of either version. The kind that the data says it
// is comes with errors, too, as far as it is known.
func read(data []byte, defaults *schema.GroupVersionKind, decoder runtime.Decoder) (*reading, schema.GroupVersionKind, error) {
	r := &reading{source: data}
	// Data that is not JSON is left to the decoder, for its words.
	if doc, err := jsondoc.Parse(data, jsondoc.Limits{}); err == nil {
		r.survey = explore(doc)
		doc.Release()
		if r.survey.work > maxWork {
			return nil, schema.GroupVersionKind{}, errCostly
		}
	}
	typed, known, err := decoder.Decode(data, defaults, nil)
	var gvk schema.GroupVersionKind
	if known != nil {
		gvk = *known
	}
	if err != nil {
		problems, ok := runtime.AsStrictDecodingError(err)
		if !ok || typed == nil {
			return nil, gvk, err
		}
		for _, p := range problems.Errors() {
			if !aboutKeyword(p) {
				r.complaints = append(r.complaints, p)
			}
		}
	}
	switch typed.(type) {
	case *v1.CustomResourceDefinition, *v1beta1.CustomResourceDefinition:
	default:
		// Something else of the group: a list, say. The conversion has the words.
		if _, err := internal(typed); err != nil {
			return nil, gvk, err
		}
		return nil, gvk, fmt.Errorf("a %s is not a %s", gvk.Kind, kind)
	}
	typed.GetObjectKind().SetGroupVersionKind(gvk) // the data need not say it
	r.typed = typed
	return r, gvk, nil
}

// aboutKeyword reports whether the strict decoder complains about a keyword of
// a schema that is kept.
func aboutKeyword(complaint error) bool {
	text, ok := strings.CutPrefix(complaint.Error(), `unknown field "spec.`)
	if !ok || !strings.Contains(text, "openAPIV3Schema.") {
		return false
	}
	for _, k := range Keywords {
		if strings.HasSuffix(text, "."+k+`"`) {
			return true
		}
	}
	return false
}

// object returns the definition in a version.
func (r *reading) object(gv schema.GroupVersion) (*object.Object, error) {
	typed, err := inVersion(r.typed, gv)
	if err != nil {
		return nil, err
	}
	from := r.typed.GetObjectKind().GroupVersionKind().GroupVersion()
	data, err := r.render(typed, from, gv)
	if err != nil {
		return nil, err
	}
	o, err := object.FromJSON(data)
	if err != nil {
		return nil, err
	}
	if old, ok := r.typed.(*v1beta1.CustomResourceDefinition); ok && gv == stable {
		complaints, err := complain(old)
		if err != nil {
			return nil, err
		}
		if len(complaints) > 0 {
			o.SetStamp(&notes{beta: complaints})
		}
	}
	return o, nil
}
