package customresourcedefinition

import (
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/install"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
)

const (
	kind   = "CustomResourceDefinition"
	plural = "customresourcedefinitions"

	// Finalizer keeps a CRD until its objects are deleted.
	Finalizer = "customresourcecleanup.apiextensions.k8s.io"
)

var (
	stable = v1.SchemeGroupVersion      // what CRDs are in memory and in etcd
	beta   = v1beta1.SchemeGroupVersion // what they are for old clients

	groupResource = v1.Resource(plural)
)

// Versions are the versions that are served, the preferred one first.
var Versions = []string{stable.Version, beta.Version}

// scheme has the Go types of all versions.
var scheme = func() *runtime.Scheme {
	s := runtime.NewScheme()
	install.Install(s)
	return s
}()

// The ordinary decoders: their errors are what clients know.
var (
	lenient = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{})
	strict  = json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true})
)

// internal brings a CRD of either version into the type that the
// conversions between versions go through.
func internal(typed runtime.Object) (*apiextensions.CustomResourceDefinition, error) {
	out := &apiextensions.CustomResourceDefinition{}
	return out, scheme.Convert(typed, out, nil)
}

// inVersion converts a CRD of either version to the one of gv.
func inVersion(typed runtime.Object, gv schema.GroupVersion) (runtime.Object, error) {
	var out runtime.Object
	switch x := typed.(type) {
	case *v1.CustomResourceDefinition:
		if gv == stable {
			return x, nil
		}
		out = &v1beta1.CustomResourceDefinition{}
	case *v1beta1.CustomResourceDefinition:
		if gv == beta {
			return x, nil
		}
		out = &v1.CustomResourceDefinition{}
	}
	between, err := internal(typed)
	if err != nil {
		return nil, err
	}
	if err := scheme.Convert(between, out, nil); err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(gv.WithKind(kind))
	return out, nil
}
