package store

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	"k8s.io/apiserver/pkg/storage/storagebackend"
)

// refusal says why a member of etcd and this server do not trust each other, and
// what to do; nil if that is not why it does not answer. gRPC goes on trying for
// whatever reason, and keeps the reason to itself.
func refusal(ctx context.Context, endpoint string, c *Config) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "https" {
		return nil
	}
	config, err := c.tls()
	if err != nil {
		return nil
	}
	config.NextProtos = []string{"h2"} // etcd requires it
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", u.Host)
	if err == nil {
		// What etcd thinks of our certificate comes after the handshake. If it likes
		// it, it speaks first: it sends its settings.
		defer conn.Close()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, err = conn.Read(make([]byte, 1))
	}
	if c.TLS != nil && err != nil {
		return fmt.Errorf("TLS with %s: %w", endpoint, err) // the advice below is about flags
	}
	return explain(endpoint, c.Transport, err)
}

// explain finds the cause of an error of TLS.
func explain(endpoint string, t storagebackend.TransportConfig, err error) error {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	var remote *net.OpError
	switch {
	case errors.As(err, &unknown):
		return fmt.Errorf("%s shows a certificate that no CA in --etcd-cafile (%s) has signed: %w; give the CA that signs etcd's certificates, or check which program answers there", endpoint, cmp.Or(t.TrustedCAFile, "not given"), err)
	case errors.As(err, &name):
		return fmt.Errorf("%s shows a certificate for another name: %w; use one of its names in --etcd-servers, or give etcd a certificate for this one", endpoint, err)
	case errors.As(err, &invalid):
		return fmt.Errorf("%s shows a certificate that is not valid: %w; give etcd another one", endpoint, err)
	case errors.As(err, &plain):
		return fmt.Errorf("%s does not speak TLS: %w; have etcd do so (--cert-file, --key-file), or write http:// in --etcd-servers if it is on this machine", endpoint, err)
	case errors.As(err, &remote) && remote.Op == "remote error":
		return fmt.Errorf("%s does not accept --etcd-certfile (%s): %w; give a certificate, and its key in --etcd-keyfile, of the CA in etcd's --trusted-ca-file", endpoint, cmp.Or(t.CertFile, "not given"), err)
	}
	return nil
}
