package controllers_test

import "testing"

// The server cannot call a webhook that names a Service: there are no Services. It says so when it refuses a request because of this, and
// everything that projects ship this way has to get a URL instead (onLocalhost).
func TestWebhookByService(t *testing.T) {
	here.do(t, `
apiVersion: v1
kind: Namespace
metadata: {name: by-service}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: by-service}
webhooks:
- name: by-service.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  clientConfig:
    service: {namespace: by-service, name: webhooks, path: /validate}
  namespaceSelector:
    matchLabels: {kubernetes.io/metadata.name: by-service}
  rules:
  - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
`, "apply", "-f", "-")
	here.refused(t, "", []string{"create", "configmap", "one", "--namespace", "by-service"}, `failed calling webhook "by-service.example.com"`,
		"this server does not route requests to Services, so it cannot call by-service/webhooks at port 443: set the url of the webhook's clientConfig")
	here.do(t, "", "delete", "validatingwebhookconfiguration", "by-service")
}

// The same holds for a conversion that is named by a Service.
func TestConversionByService(t *testing.T) {
	here.do(t, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: bulbs.by-service.example.com}
spec:
  group: by-service.example.com
  scope: Cluster
  names: {plural: bulbs, singular: bulb, kind: Bulb}
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig:
        service: {namespace: by-service, name: webhooks, path: /convert}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1beta1, served: true, storage: false, schema: {openAPIV3Schema: {type: object}}}
`, "apply", "-f", "-")
	here.established(t, "bulbs.by-service.example.com")
	here.do(t, `{apiVersion: by-service.example.com/v1, kind: Bulb, metadata: {name: tulip}}`, "create", "-f", "-")
	here.refused(t, "", []string{"get", "bulbs.v1beta1.by-service.example.com/tulip"},
		"this server does not route requests to Services, so it cannot call by-service/webhooks at port 443: set the url of the webhook's clientConfig")
	here.do(t, "", "get", "bulbs.v1.by-service.example.com/tulip")
}
