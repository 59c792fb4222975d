package custom

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier"
	"github.com/espalier-dev/espalier/internal/object"
)

// statusStrategy is the strategy for the status subresource: whatever else a
// request says is ignored.
type statusStrategy struct{ *strategy }

// GetResetFields implements rest.ResetFieldsStrategy.
func (s statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return map[fieldpath.APIVersion]*fieldpath.Set{
		apiVersion(s.form.kind): fieldpath.NewSet(fieldpath.MakePathOrDie("metadata"), fieldpath.MakePathOrDie("spec")),
	}
}

// PrepareForUpdate implements rest.RESTUpdateStrategy. The resourceVersion may
// be the old one: that it is the same has been checked.
func (s statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o := obj.(*object.Object)
	status, managed := o.Member("status"), o.GetManagedFields()
	*o = *old.(*object.Object).DeepCopy()
	o.SetManagedFields(managed)
	if status != nil {
		replaceMember(o, "status", status)
	} else {
		dropMember(o, "status")
	}
}

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (s statusStrategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	errs := s.validate(ctx, obj.(*object.Object), old.(*object.Object), statusErrors)
	if s.scale != nil {
		spec := s.scale.specField()
		errs = slices.DeleteFunc(errs, func(e *field.Error) bool { return e.Field == spec })
	}
	if len(errs) == 1 && errs[0].Detail == rulesNotChecked {
		// Nothing is wrong that concerns the status, but for something else in
		// the object rules could not be checked.
		return nil
	}
	return errs
}

// rulesNotChecked is what is said beside errors that rules would stumble over.
const rulesNotChecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// statusErrors has the violations count that keep a status from being written.
// What is wrong with the rest of the object is not the business of whoever
// reports on it; API servers validate the status only, but metadata, rules and
// lists of the whole object.
func statusErrors(v *espalier.Violation) *field.Error {
	switch {
	case v.Keyword == "x-kubernetes-validations", v.Keyword == "x-kubernetes-list-type",
		v.Keyword == "metadata" && below(v.At, "metadata"):
		return v.FieldError()
	case v.Keyword == "metadata", !below(v.At, "status"):
		return nil
	}
	// The values of the status are judged by themselves: the words name them as
	// they are called within it. Only the field says where that is.
	e := v.FieldError()
	if e.Field == (*field.Path)(nil).String() {
		e.Field = "status"
	}
	quote := ""
	if strings.HasPrefix(e.Detail, `"`) {
		quote = `"`
	}
	if rest, ok := strings.CutPrefix(e.Detail, quote+"status"); ok {
		e.Detail = quote + strings.TrimPrefix(rest, ".")
	}
	return e
}

// WarningsOnUpdate implements rest.RESTUpdateStrategy.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// statusREST is the status subresource.
type statusREST struct{ store *genericregistry.Store }

var (
	_ rest.Patcher             = (*statusREST)(nil)
	_ rest.ResetFieldsStrategy = (*statusREST)(nil)
)

// New implements rest.Storage.
func (r *statusREST) New() runtime.Object { return r.store.New() }

// Destroy implements rest.Storage: the store is that of the resource.
func (r *statusREST) Destroy() {}

// Get implements rest.Getter.
func (r *statusREST) Get(ctx context.Context, name string, options *metav1.GetOptions) (runtime.Object, error) {
	return r.store.Get(ctx, name, options)
}

// Update implements rest.Updater. A subresource never creates.
func (r *statusREST) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, create rest.ValidateObjectFunc,
	update rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions,
) (runtime.Object, bool, error) {
	return r.store.Update(ctx, name, info, create, update, false, options)
}

// GetResetFields implements rest.ResetFieldsStrategy.
func (r *statusREST) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return r.store.GetResetFields()
}

// ConvertToTable implements rest.TableConvertor.
func (r *statusREST) ConvertToTable(ctx context.Context, obj, options runtime.Object) (*metav1.Table, error) {
	return r.store.ConvertToTable(ctx, obj, options)
}
