package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// Names of --authorization-mode.
const (
	modeRBAC    = "RBAC"
	modeWebhook = "Webhook"
)

const authorizationConfigFlag = "--authorization-config"

// Authorization configures the authorization modes from flags. A request that no mode
// allows is denied.
type Authorization struct {
	// Modes are asked one after the other, until one knows.
	Modes []string
	// WebhookConfigFile is a kubeconfig file that says where the webhook is.
	WebhookConfigFile string
	// WebhookVersion is of the reviews that are sent to it: v1 or v1beta1.
	WebhookVersion string
	// WebhookAllowed and WebhookDenied are how long its answers are remembered.
	WebhookAllowed, WebhookDenied time.Duration
	// ConfigFile has an AuthorizationConfiguration, which takes the place of all others.
	ConfigFile string

	flags *pflag.FlagSet // that the options are bound to; nil if they are not
}

func newAuthorization() *Authorization {
	return &Authorization{Modes: []string{modeRBAC}, WebhookVersion: "v1", WebhookAllowed: 5 * time.Minute, WebhookDenied: 30 * time.Second}
}

// addFlags binds the flags, which are kube-apiserver's.
func (a *Authorization) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&a.Modes, "authorization-mode", a.Modes,
		"Authorization modes, asked in this order until one decides: RBAC (the roles and bindings on this server), Webhook. "+
			"A request that none of them allows is denied. Members of system:masters may do everything.")
	flags.StringVar(&a.WebhookConfigFile, "authorization-webhook-config-file", a.WebhookConfigFile,
		"File in the form of a kubeconfig that says where the webhook of --authorization-mode is and how to talk to it.")
	flags.StringVar(&a.WebhookVersion, "authorization-webhook-version", a.WebhookVersion,
		"Version of authorization.k8s.io of the reviews that the webhook gets: v1 or v1beta1.")
	flags.DurationVar(&a.WebhookAllowed, "authorization-webhook-cache-authorized-ttl", a.WebhookAllowed,
		"How long to cache decisions of the webhook that allow a request.")
	flags.DurationVar(&a.WebhookDenied, "authorization-webhook-cache-unauthorized-ttl", a.WebhookDenied,
		"How long to cache decisions of the webhook that do not allow a request.")
	flags.StringVar(&a.ConfigFile, authorizationConfigFlag[2:], a.ConfigFile,
		"File with an AuthorizationConfiguration (apiserver.config.k8s.io/v1 or v1beta1): RBAC and any number of webhooks, each with conditions on the requests that it is asked about, "+
			"and the decision while it does not answer. It replaces the other flags about authorization. The server reloads the file when it changes.")
	if a.flags == nil { // the options are bound again to be compared with those of other replicas
		a.flags = flags
	}
}

// legacy are the flags that are given and that --authorization-config replaces.
func (a *Authorization) legacy() (names []string) {
	if a.flags == nil {
		return nil
	}
	a.flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Changed && (flag.Name == "authorization-mode" || strings.HasPrefix(flag.Name, "authorization-webhook-")) {
			names = append(names, "--"+flag.Name)
		}
	})
	return names
}

func (a *Authorization) validate() []error {
	if a.ConfigFile != "" {
		if legacy := a.legacy(); len(legacy) > 0 {
			return []error{fmt.Errorf("%s is given together with %s: only one of them can decide; put everything into the file", authorizationConfigFlag, strings.Join(legacy, ", "))}
		}
		return nil // validateFiles reads it
	}
	var errs []error
	if len(a.Modes) == 0 {
		errs = append(errs, errors.New("--authorization-mode is empty: every request would be denied; leave it out for RBAC"))
	}
	for i, mode := range a.Modes {
		switch {
		case mode == "AlwaysAllow":
			errs = append(errs, errors.New("--authorization-mode must not be AlwaysAllow: every user with a certificate or a token could do everything; "+
				"bind the group system:authenticated to the ClusterRole cluster-admin if that is what you want"))
		case mode != modeRBAC && mode != modeWebhook:
			errs = append(errs, fmt.Errorf("--authorization-mode has the unknown mode %q; give %s, %s or both", mode, modeRBAC, modeWebhook))
		case slices.Contains(a.Modes[:i], mode):
			errs = append(errs, fmt.Errorf("--authorization-mode has %s twice; give it once", mode))
		}
	}
	switch asked := slices.Contains(a.Modes, modeWebhook); {
	case asked && a.WebhookConfigFile == "":
		errs = append(errs, errors.New("--authorization-mode has Webhook, and --authorization-webhook-config-file is missing: it says where the webhook is"))
	case !asked && a.WebhookConfigFile != "":
		errs = append(errs, fmt.Errorf("--authorization-webhook-config-file is given and never used, since --authorization-mode is %s; add Webhook to it", strings.Join(a.Modes, ",")))
	}
	return errs
}

// configuration is what the flags or the file of --authorization-config say, and the
// content of the file.
func (a *Authorization) configuration() (*apiserver.AuthorizationConfiguration, []byte, error) {
	if a.ConfigFile != "" {
		return loadAuthorization(a.ConfigFile)
	}
	config := &apiserver.AuthorizationConfiguration{}
	for _, mode := range a.Modes {
		one := apiserver.AuthorizerConfiguration{Type: apiserver.AuthorizerType(mode), Name: strings.ToLower(mode)}
		if mode == modeWebhook {
			one.Name, one.Webhook = "default", a.webhook()
		}
		config.Authorizers = append(config.Authorizers, one)
	}
	return config, nil, nil
}

// webhook is the one of the flags. While it cannot be reached it has no opinion, so
// that what others allow is still allowed.
func (a *Authorization) webhook() *apiserver.WebhookConfiguration {
	return &apiserver.WebhookConfiguration{
		AuthorizedTTL: metav1.Duration{Duration: a.WebhookAllowed}, CacheAuthorizedRequests: true,
		UnauthorizedTTL: metav1.Duration{Duration: a.WebhookDenied}, CacheUnauthorizedRequests: true,
		Timeout: metav1.Duration{Duration: 30 * time.Second}, SubjectAccessReviewVersion: a.WebhookVersion, FailurePolicy: apiserver.FailurePolicyNoOpinion,
		ConnectionInfo: apiserver.WebhookConnectionInfo{Type: apiserver.AuthorizationWebhookConnectionInfoTypeKubeConfigFile, KubeConfigFile: &a.WebhookConfigFile},
	}
}

// roleAuthorizer is what RBAC is to the union.
type roleAuthorizer interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}
