package authentication

import (
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apiserver/pkg/server/options"
)

// Options are what the flags set: those of kube-apiserver, with its names.
type Options struct {
	// ClientCAFile holds the CAs that sign the certificates of clients.
	ClientCAFile string
	// TokenFile is a list of tokens and their users.
	TokenFile string
	// ConfigurationFile holds an AuthenticationConfiguration.
	ConfigurationFile string
	// Audiences are the names of this server in tokens; empty means the issuers.
	Audiences       []string
	ServiceAccounts ServiceAccountOptions
	Webhook         WebhookOptions
	// RequestHeader configures proxies that authenticate users and name them in headers.
	RequestHeader *options.RequestHeaderAuthenticationOptions
}

// ServiceAccountOptions are about tokens of service accounts.
type ServiceAccountOptions struct {
	// Issuers are the accepted issuers of tokens. The first one signs.
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

// WebhookOptions configure a webhook that authenticates tokens.
type WebhookOptions struct {
	// ConfigFile is a kubeconfig that says where the webhook is.
	ConfigFile string
	// Version is that of the TokenReview: v1 or v1beta1.
	Version string
	// CacheTTL is how long an answer is cached.
	CacheTTL time.Duration
}

// DefaultIssuer is the name that signs tokens if no other is given.
const DefaultIssuer = "https://kubernetes.default.svc"

// DefaultMaxTokenExpiration is the default maximum lifetime of tokens. Kubernetes has
// no limit, and managed services have a day or two, because kubelet renews tokens. This
// server has no kubelet. So the limit leaves time to fix a weekly job that renews
// tokens and has failed.
const DefaultMaxTokenExpiration = 30 * 24 * time.Hour

// NewOptions returns the defaults: certificates, if a CA is given, and service
// accounts.
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
		"PEM file with the CAs that sign the certificates of clients. The common name of a certificate is the user, "+
			"its organizations are the groups. The file is read again when it changes.")
	set.StringVar(&o.TokenFile, "token-auth-file", o.TokenFile,
		"CSV file of bearer tokens: token, user, uid, and optionally the groups, quoted and separated by commas. The tokens never expire and are not encrypted in the file: "+
			"use it for tests only. The file is read again when it changes.")
	set.StringVar(&o.ConfigurationFile, "authentication-config", o.ConfigurationFile,
		"File with an AuthenticationConfiguration (apiserver.config.k8s.io/v1 or v1beta1): the OpenID providers whose tokens are accepted, and how their claims become users and groups. "+
			"The file is read again when it changes. It replaces kube-apiserver's --oidc-* flags, which this server does not have.")
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
		"PEM file with the private key, for ECDSA or RSA, that signs the tokens of service accounts. Without it, the server makes a key and keeps it in --cert-dir. That works for a single replica only: "+
			"several replicas must have the same key. The file is read again when it changes.")
	set.StringArrayVar(&o.KeyFiles, "service-account-key-file", o.KeyFiles,
		"PEM file with keys, public or private, that verify tokens in addition to the signing key: the former and the next key, while keys are rotated. May be repeated. "+
			"The file is read again when it changes.")
	set.DurationVar(&o.MaxExpiration, "service-account-max-token-expiration", o.MaxExpiration,
		"Maximum lifetime of service account tokens: requests for more get this lifetime, with a warning. Tokens that were issued before keep their lifetime. "+
			"Between 1h and 2^32 seconds; 0 sets no limit.")
	set.StringVar(&o.JWKSURI, "service-account-jwks-uri", o.JWKSURI,
		"https URL of the public keys for other verifiers, if that is not this server.")
}

func (o *WebhookOptions) addFlags(set *pflag.FlagSet) {
	set.StringVar(&o.ConfigFile, "authentication-token-webhook-config-file", o.ConfigFile,
		"File, in the format of a kubeconfig, with the address and the credentials of a webhook that authenticates bearer tokens that no other authenticator knows.")
	set.StringVar(&o.Version, "authentication-token-webhook-version", o.Version,
		"Version of the TokenReview that the webhook is sent: v1 or v1beta1.")
	set.DurationVar(&o.CacheTTL, "authentication-token-webhook-cache-ttl", o.CacheTTL,
		"How long to cache an answer of the webhook.")
}
