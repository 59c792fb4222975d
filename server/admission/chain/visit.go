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

// veiled is an object that does not show its kind. Plugins convert an object
// unless it says that it is of the kind they want: this one is always converted,
// by [interfaces.Convert], and not before somebody needs it.
type veiled struct {
	*object.Object
	seen []*unstructured.Unstructured // as plugins have seen it, a version each
}

// GetObjectKind implements runtime.Object.
func (*veiled) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (v *veiled) DeepCopyObject() runtime.Object { return &veiled{Object: v.Object.DeepCopy()} }

// Plugins that are asked twice compare what they had left behind with what they
// find.
func init() {
	err := equality.Semantic.AddFunc(func(a, b veiled) bool { return equality.Semantic.DeepEqual(a.Object, b.Object) })
	if err != nil {
		panic(err)
	}
}

// visit is one request on its way through the plugins.
type visit struct {
	admission.Attributes
	scope       admission.ObjectInterfaces
	object, old veiled
	lost        []any // what plugins have added and the schema does not specify
}

// shown returns how plugins see a request. One about an object of a Go type
// stays as it is, but for scales: they are of a Go type and the scope that they
// come in is not.
func shown(a admission.Attributes, o admission.ObjectInterfaces) (admission.Attributes, admission.ObjectInterfaces) {
	now, ok := a.GetObject().(*object.Object)
	old, wasOurs := a.GetOldObject().(*object.Object)
	if !ok && !wasOurs && !isScale(a.GetObject()) && !isScale(a.GetOldObject()) {
		return a, o
	}
	v := &visit{Attributes: a, scope: o}
	v.object.Object, v.old.Object = now, old
	return v, interfaces{v}
}

func isScale(obj runtime.Object) bool {
	_, ok := obj.(*autoscaling.Scale)
	return ok
}

// GetObject implements admission.Attributes.
func (v *visit) GetObject() runtime.Object {
	if v.object.Object == nil {
		return v.Attributes.GetObject()
	}
	return &v.object
}

// GetOldObject implements admission.Attributes.
func (v *visit) GetOldObject() runtime.Object {
	if v.old.Object == nil {
		return v.Attributes.GetOldObject()
	}
	return &v.old
}

// as returns the object in a version, as a map that must not be changed.
func (v *veiled) as(gvk schema.GroupVersionKind, convertor runtime.ObjectConvertor) (*unstructured.Unstructured, error) {
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
