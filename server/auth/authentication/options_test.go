package authentication

import (
	"errors"
	"path/filepath"
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

// A token that is never renewed does not outlive a month unless the operator says so.
func TestTokensEndByDefault(t *testing.T) {
	if got := NewOptions().ServiceAccounts.MaxExpiration; got != 30*24*time.Hour {
		t.Errorf("tokens are issued for up to %v", got)
	}
}
