package server

import (
	"context"
	"fmt"
	"net"

	"k8s.io/apiserver/pkg/authentication/request/union"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/identity"
	"github.com/espalier-dev/espalier/server/reply"
)

// genericConfig makes the configuration of k8s.io/apiserver's server of the
// options. What it starts ends with the context.
func genericConfig(ctx context.Context, o *Options, s *signals) (*genericapiserver.Config, error) {
	c := genericapiserver.NewConfig(reply.Codecs)
	if err := o.Run.ApplyTo(c); err != nil {
		return nil, err
	}
	c.EffectiveVersion = reportedVersion{c.EffectiveVersion, o.Version}
	if err := serving(o, c); err != nil {
		return nil, err
	}
	if err := access(o, c); err != nil {
		return nil, err
	}
	if err := o.Feature.ApplyTo(c, nil, nil); err != nil {
		return nil, err
	}
	if err := o.Audit.ApplyTo(c); err != nil {
		return nil, err
	}
	if err := o.Tracing.ApplyTo(nil, c); err != nil {
		return nil, err
	}
	if err := encrypt(ctx, o.Etcd, c); err != nil {
		return nil, err
	}
	s.tracing = o.Tracing.ConfigFile != ""
	c.BuildHandlerChainFunc = s.chain
	// /api, /apis and /openapi change with the definitions: the router has them.
	c.EnableDiscovery = false
	c.SkipOpenAPIInstallation = true
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
	// The library wants a client for the server itself. Nobody uses it, so it
	// has no credentials that could be stolen.
	c.LoopbackClientConfig = &rest.Config{}
	return nil
}

// access lets in the members of one group, known by their certificates.
func access(o *Options, c *genericapiserver.Config) error {
	authority, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", o.ClientCAFile)
	if err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	if err := c.Authentication.ApplyClientCert(authority, c.SecureServing); err != nil {
		return err
	}
	c.Authentication.Authenticator = union.New(identity.NewCertificates(authority), identity.Anonymous())
	c.Authorization.Authorizer = identity.Only(o.AllowedGroup)
	for _, server := range o.openEtcd() {
		klog.InfoS("etcd is talked to without encryption: who can listen sees all objects, and who can connect to it changes them", "server", server)
	}
	return nil
}
