package token

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/klog/v2"
)

const (
	// ConfigurationPath is the path of the OpenID discovery document.
	ConfigurationPath = "/.well-known/openid-configuration"
	// KeysPath is where the keys are.
	KeysPath = "/openid/v1/jwks"
)

// A Mux takes handlers for paths: http.ServeMux, or that of a server.
type Mux interface {
	Handle(path string, handler http.Handler)
}

// Install serves the OpenID documents with which other servers verify our tokens. OpenID
// requires an https URL as issuer: without one, Install logs that it does not serve them.
func (i *Issuer) Install(mux Mux) {
	issuer := i.options.Issuers[0]
	if err := discoverable(issuer, i.options.JWKSURI); err != nil {
		klog.InfoS("Not serving the OpenID documents: other verifiers cannot check service account tokens; set --service-account-issuer to an https URL", "reason", err.Error())
		return
	}
	mux.Handle(ConfigurationPath, document("application/json", func() ([]byte, error) {
		return json.Marshal(configuration{
			Issuer: issuer, KeysURI: i.options.JWKSURI,
			ResponseTypes: []string{"id_token"}, SubjectTypes: []string{"public"},
			Algorithms: i.options.Keys.current.Load().algorithms,
		})
	}))
	mux.Handle(KeysPath, document("application/jwk-set+json", func() ([]byte, error) {
		return i.options.Keys.current.Load().document, nil
	}))
}

// configuration is what OpenID asks for, as far as it is about verifying tokens.
type configuration struct {
	Issuer        string   `json:"issuer"`
	KeysURI       string   `json:"jwks_uri"`
	ResponseTypes []string `json:"response_types_supported"`
	SubjectTypes  []string `json:"subject_types_supported"`
	Algorithms    []string `json:"id_token_signing_alg_values_supported"`
}

// discoverable returns why an issuer cannot have OpenID documents.
func discoverable(issuer, keys string) error {
	u, err := url.Parse(issuer)
	switch {
	case err != nil:
		return err
	case u.Scheme != "https":
		return fmt.Errorf("issuer URL must use https scheme, got: %s", issuer)
	case u.RawQuery != "":
		return fmt.Errorf("issuer URL may not include a query, got: %s", issuer)
	case u.Fragment != "":
		return fmt.Errorf("issuer URL may not include a fragment, got: %s", issuer)
	}
	if u, err := url.Parse(keys); err != nil || u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("the URI of the keys must be an https URL, got: %q", keys)
	}
	return nil
}

// document serves JSON that clients may cache for an hour. So a key must be published an
// hour before it signs.
func document(contentType string, content func() ([]byte, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Method != http.MethodGet && req.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "405: Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		data, err := content()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", contentType)
		w.Header().Set("Cache-Control", "public, max-age=3600")
		_, _ = w.Write(data)
	})
}
