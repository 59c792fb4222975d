package server

import (
	"fmt"
	"os"
	"runtime"

	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/install"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/audit/policy"
	"k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/apiserver/pkg/util/webhook"
	tracing "k8s.io/component-base/tracing/api/v1"
)

// namedFile is a file that a flag names.
type namedFile struct {
	flag, path string
	// read, if not nil, says what is wrong with the content. Package identity reads
	// its own files.
	read func(path string) error
	// secret files are for the server's eyes.
	secret bool
}

// files are those that decide who may come in, and what is kept from whom.
func (o *Options) files() []namedFile {
	kubeconfig := func(path string) error { _, err := webhook.LoadKubeconfig(path, nil); return err }
	transport := &o.Etcd.StorageConfig.Transport
	all := []namedFile{
		{flag: "--tls-private-key-file", path: o.Serving.ServerCert.CertKey.KeyFile, secret: true},
		{flag: "--etcd-keyfile", path: transport.KeyFile, secret: true},
		{flag: "--etcd-cafile", path: transport.TrustedCAFile, read: present},
		{flag: "--service-account-signing-key-file", path: o.Identity.ServiceAccounts.SigningKeyFile, secret: true},
		{flag: "--client-ca-file", path: o.Identity.ClientCAFile},
		{flag: "--requestheader-client-ca-file", path: o.Identity.RequestHeader.ClientCAFile},
		{flag: "--cluster-signing-key-file", path: o.Signing.KeyFile, secret: true},
		{flag: "--token-auth-file", path: o.Identity.TokenFile, secret: true},
		{flag: "--authentication-config", path: o.Identity.ConfigurationFile},
		{flag: "--authentication-token-webhook-config-file", path: o.Identity.Webhook.ConfigFile, secret: true},
		{flag: "--authorization-webhook-config-file", path: o.Authorization.WebhookConfigFile, secret: true, read: kubeconfig},
		{flag: authorizationConfigFlag, path: o.Authorization.ConfigFile, read: readAuthorization},
		{flag: "--admission-control-config-file", path: o.Admission.ConfigFile, read: present},
		{flag: "--encryption-provider-config", path: o.Etcd.EncryptionProviderConfigFilepath, secret: true, read: func(path string) error { _, err := o.parseEncryption(path); return err }},
		{flag: "--audit-policy-file", path: o.Audit.PolicyFile, read: func(path string) error { _, err := policy.LoadPolicyFromFile(path); return err }},
		{flag: "--audit-webhook-config-file", path: o.Audit.WebhookOptions.ConfigFile, secret: true, read: kubeconfig},
		{flag: "--tracing-config-file", path: o.Tracing.ConfigFile, read: readTracing},
	}
	for _, path := range o.Identity.ServiceAccounts.KeyFiles {
		all = append(all, namedFile{flag: "--service-account-key-file", path: path})
	}
	for _, sni := range o.Serving.SNICertKeys {
		all = append(all, namedFile{flag: "--tls-sni-cert-key", path: sni.KeyFile, secret: true})
	}
	if _, key, ok := o.ownCertificate(); ok {
		all = append(all, namedFile{flag: "--cert-dir", path: key, secret: true})
	}
	return all
}

func (o *Options) validateFiles() []error {
	var errs []error
	for _, file := range o.files() {
		if file.path == "" {
			continue
		}
		info, err := os.Stat(file.path)
		switch {
		case err != nil && file.read != nil:
			errs = append(errs, fmt.Errorf("%s cannot be read: %w", file.flag, err))
		case err != nil:
		case othersMay(info, 0o002):
			errs = append(errs, fmt.Errorf("%s: every user of this machine can write to %s (mode %#o), and so change who may do what; remove the permission: chmod o-w %s",
				file.flag, file.path, info.Mode().Perm(), file.path))
		case file.read != nil:
			if err := file.read(file.path); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", file.flag, err))
			}
		}
	}
	return errs
}

// othersMay reports whether all users of the machine have access to a file. Windows has
// no such bits.
func othersMay(info os.FileInfo, bits os.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().IsRegular() && info.Mode().Perm()&bits != 0
}

// present is for files whose content is validated by their reader.
func present(string) error { return nil }

func readTracing(path string) error {
	config, err := options.ReadTracingConfiguration(path)
	if err != nil {
		return err
	}
	return tracing.ValidateTracingConfiguration(config, utilfeature.DefaultFeatureGate, nil).ToAggregate()
}

// encryptions reads EncryptionConfigurations, strictly.
var encryptions = func() apiruntime.Decoder {
	scheme := apiruntime.NewScheme()
	install.Install(scheme)
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDecoder(apiserver.SchemeGroupVersion)
}()

// parseEncryption reads what says how objects are encrypted, without talking to a key
// management service.
func (o *Options) parseEncryption(path string) (*apiserver.EncryptionConfiguration, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	object, kind, err := encryptions.Decode(data, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; give an EncryptionConfiguration of apiserver.config.k8s.io/v1", path, err)
	}
	config, ok := object.(*apiserver.EncryptionConfiguration)
	if !ok {
		return nil, fmt.Errorf("%s holds the kind %s; give an EncryptionConfiguration of apiserver.config.k8s.io/v1", path, kind.Kind)
	}
	return config, validation.ValidateEncryptionConfiguration(config, o.Etcd.EncryptionProviderConfigAutomaticReload).ToAggregate()
}

// readAuthorization reads an AuthorizationConfiguration and the kubeconfigs that it
// names, without talking to a webhook.
func readAuthorization(path string) error {
	config, _, err := loadAuthorization(path)
	if err != nil {
		return err
	}
	for _, c := range config.Authorizers {
		if c.Webhook == nil {
			continue
		}
		if _, err := webhook.LoadKubeconfig(*c.Webhook.ConnectionInfo.KubeConfigFile, nil); err != nil {
			return fmt.Errorf("webhook %s: %w", c.Name, err)
		}
	}
	return nil
}
