package server_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/version"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

func TestMain(m *testing.M) {
	// Tests that are parallel mostly wait: for files to be read again, for timeouts, for
	// other replicas. The default is one for each processor.
	if err := flag.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	etcdtest.Main(m)
}

// patience is how long a test waits for an expected event. It is long, since a busy
// machine can take many times as long; a test that passes does not wait for it.
const patience = 2 * time.Minute

// running is a server of a test.
type running struct {
	*server.Server
	url     string
	servers *certtest.CA // signs the server's certificate
	clients *certtest.CA // signs those of clients
	stop    func() error // and waits
}

// start runs a server on a free port with a prefix of its own in etcd, until
// the test ends.
func start(t *testing.T, change ...func(*server.Options)) *running {
	t.Helper()
	r := &running{servers: certtest.New(t, time.Hour), clients: certtest.New(t, time.Hour)}
	o := newOptions(t, r)
	for _, f := range change {
		f(o)
	}
	s, err := server.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	r.Server, r.url = s, "https://"+s.Address().String()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	r.stop = func() error {
		cancel()
		select {
		case err := <-done:
			done <- err
			return err
		case <-time.After(patience):
			t.Error("the server does not come to an end")
			return nil
		}
	}
	t.Cleanup(func() {
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
	r.await(t, "/readyz")
	return r
}

func newOptions(t *testing.T, r *running) *server.Options {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o := server.NewOptions()
	o.Serving.Listener = listener
	certificate, key := r.servers.Server(t)
	o.Serving.ServerCert.CertKey.CertFile = certtest.File(t, "server.crt", certificate)
	o.Serving.ServerCert.CertKey.KeyFile = certtest.File(t, "server.key", key)
	o.Identity.ClientCAFile = certtest.File(t, "clients.crt", r.clients.PEM())
	o.Serving.ServerCert.CertDirectory = t.TempDir()
	o.Etcd.StorageConfig.Transport.ServerList = []string{etcdtest.Endpoint(t)}
	o.Etcd.StorageConfig.Prefix = etcdtest.Prefix(t)
	o.Version = "v0.9.0+dirty"
	return o
}

// await waits until a path answers 200 to an unauthenticated client.
func (r *running) await(t *testing.T, path string) {
	t.Helper()
	deadline := time.Now().Add(patience)
	client := r.stranger(t)
	for {
		code, body := get(t, client, r.url+path)
		if code == http.StatusOK {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// stranger is a client without a certificate.
func (r *running) stranger(t *testing.T) *http.Client {
	t.Helper()
	return r.client(t, nil)
}

// member is a client of the given groups.
func (r *running) member(t *testing.T, groups ...string) *http.Client {
	t.Helper()
	certificate, key := r.clients.Client(t, "alice", time.Hour, groups...)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return r.client(t, []tls.Certificate{pair})
}

func (r *running) client(t *testing.T, certificates []tls.Certificate) *http.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AddCert(r.servers.Certificate)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, Certificates: certificates}, ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Whom no role is given may find out what there is, and nothing else.
func TestWhoIsLetIn(t *testing.T) {
	r := start(t)
	stranger, other, member := r.stranger(t), r.member(t, "others"), r.member(t, "system:masters")
	for _, test := range []struct {
		path                    string
		stranger, other, member int
	}{
		{"/livez", 200, 200, 200},
		{"/readyz", 200, 200, 200},
		{"/healthz", 200, 200, 200},
		{"/readyz/etcd", 401, 403, 200},
		{"/version", 401, 200, 200},
		{"/metrics", 401, 403, 200},
		{"/", 401, 403, 200},
		{"/nonsense", 401, 403, 404},
		{"/apis", 401, 200, 200},
		{"/api/v1/namespaces", 401, 403, 200},
		{"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", 401, 403, 200},
		{"/openapi/v2", 401, 200, 200},
		{"/openapi/v3", 401, 200, 200},
		{"/debug/pprof/", 401, 403, 404},
	} {
		for _, who := range []struct {
			name   string
			client *http.Client
			want   int
		}{{"stranger", stranger, test.stranger}, {"other", other, test.other}, {"member", member, test.member}} {
			if code, body := get(t, who.client, r.url+test.path); code != who.want {
				t.Errorf("%s for a %s: %d, not %d: %.300s", test.path, who.name, code, who.want, body)
			}
		}
	}
	if _, body := get(t, other, r.url+"/metrics"); !strings.Contains(body, `User \"alice\" cannot get path \"/metrics\"`) {
		t.Errorf("the refusal does not say why: %s", body)
	}
}

func TestForeignCertificates(t *testing.T) {
	r := start(t)
	forged := &running{servers: r.servers, clients: certtest.New(t, time.Hour), url: r.url}
	if code, body := get(t, forged.member(t, "system:masters"), r.url+"/version"); code != http.StatusUnauthorized {
		t.Errorf("a certificate of a foreign authority: %d %s", code, body)
	}
	certificate, key := r.clients.Client(t, "alice", -time.Minute, "system:masters")
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := get(t, r.client(t, []tls.Certificate{pair}), r.url+"/version"); code != http.StatusUnauthorized {
		t.Errorf("an expired certificate: %d %s", code, body)
	}
	if code, body := get(t, r.stranger(t), strings.Replace(r.url, "https", "http", 1)+"/livez"); code != http.StatusBadRequest {
		t.Errorf("without TLS: %d %s", code, body)
	}
}

func TestImpersonationIsNotIgnored(t *testing.T) {
	r := start(t)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Impersonate-User", "bob")
	resp, err := r.member(t, "system:masters").Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("as bob, who is in no group: %s", resp.Status)
	}
}

func TestVersion(t *testing.T) {
	r := start(t)
	_, body := get(t, r.member(t, "system:masters"), r.url+"/version")
	var info version.Info
	if err := json.Unmarshal([]byte(body), &info); err != nil {
		t.Fatal(err)
	}
	if info.Major != "1" || info.Minor != "37" || !strings.HasPrefix(info.GitVersion, "v1.37.") || !strings.HasSuffix(info.GitVersion, "+espalier.0.9.0-dirty") {
		t.Errorf("got %s", body)
	}
}

func TestProfilingOnDemand(t *testing.T) {
	r := start(t, func(o *server.Options) { o.Feature.EnableProfiling = true })
	if code, _ := get(t, r.member(t, "system:masters"), r.url+"/debug/pprof/"); code != http.StatusOK {
		t.Errorf("a member: %d", code)
	}
	if code, _ := get(t, r.stranger(t), r.url+"/debug/pprof/"); code != http.StatusUnauthorized {
		t.Errorf("a stranger: %d", code)
	}
}
