package deploy

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-systemd/v22/unit"
	corev1 "k8s.io/api/core/v1"
)

const unitFile = "systemd/espalier.service"

// options reads the unit: the values of each option of a section, in their order.
func options(t *testing.T, section string) map[string][]string {
	t.Helper()
	parsed, err := unit.DeserializeOptions(bytes.NewReader(read(t, unitFile)))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	for _, o := range parsed {
		if o.Section == section {
			found[o.Name] = append(found[o.Name], o.Value)
		}
	}
	return found
}

// specifiers are where systemd's % lead to in a test, below a folder.
func specifiers(dir string) map[string]string {
	return map[string]string{"%d": dir + "/credentials", "%L": dir + "/log", "%S": dir + "/state"}
}

// command returns what ExecStart runs, with specifiers and variables replaced as systemd does. With neither, they stay.
func command(t *testing.T, replace map[string]string) []string {
	t.Helper()
	lines := options(t, "Service")["ExecStart"]
	if len(lines) != 1 {
		t.Fatalf("%d commands in the unit", len(lines))
	}
	var args []string
	for _, word := range strings.Fields(strings.ReplaceAll(lines[0], "\\\n", " ")) {
		// $NAME as a word of its own becomes the words of its value; ${NAME} stays part of one.
		if value, ok := replace[word]; ok && strings.HasPrefix(word, "$") && !strings.HasPrefix(word, "${") {
			args = append(args, strings.Fields(value)...)
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(replace)) {
			word = strings.ReplaceAll(word, name, replace[name])
		}
		args = append(args, word)
	}
	return args
}

// environment reads the file of settings.
func environment(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for line := range strings.Lines(string(read(t, "systemd/espalier.env"))) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			found[name] = value
		}
	}
	return found
}

func TestUnitIsHardened(t *testing.T) {
	service := options(t, "Service")
	for name, want := range map[string]string{
		"Type": "notify", "KillSignal": "SIGTERM", "DynamicUser": "yes", "StateDirectory": "espalier", "LogsDirectory": "espalier",
		"CapabilityBoundingSet": "", "AmbientCapabilities": "", "NoNewPrivileges": "yes", "ProtectSystem": "strict", "ProtectHome": "yes",
		"PrivateDevices": "yes", "PrivateTmp": "yes", "PrivateUsers": "yes", "ProtectKernelModules": "yes", "ProtectKernelTunables": "yes",
		"ProtectControlGroups": "yes", "ProtectProc": "invisible", "RestrictNamespaces": "yes", "LockPersonality": "yes",
		"MemoryDenyWriteExecute": "yes", "RestrictSUIDSGID": "yes", "SystemCallArchitectures": "native",
		"RestrictAddressFamilies": "AF_INET AF_INET6 AF_UNIX AF_NETLINK", "UMask": "0077",
	} {
		if got := service[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if got := service["SystemCallFilter"]; !slices.Equal(got, []string{"@system-service", "~@privileged @resources", "@chown"}) {
		t.Errorf("SystemCallFilter is %q", got)
	}
	stop, err := time.ParseDuration(service["TimeoutStopSec"][0])
	if need := stopping(t, command(t, nil)) + 5*time.Second; err != nil || stop < need {
		t.Errorf("killed after %v (%v), but it may take %v to end", stop, err, need)
	}
}

// Each credential that a flag names is loaded, and each that is loaded is named.
func TestUnitLoadsItsCredentials(t *testing.T) {
	loaded := map[string]bool{}
	for _, c := range options(t, "Service")["LoadCredential"] {
		name, path, _ := strings.Cut(c, ":")
		if path != "/etc/espalier/"+name {
			t.Errorf("%s is loaded from %s", name, path)
		}
		loaded[name] = true
	}
	for _, arg := range command(t, nil) {
		if _, name, ok := strings.Cut(arg, "=%d/"); ok {
			if !loaded[name] {
				t.Errorf("%s: no such credential is loaded", arg)
			}
			delete(loaded, name)
		}
	}
	for name := range loaded {
		t.Errorf("the credential %s is loaded for nothing", name)
	}
	settings := environment(t)
	for _, name := range []string{"ETCD_SERVERS", "ISSUER", "ESPALIER_FLAGS", "GOMEMLIMIT"} {
		if settings[name] == "" {
			t.Errorf("espalier.env does not set %s", name)
		}
	}
}

// The manifests and the unit run the server alike.
func TestUnitIsLikeTheManifests(t *testing.T) {
	pod := deployment(t, nil).Spec.Template.Spec.Containers[0].Args
	for _, flag := range []string{"secure-port", "request-timeout", "shutdown-delay-duration", "shutdown-watch-termination-grace-period"} {
		if a, b := argument(t, pod, flag), argument(t, command(t, nil), flag); a != b {
			t.Errorf("--%s is %s in the manifests and %s in the unit", flag, a, b)
		}
	}
	same(t, "systemd/audit.yaml", []byte(one[*corev1.ConfigMap](t, objects(t, string(read(t, manifestFile)))).Data["audit.yaml"]))
}

// systemd itself has nothing to say about the unit, and finds it well protected.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skipf("%v: without systemd only the other tests of the unit say something", err)
	}
	// It looks whether the program is there, which is not installed here.
	copied := filepath.Join(t.TempDir(), filepath.Base(unitFile))
	text := strings.ReplaceAll(string(read(t, unitFile)), "/usr/local/bin/espalier-server", program(t))
	if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(analyze, "verify", "--man=no", copied).CombinedOutput(); err != nil || len(bytes.TrimSpace(out)) != 0 {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
	// In tenths of ten: 0 is the safest, and a service that serves the network does not get below 1.
	if out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold=15", copied).CombinedOutput(); err != nil {
		t.Errorf("systemd-analyze security: %v\n%s", err, out)
	}
}
