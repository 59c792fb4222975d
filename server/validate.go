package server

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"
)

// Validate returns all that is wrong, together: what, why, and what to do.
func (o *Options) Validate() error {
	var errs []error
	errs = append(errs, o.Run.Validate()...)
	if o.Serving.Listener == nil {
		errs = append(errs, o.Serving.Validate()...)
	}
	errs = append(errs, o.validateEtcd()...)
	errs = append(errs, o.Audit.Validate()...)
	errs = append(errs, o.Feature.Validate()...)
	errs = append(errs, o.Tracing.Validate()...)
	errs = append(errs, o.Metrics.Validate()...)
	errs = append(errs, logsapi.Validate(o.Logs, utilfeature.DefaultFeatureGate, nil).ToAggregate())
	errs = append(errs, o.validateAccess()...)
	if _, ok := fieldValidations[o.FieldValidation]; !ok {
		errs = append(errs, fmt.Errorf("--field-validation is warn, strict or ignore, not %q", o.FieldValidation))
	}
	if o.IdleTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--idle-timeout is %v: what is used could not be kept; give a positive time, such as 5m", o.IdleTimeout))
	}
	if o.EventTTL < time.Minute {
		errs = append(errs, fmt.Errorf("--event-ttl is %v: events would be gone before anybody sees them; give at least a minute, such as 1h", o.EventTTL))
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.CBORServingAndStorage) {
		errs = append(errs, fmt.Errorf("--feature-gates: %s cannot be true: objects are served and stored as JSON; leave it out", features.CBORServingAndStorage))
	}
	return errors.Join(errs...)
}

func (o *Options) validateAccess() []error {
	errs := o.Identity.Validate()
	errs = append(errs, o.Authorization.validate()...)
	errs = append(errs, o.Admission.Validate()...)
	cert, key := o.Serving.ServerCert.CertKey.CertFile, o.Serving.ServerCert.CertKey.KeyFile
	errs = append(errs, pair("--tls-cert-file", cert, "--tls-private-key-file", key)...)
	for _, file := range []struct{ flag, path string }{
		{"--tls-cert-file", cert}, {"--tls-private-key-file", key},
		{"--admission-control-config-file", o.Admission.ConfigFile}, {"--audit-policy-file", o.Audit.PolicyFile}, {"--encryption-provider-config", o.Etcd.EncryptionProviderConfigFilepath},
		{"--etcd-cafile", o.Etcd.StorageConfig.Transport.TrustedCAFile}, {"--etcd-certfile", o.Etcd.StorageConfig.Transport.CertFile},
		{"--etcd-keyfile", o.Etcd.StorageConfig.Transport.KeyFile},
	} {
		if file.path == "" {
			continue
		}
		if _, err := os.Stat(file.path); err != nil {
			errs = append(errs, fmt.Errorf("%s cannot be read: %w", file.flag, err))
		}
	}
	return errs
}

// pair complains about a certificate without its key, or the other way round.
func pair(certFlag, cert, keyFlag, key string) []error {
	switch {
	case cert != "" && key == "":
		return []error{fmt.Errorf("%s is given without %s: a certificate is of no use without its key; give both or none", certFlag, keyFlag)}
	case cert == "" && key != "":
		return []error{fmt.Errorf("%s is given without %s: a key is of no use without its certificate; give both or none", keyFlag, certFlag)}
	}
	return nil
}

func (o *Options) validateEtcd() []error {
	errs := o.Etcd.Validate()
	transport := &o.Etcd.StorageConfig.Transport
	errs = append(errs, pair("--etcd-certfile", transport.CertFile, "--etcd-keyfile", transport.KeyFile)...)
	secure := transport.CertFile != "" || transport.TrustedCAFile != ""
	for _, server := range transport.ServerList {
		u, err := url.Parse(server)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--etcd-servers: %w", err))
		case u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "unix" && u.Scheme != "unixs":
			errs = append(errs, fmt.Errorf("--etcd-servers: %q has no scheme: write https://host:port", server))
		case u.Scheme == "http" && secure:
			errs = append(errs, fmt.Errorf("--etcd-servers: %s is not encrypted, though --etcd-cafile or --etcd-certfile is given: write https://%s", server, u.Host))
		}
	}
	if len(o.Etcd.EtcdServersOverrides) > 0 {
		errs = append(errs, errors.New("--etcd-servers-overrides is not supported: all resources are in the etcd that --etcd-servers names; leave it out"))
	}
	if len(o.Etcd.WatchCacheSizes) > 0 {
		errs = append(errs, errors.New("--watch-cache-sizes is not supported: watch caches are made when they are needed, and are as large as that; leave it out"))
	}
	if media := o.Etcd.DefaultStorageMediaType; media != "" && media != runtime.ContentTypeJSON {
		errs = append(errs, fmt.Errorf("--storage-media-type is %s: objects are stored as %s; leave it out", media, runtime.ContentTypeJSON))
	}
	return errs
}
