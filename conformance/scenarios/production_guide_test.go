package scenarios

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// productionPrelude finds the programs, and ends what the page leaves running.
const productionPrelude = `
set -eu -o pipefail
trap 'kill -KILL $(jobs -p) 2>/dev/null || true; wait' EXIT
`

// What the guide to production tells people to type works, in the order given: certificates, three members of etcd, three replicas, a
// rolling restart, a backup, its restoration and the rotation of keys, which restarts all replicas three times and is left out with
// -short. The ports are free ones, and replicas that were asked to end do not wait for a load balancer, as there is none.
func TestProductionGuide(t *testing.T) {
	needsDiscovery(t)
	t.Parallel()
	root := must[string](t)(launch.Root())
	text := readFile(t, filepath.Join(root, "docs/guides/production.md"))
	var ports []string
	for _, port := range []string{"22379", "22380", "32379", "32380", "2379", "2380", "6443", "7443", "8443"} {
		ports = append(ports, port, fmt.Sprint(must[int](t)(launch.FreePort())))
	}
	text = strings.NewReplacer(append(ports, "shutdown-delay-duration: 15s", "shutdown-delay-duration: 0s")...).Replace(text)
	wants := []string{"the settings are valid", "namespace/team-a created", "secret/password created", "k8s:enc:secretbox:v1:first:",
		"configmap/too-late created", "sesame", "No resources found in team-a namespace."}
	before, rotation, found := strings.Cut(text, "## Keys that change\n")
	_, after, ends := strings.Cut(rotation, "## What to watch\n")
	if !found || !ends {
		t.Fatal("the headlines of the guide have changed")
	}
	if testing.Short() {
		text = before + after
	} else {
		wants = append(wants, "storageversionmigration.storagemigration.k8s.io/secrets condition met", "k8s:enc:secretbox:v1:second:")
	}
	dir, script := t.TempDir(), productionPrelude
	for _, block := range guideBlock.FindAllStringSubmatch(text, -1) {
		switch language, title, content := block[1], block[2], block[3]; {
		case title != "":
			writeFile(t, filepath.Join(dir, title), content)
		case language == "sh":
			script += content
		}
	}
	said := runGuide(t, dir, script)
	for _, want := range wants {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
	metrics := readFile(t, filepath.Join(dir, "metrics"))
	for _, name := range []string{"apiserver_request_total", "apiserver_request_sli_duration_seconds", "etcd_request_duration_seconds", "espalier_etcd_member_usable", "espalier_etcd_database_bytes", "espalier_etcd_quota_bytes", "apiserver_client_certificate_expiration_seconds"} {
		if !strings.Contains(text, "`"+name) || !strings.Contains(metrics, "\n"+name) {
			t.Errorf("the guide has %s watched: %v, the server has it: %v", name, strings.Contains(text, "`"+name), strings.Contains(metrics, "\n"+name))
		}
	}
	logs := must[[]string](t)(filepath.Glob(filepath.Join(dir, "replica-*.log")))
	for _, log := range logs {
		if fault := faultIn(readFile(t, log)); fault != "" {
			t.Errorf("%s has %s", log, fault)
		}
	}
	if len(logs) != 3 {
		t.Errorf("there are the logs %q", logs)
	}
}

// runGuide runs a script with the programs of the tests, and returns what it prints.
func runGuide(t *testing.T, dir, script string) string {
	t.Helper()
	bin := t.TempDir()
	programs := map[string]string{"espalier": commandLine(t), "espalier-server": binaries[launch.Espalier]}
	for _, name := range []string{"etcd", "etcdctl", "etcdutl", "kubectl"} {
		programs[name] = must[string](t)(launch.Tool(name))
	}
	for name, path := range programs {
		if err := os.Symlink(must[string](t)(filepath.Abs(path)), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.WaitDelay, cmd.SysProcAttr = dir, 10*time.Second, withParent()
	cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+dir, "KUBECONFIG=")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		for _, log := range must[[]string](t)(filepath.Glob(filepath.Join(dir, "*.log"))) {
			lines := strings.Split(strings.TrimSpace(readFile(t, log)), "\n")
			t.Logf("%s: %s", filepath.Base(log), strings.Join(lines[max(0, len(lines)-8):], "\n"))
		}
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("the guide took %v", time.Since(began).Round(time.Second))
	return string(out)
}
