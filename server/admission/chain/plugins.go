package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	mutatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	validatingpolicy "k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	hooks "k8s.io/apiserver/pkg/admission/plugin/webhook/initializer"
	mutatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating"
	validatingwebhook "k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	apiserverapi "k8s.io/apiserver/pkg/apis/apiserver"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	apiserverv1alpha1 "k8s.io/apiserver/pkg/apis/apiserver/v1alpha1"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	genericoptions "k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"github.com/espalier-dev/espalier/server/admission/quota"
	"github.com/espalier-dev/espalier/server/catalog/restmapping"
	"github.com/espalier-dev/espalier/server/webhook"
)

// rediscovery is how often the cached discovery is dropped.
const rediscovery = 30 * time.Second

// Options configure the chain.
type Options struct {
	// Flags enable and configure plugins; nil enables all with their defaults. They are
	// those of kube-apiserver: --enable-admission-plugins, --disable-admission-plugins,
	// --admission-control-config-file.
	Flags *genericoptions.AdmissionOptions

	Client  kubernetes.Interface
	Dynamic dynamic.Interface
	// Informers must be started after New: it asks for those that plugins need.
	Informers  informers.SharedInformerFactory
	Authorizer authorizer.Authorizer
	// Kinds returns the resources of the server, nil while it is being built. If it
	// is nil itself, the resources of parameters and owners are found by discovery.
	Kinds func() *restmapping.Kinds
	// Services resolves the services of webhooks; nil if there are none.
	Services webhookutil.ServiceResolver
	// Webhooks makes the calls of webhooks.
	Webhooks *webhook.Client
	// ServerID is the server's name in metrics. May be empty.
	ServerID string
}

// New returns the chain, which lives as long as the context.
func New(ctx context.Context, o Options) (*Chain, error) {
	if o.Client == nil || o.Dynamic == nil || o.Informers == nil || o.Authorizer == nil || o.Webhooks == nil {
		return nil, errors.New("the admission chain needs a client, a dynamic client, informers, an authorizer and a client for webhooks")
	}
	if o.Flags == nil {
		o.Flags = NewFlags()
	}
	names := Enabled(o.Flags)
	config, err := admission.ReadAdmissionConfiguration(names, o.Flags.ConfigFile, configScheme())
	if err != nil {
		return nil, fmt.Errorf("failed to load the admission configuration: %w", err)
	}
	c := &Chain{settings: &settings{}}
	sources, err := c.settings.watchAll(o.Informers, names)
	if err != nil {
		return nil, err
	}
	initializers := o.initializers(ctx, sources[mutatingpolicy.PluginName])
	for _, name := range names {
		if err := c.add(name, o.Flags, config, initializers); err != nil {
			return nil, err
		}
		c.others = c.others || !isDirect(name) && sources[name] == nil
	}
	return c, nil
}

// add makes a plugin and puts it at the end of the chain.
func (c *Chain) add(name string, flags *genericoptions.AdmissionOptions, config admission.ConfigProvider, i admission.PluginInitializer) error {
	reader, err := config.ConfigFor(name)
	if err != nil {
		return err
	}
	plugin, err := flags.Plugins.InitPlugin(name, reader, i)
	if err != nil {
		return err
	}
	// Measuring a plugin costs more than the lookup of a namespace.
	to, decorated := &c.direct, plugin
	switch {
	case name == quota.PluginName:
		to = &c.last
	case !isDirect(name):
		to, decorated = &c.asking, flags.Decorators.Decorate(plugin, name)
	}
	if _, ok := plugin.(admission.MutationInterface); ok {
		to.mutating = append(to.mutating, decorated.(admission.MutationInterface))
	}
	if _, ok := plugin.(admission.ValidationInterface); ok {
		to.validating = append(to.validating, decorated.(admission.ValidationInterface))
	}
	return nil
}

// Enabled returns the names of the plugins that the flags turn on, in their order.
func Enabled(flags *genericoptions.AdmissionOptions) []string {
	return slices.DeleteFunc(slices.Clone(flags.RecommendedPluginOrder), func(name string) bool {
		off := flags.DefaultOffPlugins.Has(name) || slices.Contains(flags.DisablePlugins, name)
		return off && !slices.Contains(flags.EnablePlugins, name)
	})
}

// configScheme has the types of the admission configuration file.
func configScheme() *runtime.Scheme {
	s := runtime.NewScheme()
	utilruntime.Must(apiserverapi.AddToScheme(s))
	utilruntime.Must(apiserverv1alpha1.AddToScheme(s))
	utilruntime.Must(apiserverv1.AddToScheme(s))
	return s
}

// watchAll counts the configuration of plugins: webhooks, and bindings of policies.
// Policies without bindings have no effect.
func (s *settings) watchAll(f informers.SharedInformerFactory, names []string) (map[string]*source, error) {
	v1 := f.Admissionregistration().V1()
	sources := map[string]*source{}
	for name, informer := range map[string]func() cache.SharedIndexInformer{
		mutatingpolicy.PluginName:    func() cache.SharedIndexInformer { return v1.MutatingAdmissionPolicyBindings().Informer() },
		validatingpolicy.PluginName:  func() cache.SharedIndexInformer { return v1.ValidatingAdmissionPolicyBindings().Informer() },
		mutatingwebhook.PluginName:   func() cache.SharedIndexInformer { return v1.MutatingWebhookConfigurations().Informer() },
		validatingwebhook.PluginName: func() cache.SharedIndexInformer { return v1.ValidatingWebhookConfigurations().Informer() },
	} {
		if !slices.Contains(names, name) {
			continue
		}
		var err error
		if sources[name], err = s.watch(informer()); err != nil {
			return nil, err
		}
	}
	return sources, nil
}

// initializers pass clients, informers and other dependencies to plugins.
func (o *Options) initializers(ctx context.Context, policies *source) admission.PluginInitializers {
	services := o.Services
	if services == nil {
		services = webhook.NoServices{}
	}
	return admission.PluginInitializers{
		initializer.NewAPIServerIDInitializer(o.ServerID),
		exclusions{},
		initializer.New(quiet(ctx, o.Client, policies), o.Dynamic, ownParameters{o.Informers}, o.Authorizer,
			utilfeature.DefaultFeatureGate, compatibility.DefaultBuildEffectiveVersion(), ctx.Done(), o.mapper(ctx)),
		hooks.NewPluginInitializer(o.Webhooks.Guard, services),
	}
}

// mapper looks up the resources of kinds. Without the server's own, it asks
// discovery when something is looked up, and again from time to time.
func (o *Options) mapper(ctx context.Context) meta.RESTMapper {
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(o.Client.Discovery()))
	if o.Kinds != nil {
		return restmapping.Mapper{RESTMapper: mapper, Kinds: o.Kinds}
	}
	go wait.Until(mapper.Reset, rediscovery, ctx.Done())
	return mapper
}

// exclusions passes plugins the resources that they must ignore: with reviews, a plugin
// could lock out all users.
type exclusions struct{}

// Initialize implements admission.PluginInitializer.
func (exclusions) Initialize(plugin admission.Interface) {
	if p, ok := plugin.(initializer.WantsExcludedAdmissionResources); ok {
		p.SetExcludedAdmissionResources(slices.Collect(maps.Keys(quota.Reviews)))
	}
}
