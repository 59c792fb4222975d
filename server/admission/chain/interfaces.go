package chain

import (
	"bytes"
	"encoding/json"
	"fmt"

	autoscaling "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	kjson "sigs.k8s.io/json"

	"github.com/espalier-dev/espalier/internal/object"
)

// interfaces creates, converts and defaults the objects of a request for plugins.
type interfaces struct{ *requestAttributes }

var (
	_ admission.ObjectInterfaces = interfaces{}
	_ runtime.ObjectCreater      = interfaces{}
	_ runtime.ObjectConvertor    = interfaces{}
	_ runtime.ObjectDefaulter    = interfaces{}
)

// CRDs are not custom resources: they are not normalized again after the plugins.
const definitions = "apiextensions.k8s.io"

var scaleKind = autoscaling.SchemeGroupVersion.WithKind("Scale")

// GetObjectCreater implements admission.ObjectInterfaces.
func (i interfaces) GetObjectCreater() runtime.ObjectCreater { return i }

// GetObjectTyper implements admission.ObjectInterfaces.
func (i interfaces) GetObjectTyper() runtime.ObjectTyper { return i.scope.GetObjectTyper() }

// GetObjectDefaulter implements admission.ObjectInterfaces.
func (i interfaces) GetObjectDefaulter() runtime.ObjectDefaulter { return i }

// GetObjectConvertor implements admission.ObjectInterfaces.
func (i interfaces) GetObjectConvertor() runtime.ObjectConvertor { return i }

// GetEquivalentResourceMapper implements admission.ObjectInterfaces.
func (i interfaces) GetEquivalentResourceMapper() runtime.EquivalentResourceMapper {
	return i.scope.GetEquivalentResourceMapper()
}

// New implements runtime.ObjectCreater.
func (i interfaces) New(gvk schema.GroupVersionKind) (runtime.Object, error) {
	if gvk == scaleKind {
		return &autoscaling.Scale{}, nil
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// Convert implements runtime.ObjectConvertor: an object becomes the map that a
// plugin sees, and the map that a plugin has made becomes the object.
func (i interfaces) Convert(in, out, _ any) error {
	switch in := in.(type) {
	case *lazyUnstructured:
		if out, ok := out.(*unstructured.Unstructured); ok {
			u, err := in.as(out.GroupVersionKind(), i.scope.GetObjectConvertor())
			if err == nil {
				out.Object = u.Object
			}
			return err
		}
	case *unstructured.Unstructured:
		switch out := out.(type) {
		case *lazyUnstructured:
			return i.accept(in, out)
		case *autoscaling.Scale:
			return runtime.DefaultUnstructuredConverter.FromUnstructured(in.Object, out)
		}
	case *autoscaling.Scale:
		if out, ok := out.(*autoscaling.Scale); ok {
			in.DeepCopyInto(out)
			return nil
		}
	}
	return fmt.Errorf("a %T cannot be created from a %T for admission plugins", out, in)
}

// ConvertToVersion implements runtime.ObjectConvertor, for scales that a policy
// has changed.
func (i interfaces) ConvertToVersion(in runtime.Object, _ runtime.GroupVersioner) (runtime.Object, error) {
	if in.GetObjectKind().GroupVersionKind() != scaleKind {
		return in, nil
	}
	out := &autoscaling.Scale{}
	return out, i.Convert(in, out, nil)
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (i interfaces) ConvertFieldLabel(gvk schema.GroupVersionKind, label, value string) (string, string, error) {
	return i.scope.GetObjectConvertor().ConvertFieldLabel(gvk, label, value)
}

// accept replaces the object by the one that a plugin returns.
func (i interfaces) accept(u *unstructured.Unstructured, v *lazyUnstructured) error {
	fresh, err := bytesOf(u)
	if err != nil {
		return i.refuse(err)
	}
	want, got := v.Object.GroupVersionKind(), fresh.GroupVersionKind()
	switch {
	case got.GroupKind() != want.GroupKind():
		return i.refuse(fmt.Errorf("its kind was changed to %v", got))
	case got != want:
		converted := object.New(want)
		if err := i.scope.GetObjectConvertor().Convert(fresh, converted, nil); err != nil {
			return i.refuse(err)
		}
		fresh = converted
	}
	if bytes.Equal(fresh.JSON(), v.Object.JSON()) {
		return nil
	}
	v.seen = nil
	if i.GetResource().Group == definitions {
		stamp := v.Object.Stamp()
		i.scope.GetObjectDefaulter().Default(fresh)
		if fresh.Stamp() == nil {
			fresh.SetStamp(stamp)
		}
	} else {
		fresh.SetStamp(nil)
	}
	*v.Object = *fresh
	return nil
}

func (i interfaces) refuse(err error) error {
	return apierrors.NewInternalError(fmt.Errorf("the object that admission plugins have made of %s %q is invalid: %w",
		i.Attributes.GetResource().GroupResource(), i.Attributes.GetName(), err))
}

// bytesOf encodes a map as an object.
func bytesOf(u *unstructured.Unstructured) (*object.Object, error) {
	data, err := json.Marshal(u.Object) // canonical, as that of all maps is
	if err != nil {
		return nil, err
	}
	return object.FromJSON(data)
}

// Default implements runtime.ObjectDefaulter. The plugins after one that has
// changed an object see it normalized by its schema. Pruned fields are recorded: see
// [requestAttributes.tell].
func (i interfaces) Default(in runtime.Object) {
	u, ok := in.(*unstructured.Unstructured)
	if !ok {
		return // scales have no defaults
	}
	o, err := bytesOf(u)
	if err != nil {
		return // and refused when it comes back
	}
	i.scope.GetObjectDefaulter().Default(o)
	content, err := mapOf(o)
	if err != nil {
		return
	}
	// In another version the same path may be another field.
	if i.object.Object != nil && u.GroupVersionKind() == i.object.GroupVersionKind() && i.GetResource().Group != definitions {
		if lost := missing(content, u.Object); lost != nil {
			i.lost = append(i.lost, lost)
		}
	}
	u.Object = content
}

// tell puts the fields that were pruned between plugins back into the object. The
// caller of the chain prunes them again and reports them in one place: to the client,
// the audit log and the metrics.
func (v *requestAttributes) tell() error {
	if len(v.lost) == 0 {
		return nil
	}
	content, err := mapOf(v.object.Object)
	if err != nil {
		return err
	}
	for _, lost := range v.lost {
		restore(content, lost)
	}
	fresh, err := bytesOf(&unstructured.Unstructured{Object: content})
	if err == nil {
		*v.object.Object = *fresh
	}
	return err
}

// mapOf decodes an object as a map.
func mapOf(o *object.Object) (map[string]any, error) {
	content := map[string]any{}
	err := kjson.UnmarshalCaseSensitivePreserveInts(o.JSON(), &content)
	return content, err
}

// missing returns what only before has, but nulls; nil if there is nothing.
func missing(now, before any) any {
	switch before := before.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		if !ok {
			return nil
		}
		lost := map[string]any{}
		for name, value := range before {
			if current, there := now[name]; there {
				value = missing(current, value)
			}
			if value != nil {
				lost[name] = value
			}
		}
		if len(lost) > 0 {
			return lost
		}
	case []any:
		now, ok := now.([]any)
		if !ok || len(now) != len(before) {
			return nil
		}
		lost, some := make([]any, len(before)), false
		for n := range before {
			lost[n] = missing(now[n], before[n])
			some = some || lost[n] != nil
		}
		if some {
			return lost
		}
	}
	return nil
}

// restore adds to now what only before has, but nulls.
func restore(now, before any) {
	switch before := before.(type) {
	case map[string]any:
		now, ok := now.(map[string]any)
		if !ok {
			return
		}
		for name, value := range before {
			if current, there := now[name]; there {
				restore(current, value)
			} else if value != nil {
				now[name] = value
			}
		}
	case []any:
		now, ok := now.([]any)
		if !ok || len(now) != len(before) {
			return
		}
		for n := range before {
			restore(now[n], before[n])
		}
	}
}
