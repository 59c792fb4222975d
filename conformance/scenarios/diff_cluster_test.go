package scenarios

import (
	"context"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A workstation has the programs espalier and kubectl, and a home of its own.
type workstation struct {
	t    *testing.T
	bin  string // folder of the programs
	home string
	env  []string
}

func newWorkstation(t *testing.T, kubeconfig string) *workstation {
	t.Helper()
	bin := t.TempDir()
	for name, path := range map[string]string{"espalier": commandLine(t), "kubectl": must[string](t)(launch.Tool("kubectl"))} {
		if err := os.Symlink(must[string](t)(filepath.Abs(path)), filepath.Join(bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	home := t.TempDir()
	return &workstation{t: t, bin: bin, home: home, env: append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "HOME="+home,
		"XDG_CACHE_HOME="+filepath.Join(home, "cache"), "KUBECONFIG="+kubeconfig, "NO_COLOR=1")}
}

func (w *workstation) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(w.bin, "espalier"), args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = w.home, w.env, withParent()
	return cmd
}

// espalier runs a command, and returns what it prints and its exit code.
func (w *workstation) espalier(args ...string) (string, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := w.command(ctx, args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// exits runs a command that must end with a code and print all that is wanted.
func (w *workstation) exits(code int, want []string, args ...string) string {
	w.t.Helper()
	out, got := w.espalier(args...)
	if got != code {
		w.t.Errorf("espalier %s: exit code %d, not %d\n%s", strings.Join(args, " "), got, code, out)
	}
	for _, text := range want {
		if !strings.Contains(out, text) {
			w.t.Errorf("espalier %s: no %q in\n%s", strings.Join(args, " "), text, out)
		}
	}
	return out
}

// espalier diff --cluster compares files with the CRDs that a real server has, as the real kubectl reads them.
func TestDiffWithCluster(t *testing.T) {
	k := harbour(t)
	w := newWorkstation(t, k.server.Kubeconfig)
	old := readFile(t, "testdata/boats.yaml")
	other := strings.NewReplacer(boats, "docks.harbour.example.com", "plural: boats", "plural: docks", "singular: boat", "singular: dock",
		"kind: Boat", "kind: Dock", "listKind: BoatList", "listKind: DockList", "[bt]", "[dk]").Replace(old)
	file := filepath.Join(w.home, "boats.yaml")

	// Beside the CRD of the file the cluster has one more, which is not the file's to delete.
	k.ok("apply", "-f", write(t, "docks.yaml", other))
	t.Cleanup(func() { removeCRD(t, k.server, "docks.harbour.example.com") })
	writeFile(t, file, old)
	w.exits(0, []string{"nothing found in 1 CRD"}, "diff", "--cluster", "boats.yaml")

	// What the server adds to a CRD, such as defaults and status, is no change.
	writeFile(t, file, strings.Replace(old, "enum: [red, green, blue]", "enum: [red, blue]", 1))
	out := w.exits(1, []string{"boats.yaml:", "error: ", "spec.colour", "<cluster>:" + boats + ":", ": before", `OLD accepts this object`}, "diff", "--cluster", "boats.yaml")
	if strings.Contains(out, "docks") {
		t.Errorf("a CRD of the cluster alone is reported:\n%s", out)
	}
	w.exits(1, []string{"<cluster default>:" + boats}, "diff", "--cluster", "--context", "default", "boats.yaml")

	// The context of the settings is the default.
	writeFile(t, filepath.Join(w.home, ".espalier.yaml"), "cluster: {context: nowhere}\n")
	w.exits(2, []string{"reading the CRDs of the cluster nowhere failed: ", "context was not found for specified context: nowhere", "See that kubectl can read them: kubectl get crds --context nowhere"}, "diff", "--cluster", "boats.yaml")
	w.exits(1, []string{"spec.colour"}, "diff", "--cluster", "--kubeconfig", k.server.Kubeconfig, "boats.yaml")
	if err := os.Remove(filepath.Join(w.home, ".espalier.yaml")); err != nil {
		t.Fatal(err)
	}

	// A user without the right to list CRDs, and a server that does not answer.
	stranger := filepath.Join(w.home, "stranger")
	writeFile(t, stranger, kubeconfigOf(must[*rest.Config](t)(k.server.Client("stranger")), k.server.URL))
	w.exits(2, []string{"reading the CRDs of the cluster of ", "Forbidden"}, "diff", "--cluster", "--kubeconfig", stranger, "boats.yaml")
	nowhere := fmt.Sprintf("https://127.0.0.1:%d", must[int](t)(launch.FreePort()))
	writeFile(t, stranger, kubeconfigOf(k.server.Config, nowhere))
	out = w.exits(2, []string{"refused"}, "diff", "--cluster", "--kubeconfig", stranger, "boats.yaml")
	if strings.Contains(out, "memcache.go") {
		t.Errorf("the error has kubectl's log:\n%s", out)
	}
}

// kubeconfigOf is a kubeconfig for a client at an address.
func kubeconfigOf(c *rest.Config, url string) string {
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: u, user: {client-certificate-data: %s, client-key-data: %s}}]
contexts: [{name: far, context: {cluster: c, user: u}}]
current-context: far
`, url, encode(c.CAData), encode(c.CertData), encode(c.KeyData))
}
