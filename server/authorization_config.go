package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/authorization/cel"
	"k8s.io/apiserver/pkg/authorization/union"
	"k8s.io/apiserver/pkg/server/options"
	reloads "k8s.io/apiserver/pkg/server/options/authorizationconfig/metrics"
	kubeconfig "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook"
	"k8s.io/apiserver/plugin/pkg/authorizer/webhook/metrics"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/auth/authentication"
)

// authorizationReload is how often the file is looked at.
const authorizationReload = 5 * time.Second

// authorization decides by the configuration that was read last. A request is decided
// by one of them: what it costs more than a fixed one is an atomic load.
type authorization struct {
	path, serverID string
	roles          roleAuthorizer
	current        atomic.Pointer[deciders]

	source []byte // of the configuration that is in force
	failed string // why another one is not, as it was logged
}

// deciders are what a configuration makes.
type deciders struct {
	authorizer authorizer.Authorizer
	rules      authorizer.RuleResolver
	roles      bool   // RBAC is among them
	digest     string // of what decides; equal on all replicas
}

var (
	_ authorizer.Authorizer   = (*authorization)(nil)
	_ authorizer.RuleResolver = (*authorization)(nil)
)

// build returns who decides. roles is RBAC.
func (a *Authorization) build(roles roleAuthorizer, serverID string) (*authorization, error) {
	decide := &authorization{path: a.ConfigFile, serverID: serverID, roles: roles}
	config, source, err := a.configuration()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authorizationConfigFlag, err)
	}
	first, err := newDeciders(config, roles)
	if err != nil && a.ConfigFile == "" {
		return nil, fmt.Errorf("--authorization-webhook-config-file: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", authorizationConfigFlag, err)
	}
	decide.current.Store(first)
	if a.ConfigFile != "" {
		decide.source = source
		reloads.RegisterMetrics()
		reloads.RecordAuthorizationConfigLastConfigInfo(serverID, string(decide.source))
	}
	return decide, nil
}

// Run reads the file again when it changes, until the context ends.
func (a *authorization) Run(ctx context.Context) error {
	if a.path != "" {
		wait.UntilWithContext(ctx, a.reload, authorizationReload)
	}
	<-ctx.Done()
	return ctx.Err()
}

// reload keeps the previous configuration if the new file is wrong or names a file that
// does not exist yet. It tries again, and logs the same mistake once.
func (a *authorization) reload(context.Context) {
	config, source, err := loadAuthorization(a.path)
	if source != nil && bytes.Equal(source, a.source) {
		a.failed = ""
		return
	}
	var next *deciders
	if err == nil {
		next, err = newDeciders(config, a.roles)
	}
	if err == nil && a.current.Load().roles && !next.roles {
		err = errors.New("RBAC is missing: users would lose all rights that they have by roles; restart the server if you intend that")
	}
	if err != nil {
		reloads.RecordAuthorizationConfigAutomaticReloadFailure(a.serverID)
		if a.failed != err.Error() {
			a.failed = err.Error()
			klog.ErrorS(err, "Failed to reload the authorization configuration, keeping the former one", "file", a.path)
		}
		return
	}
	a.current.Store(next)
	a.source, a.failed = source, ""
	reloads.RecordAuthorizationConfigAutomaticReloadSuccess(a.serverID, string(source))
	klog.InfoS("Reloaded the authorization configuration", "file", a.path, "authorizers", len(config.Authorizers))
}

// inForce is a digest of what decides now.
func (a *authorization) inForce() string { return a.current.Load().digest }

// Authorize implements authorizer.UnconditionalAuthorizer.
func (a *authorization) Authorize(ctx context.Context, attributes authorizer.Attributes) (authorizer.Decision, string, error) {
	return a.current.Load().authorizer.Authorize(ctx, attributes)
}

// ConditionsAwareAuthorize implements authorizer.Authorizer.
func (a *authorization) ConditionsAwareAuthorize(ctx context.Context, attributes authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return a.current.Load().authorizer.ConditionsAwareAuthorize(ctx, attributes)
}

// EvaluateConditions implements authorizer.Authorizer.
func (a *authorization) EvaluateConditions(ctx context.Context, decision authorizer.ConditionsAwareDecision, data authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return a.current.Load().authorizer.EvaluateConditions(ctx, decision, data)
}

// RulesFor implements authorizer.RuleResolver.
func (a *authorization) RulesFor(ctx context.Context, u user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	return a.current.Load().rules.RulesFor(ctx, u, namespace)
}

// newDeciders returns the authorizers in the order of the configuration; the first one with
// an opinion decides. Members of system:masters and requests to the health paths are allowed
// before that.
func newDeciders(config *apiserver.AuthorizationConfiguration, roles roleAuthorizer) (*deciders, error) {
	all := []union.NamedAuthorizer{
		{AuthorizerName: "masters", Authorizer: authorizerfactory.NewPrivilegedGroups(user.SystemPrivilegedGroup)},
		{AuthorizerName: "health", Authorizer: authentication.Health()},
	}
	made := &deciders{}
	var rules []authorizer.RuleResolver
	var effects []effect
	for i := range config.Authorizers {
		one := roles
		configured := &config.Authorizers[i]
		effects = append(effects, effect{Type: string(configured.Type)})
		if configured.Type == apiserver.TypeWebhook {
			remote, err := newWebhook(configured)
			if err != nil {
				return nil, fmt.Errorf("webhook %s: %w", configured.Name, err)
			}
			one = remote
			effects[i] = effect{Type: modeWebhook, Host: remote.host, OnError: configured.Webhook.FailurePolicy, Conditions: configured.Webhook.MatchConditions}
		} else {
			made.roles = true
		}
		all = append(all, union.NamedAuthorizer{AuthorizerName: configured.Name, Authorizer: one})
		rules = append(rules, one)
	}
	source, err := json.Marshal(effects)
	if err != nil {
		return nil, err
	}
	made.digest = digest(source)
	made.authorizer, err = union.New(all...)
	made.rules = union.NewRuleResolvers(rules...)
	return made, err
}

// effect is what of an authorizer changes decisions: not how long they are remembered,
// and not what the files are called, which each replica may have its own way of.
type effect struct {
	Type, Host, OnError string
	Conditions          []apiserver.WebhookMatchCondition
}

// remote is a webhook.
type remote struct {
	authorizer.Authorizer
	authorizer.RuleResolver
	host string
}

// webhookMetrics are those that kube-apiserver has.
type webhookMetrics struct {
	metrics.NoopRequestMetrics
	metrics.WebhookMetrics
	cel.MatcherMetrics
}

func newWebhook(c *apiserver.AuthorizerConfiguration) (*remote, error) {
	hook := c.Webhook
	config, err := kubeconfig.LoadKubeconfig(*hook.ConnectionInfo.KubeConfigFile, nil)
	if err != nil {
		return nil, err
	}
	config.Timeout = hook.Timeout.Duration
	onError := authorizer.DecisionDeny
	if hook.FailurePolicy == apiserver.FailurePolicyNoOpinion {
		onError = authorizer.DecisionNoOpinion
	}
	allowed, denied := hook.AuthorizedTTL.Duration, hook.UnauthorizedTTL.Duration
	if !hook.CacheAuthorizedRequests {
		allowed = 0
	}
	if !hook.CacheUnauthorizedRequests {
		denied = 0
	}
	asked, err := webhook.New(config, hook.SubjectAccessReviewVersion, allowed, denied, *options.DefaultAuthWebhookRetryBackoff(), onError, hook.MatchConditions, c.Name,
		webhookMetrics{WebhookMetrics: metrics.NewWebhookMetrics(), MatcherMetrics: cel.NewMatcherMetrics()}, cel.NewDefaultCompiler())
	if err != nil {
		return nil, err
	}
	// Errors of asking it say where it is, and are for the log: users see those that an
	// authorizer returns, in answers and in reviews of their own rights.
	ask := func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		decision, reason, err := asked.Authorize(ctx, a)
		if err != nil {
			klog.ErrorS(err, "Failed to call an authorization webhook", "webhook", c.Name)
			err = fmt.Errorf("calling the authorization webhook %q failed; the server's log has the cause", c.Name)
		}
		return decision, reason, err
	}
	return &remote{authorizer.AuthorizerFunc(ask), asked, config.Host}, nil
}

// loadAuthorization reads a configuration and validates it. The content of the file is
// returned even if it is wrong.
func loadAuthorization(path string) (*apiserver.AuthorizationConfiguration, []byte, error) {
	source, err := os.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	config, err := load.LoadFromData(source)
	if err != nil {
		return nil, source, fmt.Errorf("%s: %w; give an AuthorizationConfiguration of apiserver.config.k8s.io/v1", path, err)
	}
	known, repeatable := sets.New(modeRBAC, modeWebhook), sets.New(modeWebhook)
	if errs := validation.ValidateAuthorizationConfiguration(cel.NewDefaultCompiler(), nil, config, known, repeatable); len(errs) > 0 {
		err := error(errs.ToAggregate())
		if slices.ContainsFunc(config.Authorizers, func(c apiserver.AuthorizerConfiguration) bool { return c.Type == "AlwaysAllow" }) {
			err = fmt.Errorf("%w; to allow every user everything, bind the group system:authenticated to the ClusterRole cluster-admin", err)
		}
		return nil, source, fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range config.Authorizers {
		switch name := strings.ToLower(string(c.Type)); {
		case c.Type != apiserver.TypeWebhook && c.Name != name:
			return nil, source, fmt.Errorf("%s: expected name %s for authorizer %s instead of %s", path, name, c.Type, c.Name)
		case c.Type == apiserver.TypeWebhook && c.Webhook.ConnectionInfo.KubeConfigFile == nil:
			return nil, source, fmt.Errorf("%s: webhook %s has the connection type %s, which works only in a cluster; give a KubeConfigFile", path, c.Name, c.Webhook.ConnectionInfo.Type)
		}
	}
	return config, source, nil
}
