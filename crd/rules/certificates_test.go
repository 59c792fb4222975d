package rules

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// certificates are a request for a certificate and a certificate, in PEM.
func certificates(t *testing.T) (requested, issued []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return inPEM("CERTIFICATE REQUEST", der), inPEM("CERTIFICATE", cert)
}

func inPEM(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// goodCSR is a request that nothing is wrong with.
func goodCSR(t *testing.T) *csr {
	requested, _ := certificates(t)
	return &csr{Spec: certificatesv1.CertificateSigningRequestSpec{
		Request: requested, SignerName: "example.com/signer", Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
	}}
}

func TestValidateSigningRequests(t *testing.T) {
	good := goodCSR(t)
	known := `supported values: "any", "cert sign", "client auth"…`
	long := strings.Repeat("a", 63)
	domain := long + "." + long + "." + long + "." + strings.Repeat("a", 61) // 253 characters
	const label = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
	for name, c := range map[string]struct {
		change func(*certificatesv1.CertificateSigningRequestSpec)
		wrong  []string
	}{
		"nothing": {func(*certificatesv1.CertificateSigningRequestSpec) {}, nil},
		"no PEM": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = []byte("x") },
			[]string{`spec.request: Invalid value: "eA==": PEM block type must be CERTIFICATE REQUEST`}},
		"another PEM": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.Request = inPEM("CERTIFICATE", []byte("x")) },
			[]string{`spec.request: Invalid value: …`}},
		"no request in it": {func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Request = inPEM("CERTIFICATE REQUEST", []byte("x"))
		},
			[]string{`spec.request: Invalid value: …`}},
		"another signature": {func(s *certificatesv1.CertificateSigningRequestSpec) {
			block, _ := pem.Decode(s.Request)
			der := slices.Clone(block.Bytes)
			der[len(der)-1] ^= 1
			s.Request = inPEM("CERTIFICATE REQUEST", der)
		}, []string{`spec.request: Invalid value: …`}},
		"no usages": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.Usages = nil }, []string{"spec.usages: Required value"}},
		"other usages": {func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.Usages = []certificatesv1.KeyUsage{"any", "x", "any"}
		}, []string{`spec.usages[1]: Unsupported value: "x": ` + known, `spec.usages[2]: Duplicate value: "any"`}},
		"no signer":     {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "" }, []string{"spec.signerName: Required value"}},
		"legacy signer": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "kubernetes.io/legacy-unknown" }, []string{`spec.signerName: Invalid value: "kubernetes.io/legacy-unknown": the legacy signerName is not allowed via this API version`}},
		"no path":       {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "a.b" }, []string{`spec.signerName: Invalid value: "a.b": must be a fully qualified domain and path of the form 'example.com/signer-name'`}},
		"two paths":     {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "a.b/c/d" }, []string{`spec.signerName: Invalid value: "a.b/c/d": must be a fully qualified domain and path of the form 'example.com/signer-name'`}},
		"one segment":   {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "a/b" }, []string{`spec.signerName: Invalid value: "a": should be a domain with at least two segments separated by dots`}},
		"wrong segments": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "A.B/c" },
			[]string{`spec.signerName: Invalid value: "A.B": validating label "A": ` + label}},
		"wrong paths": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "a.b/c.D.E" },
			[]string{`spec.signerName: Invalid value: "c.D.E": validating label "D": a lowercase RFC 1123 subdomain…`}},
		"the longest domain": {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = domain + "/a" }, nil},
		"a longer one":       {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = domain + "a/a" }, []string{"spec.signerName: Too long: may not be more than 253 bytes"}},
		"the longest path":   {func(s *certificatesv1.CertificateSigningRequestSpec) { s.SignerName = "a.b/" + domain + "." + long }, nil},
		"a longer path": {func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.SignerName = "a.b/" + domain + "." + long + "a"
		}, []string{"spec.signerName: Too long: may not be more than 317 bytes"}},
		"ten minutes": {func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.ExpirationSeconds = new(int32)
			*s.ExpirationSeconds = 600
		}, nil},
		"less": {func(s *certificatesv1.CertificateSigningRequestSpec) {
			s.ExpirationSeconds = new(int32)
			*s.ExpirationSeconds = 599
		}, []string{"spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)"}},
	} {
		t.Run(name, func(t *testing.T) {
			o := good.DeepCopy()
			c.change(&o.Spec)
			complain(t, CertificateSigningRequest.Validate(o, nil), c.wrong...)
			// An update cannot change the spec, and says nothing about it.
			complain(t, CertificateSigningRequest.Validate(o, o))
		})
	}
}

// There are fewer errors than a client can ask for.
func TestManyUsages(t *testing.T) {
	all := sets.List(knownUsages)
	twice := append(slices.Clone(all), all...)
	if errs := validateUsages(twice, nil); len(errs) != len(all) {
		t.Errorf("each twice: %v", errs)
	}
	complain(t, validateUsages(append(twice, all[0]), nil), fmt.Sprintf("<nil>: Too many: %d: must have at most %d items", 2*len(all)+1, len(all)))
}

// A key's size is the requester's own choice, and the server's time.
func TestLargeSigningRequests(t *testing.T) {
	good := goodCSR(t).Spec.Request
	if _, err := ParseCSR(append(good, bytes.Repeat([]byte("\n"), maxCSR-len(good))...)); err != nil {
		t.Error(err)
	}
	if _, err := ParseCSR(append(good, bytes.Repeat([]byte("\n"), maxCSR-len(good)+1)...)); err == nil || err.Error() != "must have at most 16384 bytes" {
		t.Error(err)
	}
	for bits, fine := range map[uint]bool{maxRSA: true, maxRSA + 1: false} {
		n := new(big.Int).Lsh(big.NewInt(1), bits-1)
		n.SetBit(n, 0, 1)
		if _, err := ParseCSR(withRSAKey(t, n)); (err == nil) != fine || !fine && err.Error() != "must have an RSA key of at most 8192 bits" {
			t.Errorf("%d bits: %v", bits, err)
		}
	}
}

// withRSAKey is a request with an RSA key that has modulus n. Its signature is none.
func withRSAKey(t *testing.T, n *big.Int) []byte {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificateRequest(der)
	if err != nil {
		t.Fatal(err)
	}
	old, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	large, err := x509.MarshalPKIXPublicKey(&rsa.PublicKey{N: n, E: key.E})
	if err != nil {
		t.Fatal(err)
	}
	tbs := bytes.Replace(parsed.RawTBSCertificateRequest, old, large, 1)
	// The sequence around the key has another length, and so has the whole.
	inner := tbs[sequenceHeader(tbs):]
	rest := der[sequenceHeader(der)+len(parsed.RawTBSCertificateRequest):]
	return inPEM("CERTIFICATE REQUEST", sequence(append(sequence(inner), rest...)))
}

// sequenceHeader is how many bytes come before the content of an ASN.1 sequence.
func sequenceHeader(der []byte) int {
	if der[1] < 0x80 {
		return 2
	}
	return 2 + int(der[1]&0x7f)
}

func sequence(content []byte) []byte {
	return append([]byte{0x30, 0x82, byte(len(content) >> 8), byte(len(content))}, content...)
}

func TestValidateConditionsOfSigningRequests(t *testing.T) {
	const at = "status.conditions"
	for _, c := range []struct {
		conditions string // type=status
		wrong      []string
	}{
		{"Approved=True Ready=False Other=Unknown More=True", nil},
		{"Denied=True Failed=True", nil},
		{"=True", []string{at + "[0].type: Required value"}},
		{"Approved= Ready=", []string{at + "[0].status: Required value", at + "[1].status: Required value"}},
		{"Approved=False", []string{at + `[0].status: Unsupported value: "False": supported values: "True"`}},
		{"Denied=Unknown", []string{at + `[0].status: Unsupported value: "Unknown": supported values: "True"`}},
		{"Failed=False", []string{at + `[0].status: Unsupported value: "False": supported values: "True"`}},
		{"Ready=Maybe", []string{at + `[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"`}},
		{"Approved=True Denied=True", []string{at + `: Invalid value: "Denied": Approved and Denied conditions are mutually exclusive`}},
		{"Denied=True Approved=True", []string{at + `: Invalid value: "Approved": Approved and Denied conditions are mutually exclusive`}},
		{"Failed=True Ready=True Failed=True", []string{at + `[2].type: Duplicate value: "Failed"`}},
	} {
		o := goodCSR(t)
		o.Status.Conditions = conditionsOf(c.conditions)
		complain(t, CertificateSigningRequest.Validate(o, nil), c.wrong...)
		complain(t, CertificateSigningRequest.Validate(o, o))
	}
	o := goodCSR(t)
	for i := range maxConditions {
		o.Status.Conditions = append(o.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.RequestConditionType(fmt.Sprint("c", i)), Status: "True"})
	}
	complain(t, CertificateSigningRequest.Validate(o, nil))
	o.Status.Conditions = append(o.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{})
	complain(t, CertificateSigningRequest.Validate(o, nil), at+": Too many: 33: must have at most 32 items")
}

// conditionsOf reads conditions such as Approved=True.
func conditionsOf(text string) (list []certificatesv1.CertificateSigningRequestCondition) {
	for _, one := range strings.Fields(text) {
		kind, status, _ := strings.Cut(one, "=")
		list = append(list, certificatesv1.CertificateSigningRequestCondition{Type: certificatesv1.RequestConditionType(kind), Status: corev1.ConditionStatus(status)})
	}
	return list
}

func TestValidateIssuedCertificates(t *testing.T) {
	_, issued := certificates(t)
	withHeader := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Headers: map[string]string{"a": "b"}, Bytes: []byte("x")})
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"nothing": {nil, ""}, "one": {issued, ""}, "a chain": {append(slices.Clone(issued), issued...), ""},
		"no PEM": {[]byte("x"), "must contain at least one CERTIFICATE PEM block"}, "a key": {inPEM("KEY", nil), `only CERTIFICATE PEM blocks are allowed, found "KEY"`},
		"a header": {withHeader, "no PEM block headers are permitted"}, "an empty block": {inPEM("CERTIFICATE", nil), "found CERTIFICATE PEM block containing 0 certificates"},
		"no certificate": {inPEM("CERTIFICATE", []byte("x")), "x509: malformed certificate"}, "a second that is none": {append(slices.Clone(issued), inPEM("KEY", nil)...), `only CERTIFICATE PEM blocks are allowed, found "KEY"`},
		"the largest": {append(slices.Clone(issued), bytes.Repeat([]byte("\n"), maxCertificate-len(issued))...), ""},
		"too large":   {append(slices.Clone(issued), bytes.Repeat([]byte("\n"), maxCertificate-len(issued)+1)...), "must have at most 65536 bytes"},
	} {
		o := goodCSR(t)
		o.Status.Certificate = c.text
		var wrong []string
		if c.want != "" {
			wrong = []string{`status.certificate: Invalid value: "<certificate data>": ` + c.want}
		}
		t.Run(name, func(t *testing.T) {
			complain(t, CertificateSigningRequest.Validate(o, nil), wrong...)
			complain(t, CertificateSigningRequest.Status.Validate(o, goodCSR(t)), wrong...)
		})
	}
}

// What can be written depends on where it is written.
func TestWritesOfSigningRequests(t *testing.T) {
	_, issued := certificates(t)
	with := func(conditions string, certificate []byte) *csr {
		o := goodCSR(t)
		o.Status.Conditions, o.Status.Certificate = conditionsOf(conditions), certificate
		return o
	}
	reason := func(o *csr) *csr { o.Status.Conditions[0].Reason = "other"; return o }
	const (
		at      = "status.conditions: Forbidden: updates may not "
		set     = "status.certificate: Forbidden: updates may not set certificate content"
		replace = "status.certificate: Forbidden: updates may not modify existing certificate content"
	)
	for name, c := range map[string]struct {
		now, old                 *csr
		update, status, approval []string
	}{
		"approval":            {with("Approved=True", nil), with("", nil), []string{at + `add a condition of type "Approved"`}, []string{at + `add a condition of type "Approved"`}, nil},
		"denial":              {with("Denied=True", nil), with("", nil), []string{at + `add a condition of type "Denied"`}, []string{at + `add a condition of type "Denied"`}, nil},
		"failure":             {with("Failed=True", nil), with("", nil), nil, nil, nil},
		"no longer":           {with("", nil), with("Approved=True Failed=True", nil), []string{at + `remove a condition of type "Approved"`, at + `remove a condition of type "Failed"`}, []string{at + `remove a condition of type "Approved"`, at + `remove a condition of type "Failed"`}, []string{at + `remove a condition of type "Approved"`, at + `remove a condition of type "Failed"`}},
		"another reason":      {reason(with("Approved=True", nil)), with("Approved=True", nil), []string{at + `modify a condition of type "Approved"…`}, []string{at + `modify a condition of type "Approved"…`}, nil},
		"issue":               {with("", issued), with("", nil), []string{set}, nil, []string{set}},
		"issue again":         {with("", append(slices.Clone(issued), '\n')), with("", issued), []string{set}, []string{replace}, []string{set}},
		"keep what is issued": {with("", issued), with("", issued), nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			complain(t, CertificateSigningRequest.Validate(c.now, c.old), c.update...)
			complain(t, CertificateSigningRequest.Status.Validate(c.now, c.old), c.status...)
			complain(t, CertificateApproval.Validate(c.now, c.old), c.approval...)
		})
	}
}

// Clients cannot say who they are, and cannot approve what they create.
func TestPrepareSigningRequests(t *testing.T) {
	o := goodCSR(t)
	o.Spec.Username, o.Spec.UID, o.Spec.Groups, o.Spec.Extra = "a", "b", []string{"c"}, map[string]certificatesv1.ExtraValue{"d": nil}
	o.Status.Conditions = conditionsOf("Approved=True")
	before := o.DeepCopy()
	CertificateSigningRequest.Prepare(o, nil)
	if o.Spec.Username != "" || o.Spec.UID != "" || o.Spec.Groups != nil || o.Spec.Extra != nil || o.Status.Conditions != nil {
		t.Errorf("a new request: %+v", o)
	}
	CertificateSigningRequest.Prepare(o, before)
	if o.Spec.Username != "a" || len(o.Status.Conditions) != 1 {
		t.Errorf("a changed request: %+v", o)
	}
}

// Writes of the status keep what is decided, and what is not theirs.
func TestPrepareStatusOfSigningRequests(t *testing.T) {
	at := metav1.NewTime(time.Unix(1000, 0))
	before := goodCSR(t)
	before.Labels = map[string]string{"a": "b"}
	before.Status.Conditions = conditionsOf("Approved=True Ready=False Old=True")
	for i := range before.Status.Conditions {
		before.Status.Conditions[i].LastTransitionTime, before.Status.Conditions[i].LastUpdateTime = at, at
	}
	before.Status.Conditions[2].LastTransitionTime = metav1.Time{}
	write := func() *csr {
		o := before.DeepCopy()
		o.Labels, o.Spec.SignerName, o.Annotations = nil, "other.com/signer", map[string]string{"c": "d"}
		o.Status.Certificate = []byte("x")
		o.Status.Conditions = conditionsOf("Approved=True Ready=False Ready2=True Old=True")
		o.Status.Conditions[0].Reason = "other"
		o.Status.Conditions[2].LastUpdateTime, o.Status.Conditions[2].LastTransitionTime = at, at
		return o
	}
	began := metav1.Now()
	o := write()
	CertificateSigningRequest.Status.Prepare(o, before)
	c := o.Status.Conditions
	if o.Labels["a"] != "b" || o.Annotations["c"] != "d" || o.Spec.SignerName != "example.com/signer" || string(o.Status.Certificate) != "x" || c[0].Reason != "" || !c[0].LastUpdateTime.Equal(&at) {
		t.Errorf("the status: %+v", o)
	}
	if !c[1].LastTransitionTime.Equal(&at) || c[1].LastUpdateTime.Before(&began) || !c[2].LastTransitionTime.Equal(&at) || !c[2].LastUpdateTime.Equal(&at) || c[3].LastTransitionTime.Before(&began) {
		t.Errorf("times: %+v", c)
	}
	// More conditions than before are left for validation to refuse.
	o = write()
	o.Status.Conditions = append(o.Status.Conditions, o.Status.Conditions[0])
	CertificateSigningRequest.Status.Prepare(o, before)
	if o.Status.Conditions[0].Reason != "other" {
		t.Errorf("two approvals: %+v", o.Status.Conditions)
	}
	o = write()
	o.Status.Conditions[1].Status = corev1.ConditionTrue
	CertificateApproval.Prepare(o, before)
	c = o.Status.Conditions
	if o.Labels["a"] != "b" || o.Annotations["c"] != "d" || o.Spec.SignerName != "example.com/signer" || o.Status.Certificate != nil || c[0].Reason != "other" || !c[0].LastTransitionTime.Equal(&at) || c[1].LastTransitionTime.Before(&began) {
		t.Errorf("the approval: %+v", o)
	}
}
