package builtin

import (
	"context"
	"reflect"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission/plugin/manifest"

	"github.com/espalier-dev/espalier/crd/rules"
	"github.com/espalier-dev/espalier/server/webhook"
)

func mutatingWebhookConfigurations() Resource {
	type configuration = admissionv1.MutatingWebhookConfiguration
	r := admissionResource("mutatingwebhookconfigurations", "mutatingwebhookconfiguration", "MutatingWebhookConfiguration")
	r.New, r.NewList = empty[configuration], empty[admissionv1.MutatingWebhookConfigurationList]
	return withWebhooks(r, func(c *configuration) []admissionv1.MutatingWebhook { return c.Webhooks }, mutatingHook, defaultMutatingWebhook)
}

func validatingWebhookConfigurations() Resource {
	type configuration = admissionv1.ValidatingWebhookConfiguration
	r := admissionResource("validatingwebhookconfigurations", "validatingwebhookconfiguration", "ValidatingWebhookConfiguration")
	r.New, r.NewList = empty[configuration], empty[admissionv1.ValidatingWebhookConfigurationList]
	return withWebhooks(r, func(c *configuration) []admissionv1.ValidatingWebhook { return c.Webhooks }, validatingHook, defaultValidatingWebhook)
}

// withWebhooks completes the resource of configurations P that list webhooks W.
func withWebhooks[P interface {
	comparable
	runtime.Object
	metav1.Object
}, W any](r Resource, list func(P) []W, hookOf func(*W) hook, fill func(*W)) Resource {
	hooks := func(c P) []hook {
		all := make([]hook, len(list(c)))
		for i := range all {
			all[i] = hookOf(&list(c)[i])
		}
		return all
	}
	r.Columns, r.Row = webhookColumns, row(func(c P) []any { return []any{c.GetName(), int64(len(list(c))), created(c)} })
	r.Strategy.Default = defaults(func(c P) {
		for i := range list(c) {
			fill(&list(c)[i])
		}
	})
	r.Strategy.Validate, r.Strategy.ValidateUpdate = compared(func(c, old P) field.ErrorList {
		var none P
		if old == none {
			return validateHooks(hooks(c), nil)
		}
		return validateHooks(hooks(c), hooks(old))
	})
	r.Strategy.Warn = func(_ context.Context, obj runtime.Object) []string { return warnOfServices(hooks(obj.(P))) }
	// An empty list in place of none is a change, too, as in kube-apiserver.
	r.Strategy.Generation = func(obj, old runtime.Object) bool { return !reflect.DeepEqual(list(obj.(P)), list(old.(P))) }
	return r
}

// warnOfServices warns of webhooks that cannot be called.
func warnOfServices(hooks []hook) []string {
	var warnings []string
	for i := range hooks {
		if hooks[i].client.Service != nil {
			warnings = append(warnings, webhook.ServiceWarning(field.NewPath("webhooks").Index(i).Child("clientConfig")))
		}
	}
	return warnings
}

// admissionResource is what all resources of admissionregistration.k8s.io have.
func admissionResource(plural, singular, kind string) Resource {
	return Resource{
		Group: admissionv1.GroupName, Version: "v1", Plural: plural, Singular: singular, Kind: kind,
		Categories: []string{"api-extensions"},
		Strategy:   Strategy{Name: admissionName, GenerateNameOnUpdate: true},
		Complete:   true, // without it, requests would be admitted that it refuses
	}
}

// admissionName rejects the names that are reserved for configurations in files, so
// that no client can imitate or hide these.
func admissionName(name string, prefix bool) []string {
	wrong := validation.NameIsDNSSubdomain(name, prefix)
	if !prefix && strings.HasSuffix(name, manifest.StaticConfigSuffix) {
		wrong = append(wrong, "names that end with "+manifest.StaticConfigSuffix+" are reserved for configurations that are loaded from files")
	}
	return wrong
}

// The defaults of a webhook. sideEffects and admissionReviewVersions have none.

func defaultMutatingWebhook(w *admissionv1.MutatingWebhook) {
	rules.DefaultPointer(&w.FailurePolicy, admissionv1.Fail)
	rules.DefaultPointer(&w.MatchPolicy, admissionv1.Equivalent)
	rules.DefaultPointer(&w.NamespaceSelector, metav1.LabelSelector{})
	rules.DefaultPointer(&w.ObjectSelector, metav1.LabelSelector{})
	rules.DefaultPointer(&w.TimeoutSeconds, 10)
	rules.DefaultPointer(&w.ReinvocationPolicy, admissionv1.NeverReinvocationPolicy)
	defaultWebhook(&w.ClientConfig, w.Rules)
}

func defaultValidatingWebhook(w *admissionv1.ValidatingWebhook) {
	rules.DefaultPointer(&w.FailurePolicy, admissionv1.Fail)
	rules.DefaultPointer(&w.MatchPolicy, admissionv1.Equivalent)
	rules.DefaultPointer(&w.NamespaceSelector, metav1.LabelSelector{})
	rules.DefaultPointer(&w.ObjectSelector, metav1.LabelSelector{})
	rules.DefaultPointer(&w.TimeoutSeconds, 10)
	defaultWebhook(&w.ClientConfig, w.Rules)
}

func defaultWebhook(c *admissionv1.WebhookClientConfig, ruleList []admissionv1.RuleWithOperations) {
	if c.Service != nil {
		rules.DefaultPointer(&c.Service.Port, 443)
	}
	for i := range ruleList {
		rules.DefaultPointer(&ruleList[i].Scope, admissionv1.AllScopes)
	}
}

var webhookColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "Webhooks", Type: "integer", Description: "Webhooks indicates the number of webhooks registered in this configuration"},
	ageColumn,
}
