package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// ground has files for the flags of a server that is as it should be.
type ground struct {
	t                         *testing.T
	dir                       string
	authority                 *certtest.CA
	clients, cert, key, token string
}

func newGround(t *testing.T) *ground {
	g := &ground{t: t, dir: t.TempDir(), authority: certtest.New(t, time.Hour)}
	cert, key := g.authority.Server(t)
	g.clients, g.cert, g.key = g.file("clients.crt", g.authority.PEM()), g.file("server.crt", cert), g.file("server.key", key)
	g.token = g.file("sa.key", key)
	return g
}

func (g *ground) file(name string, data []byte) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// pair writes the certificate of a client.
func (g *ground) pair(name string, validity time.Duration) (cert, key string) {
	c, k := g.authority.Client(g.t, name, validity)
	return g.file(name+".crt", c), g.file(name+".key", k)
}

// open changes who may do what with a file.
func (g *ground) open(path string, mode os.FileMode) string {
	g.t.Helper()
	if err := os.Chmod(path, mode); err != nil {
		g.t.Fatal(err)
	}
	return path
}

// options are those of production, but for what the flags say.
func (g *ground) options(flags ...string) *Options {
	cert, key := g.pair("etcd", time.Hour)
	return parsed(g.t, append([]string{
		"--etcd-servers=https://etcd:2379", "--etcd-cafile=" + g.clients, "--etcd-certfile=" + cert, "--etcd-keyfile=" + key,
		"--client-ca-file=" + g.clients, "--tls-cert-file=" + g.cert, "--tls-private-key-file=" + g.key,
		"--service-account-signing-key-file=" + g.token,
	}, flags...)...)
}

func TestProductionIsFine(t *testing.T) {
	o := newGround(t).options()
	if err := o.Validate(); err != nil {
		t.Error(err)
	}
	if advice := o.Advice(); len(advice) > 0 {
		t.Errorf("advice: %q", advice)
	}
}

// TestRefused has one thing wrong each, and expects it, and nothing else, to be said.
func TestRefused(t *testing.T) {
	policy := "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"
	for _, test := range []struct {
		name  string
		flags func(g *ground) []string
		want  string
	}{
		{"TLS 1.1", flags("--tls-min-version=VersionTLS11"), "--tls-min-version is VersionTLS11, which is broken"},
		{"no such TLS", flags("--tls-min-version=1.3"), `--tls-min-version has the unknown version "1.3"`},
		{"weak cipher", flags("--tls-cipher-suites=TLS_RSA_WITH_RC4_128_SHA"), "--tls-cipher-suites has TLS_RSA_WITH_RC4_128_SHA, which is broken"},
		{"mistyped cipher", flags("--tls-cipher-suites=TLS_AES_128_GCM_SHA265"), "did you mean TLS_AES_128_GCM_SHA256?"},
		{"etcd for all to hear", flags("--etcd-servers=http://etcd:2379", "--etcd-cafile=", "--etcd-certfile=", "--etcd-keyfile="), "--etcd-servers: http://etcd:2379 is on another machine and not encrypted"},
		{"no time for requests", flags("--request-timeout=0s"), "--request-timeout is 0s"},
		{"all web sites", flags("--cors-allowed-origins=^.*$"), `--cors-allowed-origins has "^.*$", which matches every web site: a script of any page could act as the user in the user's browser; name the sites`},
		{"two authorizations", func(g *ground) []string {
			return []string{"--authorization-config=" + g.file("authorization", []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: [{type: RBAC, name: rbac}]\n")), "--authorization-mode=RBAC", "--authorization-webhook-version=v1"}
		},
			"--authorization-config is given together with --authorization-mode, --authorization-webhook-version: only one of them can decide"},
		{"audit to nowhere", func(g *ground) []string { return []string{"--audit-policy-file=" + g.file("policy", []byte(policy))} },
			"--audit-policy-file is given without --audit-log-path"},
		{"audit policy of nothing", func(g *ground) []string {
			return []string{"--audit-log-path=" + g.dir + "/audit.log", "--audit-policy-file=" + g.file("policy", []byte(strings.Replace(policy, "Metadata", "Some", 1)))}
		}, "--audit-policy-file: "},
		{"a foreign key", func(g *ground) []string {
			_, key := g.pair("foreign", time.Hour)
			return []string{"--tls-private-key-file=" + key}
		},
			"give a certificate and the key that belongs to it"},
		{"a key that is missing", flags("--tls-private-key-file=missing.key"), "--tls-cert-file, --tls-private-key-file cannot be read: open missing.key"},
		{"a foreign key for a name", func(g *ground) []string {
			_, key := g.pair("foreign", time.Hour)
			return []string{"--tls-sni-cert-key=" + g.cert + "," + key}
		},
			"--tls-sni-cert-key, --tls-sni-cert-key: "},
		{"an expired certificate for etcd", func(g *ground) []string { return g.etcd(g.pair("expired", -time.Minute)) }, "--etcd-certfile: "},
		{"a server's certificate without names", func(g *ground) []string {
			cert, key := g.unusual(&x509.Certificate{})
			return []string{"--tls-cert-file=" + cert, "--tls-private-key-file=" + key}
		},
			"has no names"},
		{"a client's certificate for a server", func(g *ground) []string {
			cert, key := g.unusual(&x509.Certificate{DNSNames: []string{"localhost"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
			return []string{"--tls-cert-file=" + cert, "--tls-private-key-file=" + key}
		}, "is not for a server's use"},
		{"a server's certificate for etcd", func(g *ground) []string {
			return g.etcd(g.unusual(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}))
		}, "is not for a client's use"},
		{"expired authorities", func(g *ground) []string {
			return []string{"--client-ca-file=" + g.file("old.crt", certtest.New(g.t, -time.Minute).PEM())}
		}, "has no CA certificate that is valid now"},
		{"expired authorities of etcd", func(g *ground) []string {
			return []string{"--etcd-cafile=" + g.file("old.crt", certtest.New(g.t, -time.Minute).PEM())}
		}, "--etcd-cafile: "},
		{"tokens that all can write", func(g *ground) []string {
			return []string{"--token-auth-file=" + g.open(g.file("tokens", []byte("secret,alice,1\n")), 0o602)}
		}, "--token-auth-file: every user of this machine can write to"},
		{"authorities that all can write", func(g *ground) []string { g.open(g.clients, 0o666); return []string{"--etcd-cafile=" + g.cert} },
			"--client-ca-file: every user of this machine can write to"},
		{"encryption of nothing", func(g *ground) []string {
			return []string{"--encryption-provider-config=" + g.file("e", []byte("apiVersion: apiserver.config.k8s.io/v1\nkind: AuthenticationConfiguration\n"))}
		},
			"holds the kind AuthenticationConfiguration; give an EncryptionConfiguration of apiserver.config.k8s.io/v1"},
		{"encryption by a short key", func(g *ground) []string {
			return []string{"--encryption-provider-config=" + g.file("e", []byte(shortKey))}
		},
			"--encryption-provider-config: resources[0].providers[0]"},
		{"tracing of nothing", func(g *ground) []string {
			return []string{"--tracing-config-file=" + g.file("t", []byte("kind: Pod\n"))}
		}, "--tracing-config-file: "},
		{"a webhook nowhere", func(g *ground) []string {
			return []string{"--authorization-mode=RBAC,Webhook", "--authorization-webhook-config-file=" + g.file("w", []byte("kind: Pod\n"))}
		}, "--authorization-webhook-config-file: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Contains(test.want, "can write") && runtime.GOOS == "windows" {
				t.Skip("Windows has no such bits")
			}
			g := newGround(t)
			err := g.options(test.flags(g)...).Validate()
			if err == nil {
				t.Fatal("nothing is wrong")
			}
			if text := err.Error(); !strings.Contains(text, test.want) || strings.Contains(text, "\n") {
				t.Errorf("it says\n%s\nand not just\n%s", text, test.want)
			}
		})
	}
}

const shortKey = `apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - aescbc: {keys: [{name: a, secret: c2hvcnQ=}]}
`

func flags(all ...string) func(*ground) []string { return func(*ground) []string { return all } }

func (g *ground) etcd(cert, key string) []string {
	return []string{"--etcd-certfile=" + cert, "--etcd-keyfile=" + key}
}

// unusual writes a certificate, signed by itself, that certtest does not make.
func (g *ground) unusual(template *x509.Certificate) (cert, key string) {
	g.t.Helper()
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(1), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		g.t.Fatal(err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		g.t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		g.t.Fatal(err)
	}
	return g.file("unusual.crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})),
		g.file("unusual.key", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}

func TestOwnCertificateExpires(t *testing.T) {
	g := newGround(t)
	cert, key := g.authority.Client(t, "self", -time.Minute)
	g.file("apiserver.crt", cert)
	g.file("apiserver.key", key)
	o := g.options("--tls-cert-file=", "--tls-private-key-file=", "--cert-dir="+g.dir)
	if err := o.Validate(); err == nil || !strings.Contains(err.Error(), "has expired") || !strings.Contains(err.Error(), "remove it and its key") {
		t.Errorf("got %v", err)
	}
}

func TestValidity(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		from, to time.Duration
		want     string
	}{{-time.Hour, time.Hour, ""}, {-2 * time.Hour, -time.Hour, "has expired, at "}, {time.Hour, 2 * time.Hour, "is not valid before "}} {
		if got := outside(&x509.Certificate{NotBefore: now.Add(test.from), NotAfter: now.Add(test.to)}); !strings.HasPrefix(got, test.want) || got != "" && test.want == "" {
			t.Errorf("%v to %v: %q", test.from, test.to, got)
		}
	}
}

// TestAdvice has one thing each that is better changed.
func TestAdvice(t *testing.T) {
	for _, test := range []struct {
		name  string
		flags func(g *ground) []string
		want  string
	}{
		{"etcd for all to hear", flags("--etcd-servers=http://etcd:2379", "--etcd-insecure"), "--etcd-servers: http://etcd:2379 is on another machine and not encrypted"},
		{"no certificate for etcd", flags("--etcd-certfile=", "--etcd-keyfile="), "--etcd-certfile is not given"},
		{"no compaction", flags("--etcd-compaction-interval=0"), "--etcd-compaction-interval is 0"},
		{"a certificate of its own", flags("--tls-cert-file=", "--tls-private-key-file="), "apiserver.crt as their CA"},
		{"a key of its own", flags("--service-account-signing-key-file="), "another server on the same etcd does not accept the tokens"},
		{"tokens in a file", func(g *ground) []string {
			return []string{"--token-auth-file=" + g.file("tokens", []byte("secret,alice,1\n"))}
		},
			"--token-auth-file: its tokens never expire"},
		{"a server's certificate for clients", func(g *ground) []string {
			cert, key := g.authority.Client(g.t, "server", time.Hour)
			return []string{"--tls-cert-file=" + g.file("both.crt", cert), "--tls-private-key-file=" + g.file("both.key", key)}
		},
			"--tls-cert-file: a CA of --client-ca-file has signed the server's certificate for clients, too: a client with its key is the user \"server\""},
		{"no roles", flags("--authorization-mode=Webhook"), "--authorization-mode is without RBAC"},
		{"no limits", flags("--enable-priority-and-fairness=false", "--max-requests-inflight=0", "--max-mutating-requests-inflight=0"), "clients can send more requests at a time"},
		{"a key for all to read", func(g *ground) []string { g.open(g.key, 0o644); return nil }, "--tls-private-key-file: every user of this machine can read"},
		{"an audit log for all to read", func(g *ground) []string {
			return []string{"--audit-log-path=" + g.open(g.file("audit.log", nil), 0o644)}
		},
			"--audit-log-path: every user of this machine can read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Contains(test.want, "can read") && runtime.GOOS == "windows" {
				t.Skip("Windows has no such bits")
			}
			g := newGround(t)
			if got := g.options(test.flags(g)...).Advice(); len(got) != 1 || !strings.Contains(got[0], test.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A server to try things out with, on the same machine as its etcd, gets no lecture.
func TestNoAdviceOnOneMachine(t *testing.T) {
	g := newGround(t)
	for _, address := range []string{"http://127.0.0.1:2379", "http://localhost:2379", "unix:///run/etcd.sock"} {
		o := parsed(t, "--etcd-servers="+address, "--client-ca-file="+g.clients, "--bind-address=127.0.0.1", "--cert-dir="+g.dir)
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", address, err)
		}
		if got := o.Advice(); len(got) != 0 {
			t.Errorf("%s: %q", address, got)
		}
	}
}

// Groups may read keys: volumes of secrets and credentials of systemd come so.
func TestKeysForGroups(t *testing.T) {
	g := newGround(t)
	g.open(g.key, 0o440)
	o := g.options()
	if err := o.Validate(); err != nil || len(o.Advice()) != 0 {
		t.Errorf("%v %q", err, o.Advice())
	}
	if !slices.ContainsFunc(o.files(), func(f namedFile) bool { return f.path == g.key && f.secret }) {
		t.Error(fmt.Errorf("the key is none of the files: %+v", o.files()))
	}
}
