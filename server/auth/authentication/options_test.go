package authentication

import (
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

func TestValidate(t *testing.T) {
	_, file := clientCA(t)
	_, other := clientCA(t)
	missing := filepath.Join(t.TempDir(), "missing")
	text := certtest.File(t, "text", []byte("text"))
	for name, test := range map[string]struct {
		flags []string
		want  []string // parts of errors, one each, in their order
	}{
		"nothing":             {nil, []string{"--client-ca-file is missing"}},
		"a CA":                {[]string{"--client-ca-file=" + file}, nil},
		"missing CA":          {[]string{"--client-ca-file=" + missing}, []string{"--client-ca-file: "}},
		"broken CA":           {[]string{"--client-ca-file=" + text}, []string{"give the certificates of the CAs as a PEM file"}},
		"several at once":     {[]string{"--client-ca-file=" + text, "--token-auth-file=" + missing, "--service-account-key-file=" + missing, "--authentication-token-webhook-version=v2"}, []string{"--client-ca-file", "--token-auth-file", "--service-account-key-file", `--authentication-token-webhook-version is "v2"`}},
		"token file":          {[]string{"--token-auth-file=" + text}, []string{"must have at least 3 columns (token, user name, user uid), found 1; give a CSV file"}},
		"configuration":       {[]string{"--authentication-config=" + text}, []string{"--authentication-config " + text}},
		"webhook":             {[]string{"--authentication-token-webhook-config-file=" + text}, []string{"--authentication-token-webhook-config-file: "}},
		"webhook's time":      {[]string{"--client-ca-file=" + file, "--authentication-token-webhook-cache-ttl=-1s"}, []string{"--authentication-token-webhook-cache-ttl is -1s"}},
		"empty issuer":        {[]string{"--client-ca-file=" + file, "--service-account-issuer="}, []string{"--service-account-issuer is empty"}},
		"issuer":              {[]string{"--client-ca-file=" + file, "--service-account-issuer=https://%"}, []string{"contained a ':' but was not a valid URL"}},
		"issuer twice":        {[]string{"--client-ca-file=" + file, "--service-account-issuer=a", "--service-account-issuer=a"}, []string{`--service-account-issuer "a" is given twice`}},
		"audience":            {[]string{"--client-ca-file=" + file, "--api-audiences=a,"}, []string{"--api-audiences has an empty name"}},
		"expiration":          {[]string{"--client-ca-file=" + file, "--service-account-max-token-expiration=59m"}, []string{"it must be between 1 hour and 2^32 seconds"}},
		"shortest expiration": {[]string{"--client-ca-file=" + file, "--service-account-max-token-expiration=1h"}, nil},
		"longest expiration":  {[]string{"--client-ca-file=" + file, "--service-account-max-token-expiration=4294967296s"}, nil},
		"too long expiration": {[]string{"--client-ca-file=" + file, "--service-account-max-token-expiration=4294967297s"}, []string{"--service-account-max-token-expiration is 1193046h28m17s: it must be between 1 hour and 2^32 seconds"}},
		"no expiration":       {[]string{"--client-ca-file=" + file, "--service-account-max-token-expiration=0"}, nil},
		"least webhook time":  {[]string{"--client-ca-file=" + file, "--authentication-token-webhook-cache-ttl=0"}, nil},
		"webhook's version":   {[]string{"--client-ca-file=" + file, "--authentication-token-webhook-version=v1"}, nil},
		"keys at no host":     {[]string{"--client-ca-file=" + file, "--service-account-jwks-uri=https:///keys"}, []string{"--service-account-jwks-uri"}},
		"keys at no URL":      {[]string{"--client-ca-file=" + file, "--service-account-jwks-uri=https://%"}, []string{"--service-account-jwks-uri"}},
		"issuer with colon":   {[]string{"--client-ca-file=" + file, "--service-account-issuer=a:b"}, nil},
		"issuer with percent": {[]string{"--client-ca-file=" + file, "--service-account-issuer=a%"}, nil},
		"proxy's groups":      {[]string{"--client-ca-file=" + file, "--requestheader-group-headers=X-Remote-Group"}, []string{"without --requestheader-client-ca-file"}},
		"proxy's UIDs":        {[]string{"--client-ca-file=" + file, "--requestheader-uid-headers=X-Remote-Uid"}, []string{"without --requestheader-client-ca-file"}},
		"proxy's extra":       {[]string{"--client-ca-file=" + file, "--requestheader-extra-headers-prefix=X-Remote-Extra-"}, []string{"without --requestheader-client-ca-file"}},
		"proxy's names":       {[]string{"--client-ca-file=" + file, "--requestheader-allowed-names=proxy"}, []string{"without --requestheader-client-ca-file"}},
		"keys elsewhere":      {[]string{"--client-ca-file=" + file, "--service-account-jwks-uri=http://a"}, []string{"--service-account-jwks-uri"}},
		"signing key":         {[]string{"--client-ca-file=" + file, "--service-account-signing-key-file=" + text}, []string{"--service-account-signing-key-file"}},
		"proxy, no CA":        {[]string{"--client-ca-file=" + file, "--requestheader-username-headers=X-Remote-User"}, []string{"without --requestheader-client-ca-file"}},
		"proxy, no header":    {[]string{"--client-ca-file=" + file, "--requestheader-client-ca-file=" + other}, []string{"--requestheader-username-headers is missing"}},
		"proxy has client CA": {[]string{"--client-ca-file=" + file, "--requestheader-client-ca-file=" + file, "--requestheader-username-headers=X-Remote-User"}, []string{"any client could impersonate any user"}},
		"proxy is named":      {[]string{"--client-ca-file=" + file, "--requestheader-client-ca-file=" + file, "--requestheader-username-headers=X-Remote-User", "--requestheader-allowed-names=proxy"}, nil},
		"all is well": {[]string{"--client-ca-file=" + file, "--service-account-issuer=https://a", "--service-account-issuer=b", "--api-audiences=c,d",
			"--service-account-max-token-expiration=48h", "--service-account-jwks-uri=https://a/keys"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			o := NewOptions()
			set := pflag.NewFlagSet("", pflag.ContinueOnError)
			o.AddFlags(set)
			if err := set.Parse(test.flags); err != nil {
				t.Fatal(err)
			}
			errs := o.Validate()
			if len(errs) != len(test.want) {
				t.Fatalf("%d errors:\n%v", len(errs), errors.Join(errs...))
			}
			for i, want := range test.want {
				if !strings.Contains(errs[i].Error(), want) {
					t.Errorf("%v\nhas no\n%s", errs[i], want)
				}
			}
		})
	}
}

func TestFlagsSetOptions(t *testing.T) {
	o := NewOptions()
	set := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.AddFlags(set)
	if set.Lookup("oidc-issuer-url") != nil {
		t.Error("--oidc-issuer-url is offered")
	}
	if help := set.Lookup("authentication-config").Usage; !strings.Contains(help, "--oidc-*") {
		t.Errorf("not a word about --oidc-*: %s", help)
	}
	if err := set.Parse([]string{"--service-account-issuer=a", "--service-account-issuer=b", "--service-account-max-token-expiration=2h"}); err != nil {
		t.Fatal(err)
	}
	// What is given takes the place of the default.
	if got := strings.Join(o.ServiceAccounts.Issuers, " "); got != "a b" || o.ServiceAccounts.MaxExpiration != 2*time.Hour {
		t.Errorf("%s, %v", got, o.ServiceAccounts.MaxExpiration)
	}
}

// Each flag sets its option, and no other one.
func TestEachFlagSetsItsOption(t *testing.T) {
	for flag, want := range map[string]func(*Options){
		"client-ca-file=a":                           func(o *Options) { o.ClientCAFile = "a" },
		"token-auth-file=a":                          func(o *Options) { o.TokenFile = "a" },
		"authentication-config=a":                    func(o *Options) { o.ConfigurationFile = "a" },
		"api-audiences=a,b":                          func(o *Options) { o.Audiences = []string{"a", "b"} },
		"service-account-issuer=a,b":                 func(o *Options) { o.ServiceAccounts.Issuers = []string{"a,b"} },
		"service-account-signing-key-file=a":         func(o *Options) { o.ServiceAccounts.SigningKeyFile = "a" },
		"service-account-key-file=a,b":               func(o *Options) { o.ServiceAccounts.KeyFiles = []string{"a,b"} },
		"service-account-max-token-expiration=2h":    func(o *Options) { o.ServiceAccounts.MaxExpiration = 2 * time.Hour },
		"service-account-jwks-uri=a":                 func(o *Options) { o.ServiceAccounts.JWKSURI = "a" },
		"authentication-token-webhook-config-file=a": func(o *Options) { o.Webhook.ConfigFile = "a" },
		"authentication-token-webhook-version=v1":    func(o *Options) { o.Webhook.Version = "v1" },
		"authentication-token-webhook-cache-ttl=1s":  func(o *Options) { o.Webhook.CacheTTL = time.Second },
		"requestheader-client-ca-file=a":             func(o *Options) { o.RequestHeader.ClientCAFile = "a" },
	} {
		got, wanted := NewOptions(), NewOptions()
		want(wanted)
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		got.AddFlags(set)
		if err := set.Parse([]string{"--" + flag}); err != nil {
			t.Error(err)
		}
		if !reflect.DeepEqual(got, wanted) {
			t.Errorf("--%s: %+v", flag, got)
		}
	}
}

// The defaults are those of kube-apiserver, but for the lifetime of tokens.
func TestDefaults(t *testing.T) {
	o := NewOptions()
	if o.Webhook.Version != "v1beta1" || o.Webhook.CacheTTL != 2*time.Minute || !slices.Equal(o.ServiceAccounts.Issuers, []string{"https://kubernetes.default.svc"}) {
		t.Errorf("%+v", o)
	}
}

// A token that is never renewed does not outlive a month unless the operator says so.
func TestTokensEndByDefault(t *testing.T) {
	if got := NewOptions().ServiceAccounts.MaxExpiration; got != 30*24*time.Hour {
		t.Errorf("tokens are issued for up to %v", got)
	}
}
