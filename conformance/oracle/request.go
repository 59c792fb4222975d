package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1beta1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apiextensions-apiserver/pkg/crdserverscheme"
	"k8s.io/apiextensions-apiserver/pkg/registry/customresource"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"
	serializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	genericapirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
	kjson "sigs.k8s.io/json"
)

// Verb is what a request does.
type Verb uint8

// The verbs.
const (
	Create Verb = iota
	Update
	UpdateStatus
)

func (v Verb) String() string { return [...]string{"create", "update", "status"}[v] }

// An Operation is one request about an object.
type Operation struct {
	Verb Verb
	Body []byte
	Old  []byte // as it is stored; nil for a new object
}

// An Answer is everything that a client can see of a request, and what is stored after it.
type Answer struct {
	// Refused is why the body is not decoded; nothing else is set then.
	Refused string
	// Foreign is the kind of an object that is of another kind than the resource; nothing else is set then.
	Foreign string
	// Strict are the strict errors: duplicate and unknown fields, sorted.
	Strict []string
	// Stored is the object as validation sees it and as storage keeps it, if it is valid.
	Stored []byte
	Validation
}

// String renders the answer for a reproducer.
func (a *Answer) String() string {
	switch {
	case a.Refused != "":
		return "refused: " + a.Refused
	case a.Foreign != "":
		return "foreign: " + a.Foreign
	case a.Panic != nil:
		return fmt.Sprint("panic: ", a.Panic)
	}
	return fmt.Sprintf("%s\n  strict: %q\n  %s", a.Stored, a.Strict, a.Validation.String())
}

// strategy is what the reference has for a resource, and for its status.
type strategy interface {
	rest.RESTUpdateStrategy
	PrepareForCreate(ctx context.Context, obj runtime.Object)
	Validate(ctx context.Context, obj runtime.Object) field.ErrorList
	WarningsOnCreate(ctx context.Context, obj runtime.Object) []string
}

// A Resource is what the reference builds for a version of a CRD, as its request handler does.
type Resource struct {
	schema     Schema // of decoding; without a structural schema it is nil
	kind       runtimeschema.GroupVersionKind
	namespaced bool
	preserve   bool
	main       strategy
	status     rest.RESTUpdateStrategy // nil without the subresource
}

// NewResource builds what the reference serves a version of a stored CRD with, of v1 or v1beta1. It does not validate the
// CRD.
func NewResource(doc []byte, version string) (*Resource, error) {
	crd, err := served(doc)
	if err != nil {
		return nil, err
	}
	r := &Resource{
		kind:       runtimeschema.GroupVersionKind{Group: crd.Spec.Group, Version: version, Kind: crd.Spec.Names.Kind},
		namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped, preserve: crd.Spec.PreserveUnknownFields,
	}
	val, err := apihelpers.GetSchemaForVersion(crd, version)
	if err != nil {
		return nil, err
	}
	var internal apiextensions.CustomResourceValidation
	if val != nil {
		if err := apiextensionsv1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(val, &internal, nil); err != nil {
			return nil, err
		}
		r.schema.structural, err = schema.NewStructural(internal.OpenAPIV3Schema)
		if err != nil && !r.preserve {
			return nil, err
		}
		if !r.preserve {
			r.schema.structural = r.schema.structural.DeepCopy()
			if err := defaulting.PruneDefaults(r.schema.structural); err != nil {
				return nil, err
			}
		}
	}
	return r, r.strategies(crd, version, internal.OpenAPIV3Schema)
}

// strategies builds the validators and the strategies of a version.
func (r *Resource) strategies(crd *apiextensionsv1.CustomResourceDefinition, version string, props *apiextensions.JSONSchemaProps) error {
	all, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return err
	}
	sub, err := apihelpers.GetSubresourcesForVersion(crd, version)
	if err != nil {
		return err
	}
	var status validation.SchemaValidator
	var internal apiextensions.CustomResourceSubresources
	if sub != nil {
		if err := apiextensionsv1.Convert_v1_CustomResourceSubresources_To_apiextensions_CustomResourceSubresources(sub, &internal, nil); err != nil {
			return err
		}
	}
	if internal.Status != nil && props != nil {
		if s, ok := props.Properties["status"]; ok {
			if status, _, err = validation.NewSchemaValidator(&s); err != nil {
				return err
			}
		}
	}
	main := customresource.NewStrategy(crdserverscheme.NewUnstructuredObjectTyper(), r.namespaced, r.kind, all, status, r.schema.structural, internal.Status, internal.Scale, nil)
	r.main = main
	if internal.Status != nil {
		r.status = customresource.NewStatusStrategy(main)
	}
	return nil
}

// served reads a stored CRD of either version into the form from which the reference serves.
func served(doc []byte) (*apiextensionsv1.CustomResourceDefinition, error) {
	internal := &apiextensions.CustomResourceDefinition{}
	if bytes.Contains(doc, []byte(`"apiextensions.k8s.io/v1beta1"`)) {
		beta := &v1beta1.CustomResourceDefinition{}
		if err := kjson.UnmarshalCaseSensitivePreserveInts(doc, beta); err != nil {
			return nil, err
		}
		v1beta1.SetObjectDefaults_CustomResourceDefinition(beta)
		if err := v1beta1.Convert_v1beta1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(beta, internal, nil); err != nil {
			return nil, err
		}
	} else {
		var err error
		if internal, err = internalCRD(doc); err != nil {
			return nil, err
		}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	return crd, apiextensionsv1.Convert_apiextensions_CustomResourceDefinition_To_v1_CustomResourceDefinition(internal, crd, nil)
}

func (r *Resource) how() coercion {
	if r.preserve {
		return preserving
	}
	return pruning
}

// HasStatus reports whether the status subresource is enabled.
func (r *Resource) HasStatus() bool { return r.status != nil }

var strictJSON = serializer.NewSerializerWithOptions(serializer.DefaultMetaFactory, creator{}, crdserverscheme.NewUnstructuredObjectTyper(), serializer.SerializerOptions{Strict: true})

type creator struct{}

// New implements runtime.ObjectCreater.
func (creator) New(kind runtimeschema.GroupVersionKind) (runtime.Object, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u, nil
}

// decode reads a body with strict field validation.
func (r *Resource) decode(body []byte) (u *unstructured.Unstructured, strict []string, err error) {
	u = &unstructured.Unstructured{}
	kind := r.kind
	_, actual, err := strictJSON.Decode(body, &kind, u)
	if err != nil {
		var stricter interface{ Errors() []error }
		if !runtime.IsStrictDecodingError(err) || !errors.As(err, &stricter) {
			return nil, nil, err
		}
		for _, e := range stricter.Errors() {
			strict = append(strict, e.Error())
		}
	}
	if actual.GroupKind() != r.kind.GroupKind() || actual.Version != r.kind.Version {
		_, err := r.schema.coerce(u.Object, Request, true, foreign)
		return u, nil, err
	}
	unknown, err := r.schema.coerce(u.Object, Request, true, r.how())
	if err != nil {
		return nil, nil, err
	}
	for _, path := range unknown {
		strict = append(strict, `unknown field "`+path+`"`)
	}
	defaulting.Default(u.Object, r.schema.structural)
	slices.Sort(strict)
	return u, strict, nil
}

// What the registry of a server sets on a new object; here always the same.
const UID types.UID = "0c1e"

// Created is the time at which all new objects are created.
var Created = metav1.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const badOld = "old: "

// BadOld says that the request is none: nothing that is stored is like the old object.
func (a *Answer) BadOld() bool { return strings.HasPrefix(a.Refused, badOld) }

// Do makes a request: it decodes the body, prepares the object, validates it and encodes it for storage.
func (r *Resource) Do(q Operation) (a Answer) {
	defer func() {
		if p := recover(); p != nil {
			a = Answer{Validation: Validation{Panic: crashed(p)}}
		}
	}()
	u, strict, err := r.decode(q.Body)
	if err != nil {
		return Answer{Refused: err.Error()}
	}
	if u.GroupVersionKind() != r.kind {
		return Answer{Foreign: u.GroupVersionKind().String()}
	}
	var heard recorder
	ctx := warning.WithWarningRecorder(genericapirequest.WithNamespace(context.Background(), u.GetNamespace()), &heard)
	a.Strict = strict
	var errs field.ErrorList
	var more []string
	if q.Verb == Create {
		u.SetDeletionTimestamp(nil)
		u.SetDeletionGracePeriodSeconds(nil)
		u.SetCreationTimestamp(Created)
		u.SetUID(UID)
		r.main.PrepareForCreate(ctx, u)
		a.Stored = Marshal(u.Object)
		errs = r.main.Validate(ctx, u)
		more = r.main.WarningsOnCreate(ctx, u)
	} else {
		old, err := r.old(q.Old)
		if err != nil {
			return Answer{Refused: badOld + err.Error()}
		}
		by := rest.RESTUpdateStrategy(r.main)
		if q.Verb == UpdateStatus {
			by = r.status
		}
		u.SetManagedFields(nil)
		old.SetManagedFields(nil)
		if err := rest.BeforeUpdate(unchecked{by}, ctx, u, old); err != nil && !apierrors.IsInvalid(err) {
			return Answer{Refused: err.Error()}
		}
		a.Stored = Marshal(u.Object)
		heard = nil
		errs = rest.ValidateUpdate(ctx, u, old, by)
		more = by.WarningsOnUpdate(ctx, u, old)
	}
	for _, e := range errs {
		a.Errors = append(a.Errors, Render(e))
	}
	a.Warnings = heard
	if len(errs) == 0 {
		a.Warnings = append(a.Warnings, more...)
	}
	slices.Sort(a.Errors)
	slices.Sort(a.Warnings)
	return a
}

// old reads an object as the reference reads it from storage.
func (r *Resource) old(stored []byte) (*unstructured.Unstructured, error) {
	obj, err := Decode(stored)
	if err != nil {
		return nil, err
	}
	if _, err := r.schema.coerce(obj, Storage, false, r.how()); err != nil {
		return nil, err
	}
	defaulting.Default(obj, r.schema.structural)
	u := &unstructured.Unstructured{Object: obj}
	if u.GroupVersionKind() != r.kind {
		return nil, errors.New("of another kind")
	}
	if u.GetGeneration() == 0 { // where there is no metadata (DIVERGENCES.md, storage-without-metadata)
		u.SetGeneration(1)
	}
	return u, nil
}

// Restate returns a body that says the same as another one in the form in which storage keeps it, and whether that form
// reads otherwise: a number is written so that its type changes when it is stored.
func (r *Resource) Restate(body []byte) ([]byte, bool) {
	u, _, err := r.decode(body)
	if err != nil {
		return nil, false
	}
	// Metadata stays as it was sent: the year 9999 may be 10000 in UTC, and not be read again.
	if sent, err := Decode(body); err == nil && sent["metadata"] != nil {
		u.Object["metadata"] = sent["metadata"]
	}
	return restated(u.Object)
}

func restated(obj map[string]any) ([]byte, bool) {
	out := Marshal(obj)
	again, err := Decode(out)
	return out, err == nil && !reflect.DeepEqual(obj, again)
}

// unchecked is a strategy whose errors are asked for later.
type unchecked struct{ rest.RESTUpdateStrategy }

// ValidateUpdate implements rest.RESTUpdateStrategy.
func (unchecked) ValidateUpdate(context.Context, runtime.Object, runtime.Object) field.ErrorList {
	return nil
}
