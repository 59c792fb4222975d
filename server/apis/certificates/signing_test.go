package certificates

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/espalier-dev/espalier/server/auth/ca"
)

func newCA(t *testing.T, validity time.Duration) (o *Options, loaded *signer) {
	t.Helper()
	a, err := ca.New("test", validity)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := a.Save(dir); err != nil {
		t.Fatal(err)
	}
	o = NewOptions()
	o.CertFile, o.KeyFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	if loaded, err = loadCA(o.CertFile, o.KeyFile); err != nil {
		t.Fatal(err)
	}
	return o, loaded
}

func spec(t *testing.T, template *x509.CertificateRequest) *certificatesv1.CertificateSigningRequestSpec {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, key)
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequestSpec{
		Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), SignerName: certificatesv1.KubeAPIServerClientSignerName,
		Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
	}
}

// A certificate has the names of the request, and nothing else of it.
func TestSign(t *testing.T) {
	_, signer := newCA(t, 100*24*time.Hour)
	now := time.Now()
	for _, test := range []struct {
		asked *int32
		want  time.Duration
	}{
		{nil, 30*24*time.Hour - backdate},
		{ptr.To[int32](3600), time.Hour},
		{ptr.To[int32](1), minDuration},
		{ptr.To[int32](1 << 30), 30*24*time.Hour - backdate},
	} {
		s := spec(t, &x509.CertificateRequest{
			Subject:         pkix.Name{CommonName: "carol", Organization: []string{"gardeners"}},
			ExtraExtensions: []pkix.Extension{{Id: []int{2, 5, 29, 19}, Critical: true, Value: []byte{0x30, 3, 1, 1, 0xff}}}, // it wants to be a CA
		})
		s.ExpirationSeconds = test.asked
		text, err := signer.sign(s, 30*24*time.Hour, now)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if c.IsCA || c.Subject.CommonName != "carol" || len(c.ExtKeyUsage) != 1 || c.ExtKeyUsage[0] != x509.ExtKeyUsageClientAuth || c.KeyUsage != x509.KeyUsageDigitalSignature {
			t.Errorf("got %+v", c)
		}
		if got := c.NotAfter.Sub(now).Round(time.Minute); got != test.want {
			t.Errorf("it is valid for %v, not %v", got, test.want)
		}
		if err := c.CheckSignatureFrom(signer.cert); err != nil {
			t.Error(err)
		}
	}
}

func TestUnfitRequests(t *testing.T) {
	o, signer := newCA(t, time.Hour)
	good := spec(t, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "carol"}})
	if text, err := signer.sign(good, o.Duration, time.Now()); err != nil {
		t.Fatal(err)
	} else if block, _ := pem.Decode(text); block == nil {
		t.Fatal("no PEM")
	} else if c, err := x509.ParseCertificate(block.Bytes); err != nil || c.NotAfter.After(signer.cert.NotAfter) {
		t.Errorf("it outlives its CA: %v", err)
	}
	server := *good
	server.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageServerAuth}
	none := *good
	none.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature}
	broken := *good
	broken.Request = []byte("nonsense")
	for name, s := range map[string]*certificatesv1.CertificateSigningRequestSpec{
		"invalid usage for client certificate: server auth":          &server,
		"missing required usage for client certificate: client auth": &none,
		"PEM block type must be CERTIFICATE REQUEST":                 &broken,
		"with system:masters group is not allowed":                   spec(t, &x509.CertificateRequest{Subject: pkix.Name{Organization: []string{"a", "system:masters"}}}),
	} {
		if _, err := signer.sign(s, o.Duration, time.Now()); !errors.Is(err, errUnfit) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := signer.sign(good, o.Duration, time.Now().Add(2*time.Hour)); err == nil || errors.Is(err, errUnfit) {
		t.Errorf("an expired CA: %v", err)
	}
}

// brokenKey is that of a CA which cannot sign now.
type brokenKey struct{ crypto.Signer }

func (brokenKey) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return nil, errors.New("out of order")
}

// If signing fails, the request is unfit, unless the CA itself fails.
func TestIssue(t *testing.T) {
	_, signer := newCA(t, time.Hour)
	template := func(names ...string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotAfter: time.Now().Add(time.Minute)}
	}
	if _, err := signer.issue(template("a.example.com"), signer.key.Public()); err != nil {
		t.Error(err)
	}
	if _, err := signer.issue(template("\u00e9"), signer.key.Public()); !errors.Is(err, errUnfit) {
		t.Errorf("a name that no certificate can have: %v", err)
	}
	if _, err := signer.issue(template("a.example.com"), "no key"); !errors.Is(err, errUnfit) {
		t.Errorf("a key that no certificate can have: %v", err)
	}
	signer.key = brokenKey{signer.key}
	for _, name := range []string{"a.example.com", "\u00e9"} {
		if _, err := signer.issue(template(name), signer.key.Public()); err == nil || errors.Is(err, errUnfit) {
			t.Errorf("a CA that cannot sign: %v", err)
		}
	}
}

// The controller deletes old requests after the same times as Kubernetes.
func TestOver(t *testing.T) {
	c := New(nil, NewOptions())
	at := func(ago time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-ago)) }
	request := func(age time.Duration, certificate string, conditions ...certificatesv1.CertificateSigningRequestCondition) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at(age)},
			Status:     certificatesv1.CertificateSigningRequestStatus{Certificate: []byte(certificate), Conditions: conditions},
		}
	}
	since := func(kind certificatesv1.RequestConditionType, ago time.Duration) certificatesv1.CertificateSigningRequestCondition {
		return certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, LastUpdateTime: at(ago)}
	}
	for name, test := range map[string]struct {
		o    *certificatesv1.CertificateSigningRequest
		want bool
	}{
		"pending":          {request(23*time.Hour, ""), false},
		"pending for long": {request(25*time.Hour, ""), true},
		"denied":           {request(48*time.Hour, "", since(certificatesv1.CertificateDenied, 50*time.Minute)), false},
		"denied for long":  {request(48*time.Hour, "", since(certificatesv1.CertificateDenied, 70*time.Minute)), true},
		"failed for long":  {request(48*time.Hour, "", since(certificatesv1.CertificateApproved, 0), since(certificatesv1.CertificateFailed, 70*time.Minute)), true},
		"approved":         {request(48*time.Hour, "", since(certificatesv1.CertificateApproved, 70*time.Minute)), false},
		"approved, unused": {request(48*time.Hour, "", since(certificatesv1.CertificateApproved, 25*time.Hour)), true},
		"issued":           {request(48*time.Hour, "x", since(certificatesv1.CertificateApproved, 50*time.Minute)), false},
		"issued for long":  {request(48*time.Hour, "x", since(certificatesv1.CertificateApproved, 70*time.Minute)), true},
	} {
		if got := c.over(test.o); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestValidate(t *testing.T) {
	o, _ := newCA(t, time.Hour)
	if errs := o.Validate(); len(errs) > 0 {
		t.Error(errs)
	}
	if errs := NewOptions().Validate(); len(errs) > 0 {
		t.Error(errs)
	}
	alone := *o
	alone.KeyFile = ""
	brief := *o
	brief.Duration = time.Minute
	a, err := ca.New("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Client("carol")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := pair.Save(dir, "carol"); err != nil {
		t.Fatal(err)
	}
	leaf := *o
	leaf.CertFile, leaf.KeyFile = filepath.Join(dir, "carol.crt"), filepath.Join(dir, "carol.key")
	for want, o := range map[string]*Options{"give both or none": &alone, "--cluster-signing-duration is 1m0s": &brief, "is not the certificate of a CA": &leaf} {
		if errs := o.Validate(); len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%s: %v", want, errs)
		}
	}
}
