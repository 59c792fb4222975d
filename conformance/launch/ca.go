package launch

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/espalier-dev/espalier/server/auth/ca"
)

// A CA signs the certificates of one server and of its clients.
type CA = ca.CA

// NewCA makes a CA.
func NewCA() (*CA, error) {
	return ca.New("espalier conformance", 48*time.Hour)
}

// StartWebhook serves a handler by TLS on this machine, and returns the certificate of the CA that signed the server's.
func StartWebhook(handler http.Handler) (server *httptest.Server, ca []byte, err error) {
	signer, err := NewCA()
	if err != nil {
		return nil, nil, err
	}
	pair, err := signer.Server("127.0.0.1", "localhost")
	if err != nil {
		return nil, nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		return nil, nil, err
	}
	server = httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	return server, signer.CA, nil
}
