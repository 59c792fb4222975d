package local

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// applicant asks for a certificate.
func applicant(t *testing.T, subject pkix.Name) (request, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: subject}, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: raw})
}

func csr(name string, request []byte) *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: request, SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth},
			Username: "somebody else", Groups: []string{"system:masters"},
		},
		Status: certificatesv1.CertificateSigningRequestStatus{Conditions: approved},
	}
}

var approved = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"}}

// with returns the client of a user who has rights to the group of certificates.
func with(t *testing.T, p *ControlPlane, admin kubernetes.Interface, name string, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	t.Helper()
	config, err := p.User(name)
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := admin.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name}, Subjects: []rbacv1.Subject{{Kind: "User", Name: name}}}
	if _, err := admin.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	client := clientset(t, config)
	await(t, func(ctx context.Context) bool {
		_, err := client.CertificatesV1().CertificateSigningRequests().Get(ctx, "nothing", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	return client
}

func clientset(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func await(t *testing.T, is func(context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) { return is(ctx), nil })
	if err != nil {
		t.Fatal(err)
	}
}

func rule(resources, verbs string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{"certificates.k8s.io"}, Resources: strings.Fields(resources), Verbs: strings.Fields(verbs), ResourceNames: names}
}

// A certificate request is signed after an authorized user approves it, and the
// certificate names its user. Nothing else leads to a certificate.
func TestCertificatesAreSignedOnApproval(t *testing.T) {
	p, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	admin := clientset(t, p.Config())
	const all, signer = "get list create update patch", certificatesv1.KubeAPIServerClientSignerName
	everything := rule("certificatesigningrequests certificatesigningrequests/approval certificatesigningrequests/status", all)
	bob := with(t, p, admin, "bob", everything).CertificatesV1().CertificateSigningRequests()
	approver := with(t, p, admin, "approver", everything, rule("signers", "approve", "kubernetes.io/*")).CertificatesV1().CertificateSigningRequests()

	request, key := applicant(t, pkix.Name{CommonName: "carol", Organization: []string{"gardeners"}})
	o, err := bob.Create(t.Context(), csr("carol", request), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if o.Spec.Username != "bob" || !slices.Equal(o.Spec.Groups, []string{"system:authenticated"}) || len(o.Status.Conditions) != 0 || len(o.Spec.Extra) != 1 {
		t.Errorf("the request is %+v", o)
	}
	// A user who may write the subresources, but has no right to the signer.
	o.Status.Conditions = approved
	if _, err := bob.UpdateApproval(t.Context(), "carol", o, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `user not permitted to approve requests with signerName "`+signer+`"`) {
		t.Errorf("approval: %v", err)
	}
	if _, err := bob.UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), `updates may not add a condition of type "Approved"`) {
		t.Errorf("approval through status: %v", err)
	}
	patch := []byte(`{"status":{"certificate":"aGVsbG8="}}`)
	if _, err := bob.Patch(t.Context(), "carol", types.MergePatchType, patch, metav1.PatchOptions{}, "approval"); !apierrors.IsForbidden(err) {
		t.Errorf("a certificate through approval: %v", err)
	}
	if _, err := bob.Patch(t.Context(), "carol", types.MergePatchType, []byte(`{"status":{"conditions":[{"type":"Failed","status":"True"}]}}`), metav1.PatchOptions{}, "status"); !apierrors.IsForbidden(err) ||
		!strings.Contains(err.Error(), `user not permitted to sign requests with signerName "`+signer+`"`) {
		t.Errorf("a failure through status: %v", err)
	}
	if o, err = bob.Patch(t.Context(), "carol", types.MergePatchType, []byte(`{"spec":{"username":"admin"},"status":{"conditions":[{"type":"Approved","status":"True"}]}}`), metav1.PatchOptions{}); err != nil || o.Spec.Username != "bob" || len(o.Status.Conditions) > 0 {
		t.Errorf("a patch of the whole: %+v, %v", o, err)
	}
	masters, _ := applicant(t, pkix.Name{CommonName: "carol", Organization: []string{"gardeners", "system:masters"}})
	if _, err := bob.Create(t.Context(), csr("masters", masters), metav1.CreateOptions{}); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed") {
		t.Errorf("system:masters: %v", err)
	}

	o.Status.Conditions = approved
	if _, err := approver.UpdateApproval(t.Context(), "carol", o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) bool {
		o, err = bob.Get(ctx, "carol", metav1.GetOptions{})
		return err == nil && len(o.Status.Certificate) > 0
	})
	config := p.Config()
	config.CertData, config.KeyData = o.Status.Certificate, key
	_, err = clientset(t, config).CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "carol" cannot list resource "secrets"`) {
		t.Errorf("with the certificate: %v", err)
	}
	o.Status.Certificate = append(o.Status.Certificate, o.Status.Certificate...)
	if _, err := admin.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), o, metav1.UpdateOptions{}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "updates may not modify existing certificate content") {
		t.Errorf("another certificate: %v", err)
	}

	wrong := csr("server", request)
	wrong.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth, certificatesv1.UsageServerAuth}
	if o, err = bob.Create(t.Context(), wrong, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	o.Status.Conditions = approved
	if _, err := approver.UpdateApproval(t.Context(), "server", o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, func(ctx context.Context) bool {
		o, err = bob.Get(ctx, "server", metav1.GetOptions{})
		return err == nil && len(o.Status.Conditions) == 2 && o.Status.Conditions[1].Type == certificatesv1.CertificateFailed
	})
	if len(o.Status.Certificate) > 0 || !strings.Contains(o.Status.Conditions[1].Message, "invalid usage for client certificate: server auth") {
		t.Errorf("a server's certificate: %+v", o.Status)
	}
}
