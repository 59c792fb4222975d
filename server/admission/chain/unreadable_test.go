package chain

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
	"github.com/espalier-dev/espalier/server/webhook"
)

// damage writes a corrupt value into etcd, and returns a function that restores the
// former value.
func (e *env) damage(resource, name string) (repair func()) {
	e.TB.Helper()
	key := e.prefix + "/" + resource + "/" + name
	was, err := e.etcd.Get(context.Background(), key)
	must(e.TB, err)
	if len(was.Kvs) != 1 {
		e.TB.Fatalf("%s is not in etcd", key)
	}
	write := func(value string) {
		_, err := e.etcd.Put(context.Background(), key, value)
		must(e.TB, err)
	}
	write("garbage")
	return func() { write(string(was.Kvs[0].Value)) }
}

const validatingConfigurations = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"

// Policies and webhooks that cannot be read any more stay in force: an informer whose list
// fails keeps what it has.
func TestDamagedSettingsStayInForce(t *testing.T) {
	t.Parallel()
	e := startThings(t)
	e.policy("small", admissionregistration.ValidatingAdmissionPolicySpec{Validations: []admissionregistration.Validation{{Expression: "object.spec.size <= 10"}}}, nil)
	apitest.Eventually(t, func() bool { return e.Do("POST", path+"?dryRun=All", thing("a", `{"size":11}`)).Code == 422 })
	e.validating("no", hooked(t, func(_, response map[string]any) { response["allowed"] = false }))
	e.Do("POST", path, thing("a", `{"size":1}`)).Is(http.StatusBadRequest).Mentions(`admission webhook "no.test.dev" denied the request`)
	for _, resource := range []string{"validatingadmissionpolicies", "validatingadmissionpolicybindings"} {
		defer e.damage(resource, "small")()
	}
	repair := e.damage("validatingwebhookconfigurations", "no")
	e.Do("GET", validatingConfigurations, "").Is(http.StatusInternalServerError).Has("reason", "StorageReadError")
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		if e.Do("POST", path, thing("a", `{"size":1}`)).Code != http.StatusBadRequest || e.Do("POST", path+"?dryRun=All", thing("a", `{"size":11}`)).Code/100 != 4 {
			t.Fatal("a request is admitted that a webhook or a policy refuses")
		}
	}
	repair()
	e.Do("DELETE", validatingConfigurations+"/no", "").Is(http.StatusOK)
	apitest.Eventually(t, func() bool {
		return e.Do("POST", path+"?dryRun=All", thing("a", `{"size":1}`)).Code == http.StatusCreated
	})
	e.Do("POST", path, thing("a", `{"size":11}`)).Is(422) // the policy is damaged, and in force
}

// A server that starts when a webhook configuration cannot be read admits nothing that it
// might be about, until an operator has removed the configuration.
func TestDamagedSettingsAtStart(t *testing.T) {
	t.Parallel()
	e := startThings(t)
	e.validating("no", hooked(t, func(_, response map[string]any) { response["allowed"] = false }))
	e.damage("validatingwebhookconfigurations", "no")

	config := &rest.Config{Host: e.URL, QPS: -1}
	dynamics, err := dynamic.NewForConfig(config)
	must(t, err)
	webhooks, err := webhook.New(webhook.Options{AllowedNetworks: webhook.Everywhere})
	must(t, err)
	factory := informers.NewSharedInformerFactory(e.client, 0)
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	late, err := New(ctx, Options{Webhooks: webhooks, Client: e.client, Dynamic: dynamics, Informers: factory, Authorizer: everyone})
	must(t, err)
	factory.Start(ctx.Done())
	apitest.Eventually(t, factory.Core().V1().Namespaces().Informer().HasSynced)
	if late.Idle() {
		t.Error("the chain is idle though it does not know what is configured")
	}
	a := attributes(thing("a", `{"size":1}`), "")
	if err := late.Validate(ctx, a, nil); err == nil || !strings.Contains(err.Error(), "not yet ready to handle request") {
		t.Errorf("admission without knowing the webhooks: %v", err)
	}
	e.Do("DELETE", validatingConfigurations+"/no", `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}`).Is(http.StatusOK)
	apitest.Eventually(t, late.Idle)
	if err := late.Validate(ctx, a, nil); err != nil {
		t.Errorf("after removal: %v", err)
	}
}
