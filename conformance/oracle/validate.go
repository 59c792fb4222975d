package oracle

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/api/operation"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/warning"
)

// Scope says which rules the object's own metadata has to follow.
type Scope uint8

const (
	Unscoped   Scope = iota // the object's own metadata is not looked at
	Namespaced              // the resource lives in namespaces
	Cluster                 // it does not
)

func (s Scope) String() string { return [...]string{"unscoped", "namespaced", "cluster"}[s] }

// ValidateOptions are the circumstances of one validation. With an Old object it is an update.
type ValidateOptions struct {
	Old     []byte
	Ratchet bool // ratchet: errors in what has not changed do not fail the update; a server always ratchets
	Scope   Scope
	NoRules bool // leave rules aside
}

// A Validation is what is said about one object.
type Validation struct {
	// Errors are the errors, each as type|field|value|detail|text, sorted.
	Errors []string
	// Warnings are the texts of violated CEL rules that ratcheting turned into warnings, sorted.
	Warnings []string
	// Undecodable is set when the object or the old object is no JSON object.
	Undecodable error
	// Ordered are the errors in the order in which they were found.
	Ordered []string
	// Panic is set when the reference crashed; the lists are then empty.
	Panic any
	// Blocked says that rules were not evaluated because of other errors.
	Blocked bool
	// False and Failed count the rules that were evaluated to false, and those that could not be evaluated.
	False, Failed int
	// Refuted are the fields of those rules' errors.
	Refuted []string
}

// Valid reports whether nothing is wrong with the object.
func (v *Validation) Valid() bool {
	return v.Undecodable == nil && v.Panic == nil && len(v.Errors) == 0
}

// String renders the validation for a reproducer.
func (v *Validation) String() string {
	switch {
	case v.Undecodable != nil:
		return "malformed: " + v.Undecodable.Error()
	case v.Panic != nil:
		return fmt.Sprint("panic: ", v.Panic)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d errors", len(v.Errors))
	for _, e := range v.Errors {
		b.WriteString("\n  " + e)
	}
	for _, w := range v.Warnings {
		b.WriteString("\n  warning: " + w)
	}
	return b.String()
}

// Render is an error as it is compared: everything that a client sees, and the parts it is made of.
func Render(e *field.Error) string {
	value := "<omitted>"
	if _, omitted := e.BadValue.(field.OmitValueType); !omitted {
		if f, ok := e.BadValue.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
			value = fmt.Sprint(f)
		} else if raw, err := json.Marshal(e.BadValue); err == nil {
			value = string(raw)
		} else {
			value = fmt.Sprint(e.BadValue)
		}
	}
	text := strings.Join([]string{string(e.Type), e.Field, value, e.Detail, e.Error()}, "|")
	if strings.Contains(text, "selfType") {
		text = selfType.ReplaceAllString(text, "selfType")
	}
	if strings.Contains(text, "insert failed: key ") {
		text = insertedTwice.ReplaceAllString(text, "insert failed: key (value) already exists")
	}
	return text
}

// A key of a map that is no scalar is shown as Go prints it, with addresses (DIVERGENCES.md, rule-key-text).
var insertedTwice = regexp.MustCompile(`insert failed: key [&{\[].*? already exists`)

// validators are what a server builds once for a version of a CRD.
type validators struct {
	once   sync.Once
	values validation.SchemaValidator
	rules  *cel.Validator
	err    error
}

func (s *Schema) validators() (*validators, error) {
	v := &s.lazy
	v.once.Do(func() {
		if v.values, _, v.err = validation.NewSchemaValidator(s.internal); v.err == nil {
			v.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
		}
	})
	return v, v.err
}

// Prepare builds the validators, which Validate does on first use.
func (s *Schema) Prepare() error {
	_, err := s.validators()
	return err
}

// HasRules reports whether the schema has rules.
func (s *Schema) HasRules() bool {
	v, err := s.validators()
	return err == nil && v.rules != nil
}

// Validate says what the reference's strategy for custom resources says about a new object or an update, kind and
// apiVersion and the scale subresource aside.
func (s *Schema) Validate(object []byte, o ValidateOptions) (v Validation) {
	defer func() {
		if p := recover(); p != nil {
			v = Validation{Panic: crashed(p)}
		}
	}()
	obj, err := Decode(object)
	if err != nil {
		return Validation{Undecodable: err}
	}
	var old map[string]any
	if o.Old != nil {
		if old, err = Decode(o.Old); err != nil {
			return Validation{Undecodable: err}
		}
	}
	return s.said(obj, old, o)
}

// said validates decoded objects.
func (s *Schema) said(obj, old map[string]any, o ValidateOptions) (v Validation) {
	var heard recorder
	errs, fromRules, blocked, err := s.validate(warning.WithWarningRecorder(context.Background(), &heard), obj, old, o)
	if err != nil {
		return Validation{Undecodable: err}
	}
	v.Blocked = blocked
	v.False, v.Failed = split(fromRules)
	for _, e := range errs {
		v.Errors = append(v.Errors, Render(e))
	}
	for _, e := range fromRules {
		v.Refuted = append(v.Refuted, e.Field)
	}
	v.Warnings = heard
	v.Ordered = slices.Clone(v.Errors)
	slices.Sort(v.Errors)
	slices.Sort(v.Warnings)
	return v
}

// validate is the order of the reference's Validate and ValidateUpdate.
func (s *Schema) validate(ctx context.Context, obj, old map[string]any, o ValidateOptions) (errs, fromRules field.ErrorList, blocked bool, err error) {
	built, err := s.validators()
	if err != nil {
		return nil, nil, false, err
	}
	var valueOptions []validation.ValidationOption
	var ruleOptions []cel.Option
	if old != nil && o.Ratchet {
		correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: s.structural})
		valueOptions = append(valueOptions, validation.WithRatcheting(correlated))
		ruleOptions = append(ruleOptions, cel.WithRatcheting(correlated))
	}
	if o.Scope != Unscoped {
		errs = append(errs, rootMetadata(ctx, obj, old, o.Scope)...)
	}
	if old == nil {
		errs = append(errs, validation.ValidateCustomResource(nil, obj, built.values)...)
	} else {
		errs = append(errs, validation.ValidateCustomResourceUpdate(nil, obj, old, built.values, valueOptions...)...)
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, obj, s.structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, s.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj)...)
	}
	if built.rules == nil || o.NoRules {
		return errs, nil, false, nil
	}
	if blocks(errs) {
		return append(errs, field.Invalid(nil, nil, notChecked)), nil, true, nil
	}
	var before any // a nil map is not nil to the validator
	if old != nil {
		before = old
	}
	fromRules, _ = built.rules.Validate(ctx, nil, s.structural, obj, before, celconfig.RuntimeCELCostBudget, ruleOptions...)
	return append(errs, fromRules...), fromRules, false, nil
}

const notChecked = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation"

// blocks reports whether rules are not evaluated because of errors of certain types.
func blocks(errs field.ErrorList) bool {
	return slices.ContainsFunc(errs, func(e *field.Error) bool {
		switch e.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
		return false
	})
}

// rootMetadata validates the object's own metadata.
func rootMetadata(ctx context.Context, obj, old map[string]any, scope Scope) field.ErrorList {
	path := field.NewPath("metadata")
	declarative := utilfeature.DefaultFeatureGate.Enabled(features.DeclarativeValidationBeta)
	meta, errs := typedMetadata(obj, path)
	if len(errs) > 0 {
		return errs
	}
	if old == nil {
		return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Create, meta, nil, scope == Namespaced, apivalidation.NameIsDNSSubdomain, path, declarative)
	}
	oldMeta, errs := typedMetadata(old, path)
	if len(errs) > 0 {
		return errs
	}
	return apivalidation.ValidateObjectMetaDeclaratively(ctx, operation.Update, meta, oldMeta, scope == Namespaced, nil, path, declarative)
}

func typedMetadata(obj map[string]any, path *field.Path) (*metav1.ObjectMeta, field.ErrorList) {
	meta := &metav1.ObjectMeta{}
	raw := obj["metadata"]
	if raw == nil {
		return meta, nil
	}
	fields, ok := raw.(map[string]any)
	if !ok {
		return nil, field.ErrorList{field.Invalid(path, raw, fmt.Sprintf("expected map[string]interface{}, got %T", raw))}
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, meta); err != nil {
		return nil, field.ErrorList{field.Invalid(path, raw, err.Error())}
	}
	return meta, nil
}

// recorder collects the warnings of one validation.
type recorder []string

func (r *recorder) AddWarning(_, text string) { *r = append(*r, text) }

// split counts the rules that gave false and those that gave an error.
func split(errs field.ErrorList) (no, failed int) {
	for _, e := range errs {
		if strings.Contains(e.Detail, " evaluating rule: ") || strings.Contains(e.Detail, "did not match a supported operator") ||
			strings.Contains(e.Detail, "no further validation rules will be run") || strings.HasPrefix(e.Detail, "rule compile error") {
			failed++
		} else {
			no++
		}
	}
	return no, failed
}

// Sites visits the values of an object to which rules apply, with the path of the schema that has them and their
// number.
func (s *Schema) Sites(object []byte, visit func(path string, rules int)) {
	v, err := s.validators()
	if err != nil || v.rules == nil {
		return
	}
	obj, err := Decode(object)
	if err != nil {
		return
	}
	sites(v.rules, obj, "", visit)
}

func sites(v *cel.Validator, value any, path string, visit func(string, int)) {
	if v == nil || value == nil {
		return
	}
	if n := len(v.Schema.XValidations); n > 0 {
		visit(path, n)
	}
	switch value := value.(type) {
	case []any:
		if v.Items != nil {
			for _, item := range value {
				sites(v.Items, item, path+"[]", visit)
			}
		}
	case map[string]any:
		for k, member := range value {
			if v.AdditionalProperties != nil {
				sites(v.AdditionalProperties, member, path+"{}", visit)
			}
			if sub, ok := v.Properties[k]; ok {
				sites(&sub, member, path+"."+k, visit)
			}
		}
	}
}

// Admit is everything that the reference does to an object between the bytes of a request and the bytes for storage,
// for measurements: nothing is recorded about what was dropped. The result has a newline. An object that is not valid is
// an error.
func (s *Schema) Admit(object []byte, scope Scope, dst *bytes.Buffer) error {
	obj, err := s.stored(object, Request)
	if err != nil {
		return err
	}
	errs, _, _, err := s.validate(context.Background(), obj, nil, ValidateOptions{Scope: scope})
	if err != nil {
		return err
	}
	if len(errs) > 0 {
		return errs.ToAggregate()
	}
	return json.NewEncoder(dst).Encode(obj)
}

// Text renders the validation in the words that a client sees.
func (v *Validation) Text() string {
	if v.Undecodable != nil || v.Panic != nil {
		return v.String()
	}
	if len(v.Errors)+len(v.Warnings) == 0 {
		return "valid"
	}
	var lines []string
	for _, e := range v.Errors {
		lines = append(lines, shown(e))
	}
	for _, w := range v.Warnings {
		lines = append(lines, "warning: "+w)
	}
	return strings.Join(lines, "\n")
}

// shown is the last part of a rendered error. Details may hold the separator, and the text repeats the detail.
func shown(rendered string) string {
	f := strings.SplitN(rendered, "|", 3)
	if len(f) < 3 {
		return rendered
	}
	if at := strings.LastIndex(rendered, "|"+f[1]+": "); at >= 0 {
		return rendered[at+1:]
	}
	return rendered
}
