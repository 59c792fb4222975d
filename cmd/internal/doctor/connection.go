package doctor

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

const (
	connectTime = 10 * time.Second
	// soon is when a certificate is to be renewed. Certificates that live shorter count with a third of their life.
	soon = 30 * 24 * time.Hour
	// Tokens and certificates are of a time: a clock that is wrong by more makes requests fail.
	skewWarning, skewError = 5 * time.Second, time.Minute
)

// kubeconfig is what is read of a kubeconfig, with files in it.
type kubeconfig struct {
	Clusters []struct {
		Cluster struct {
			Server     string `json:"server"`
			CA         []byte `json:"certificate-authority-data"`
			ServerName string `json:"tls-server-name"`
			Insecure   bool   `json:"insecure-skip-tls-verify"`
			Proxy      string `json:"proxy-url"`
		} `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		User struct {
			Certificate []byte `json:"client-certificate-data"`
			Token       string `json:"token"`
		} `json:"user"`
	} `json:"users"`
}

// connection looks at what the kubeconfig has, and at the server as anyone sees it. It reports whether the server answers.
func (e *examination) connection(ctx context.Context) (reached bool, err error) {
	text, err := cluster.Run(ctx, e.from, "", "config", "view", "--raw", "--minify", "--flatten", "-o", "json")
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig failed: %w", err)
	}
	var config kubeconfig
	if err := json.Unmarshal(text, &config); err != nil || len(config.Clusters) != 1 {
		return false, errors.New("reading the kubeconfig failed: it does not name one server; check the current context with 'kubectl config get-contexts'")
	}
	to := config.Clusters[0].Cluster
	e.report.Server = plain(to.Server)
	for _, u := range config.Users {
		e.credentials(u.User.Certificate, u.User.Token)
	}
	u, err := url.Parse(to.Server)
	if err != nil {
		return false, fmt.Errorf("reading the kubeconfig failed: the server %q is no URL", to.Server)
	}
	if u.Scheme != "https" {
		e.add(Finding{Check: "connection-plain", Severity: finding.Error, Where: to.Server, Message: "the kubeconfig names a server without TLS",
			Why: "Anyone on the network can read requests, and the credentials in them.", Fix: "use the https address of the server"})
		return true, nil
	}
	if to.Insecure {
		e.add(Finding{Check: "connection-unverified", Severity: finding.Warning, Where: to.Server, Message: "the kubeconfig has insecure-skip-tls-verify",
			Why: "Clients accept any server at this address, and send it their credentials.", Fix: "remove it, and set certificate-authority to the CA of the server"})
	}
	proxy := http.ProxyFromEnvironment
	if to.Proxy != "" {
		at, err := url.Parse(to.Proxy)
		if err != nil {
			return false, fmt.Errorf("reading the kubeconfig failed: proxy-url is no URL: %w", err)
		}
		proxy = http.ProxyURL(at)
	}
	// The certificate is verified below, so that what is wrong with it can be told.
	client := &http.Client{Timeout: connectTime, Transport: &http.Transport{
		Proxy: proxy, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, ServerName: to.ServerName}, //nolint:gosec // no credentials are sent
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(to.Server, "/")+"/version", nil)
	if err != nil {
		return false, err
	}
	before := time.Now()
	resp, err := client.Do(req)
	if err != nil {
		e.add(Finding{Check: "connection", Severity: finding.Error, Where: to.Server, Message: "the server cannot be reached: " + err.Error(),
			Why: "No request of this kubeconfig succeeds.", Fix: "check that the server runs, the address in the kubeconfig, and the network between"})
		return false, nil
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20))
	e.clock(to.Server, resp.Header.Get("Date"), before, time.Now())
	if resp.TLS != nil {
		e.presented(to.Server, resp.TLS.PeerCertificates, to.CA, cmp.Or(to.ServerName, u.Hostname()), to.Insecure)
	}
	e.checked("connection")
	return true, nil
}

// credentials looks at when those of a user expire.
func (e *examination) credentials(certificate []byte, token string) {
	where := "the user of the kubeconfig"
	for _, c := range certificates(certificate)[:min(1, len(certificates(certificate)))] {
		e.expiry("client-certificate", where, "the client certificate of "+c.Subject.CommonName, c, finding.Error, "issue a new client certificate, and put it into the kubeconfig")
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return
	}
	var claims struct {
		Expires int64 `json:"exp"`
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Expires == 0 {
		return
	}
	if at := time.Unix(claims.Expires, 0); e.now.After(at) {
		e.add(Finding{Check: "token-expired", Severity: finding.Error, Where: where, Message: "the token expired at " + stamp(at),
			Why: "The server refuses all requests with it.", Fix: "get a new token: kubectl create token, or espalier tenant kubeconfig"})
	}
}

// clock compares the clocks of the server and of this machine.
func (e *examination) clock(where, date string, before, after time.Time) {
	at, err := http.ParseTime(date)
	if err != nil {
		e.skip("clock", "the server sends no date")
		return
	}
	took := after.Sub(before)
	skew := at.Add(time.Second / 2).Sub(before.Add(took / 2)) // dates have whole seconds
	severity := finding.Warning
	switch off := skew.Abs() - took/2 - time.Second/2; {
	case off < skewWarning:
		return
	case off >= skewError:
		severity = finding.Error
	}
	way := "ahead of"
	if skew < 0 {
		way = "behind"
	}
	e.add(Finding{Check: "clock", Severity: severity, Where: where, Message: fmt.Sprintf("the clock of the server is %v %s that of this machine", skew.Abs().Round(time.Second), way),
		Why: "Certificates, tokens and leases are valid for a time: with a wrong clock they are refused, or used for too long.", Fix: "synchronize both clocks (chronyc tracking, timedatectl); this does not say which one is wrong"})
}

// presented looks at the certificates that a server presents.
func (e *examination) presented(where string, chain []*x509.Certificate, ca []byte, name string, unverified bool) {
	if len(chain) == 0 {
		return
	}
	for i, c := range chain {
		what := "the certificate of the server"
		if i > 0 {
			what = "the CA certificate " + c.Subject.CommonName + " that the server presents"
		}
		e.expiry("server-certificate", where, what, c, finding.Error, "renew it (--tls-cert-file); an Espalier server reads the file again by itself")
	}
	if err := verify(chain, ca, name); err != nil && !unverified && !e.now.After(chain[0].NotAfter) {
		e.add(Finding{Check: "server-certificate-untrusted", Severity: finding.Error, Where: where, Message: "the certificate of the server is not accepted: " + err.Error(),
			Why: "kubectl and other clients refuse to connect.", Fix: "set certificate-authority in the kubeconfig to the CA of the server, or give the server a certificate for this address"})
	}
	for _, c := range certificates(ca) {
		e.expiry("ca-certificate", "the kubeconfig", "the CA certificate "+c.Subject.CommonName, c, finding.Error, "put the new CA of the server into the kubeconfig")
	}
}

// verify verifies a chain of certificates with CAs in PEM, or with those of the system.
func verify(chain []*x509.Certificate, ca []byte, name string) error {
	o := x509.VerifyOptions{DNSName: name, Intermediates: x509.NewCertPool()}
	if len(ca) > 0 {
		o.Roots = x509.NewCertPool()
		if !o.Roots.AppendCertsFromPEM(ca) {
			return errors.New("the CA has no certificate in PEM")
		}
	}
	for _, c := range chain[1:] {
		o.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(o)
	return err
}

// expiry looks at when a certificate expires.
func (e *examination) expiry(check, where, what string, c *x509.Certificate, expired finding.Severity, fix string) {
	f := Finding{Check: check + "-expires", Severity: finding.Warning, Where: where, Fix: fix, Why: "When it has expired, connections that need it fail."}
	left := c.NotAfter.Sub(e.now)
	switch {
	case e.now.Before(c.NotBefore):
		f.Check, f.Severity, f.Message = check+"-early", expired, what+" is not valid before "+stamp(c.NotBefore)
		f.Why = "It was issued for a later time, or a clock is wrong."
	case left <= 0:
		f.Check, f.Severity, f.Message = check+"-expired", expired, what+" expired at "+stamp(c.NotAfter)
		f.Why = "Connections that need it fail."
	case left <= min(soon, c.NotAfter.Sub(c.NotBefore)/3):
		f.Message = fmt.Sprintf("%s expires in %s, at %s", what, about(left), stamp(c.NotAfter))
	default:
		return
	}
	e.add(f)
}

// certificates parses what is in PEM; what it does not understand is left out.
func certificates(text []byte) (all []*x509.Certificate) {
	for len(all) < 1000 {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if c, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, c)
		}
	}
	return all
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// about is a duration in the largest unit that it has two of.
func about(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= 2*time.Hour:
		return fmt.Sprintf("%d hours", d/time.Hour)
	case d >= 2*time.Minute:
		return fmt.Sprintf("%d minutes", d/time.Minute)
	}
	return fmt.Sprintf("%d seconds", d/time.Second)
}
