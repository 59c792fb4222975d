package authentication

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/token/tokenfile"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/apiserver/pkg/util/webhook"

	"github.com/espalier-dev/espalier/server/auth/token"
)

const (
	leastMaxExpiration = time.Hour
	mostMaxExpiration  = (1 << 32) * time.Second
)

// Validate returns all errors of the options and of the files that they name. An error
// says what is wrong, why, and what to do.
func (o *Options) Validate() []error {
	var errs []error
	if o.ClientCAFile == "" && o.TokenFile == "" && o.ConfigurationFile == "" && o.Webhook.ConfigFile == "" && o.RequestHeader.ClientCAFile == "" {
		errs = append(errs, errors.New("--client-ca-file is missing, and so are --authentication-config, --authentication-token-webhook-config-file and --token-auth-file: "+
			"no client could authenticate, not even to request the token of a service account; give the certificate of the CA that signs the certificates of clients as a PEM file"))
	}
	errs = append(errs, caFile("--client-ca-file", o.ClientCAFile))
	if o.TokenFile != "" {
		if _, err := tokenfile.NewCSV(o.TokenFile); err != nil {
			errs = append(errs, fmt.Errorf("--token-auth-file: %w; give a CSV file with lines of token,user,uid,\"group,group\"", err))
		}
	}
	if o.ConfigurationFile != "" {
		_, _, err := loadConfiguration(o.ConfigurationFile, o.ServiceAccounts.Issuers)
		errs = append(errs, err)
	}
	if slices.Contains(o.Audiences, "") {
		errs = append(errs, errors.New("--api-audiences has an empty name: no token could be for it; leave it out"))
	}
	errs = append(errs, o.ServiceAccounts.validate()...)
	errs = append(errs, o.Webhook.validate()...)
	errs = append(errs, o.validateRequestHeader()...)
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// caFile validates a file of CA certificates.
func caFile(flag, path string) error {
	if path == "" {
		return nil
	}
	data, err := os.ReadFile(path)
	if err == nil {
		_, err = dynamiccertificates.NewStaticCAContent(flag, data)
	}
	if err != nil {
		return fmt.Errorf("%s: %w; give the certificates of the CAs as a PEM file", flag, err)
	}
	return nil
}

func (o *ServiceAccountOptions) validate() []error {
	var errs []error
	if len(o.Issuers) == 0 {
		errs = append(errs, fmt.Errorf("--service-account-issuer is missing: tokens must name their issuer; leave it out for %s", DefaultIssuer))
	}
	for i, issuer := range o.Issuers {
		_, err := url.Parse(issuer)
		switch {
		case issuer == "":
			errs = append(errs, errors.New("--service-account-issuer is empty: tokens must name their issuer; give a name, preferably an https URL"))
		case strings.Contains(issuer, ":") && err != nil:
			errs = append(errs, fmt.Errorf("--service-account-issuer contained a ':' but was not a valid URL: %w; give an https URL, or a name without a colon", err))
		case slices.Contains(o.Issuers[:i], issuer):
			errs = append(errs, fmt.Errorf("--service-account-issuer %q is given twice; leave one out", issuer))
		}
	}
	if o.MaxExpiration != 0 && (o.MaxExpiration < leastMaxExpiration || o.MaxExpiration > mostMaxExpiration) {
		errs = append(errs, fmt.Errorf("--service-account-max-token-expiration is %v: it must be between 1 hour and 2^32 seconds, or 0 for no limit", o.MaxExpiration))
	}
	if o.JWKSURI != "" {
		if u, err := url.Parse(o.JWKSURI); err != nil || u.Scheme != "https" || u.Host == "" {
			errs = append(errs, fmt.Errorf("--service-account-jwks-uri is %q: keys that are read without encryption prove nothing; give an https URL", o.JWKSURI))
		}
	}
	return append(errs, o.validateKeys())
}

// validateKeys reads the keys. The one that signs may be made later.
func (o *ServiceAccountOptions) validateKeys() error {
	if _, err := token.LoadKeys(o.SigningKeyFile, o.KeyFiles...); err != nil {
		return fmt.Errorf("--service-account-signing-key-file, --service-account-key-file: %w", err)
	}
	return nil
}

func (o *WebhookOptions) validate() []error {
	var errs []error
	if o.Version != "v1" && o.Version != "v1beta1" {
		errs = append(errs, fmt.Errorf("--authentication-token-webhook-version is %q: give v1 or v1beta1", o.Version))
	}
	if o.CacheTTL < 0 {
		errs = append(errs, fmt.Errorf("--authentication-token-webhook-cache-ttl is %v: it must not be negative; give 0 or more", o.CacheTTL))
	}
	if o.ConfigFile != "" {
		if _, err := webhook.LoadKubeconfig(o.ConfigFile, nil); err != nil {
			errs = append(errs, fmt.Errorf("--authentication-token-webhook-config-file: %w; give a kubeconfig whose cluster is the webhook", err))
		}
	}
	return errs
}

func (o *Options) validateRequestHeader() []error {
	h := o.RequestHeader
	if h.ClientCAFile == "" {
		if len(h.UsernameHeaders)+len(h.GroupHeaders)+len(h.UIDHeaders)+len(h.ExtraHeaderPrefixes)+len(h.AllowedNames) > 0 {
			return []error{errors.New("--requestheader-* are given without --requestheader-client-ca-file: no proxy could authenticate; give the CA that signs the proxy's certificate, or leave them out")}
		}
		return nil
	}
	errs := append(h.Validate(), caFile("--requestheader-client-ca-file", h.ClientCAFile))
	if len(h.UsernameHeaders) == 0 {
		errs = append(errs, errors.New("--requestheader-username-headers is missing: the proxy could not name its users; give X-Remote-User"))
	}
	if len(h.AllowedNames) == 0 && o.ClientCAFile != "" && sameContent(h.ClientCAFile, o.ClientCAFile) {
		errs = append(errs, errors.New("--requestheader-client-ca-file has the CAs of --client-ca-file, and --requestheader-allowed-names is empty: any client could impersonate any user; "+
			"give the proxy a CA of its own, or name the proxy in --requestheader-allowed-names"))
	}
	return errs
}

// sameContent reports whether two files are the same; those that cannot be read are
// complained about elsewhere.
func sameContent(a, b string) bool {
	first, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	second, err := os.ReadFile(b)
	return err == nil && bytes.Equal(bytes.TrimSpace(first), bytes.TrimSpace(second))
}
