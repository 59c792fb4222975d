package builtin

import (
	"context"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/manifest"
)

func mutatingWebhookConfigurations() Resource {
	r := admissionResource("mutatingwebhookconfigurations", "mutatingwebhookconfiguration", "MutatingWebhookConfiguration")
	r.New = func() runtime.Object { return &admissionv1.MutatingWebhookConfiguration{} }
	r.NewList = func() runtime.Object { return &admissionv1.MutatingWebhookConfigurationList{} }
	r.Columns = webhookColumns
	r.Row = func(obj runtime.Object) []any {
		c := obj.(*admissionv1.MutatingWebhookConfiguration)
		return []any{c.Name, int64(len(c.Webhooks)), created(c)}
	}
	r.Rules.Default = func(obj runtime.Object) {
		for i := range obj.(*admissionv1.MutatingWebhookConfiguration).Webhooks {
			defaultMutatingWebhook(&obj.(*admissionv1.MutatingWebhookConfiguration).Webhooks[i])
		}
	}
	r.Rules.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList {
		return validateMutatingWebhooks(obj.(*admissionv1.MutatingWebhookConfiguration), nil)
	}
	r.Rules.ValidateUpdate = func(_ context.Context, obj, old runtime.Object) field.ErrorList {
		return validateMutatingWebhooks(obj.(*admissionv1.MutatingWebhookConfiguration), old.(*admissionv1.MutatingWebhookConfiguration))
	}
	r.Rules.Generation = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(obj.(*admissionv1.MutatingWebhookConfiguration).Webhooks, old.(*admissionv1.MutatingWebhookConfiguration).Webhooks)
	}
	return r
}

func validatingWebhookConfigurations() Resource {
	r := admissionResource("validatingwebhookconfigurations", "validatingwebhookconfiguration", "ValidatingWebhookConfiguration")
	r.New = func() runtime.Object { return &admissionv1.ValidatingWebhookConfiguration{} }
	r.NewList = func() runtime.Object { return &admissionv1.ValidatingWebhookConfigurationList{} }
	r.Columns = webhookColumns
	r.Row = func(obj runtime.Object) []any {
		c := obj.(*admissionv1.ValidatingWebhookConfiguration)
		return []any{c.Name, int64(len(c.Webhooks)), created(c)}
	}
	r.Rules.Default = func(obj runtime.Object) {
		for i := range obj.(*admissionv1.ValidatingWebhookConfiguration).Webhooks {
			defaultValidatingWebhook(&obj.(*admissionv1.ValidatingWebhookConfiguration).Webhooks[i])
		}
	}
	r.Rules.Validate = func(_ context.Context, obj runtime.Object) field.ErrorList {
		return validateValidatingWebhooks(obj.(*admissionv1.ValidatingWebhookConfiguration), nil)
	}
	r.Rules.ValidateUpdate = func(_ context.Context, obj, old runtime.Object) field.ErrorList {
		return validateValidatingWebhooks(obj.(*admissionv1.ValidatingWebhookConfiguration), old.(*admissionv1.ValidatingWebhookConfiguration))
	}
	r.Rules.Generation = func(obj, old runtime.Object) bool {
		return !equality.Semantic.DeepEqual(obj.(*admissionv1.ValidatingWebhookConfiguration).Webhooks, old.(*admissionv1.ValidatingWebhookConfiguration).Webhooks)
	}
	return r
}

// admissionResource is what all resources of admissionregistration.k8s.io have.
func admissionResource(plural, singular, kind string) Resource {
	return Resource{
		Group: admissionv1.GroupName, Version: "v1", Plural: plural, Singular: singular, Kind: kind,
		Categories: []string{"api-extensions"},
		Rules:      Rules{Name: admissionName},
	}
}

// admissionName keeps the names that are for configurations in files, which no
// client shall be able to pass for or to hide.
func admissionName(name string, prefix bool) []string {
	wrong := validation.NameIsDNSSubdomain(name, prefix)
	if !prefix && strings.HasSuffix(name, manifest.StaticConfigSuffix) {
		wrong = append(wrong, "names that end with "+manifest.StaticConfigSuffix+" are reserved for configurations that are loaded from files")
	}
	return wrong
}

// What a webhook that says nothing gets. Its side effects and the versions that
// it understands it has to say.

func defaultMutatingWebhook(w *admissionv1.MutatingWebhook) {
	defaultPointer(&w.FailurePolicy, admissionv1.Fail)
	defaultPointer(&w.MatchPolicy, admissionv1.Equivalent)
	defaultPointer(&w.NamespaceSelector, metav1.LabelSelector{})
	defaultPointer(&w.ObjectSelector, metav1.LabelSelector{})
	defaultPointer(&w.TimeoutSeconds, 10)
	defaultPointer(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	defaultWebhook(&w.ClientConfig, w.Rules)
}

func defaultValidatingWebhook(w *admissionv1.ValidatingWebhook) {
	defaultPointer(&w.FailurePolicy, admissionv1.Fail)
	defaultPointer(&w.MatchPolicy, admissionv1.Equivalent)
	defaultPointer(&w.NamespaceSelector, metav1.LabelSelector{})
	defaultPointer(&w.ObjectSelector, metav1.LabelSelector{})
	defaultPointer(&w.TimeoutSeconds, 10)
	defaultWebhook(&w.ClientConfig, w.Rules)
}

func defaultWebhook(c *admissionv1.WebhookClientConfig, rules []admissionv1.RuleWithOperations) {
	if c.Service != nil {
		defaultPointer(&c.Service.Port, 443)
	}
	for i := range rules {
		defaultPointer(&rules[i].Scope, admissionv1.AllScopes)
	}
}

// defaultPointer fills in a value that is left out.
func defaultPointer[T any](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

var webhookColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "Webhooks", Type: "integer", Description: "Webhooks indicates the number of webhooks registered in this configuration"},
	ageColumn,
}
