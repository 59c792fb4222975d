package crd

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"slices"
	"strconv"
	"strings"

	dns "k8s.io/apimachinery/pkg/util/validation"
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
	const form = "; desired format: https://host[/path]"
	u, err := url.Parse(text)
	if err != nil {
		c.required(conversionURL, s, "url must be a valid URL: "+err.Error()+form)
		return
	}
	if u.Scheme != "https" {
		c.invalid(conversionURL, s, u.Scheme, "'https' is the only allowed URL scheme"+form)
	}
	if u.Host == "" {
		c.invalid(conversionURL, s, u.Host, "host must be specified"+form)
	}
	if u.User != nil {
		c.invalid(conversionURL, s, u.User.String(), "user information is not permitted in the URL")
	}
	if u.Fragment != "" {
		c.invalid(conversionURL, s, u.Fragment, "fragments are not permitted in the URL")
	}
	if u.RawQuery != "" {
		c.invalid(conversionURL, s, u.RawQuery, "query parameters are not permitted in the URL")
	}
}

func (c *checker) service(x *Service, s spot) {
	// Servers mistake the one for the other.
	if x.Namespace == "" {
		c.required(conversionService, s.to("namespace").as(s.path+".name"), "")
	}
	if x.Name == "" {
		c.required(conversionService, s.to("name").as(s.path+".namespace"), "")
	}
	if errs := dns.IsValidPortNum(int(x.Port)); len(errs) > 0 {
		c.invalid(conversionService, s.to("port"), x.Port, "port is not valid: "+strings.Join(errs, ", "))
	}
	if x.Path == nil || *x.Path == "" || *x.Path == "/" {
		return
	}
	path, at := *x.Path, s.to("path")
	if path == "//" {
		c.invalid(conversionService, at, path, "segment[0] may not be empty")
		return
	}
	if path[0] != '/' {
		c.invalid(conversionService, at, path, "must start with a '/'")
	}
	for i, step := range strings.Split(strings.TrimSuffix(path[1:], "/"), "/") {
		if step == "" {
			c.invalid(conversionService, at, path, "segment["+strconv.Itoa(i)+"] may not be empty")
			continue
		}
		for _, problem := range dns.IsDNS1123Subdomain(step) {
			c.invalid(conversionService, at, path, "segment["+strconv.Itoa(i)+"]: "+problem)
		}
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
