package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/tenants"
)

// openEtcd connects to another etcd than that of the server. What is not about where it is, is as
// for that one.
func (s *Server) openEtcd(ctx context.Context, of tenants.Etcd) (*store.Backend, error) {
	config := storeConfig(s.options, s.config)
	config.Transport.ServerList = of.Servers
	config.Transport.CertFile, config.Transport.KeyFile, config.Transport.TrustedCAFile = "", "", ""
	config.Beside = s.backend
	if of.Secret.Name != "" {
		secret, err := s.controlPlane.client.CoreV1().Secrets(of.Secret.Namespace).Get(ctx, of.Secret.Name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("reading the certificates for the etcd %q: %w", of.Name, err)
		}
		if config.TLS, err = tlsOf(secret); err != nil {
			return nil, fmt.Errorf("the certificates for the etcd %q in the Secret %s: %w", of.Name, of.Secret, err)
		}
	}
	return store.Open(ctx, config)
}

// tlsOf is what connections use whose certificates are in a Secret.
func tlsOf(secret *corev1.Secret) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca := secret.Data["ca.crt"]; len(ca) > 0 {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("ca.crt has no certificate in PEM")
		}
	}
	cert, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(cert) == 0 && len(key) == 0 {
		return config, nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("tls.crt and tls.key: %w", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// fits returns an error if the options ask for what an engine that is not etcd cannot do.
func (o *Options) fits(b *store.Backend) error {
	const needs = "needs transactions with several conditions, which the engine that --etcd-servers names does not have: use etcd, or leave the flag out"
	switch {
	case !b.Bounded():
		return nil
	case o.Tenants:
		return fmt.Errorf("--tenants %s", needs)
	case o.Kinds == KindsAll:
		return fmt.Errorf("--kinds=%s %s", o.Kinds, needs)
	}
	return nil
}
