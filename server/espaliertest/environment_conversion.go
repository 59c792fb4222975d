package espaliertest

import (
	"reflect"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// convertBy makes the webhook of the test convert the CRDs whose types are convertible,
// and removes the conversion of others: the conversion in a manifest is for the cluster
// that it was written for. CRDs whose objects have no schema stay as they are.
func (o *WebhookInstallOptions) convertBy(types *runtime.Scheme, definitions []*apiextensions.CustomResourceDefinition) {
	if len(o.LocalServingCAData) == 0 {
		return
	}
	url := o.url("/convert")
	convertible := convertibles(types)
	for _, d := range definitions {
		kind := schema.GroupKind{Group: d.Spec.Group, Kind: d.Spec.Names.Kind}
		switch {
		case d.Spec.PreserveUnknownFields:
		case !convertible[kind] && !o.IgnoreSchemeConvertible:
			d.Spec.Conversion = nil
		default:
			d.Spec.Conversion = &apiextensions.CustomResourceConversion{
				Strategy: apiextensions.WebhookConverter,
				Webhook: &apiextensions.WebhookConversion{
					ClientConfig:             &apiextensions.WebhookClientConfig{URL: &url, CABundle: o.LocalServingCAData},
					ConversionReviewVersions: []string{"v1", "v1beta1"},
				},
			}
		}
	}
}

// convertibles are the kinds of several versions that have one hub, which all other
// versions convert to and from.
func convertibles(types *runtime.Scheme) map[schema.GroupKind]bool {
	type versions struct{ hubs, spokes, others int }
	kinds := map[schema.GroupKind]*versions{}
	for gvk, t := range types.AllKnownTypes() {
		v := kinds[gvk.GroupKind()]
		if v == nil {
			v = &versions{}
			kinds[gvk.GroupKind()] = v
		}
		switch object := reflect.PointerTo(t); {
		case object.Implements(hub):
			v.hubs++
		case isSpoke(object):
			v.spokes++
		default:
			v.others++
		}
	}
	found := map[schema.GroupKind]bool{}
	for kind, v := range kinds {
		found[kind] = v.hubs == 1 && v.spokes > 0 && v.others == 0
	}
	return found
}

// hub is what controller-runtime asks of the type of the version that all others are
// converted to and from.
var hub = reflect.TypeFor[interface {
	runtime.Object
	Hub()
}]()

// isSpoke reports whether a type converts to and from a hub. The name of the
// argument's type belongs to controller-runtime, which this module does without, so
// that it is known by what it asks for.
func isSpoke(object reflect.Type) bool {
	to, ok := object.MethodByName("ConvertTo")
	if !ok || !takesHub(to.Type) {
		return false
	}
	from, ok := object.MethodByName("ConvertFrom")
	return ok && takesHub(from.Type)
}

// takesHub reports whether a method is of the form func(Hub) error. Its first
// argument is the receiver.
func takesHub(method reflect.Type) bool {
	return method.NumIn() == 2 && method.NumOut() == 1 && !method.IsVariadic() &&
		method.In(1).Kind() == reflect.Interface && method.In(1).Implements(hub) &&
		method.Out(0) == reflect.TypeFor[error]()
}
