package server

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	logsapi "k8s.io/component-base/logs/api/v1"

	"github.com/espalier-dev/espalier/server/endpoints"
)

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
	errs = append(errs, o.Limits.validate()...)
	errs = append(errs, logsapi.Validate(o.Logs, utilfeature.DefaultFeatureGate, nil).ToAggregate())
	errs = append(errs, o.validateAccess()...)
	errs = append(errs, o.validateMismatch()...)
	errs = append(errs, o.Kinds.Validate())
	errs = append(errs, o.validateControllers()...)
	if _, err := o.serviceRanges(); err != nil {
		errs = append(errs, err)
	}
	if _, ok := endpoints.FieldValidations[o.FieldValidation]; !ok {
		errs = append(errs, fmt.Errorf("--field-validation is warn, strict or ignore, not %q", o.FieldValidation))
	}
	if o.IdleTimeout <= 0 {
		errs = append(errs, fmt.Errorf("--idle-timeout is %v: watch caches and schemas in use would be dropped at once; give a positive time, such as 5m", o.IdleTimeout))
	}
	if o.TenantIdleTimeout < 100*time.Millisecond || o.TenantsKept < 0 {
		errs = append(errs, fmt.Errorf("--tenant-idle-timeout is %v and --tenants-kept is %d: give at least 100ms, such as 1m, and a number that is not negative", o.TenantIdleTimeout, o.TenantsKept))
	}
	if o.Run.RequestTimeout == 0 {
		errs = append(errs, errors.New("--request-timeout is 0s: every request would time out at once; give a positive time, such as 1m"))
	}
	if o.EventTTL < time.Minute {
		errs = append(errs, fmt.Errorf("--event-ttl is %v: events would expire before a user sees them; give at least a minute, such as 1h", o.EventTTL))
	}
	if utilfeature.DefaultFeatureGate.Enabled(features.CBORServingAndStorage) {
		errs = append(errs, fmt.Errorf("--feature-gates: %s must not be true: objects are served and stored as JSON; leave it out", features.CBORServingAndStorage))
	}
	return errors.Join(errs...)
}

func (o *Options) validateAccess() []error {
	errs := o.Identity.Validate()
	errs = append(errs, o.Authorization.validate()...)
	errs = append(errs, o.Signing.Validate()...)
	errs = append(errs, o.Admission.Validate()...)
	errs = append(errs, o.Webhooks.Validate())
	errs = append(errs, o.validateTLS()...)
	errs = append(errs, o.validateAudit()...)
	errs = append(errs, o.validateOrigins()...)
	return append(errs, o.validateFiles()...)
}

// validateAudit refuses a policy by which nothing is recorded.
func (o *Options) validateAudit() []error {
	if o.Audit.PolicyFile != "" && o.Audit.LogOptions.Path == "" && o.Audit.WebhookOptions.ConfigFile == "" {
		return []error{errors.New("--audit-policy-file is given without --audit-log-path and --audit-webhook-config-file: audit events would be dropped; give one of them")}
	}
	return nil
}

// validateOrigins refuses to open the server to the scripts of all web sites, which
// browsers send certificates for.
func (o *Options) validateOrigins() []error {
	var errs []error
	for _, origin := range o.Run.CorsAllowedOriginList {
		if r, err := regexp.Compile(origin); err == nil && origin != "" && r.MatchString("https://anybody.invalid:1") {
			errs = append(errs, fmt.Errorf("--cors-allowed-origins has %q, which matches every web site: a script of any page could act as the user in the user's browser; name the sites", origin))
		}
	}
	return errs
}

func (o *Options) validateEtcd() []error {
	errs := o.Etcd.Validate()
	errs = append(errs, o.validateServers("--etcd-servers", o.Etcd.StorageConfig.Transport.ServerList)...)
	elsewhere, wrong := o.overrides()
	errs = append(errs, wrong...)
	for _, one := range elsewhere {
		errs = append(errs, o.validateServers("--etcd-servers-overrides", one.servers)...)
	}
	if len(o.Etcd.WatchCacheSizes) > 0 {
		errs = append(errs, errors.New("--watch-cache-sizes is not supported: the server makes watch caches on demand and sizes them itself; leave it out"))
	}
	if media := o.Etcd.DefaultStorageMediaType; media != "" && media != runtime.ContentTypeJSON {
		errs = append(errs, fmt.Errorf("--storage-media-type is %s: objects are stored as %s; leave it out", media, runtime.ContentTypeJSON))
	}
	return errs
}
