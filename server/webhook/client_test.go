package webhook

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/rest"
)

func open(t *testing.T, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// hookClient is what admission and conversion call a server with.
func hookClient(t *testing.T, c *Client, s *httptest.Server) *http.Client {
	t.Helper()
	manager, err := webhookutil.NewClientManager(nil)
	if err != nil {
		t.Fatal(err)
	}
	manager.SetAuthenticationInfoResolver(c.Anonymous())
	manager.SetServiceResolver(webhookutil.NewDefaultServiceResolver())
	client, err := manager.HookClient(webhookutil.ClientConfig{
		Name: "test", URL: s.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return client.Client
}

func server(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	return s
}

func post(ctx context.Context, t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(resp.Body)
	return string(text), errors.Join(err, resp.Body.Close())
}

var everywhere = Options{AllowedNetworks: Everywhere}

func TestDeniedNetwork(t *testing.T) {
	t.Parallel()
	called := false
	s := server(t, func(http.ResponseWriter, *http.Request) { called = true })
	_, port, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	client := hookClient(t, open(t, Options{}), s)
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		_, err := post(t.Context(), t, client, "https://"+host+":"+port)
		if err == nil || called || !strings.Contains(err.Error(), "--webhook-allowed-networks") {
			t.Errorf("%s: %v", host, err)
		}
	}
	if _, err := post(t.Context(), t, hookClient(t, open(t, Options{AllowedNetworks: []string{"127.0.0.0/8"}}), s), s.URL); err != nil || !called {
		t.Errorf("an allowed network: %v", err)
	}
}

// A name is not told where it leads.
func TestRefusalHidesTheAddress(t *testing.T) {
	t.Parallel()
	c := open(t, Options{})
	err := c.control("tcp4", "10.20.30.40:443", nil)
	if err == nil || strings.Contains(err.Error(), "10.20.30.40") || !strings.Contains(err.Error(), "private address") {
		t.Error(err)
	}
}

// The environment's proxy is not used: it would make the connections that the
// networks forbid.
func TestNoProxy(t *testing.T) {
	t.Parallel()
	config, err := open(t, Options{}).Anonymous().ClientConfigFor("example.com:443")
	if err != nil {
		t.Fatal(err)
	}
	if config.Proxy == nil {
		t.Fatal("the environment decides on the proxy")
	}
	if proxy, err := config.Proxy(httptest.NewRequest(http.MethodPost, "https://example.com", nil)); proxy != nil || err != nil {
		t.Errorf("proxy %v: %v", proxy, err)
	}
}

// A pod's own credentials are not sent to a host with the name of the API server.
func TestNoCredentialsOfTheCluster(t *testing.T) {
	t.Parallel()
	c := open(t, Options{})
	for _, host := range []string{"kubernetes.default.svc:443", "example.com:443"} {
		asked := ""
		inner := &recorder{asked: &asked}
		if _, err := c.Guard(inner).ClientConfigFor(host); err != nil {
			t.Fatal(err)
		}
		if asked == "kubernetes.default.svc:443" {
			t.Errorf("%s is looked up as %s", host, asked)
		}
	}
	asked := ""
	if _, err := c.Guard(&recorder{asked: &asked}).ClientConfigForService("kubernetes", "default", 443); err != nil || asked != "kubernetes.default.svc" {
		t.Errorf("the service is looked up as %q: %v", asked, err)
	}
	for _, get := range []func() (*rest.Config, error){
		func() (*rest.Config, error) { return c.Anonymous().ClientConfigFor("kubernetes.default.svc:443") },
		func() (*rest.Config, error) {
			return c.Anonymous().ClientConfigForService("kubernetes", "default", 443)
		},
	} {
		config, err := get()
		if err != nil || config.BearerToken != "" || config.BearerTokenFile != "" || config.Username != "" || config.CertFile != "" || len(config.CertData) > 0 || config.ExecProvider != nil {
			t.Errorf("%+v: %v", config, err)
		}
	}
}

func TestErrorsAreConcealed(t *testing.T) {
	t.Parallel()
	s := server(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Internal", "secret")
		http.Error(w, "secret", http.StatusForbidden)
	})
	text, err := post(t.Context(), t, hookClient(t, open(t, everywhere), s), s.URL)
	if err != nil || strings.Contains(text, "secret") || !strings.Contains(text, "log") {
		t.Errorf("%q: %v", text, err)
	}
}

func TestRedirect(t *testing.T) {
	t.Parallel()
	called := false
	other := server(t, func(http.ResponseWriter, *http.Request) { called = true })
	for _, code := range []int{301, 302, 303, 307, 308} {
		s := server(t, func(w http.ResponseWriter, req *http.Request) { http.Redirect(w, req, other.URL, code) })
		if _, err := post(t.Context(), t, hookClient(t, open(t, everywhere), s), s.URL); err == nil || called || !strings.Contains(err.Error(), "not followed") {
			t.Errorf("%d: %v", code, err)
		}
	}
}

func TestHeaderLimit(t *testing.T) {
	t.Parallel()
	s := server(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Long", strings.Repeat("x", 1<<20)) })
	if _, err := post(t.Context(), t, hookClient(t, open(t, everywhere), s), s.URL); err == nil {
		t.Error("a header of 1 MiB is read")
	}
}

// sized answers with as many bytes as the query says.
func sized(t *testing.T) *httptest.Server {
	block := bytes.Repeat([]byte("x"), 1<<20)
	return server(t, func(w http.ResponseWriter, req *http.Request) {
		var n int
		_, _ = fmt.Sscan(req.URL.Query().Get("mib"), &n)
		for range n {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
}

func TestAnswerLimit(t *testing.T) {
	t.Parallel()
	s := sized(t)
	client := hookClient(t, open(t, everywhere), s)
	for _, c := range []struct {
		ctx  context.Context
		mib  int
		good bool
	}{
		{t.Context(), 8, true}, {t.Context(), 9, false}, {Limited(t.Context(), 2<<20), 2, true}, {Limited(t.Context(), 2<<20), 3, false}, {Limited(t.Context(), 20<<20), 20, true},
	} {
		text, err := post(c.ctx, t, client, fmt.Sprintf("%s?mib=%d", s.URL, c.mib))
		if (err == nil) != c.good || c.good && len(text) != c.mib<<20 {
			t.Errorf("%d MiB: %d bytes: %v", c.mib, len(text), err)
		}
	}
}

// Answers that requests still need count, independent of the request that caused them.
func TestAnswersInFlight(t *testing.T) {
	t.Parallel()
	c := open(t, everywhere)
	first, second := sized(t), sized(t)
	held, release := Hold(t.Context())
	if nested, inner := Hold(held); nested != held {
		t.Error("a hold within a hold")
	} else {
		inner()
	}
	get := func(ctx context.Context, s *httptest.Server) (err error) {
		_, err = post(ctx, t, hookClient(t, c, s), s.URL+"?mib=8")
		return err
	}
	for n := 0; ; n++ {
		err := get(held, first)
		if err == nil {
			continue
		}
		if !errors.Is(err, ErrBusy) || n != perWebhook/(8<<20) && n != perWebhook/(8<<20)-1 {
			t.Errorf("after %d answers: %v", n, err)
		}
		break
	}
	if err := get(t.Context(), second); err != nil {
		t.Errorf("another webhook: %v", err)
	}
	if _, err := post(t.Context(), t, hookClient(t, c, first), first.URL+"?mib=0"); err != nil {
		t.Errorf("a small answer of the same webhook: %v", err)
	}
	for range 2 * inFlight / (8 << 20) {
		if err := get(t.Context(), second); err != nil {
			t.Fatalf("answers that nobody holds count: %v", err)
		}
	}
	release()
	if err := get(t.Context(), first); err != nil {
		t.Errorf("after the release: %v", err)
	}
	if c.answers.total != 0 || len(c.answers.hosts) != 0 {
		t.Errorf("%d bytes are still counted, of %v", c.answers.total, c.answers.hosts)
	}
}
