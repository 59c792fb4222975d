package launch

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/keyutil"
)

// A Kind is an implementation of the API server. Each needs other flags.
type Kind int

const (
	// Espalier is ours: `espalier serve`.
	Espalier Kind = iota
	// Upstream is k8s.io/apiextensions-apiserver's standalone server.
	Upstream
	// Kubernetes is kube-apiserver, as conformance/kubernetes pins it.
	Kubernetes
)

// names are what commands call the servers.
var names = map[string]Kind{"espalier": Espalier, "upstream": Upstream, "kube-apiserver": Kubernetes}

// String is the name of the kind.
func (k Kind) String() string {
	for name, kind := range names {
		if kind == k {
			return name
		}
	}
	return fmt.Sprintf("Kind(%d)", int(k))
}

// Named returns the kind of server that is called name.
func Named(name string) (Kind, error) {
	kind, ok := names[name]
	if !ok {
		return 0, fmt.Errorf("unknown server %q: use espalier, upstream or kube-apiserver", name)
	}
	return kind, nil
}

// Program returns the path of the server's program: upstream's as `make tools` has built it, kube-apiserver as `make kube-apiserver`
// has, ours as it is now, built into dir.
func (k Kind) Program(ctx context.Context, dir string) (string, error) {
	switch k {
	case Upstream:
		return Tool("upstream")
	case Kubernetes:
		return Tool("kube-apiserver")
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
	// Compatible has ours do as upstream's does: an object's namespace need not exist, and deleting a CRD deletes its objects.
	Compatible bool
	// Accounts has kube-apiserver ask for the service account of a pod, as it does by default: the caller creates the accounts.
	Accounts bool
	// Namespaces are made once the server is ready. Upstream's has no namespace objects: an object's namespace need not exist there.
	Namespaces []string
	// Tenant, if it is not empty, has ours serve tenants, and is the name of one that is made: the Server is this tenant then.
	Tenant string
}

// A Server is a running API server.
type Server struct {
	*Process
	URL        string
	Config     *rest.Config // an administrator's, without limits of rate
	Kubeconfig string       // file with the same
	Kind       Kind
	Prefix     string // of the keys in etcd
	signer     *CA
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

// tokenKey is the key that signs the tokens of all servers of this process.
var tokenKey = sync.OnceValues(keyutil.MakeEllipticPrivateKeyPEM)

func startIn(ctx context.Context, dir string, spec Spec) (*Server, error) {
	signer, err := NewCA()
	if err != nil {
		return nil, err
	}
	port, err := FreePort()
	if err != nil {
		return nil, err
	}
	argv, err := spec.Arguments(dir, signer, port)
	if err != nil {
		return nil, err
	}
	s := &Server{URL: fmt.Sprintf("https://127.0.0.1:%d", port), Kind: spec.Kind, Prefix: spec.Prefix, signer: signer}
	if s.Config, err = s.Client("admin", "system:masters"); err != nil {
		return nil, err
	}
	s.Kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(s.Kubeconfig, s.Config); err != nil {
		return nil, err
	}
	if s.Process, err = Start(ctx, dir, "server", argv...); err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	if spec.Tenant != "" {
		if err := s.enter(ctx, spec.Tenant); err != nil {
			s.Stop()
			return nil, err
		}
	}
	if spec.Kind != Upstream {
		if err := s.makeNamespaces(ctx, spec.Namespaces); err != nil {
			s.Stop()
			return nil, err
		}
	}
	return s, nil
}

// readyTime is how long a server may take to be ready.
const readyTime = 2 * time.Minute

// ready waits until the server is.
func (s *Server) ready(ctx context.Context) error {
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	// Upstream's /readyz waits for Services of the cluster that it has none of.
	path := "/readyz"
	if s.Kind == Upstream {
		path = "/healthz"
	}
	return s.Await(ctx, readyTime, func(ctx context.Context) error { return Ask(ctx, client, s.URL+path) })
}

// Restart ends the server and starts it with the same command line: certificates, port and data stay.
func (s *Server) Restart(ctx context.Context) error {
	s.End()
	process, err := Start(ctx, s.Dir, "server", s.cmd.Args...)
	if err != nil {
		return err
	}
	s.Process = process
	return s.ready(ctx)
}

// Arguments returns the command line of the server on a port of 127.0.0.1. Certificates by signer and the other files that the server
// reads are written into dir.
func (spec Spec) Arguments(dir string, signer *CA, port int) ([]string, error) {
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
	// Replicas on one etcd must have the same key for tokens.
	key, err := tokenKey()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "sa.key"), key, 0o600); err != nil {
		return nil, err
	}
	nowhere := filepath.Join(dir, "nowhere")
	if err := writeKubeconfig(nowhere, &rest.Config{Host: "https://127.0.0.1:1"}); err != nil {
		return nil, err
	}
	program, err := command(spec, dir, nowhere)
	if err != nil {
		return nil, err
	}
	argv := append(program,
		"--etcd-servers="+spec.Etcd, "--etcd-prefix="+spec.Prefix,
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir="+dir,
		"--tls-cert-file="+filepath.Join(dir, "server.crt"), "--tls-private-key-file="+filepath.Join(dir, "server.key"),
		"--client-ca-file="+ca)
	return append(argv, spec.Flags...), nil
}

func (s *Server) makeNamespaces(ctx context.Context, names []string) error {
	client, err := s.HTTP()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
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
func command(spec Spec, dir, nowhere string) ([]string, error) {
	switch spec.Kind {
	case Kubernetes:
		return kubernetesCommand(spec, dir)
	case Upstream:
		return []string{spec.Binary,
			"--authentication-skip-lookup", "--authentication-kubeconfig=" + nowhere,
			"--authorization-kubeconfig=" + nowhere, "--kubeconfig=" + nowhere,
			"--enable-priority-and-fairness=false", "--runtime-config=api/all=true",
			"--disable-admission-plugins=" + strings.Join([]string{"NamespaceLifecycle", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook",
				"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"}, ","),
		}, nil
	}
	// Webhooks of tests are on this machine.
	argv := []string{spec.Binary, "serve", "--webhook-allowed-networks=127.0.0.1/32"}
	if spec.Tenant != "" {
		argv = append(argv, "--tenants")
	}
	if spec.Compatible {
		argv = append(argv, "--disable-admission-plugins=NamespaceLifecycle", "--protect-instances=false")
	}
	return argv, nil
}

// kubernetesCommand runs kube-apiserver with RBAC. Nothing creates service accounts here: kube-controller-manager would, so the
// plugin that waits for them is off, unless the caller creates them.
func kubernetesCommand(spec Spec, dir string) ([]string, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "service-accounts.key")
	text := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	argv := []string{spec.Binary,
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-signing-key-file=" + file, "--service-account-key-file=" + file,
		"--service-cluster-ip-range=10.0.0.0/24", "--authorization-mode=RBAC"}
	if !spec.Accounts {
		argv = append(argv, "--disable-admission-plugins=ServiceAccount")
	}
	return argv, nil
}

// Client returns the configuration of a client with a new certificate for user.
func (s *Server) Client(user string, groups ...string) (*rest.Config, error) {
	return s.ClientFor(pkix.Name{CommonName: user, Organization: groups}, x509.ExtKeyUsageClientAuth)
}

// ClientFor returns the configuration of a client with a new certificate for some uses, which need not be a client's.
func (s *Server) ClientFor(subject pkix.Name, uses ...x509.ExtKeyUsage) (*rest.Config, error) {
	pair, err := s.signer.Certificate(subject, uses...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            s.URL,
		QPS:             -1,
		TLSClientConfig: rest.TLSClientConfig{CAData: s.signer.CA, CertData: pair.Cert, KeyData: pair.Key},
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
