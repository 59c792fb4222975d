package webhook_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/espalier-dev/espalier/cmd/internal/webhook"
)

// upper converts objects by writing their version in upper case. It refuses those that say so.
type upper struct{}

func (upper) Convert(object []byte, version string) ([]byte, error) {
	if bytes.Contains(object, []byte("refused")) {
		return nil, errors.New("this object cannot be converted")
	}
	return bytes.ReplaceAll(object, []byte("/v1"), []byte("/"+version)), nil
}

func handler() *webhook.Handler {
	return webhook.NewHandler(map[webhook.Kind]webhook.Converter{{Group: "example.com", Kind: "Web"}: upper{}}, slog.New(slog.DiscardHandler))
}

func review(objects string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","request":{"uid":"a-b","desiredAPIVersion":"example.com/v2","objects":[` + objects + `]}}`
}

func TestReview(t *testing.T) {
	for _, c := range []struct{ name, objects, status, message, want string }{
		{"none", ``, "Success", "", ``},
		{"two", `{"apiVersion":"example.com/v1","kind":"Web"},{"apiVersion":"example.com/v1","kind":"Web","x":1}`, "Success", "",
			`{"apiVersion":"example.com/v2","kind":"Web"}{"apiVersion":"example.com/v2","kind":"Web","x":1}`},
		{"one is refused", `{"apiVersion":"example.com/v1","kind":"Web"},{"apiVersion":"example.com/v1","kind":"Web","refused":1}`, "Failure", "this object cannot be converted", ``},
		{"another kind", `{"apiVersion":"example.com/v1","kind":"Wep"}`, "Failure", `no CRD of kind "Wep" in group "example.com"`, ``},
		{"no object", `1`, "Failure", `objects[0] is no object`, ``},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer, err := handler().Review([]byte(review(c.objects)))
			if err != nil {
				t.Fatal(err)
			}
			var r apiextensions.ConversionReview
			if err := json.Unmarshal(answer, &r); err != nil {
				t.Fatal(err, string(answer))
			}
			var got strings.Builder
			for _, o := range r.Response.ConvertedObjects {
				got.Write(o.Raw)
			}
			if r.APIVersion != "apiextensions.k8s.io/v1" || r.Kind != "ConversionReview" || r.Response.UID != "a-b" ||
				r.Response.Result.Status != c.status || !strings.Contains(r.Response.Result.Message, c.message) || got.String() != c.want {
				t.Errorf("got %s", answer)
			}
		})
	}
	for _, body := range []string{``, `[]`, `{}`, `{"kind":"ConversionReview"}`, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1beta1","request":{}}`} {
		if _, err := handler().Review([]byte(body)); err == nil {
			t.Errorf("%s is accepted", body)
		}
	}
}

func FuzzReview(f *testing.F) {
	f.Add([]byte(review(`{"apiVersion":"example.com/v1","kind":"Web"}`)))
	f.Add([]byte(`{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"objects":{}}}`))
	h := handler()
	f.Fuzz(func(t *testing.T, body []byte) {
		answer, err := h.Review(body)
		if err == nil && !json.Valid(answer) {
			t.Fatalf("%q is answered by %s", body, answer)
		}
	})
}

// pair writes a certificate for 127.0.0.1 with a serial number.
func pair(t *testing.T, cert, key string, serial int64) *x509.CertPool {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "webhook"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	bytesOfKey, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "EC PRIVATE KEY", Bytes: bytesOfKey}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(parsed)
	return pool
}

func client(pool *x509.CertPool) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}}
}

func TestServe(t *testing.T) {
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	c := client(pair(t, cert, key, 1))
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- webhook.Serve(ctx, handler(), webhook.Options{Address: "127.0.0.1:0", CertFile: cert, KeyFile: key, Log: slog.New(slog.DiscardHandler), Delay: 200 * time.Millisecond},
			func(a net.Addr) { at <- "https://" + a.String() })
	}()
	url := <-at
	get := func(c *http.Client, path string) (int, string) {
		t.Helper()
		resp, err := c.Get(url + path)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/": 405, "/convert": 405, "/other": 404} {
		if code, body := get(c, path); code != want {
			t.Errorf("GET %s: %d %s, want %d", path, code, body, want)
		}
	}
	for _, path := range []string{"/", "/convert"} {
		resp, err := c.Post(url+path, "application/json", strings.NewReader(review(`{"apiVersion":"example.com/v1","kind":"Web"}`)))
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 || !strings.Contains(string(body), `"apiVersion":"example.com/v2"`) {
			t.Errorf("POST %s: %d %s", path, resp.StatusCode, body)
		}
	}
	resp, err := c.Post(url, "application/json", strings.NewReader("{"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 400 {
		t.Errorf("a broken review: %d", resp.StatusCode)
	}

	// A new certificate is used without a new start.
	again := client(pair(t, cert, key, 2))
	deadline := time.Now().Add(time.Minute)
	for {
		if code, _ := get(again, "/healthz"); code == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the new certificate is not used")
		}
		time.Sleep(50 * time.Millisecond)
	}

	// Requests are served for a while after the end has begun.
	stop()
	for {
		code, body := get(again, "/readyz")
		if code == http.StatusServiceUnavailable {
			break
		}
		if code == 0 {
			t.Fatalf("it ended without saying so: %s", body)
		}
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
}

// Clients that send slowly keep no others from conversion.
func TestSlowClients(t *testing.T) {
	h := handler()
	for range 20 {
		body, sending := io.Pipe()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
		}()
		if _, err := io.WriteString(sending, "{"); err != nil { // it is being read
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = sending.Close()
			<-ended
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(review(`{"apiVersion":"example.com/v1","kind":"Web"}`))))
	if !strings.Contains(w.Body.String(), `"apiVersion":"example.com/v2"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
