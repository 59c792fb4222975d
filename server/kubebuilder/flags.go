package kubebuilder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// meaningless are flags of kube-apiserver that this server does not have, and why
// it needs none of them. A name with an "?" is a switch: it may be given without a
// value.
var meaningless = []struct{ why, names string }{
	{"no pod runs", "allow-privileged? default-not-ready-toleration-seconds default-unreachable-toleration-seconds"},
	{"there are no nodes", "kubelet-certificate-authority kubelet-client-certificate kubelet-client-key kubelet-https? kubelet-port " +
		"kubelet-preferred-address-types kubelet-read-only-port kubelet-timeout cloud-provider cloud-config"},
	{"no node routes requests to Services", "kubernetes-service-node-port"},
	{"servers on the same etcd need not know of each other", "apiserver-count endpoint-reconciler-type peer-advertise-ip peer-advertise-port peer-ca-file"},
	{"there are no servers behind this one", "proxy-client-cert-file proxy-client-key-file enable-aggregator-routing? aggregator-reject-forwarding-redirect?"},
	{"all resources are served", "runtime-config"},
	{"anonymous clients can only read the health endpoints", "anonymous-auth?"},
	{"the server always looks up the service account and honors the expiration of a token", "service-account-lookup? service-account-extend-token-expiration?"},
	{"nothing limits the bytes of a connection", "max-connection-bytes-per-sec"},
	{"the server does not serve its log", "enable-logs-handler?"},
	{"the server speaks TLS only", "insecure-port insecure-bind-address"},
}

// Tolerate adds to the flags of a server those of kube-apiserver that mean nothing
// to it. They are not in the help. The function that it returns is for after the
// arguments are parsed: it says what is ignored.
func Tolerate(flags *pflag.FlagSet) (ignored func() []string) {
	var all []*ignoredFlag
	for _, group := range meaningless {
		for name := range strings.FieldsSeq(group.names) {
			name, isSwitch := strings.CutSuffix(name, "?")
			if flags.Lookup(name) != nil {
				continue
			}
			value := &ignoredFlag{name: name, why: group.why, isSwitch: isSwitch}
			flag := flags.VarPF(value, name, "", "ignored: "+group.why)
			flag.Hidden = true
			if isSwitch {
				flag.NoOptDefVal = "true"
			}
			all = append(all, value)
		}
	}
	return func() []string {
		var words []string
		for _, flag := range all {
			if flag.given {
				words = append(words, fmt.Sprintf("--%s is ignored: %s", flag.name, flag.why))
			}
		}
		return append(words, dropPlugins(flags)...)
	}
}

// ignoredFlag is the value of a flag that has no effect.
type ignoredFlag struct {
	name, why, value string
	isSwitch, given  bool
}

// Set implements pflag.Value.
func (f *ignoredFlag) Set(value string) error {
	// Clients would wait for an insecure port. Port 0 asks for none.
	if f.name == "insecure-port" && value != "0" {
		return fmt.Errorf("%s: leave it out, and use --secure-port", f.why)
	}
	f.value, f.given = value, true
	return nil
}

// String implements pflag.Value.
func (f *ignoredFlag) String() string { return f.value }

// Type implements pflag.Value.
func (f *ignoredFlag) Type() string {
	if f.isSwitch {
		return "bool"
	}
	return "string"
}

// dropPlugins removes plugins that only kube-apiserver has from
// --disable-admission-plugins.
func dropPlugins(flags *pflag.FlagSet) []string {
	const name = "disable-admission-plugins"
	flag := flags.Lookup(name)
	if flag == nil {
		return nil
	}
	list, ok := flag.Value.(pflag.SliceValue)
	if !ok {
		return nil
	}
	kept, words := without(list.GetSlice(), name, elsewhere)
	if len(words) > 0 {
		// The list was given as a whole, so that the rest of it is one.
		if err := list.Replace(kept); err != nil {
			return []string{fmt.Sprintf("--%s: %v", name, err)}
		}
	}
	return words
}

// aboutPods are the admission plugins of kube-apiserver that are about pods, nodes and
// what belongs to them. Without them nothing is allowed here that would not be.
var aboutPods = strings.Fields(`AlwaysAdmit AlwaysPullImages CertificateApproval CertificateSigning CertificateSubjectRestriction
	DenyServiceExternalIPs ExtendedResourceToleration ImagePolicyWebhook JobValidation LimitPodHardAntiAffinityTopology
	NodeDeclaredFeatureValidator NodeRestriction PersistentVolumeLabel PodGroupProtection PodGroupWorkloadExists PodNodeSelector
	PodResizeValidator PodSecurityPolicy PodTolerationRestriction PodTopologyLabels SecurityContextDeny`)

// elsewhere are the plugins that only kube-apiserver has. Disabling one has no effect here.
// Enabling one that is not about pods is an error, so that the user knows that it is
// missing.
var elsewhere = append(strings.Fields("AlwaysDeny EventRateLimit NamespaceAutoProvision NamespaceExists"), aboutPods...)

// without returns the values of a flag that are not among others, and a warning for
// each that is.
func without(values []string, flag string, others []string) (kept, words []string) {
	kept = []string{}
	for _, value := range values {
		if slices.Contains(others, value) {
			words = append(words, fmt.Sprintf("--%s: %s is ignored: this server does not have it", flag, value))
			continue
		}
		kept = append(kept, value)
	}
	return kept, words
}
