package chain

import (
	"context"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

// about is what a webhook or policy is asked about: writes of a resource of the
// group test.dev, in a version, or in all.
func about(version string, resources ...string) admissionregistration.RuleWithOperations {
	return admissionregistration.RuleWithOperations{
		Operations: []admissionregistration.OperationType{admissionregistration.Create, admissionregistration.Update, admissionregistration.Delete},
		Rule:       admissionregistration.Rule{APIGroups: []string{"test.dev", "apiextensions.k8s.io"}, APIVersions: []string{version}, Resources: resources},
	}
}

// mutating configures a mutating webhook and waits until the chain knows.
func (e *env) mutating(name string, h *hook, change ...func(*admissionregistration.MutatingWebhook)) {
	e.TB.Helper()
	w := admissionregistration.MutatingWebhook{
		Name: name + ".test.dev", Rules: []admissionregistration.RuleWithOperations{about("v1", "*")},
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistration.SideEffectClassNone), TimeoutSeconds: new(int32(10)),
		FailurePolicy: new(admissionregistration.Fail), MatchPolicy: new(admissionregistration.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{}, ReinvocationPolicy: new(admissionregistration.NeverReinvocationPolicy),
	}
	if h != nil {
		w.ClientConfig = admissionregistration.WebhookClientConfig{URL: &h.URL, CABundle: caOf(h.Server)}
	}
	for _, f := range change {
		f(&w)
	}
	before := e.chain.settings.total()
	_, err := e.client.AdmissionregistrationV1().MutatingWebhookConfigurations().Create(context.Background(),
		&admissionregistration.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistration.MutatingWebhook{w}}, metav1.CreateOptions{})
	must(e.TB, err)
	apitest.Eventually(e.TB, func() bool { return e.chain.settings.total() > before })
}

// validating configures a validating webhook and waits until the chain knows.
func (e *env) validating(name string, h *hook, change ...func(*admissionregistration.ValidatingWebhook)) {
	e.TB.Helper()
	w := admissionregistration.ValidatingWebhook{
		Name: name + ".test.dev", Rules: []admissionregistration.RuleWithOperations{about("v1", "*")},
		ClientConfig:            admissionregistration.WebhookClientConfig{URL: &h.URL, CABundle: caOf(h.Server)},
		AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistration.SideEffectClassNone), TimeoutSeconds: new(int32(10)),
		FailurePolicy: new(admissionregistration.Fail), MatchPolicy: new(admissionregistration.Equivalent),
		NamespaceSelector: &metav1.LabelSelector{}, ObjectSelector: &metav1.LabelSelector{},
	}
	for _, f := range change {
		f(&w)
	}
	before := e.chain.settings.total()
	_, err := e.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(context.Background(),
		&admissionregistration.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: name}, Webhooks: []admissionregistration.ValidatingWebhook{w}}, metav1.CreateOptions{})
	must(e.TB, err)
	apitest.Eventually(e.TB, func() bool { return e.chain.settings.total() > before })
}

// total is how many objects are configured.
func (s *settings) total() (n int64) {
	for _, w := range s.sources {
		n += w.count.Load()
	}
	return n
}
