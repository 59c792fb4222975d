package server

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Advice returns what may be meant as it is set, but rarely is: what, why, and what
// to do. Whoever runs a server says it once, at the start.
func (o *Options) Advice() []string {
	advice := append(o.adviseEtcd(), o.adviseAccess()...)
	if o.Run.MaxRequestsInFlight+o.Run.MaxMutatingRequestsInFlight == 0 {
		advice = append(advice, "--max-requests-inflight and --max-mutating-requests-inflight are 0: nothing keeps clients from asking for more at a time than the server has memory for; give both a limit")
	}
	for _, file := range append(o.files(), namedFile{flag: "--audit-log-path", path: o.Audit.LogOptions.Path, secret: true}) {
		if info, err := os.Stat(file.path); err == nil && file.secret && othersMay(info, 0o004) {
			advice = append(advice, fmt.Sprintf("%s: everybody on this machine can read %s (mode %#o), which is secret; chmod o-r it, or have the volume that it is in be so (defaultMode: 0440)",
				file.flag, file.path, info.Mode().Perm()))
		}
	}
	return advice
}

func (o *Options) adviseEtcd() (advice []string) {
	for _, server := range o.openEtcd() {
		advice = append(advice, fmt.Sprintf("--etcd-servers: %s is on another machine and not encrypted: who listens sees all objects, secrets included, and who can connect to it changes them; "+
			"use https, --etcd-cafile, --etcd-certfile and --etcd-keyfile", server))
	}
	transport := &o.Etcd.StorageConfig.Transport
	encrypted := func(server string) bool { return strings.HasPrefix(server, "https://") }
	if transport.CertFile == "" && slices.ContainsFunc(transport.ServerList, encrypted) {
		advice = append(advice, "--etcd-certfile is not given: an etcd that asks for no certificate lets everybody in who can reach it; have it ask (--client-cert-auth), and give --etcd-certfile and --etcd-keyfile")
	}
	if o.Etcd.StorageConfig.CompactionInterval == 0 {
		advice = append(advice, "--etcd-compaction-interval is 0: etcd keeps all former versions of all objects until it is full, unless it is told otherwise itself (--auto-compaction-retention)")
	}
	return advice
}

func (o *Options) adviseAccess() (advice []string) {
	// A server whose etcd is on the same machine, by a plain connection, is alone.
	alone := !slices.ContainsFunc(o.Etcd.StorageConfig.Transport.ServerList, func(server string) bool { return strings.HasPrefix(server, "https://") }) && len(o.openEtcd()) == 0
	if path, _, ok := o.ownCertificate(); ok && !o.Serving.BindAddress.IsLoopback() && o.Serving.Listener == nil {
		advice = append(advice, fmt.Sprintf("--tls-cert-file is not given: the server makes itself a certificate, for a year, and its clients can verify it only if they have %s as their authority; "+
			"give a certificate of an authority that they know", path))
	}
	if o.Identity.ServiceAccounts.SigningKeyFile == "" && !alone {
		advice = append(advice, fmt.Sprintf("--service-account-signing-key-file is not given: the key that signs tokens is made and kept in %s; another server on the same etcd does not accept the tokens of this one, "+
			"and all are void when the folder is lost; give all servers the same key", o.Serving.ServerCert.CertDirectory))
	}
	if o.Identity.TokenFile != "" {
		advice = append(advice, "--token-auth-file: its tokens never expire, and lie in the file as they are; use certificates, service accounts or --authentication-config")
	}
	if !slices.Contains(o.Authorization.Modes, modeRBAC) {
		advice = append(advice, "--authorization-mode is without RBAC: roles and bindings can be written, and give nobody anything; add RBAC unless the webhook decides everything")
	}
	return advice
}
