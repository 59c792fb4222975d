package chain

import (
	autoscaling "k8s.io/api/autoscaling/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"

	"github.com/espalier-dev/espalier/internal/object"
)

// lazyUnstructured is an object that is decoded into an Unstructured on demand. It
// hides its kind: plugins skip the conversion of objects that already have the kind
// they want, so this one is always converted, by [interfaces.Convert].
type lazyUnstructured struct {
	*object.Object
	seen []*unstructured.Unstructured // as plugins have seen it, one per version
}

// GetObjectKind implements runtime.Object.
func (*lazyUnstructured) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (v *lazyUnstructured) DeepCopyObject() runtime.Object {
	return &lazyUnstructured{Object: v.Object.DeepCopy()}
}

// Plugins that are reinvoked compare the object after their first call with the
// current one.
func init() {
	err := equality.Semantic.AddFunc(func(a, b lazyUnstructured) bool { return equality.Semantic.DeepEqual(a.Object, b.Object) })
	if err != nil {
		panic(err)
	}
}

// requestAttributes is one request on its way through the plugins.
type requestAttributes struct {
	admission.Attributes
	scope       admission.ObjectInterfaces
	object, old lazyUnstructured
	lost        []any // fields that plugins have added and that the schema does not have
}

// shown returns the attributes that plugins see. Those of an object of a Go type stay
// unchanged, except for scales: a scale has a Go type, but its scope is that of a custom
// resource.
func shown(a admission.Attributes, o admission.ObjectInterfaces) (admission.Attributes, admission.ObjectInterfaces) {
	now, ok := a.GetObject().(*object.Object)
	old, wasOurs := a.GetOldObject().(*object.Object)
	if !ok && !wasOurs && !isScale(a.GetObject()) && !isScale(a.GetOldObject()) {
		return a, o
	}
	v := &requestAttributes{Attributes: a, scope: o}
	v.object.Object, v.old.Object = now, old
	return v, interfaces{v}
}

func isScale(obj runtime.Object) bool {
	_, ok := obj.(*autoscaling.Scale)
	return ok
}

// GetObject implements admission.Attributes.
func (v *requestAttributes) GetObject() runtime.Object {
	if v.object.Object == nil {
		return v.Attributes.GetObject()
	}
	return &v.object
}

// GetOldObject implements admission.Attributes.
func (v *requestAttributes) GetOldObject() runtime.Object {
	if v.old.Object == nil {
		return v.Attributes.GetOldObject()
	}
	return &v.old
}

// as returns the object in a version, as a map that must not be changed.
func (v *lazyUnstructured) as(gvk schema.GroupVersionKind, convertor runtime.ObjectConvertor) (*unstructured.Unstructured, error) {
	for _, u := range v.seen {
		if u.GroupVersionKind() == gvk {
			return u, nil
		}
	}
	o := v.Object
	if o.GroupVersionKind() != gvk {
		o = object.New(gvk)
		if err := convertor.Convert(v.Object, o, nil); err != nil {
			return nil, err
		}
	}
	content, err := mapOf(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	v.seen = append(v.seen, u)
	return u, nil
}
