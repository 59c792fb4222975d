package kubebuilder

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/server"
)

// serverFlags are all that `espalier serve` has.
func serverFlags() (*pflag.FlagSet, *server.Options) {
	o := server.NewOptions()
	all := pflag.NewFlagSet("server", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		all.AddFlagSet(set)
	}
	return all, o
}

// envtest is what controller-runtime's envtest gives kube-apiserver.
var envtest = []string{
	"--allow-privileged=true", "--authorization-mode=RBAC", "--bind-address=127.0.0.1", "--cert-dir=certs", "--client-ca-file=ca.crt",
	"--disable-admission-plugins=ServiceAccount", "--etcd-servers=http://127.0.0.1:2379", "--secure-port=6443",
	"--service-account-issuer=https://127.0.0.1:6443/", "--service-account-key-file=sa.crt", "--service-account-signing-key-file=sa.key",
	"--service-cluster-ip-range=10.0.0.0/24",
}

func TestEnvtestsFlags(t *testing.T) {
	flags, o := serverFlags()
	ignored := Tolerate(flags)
	args, words := Arguments(envtest)
	if !slices.Equal(args, envtest) || len(words) > 0 {
		t.Errorf("%q %q", args, words)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	want := []string{"--allow-privileged is ignored: no pod runs"}
	if got := ignored(); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if !slices.Equal(o.Admission.DisablePlugins, []string{"ServiceAccount"}) || o.Serving.BindPort != 6443 {
		t.Errorf("%v, port %d", o.Admission.DisablePlugins, o.Serving.BindPort)
	}
	if errs := o.Admission.Validate(); len(errs) > 0 {
		t.Error(errs)
	}
}

// A plugin that this server has must not be on the list of those whose flags are
// ignored: --disable-admission-plugins would leave it on.
func TestOurPluginsCanBeDisabled(t *testing.T) {
	flags, o := serverFlags()
	ignored := Tolerate(flags)
	ours := o.Admission.Plugins.Registered()
	if len(ours) < 5 {
		t.Fatalf("only %q", ours)
	}
	if err := flags.Parse([]string{"--disable-admission-plugins=" + strings.Join(ours, ",")}); err != nil {
		t.Fatal(err)
	}
	if got := ignored(); len(got) > 0 {
		t.Errorf("%q", got)
	}
	if got := o.Admission.DisablePlugins; !slices.Equal(got, ours) {
		t.Errorf("disabled %q, want %q", got, ours)
	}
}

// What people add to envtest's flags, and what becomes of it.
func TestPeoplesFlags(t *testing.T) {
	for _, test := range []struct{ args, kept, words string }{
		{"--feature-gates=WatchList=false,InPlacePodVerticalScaling=true", "--feature-gates=WatchList=false", "--feature-gates: InPlacePodVerticalScaling is ignored: there is no such gate here"},
		{"--feature-gates InPlacePodVerticalScaling=true", "", "--feature-gates: InPlacePodVerticalScaling is ignored: there is no such gate here"},
		{"--feature-gates=AllBeta=true", "--feature-gates=AllBeta=true", ""},
		{"--enable-admission-plugins=PodNodeSelector,MutatingAdmissionPolicy", "--enable-admission-plugins=MutatingAdmissionPolicy", "--enable-admission-plugins: PodNodeSelector is ignored: this server does not have it"},
		{"--enable-admission-plugins PodNodeSelector --v=1", "--v=1", "--enable-admission-plugins: PodNodeSelector is ignored: this server does not have it"},
		{"--enable-admission-plugins=ResourceQuota", "--enable-admission-plugins=ResourceQuota", ""},
		{"--enable-admission-plugins=NamespaceLifecyle", "--enable-admission-plugins=NamespaceLifecyle", ""}, // the server refuses it
		{"--authorization-mode=Node,RBAC", "--authorization-mode=RBAC", "--authorization-mode: Node is ignored: this server does not have it"},
		{"--authorization-mode=AlwaysAllow", "--authorization-mode=AlwaysAllow", ""}, // and it refuses this
		{"--storage-media-type=application/vnd.kubernetes.protobuf", "", "--storage-media-type is ignored: objects are stored as JSON"},
		{"--watch-cache-sizes=pods#100", "", "--watch-cache-sizes is ignored: watch caches are as large as they need to be"},
		{"--max-requests-inflight=800 --audit-log-path=audit.log", "--max-requests-inflight=800 --audit-log-path=audit.log", ""},
		{"--feature-gates", "--feature-gates", ""},
		{"feature-gates=X=true", "feature-gates=X=true", ""},
	} {
		kept, words := Arguments(strings.Fields(test.args))
		if got := strings.Join(kept, " "); got != test.kept || strings.Join(words, "; ") != test.words {
			t.Errorf("%s: %q %q", test.args, got, words)
		}
	}
}

func TestTolerated(t *testing.T) {
	flags, _ := serverFlags()
	ignored := Tolerate(flags)
	if err := flags.Parse(strings.Fields("--anonymous-auth --kubelet-port 10250 --runtime-config=api/all=true --runtime-config=batch/v1=true --insecure-port=0 --enable-aggregator-routing=false")); err != nil {
		t.Fatal(err)
	}
	got := ignored()
	for _, name := range []string{"--anonymous-auth ", "--kubelet-port ", "--runtime-config ", "--insecure-port ", "--enable-aggregator-routing "} {
		if !slices.ContainsFunc(got, func(word string) bool { return strings.HasPrefix(word, name+"is ignored: ") }) {
			t.Errorf("no word of %s", name)
		}
	}
	if len(got) != 5 {
		t.Errorf("%q", got)
	}
	for _, wrong := range []string{"--insecure-port=8080", "--encryption-provider=x", "--oidc-issuer-url=https://x"} {
		if err := flags.Parse([]string{wrong}); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
	flags.VisitAll(func(flag *pflag.Flag) {
		if _, ok := flag.Value.(*ignoredFlag); ok && !flag.Hidden {
			t.Errorf("--%s is in the help", flag.Name)
		}
	})
}

// Nothing is lost without a word, whatever the arguments are.
func FuzzArguments(f *testing.F) {
	f.Add(strings.Join(envtest, "\n"))
	f.Add("--feature-gates=,=,kube:A=true\n--feature-gates\n--enable-admission-plugins=,,PodNodeSelector\n--")
	f.Fuzz(func(t *testing.T, text string) {
		args := strings.Split(text, "\n")
		kept, words := Arguments(args)
		if len(words) > 0 {
			return
		}
		// "--name value" becomes "--name=value".
		join := func(all []string) string { return strings.ReplaceAll(strings.Join(all, "\n"), "\n", "=") }
		if join(kept) != join(args) {
			t.Errorf("%q became %q", args, kept)
		}
	})
}
