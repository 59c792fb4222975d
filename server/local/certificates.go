package local

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/ca"
)

const (
	// validity is that of a CA, and of all that it signs.
	validity = 10 * 365 * 24 * time.Hour
	// renewal is how long before its end a CA is replaced when a plane starts.
	renewal = 30 * 24 * time.Hour
	// Administrator is who Config and the kubeconfig are for: a member of
	// system:masters.
	Administrator = "admin"
)

// certify makes certificates for the server and the administrator.
func (p *ControlPlane) certify(s *server.Options, o Options, listening net.Addr) error {
	pki := filepath.Join(p.dir, "pki")
	if err := os.MkdirAll(pki, 0o700); err != nil {
		return err
	}
	var err error
	if p.authority, err = loadOrMake(pki); err != nil {
		return err
	}
	host, port, err := reach(listening)
	if err != nil {
		return err
	}
	pair, err := p.authority.Server(append([]string{host, "localhost", "127.0.0.1", "::1"}, o.Hosts...)...)
	if err != nil {
		return err
	}
	if err := pair.Save(pki, "server"); err != nil {
		return err
	}
	s.Serving.ServerCert.CertDirectory = pki
	s.Serving.ServerCert.CertKey.CertFile = filepath.Join(pki, "server.crt")
	s.Serving.ServerCert.CertKey.KeyFile = filepath.Join(pki, "server.key")
	s.Identity.ClientCAFile = filepath.Join(pki, "ca.crt")
	s.RootCAFile = s.Identity.ClientCAFile
	s.Signing.CertFile, s.Signing.KeyFile = s.Identity.ClientCAFile, filepath.Join(pki, "ca.key")
	p.config = &rest.Config{Host: "https://" + net.JoinHostPort(host, port)}
	p.config, err = p.User(Administrator, user.SystemPrivilegedGroup)
	return err
}

// loadOrMake returns the CA of a folder. It replaces a CA that is about to expire, and all
// certificates that the old CA signed.
func loadOrMake(pki string) (*ca.CA, error) {
	a, err := ca.Load(pki)
	switch {
	case err == nil && time.Until(a.Expires()) > renewal:
		return a, nil
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return nil, err
	}
	if a, err = ca.New("espalier", validity); err != nil {
		return nil, err
	}
	return a, a.Save(pki)
}

// reach is how clients on this machine reach a listener.
func reach(address net.Addr) (host, port string, err error) {
	if host, port, err = net.SplitHostPort(address.String()); err != nil {
		return "", "", err
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return host, port, nil
}

// User returns the configuration of a client with a new certificate, for a user
// in these groups. What it may do is what roles say.
func (p *ControlPlane) User(name string, groups ...string) (*rest.Config, error) {
	pair, err := p.authority.Client(name, groups...)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            p.config.Host,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.authority.CA, CertData: pair.Cert, KeyData: pair.Key},
	}, nil
}

// Kubeconfig returns a file for kubectl that does as a client of a configuration.
func Kubeconfig(c *rest.Config) ([]byte, error) {
	c = rest.CopyConfig(c)
	if err := rest.LoadTLSFiles(c); err != nil {
		return nil, err
	}
	const name = "espalier"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: c.Host, CertificateAuthorityData: c.CAData, InsecureSkipTLSVerify: c.Insecure, TLSServerName: c.ServerName}
	config.AuthInfos["user"] = &clientcmdapi.AuthInfo{
		ClientCertificateData: c.CertData, ClientKeyData: c.KeyData, Token: c.BearerToken, TokenFile: c.BearerTokenFile, Username: c.Username, Password: c.Password,
		Impersonate: c.Impersonate.UserName, ImpersonateGroups: c.Impersonate.Groups, Exec: c.ExecProvider,
	}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: "user"}
	config.CurrentContext = name
	return clientcmd.Write(*config)
}
