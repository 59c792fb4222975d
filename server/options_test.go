package server

import (
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/espalier-dev/espalier/internal/build"
)

// parsed returns the options that flags make.
func parsed(t *testing.T, args ...string) *Options {
	t.Helper()
	o := NewOptions()
	all := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		all.AddFlagSet(set)
	}
	if err := all.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidateTellsEverythingTogether(t *testing.T) {
	o := parsed(t, "--secure-port=0", "--authorization-mode=RBAC,RBAC,AlwaysAllow,ABAC,Webhook", "--field-validation=maybe", "--idle-timeout=0s", "--event-ttl=1s",
		"--tls-cert-file=missing.crt", "--etcd-keyfile=missing.key", "--etcd-servers=localhost:2379,http://b:2379", "--etcd-cafile=missing-ca.crt",
		"--etcd-servers-overrides=/pods#http://x", "--watch-cache-sizes=pods#1", "--storage-media-type=application/yaml",
		"--audit-policy-file=missing.yaml", "--max-requests-inflight=-1")
	err := o.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, want := range []string{
		"--secure-port 0 must be between 1 and 65535",
		"--client-ca-file is missing, and so are",
		"--authorization-mode has RBAC twice",
		"--authorization-mode must not be AlwaysAllow",
		`--authorization-mode has the unknown mode "ABAC"`,
		"--authorization-mode has Webhook, and --authorization-webhook-config-file is missing",
		`--field-validation is warn, strict or ignore, not "maybe"`,
		"--idle-timeout is 0s",
		"--event-ttl is 1s",
		"--tls-cert-file is given without --tls-private-key-file",
		"--etcd-keyfile is given without --etcd-certfile",
		`--etcd-servers: "localhost:2379" has no scheme`,
		"--etcd-servers: http://b:2379 is not encrypted",
		"--etcd-servers-overrides: /pods cannot be in another etcd",
		"--watch-cache-sizes is not supported",
		"--storage-media-type is application/yaml",
		"--etcd-cafile cannot be read",
		"--audit-policy-file cannot be read",
		"--audit-policy-file is given without --audit-log-path",
		"--max-requests-inflight can not be negative value",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("it does not say: %s", want)
		}
	}
	if t.Failed() {
		t.Log(err)
	}
	if _, err := New(t.Context(), o); err == nil {
		t.Error("New does not validate")
	}
}

func TestDefaultsAreSecure(t *testing.T) {
	o := parsed(t)
	if o.Feature.EnableProfiling || o.Feature.DebugSocketPath != "" || !slices.Equal(o.Authorization.Modes, []string{"RBAC"}) || o.FieldValidation != "warn" || !o.Serving.Required ||
		!o.Feature.EnablePriorityAndFairness || !o.ProtectInstances || o.Identity.TokenFile != "" {
		t.Errorf("%+v", o)
	}
}

// TestFlagNames holds those that scripts for kube-apiserver use, and that every
// flag says what it is.
func TestFlagNames(t *testing.T) {
	names := map[string]bool{}
	for _, set := range NewOptions().Flags().FlagSets {
		set.VisitAll(func(flag *pflag.Flag) {
			if flag.Usage == "" {
				t.Errorf("--%s has no help", flag.Name)
			}
			if names[flag.Name] {
				t.Errorf("--%s is there twice", flag.Name)
			}
			names[flag.Name] = true
		})
	}
	for _, want := range []string{
		"etcd-servers", "etcd-prefix", "etcd-insecure", "etcd-cafile", "etcd-certfile", "etcd-keyfile", "etcd-compaction-interval", "encryption-provider-config",
		"secure-port", "bind-address", "tls-cert-file", "tls-private-key-file", "tls-min-version", "cert-dir", "client-ca-file",
		"audit-policy-file", "audit-log-path", "audit-webhook-config-file", "max-requests-inflight", "max-mutating-requests-inflight",
		"enable-priority-and-fairness", "profiling", "tracing-config-file", "logging-format", "v", "feature-gates", "emulated-version",
		"shutdown-delay-duration", "shutdown-send-retry-after", "request-timeout", "min-request-timeout", "goaway-chance", "watch-cache",
		"authorization-mode", "authentication-config", "token-auth-file", "service-account-signing-key-file", "service-account-issuer",
		"enable-admission-plugins", "disable-admission-plugins", "admission-control-config-file", "event-ttl", "kinds", "protect-instances", "require-plan", "field-validation", "idle-timeout", "show-hidden-metrics-for-version",
	} {
		if !names[want] {
			t.Errorf("--%s is missing", want)
		}
	}
}

func TestOpenEtcd(t *testing.T) {
	o := parsed(t, "--etcd-servers=http://127.0.0.1:2379,http://localhost:2379,http://[::1]:2379,https://etcd:2379,http://etcd:2379,http://10.0.0.1:2379")
	if got := unencrypted(o.Etcd.StorageConfig.Transport.ServerList); !slices.Equal(got, []string{"http://etcd:2379", "http://10.0.0.1:2379"}) {
		t.Errorf("got %q", got)
	}
}

func TestKubernetesRelease(t *testing.T) {
	info := &debug.BuildInfo{Deps: []*debug.Module{{Path: "k8s.io/api", Version: "v0.1.0"}, {Path: "k8s.io/apiserver", Version: "v0.37.2"}}}
	if got := kubernetesRelease(build.Read(info)); got != "v1.37.2" {
		t.Errorf("got %s", got)
	}
	if got := kubernetesRelease(build.Read(&debug.BuildInfo{})); !strings.HasPrefix(got, "v1.") || !strings.HasSuffix(got, ".0") {
		t.Errorf("without build information: %s", got)
	}
	if got := buildMetadata("v0.0.0-20261115-abc+dirty ä"); got != "0.0.0-20261115-abc-dirty--" {
		t.Errorf("got %s", got)
	}
}

// Mistakes in --etcd-servers-overrides are explained.
func TestOverrides(t *testing.T) {
	for flag, want := range map[string]string{
		"events":                                  "must be GROUP/RESOURCE#URL;URL",
		"/events#":                                "must be GROUP/RESOURCE#URL;URL",
		"apps/deployments#http://127.0.0.1:1":     "apps/deployments cannot be in another etcd",
		"/events#127.0.0.1:1":                     "first path segment in URL cannot contain colon",
		"/events#http://etcd:1":                   "http://etcd:1 is on another machine and not encrypted",
		"/events#http://a:1,/events#http://b:1":   "events is there twice",
		"/events#http://127.0.0.1:1;http://[::1]": "",
		"/events#http://127.0.0.1:1,events.k8s.io/events#http://127.0.0.1:1": "",
	} {
		err := errors.Join(parsed(t, "--etcd-servers=http://127.0.0.1:2379", "--etcd-servers-overrides="+flag).validateEtcd()...)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", flag, err)
		}
	}
	o := parsed(t, "--etcd-servers-overrides=/events#http://a:1;http://b:1,coordination.k8s.io/leases#http://b:1;http://a:1")
	if all, errs := o.overrides(); len(errs) > 0 || len(all) != 1 || len(all[0].resources) != 2 {
		t.Errorf("the same servers make %d etcds, %v", len(all), errs)
	}
}
