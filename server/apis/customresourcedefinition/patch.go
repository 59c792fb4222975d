package customresourcedefinition

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/espalier-dev/espalier/internal/object"
)

// patchTypes are the patches that CRDs understand: all, as their Go
// types say how lists are merged.
var patchTypes = []string{
	string(types.JSONPatchType),
	string(types.MergePatchType),
	string(types.StrategicMergePatchType),
	string(types.ApplyYAMLPatchType),
}

// blank is the marker of an object that represents its type. The handlers get one from
// the storage, and convert it, to find out how a strategic patch merges.
type blank struct{}

// blankObject returns the object for rest.Storage.New.
func blankObject() runtime.Object {
	o := object.New(stable.WithKind(kind))
	o.SetStamp(blank{})
	return o
}

// patching is the convertor for strategic merge patches. The handler merges
// maps and makes an object of the result, has it completed by the defaulter,
// and converts it to v1: here it learns what the defaulter has found.
type patching struct{ convertor }

// ConvertToVersion implements runtime.ObjectConvertor.
func (p patching) ConvertToVersion(in runtime.Object, target runtime.GroupVersioner) (runtime.Object, error) {
	o, ok := in.(*object.Object)
	if !ok {
		return p.convertor.ConvertToVersion(in, target)
	}
	if o.Stamp() == any(blank{}) {
		return scheme.New(p.version.WithKind(kind))
	}
	found := notesOf(o).patch
	if found.err != nil {
		return nil, invalidPatch(found.result, found.err)
	}
	out, err := p.convertor.ConvertToVersion(o, target)
	if err != nil {
		return nil, err
	}
	if converted, ok := out.(*object.Object); ok && converted != o {
		n := notesOf(converted)
		n.patch = found
		converted.SetStamp(&n)
	}
	return out, nil
}

// outcome is what the defaulter has found in an object that was made by a
// patch.
type outcome struct {
	result  []byte // the object as it was
	unknown []error
	err     error // it is no CRD
}

func invalidPatch(result []byte, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(result), err.Error()),
	})
}

// reporting reports the unknown fields of a strategic patch according to
// fieldValidation. For the other patches the handler does so, because it decodes them.
func reporting(change rest.UpdatedObjectInfo, options *metav1.UpdateOptions) rest.UpdatedObjectInfo {
	return rest.WrapUpdatedObjectInfo(change, func(ctx context.Context, obj, _ runtime.Object) (runtime.Object, error) {
		o, ok := obj.(*object.Object)
		if !ok || options == nil || options.FieldValidation == metav1.FieldValidationIgnore {
			return obj, nil
		}
		found := notesOf(o).patch
		if len(found.unknown) > 0 && options.FieldValidation == metav1.FieldValidationStrict {
			return nil, invalidPatch(found.result, runtime.NewStrictDecodingError(found.unknown))
		}
		for _, err := range found.unknown {
			warning.AddWarning(ctx, "", err.Error())
		}
		return obj, nil
	})
}
