package doctor

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/espalier-dev/espalier/cmd/internal/cluster"
	"github.com/espalier-dev/espalier/finding"
)

const (
	dialTime = 3 * time.Second
	// maxDialed bounds the handshakes of an examination.
	maxDialed = 100
	// longTimeout is Kubernetes' default.
	longTimeout = 10
)

// rule says what a webhook matches.
type rule struct {
	Groups    []string `json:"apiGroups"`
	Resources []string `json:"resources"`
}

// admissionWebhook is one of them.
type admissionWebhook struct {
	Name     string       `json:"name"`
	Client   clientConfig `json:"clientConfig"`
	Policy   string       `json:"failurePolicy"`
	Timeout  int          `json:"timeoutSeconds"`
	Selector *struct {
		Labels      map[string]string `json:"matchLabels"`
		Expressions []any             `json:"matchExpressions"`
	} `json:"namespaceSelector"`
	Conditions []any  `json:"matchConditions"`
	Rules      []rule `json:"rules"`
}

// configuration is what is read of a webhook configuration.
type configuration struct {
	Metadata metadata           `json:"metadata"`
	Webhooks []admissionWebhook `json:"webhooks"`
}

// each calls a function with each object of a list. A server that does not have the resource has no objects.
func each[T any](ctx context.Context, e *examination, path string, call func(*T)) error {
	_, err := cluster.List(ctx, e.from, path, func(object []byte) error {
		var one T
		if err := json.Unmarshal(object, &one); err != nil {
			return err
		}
		call(&one)
		return nil
	})
	if cluster.Reason(err) == "NotFound" {
		return nil
	}
	return err
}

// webhooks looks at admission webhooks.
func (e *examination) webhooks(ctx context.Context) error {
	var dialing sync.WaitGroup
	defer dialing.Wait()
	calls := e.calls(ctx)
	dialed := 0
	one := func(kind string) func(*configuration) {
		return func(c *configuration) {
			for i := range c.Webhooks {
				w := &c.Webhooks[i]
				where := kind + " " + c.Metadata.Name + ", webhook " + w.Name
				e.webhook(where, w, calls[w.Name])
				if w.Client.URL != "" && dialed < maxDialed {
					dialed++
					dialing.Go(func() { e.dial(ctx, where, w, calls[w.Name]) })
				}
			}
		}
	}
	const group = "/apis/admissionregistration.k8s.io/v1/"
	return errors.Join(
		each(ctx, e, group+"validatingwebhookconfigurations", one("ValidatingWebhookConfiguration")),
		each(ctx, e, group+"mutatingwebhookconfigurations", one("MutatingWebhookConfiguration")),
	)
}

// severity is that of a webhook that fails, and what follows.
func (w *admissionWebhook) severity() (finding.Severity, string) {
	if w.Policy == "Ignore" {
		return finding.Warning, "requests pass without it"
	}
	return finding.Error, "all requests that it matches are refused"
}

// all reports whether a webhook matches all resources in all namespaces.
func (w *admissionWebhook) all() bool {
	return len(w.Conditions) == 0 && (w.Selector == nil || len(w.Selector.Labels)+len(w.Selector.Expressions) == 0) &&
		slices.ContainsFunc(w.Rules, func(r rule) bool {
			return slices.Contains(r.Groups, "*") && (slices.Contains(r.Resources, "*") || slices.Contains(r.Resources, "*/*"))
		})
}

// webhook looks at the configuration of a webhook. failed is how many calls have failed.
func (e *examination) webhook(where string, w *admissionWebhook, failed float64) {
	severity, what := w.severity()
	e.bundle(where, w.Client.CA, severity)
	if w.Policy != "Ignore" && w.Timeout > longTimeout {
		e.add(Finding{Check: "webhook-timeout", Severity: finding.Warning, Where: where, Message: fmt.Sprintf("timeoutSeconds is %d, and failurePolicy is Fail", w.Timeout),
			Why: "While the webhook does not answer, each request that it matches waits that long, and then fails.", Fix: "set timeoutSeconds to 5 or less"})
	}
	if w.Policy != "Ignore" && w.all() {
		e.add(Finding{Check: "webhook-matches-all", Severity: finding.Warning, Where: where, Message: "it matches all resources in all namespaces, and failurePolicy is Fail",
			Why: "While it does not answer, nothing can be changed, and so perhaps not what would repair it.", Fix: "narrow its rules, or exclude kube-system with a namespaceSelector"})
	}
	switch {
	case w.Client.Service != nil && e.metrics.ours:
		e.add(Finding{Check: "webhook-service", Severity: severity, Where: where, Message: "it is " + w.Client.String() + ", and an Espalier server does not route requests to Services; " + what,
			Why: "Calls fail.", Fix: "write an https URL into clientConfig.url, and allow its network with --webhook-allowed-networks"})
	case w.Client.URL == "" && failed > 0:
		e.add(Finding{Check: "webhook-fails", Severity: finding.Warning, Where: where, Message: fmt.Sprintf("%.0f calls have failed since the server started; %s", failed, what),
			Why: "It did not answer in time, or with an invalid response.", Fix: "check the webhook's server and its log"})
	}
}

// dial tries to connect to a webhook from this machine, and verifies its certificate as the server does. It sends no request.
func (e *examination) dial(ctx context.Context, where string, w *admissionWebhook, failed float64) {
	severity, what := w.severity()
	c := w.Client
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" {
		return // the server does not accept it
	}
	port := u.Port()
	if port == "" {
		port = "443"
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	// It is verified below.
	dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true, ServerName: u.Hostname()}} //nolint:gosec // nothing is sent
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		if failed == 0 {
			severity, what = finding.Warning, "the server may reach it all the same: its metrics count no failed calls"
		} else {
			what += fmt.Sprintf(" (%.0f calls of the server failed since it started)", failed)
		}
		e.add(Finding{Check: "webhook-unreachable", Severity: severity, Where: where, Message: "this machine cannot connect to " + u.Host + ": " + err.Error() + "; " + what,
			Why: "Nothing answers there, or the network between does not allow it.", Fix: "check that the webhook runs, and its URL; delete the configuration if the webhook was removed on purpose"})
		return
	}
	defer conn.Close()
	state, ok := conn.(*tls.Conn)
	if !ok {
		return
	}
	chain := state.ConnectionState().PeerCertificates
	if err := verify(chain, c.CA, u.Hostname()); err != nil {
		e.add(Finding{Check: "webhook-untrusted", Severity: severity, Where: where, Message: "the certificate of " + u.Host + " is not accepted: " + strings.TrimPrefix(err.Error(), "x509: ") + "; " + what,
			Why: "caBundle does not have the CA that signed it, or it is for another name, or it has expired.", Fix: "renew the certificate of the webhook, or put its CA into caBundle"})
		return
	}
	e.expiry("webhook-certificate", where, "the certificate of "+u.Host, chain[0], severity, "renew the certificate of the webhook")
}
