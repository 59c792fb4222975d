package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/conformance/corpus"
)

// A kind is a CRD of the corpus and a way to make objects of it.
type kind struct {
	name   string // of the CRD
	title  string
	group  string
	plural string
	crd    []byte
	object func(namespace, name string, n int) []byte
}

// marker stands in every object before a number of seven digits that updates change.
var marker = []byte(`"bench.espalier.dev/revision":"`)

const digits = 7

func kinds(ctx context.Context) ([]*kind, error) {
	set, err := corpus.Load(ctx, corpus.Options{Short: true, NoArchive: true})
	if err != nil {
		return nil, err
	}
	all := []*kind{
		{name: "certificates.cert-manager.io", title: "Certificate (cert-manager, no rules)", group: "cert-manager.io", plural: "certificates", object: certificate},
		{name: "httproutes.gateway.networking.k8s.io", title: "HTTPRoute (Gateway API, CEL rules)", group: "gateway.networking.k8s.io", plural: "httproutes", object: route},
	}
	for _, k := range all {
		// The module's smallest: Gateway API has a standard and an experimental channel.
		for _, d := range set.CRDs {
			if d.Name == k.name && d.Source != "knative.dev/serving@v0.42.2" && (k.crd == nil || len(d.JSON) < len(k.crd)) {
				k.crd = d.JSON
			}
		}
		if k.crd == nil {
			return nil, fmt.Errorf("the corpus has no %s", k.name)
		}
		if k.crd, err = withoutStatus(k.crd); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// withoutStatus drops the status that controller-gen writes: a stored version of an object never made would be refused.
func withoutStatus(crd []byte) ([]byte, error) {
	var m map[string]any
	if err := json.Unmarshal(crd, &m); err != nil {
		return nil, err
	}
	delete(m, "status")
	return json.Marshal(m)
}

func certificate(namespace, name string, n int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"cert-manager.io/v1","kind":"Certificate","metadata":{"name":%q,"namespace":%q,
"labels":{"app.kubernetes.io/name":"shop","app.kubernetes.io/instance":"shop-%d","app.kubernetes.io/managed-by":"helm","team":"payments"},
"annotations":{"bench.espalier.dev/revision":"%0*d","meta.helm.sh/release-name":"shop","meta.helm.sh/release-namespace":"production"}},
"spec":{"secretName":"%s-tls","secretTemplate":{"annotations":{"reflector.example.com/allowed":"true"},"labels":{"team":"payments"}},
"duration":"2160h0m0s","renewBefore":"360h0m0s","subject":{"organizations":["Example Inc."],"organizationalUnits":["Payments","Platform"],"countries":["DE"],"localities":["Berlin"]},
"commonName":"shop-%d.example.com","isCA":false,"privateKey":{"algorithm":"RSA","encoding":"PKCS1","size":2048,"rotationPolicy":"Always"},
"usages":["server auth","client auth","digital signature","key encipherment"],
"dnsNames":["shop-%d.example.com","www.shop-%d.example.com","api.shop-%d.example.com","static.shop-%d.example.com"],
"ipAddresses":["192.0.2.10","192.0.2.11"],"uris":["spiffe://cluster.local/ns/production/sa/shop-%d"],
"issuerRef":{"name":"letsencrypt-production","kind":"ClusterIssuer","group":"cert-manager.io"},"revisionHistoryLimit":3}}`,
		name, namespace, n%100, digits, 0, name, n, n, n, n, n, n)
}

func route(namespace, name string, n int) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"gateway.networking.k8s.io/v1","kind":"HTTPRoute","metadata":{"name":%q,"namespace":%q,
"labels":{"app.kubernetes.io/name":"shop","app.kubernetes.io/instance":"shop-%d"},"annotations":{"bench.espalier.dev/revision":"%0*d"}},
"spec":{"parentRefs":[{"name":"public","namespace":"ingress","sectionName":"https"},{"name":"internal","namespace":"ingress","port":8443}],
"hostnames":["shop-%d.example.com","www.shop-%d.example.com"],
"rules":[
{"matches":[{"path":{"type":"PathPrefix","value":"/api/v%d"},"headers":[{"name":"X-Canary","value":"true"}]}],
"filters":[{"type":"RequestHeaderModifier","requestHeaderModifier":{"set":[{"name":"X-Route","value":"api"}],"remove":["X-Debug"]}}],
"backendRefs":[{"name":"api-canary","port":8080,"weight":10},{"name":"api","port":8080,"weight":90}],"timeouts":{"request":"10s","backendRequest":"5s"}},
{"matches":[{"path":{"type":"Exact","value":"/old"},"method":"GET"}],
"filters":[{"type":"RequestRedirect","requestRedirect":{"scheme":"https","hostname":"new.example.com","statusCode":301,"path":{"type":"ReplaceFullPath","replaceFullPath":"/new"}}}]},
{"matches":[{"path":{"type":"PathPrefix","value":"/static"}}],
"filters":[{"type":"URLRewrite","urlRewrite":{"path":{"type":"ReplacePrefixMatch","replacePrefixMatch":"/"}}}],"backendRefs":[{"name":"static","port":80}]},
{"backendRefs":[{"name":"shop","port":8080}]}]}}`,
		name, namespace, n%100, digits, 0, n, n, n%10)
}

// revised returns the object with the number after the marker raised by one.
func revised(object []byte) ([]byte, error) {
	at := bytes.Index(object, marker)
	if at < 0 || at+len(marker)+digits > len(object) {
		return nil, fmt.Errorf("no %s in %.200s", marker, object)
	}
	changed := slices.Clone(object)
	number := changed[at+len(marker) : at+len(marker)+digits]
	for i := len(number) - 1; i >= 0; i-- {
		if number[i]++; number[i] <= '9' {
			break
		}
		number[i] = '0'
	}
	return changed, nil
}

func (k *kind) collection(namespace string) string {
	return "/apis/" + k.group + "/v1/namespaces/" + namespace + "/" + k.plural
}
