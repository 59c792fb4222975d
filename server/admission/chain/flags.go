package chain

import (
	"slices"

	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/espalier-dev/espalier/server/admission/ingressclass"
	"github.com/espalier-dev/espalier/server/admission/limitranger"
	"github.com/espalier-dev/espalier/server/admission/podsecurity"
	"github.com/espalier-dev/espalier/server/admission/priority"
	"github.com/espalier-dev/espalier/server/admission/quota"
	"github.com/espalier-dev/espalier/server/admission/runtimeclass"
	"github.com/espalier-dev/espalier/server/admission/serviceaccount"
	"github.com/espalier-dev/espalier/server/admission/taints"
	"github.com/espalier-dev/espalier/server/admission/tolerations"
	"github.com/espalier-dev/espalier/server/admission/trustbundle"
	"github.com/espalier-dev/espalier/server/admission/volumes"
)

// NewFlags returns the flags of admission: --enable-admission-plugins,
// --disable-admission-plugins and --admission-control-config-file, as they are in
// kube-apiserver. All plugins are on.
//
// This includes OwnerReferencesPermissionEnforcement, which is off in kube-apiserver.
// Without it the right to update an object includes the right to delete it: the garbage
// collector deletes objects whose owner does not exist. Multi-tenant distributions turn
// it on as well, so controllers already request the right to update
// <resource>/finalizers of their owner objects.
func NewFlags() *genericoptions.AdmissionOptions {
	o := genericoptions.NewAdmissionOptions()
	after := slices.Index(o.RecommendedPluginOrder, lifecycle.PluginName) + 1
	for i, p := range own {
		o.Plugins.Register(p.name, p.make)
		o.RecommendedPluginOrder = slices.Insert(o.RecommendedPluginOrder, after+i, p.name)
	}
	o.Plugins.Register(quota.PluginName, quota.NewPlugin)
	o.RecommendedPluginOrder = append(o.RecommendedPluginOrder, quota.PluginName)
	return o
}

// own are the plugins of this repository after NamespaceLifecycle and before webhooks, in
// kube-apiserver's order, but for the first one.
var own = []struct {
	name string
	make admission.Factory
}{
	{ownersName, newOwners},
	{limitranger.PluginName, limitranger.NewPlugin},
	{serviceaccount.PluginName, serviceaccount.NewPlugin},
	{taints.PluginName, taints.NewPlugin},
	{podsecurity.PluginName, podsecurity.NewPlugin},
	{priority.PluginName, priority.NewPlugin},
	{tolerations.PluginName, tolerations.NewPlugin},
	{volumes.DefaultName, volumes.NewDefault},
	{volumes.ProtectionName, volumes.NewProtection},
	{volumes.ResizeName, volumes.NewResize},
	{runtimeclass.PluginName, runtimeclass.NewPlugin},
	{trustbundle.PluginName, trustbundle.NewPlugin},
	{ingressclass.PluginName, ingressclass.NewPlugin},
}

// isDirect reports whether a plugin needs no conversion of objects.
func isDirect(name string) bool {
	if name == lifecycle.PluginName || name == quota.PluginName {
		return true
	}
	for _, p := range own {
		if p.name == name {
			return true
		}
	}
	return false
}
