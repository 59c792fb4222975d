package server

import (
	"net/netip"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics"

	"github.com/espalier-dev/espalier/server/admission/chain"
	"github.com/espalier-dev/espalier/server/apis/certificates"
	"github.com/espalier-dev/espalier/server/apis/services"
	"github.com/espalier-dev/espalier/server/auth/authentication"
	"github.com/espalier-dev/espalier/server/storage/store"
	"github.com/espalier-dev/espalier/server/webhook"
)

// Options are what the flags of `espalier serve` set: those of kube-apiserver
// where it has them, with its names.
type Options struct {
	Run           *options.ServerRunOptions
	Serving       *options.SecureServingOptions
	Identity      *authentication.Options
	Authorization *Authorization
	Signing       *certificates.Options
	Admission     *options.AdmissionOptions
	Webhooks      *webhook.Options
	Etcd          *options.EtcdOptions
	Audit         *options.AuditOptions
	Feature       *options.FeatureOptions
	Tracing       *options.TracingOptions
	Logs          *logsapi.LoggingConfiguration
	Metrics       *metrics.Options
	Limits        *Limits

	// Kinds are the built-in resources that are on.
	Kinds Kinds
	// Controllers are those that run, by name; * is all that run by default, and -name
	// excludes one.
	Controllers []string
	// ServiceClusterIPRange and ServiceNodePortRange are where the cluster IPs and node
	// ports of Services come from.
	ServiceClusterIPRange, ServiceNodePortRange string
	// RootCAFile has the CA that verifies the server, which is published in every
	// namespace. Empty: the last certificate of the chain that the server presents.
	RootCAFile string
	// ProtectInstances refuses to delete CRDs that have instances.
	ProtectInstances bool
	// RequirePlan refuses changes of CRDs that lose data, unless a plan was approved.
	RequirePlan bool
	// Tenants serves each object tenants.espalier.dev as a server of its own, below
	// /clusters/NAME.
	Tenants bool
	// TenantIdleTimeout is how long what serves a tenant is kept without requests.
	TenantIdleTimeout time.Duration
	// TenantsKept is how many tenants without a request under way are kept for that long.
	TenantsKept int
	// EtcdInsecure lets etcd be on another machine without encryption.
	EtcdInsecure bool
	// EventTTL is how long events are kept.
	EventTTL time.Duration
	// FieldValidation is for requests that do not say: warn, strict or ignore.
	FieldValidation string
	// IdleTimeout is how long what serves a resource is kept without use.
	IdleTimeout time.Duration
	// AllowSettingsMismatch names flags whose values may conflict with those of other
	// replicas.
	AllowSettingsMismatch []string
	// Version is the program's, for /version and the logs.
	Version string

	// observe, if not nil, sees the configuration when it is complete: the tests
	// of this package record what filters and handlers are told.
	observe func(*genericapiserver.Config)
}

// loggingFeatures makes the feature gates of logging known, once: the gates
// belong to the process, and are closed when the first flags are made.
var loggingFeatures = sync.OnceFunc(func() {
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
})

// NewOptions returns the defaults.
func NewOptions() *Options {
	loggingFeatures()
	o := &Options{
		Run:           options.NewServerRunOptions(),
		Serving:       options.NewSecureServingOptions(),
		Identity:      authentication.NewOptions(),
		Authorization: newAuthorization(),
		Signing:       certificates.NewOptions(),
		Admission:     chain.NewFlags(),
		Webhooks:      &webhook.Options{},
		Etcd:          options.NewEtcdOptions(storagebackend.NewDefaultConfig("/registry", nil)),
		Audit:         options.NewAuditOptions(),
		Feature:       options.NewFeatureOptions(),
		Tracing:       options.NewTracingOptions(),
		Logs:          logsapi.NewLoggingConfiguration(),
		Metrics:       metrics.NewOptions(),
		Limits:        newLimits(),

		Kinds:            KindsControlPlane,
		Controllers:      []string{allControllers},
		ProtectInstances: true,

		ServiceClusterIPRange: services.DefaultClusterIPRange,
		ServiceNodePortRange:  services.DefaultNodePortRange,

		TenantIdleTimeout: time.Minute,
		TenantsKept:       100,

		EventTTL:        time.Hour,
		FieldValidation: "warn",
		IdleTimeout:     store.DefaultIdle,
		Version:         "development",
	}
	o.Serving.BindPort = 6443
	o.Serving.Required = true
	o.Run.ShutdownWatchTerminationGracePeriod = 5 * time.Second
	o.Feature.EnableProfiling = false
	return o
}

// meaningless are flags of k8s.io/apiserver that have no use here. They are accepted with
// values that change nothing, and are hidden.
var meaningless = []string{
	"default-watch-cache-size", "delete-collection-workers", "emulation-forward-compatible", "enable-garbage-collector",
	"etcd-count-metric-poll-period", "lease-reuse-duration-seconds",
	"runtime-config-emulation-forward-compatible", "storage-backend", "storage-initialization-timeout", "storage-media-type",
	"watch-cache-sizes",
}

// Flags returns the flags in groups, bound to the options.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	o.Identity.AddFlags(sets.FlagSet("authentication"))
	o.Authorization.addFlags(sets.FlagSet("authorization"))
	o.Signing.AddFlags(sets.FlagSet("certificates"))
	o.Admission.AddFlags(sets.FlagSet("admission"))
	o.Webhooks.AddFlags(sets.FlagSet("webhooks"))
	o.Serving.AddFlags(sets.FlagSet("secure serving"))
	o.Etcd.AddFlags(sets.FlagSet("etcd"))
	sets.FlagSet("etcd").Lookup("etcd-servers-overrides").Usage = "Other etcds for some resources: GROUP/RESOURCE#SERVERS, separated by commas, where SERVERS are URLs, separated by semicolons. " +
		"/events, events.k8s.io/events and coordination.k8s.io/leases can be in another etcd. The certificates are those of --etcd-servers. Objects that exist already are not moved. Example: --etcd-servers-overrides=/events#https://etcd-events:2379."
	sets.FlagSet("etcd").BoolVar(&o.EtcdInsecure, "etcd-insecure", o.EtcdInsecure,
		"Talk to etcd on other machines without encryption, if --etcd-servers says so. Only for networks that encrypt by themselves: anyone on the network can read all objects, and anyone who can connect to etcd can change them.")
	objects := sets.FlagSet("objects")
	objects.StringVar((*string)(&o.Kinds), "kinds", string(o.Kinds), KindsHelp)
	objects.StringVar(&o.ServiceClusterIPRange, "service-cluster-ip-range", o.ServiceClusterIPRange,
		"Range of the cluster IPs of Services, with --kinds=all: a CIDR, or an IPv4 and an IPv6 CIDR separated by a comma, for Services with both. All replicas must have the same range. Example: --service-cluster-ip-range=10.96.0.0/16.")
	objects.StringVar(&o.ServiceNodePortRange, "service-node-port-range", o.ServiceNodePortRange,
		"Range of the node ports of Services, with --kinds=all. All replicas must have the same range. Example: --service-node-port-range=30000-32767.")
	objects.StringVar(&o.FieldValidation, "field-validation", o.FieldValidation,
		"How to treat unknown and duplicate fields if a request does not set fieldValidation: warn (drop them and return a warning), strict (reject the request) or ignore (drop them).")
	controllers := sets.FlagSet("controllers")
	controllers.StringSliceVar(&o.Controllers, "controllers", o.Controllers, controllersHelp())
	controllers.StringVar(&o.RootCAFile, "root-ca-file", o.RootCAFile,
		"File with the CA certificates that verify the server. They are in the ConfigMap kube-root-ca.crt of every namespace, if "+rootPublisher+" runs. "+
			"Without it, the ConfigMap has the last certificate of --tls-cert-file.")
	objects.BoolVar(&o.ProtectInstances, "protect-instances", o.ProtectInstances,
		"Refuse to delete a CustomResourceDefinition while there are objects of it, unless its annotation espalier.dev/allow-deletion is \"true\". "+
			"Without it, the objects are deleted with the CRD, as in Kubernetes.")
	objects.BoolVar(&o.RequirePlan, "require-plan", o.RequirePlan,
		"Refuse a change of a CustomResourceDefinition that would lose data of stored objects, unless its annotation espalier.dev/approved-plan has the id of a plan of this change (espalier plan). "+
			"Without it, only changes of CRDs with the annotation espalier.dev/require-plan: \"true\" are refused.")
	objects.DurationVar(&o.EventTTL, "event-ttl", o.EventTTL, "How long events are kept.")
	objects.DurationVar(&o.IdleTimeout, "idle-timeout", o.IdleTimeout,
		"How long the handlers and the watch cache of a resource are kept without use.")
	sets.FlagSet("replicas").StringSliceVar(&o.AllowSettingsMismatch, "allow-settings-mismatch", o.AllowSettingsMismatch,
		"Names of flags, without dashes, whose values may conflict with those of replicas that run on the same etcd. Without it such a replica does not start. "+
			"Use it while you change the flag by a rolling restart, and remove it afterwards.")
	tenancy := sets.FlagSet("tenants")
	tenancy.BoolVar(&o.Tenants, "tenants", o.Tenants,
		"Serve every object tenants.espalier.dev as an API server of its own, with CRDs, namespaces, roles and service accounts of its own, at /clusters/NAME. All replicas must have the same value.")
	tenancy.DurationVar(&o.TenantIdleTimeout, "tenant-idle-timeout", o.TenantIdleTimeout,
		"How long the handlers and controllers of a tenant are kept without requests. A tenant that is not used takes no memory; the next request starts it again. Example: --tenant-idle-timeout=30s.")
	tenancy.IntVar(&o.TenantsKept, "tenants-kept", o.TenantsKept,
		"How many tenants without a request under way are kept for --tenant-idle-timeout. Each takes some megabytes; the one that was not used for the longest time is closed first. Example: --tenants-kept=500.")
	o.Run.AddUniversalFlags(sets.FlagSet("requests"))
	o.Limits.addFlags(sets.FlagSet("clients"))
	o.Audit.AddFlags(sets.FlagSet("auditing"))
	sets.FlagSet("auditing").Lookup("audit-log-path").Usage = "File of the audit log; - is standard output. With an empty path nothing is logged."
	sets.FlagSet("auditing").Lookup("audit-policy-file").Usage = "File with the audit policy. " +
		"Without it the server records changes, requests for tokens, access to secrets, and requests that were denied: who, when, from where and what, without contents."
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

// unencrypted returns the etcd servers on other machines that are talked to
// without encryption.
func unencrypted(servers []string) []string {
	return slices.DeleteFunc(slices.Clone(servers), func(server string) bool {
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
