package crd

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"

	dns "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/espalier-dev/espalier/crd/rules/words"
)

// conversion checks how versions are converted into each other. Servers name
// the fields as v1beta1 did.
func (c *checker) conversion(s spot) {
	x := &c.new.Conversion
	if x.Strategy != "None" && c.new.PreserveUnknownFields {
		c.invalid(conversionPreserve, s.to("strategy"), enum(x.Strategy), "must be None if spec.preserveUnknownFields is true")
	}
	c.oneOf(conversionStrategy, s.to("strategy"), x.Strategy, "None", "Webhook")
	client := s.to("webhook", "clientConfig").as(s.path + ".webhookClientConfig")
	understood := s.to("webhook", "conversionReviewVersions").as(s.path + ".conversionReviewVersions")
	if x.Strategy != "Webhook" {
		const unused = "should not be set when strategy is not set to Webhook"
		if x.Webhook != nil {
			c.forbidden(conversionUnused, client, unused)
		}
		if len(x.ReviewVersions) > 0 {
			c.forbidden(conversionUnused, understood, unused)
		}
		return
	}
	if x.Webhook == nil {
		c.required(conversionClientConfig, client, "required when strategy is set to Webhook")
	} else {
		c.client(x.Webhook, client)
	}
	c.reviewVersions(x.ReviewVersions, understood)
}

func (c *checker) client(x *Webhook, s spot) {
	switch {
	case (x.URL == nil) == (x.Service == nil):
		c.required(conversionClientConfig, s, "exactly one of url or service is required")
	case x.URL != nil:
		c.url(*x.URL, s.to("url"))
	default:
		c.service(x.Service, s.to("service"))
	}
	if len(x.CABundle) > 0 && !c.ratchet.invalidBundle {
		if problem := bundleProblem(x.CABundle); problem != "" {
			c.invalid(conversionBundle, s.to("caBundle"), x.CABundle, problem)
		}
	}
}

func (c *checker) url(text string, s spot) {
	for _, e := range words.URL(nil, text) {
		c.add(conversionURL, s, e.Type, e.BadValue, e.Detail)
	}
}

func (c *checker) service(x *Service, s spot) {
	// Servers mistake the name for the namespace: errors name the field that is not missing.
	missing := map[string]string{"name": "namespace", "namespace": "name"}
	for _, e := range words.Service(field.NewPath("service"), x.Namespace, x.Name, x.Path, x.Port) {
		name := strings.TrimPrefix(e.Field, "service.")
		c.add(conversionService, s.to(cmp.Or(missing[name], name)).as(s.path+"."+name), e.Type, e.BadValue, e.Detail)
	}
}

// bundleProblem says why there are no certificates in a bundle.
func bundleProblem(bundle []byte) string {
	const prefix = "unable to load root certificates: "
	if x509.NewCertPool().AppendCertsFromPEM(bundle) {
		return ""
	}
	for rest := bundle; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return prefix + "unable to parse bytes as PEM block"
		}
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return prefix + "failed to parse certificate: " + err.Error()
		}
	}
	return prefix + "no valid certificate authority data seen"
}

// reviewVersionsKnown are the versions of ConversionReview that servers speak.
var reviewVersionsKnown = []string{"v1", "v1beta1"}

func understoodAny(list []string) bool {
	return slices.ContainsFunc(list, func(v string) bool { return slices.Contains(reviewVersionsKnown, v) })
}

func (c *checker) reviewVersions(list []string, s spot) {
	if len(list) == 0 {
		c.required(conversionReviewVersions, s, "")
		return
	}
	at := s.values()
	seen := make(map[string]bool, len(list))
	for i, name := range list {
		if seen[name] {
			c.invalid(conversionReviewVersions, s.item(i, at.get(i)), name, "duplicate version")
			continue
		}
		seen[name] = true
		for _, problem := range dns.IsDNS1035Label(name) {
			c.invalid(conversionReviewVersions, s.item(i, at.get(i)), name, problem)
		}
	}
	if !c.ratchet.reviewVersions && !understoodAny(list) {
		c.invalid(conversionReviewVersions, s, list, "must include at least one of "+strings.Join(reviewVersionsKnown, ", "))
	}
}
