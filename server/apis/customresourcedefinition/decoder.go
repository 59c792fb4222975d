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

// Decoder decodes CRDs from requests in one version, and CRDs from etcd. The result is
// always v1. It is safe for concurrent use.
type Decoder struct{ version schema.GroupVersion }

// NewDecoder returns the decoder of a version, v1 or v1beta1.
func NewDecoder(version string) Decoder {
	return Decoder{schema.GroupVersion{Group: stable.Group, Version: version}}
}

// Kind is the kind in requests and responses.
func (f Decoder) Kind() schema.GroupVersionKind { return f.version.WithKind(kind) }

// FromRequest decodes the JSON of a request body, of either version. The handler checks
// that it is the requested version. The texts of strictErrs and of err are those of the
// ordinary decoder for the Go types.
func (f Decoder) FromRequest(data []byte, defaults *schema.GroupVersionKind, wantStrict bool) (*object.Object, schema.GroupVersionKind, []error, error) {
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

// stored is the beginning of CRDs that this package has written. Other programs write
// another one: upstream writes kind first.
var stored = []byte(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{`)

// FromStorage decodes a stored CRD. One that this package has written is used unchanged.
// One that upstream has written is decoded, from v1 or v1beta1.
func (f Decoder) FromStorage(data []byte) (*object.Object, error) {
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

// Types has the Go types of both versions. They have a protobuf encoding, which
// generated clients use.
func (f Decoder) Types() *runtime.Scheme { return scheme }

// Renormalize returns o: the schema of CRDs does not change.
func (f Decoder) Renormalize(o *object.Object) *object.Object { return o }

// reading is a CRD that has been decoded, and where from.
type reading struct {
	typed      runtime.Object // of v1 or v1beta1
	source     []byte
	survey     survey
	complaints []error // of the strict decoder
}

var errCostly = errors.New("the CRD is too large for how deeply it is nested")

// read decodes a CRD of either version. The kind that the data says it
// is comes with errors, too, as far as it is known.
func read(data []byte, defaults *schema.GroupVersionKind, decoder runtime.Decoder) (*reading, schema.GroupVersionKind, error) {
	r := &reading{source: data}
	// The decoder reports data that is not JSON.
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
		// Another kind of the group, such as a list. The conversion reports the error.
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

// object returns the CRD in a version.
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
