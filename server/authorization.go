package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server/options"
	kubeconfig "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"

	"github.com/espalier-dev/espalier/server/identity"
)

// Names of --authorization-mode.
const (
	modeRBAC    = "RBAC"
	modeWebhook = "Webhook"
)

// Authorization is what the flags say about who may do what. Whoever no mode
// lets in stays outside.
type Authorization struct {
	// Modes are asked one after the other, until one knows.
	Modes []string
	// WebhookConfigFile is a kubeconfig file that says where the webhook is.
	WebhookConfigFile string
	// WebhookVersion is of the reviews that are sent to it: v1 or v1beta1.
	WebhookVersion string
	// WebhookAllowed and WebhookDenied are how long its answers are remembered.
	WebhookAllowed, WebhookDenied time.Duration
}

func newAuthorization() *Authorization {
	return &Authorization{Modes: []string{modeRBAC}, WebhookVersion: "v1", WebhookAllowed: 5 * time.Minute, WebhookDenied: 30 * time.Second}
}

// addFlags binds the flags, which are kube-apiserver's.
func (a *Authorization) addFlags(flags *pflag.FlagSet) {
	flags.StringSliceVar(&a.Modes, "authorization-mode", a.Modes,
		"Who decides what clients may do, asked in this order until one knows: RBAC (the roles and bindings that the server holds), Webhook. "+
			"What none of them allows is denied. Members of system:masters may do everything.")
	flags.StringVar(&a.WebhookConfigFile, "authorization-webhook-config-file", a.WebhookConfigFile,
		"File in the form of a kubeconfig that says where the webhook of --authorization-mode is and how to talk to it.")
	flags.StringVar(&a.WebhookVersion, "authorization-webhook-version", a.WebhookVersion,
		"Version of authorization.k8s.io of the reviews that the webhook gets: v1 or v1beta1.")
	flags.DurationVar(&a.WebhookAllowed, "authorization-webhook-cache-authorized-ttl", a.WebhookAllowed,
		"How long it is remembered that the webhook allowed something.")
	flags.DurationVar(&a.WebhookDenied, "authorization-webhook-cache-unauthorized-ttl", a.WebhookDenied,
		"How long it is remembered that the webhook did not.")
}

func (a *Authorization) validate() []error {
	var errs []error
	if len(a.Modes) == 0 {
		errs = append(errs, errors.New("--authorization-mode is empty: nobody could do anything; leave it out for RBAC"))
	}
	for i, mode := range a.Modes {
		switch {
		case mode == "AlwaysAllow":
			errs = append(errs, errors.New("--authorization-mode cannot be AlwaysAllow: everybody with a certificate or a token could do everything; "+
				"bind the group system:authenticated to the ClusterRole cluster-admin if that is what you want"))
		case mode != modeRBAC && mode != modeWebhook:
			errs = append(errs, fmt.Errorf("--authorization-mode has %q, which there is not; give %s, %s or both", mode, modeRBAC, modeWebhook))
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

// build returns who decides. roles is RBAC.
func (a *Authorization) build(roles roleAuthorizer) (authorizer.Authorizer, authorizer.RuleResolver, error) {
	all := []union.NamedAuthorizer{
		{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		{AuthorizerName: "health", Authorizer: identity.Health()},
	}
	var rules []authorizer.RuleResolver
	for _, mode := range a.Modes {
		if mode == modeRBAC {
			all = append(all, union.NamedAuthorizer{AuthorizerName: modeRBAC, Authorizer: roles})
			rules = append(rules, roles)
			continue
		}
		remote, err := a.webhook()
		if err != nil {
			return nil, nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
		}
		all = append(all, union.NamedAuthorizer{AuthorizerName: modeWebhook, Authorizer: remote})
		rules = append(rules, remote)
	}
	decide, err := union.New(all...)
	return decide, union.NewRuleResolvers(rules...), err
}

// roleAuthorizer is what RBAC is to the union.
type roleAuthorizer interface {
	authorizer.Authorizer
	authorizer.RuleResolver
}

// webhook returns the remote authorizer. While it cannot be reached it has no
// opinion, so that what others allow is still allowed.
func (a *Authorization) webhook() (*webhook.WebhookAuthorizer, error) {
	config, err := kubeconfig.LoadKubeconfig(a.WebhookConfigFile, nil)
	if err != nil {
		return nil, err
	}
	return webhook.New(config, a.WebhookVersion, a.WebhookAllowed, a.WebhookDenied, *options.DefaultAuthWebhookRetryBackoff(),
		authorizer.DecisionNoOpinion, nil, "default", metrics.NoopAuthorizerMetrics{}, cel.NewDefaultCompiler())
}
