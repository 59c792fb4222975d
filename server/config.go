package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"

	"github.com/espalier-dev/espalier/server/endpoints/reply"
	"github.com/espalier-dev/espalier/server/endpoints/requestinfo"
	"github.com/espalier-dev/espalier/server/tenants"
)

// genericConfig makes the configuration of k8s.io/apiserver's server of the
// options. What it starts ends with the context.
func genericConfig(ctx context.Context, o *Options, p *controlPlane, s *signals) (*genericapiserver.Config, error) {
	c := genericapiserver.NewConfig(reply.Codecs)
	if err := o.Run.ApplyTo(c); err != nil {
		return nil, err
	}
	c.EffectiveVersion = reportedVersion{c.EffectiveVersion, o.Version}
	if err := serving(o, c); err != nil {
		return nil, err
	}
	s.limit(o.Limits, p, c)
	if err := p.access(ctx, o, c); err != nil {
		return nil, err
	}
	p.fair = o.Feature.EnablePriorityAndFairness
	if err := o.Feature.ApplyTo(c, p.client, p.informers); err != nil {
		return nil, err
	}
	if err := p.admit(ctx, o, c); err != nil {
		return nil, err
	}
	if err := s.applyAudit(o.Audit, c); err != nil {
		return nil, err
	}
	if err := o.Tracing.ApplyTo(nil, c); err != nil {
		return nil, err
	}
	if err := encrypt(ctx, o.Etcd, c); err != nil {
		return nil, err
	}
	c.LoopbackClientConfig = p.loop.Config()
	s.tracing, s.controlPlane = o.Tracing.ConfigFile != "", p
	c.BuildHandlerChainFunc = s.chain
	c.LongRunningFunc = longRunning(c.LongRunningFunc)
	c.RequestInfoResolver = requestinfo.Resolver{}
	// The router serves /api, /apis and /openapi, which change with the CRDs.
	c.EnableDiscovery = false
	c.SkipOpenAPIInstallation = true
	if o.observe != nil {
		o.observe(c)
	}
	return c, nil
}

// serving opens the port. Without a certificate, one is made and kept in
// --cert-dir.
func serving(o *Options, c *genericapiserver.Config) error {
	if err := o.Run.DefaultAdvertiseAddress(o.Serving); err != nil {
		return err
	}
	c.PublicAddress = o.Run.AdvertiseAddress
	names := []string{"localhost"}
	addresses := []net.IP{net.IPv4(127, 0, 0, 1)}
	if err := o.Serving.MaybeDefaultWithSelfSignedCerts(o.Run.AdvertiseAddress.String(), names, addresses); err != nil {
		return fmt.Errorf("making a certificate in --cert-dir, since --tls-cert-file is not given: %w", err)
	}
	if err := o.Serving.ApplyTo(&c.SecureServing); err != nil {
		return err
	}
	if files, ok := c.SecureServing.Cert.(*dynamiccertificates.DynamicCertKeyPairContent); ok {
		pair := o.Serving.ServerCert.CertKey
		c.SecureServing.Cert = newServingCertificate(files, certificate{path: pair.CertFile, keyPath: pair.KeyFile, usage: x509.ExtKeyUsageServerAuth})
	}
	return nil
}

// longRunning reports whether a request may take longer than others: watches, and the archives of
// tenants.
func longRunning(others request.LongRunningRequestCheck) request.LongRunningRequestCheck {
	return func(req *http.Request, info *request.RequestInfo) bool {
		return tenants.Handles(info) || others(req, info)
	}
}
