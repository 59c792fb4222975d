//go:build unix

package command

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/cmd/internal/cli"
	"github.com/espalier-dev/espalier/server/auth/ca"
	"github.com/espalier-dev/espalier/server/local"
)

// refusedDev runs a command that must fail with exit code 2 and return what it says.
func refusedDev(t *testing.T, dir string, args ...string) string {
	t.Helper()
	said, err := devOutput(t, dir, args...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != cli.ExitFailed {
		t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return said
}

// plant writes the folder that an attacker has committed to a repository: a CA whose
// key the attacker has, a key for tokens, and a kubeconfig.
func plant(t *testing.T, dir string) *ca.CA {
	t.Helper()
	pki := filepath.Join(dir, "pki")
	if err := os.MkdirAll(pki, 0o755); err != nil {
		t.Fatal(err)
	}
	attacker, err := ca.New("attacker", time.Hour*24*365)
	if err != nil {
		t.Fatal(err)
	}
	if err := attacker.Save(pki); err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := local.Kubeconfig(&rest.Config{Host: "https://attacker.invalid", TLSClientConfig: rest.TLSClientConfig{CAData: attacker.CA}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, kubeconfigName), kubeconfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return attacker
}

// A data folder that came with a repository is not trusted: neither its CA nor its
// objects, whatever file in it says otherwise.
func TestDevRefusesAPlantedFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	plant(t, filepath.Join(dir, ".espalier"))
	const want = "espalier: .espalier was not made by 'espalier dev' of this user on this machine"
	for _, args := range []string{"dev --port 0", "dev user bob"} {
		if said := refusedDev(t, dir, strings.Fields(args)...); !strings.HasPrefix(said, want) {
			t.Errorf("%s says\n%s", args, said)
		}
	}

	// The attacker has run dev, too, and has committed all that it made.
	other, mine := t.TempDir(), os.Getenv("XDG_STATE_HOME")
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	startDev(t, other, "--port", "0").interrupt()
	t.Setenv("XDG_STATE_HOME", mine)
	for _, args := range []string{"dev --port 0", "dev user bob"} {
		if said := refusedDev(t, other, strings.Fields(args)...); !strings.HasPrefix(said, want) {
			t.Errorf("%s with the attacker's folder says\n%s", args, said)
		}
	}

	// A link leads to where a repository has no business.
	linked, target := t.TempDir(), t.TempDir()
	if err := os.Symlink(target, filepath.Join(linked, ".espalier")); err != nil {
		t.Fatal(err)
	}
	if said := refusedDev(t, linked, "dev", "--port", "0"); !strings.Contains(said, ".espalier is a symbolic link") {
		t.Errorf("a link: %s", said)
	}
	if entries, err := os.ReadDir(target); err != nil || len(entries) > 0 {
		t.Errorf("behind the link there is %v, %v", entries, err)
	}
}

// Git overwrites files that it is told to ignore when a commit has them: what a later
// commit brings is not used either.
func TestDevIgnoresWhatALaterCommitBrings(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	startDev(t, dir, "--port", "0").interrupt()
	attacker := plant(t, filepath.Join(dir, ".espalier"))
	d := startDev(t, dir, "--port", "0")
	text, err := os.ReadFile(d.kubeconfig())
	if err != nil || strings.Contains(string(text), "attacker.invalid") {
		t.Errorf("the kubeconfig is the attacker's: %v", err)
	}
	pair, err := attacker.Client("attacker", user.SystemPrivilegedGroup)
	if err != nil {
		t.Fatal(err)
	}
	if code := devStatus(t, d.kubeconfig(), pair); code != 401 {
		t.Errorf("the attacker is answered with %d", code)
	}
	d.interrupt()
}

// A folder that was moved, or that an earlier version made, is taken over on request,
// with all that is in it.
func TestDevAdoptsAFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	dir := t.TempDir()
	plant(t, filepath.Join(dir, ".espalier")) // as an earlier version had it
	before, err := os.ReadFile(filepath.Join(dir, ".espalier", "pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		startDev(t, dir, "--port", "0", "--trust-data-dir").interrupt()
		startDev(t, dir, "--port", "0").interrupt() // it is ours now
		found, err := filepath.Glob(filepath.Join(dir, ".espalier", "data-*", "pki", "ca.crt"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%q, %v", found, err)
		}
		if after, err := os.ReadFile(found[0]); err != nil || string(after) != string(before) {
			t.Errorf("another CA: %v", err)
		}
		t.Setenv("XDG_STATE_HOME", t.TempDir()) // another machine
	}
	// Within one machine it can be moved as it is.
	startDev(t, dir, "--port", "0", "--trust-data-dir").interrupt()
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(filepath.Join(dir, ".espalier"), moved); err != nil {
		t.Fatal(err)
	}
	startDev(t, dir, "--port", "0", "--data-dir", moved).interrupt()
}

// Without a place for its secret it says so.
func TestDevNeedsAStateFolder(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", "")
	t.Setenv("HOME", "")
	dir := t.TempDir()
	if said := refusedDev(t, dir, "dev", "--port", "0"); !strings.Contains(said, "set HOME or XDG_STATE_HOME, or use --temporary") {
		t.Errorf("it says %s", said)
	}
	startDev(t, dir, "--port", "0", "--temporary").interrupt()
}
