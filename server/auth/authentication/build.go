package authentication

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/request/headerrequest"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/token/cache"
	tokenunion "k8s.io/apiserver/pkg/authentication/token/union"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/apiserver/plugin/pkg/authenticator/token/webhook"
	"k8s.io/klog/v2"

	"github.com/espalier-dev/espalier/server/auth/token"
)

// reloadPeriod is how often files are checked for changes.
const reloadPeriod = 5 * time.Second

// Parts are the dependencies of Build.
type Parts struct {
	// Directory is where the key that signs tokens is kept, if no file is given.
	Directory string
	// ExternalAddress is the host, and the port, at which others reach this server.
	ExternalAddress string
	// ServerID names this server in metrics.
	ServerID string
	// Live looks up the objects that service account tokens are bound to. Cached, if
	// not nil, is used first.
	Cached, Live token.Getter
}

// Authentication is the result of Build: the authenticators of a server.
type Authentication struct {
	// Authenticator is for all requests.
	Authenticator authenticator.Request
	// Users is Authenticator without service accounts and anonymous users: only those whom
	// the operator of the server has given credentials.
	Users authenticator.Request
	// Audiences are the names of this server.
	Audiences authenticator.Audiences
	// Issuer issues and verifies tokens of service accounts.
	Issuer *token.Issuer
	// Keys are those that Issuer signs and verifies with.
	Keys *token.Keys
	// ClientCA and RequestHeader, if not nil, are the CAs that a server requests client
	// certificates of. The server runs their reloading.
	ClientCA      dynamiccertificates.CAContentProvider
	RequestHeader *authenticatorfactory.RequestHeaderConfig

	reloads []func(context.Context)
	options token.Options // of Issuer
}

// Build makes authenticators of the options. Its goroutines end with the context.
func (o *Options) Build(ctx context.Context, parts Parts) (*Authentication, error) {
	b := &builder{options: o, parts: parts, result: &Authentication{Audiences: o.Audiences}, anonymous: anonymousForHealth()}
	if len(o.Audiences) == 0 {
		b.result.Audiences = o.ServiceAccounts.Issuers
	}
	// The cheapest authenticators come first: local ones before remote ones.
	if err := errors.Join(b.frontProxy(), b.certificates(), b.tokenFile(), b.serviceAccounts(), b.providers(ctx), b.webhook()); err != nil {
		return nil, err
	}
	b.result.Authenticator = union.NewFailOnError(b.union(b.tokens), b.anonymous)
	others := slices.DeleteFunc(slices.Clone(b.tokens), func(t authenticator.Token) bool { return t == b.result.Issuer })
	// Webhooks must not see tokens of service accounts.
	b.result.Users = onlyUsers(b.union([]authenticator.Token{except(b.result.Issuer, tokenunion.New(others...))}), b.result.Audiences)
	return b.result, nil
}

// union authenticates by everything that a request may have, and by some tokens.
func (b *builder) union(tokens []authenticator.Token) authenticator.Request {
	known := tokenunion.New(tokens...)
	bearers := authenticator.TokenFunc(func(ctx context.Context, token string) (*authenticator.Response, bool, error) {
		return withAuthenticatedGroup(known.AuthenticateToken(ctx, token))
	})
	return union.New(append(slices.Clone(b.requests), bearing(bearers))...)
}

// Run reads files again when they change, until the context ends. Those of ClientCA
// and RequestHeader are not among them: the server that asks for certificates runs
// their reloading.
func (a *Authentication) Run(ctx context.Context) {
	var running sync.WaitGroup
	for _, reload := range a.reloads {
		running.Go(func() { wait.UntilWithContext(ctx, reload, reloadPeriod) })
	}
	running.Wait()
}

// builder collects what the options ask for.
type builder struct {
	options   *Options
	parts     Parts
	result    *Authentication
	requests  []authenticator.Request
	tokens    []authenticator.Token
	anonymous authenticator.Request
}

// frontProxy authenticates requests by the headers of a proxy with a client
// certificate.
func (b *builder) frontProxy() error {
	config, err := b.options.RequestHeader.ToAuthenticationRequestHeaderConfig()
	if err != nil {
		return fmt.Errorf("--requestheader-client-ca-file: %w", err)
	}
	if config == nil {
		return nil
	}
	b.result.RequestHeader = config
	proxy := headerrequest.NewDynamicVerifyOptionsSecure(config.CAContentProvider.VerifyOptions,
		config.AllowedClientNames, config.UsernameHeaders, config.UIDHeaders, config.GroupHeaders, config.ExtraHeaderPrefixes)
	inAudience := authenticator.WrapAudienceAgnosticRequest(b.result.Audiences, fromClients(proxy))
	b.requests = append(b.requests, authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		return withAuthenticatedGroup(inAudience.AuthenticateRequest(req))
	}))
	return nil
}

// fromClients skips requests whose certificate is not for clients: a server certificate
// of the same CA does not make its owner a proxy.
func fromClients(proxy authenticator.Request) authenticator.Request {
	return authenticator.RequestFunc(func(req *http.Request) (*authenticator.Response, bool, error) {
		if req.TLS == nil || len(req.TLS.PeerCertificates) == 0 || forClients(req.TLS.PeerCertificates[0]) != nil {
			return nil, false, nil
		}
		return proxy.AuthenticateRequest(req)
	})
}

func (b *builder) certificates() error {
	if b.options.ClientCAFile == "" {
		return nil
	}
	clientCA, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", b.options.ClientCAFile)
	if err != nil {
		return fmt.Errorf("--client-ca-file: %w", err)
	}
	b.result.ClientCA = clientCA
	b.requests = append(b.requests, newCertificates(clientCA))
	return nil
}

func (b *builder) tokenFile() error {
	if b.options.TokenFile == "" {
		return nil
	}
	file, err := newTokens(b.options.TokenFile)
	if err != nil {
		return fmt.Errorf("--token-auth-file: %w", err)
	}
	b.tokens = append(b.tokens, authenticator.WrapAudienceAgnosticToken(b.result.Audiences, file))
	b.result.reloads = append(b.result.reloads, file.reload)
	return nil
}

func (b *builder) serviceAccounts() error {
	o := &b.options.ServiceAccounts
	signing := o.SigningKeyFile
	if signing == "" {
		var err error
		if signing, err = token.LoadOrCreateKey(b.parts.Directory); err != nil {
			return fmt.Errorf("failed to make a key for service account tokens in --cert-dir: %w; give one with --service-account-signing-key-file", err)
		}
	}
	keys, err := token.LoadKeys(signing, o.KeyFiles...)
	if err != nil {
		return fmt.Errorf("--service-account-signing-key-file, --service-account-key-file: %w", err)
	}
	uri := o.JWKSURI
	if uri == "" && b.parts.ExternalAddress != "" {
		uri = (&url.URL{Scheme: "https", Host: b.parts.ExternalAddress, Path: token.KeysPath}).String()
	}
	b.result.options = token.Options{
		Keys: keys, Issuers: o.Issuers, Audiences: b.result.Audiences, MaxExpiration: o.MaxExpiration,
		Cached: b.parts.Cached, Live: b.parts.Live, JWKSURI: uri,
	}
	issuer, err := token.New(b.result.options)
	if err != nil {
		return fmt.Errorf("service accounts: %w", err)
	}
	b.result.Issuer, b.result.Keys = issuer, keys
	b.tokens = append(b.tokens, issuer)
	b.result.reloads = append(b.result.reloads, reloadKeys(keys))
	return nil
}

func reloadKeys(keys *token.Keys) func(context.Context) {
	var c complaint
	return func(context.Context) {
		changed, err := keys.Reload()
		if changed {
			klog.InfoS("Reloaded the keys of service account tokens")
		}
		c.log(err, "The new keys of service account tokens are not used, the former ones are kept")
	}
}

func (b *builder) providers(ctx context.Context) error {
	if b.options.ConfigurationFile == "" {
		return nil
	}
	p, err := newProviders(ctx, b.options.ConfigurationFile, b.options.ServiceAccounts.Issuers, b.result.Audiences, b.parts.ServerID)
	if err != nil {
		return err
	}
	b.tokens = append(b.tokens, p)
	b.anonymous = p
	b.result.reloads = append(b.result.reloads, p.reload)
	return nil
}

func (b *builder) webhook() error {
	o := &b.options.Webhook
	if o.ConfigFile == "" {
		return nil
	}
	config, err := webhookutil.LoadKubeconfig(o.ConfigFile, nil)
	if err != nil {
		return fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
	}
	asked, err := webhook.New(config, o.Version, b.result.Audiences, *webhook.DefaultRetryBackoff())
	if err != nil {
		return fmt.Errorf("--authentication-token-webhook-config-file: %w", err)
	}
	b.tokens = append(b.tokens, cache.New(asked, false, o.CacheTTL, o.CacheTTL))
	return nil
}

// complaint logs an error only if it differs from the last one.
type complaint struct{ last string }

func (c *complaint) log(err error, message string) {
	if err == nil {
		c.last = ""
		return
	}
	if text := err.Error(); text != c.last {
		c.last = text
		klog.ErrorS(err, message)
	}
}
