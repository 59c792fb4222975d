package server

import (
	"cmp"
	"fmt"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apiserver/pkg/apis/apiserver"

	"github.com/espalier-dev/espalier/server/storage/store"
)

// Fact is one line of a summary.
type Fact struct{ Name, Text string }

// Summary says what the server is, where, and with what settings: nine facts. The first is the
// server itself, the last what production usually has and this server does not. It has no secrets.
func (s *Server) Summary() []Fact {
	o := s.options
	return []Fact{
		{"server", fmt.Sprintf("Espalier %s, %s, %s, at %s", o.Version, s.generic.EffectiveVersion.Info().GitVersion, runtime.Version(), s.reachable())},
		{"etcd", s.describeEtcds()},
		{"authentication", o.describeAuthentication()},
		{"authorization", o.describeAuthorization()},
		{"kinds", fmt.Sprintf("%s (%d built-in resources); tenants: %s", o.Kinds, len(s.builtin.All()), onOff(o.Tenants))},
		{"admission", o.describeAdmission()},
		{"audit log", o.describeAudit()},
		{"encryption", o.describeEncryption()},
		{"not set", cmp.Or(strings.Join(s.lacking, "; "), "nothing that production usually has")},
	}
}

// reachable is a URL of the server. A server that listens on all addresses has that which it
// advertises.
func (s *Server) reachable() string {
	host, port, err := net.SplitHostPort(s.Address().String())
	if err != nil {
		return s.Address().String()
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() && s.config.PublicAddress != nil {
		host = s.config.PublicAddress.String()
	}
	return "https://" + net.JoinHostPort(host, port)
}

func onOff(is bool) string {
	if is {
		return "on"
	}
	return "off"
}

// describeEtcds lists members with their versions, as far as they have answered.
func (s *Server) describeEtcds() string {
	text := describeMembers(s.backend)
	for _, one := range s.elsewhere {
		var names []string
		for _, r := range one.resources {
			names = append(names, r.String())
		}
		text += "; " + strings.Join(names, " and ") + " in " + describeMembers(one.backend)
	}
	return text
}

func describeMembers(b *store.Backend) string {
	var all []string
	for _, m := range b.Members() {
		all = append(all, fmt.Sprintf("%s (%s)", m.Endpoint, cmp.Or(m.Version, "not answering yet")))
	}
	if len(all) == 0 { // sockets of this machine
		all = b.Client().Endpoints()
	}
	return strings.Join(all, ", ")
}

func (o *Options) describeAuthentication() string {
	var all []string
	if o.Identity.ClientCAFile != "" {
		all = append(all, "client certificates ("+o.Identity.ClientCAFile+")")
	}
	all = append(all, "service account tokens")
	for _, one := range []struct{ what, file string }{
		{"--authentication-config", o.Identity.ConfigurationFile}, {"webhook", o.Identity.Webhook.ConfigFile},
		{"proxies", o.Identity.RequestHeader.ClientCAFile}, {"--token-auth-file", o.Identity.TokenFile},
	} {
		if one.file != "" {
			all = append(all, one.what+" ("+one.file+")")
		}
	}
	return strings.Join(all, ", ")
}

func (o *Options) describeAuthorization() string {
	config, _, err := o.Authorization.configuration()
	if err != nil { // the file has changed since
		return o.Authorization.ConfigFile
	}
	var all []string
	for _, one := range config.Authorizers {
		text := string(one.Type)
		if one.Type == apiserver.TypeWebhook {
			text += " " + strconv.Quote(one.Name)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

func (o *Options) describeAdmission() string {
	text := "the default plugins"
	if more := o.Admission.EnablePlugins; len(more) > 0 {
		text += ", and " + strings.Join(more, ", ")
	}
	if fewer := o.Admission.DisablePlugins; len(fewer) > 0 {
		text += ", without " + strings.Join(fewer, ", ")
	}
	return text + "; webhooks at " + o.Webhooks.Describe()
}

func (o *Options) describeAudit() string {
	var all []string
	switch path := o.Audit.LogOptions.Path; path {
	case "":
	case "-":
		all = append(all, "standard output")
	default:
		all = append(all, path)
	}
	if file := o.Audit.WebhookOptions.ConfigFile; file != "" {
		all = append(all, "the webhook of "+file)
	}
	if len(all) == 0 {
		return "off"
	}
	return "to " + strings.Join(all, " and ") + ", by " + cmp.Or(o.Audit.PolicyFile, "the built-in policy")
}

func (o *Options) describeEncryption() string {
	path := o.Etcd.EncryptionProviderConfigFilepath
	if path == "" {
		return "none: Secrets are in clear text in etcd and its backups"
	}
	return path
}

// lacking returns what production usually has and the settings do not, in few words. Advice says
// more about some of it. It must be called before New fills in what is not given.
func (o *Options) lacking() (all []string) {
	add := func(is bool, text string) {
		if is {
			all = append(all, text)
		}
	}
	servers := o.Etcd.StorageConfig.Transport.ServerList
	_, _, own := o.ownCertificate()
	add(len(servers) == 1, "a second etcd member (--etcd-servers)")
	add(!slices.ContainsFunc(servers, func(server string) bool { return strings.HasPrefix(server, "https://") }), "TLS to etcd (--etcd-cafile)")
	add(own, "a serving certificate of a CA (--tls-cert-file)")
	add(o.Identity.ServiceAccounts.SigningKeyFile == "", "a key that replicas share (--service-account-signing-key-file)")
	add(o.Etcd.EncryptionProviderConfigFilepath == "", "encryption (--encryption-provider-config)")
	add(!records(o.Audit), "an audit log (--audit-log-path)")
	add(o.Run.ShutdownDelayDuration == 0, "time for the load balancer (--shutdown-delay-duration)")
	return all
}
