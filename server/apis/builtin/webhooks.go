package builtin

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/rules"
	"github.com/espalier-dev/espalier/server/webhook"
)

func mutatingWebhookConfigurations() Resource {
	type configuration = admissionv1.MutatingWebhookConfiguration
	r := admissionResource("mutatingwebhookconfigurations", "mutatingwebhookconfiguration", &rules.MutatingWebhookConfiguration)
	r.New, r.NewList = empty[configuration], empty[admissionv1.MutatingWebhookConfigurationList]
	return withWebhooks(r, func(c *configuration) []admissionv1.MutatingWebhook { return c.Webhooks },
		func(w *admissionv1.MutatingWebhook) *admissionv1.WebhookClientConfig { return &w.ClientConfig })
}

func validatingWebhookConfigurations() Resource {
	type configuration = admissionv1.ValidatingWebhookConfiguration
	r := admissionResource("validatingwebhookconfigurations", "validatingwebhookconfiguration", &rules.ValidatingWebhookConfiguration)
	r.New, r.NewList = empty[configuration], empty[admissionv1.ValidatingWebhookConfigurationList]
	return withWebhooks(r, func(c *configuration) []admissionv1.ValidatingWebhook { return c.Webhooks },
		func(w *admissionv1.ValidatingWebhook) *admissionv1.WebhookClientConfig { return &w.ClientConfig })
}

// withWebhooks completes the resource of configurations P that list webhooks W.
func withWebhooks[P interface {
	runtime.Object
	metav1.Object
}, W any](r Resource, list func(P) []W, client func(*W) *admissionv1.WebhookClientConfig) Resource {
	r.Columns, r.Row = webhookColumns, row(func(c P) []any { return []any{c.GetName(), int64(len(list(c))), created(c)} })
	// This server cannot call webhooks that are Services.
	r.Strategy.Warn = func(_ context.Context, obj runtime.Object) []string {
		var warnings []string
		for i, w := range list(obj.(P)) {
			if client(&w).Service != nil {
				warnings = append(warnings, webhook.ServiceWarning(field.NewPath("webhooks").Index(i).Child("clientConfig")))
			}
		}
		return warnings
	}
	return r
}

// admissionResource is what all resources of admissionregistration.k8s.io have.
func admissionResource(plural, singular string, r *rules.Rules) Resource {
	return Resource{
		Group: admissionv1.GroupName, Version: "v1", Plural: plural, Singular: singular, Kind: r.Kind,
		Categories: []string{"api-extensions"},
		Strategy:   Ruled(r, Strategy{}),
		Complete:   true, // without it, requests would be admitted that it refuses
	}
}

var webhookColumns = []metav1.TableColumnDefinition{
	nameColumn,
	{Name: "Webhooks", Type: "integer", Description: "Webhooks indicates the number of webhooks registered in this configuration"},
	ageColumn,
}
