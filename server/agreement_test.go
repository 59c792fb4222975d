package server_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"k8s.io/client-go/util/keyutil"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// site is what the replicas of a test have in common.
type site struct {
	prefix string
	key    string // file of the key that signs tokens
}

func newSite(t *testing.T) *site {
	t.Helper()
	return &site{prefix: etcdtest.Prefix(t), key: signingKey(t)}
}

func signingKey(t *testing.T) string {
	t.Helper()
	key, err := keyutil.MakeEllipticPrivateKeyPEM()
	if err != nil {
		t.Fatal(err)
	}
	return certtest.File(t, "sa.key", key)
}

// replica changes options to those of a replica of the site.
func (s *site) replica(change func(*server.Options)) func(*server.Options) {
	return func(o *server.Options) {
		o.Etcd.StorageConfig.Prefix = s.prefix
		o.Identity.ServiceAccounts.SigningKeyFile = s.key
		if change != nil {
			change(o)
		}
	}
}

// join tries to make a replica, and returns why it cannot be.
func (s *site) join(t *testing.T, change func(*server.Options)) error {
	t.Helper()
	o := newOptions(t, &running{servers: certtest.New(t, time.Hour), clients: certtest.New(t, time.Hour)})
	s.replica(change)(o)
	made, err := server.New(t.Context(), o)
	if err == nil {
		if err := made.Close(); err != nil {
			t.Error(err)
		}
	}
	return err
}

// encryption writes a configuration that encrypts secrets with the first key; the key
// - is none.
func encryption(t *testing.T, keys ...string) func(*server.Options) {
	t.Helper()
	var text strings.Builder
	text.WriteString("apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n- resources: [secrets]\n  providers:\n")
	for _, key := range keys {
		if key == "-" {
			text.WriteString("  - identity: {}\n")
			continue
		}
		name, seed, _ := strings.Cut(key, "=")
		secret := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(seed)[:1], 32))
		fmt.Fprintf(&text, "  - secretbox: {keys: [{name: %s, secret: %s}]}\n", name, secret)
	}
	path := certtest.File(t, "encryption.yaml", []byte(text.String()))
	return func(o *server.Options) { o.Etcd.EncryptionProviderConfigFilepath = path }
}

// What replicas must agree on, and do not, keeps the second one from starting.
func TestReplicasMustAgree(t *testing.T) {
	t.Parallel()
	other, second := signingKey(t), signingKey(t)
	type change = func(*server.Options)
	for name, c := range map[string]struct {
		first, second change
		flag          string // named by the error; empty: it starts
	}{
		"same":              {},
		"signing key":       {nil, func(o *server.Options) { o.Identity.ServiceAccounts.SigningKeyFile = other }, "--service-account-signing-key-file"},
		"signing key added": {nil, func(o *server.Options) { o.Identity.ServiceAccounts.KeyFiles = []string{other} }, ""},
		"issuer":            {nil, func(o *server.Options) { o.Identity.ServiceAccounts.Issuers = []string{"https://other"} }, "--service-account-issuer"},
		"issuer added": {nil, func(o *server.Options) {
			o.Identity.ServiceAccounts.Issuers = append(o.Identity.ServiceAccounts.Issuers, "https://other")
		}, ""},
		"authorization": {nil, func(o *server.Options) {
			o.Authorization.Modes = []string{"Webhook"}
			o.Authorization.WebhookConfigFile = webhookKubeconfig(t)
		}, "--authorization-mode"},
		"authorization file":       {configured(t, rbacOnly), configured(t, rbacOnly), ""},
		"authorization by a file":  {nil, configured(t, authorizers+hook("one", nowhere(t), "Deny", "")+"- {type: RBAC, name: rbac}\n"), "--authorization-config"},
		"authorization file alike": {nil, configured(t, rbacOnly), ""},
		"authorization condition": {
			configured(t, authorizers+hook("one", nowhere(t), "Deny", "request.user == 'bob'")+"- {type: RBAC, name: rbac}\n"),
			configured(t, authorizers+hook("one", nowhere(t), "Deny", "request.user == 'eve'")+"- {type: RBAC, name: rbac}\n"), "--authorization-config",
		},
		"authorization is elsewhere": {
			func(o *server.Options) {
				o.Authorization.Modes, o.Authorization.WebhookConfigFile = []string{"RBAC", "Webhook"}, webhookKubeconfig(t)
			},
			func(o *server.Options) {
				o.Authorization.Modes, o.Authorization.WebhookConfigFile = []string{"RBAC", "Webhook"}, authorizationWebhook(t, new(atomic.Int64))
			}, "--authorization-webhook-config-file",
		},
		"authorization mismatch allowed": {nil, func(o *server.Options) {
			configured(t, authorizers+hook("one", nowhere(t), "Deny", "")+"- {type: RBAC, name: rbac}\n")(o)
			o.AllowSettingsMismatch = []string{"authorization-config"}
		}, ""},
		"audit turned off":       {recorded(t), nil, "--audit-log-path"},
		"audit turned on":        {nil, recorded(t), ""},
		"audit":                  {recorded(t), recorded(t), ""},
		"protection turned off":  {nil, func(o *server.Options) { o.ProtectInstances = false }, "--protect-instances"},
		"protection turned on":   {func(o *server.Options) { o.ProtectInstances = false }, nil, ""},
		"plans turned off":       {func(o *server.Options) { o.RequirePlan = true }, nil, "--require-plan"},
		"plans turned on":        {nil, func(o *server.Options) { o.RequirePlan = true }, ""},
		"fewer kinds":            {nil, func(o *server.Options) { o.Kinds = server.KindsCustom }, "--kinds"},
		"more kinds":             {nil, func(o *server.Options) { o.Kinds = server.KindsAll }, "--kinds"},
		"more kinds are allowed": {nil, func(o *server.Options) { o.Kinds, o.AllowSettingsMismatch = server.KindsAll, []string{"kinds"} }, ""},
		"plugin turned off":      {nil, func(o *server.Options) { o.Admission.DisablePlugins = []string{"NamespaceLifecycle"} }, "--disable-admission-plugins"},
		"plugin turned on":       {func(o *server.Options) { o.Admission.DisablePlugins = []string{"NamespaceLifecycle"} }, nil, ""},
		"encryption on one":      {nil, encryption(t, "a=1", "-"), "--encryption-provider-config"},
		"encryption made known":  {nil, encryption(t, "-", "a=1"), ""},
		"encryption turned on":   {encryption(t, "-", "a=1"), encryption(t, "a=1", "-"), ""},
		"encryption secret":      {encryption(t, "a=1", "-"), encryption(t, "a=2", "-"), "--encryption-provider-config"},
		"encryption key added":   {encryption(t, "a=1", "-"), encryption(t, "a=1", "b=2", "-"), ""},
		"encryption key used":    {encryption(t, "a=1", "b=2", "-"), encryption(t, "b=2", "a=1", "-"), ""},
		"encryption key dropped": {encryption(t, "b=2", "a=1", "-"), encryption(t, "b=2", "-"), ""},
		"encryption at once":     {encryption(t, "a=1", "-"), encryption(t, "b=2", "a=1", "-"), "--encryption-provider-config"},
		"event TTL":              {nil, func(o *server.Options) { o.EventTTL = 2 * time.Hour }, ""},
		"allowed": {nil, func(o *server.Options) {
			o.ProtectInstances, o.AllowSettingsMismatch = false, []string{"protect-instances"}
		}, ""},
		"another is allowed": {nil, func(o *server.Options) {
			o.ProtectInstances, o.AllowSettingsMismatch = false, []string{"event-ttl"}
		}, "--protect-instances"},
		"signing key at once": {nil, func(o *server.Options) {
			o.Identity.ServiceAccounts.SigningKeyFile, o.Identity.ServiceAccounts.KeyFiles = second, []string{other}
		}, "--service-account-key-file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			start(t, s.replica(c.first))
			err := s.join(t, c.second)
			switch {
			case c.flag == "" && err != nil:
				t.Errorf("it does not start: %v", err)
			case c.flag != "" && err == nil:
				t.Errorf("it starts; want an error that names %s", c.flag)
			case c.flag != "" && !strings.Contains(err.Error(), c.flag+" differs from replica "):
				t.Errorf("the error does not name %s: %v", c.flag, err)
			}
		})
	}
}

const rbacOnly = authorizers + "- {type: RBAC, name: rbac}\n"

// configured has authorization in a file.
func configured(t *testing.T, text string) func(*server.Options) {
	t.Helper()
	path := certtest.File(t, "authorization.yaml", []byte(text))
	return func(o *server.Options) { o.Authorization.ConfigFile = path }
}

// recorded has an audit log.
func recorded(t *testing.T) func(*server.Options) {
	t.Helper()
	return func(o *server.Options) {
		o.RecordAudit()
		o.Audit.LogOptions.Path = filepath.Join(t.TempDir(), "audit.log")
	}
}

// Files whose contents differ are logged, whatever they are called.
func TestReplicasWarnOfFiles(t *testing.T) {
	s := newSite(t)
	policy := func(level string) func(*server.Options) {
		return func(o *server.Options) {
			recorded(t)(o)
			o.Audit.PolicyFile = certtest.File(t, "policy.yaml", []byte("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: "+level+"}]\n"))
		}
	}
	start(t, s.replica(policy("Metadata")))
	log := etcdtest.Capture(t)
	if err := s.join(t, policy("None")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--audit-policy-file differs from replica ", "--client-ca-file differs from replica "} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
}

func webhookKubeconfig(t *testing.T) string {
	t.Helper()
	return certtest.File(t, "webhook.yaml", []byte(`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"a","cluster":{"server":"https://127.0.0.1:1"}}],"contexts":[{"name":"a","context":{"cluster":"a"}}],"current-context":"a"}`))
}

// Other differences are logged, with the flag.
func TestReplicasWarn(t *testing.T) {
	s := newSite(t)
	start(t, s.replica(nil))
	log := etcdtest.Capture(t)
	if err := s.join(t, func(o *server.Options) {
		o.EventTTL, o.FieldValidation = 2*time.Hour, "strict"
		o.Run.MaxRequestsInFlight = 77
	}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--event-ttl differs from replica ", "2h0m0s here and the default there", "--field-validation", "--max-requests-inflight"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log)
		}
	}
	if strings.Contains(log.String(), "--tls-cert-file") {
		t.Errorf("a flag that every replica has its own value of is complained about:\n%s", log)
	}
}

// A replica that was killed does not keep its successor out for longer than its lease.
func TestDeadReplicaDoesNotKeepOthersOut(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// A killed replica leaves a key behind, which no replica renews.
	client, _ := etcdtest.Client(t)
	lease, err := client.Grant(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	key := "/" + strings.Trim(s.prefix, "/") + "/-espalier/settings/dead"
	if _, err := client.Put(t.Context(), key, `{"replica":"dead","issuers":["https://other"]}`, clientv3.WithLease(lease.ID)); err != nil {
		t.Fatal(err)
	}
	if err := s.join(t, nil); err != nil {
		t.Fatal(err)
	}
	if left, err := client.Get(t.Context(), key); err != nil || len(left.Kvs) > 0 {
		t.Errorf("it started when the other one may have been alive: %v %v", left, err)
	}
}

// Etcd learns nothing by which tokens could be signed or secrets read.
func TestPublishedSettingsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	start(t, s.replica(encryption(t, "a=S", "-")))
	client, _ := etcdtest.Client(t)
	got, err := client.Get(t.Context(), "/"+strings.Trim(s.prefix, "/")+"/-espalier/settings/", clientv3.WithPrefix())
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	text := string(got.Kvs[0].Value)
	private, err := os.ReadFile(s.key)
	if err != nil {
		t.Fatal(err)
	}
	secret := bytes.Repeat([]byte("S"), 32)
	for _, hidden := range []string{string(secret), base64.StdEncoding.EncodeToString(secret), strings.Split(string(private), "\n")[1], filepath.Dir(s.key)} {
		if strings.Contains(text, hidden) {
			t.Errorf("%q is in %s", hidden, text)
		}
	}
	t.Logf("%d bytes: %s", len(text), text)
}

// A key of tokens that is added to a file while the server runs counts, without a
// restart.
func TestRotatedKeyIsPublished(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	next := signingKey(t)
	data, err := os.ReadFile(s.key)
	if err != nil {
		t.Fatal(err)
	}
	further := certtest.File(t, "further.pem", data)
	start(t, s.replica(func(o *server.Options) { o.Identity.ServiceAccounts.KeyFiles = []string{further} }))
	data, err = os.ReadFile(next)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(further, data, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		err := s.join(t, func(o *server.Options) {
			o.Identity.ServiceAccounts.SigningKeyFile, o.Identity.ServiceAccounts.KeyFiles = next, []string{s.key}
		})
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}
