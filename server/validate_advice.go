package server

import (
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/client-go/util/cert"
)

// Advice returns warnings about settings that are valid but rarely intended: what, why,
// and what to do. The caller logs them once, at the start.
func (o *Options) Advice() []string {
	advice := append(o.adviseEtcd(), o.adviseAccess()...)
	if o.Run.MaxRequestsInFlight+o.Run.MaxMutatingRequestsInFlight == 0 {
		advice = append(advice, "--max-requests-inflight and --max-mutating-requests-inflight are 0: clients can send more requests at a time than the server has memory for; give both a limit")
	}
	if len(o.AllowSettingsMismatch) > 0 {
		advice = append(advice, fmt.Sprintf("--allow-settings-mismatch is %s: replicas with conflicting values run side by side; remove it when all replicas have the same value", strings.Join(o.AllowSettingsMismatch, ",")))
	}
	for _, file := range append(o.files(), namedFile{flag: "--audit-log-path", path: o.Audit.LogOptions.Path, secret: true}) {
		if info, err := os.Stat(file.path); err == nil && file.secret && othersMay(info, 0o004) {
			advice = append(advice, fmt.Sprintf("%s: every user of this machine can read %s (mode %#o), which is secret; run chmod o-r, or set defaultMode: 0440 on its volume",
				file.flag, file.path, info.Mode().Perm()))
		}
	}
	return advice
}

func (o *Options) adviseEtcd() (advice []string) {
	for _, server := range unencrypted(o.Etcd.StorageConfig.Transport.ServerList) {
		advice = append(advice, fmt.Sprintf("--etcd-servers: %s is on another machine and not encrypted: anyone on the network can read all objects, secrets included, and anyone who can connect can change them; "+
			"use https, --etcd-cafile, --etcd-certfile and --etcd-keyfile", server))
	}
	transport := &o.Etcd.StorageConfig.Transport
	encrypted := func(server string) bool { return strings.HasPrefix(server, "https://") }
	if transport.CertFile == "" && slices.ContainsFunc(transport.ServerList, encrypted) {
		advice = append(advice, "--etcd-certfile is not given: an etcd without client authentication accepts every client that can reach it; start etcd with --client-cert-auth, and give --etcd-certfile and --etcd-keyfile")
	}
	if o.Etcd.StorageConfig.CompactionInterval == 0 {
		advice = append(advice, "--etcd-compaction-interval is 0: etcd keeps all former versions of all objects until it is full, unless etcd compacts by itself (--auto-compaction-retention)")
	}
	return advice
}

func (o *Options) adviseAccess() (advice []string) {
	// A server whose etcd is on the same machine, by a plain connection, is alone.
	alone := !slices.ContainsFunc(o.Etcd.StorageConfig.Transport.ServerList, func(server string) bool { return strings.HasPrefix(server, "https://") }) && len(unencrypted(o.Etcd.StorageConfig.Transport.ServerList)) == 0
	if path, _, ok := o.ownCertificate(); ok && !o.Serving.BindAddress.IsLoopback() && o.Serving.Listener == nil {
		advice = append(advice, fmt.Sprintf("--tls-cert-file is not given: the server makes itself a certificate, valid for a year, and clients can verify it only with %s as their CA; "+
			"give a certificate of a CA that they trust", path))
	}
	if o.Identity.ServiceAccounts.SigningKeyFile == "" && !alone {
		advice = append(advice, fmt.Sprintf("--service-account-signing-key-file is not given: the key that signs tokens is made and kept in %s; another server on the same etcd does not accept the tokens of this one, "+
			"and all are void when the folder is lost; give all servers the same key", o.Serving.ServerCert.CertDirectory))
	}
	if user := o.servingUser(); user != "" {
		advice = append(advice, fmt.Sprintf("--tls-cert-file: a CA of --client-ca-file has signed the server's certificate for clients, too: a client with its key is the user %q; "+
			"use a certificate with extendedKeyUsage=serverAuth alone", user))
	}
	if o.Identity.TokenFile != "" {
		advice = append(advice, "--token-auth-file: its tokens never expire, and are in the file in plain text; use certificates, service accounts or --authentication-config")
	}
	if config, _, err := o.Authorization.configuration(); err == nil && !slices.ContainsFunc(config.Authorizers, func(c apiserver.AuthorizerConfiguration) bool { return c.Type == modeRBAC }) {
		flag := "--authorization-mode"
		if o.Authorization.ConfigFile != "" {
			flag = authorizationConfigFlag
		}
		advice = append(advice, flag+" is without RBAC: roles and bindings have no effect; add RBAC unless the webhook decides everything")
	}
	return advice
}

// servingUser is the user that the server's own certificate authenticates; empty if the
// server does not accept it from clients.
func (o *Options) servingUser() string {
	served, err := cert.CertsFromFile(o.Serving.ServerCert.CertKey.CertFile)
	if err != nil || len(served) == 0 {
		return ""
	}
	roots, err := cert.NewPool(o.Identity.ClientCAFile)
	if err != nil {
		return ""
	}
	intermediates := x509.NewCertPool()
	for _, c := range served[1:] {
		intermediates.AddCert(c)
	}
	leaf := served[0]
	_, err = leaf.Verify(x509.VerifyOptions{Roots: roots, Intermediates: intermediates, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil || len(leaf.ExtKeyUsage) == 0 { // clients are not accepted without a usage
		return ""
	}
	return leaf.Subject.CommonName
}
