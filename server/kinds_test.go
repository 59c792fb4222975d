package server_test

import (
	"net/http"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/server"
)

// A server of each sort serves CRDs and their objects, and the kinds that it should.
func TestKinds(t *testing.T) {
	t.Parallel()
	needed := []string{
		"/api/v1/namespaces", "/api/v1/resourcequotas", "/apis/coordination.k8s.io/v1/leases", "/apis/rbac.authorization.k8s.io/v1/clusterroles",
		"/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
		"/apis/storagemigration.k8s.io/v1/storageversionmigrations",
	}
	optional := []string{
		"/api/v1/configmaps", "/api/v1/secrets", "/api/v1/serviceaccounts", "/api/v1/events", "/apis/events.k8s.io/v1/events",
		"/apis/certificates.k8s.io/v1/certificatesigningrequests",
	}
	for _, test := range []struct {
		kinds       server.Kinds
		served, not []string
		namespaces  []string
	}{
		{server.KindsCustom, needed, optional, []string{"default", "kube-public", "kube-system"}},
		{server.KindsControlPlane, slices.Concat(needed, optional), nil, []string{"default", "kube-public", "kube-system"}},
		{server.KindsAll, slices.Concat(needed, optional), nil, []string{"default", "kube-node-lease", "kube-public", "kube-system"}},
	} {
		t.Run(string(test.kinds), func(t *testing.T) {
			t.Parallel()
			r := start(t, func(o *server.Options) { o.Kinds = test.kinds })
			admin := r.member(t, "system:masters")
			for want, paths := range map[int][]string{http.StatusOK: test.served, http.StatusNotFound: test.not} {
				for _, path := range paths {
					if code, body := get(t, admin, r.url+path); code != want {
						t.Errorf("%s: %d, want %d: %s", path, code, want, body)
					}
				}
			}
			client := r.dynamic(t)
			define(t, client)
			if _, err := client.Resource(webs).Namespace("default").Create(t.Context(), web("shop", "a.example.com"), metav1.CreateOptions{}); err != nil {
				t.Error(err)
			}
			typed, err := kubernetes.NewForConfig(r.config(t))
			if err != nil {
				t.Fatal(err)
			}
			all, err := typed.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, ns := range all.Items {
				names = append(names, ns.Name)
			}
			if !slices.Equal(names, test.namespaces) {
				t.Errorf("namespaces: %q, want %q", names, test.namespaces)
			}
		})
	}
}

// Without service accounts no token is accepted, not even one that the server's own key
// has signed.
func TestTokenWithoutServiceAccounts(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	with := func(prefix string, kinds server.Kinds) *running {
		return start(t, s.replica(func(o *server.Options) {
			o.Etcd.StorageConfig.Prefix += prefix
			o.Kinds = kinds
		}))
	}
	first, second := with("/first", server.KindsControlPlane), with("/second", server.KindsCustom)
	admin, err := kubernetes.NewForConfig(first.config(t))
	if err != nil {
		t.Fatal(err)
	}
	accounts := admin.CoreV1().ServiceAccounts("default")
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := accounts.CreateToken(t.Context(), "robot", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		r       *running
		refused bool
	}{{first, false}, {second, true}} {
		client, err := kubernetes.NewForConfig(&rest.Config{Host: test.r.url, BearerToken: token.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: test.r.servers.PEM()}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		if refused := apierrors.IsUnauthorized(err); refused != test.refused || !refused && err != nil {
			t.Errorf("%s: %v", test.r.url, err)
		}
	}
}
