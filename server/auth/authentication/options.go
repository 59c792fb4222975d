package authentication

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/options"
)

// Options are what the flags set: those of kube-apiserver, with its names.
type Options struct {
	// ClientCAFile holds the authorities that sign the certificates of clients.
	ClientCAFile string
	// TokenFile is a list of tokens and who has them.
	TokenFile string
	// ConfigurationFile holds an AuthenticationConfiguration.
	ConfigurationFile string
	// Audiences are the names of this server in tokens; empty means the issuers.
	Audiences       []string
	ServiceAccounts ServiceAccountOptions
	Webhook         WebhookOptions
	// RequestHeader is about proxies that say who their clients are.
	RequestHeader *options.RequestHeaderAuthenticationOptions
}

// ServiceAccountOptions are about tokens of service accounts.
type ServiceAccountOptions struct {
	// Issuers are whose tokens are accepted. The first one signs.
	Issuers []string
	// SigningKeyFile is the private key; empty means one that is made and kept.
	SigningKeyFile string
	// KeyFiles are the keys that verify, beside the one that signs.
	KeyFiles []string
	// MaxExpiration is the longest that a token is issued for; 0 sets no limit.
	MaxExpiration time.Duration
	// JWKSURI is where others find the public keys; empty means at this server.
	JWKSURI string
}

// WebhookOptions are about a server that is asked who has a token.
type WebhookOptions struct {
	// ConfigFile is a kubeconfig that says where the webhook is.
	ConfigFile string
	// Version is that of the TokenReview: v1 or v1beta1.
	Version string
	// CacheTTL is how long an answer is good.
	CacheTTL time.Duration
}

// DefaultIssuer is the name that signs tokens if no other is given.
const DefaultIssuer = "https://kubernetes.default.svc"

// DefaultMaxTokenExpiration is the longest that tokens are issued for if nothing else
// is said. Kubernetes has no limit, and the services that run it have a day or two:
// there kubelet renews tokens. Here nobody does, so it is long enough for a job that
// renews them every week to fail and be fixed.
const DefaultMaxTokenExpiration = 30 * 24 * time.Hour

// NewOptions returns the defaults: certificates, once their authority is given, and
// service accounts.
func NewOptions() *Options {
	return &Options{
		ServiceAccounts: ServiceAccountOptions{Issuers: []string{DefaultIssuer}, MaxExpiration: DefaultMaxTokenExpiration},
		Webhook:         WebhookOptions{Version: "v1beta1", CacheTTL: 2 * time.Minute},
		RequestHeader:   &options.RequestHeaderAuthenticationOptions{},
	}
}

// AddFlags binds the options to flags.
func (o *Options) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.ClientCAFile, "client-ca-file", o.ClientCAFile,
		"PEM file with the authorities that sign the certificates of clients. The common name of a certificate is the user, "+
			"its organizations are the groups. The file is read again when it changes.")
	set.StringVar(&o.TokenFile, "token-auth-file", o.TokenFile,
		"CSV file of bearer tokens: token, user, uid, and optionally the groups, quoted and separated by commas. The tokens never expire and lie in the file as they are: "+
			"it is for tests. The file is read again when it changes.")
	set.StringVar(&o.ConfigurationFile, "authentication-config", o.ConfigurationFile,
		"File with an AuthenticationConfiguration (apiserver.config.k8s.io/v1 or v1beta1): the OpenID providers whose tokens are accepted, and how their claims become users and groups. "+
			"The file is read again when it changes. It takes the place of kube-apiserver's --oidc-* flags, which are not offered.")
	set.StringSliceVar(&o.Audiences, "api-audiences", o.Audiences,
		"The names of this server in tokens: a token of a service account must be for one of them. By default, those of --service-account-issuer.")
	o.ServiceAccounts.addFlags(set)
	o.Webhook.addFlags(set)
	o.RequestHeader.AddFlags(set)
}

func (o *ServiceAccountOptions) addFlags(set *pflag.FlagSet) {
	set.StringArrayVar(&o.Issuers, "service-account-issuer", o.Issuers,
		"Name of the issuer of service account tokens, preferably an https URL: only then are the OpenID documents served by which others can verify the tokens. "+
			"May be repeated: the first one signs, tokens of the others are accepted, so that the name can be changed.")
	set.StringVar(&o.SigningKeyFile, "service-account-signing-key-file", o.SigningKeyFile,
		"PEM file with the private key, for ECDSA or RSA, that signs the tokens of service accounts. If it is not given, a key is made and kept in --cert-dir, which is good for a single server: "+
			"several must have the same key. The file is read again when it changes.")
	set.StringArrayVar(&o.KeyFiles, "service-account-key-file", o.KeyFiles,
		"PEM file with keys, public or private, whose tokens are accepted besides those of the signing key: the former one and the next one, while keys are rotated. May be repeated. "+
			"The file is read again when it changes.")
	set.DurationVar(&o.MaxExpiration, "service-account-max-token-expiration", o.MaxExpiration,
		"The longest that a token of a service account is issued for: requests for more are shortened to it, with a warning. Tokens that were issued before keep their time. "+
			"Between 1h and 2^32 seconds; 0 sets no limit.")
	set.StringVar(&o.JWKSURI, "service-account-jwks-uri", o.JWKSURI,
		"https URL at which others find the public keys, if that is not this server.")
}

func (o *WebhookOptions) addFlags(set *pflag.FlagSet) {
	set.StringVar(&o.ConfigFile, "authentication-token-webhook-config-file", o.ConfigFile,
		"File, in the format of a kubeconfig, with the address and the credentials of a server that is asked who has a bearer token that nobody else knows.")
	set.StringVar(&o.Version, "authentication-token-webhook-version", o.Version,
		"Version of the TokenReview that the webhook is sent: v1 or v1beta1.")
	set.DurationVar(&o.CacheTTL, "authentication-token-webhook-cache-ttl", o.CacheTTL,
		"How long an answer of the webhook is good.")
}
