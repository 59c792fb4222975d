package customresourcedefinition

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/espalier-dev/espalier/crd"
	"github.com/espalier-dev/espalier/crd/conversion"
	"github.com/espalier-dev/espalier/finding"
	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/controllers/crdcontroller"
	"github.com/espalier-dev/espalier/server/webhook"
)

// notes are the marker of a CRD during a request.
type notes struct {
	beta     field.ErrorList // what complain has found
	warnings []string        // for the client
	checked  bool            // warnings are known
	patch    outcome         // of a strategic merge patch
}

func notesOf(o *object.Object) notes {
	if n, ok := o.Stamp().(*notes); ok {
		return *n
	}
	return notes{}
}

// strategy is the strategy for creating, changing and deleting CRDs.
type strategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var (
	_ rest.RESTCreateStrategy              = strategy{}
	_ rest.CreateUpdateResetFieldsStrategy = strategy{}
	_ rest.RESTDeleteStrategy              = strategy{}
	_ rest.UpdateResetFieldsStrategy       = statusStrategy{}
)

// NamespaceScoped is false.
func (strategy) NamespaceScoped() bool { return false }

// GetResetFields lists status, which clients cannot set here.
func (strategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set { return resetInAll("status") }

func resetInAll(names ...string) map[fieldpath.APIVersion]*fieldpath.Set {
	set := fieldpath.NewSet()
	for _, name := range names {
		set.Insert(fieldpath.MakePathOrDie(name))
	}
	return map[fieldpath.APIVersion]*fieldpath.Set{
		fieldpath.APIVersion(stable.String()): set,
		fieldpath.APIVersion(beta.String()):   set,
	}
}

// PrepareForCreate starts with an empty status.
func (strategy) PrepareForCreate(_ context.Context, obj runtime.Object) {
	o := obj.(*object.Object)
	n := notesOf(o)
	o.SetGeneration(1)
	crdcontroller.SetStatus(o, &v1.CustomResourceDefinitionStatus{StoredVersions: withStorageVersion(o, nil)})
	o.SetStamp(&n)
}

// PrepareForUpdate keeps the status, and counts changes of the spec.
func (strategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, before := obj.(*object.Object), old.(*object.Object)
	n := notesOf(o)
	o.SetMember("status", before.Member("status"))
	if !o.SameBody(before, "status") {
		o.SetGeneration(before.GetGeneration() + 1)
	}
	if status, err := crdcontroller.StatusOf(o); err == nil {
		if list := withStorageVersion(o, status.StoredVersions); len(list) != len(status.StoredVersions) {
			status.StoredVersions = list
			crdcontroller.SetStatus(o, status)
		}
	}
	o.SetStamp(&n)
}

// withStorageVersion returns stored with the storage version of a CRD.
func withStorageVersion(o *object.Object, stored []string) []string {
	d, err := crd.Parse(o.JSON())
	if err != nil {
		return stored
	}
	defer d.Release()
	v := d.StorageVersion()
	if v == nil || slices.Contains(stored, v.Name) {
		return stored
	}
	return append(slices.Clip(stored), v.Name)
}

// Validate returns the errors that `espalier check` reports.
func (strategy) Validate(ctx context.Context, obj runtime.Object) field.ErrorList {
	return validate(ctx, obj.(*object.Object), nil)
}

// ValidateUpdate returns the errors that `espalier check` reports for a change of a CRD.
func (strategy) ValidateUpdate(ctx context.Context, obj, old runtime.Object) field.ErrorList {
	return validate(ctx, obj.(*object.Object), old.(*object.Object))
}

func validate(ctx context.Context, o, old *object.Object) field.ErrorList {
	n := notesOf(o)
	found, err := findings(o, old)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	if inBeta(ctx) {
		if found, err = concede(o, found); err != nil {
			return field.ErrorList{field.InternalError(nil, err)}
		}
	}
	n.warnings, n.checked = warnings(found), true
	o.SetStamp(&n)
	errs := append(errorsOf(found), indexErrors(o, old)...)
	if inBeta(ctx) {
		errs = append(errs, n.beta...)
	}
	return errs
}

// indexErrors says what is wrong with the indexes that a CRD declares. A declaration that the server has
// accepted before is wrong only if it names a field that is no longer selectable.
func indexErrors(o, old *object.Object) field.ErrorList {
	declared, ok := o.GetAnnotations()[catalog.IndexesAnnotation]
	if !ok {
		return nil
	}
	d, err := crd.Parse(o.JSON())
	if err != nil {
		return nil // findings says so
	}
	defer d.Release()
	if _, err = catalog.Indexes(d); err == nil {
		return nil
	}
	if old != nil && old.GetAnnotations()[catalog.IndexesAnnotation] == declared {
		if before, wrong := crd.Parse(old.JSON()); wrong == nil {
			defer before.Release()
			if _, wrong := catalog.Indexes(before); wrong != nil {
				return nil
			}
		}
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata", "annotations").Key(catalog.IndexesAnnotation), declared, err.Error())}
}

func findings(o, old *object.Object) ([]finding.Finding, error) {
	d, err := crd.Parse(o.JSON())
	if err != nil {
		return nil, err
	}
	defer d.Release()
	options := crd.ValidateOptions{Verbatim: true}
	if old != nil {
		if options.Old, err = crd.Parse(old.JSON()); err != nil {
			return nil, fmt.Errorf("failed to parse the CRD before the change: %w", err)
		}
		defer options.Old.Release()
	}
	found, err := crd.Validate(d, options)
	if err != nil || len(finding.Errors(found)) > 0 {
		return found, err
	}
	return withRules(d, options.Old, found)
}

// withRules adds what is wrong with conversion rules. A CRD that is updated for another reason than its versions or
// its rules is not refused because of rules that the server has accepted before.
func withRules(d, old *crd.CRD, found []finding.Finding) ([]finding.Finding, error) {
	_, wrong, err := conversion.Compile(d)
	if err != nil || len(wrong) == 0 {
		return found, err
	}
	if old != nil && old.Annotations[conversion.Annotation] == d.Annotations[conversion.Annotation] && slices.EqualFunc(d.Versions, old.Versions,
		func(a, b crd.Version) bool { return a.Name == b.Name && bytes.Equal(a.Schema, b.Schema) }) {
		return found, nil
	}
	return append(found, wrong...), nil
}

// inBeta reports whether a request is to v1beta1.
func inBeta(ctx context.Context) bool {
	info, ok := request.RequestInfoFrom(ctx)
	return ok && info.APIVersion == beta.Version
}

// errorsOf returns the findings that are errors, in their order.
func errorsOf(found []finding.Finding) field.ErrorList {
	var list field.ErrorList
	for i := range found {
		if f := &found[i]; f.Severity == finding.Error {
			list = append(list, &field.Error{Type: f.Type, Field: f.Path, BadValue: f.BadValue, Detail: f.Detail})
		}
	}
	return list
}

// warnings returns the warnings of upstream for clients on success, each text once.
// Other findings are reported only by `espalier check`.
func warnings(found []finding.Finding) []string {
	var formats, sets []string
	for i := range found {
		switch f := &found[i]; f.Check {
		case "format-unrecognized":
			formats = append(formats, f.Detail)
		case "list-set-objects":
			sets = append(sets, f.Detail)
		}
	}
	slices.Sort(formats)
	slices.Sort(sets)
	return append(slices.Compact(formats), slices.Compact(sets)...)
}

// warnOfService warns of a conversion webhook that cannot be called.
func warnOfService(o *object.Object) []string {
	if service := o.Lookup("spec", "conversion", "webhook", "clientConfig", "service"); service == nil || string(service) == "null" {
		return nil
	}
	return []string{webhook.ServiceWarning(field.NewPath("spec", "conversion", "webhook", "clientConfig"))}
}

// WarningsOnCreate warns of formats and lists that do less than they seem to, and of
// webhooks that cannot be called.
func (strategy) WarningsOnCreate(_ context.Context, obj runtime.Object) []string {
	return warningsFor(obj.(*object.Object), nil)
}

// WarningsOnUpdate returns the warnings that the former CRD did not have.
func (strategy) WarningsOnUpdate(_ context.Context, obj, old runtime.Object) []string {
	return warningsFor(obj.(*object.Object), old.(*object.Object))
}

func warningsFor(o, old *object.Object) []string {
	if n := notesOf(o); n.checked {
		return append(warnOfService(o), n.warnings...)
	}
	found, err := findings(o, old)
	if err != nil {
		return nil // validation has reported it
	}
	return append(warnOfService(o), warnings(found)...)
}

// AllowCreateOnUpdate is false: only POST and apply create.
func (strategy) AllowCreateOnUpdate(context.Context) bool { return false }

// AllowUnconditionalUpdate is false: a PUT says what it changes.
func (strategy) AllowUnconditionalUpdate(context.Context) bool { return false }

// Canonicalize does nothing: CRDs are canonical from the start.
func (strategy) Canonicalize(runtime.Object) {}

// statusStrategy is the strategy for changing the status of CRDs.
type statusStrategy struct{ strategy }

// GetResetFields lists spec and metadata, which clients cannot set here.
func (statusStrategy) GetResetFields() map[fieldpath.APIVersion]*fieldpath.Set {
	return resetInAll("metadata", "spec")
}

// PrepareForUpdate keeps the spec and the metadata. Upstream means to keep the
// metadata as well and does not (kubernetes/kubernetes#137681). With rights on the
// status alone, a client could delete the CRD and its objects by an owner reference
// to something that does not exist.
func (statusStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	o, before := obj.(*object.Object), old.(*object.Object)
	o.SetMember("spec", before.Member("spec"))
	metav1.ResetObjectMetaForStatus(o, before)
}

// controllerStrategy is for the server's own CRD controller, which changes the status
// and removes its finalizer in one write.
type controllerStrategy struct{ statusStrategy }

// PrepareForUpdate keeps the spec.
func (controllerStrategy) PrepareForUpdate(_ context.Context, obj, old runtime.Object) {
	obj.(*object.Object).SetMember("spec", old.(*object.Object).Member("spec"))
}

// ValidateUpdate validates metadata and the accepted names. It does not validate the
// spec, which does not change.
func (statusStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	found, err := findings(withoutVersions(obj.(*object.Object)), withoutVersions(old.(*object.Object)))
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return errorsOf(slices.DeleteFunc(found, func(f finding.Finding) bool {
		p := field.NewPath("status", "acceptedNames").String()
		about := f.Check == "object-metadata" || len(f.Path) >= len(p) && f.Path[:len(p)] == p
		return !about
	}))
}

// withoutVersions returns a CRD without what makes it large.
func withoutVersions(o *object.Object) *object.Object {
	o = o.DeepCopy()
	o.SetMember("spec", []byte(`{}`))
	return o
}

// WarningsOnUpdate has none.
func (statusStrategy) WarningsOnUpdate(context.Context, runtime.Object, runtime.Object) []string {
	return nil
}

// attributes returns the labels and fields that selectors may name.
func attributes(obj runtime.Object) (labels.Set, fields.Set, error) {
	o, ok := obj.(*object.Object)
	if !ok {
		return nil, nil, fmt.Errorf("a %T is not a CRD", obj)
	}
	return o.GetLabels(), generic.ObjectMetaFieldsSet(&metav1.ObjectMeta{Name: o.GetName()}, true), nil
}
