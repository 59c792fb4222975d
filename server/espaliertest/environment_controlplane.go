package espaliertest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/kubebuilder"
)

// ControlPlane takes flags. There are no processes, so that their paths and outputs,
// and where they listen, have no meaning here.
type ControlPlane struct {
	// APIServer takes the flags of the server; nil is none.
	APIServer *APIServer
	// Etcd is ignored.
	Etcd *Etcd
	// KubectlPath is ignored.
	KubectlPath string
}

// APIServer takes the flags of the server.
type APIServer struct{ args Arguments }

// Etcd is ignored: the test servers of a process share one.
type Etcd struct{ args Arguments }

// GetAPIServer returns the server's flags.
func (p *ControlPlane) GetAPIServer() *APIServer {
	if p.APIServer == nil {
		p.APIServer = &APIServer{}
	}
	return p.APIServer
}

// Configure returns the flags, to be set before Start. They are those of `espalier
// serve`, and those of kube-apiserver, which are ignored if they mean nothing here.
func (s *APIServer) Configure() *Arguments { return &s.args }

// Configure returns flags that have no effect.
func (e *Etcd) Configure() *Arguments { return &e.args }

// Arguments are flags and their values.
type Arguments struct{ values map[string][]string }

// Set gives a flag these values and no others.
func (a *Arguments) Set(flag string, values ...string) *Arguments {
	if a.values == nil {
		a.values = map[string][]string{}
	}
	a.values[flag] = slices.Clone(values)
	return a
}

// Append gives a flag these values, too, besides those that it has by default:
// --disable-admission-plugins has ServiceAccount, as in envtest.
func (a *Arguments) Append(flag string, values ...string) *Arguments {
	if _, given := a.values[flag]; !given && flag == "disable-admission-plugins" {
		values = slices.Concat(kubebuilder.DisabledPlugins, values)
	}
	return a.AppendNoDefaults(flag, values...)
}

// AppendNoDefaults gives a flag these values, besides those that it was given.
func (a *Arguments) AppendNoDefaults(flag string, values ...string) *Arguments {
	return a.Set(flag, append(a.values[flag], values...)...)
}

// Enable gives a flag without a value.
func (a *Arguments) Enable(flag string) *Arguments { return a.Set(flag, "true") }

// Disable takes a flag back.
func (a *Arguments) Disable(flag string) *Arguments {
	delete(a.values, flag)
	return a
}

// strings returns the arguments as a command line has them.
func (a *Arguments) strings() []string {
	var all []string
	for _, flag := range slices.Sorted(maps.Keys(a.values)) {
		for _, value := range a.values[flag] {
			all = append(all, "--"+flag+"="+value)
		}
	}
	return all
}

// flags returns what sets a server's options to what the flags say.
func (p *ControlPlane) flags() (func(*server.Options), error) {
	if p.APIServer == nil || len(p.APIServer.args.values) == 0 {
		return func(*server.Options) {}, nil
	}
	if len(p.APIServer.args.values["feature-gates"]) > 0 {
		return nil, fmt.Errorf("--feature-gates: feature gates belong to the process, not to one test server: leave the flag out, and set them " +
			"with featuregatetesting.SetFeatureGateDuringTest on k8s.io/apiserver/pkg/util/feature.DefaultFeatureGate")
	}
	args, words := kubebuilder.Arguments(p.APIServer.args.strings())
	apply := func(o *server.Options) ([]string, error) {
		all := pflag.NewFlagSet("server", pflag.ContinueOnError)
		for _, set := range o.Flags().FlagSets {
			all.AddFlagSet(set)
		}
		ignored := kubebuilder.Tolerate(all)
		if err := all.Parse(args); err != nil {
			return nil, err
		}
		return ignored(), nil
	}
	// Options that are about to be used cannot complain.
	more, err := apply(server.NewOptions())
	if err != nil {
		return nil, fmt.Errorf("the server's flags: %w", err)
	}
	for _, text := range append(words, more...) {
		klog.Info(text)
	}
	return func(o *server.Options) { _, _ = apply(o) }, nil
}

// userConfig is the configuration that kubectl would use, or a program in a cluster.
func userConfig() (*rest.Config, error) {
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(clientcmd.NewDefaultClientConfigLoadingRules(), nil).ClientConfig()
	if err == nil {
		unlimited(config)
	}
	return config, err
}
