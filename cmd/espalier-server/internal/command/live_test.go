//go:build unix

package command

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// liveCommands are those of scripts about a server that runs:
//
//	serve SETTING...   starts an etcd and espalier serve, waits until it is ready, and has KUBECONFIG name it, for its
//	                   administrator. What it has printed until then is in serve.log.
//	user EXPIRES       has KUBECONFIG name a user whose certificate expires in this time
//
// They need kubectl, of .bin or of the path, and stop the script without it.
func liveCommands(t *testing.T) map[string]func(*testscript.TestScript, bool, []string) {
	var servers sync.Map // by script: several run at a time
	return map[string]func(*testscript.TestScript, bool, []string){
		"serve": func(ts *testscript.TestScript, _ bool, settings []string) {
			usesKubectl(t, ts)
			s := startServe(t, settings...)
			s.await(t, "introduced", func() bool {
				return strings.Contains(s.log.String(), "doctor looks for") || strings.Contains(s.log.String(), `"Summary"`)
			})
			ts.Check(os.WriteFile(ts.MkAbs("serve.log"), []byte(s.log.String()), 0o600))
			servers.Store(ts, s)
			ts.Setenv("SERVER", s.url)
			s.kubeconfig(t, ts, 300*24*time.Hour)
		},
		"user": func(ts *testscript.TestScript, _ bool, args []string) {
			lifetime, err := time.ParseDuration(args[0])
			ts.Check(err)
			s, _ := servers.Load(ts)
			s.(*served).kubeconfig(t, ts, lifetime)
		},
	}
}

// usesKubectl puts kubectl on the path of a script.
func usesKubectl(t *testing.T, ts *testscript.TestScript) {
	kubectl, err := filepath.Abs("../../../../.bin/kubectl")
	ts.Check(err)
	if _, err := os.Stat(kubectl); err != nil {
		if kubectl, err = exec.LookPath("kubectl"); err != nil {
			t.Skip("kubectl is neither in .bin nor in the path: make tools")
		}
	}
	ts.Setenv("PATH", filepath.Dir(kubectl)+string(os.PathListSeparator)+ts.Getenv("PATH"))
}

// kubeconfig writes a kubeconfig for an administrator whose certificate is valid for a time.
func (s *served) kubeconfig(t *testing.T, ts *testscript.TestScript, lifetime time.Duration) {
	certificate, key := s.ca.Client(t, "admin", lifetime, "system:masters")
	for name, data := range map[string][]byte{"ca.crt": s.ca.PEM(), "admin.crt": certificate, "admin.key": key, "kubeconfig": fmt.Appendf(nil, `apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority: ca.crt}}]
users: [{name: admin, user: {client-certificate: admin.crt, client-key: admin.key}}]
contexts: [{name: test, context: {cluster: test, user: admin}}]
current-context: test
`, s.url)} {
		ts.Check(os.WriteFile(ts.MkAbs(name), data, 0o600))
	}
	ts.Setenv("KUBECONFIG", ts.MkAbs("kubeconfig"))
}
