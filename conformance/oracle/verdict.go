package oracle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// Path is where the reference reports the schema of a CRD with one version: conversion hoists it out of spec.versions.
const Path = "spec.validation.openAPIV3Schema"

// A Result is what the reference says about a schema. The lists hold rendered field errors, sorted.
type Result struct {
	// Undecodable is set when the document cannot be read as a JSONSchemaProps at all; the lists are then empty.
	Undecodable error
	// Errors are the structural and syntactic errors.
	Errors []string
	// Defaults are the errors about default values that do not fit their schema.
	Defaults []string
	// CEL are the errors of compiling rules and of estimating their cost.
	CEL []string
	// Panic is set when the reference crashed; the lists are then empty.
	Panic any
	// Elsewhere are errors outside the schema. There should be none: the CRD around it is well-formed.
	Elsewhere []string
}

// Check returns the reference's result for one openAPIV3Schema of a CRD that has, or has not, the status subresource.
func Check(schemaJSON []byte, status bool) (v Result) {
	defer func() {
		if p := recover(); p != nil {
			v = Result{Panic: crashed(p)}
		}
	}()
	props, err := decode(schemaJSON)
	if err != nil {
		return Result{Undecodable: err}
	}
	internal, err := convert(props)
	if err != nil {
		return Result{Undecodable: err}
	}
	crd, err := wrap(props, status)
	if err != nil {
		return Result{Undecodable: err}
	}
	v.Defaults = defaultErrors(internal)
	subtract := count(v.Defaults)
	for _, e := range validation.ValidateCustomResourceDefinition(context.Background(), crd) {
		if _, ok := e.BadValue.(apiextensions.JSONSchemaProps); ok {
			// The dump of a whole schema. By now the step that validates defaults has normalized some of the defaults
			// that it shares with the dump; show them as they were written.
			e.BadValue = *internal
		}
		text := render(e)
		switch {
		case !strings.HasPrefix(e.Field, "spec.validation"):
			v.Elsewhere = append(v.Elsewhere, text)
		case isCEL(e):
			v.CEL = append(v.CEL, text)
		case subtract[text] > 0:
			subtract[text]--
		case len(v.Defaults) > 0 && isDefault(e):
			// Of several things that are wrong with a default the step names a random one, so that its second run may
			// say something else than its first.
		default:
			v.Errors = append(v.Errors, text)
		}
	}
	slices.Sort(v.Errors)
	slices.Sort(v.CEL)
	return v
}

// decode reads the schema the way the API server reads a CRD: case-sensitively, ignoring what it does not know.
func decode(schemaJSON []byte) (*apiextensionsv1.JSONSchemaProps, error) {
	if t := bytes.Trim(schemaJSON, " \t\r\n"); len(t) == 0 || t[0] != '{' && string(t) != "null" {
		return nil, errors.New("the schema is not a JSON object")
	}
	props := &apiextensionsv1.JSONSchemaProps{}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(schemaJSON, props); err != nil {
		return nil, err
	}
	return props, nil
}

func convert(props *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props, internal, nil); err != nil {
		return nil, err
	}
	return internal, nil
}

// wrap puts the schema into the smallest CRD that is valid otherwise.
func wrap(props *apiextensionsv1.JSONSchemaProps, status bool) (*apiextensions.CustomResourceDefinition, error) {
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: "v1", Served: true, Storage: true,
		Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: props},
	}
	if status {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "trees.orchard.example"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group:    "orchard.example",
			Scope:    apiextensionsv1.NamespaceScoped,
			Names:    apiextensionsv1.CustomResourceDefinitionNames{Plural: "trees", Kind: "Tree"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
		},
	}
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	crd.Status.StoredVersions = []string{"v1"}
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(crd, internal, nil); err != nil {
		return nil, err
	}
	return internal, nil
}

// defaultErrors runs the step that validates defaults under the condition under which the reference runs it.
func defaultErrors(internal *apiextensions.JSONSchemaProps) []string {
	path := field.NewPath("spec", "validation", "openAPIV3Schema")
	s, err := schema.NewStructural(internal.DeepCopy())
	if err != nil || len(schema.ValidateStructural(path, s)) > 0 {
		return nil
	}
	errs, err := defaulting.ValidateDefaults(context.Background(), path, s, true, true)
	if err != nil {
		return []string{render(field.Invalid(path, "", err.Error()))}
	}
	var texts []string
	for _, e := range errs {
		texts = append(texts, render(e))
	}
	slices.Sort(texts)
	return texts
}

var (
	inBrackets   = regexp.MustCompile(`\[[^\]]*\]`)
	belowDefault = regexp.MustCompile(`\.default(\.|$)`)
)

// isDefault tells the errors about a default's value from the syntactic ones at the same place: those forbid the
// default, or require one for a key of a list.
func isDefault(e *field.Error) bool {
	return e.Type != field.ErrorTypeForbidden && e.Type != field.ErrorTypeRequired &&
		belowDefault.MatchString(inBrackets.ReplaceAllString(e.Field, ""))
}

// isCEL tells the errors of CEL compilation and cost from everything else. The syntactic errors at the same places
// are: a blank rule ("rule is not specified"), a blank messageExpression (Required), message, reason and fieldPath.
func isCEL(e *field.Error) bool {
	const total = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
	if e.Field == Path {
		return e.Type == field.ErrorTypeForbidden && strings.HasPrefix(e.Detail, total)
	}
	i := strings.LastIndex(e.Field, ".x-kubernetes-validations")
	if i < 0 {
		return false
	}
	rest := e.Field[i+len(".x-kubernetes-validations"):]
	switch {
	case rest == "":
		return e.Type == field.ErrorTypeInternal
	case !strings.HasPrefix(rest, "["):
		return false
	case strings.HasSuffix(rest, "].rule"):
		return e.Detail != "rule is not specified"
	case strings.HasSuffix(rest, "].messageExpression"):
		return e.Type != field.ErrorTypeRequired
	}
	return strings.HasSuffix(rest, "].optionalOldSelf")
}

// The root type of a schema's CEL environment is named after the time of its construction.
var selfType = regexp.MustCompile(`selfType\d+`)

func render(e *field.Error) string {
	text := e.Error()
	if strings.Contains(text, "selfType") {
		text = selfType.ReplaceAllString(text, "selfType")
	}
	return text
}

func count(texts []string) map[string]int {
	if len(texts) == 0 {
		return nil
	}
	m := make(map[string]int, len(texts))
	for _, t := range texts {
		m[t]++
	}
	return m
}

// All returns every error about the schema, sorted.
func (v Result) All() []string {
	all := slices.Concat(v.Errors, v.Defaults, v.CEL)
	slices.Sort(all)
	return all
}

// Accepted reports whether the reference would serve the schema, CEL and the values of defaults aside.
func (v Result) Accepted() bool { return v.Undecodable == nil && v.Panic == nil && len(v.Errors) == 0 }

// String renders the result for a reproducer.
func (v Result) String() string {
	if v.Undecodable != nil {
		return "undecodable: " + v.Undecodable.Error()
	}
	if v.Panic != nil {
		return fmt.Sprint("panic: ", v.Panic)
	}
	all := v.All()
	if len(all) == 0 {
		return "accepted"
	}
	return fmt.Sprintf("%d errors:\n  %s", len(all), strings.Join(all, "\n  "))
}
