package chain

import (
	"slices"

	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/espalier-dev/espalier/server/admission/limitranger"
	"github.com/espalier-dev/espalier/server/admission/quota"
	"github.com/espalier-dev/espalier/server/admission/runtimeclass"
	"github.com/espalier-dev/espalier/server/admission/serviceaccount"
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
	o.Plugins.Register(ownersName, newOwners)
	after := slices.Index(o.RecommendedPluginOrder, lifecycle.PluginName) + 1
	o.Plugins.Register(limitranger.PluginName, limitranger.NewPlugin)
	o.Plugins.Register(serviceaccount.PluginName, serviceaccount.NewPlugin)
	o.Plugins.Register(runtimeclass.PluginName, runtimeclass.NewPlugin)
	o.RecommendedPluginOrder = slices.Insert(o.RecommendedPluginOrder, after, ownersName, limitranger.PluginName, serviceaccount.PluginName, runtimeclass.PluginName)
	o.Plugins.Register(quota.PluginName, quota.NewPlugin)
	o.RecommendedPluginOrder = append(o.RecommendedPluginOrder, quota.PluginName)
	return o
}

// direct are the plugins that need no conversion of objects.
var direct = []string{lifecycle.PluginName, ownersName, limitranger.PluginName, serviceaccount.PluginName, runtimeclass.PluginName, quota.PluginName}
