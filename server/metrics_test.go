package server_test

import (
	"crypto/x509"
	"encoding/pem"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// The metrics tell what is served, by which version, for how long, and by whom.
func TestServerMetrics(t *testing.T) {
	r := start(t)
	measured(t, r,
		`espalier_build_info\{commit="[0-9a-f]*",go_version="go[^"]+",version="v0.9.0\+dirty"\} 1\n`,
		`espalier_replica_current 1\n`,
		`espalier_etcd_out_of_space 0\n`,
		`espalier_etcd_member_info\{endpoint="http://127[^"]+",version="3\.\d+\.\d+"\} 1\n`,
		`espalier_etcd_member_usable\{endpoint="http://127[^"]+"\} 1\n`,
		`espalier_etcd_database_bytes\{endpoint="http://127[^"]+"\} [1-9]`,
		`espalier_etcd_database_used_bytes\{endpoint="http://127[^"]+"\} [1-9]`,
		`espalier_etcd_quota_bytes\{endpoint="http://127[^"]+"\} 2\.147483648e\+09\n`,
		`espalier_certificate_expiration_timestamp_seconds\{use="serving"\} 1\.\d+e\+09\n`,
		`espalier_certificate_expiration_timestamp_seconds\{use="client-ca"\} 1\.\d+e\+09\n`,
		`espalier_serving_certificate_refused 0\n`,
		`leader_election_master_status\{name="espalier-controllers"\} 1\n`,
		`apiserver_resource_objects\{group="",resource="namespaces"\} 3\n`,
		`apiserver_resource_objects\{group="rbac.authorization.k8s.io",resource="clusterroles"\} [1-9]\d*\n`,
	)
}

// measured waits until the metrics match all patterns.
func measured(t *testing.T, r *running, patterns ...string) {
	t.Helper()
	monitoring := r.member(t, "system:monitoring")
	var text string
	for _, want := range patterns {
		pattern := regexp.MustCompile(want)
		for deadline := time.Now().Add(patience); !pattern.MatchString(text); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Errorf("no metric is %s", want)
				break
			}
			_, text = get(t, monitoring, r.url+"/metrics")
		}
	}
}

// The metrics tell when the certificates for etcd expire: of the files as they are now.
func TestMetricsOfCertificatesForEtcd(t *testing.T) {
	authority := certtest.New(t, time.Hour)
	url := secureEtcd(t, authority)
	var file string
	r := start(t, func(o *server.Options) {
		certificate, key := authority.Client(t, "espalier", time.Hour)
		file = certtest.File(t, "client.crt", certificate)
		transport := &o.Etcd.StorageConfig.Transport
		transport.ServerList, transport.CertFile, transport.KeyFile = []string{url}, file, certtest.File(t, "client.key", key)
		transport.TrustedCAFile = certtest.File(t, "etcd-ca.crt", authority.PEM())
	})
	measured(t, r, `espalier_certificate_expiration_timestamp_seconds\{use="etcd-client"\} 1\.\d+e\+09\n`, `espalier_certificate_expiration_timestamp_seconds\{use="etcd-ca"\} 1\.\d+e\+09\n`)
	long, _ := authority.Client(t, "espalier", 1000*24*time.Hour)
	block, _ := pem.Decode(long)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, long, 0o600); err != nil {
		t.Fatal(err)
	}
	at := strconv.FormatFloat(float64(certificate.NotAfter.Unix()), 'g', -1, 64)
	measured(t, r, `espalier_certificate_expiration_timestamp_seconds\{use="etcd-client"\} `+regexp.QuoteMeta(at)+`\n`)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, text := get(t, r.member(t, "system:monitoring"), r.url+"/metrics"); strings.Contains(text, `use="etcd-client"`) {
		t.Error("a file that is gone has an expiry")
	}
}

// A certificate that clients would refuse does not take the place of a good one.
func TestServingCertificateReload(t *testing.T) {
	var certificate, key string
	r := start(t, func(o *server.Options) {
		certificate, key = o.Serving.ServerCert.CertKey.CertFile, o.Serving.ServerCert.CertKey.KeyFile
	})
	log := etcdtest.Capture(t)
	old := serial(t, r)
	put := func(cert, private []byte) {
		t.Helper()
		for path, data := range map[string][]byte{certificate: cert, key: private} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	monitoring := r.member(t, "system:monitoring")
	refused := func() bool {
		_, text := get(t, monitoring, r.url+"/metrics")
		return strings.Contains(text, "espalier_serving_certificate_refused 1\n")
	}
	until := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !is(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s\n%s", what, log)
			}
		}
	}

	put(r.servers.ServerFor(t, -time.Minute))
	until("an expired certificate is taken without a word", refused)
	if !strings.Contains(log.String(), "Serving certificate was not reloaded, the former one is kept") || !strings.Contains(log.String(), "has expired, at ") {
		t.Errorf("the log:\n%s", log)
	}
	if serial(t, r) != old {
		t.Error("the expired certificate is served")
	}

	put(r.servers.Server(t))
	until("a good certificate is not taken", func() bool { return serial(t, r) != old && !refused() })

	current := serial(t, r)
	good, _ := r.servers.Server(t)
	_, other := r.servers.Server(t)
	put(good, other)
	until("a key that does not fit goes unnoticed", refused)
	if serial(t, r) != current {
		t.Error("another certificate is served")
	}
}

// serial is that of the certificate that the server shows.
func serial(t *testing.T, r *running) string {
	t.Helper()
	client := r.stranger(t)
	client.Transport.(*http.Transport).DisableKeepAlives = true
	resp, err := client.Get(r.url + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.TLS.PeerCertificates[0].SerialNumber.String()
}
