package launch

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// A Kind says whose server a binary is: they differ in what they must be told.
type Kind int

const (
	// Espalier is ours: `espalier serve`.
	Espalier Kind = iota
	// Upstream is k8s.io/apiextensions-apiserver's standalone server.
	Upstream
)

// names are what commands call the servers.
var names = map[string]Kind{"espalier": Espalier, "upstream": Upstream}

// Named returns the kind of server that is called name.
func Named(name string) (Kind, error) {
	kind, ok := names[name]
	if !ok {
		return 0, fmt.Errorf("there is no server %q: espalier and upstream there are", name)
	}
	return kind, nil
}

// Program returns the path of the server's program: upstream's as `make tools` has built it, ours as it is now, built into dir.
func (k Kind) Program(ctx context.Context, dir string) (string, error) {
	if k == Upstream {
		return Tool("upstream")
	}
	return Build(ctx, dir)
}

// A Spec says which server to start on which etcd.
type Spec struct {
	Kind   Kind
	Binary string
	Etcd   string   // URL
	Prefix string   // of the keys in etcd
	Flags  []string // further flags; the last one of a name counts
	// Compatible has ours do as upstream's does: objects are in whatever namespace they say, and a definition takes its objects with it.
	Compatible bool
	// Namespaces are made once the server is ready. Upstream's has no namespaces: there objects are in what they say.
	Namespaces []string
}

// A Server is a running API server.
type Server struct {
	*Process
	URL        string
	Config     *rest.Config // an administrator's, without limits of rate
	Kubeconfig string       // file with the same
	authority  *Authority
}

// StartServer runs a server and waits until it is ready.
func StartServer(ctx context.Context, spec Spec) (*Server, error) {
	dir, err := os.MkdirTemp("", "espalier-server-")
	if err != nil {
		return nil, err
	}
	s, err := startIn(ctx, dir, spec)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func startIn(ctx context.Context, dir string, spec Spec) (*Server, error) {
	signer, err := NewAuthority()
	if err != nil {
		return nil, err
	}
	pair, err := signer.Server("127.0.0.1", "localhost")
	if err != nil {
		return nil, err
	}
	if err := pair.Save(dir, "server"); err != nil {
		return nil, err
	}
	ca := filepath.Join(dir, "ca.crt")
	if err := os.WriteFile(ca, signer.CA, 0o600); err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	s := &Server{URL: fmt.Sprintf("https://127.0.0.1:%d", port), authority: signer}
	if s.Config, err = s.Client("admin", "system:masters"); err != nil {
		return nil, err
	}
	s.Kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(s.Kubeconfig, s.Config); err != nil {
		return nil, err
	}
	nowhere := filepath.Join(dir, "nowhere")
	if err := writeKubeconfig(nowhere, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		return nil, err
	}
	argv := append(command(spec, nowhere),
		"--etcd-servers="+spec.Etcd, "--etcd-prefix="+spec.Prefix,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+dir,
		"--tls-cert-file="+filepath.Join(dir, "server.crt"), "--tls-private-key-file="+filepath.Join(dir, "server.key"),
		"--client-ca-file="+ca)
	if s.Process, err = start(ctx, dir, "server", append(argv, spec.Flags...)...); err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		s.Stop()
		return nil, err
	}
	defer client.CloseIdleConnections()
	// Upstream's /readyz waits for Services of the cluster that it has none of.
	ready := "/readyz"
	if spec.Kind == Upstream {
		ready = "/healthz"
	}
	if err := s.await(ctx, 2*time.Minute, func(ctx context.Context) error { return ask(ctx, client, s.URL+ready) }); err != nil {
		s.Stop()
		return nil, err
	}
	if spec.Kind == Espalier {
		if err := s.makeNamespaces(ctx, client, spec.Namespaces); err != nil {
			s.Stop()
			return nil, err
		}
	}
	return s, nil
}

func (s *Server) makeNamespaces(ctx context.Context, client *http.Client, names []string) error {
	for _, name := range names {
		body := fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/api/v1/namespaces", strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusConflict {
			return fmt.Errorf("the namespace %s could not be made: %s", name, resp.Status)
		}
	}
	return nil
}

// command is the program with what only its kind needs. Upstream's server delegates questions of rights to another cluster: it is
// given a kubeconfig that leads nowhere, and no plugin that would ask.
func command(spec Spec, nowhere string) []string {
	if spec.Kind == Espalier {
		argv := []string{spec.Binary, "serve"}
		if spec.Compatible {
			argv = append(argv, "--disable-admission-plugins=NamespaceLifecycle", "--protect-instances=false")
		}
		return argv
	}
	return []string{spec.Binary,
		"--authentication-skip-lookup", "--authentication-kubeconfig=" + nowhere,
		"--authorization-kubeconfig=" + nowhere, "--kubeconfig=" + nowhere,
		"--enable-priority-and-fairness=false", "--runtime-config=api/all=true",
		"--disable-admission-plugins=" + strings.Join([]string{"NamespaceLifecycle", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook",
			"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}, ","),
	}
}

// Client returns the configuration of a client with a new certificate for user.
func (s *Server) Client(user string, groups ...string) (*rest.Config, error) {
	pair, err := s.authority.Client(user, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            s.URL,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.authority.CA, CertData: pair.Cert, KeyData: pair.Key},
	}, nil
}

// HTTP returns a client for raw requests.
func (s *Server) HTTP() (*http.Client, error) { return rest.HTTPClientFor(s.Config) }

func writeKubeconfig(file string, c *rest.Config) error {
	config := clientcmdapi.NewConfig()
	config.Clusters["server"] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: c.CertData, ClientKeyData: c.KeyData}
	config.Contexts["default"] = &clientcmdapi.Context{Cluster: "server", AuthInfo: "admin"}
	config.CurrentContext = "default"
	return clientcmd.WriteToFile(*config, file)
}
