package chain

import (
	"slices"

	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	genericoptions "k8s.io/apiserver/pkg/server/options"

	"github.com/espalier-dev/espalier/server/admission/quota"
)

// NewFlags returns the flags of admission: --enable-admission-plugins,
// --disable-admission-plugins and --admission-control-config-file, as they are in
// kube-apiserver. All plugins are on.
//
// OwnerReferencesPermissionEnforcement, which is off in kube-apiserver, is among
// them. Without it a right to update an object is one to delete it: a reference to
// an owner that does not exist has it collected. Distributions that are shared by
// tenants have it on as well, so controllers ask for the right to update
// <resource>/finalizers of what they own objects by.
func NewFlags() *genericoptions.AdmissionOptions {
	o := genericoptions.NewAdmissionOptions()
	o.Plugins.Register(ownersName, newOwners)
	after := slices.Index(o.RecommendedPluginOrder, lifecycle.PluginName) + 1
	o.RecommendedPluginOrder = slices.Insert(o.RecommendedPluginOrder, after, ownersName)
	o.Plugins.Register(quota.PluginName, quota.NewPlugin)
	o.RecommendedPluginOrder = append(o.RecommendedPluginOrder, quota.PluginName)
	return o
}

// direct are the plugins that take objects as they are, so that nothing needs to be
// prepared for them.
var direct = []string{lifecycle.PluginName, ownersName, quota.PluginName}
