package server

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/features"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics"

	"github.com/espalier-dev/espalier/server/store"
)

// Options are what the flags of `espalier serve` set: those of kube-apiserver
// where it has them, with its names.
type Options struct {
	Run     *options.ServerRunOptions
	Serving *options.SecureServingOptions
	Etcd    *options.EtcdOptions
	Audit   *options.AuditOptions
	Feature *options.FeatureOptions
	Tracing *options.TracingOptions
	Logs    *logsapi.LoggingConfiguration
	Metrics *metrics.Options

	// ClientCAFile holds the authorities that sign the certificates of clients.
	ClientCAFile string
	// AllowedGroup is the one group whose members are let in.
	AllowedGroup string
	// FieldValidation is for requests that do not say: warn, strict or ignore.
	FieldValidation string
	// IdleTimeout is how long what serves a resource is kept without use.
	IdleTimeout time.Duration
	// Version is the program's, for /version and the logs.
	Version string
}

// fieldValidations are the values of --field-validation, and what requests say.
var fieldValidations = map[string]string{"warn": "Warn", "strict": "Strict", "ignore": "Ignore"}

// loggingFeatures makes the feature gates of logging known, once: the gates
// belong to the process, and are closed when the first flags are made.
var loggingFeatures = sync.OnceFunc(func() {
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
})

// NewOptions returns the defaults.
func NewOptions() *Options {
	loggingFeatures()
	o := &Options{
		Run:     options.NewServerRunOptions(),
		Serving: options.NewSecureServingOptions(),
		Etcd:    options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil)),
		Audit:   options.NewAuditOptions(),
		Feature: options.NewFeatureOptions(),
		Tracing: options.NewTracingOptions(),
		Logs:    logsapi.NewLoggingConfiguration(),
		Metrics: metrics.NewOptions(),

		AllowedGroup:    user.SystemPrivilegedGroup,
		FieldValidation: "warn",
		IdleTimeout:     store.DefaultIdle,
		Version:         "development",
	}
	o.Serving.BindPort = 6443
	o.Serving.Required = true
	o.Run.ShutdownWatchTerminationGracePeriod = 5 * time.Second
	o.Feature.EnableProfiling = false
	o.Feature.EnablePriorityAndFairness = false
	return o
}

// meaningless are flags that come with the library's and that nobody needs
// here; they are accepted with the values that mean nothing, and not shown.
var meaningless = []string{
	"default-watch-cache-size", "delete-collection-workers", "emulation-forward-compatible", "enable-garbage-collector",
	"etcd-count-metric-poll-period", "etcd-servers-overrides", "lease-reuse-duration-seconds",
	"runtime-config-emulation-forward-compatible", "storage-backend", "storage-initialization-timeout", "storage-media-type",
	"watch-cache-sizes",
}

// Flags returns the flags in groups, bound to the options.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	access := sets.FlagSet("access")
	access.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"PEM file with the authorities that sign the certificates of clients; required. The common name of a certificate is the user, "+
			"its organizations are the groups. The file is read again when it changes.")
	access.StringVar(&o.AllowedGroup, "allowed-group", o.AllowedGroup,
		"The group whose members are let in, to everything. Nobody else is; only /livez, /readyz and /healthz are open.")
	o.Serving.AddFlags(sets.FlagSet("secure serving"))
	o.Etcd.AddFlags(sets.FlagSet("etcd"))
	objects := sets.FlagSet("objects")
	objects.StringVar(&o.FieldValidation, "field-validation", o.FieldValidation,
		"What becomes of unknown and duplicate fields if a request does not say: warn (drop them, and say so), strict (refuse the request) or ignore (drop them).")
	objects.DurationVar(&o.IdleTimeout, "idle-timeout", o.IdleTimeout,
		"How long the handlers and the watch cache of a resource are kept without use.")
	o.Run.AddUniversalFlags(sets.FlagSet("requests"))
	o.Audit.AddFlags(sets.FlagSet("auditing"))
	o.Feature.AddFlags(sets.FlagSet("features"))
	o.Tracing.AddFlags(sets.FlagSet("traces"))
	o.Metrics.AddFlags(sets.FlagSet("metrics"))
	logsapi.AddFlags(o.Logs, sets.FlagSet("logs"))
	for _, set := range sets.FlagSets {
		hide(set)
	}
	return sets
}

// hide keeps what is meaningless out of the help.
func hide(set *pflag.FlagSet) {
	for _, name := range meaningless {
		if flag := set.Lookup(name); flag != nil {
			flag.Hidden = true
		}
	}
}

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
	if o.Feature.EnablePriorityAndFairness {
		errs = append(errs, errors.New("--enable-priority-and-fairness cannot be true: the flow schemas and priority levels that it reads are not served yet; "+
			"leave it out, and bound requests with --max-requests-inflight and --max-mutating-requests-inflight"))
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.CBORServingAndStorage) {
		errs = append(errs, fmt.Errorf("--feature-gates: %s cannot be true: objects are served and stored as JSON; leave it out", features.CBORServingAndStorage))
	}
	return errors.Join(errs...)
}

func (o *Options) validateAccess() []error {
	var errs []error
	if o.ClientCAFile == "" {
		errs = append(errs, errors.New("--client-ca-file is missing: clients are known by their certificates alone, and without the authority that signs them nobody could come in; "+
			"give the authority's certificate as a PEM file"))
	}
	switch o.AllowedGroup {
	case "":
		errs = append(errs, errors.New("--allowed-group is empty: nobody could come in; name the organization that the certificates of those have who may"))
	case user.AllUnauthenticated:
		errs = append(errs, fmt.Errorf("--allowed-group cannot be %s, the group of those who are not known; name one that certificates have", user.AllUnauthenticated))
	}
	cert, key := o.Serving.ServerCert.CertKey.CertFile, o.Serving.ServerCert.CertKey.KeyFile
	errs = append(errs, pair("--tls-cert-file", cert, "--tls-private-key-file", key)...)
	for _, file := range []struct{ flag, path string }{
		{"--client-ca-file", o.ClientCAFile}, {"--tls-cert-file", cert}, {"--tls-private-key-file", key},
		{"--audit-policy-file", o.Audit.PolicyFile}, {"--encryption-provider-config", o.Etcd.EncryptionProviderConfigFilepath},
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
		errs = append(errs, errors.New("--watch-cache-sizes is not supported: it is for built-in resources, of which there are none; leave it out"))
	}
	if media := o.Etcd.DefaultStorageMediaType; media != "" && media != runtime.ContentTypeJSON {
		errs = append(errs, fmt.Errorf("--storage-media-type is %s: objects are stored as %s; leave it out", media, runtime.ContentTypeJSON))
	}
	return errs
}

// openEtcd returns the etcd servers on other machines that are talked to
// without encryption.
func (o *Options) openEtcd() []string {
	return slices.DeleteFunc(slices.Clone(o.Etcd.StorageConfig.Transport.ServerList), func(server string) bool {
		u, err := url.Parse(server)
		if err != nil || u.Scheme != "http" || u.Hostname() == "localhost" {
			return true
		}
		ip, err := netip.ParseAddr(u.Hostname())
		return err == nil && ip.IsLoopback()
	})
}

// ApplyToProcess sets up what a process has one of: feature gates, logging and
// metrics. It is for main programs, after parsing the flags and once.
func (o *Options) ApplyToProcess() error {
	if err := o.Run.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	if err := logsapi.ValidateAndApply(o.Logs, utilfeature.DefaultFeatureGate); err != nil {
		return err
	}
	// Apply complains, as an error, about flags that are not given.
	if m := o.Metrics; m.ShowHiddenMetricsForVersion != "" || len(m.DisabledMetrics) > 0 || len(m.AllowListMapping) > 0 || m.AllowListMappingManifest != "" {
		m.Apply()
	}
	return nil
}
