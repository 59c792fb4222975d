package server

import (
	"context"
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/options"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	encryptioncontroller "k8s.io/apiserver/pkg/server/options/encryptionconfig/controller"
)

// encrypt sets up encryption at rest as --encryption-provider-config asks for.
// The library's own way to do so brings two more connections to etcd.
func encrypt(ctx context.Context, o *options.EtcdOptions, c *genericapiserver.Config) (err error) {
	if o.EncryptionProviderConfigFilepath == "" {
		return nil
	}
	transforming, stop := context.WithCancel(ctx)
	defer func() {
		if err != nil {
			stop()
		}
	}()
	reload := o.EncryptionProviderConfigAutomaticReload
	config, err := encryptionconfig.LoadEncryptionConfig(transforming, o.EncryptionProviderConfigFilepath, reload, c.APIServerID)
	if err != nil {
		return fmt.Errorf("--encryption-provider-config: %w", err)
	}
	if !reload {
		c.ResourceTransformers = encryptionconfig.StaticTransformers(config.Transformers)
		c.AddReadyzChecks(config.HealthChecks...)
		c.AddHealthzChecks(config.HealthChecks...)
		return nil
	}
	if len(config.HealthChecks) != 1 {
		return fmt.Errorf("--encryption-provider-config-automatic-reload: got %d health checks, want one for all providers", len(config.HealthChecks))
	}
	dynamic := encryptionconfig.NewDynamicTransformers(config.Transformers, config.HealthChecks[0], stop, config.KMSCloseGracePeriod)
	c.ResourceTransformers = dynamic
	c.AddReadyzChecks(dynamic)
	c.AddHealthzChecks(dynamic)
	return c.AddPostStartHook("encryption-provider-config-reload", func(genericapiserver.PostStartHookContext) error {
		controller := encryptioncontroller.NewDynamicEncryptionConfiguration("encryption-provider-config-reload",
			o.EncryptionProviderConfigFilepath, dynamic, config.EncryptionFileContentHash, c.APIServerID)
		go controller.Run(ctx)
		return nil
	})
}
