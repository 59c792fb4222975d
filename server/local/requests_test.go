package local

import (
	"context"
	"crypto/x509/pkix"
	"encoding/json"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// No way of creating a request leads around the check of its subject.
func TestNoRequestForMasters(t *testing.T) {
	p, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	bob := with(t, p, clientset(t, p.Config()), "bob", rule("certificatesigningrequests", "get create update patch")).CertificatesV1().CertificateSigningRequests()
	apply := func(name string, organization ...string) error {
		request, _ := applicant(t, pkix.Name{CommonName: "carol", Organization: organization})
		o := csr(name, request)
		o.TypeMeta = metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequest"}
		o.Status = certificatesv1.CertificateSigningRequestStatus{}
		body, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = bob.Patch(t.Context(), name, types.ApplyPatchType, body, metav1.PatchOptions{FieldManager: "test", Force: ptr.To(true)})
		return err
	}
	for range 2 { // the second one changes nothing
		if err := apply("gardener", "gardeners"); err != nil {
			t.Error(err)
		}
	}
	if err := apply("masters", "gardeners", "system:masters"); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "with system:masters group is not allowed") {
		t.Errorf("created by apply: %v", err)
	}
	if _, err := bob.Get(t.Context(), "masters", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("it is there: %v", err)
	}
}

// Rights on the subresources of a request are no rights to delete it by an owner
// reference, to hold up its deletion, or to change what selectors find.
func TestRequestSubresourcesKeepMetadata(t *testing.T) {
	p, err := Start(t.Context(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	all := clientset(t, p.Config()).CertificatesV1().CertificateSigningRequests()
	request, _ := applicant(t, pkix.Name{CommonName: "carol"})
	if _, err := all.Create(t.Context(), csr("carol", request), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	const metadata = `"labels":{"a":"b"},"finalizers":["x.io/y"],"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"none","uid":"u"}]`
	for _, part := range []string{"status", "approval"} {
		for kind, body := range map[types.PatchType]string{
			types.MergePatchType: `{"metadata":{"annotations":{"` + part + `":"c"},` + metadata + `}}`,
			types.ApplyPatchType: `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest","metadata":{"name":"carol",` + metadata + `}}`,
		} {
			options := metav1.PatchOptions{}
			if kind == types.ApplyPatchType {
				options = metav1.PatchOptions{FieldManager: "test", Force: ptr.To(true)}
			}
			if _, err := all.Patch(t.Context(), "carol", kind, []byte(body), options, part); err != nil {
				t.Errorf("%s %s: %v", part, kind, err)
			}
		}
		o, err := all.Get(t.Context(), "carol", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Labels)+len(o.Finalizers)+len(o.OwnerReferences) > 0 || o.Annotations[part] != "c" { // as Kubernetes' conformance tests have it
			t.Errorf("%s: %+v", part, o.ObjectMeta)
		}
		o.Labels, o.Finalizers = map[string]string{"a": "b"}, []string{"x.io/y"}
		write := func(ctx context.Context) (*certificatesv1.CertificateSigningRequest, error) {
			if part == "status" {
				return all.UpdateStatus(ctx, o, metav1.UpdateOptions{})
			}
			return all.UpdateApproval(ctx, o.Name, o, metav1.UpdateOptions{})
		}
		if o, err := write(t.Context()); err != nil || len(o.Labels)+len(o.Finalizers) > 0 {
			t.Errorf("%s: %+v, %v", part, o, err)
		}
	}
}
