package codec

import (
	"encoding/json"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/internal/object"
)

// parameterScheme knows the options that come as query parameters of requests
// for a group and version.
func parameterScheme(gv schema.GroupVersion) *runtime.Scheme {
	scheme := runtime.NewScheme()
	scheme.AddUnversionedTypes(gv, &metav1.ListOptions{}, &metav1.GetOptions{}, &metav1.DeleteOptions{})
	utilruntime.Must(metav1.RegisterConversions(scheme))
	return scheme
}

// sharedOptions are the options of all resources that have no scheme of their own, which
// takes more memory than all else of a custom resource that is served.
var sharedOptions = sync.OnceValue(func() *runtime.Scheme { return parameterScheme(metav1.SchemeGroupVersion) })

// SharedParameters returns the codec of query parameters of these resources.
var SharedParameters = sync.OnceValue(func() runtime.ParameterCodec { return runtime.NewParameterCodec(sharedOptions()) })

// SharedTyper is [Typer] for these resources.
func SharedTyper(gvk schema.GroupVersionKind) runtime.ObjectTyper { return typer{gvk, sharedOptions()} }

// Parameters returns the codec of query parameters.
func Parameters(gv schema.GroupVersion) runtime.ParameterCodec {
	return runtime.NewParameterCodec(parameterScheme(gv))
}

type creater struct{}

// Creater makes empty objects of any kind.
func Creater() runtime.ObjectCreater { return creater{} }

// New implements runtime.ObjectCreater.
func (creater) New(gvk schema.GroupVersionKind) (runtime.Object, error) { return object.New(gvk), nil }

type typer struct {
	gvk     schema.GroupVersionKind
	options *runtime.Scheme
}

// Typer returns the kinds of objects. An object without a kind is a gvk.
func Typer(gvk schema.GroupVersionKind) runtime.ObjectTyper {
	return typer{gvk, parameterScheme(gvk.GroupVersion())}
}

// ObjectKinds implements runtime.ObjectTyper.
func (t typer) ObjectKinds(obj runtime.Object) ([]schema.GroupVersionKind, bool, error) {
	switch obj.(type) {
	case *object.Object, *object.List, runtime.Unstructured:
	default:
		return t.options.ObjectKinds(obj)
	}
	gvk := obj.GetObjectKind().GroupVersionKind()
	if gvk.Kind == "" {
		if _, ok := obj.(*object.List); ok {
			gvk = t.gvk.GroupVersion().WithKind(t.gvk.Kind + "List")
		} else {
			gvk = t.gvk
		}
	}
	if gvk.Version == "" {
		return nil, false, runtime.NewMissingVersionErr("object has no apiVersion field")
	}
	return []schema.GroupVersionKind{gvk}, false, nil
}

// Recognizes implements runtime.ObjectTyper.
func (t typer) Recognizes(gvk schema.GroupVersionKind) bool {
	return gvk == t.gvk || t.options.Recognizes(gvk)
}

type defaulter struct{ decoder Decoder }

// Defaulter normalizes objects that others have changed, admission webhooks for
// example.
func Defaulter(f Decoder) runtime.ObjectDefaulter { return defaulter{f} }

// Default implements runtime.ObjectDefaulter.
func (d defaulter) Default(in runtime.Object) {
	if in.GetObjectKind().GroupVersionKind().GroupKind() != d.decoder.Kind().GroupKind() {
		return
	}
	switch in := in.(type) {
	case *object.Object:
		if renormalized := d.decoder.Renormalize(in); renormalized != in {
			*in = *renormalized
		}
	case *unstructured.Unstructured:
		d.defaultMap(in)
	}
}

// defaultMap completes an object that the library holds as a map. One that
// cannot be read stays as it is: validation says why.
func (d defaulter) defaultMap(u *unstructured.Unstructured) {
	data, err := json.Marshal(u.Object)
	if err != nil {
		return
	}
	o, err := object.FromJSON(data)
	if err != nil {
		return
	}
	content := map[string]any{}
	if kjson.UnmarshalCaseSensitivePreserveInts(d.decoder.Renormalize(o).JSON(), &content) == nil {
		u.Object = content
	}
}
