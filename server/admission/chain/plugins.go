package chain

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
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
	// Anonymous calls all webhooks without the credentials that the admission configuration
	// file has for them: they are the operator's, and others may configure webhooks.
	Anonymous bool
	// ServerID is the server's name in metrics. May be empty.
	ServerID string
	// Lazy makes plugins for webhooks and policies when the first of these is configured:
	// they take a megabyte. Informers must take new kinds after their start then.
	Lazy bool
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
	made := func(to *steps, wanted func(name string) bool) error {
		for _, name := range names {
			if !wanted(name) {
				continue
			}
			if err := to.add(name, o.Flags, config, initializers); err != nil {
				return err
			}
		}
		return nil
	}
	if err := errors.Join(made(&c.direct, func(name string) bool { return name != quota.PluginName && isDirect(name) }),
		made(&c.last, func(name string) bool { return name == quota.PluginName })); err != nil {
		return nil, err
	}
	c.asking = sync.OnceValues(func() (*steps, error) {
		to := &steps{}
		return to, made(to, func(name string) bool { return !isDirect(name) })
	})
	for _, name := range names {
		c.others = c.others || !isDirect(name) && sources[name] == nil
	}
	if o.Lazy {
		return c, nil
	}
	_, err = c.asking()
	return c, err
}

// add makes a plugin and puts it at the end.
func (s *steps) add(name string, flags *genericoptions.AdmissionOptions, config admission.ConfigProvider, i admission.PluginInitializer) error {
	reader, err := config.ConfigFor(name)
	if err != nil {
		return err
	}
	plugin, err := flags.Plugins.InitPlugin(name, reader, i)
	if err != nil {
		return err
	}
	decorated := plugin
	if !isDirect(name) { // measuring a plugin costs more than the lookup of a namespace
		decorated = flags.Decorators.Decorate(plugin, name)
	}
	if _, ok := plugin.(admission.MutationInterface); ok {
		s.mutating = append(s.mutating, decorated.(admission.MutationInterface))
	}
	if _, ok := plugin.(admission.ValidationInterface); ok {
		s.validating = append(s.validating, decorated.(admission.ValidationInterface))
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
		hooks.NewPluginInitializer(o.credentials, services),
	}
}

// credentials are those that webhooks are called with. configured has those of the file.
func (o *Options) credentials(configured webhookutil.AuthenticationInfoResolver) webhookutil.AuthenticationInfoResolver {
	if o.Anonymous {
		return o.Webhooks.Anonymous()
	}
	return o.Webhooks.Guard(configured)
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
