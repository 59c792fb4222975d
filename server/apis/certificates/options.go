package certificates

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Options configure the signer.
type Options struct {
	// CertFile and KeyFile are the CA. If empty, only external signers sign.
	CertFile, KeyFile string
	// Duration is how long certificates are valid, unless a request asks for less.
	Duration time.Duration
}

// NewOptions returns the defaults.
func NewOptions() *Options { return &Options{Duration: 365 * 24 * time.Hour} }

// AddFlags binds the options to flags, which are kube-controller-manager's.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.CertFile, "cluster-signing-cert-file", o.CertFile,
		"PEM file with the CA certificate that signs approved CertificateSigningRequests for kubernetes.io/kube-apiserver-client. It must be one of --client-ca-file for the server to accept what it signs. "+
			"Without it, approved requests wait for another program to sign them. The file is read for each certificate.")
	set.StringVar(&o.KeyFile, "cluster-signing-key-file", o.KeyFile,
		"PEM file with the private key of --cluster-signing-cert-file. Programs that can read it can impersonate any user.")
	set.DurationVar(&o.Duration, "cluster-signing-duration", o.Duration,
		"Maximum validity of signed certificates; requests can ask for less.")
}

// Validate says what is wrong, and what to do.
func (o *Options) Validate() []error {
	var errs []error
	switch {
	case o.CertFile == "" && o.KeyFile == "":
	case o.CertFile == "" || o.KeyFile == "":
		errs = append(errs, errors.New("--cluster-signing-cert-file and --cluster-signing-key-file must be given together; give both or none"))
	default:
		if _, err := loadCA(o.CertFile, o.KeyFile); err != nil {
			errs = append(errs, fmt.Errorf("--cluster-signing-cert-file, --cluster-signing-key-file: %w", err))
		}
	}
	if o.Duration < minDuration {
		errs = append(errs, fmt.Errorf("--cluster-signing-duration is %v: certificates would expire before they are used; give at least %v", o.Duration, minDuration))
	}
	return errs
}

// signer signs certificates.
type signer struct {
	cert *x509.Certificate
	key  crypto.Signer
}

func loadCA(certFile, keyFile string) (*signer, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("%w; give a CA certificate and its key, both as PEM", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	switch now := time.Now(); {
	case !ok:
		return nil, fmt.Errorf("the key in %s cannot sign; give the private key of the CA", keyFile)
	case !pair.Leaf.IsCA:
		return nil, fmt.Errorf("%s is not the certificate of a CA: clients would reject the certificates that it signs; give one with basicConstraints CA:TRUE", certFile)
	case now.After(pair.Leaf.NotAfter):
		return nil, fmt.Errorf("%s has expired, at %s; give another CA", certFile, pair.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return &signer{pair.Leaf, key}, nil
}
