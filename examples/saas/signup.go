package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Plans are what customers can buy: how much a tenant may have, and how many of its requests a replica works on at a time.
var Plans = map[string]map[string]any{
	"small": {"objects": int64(1000), "storage": "2Mi", "requests": int64(5)},
	"large": {"objects": int64(100000), "storage": "1Gi", "requests": int64(50)},
}

var dnsLabel = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// errRequest is what a customer can correct.
var errRequest = errors.New("cannot sign up")

// Handler serves POST /signup, a form with name and plan, and answers with a kubeconfig.
//
// A real product asks who its customers are, and for their money, before it calls SignUp.
func (p *Platform) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /signup", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 4096)
		kubeconfig, err := p.SignUp(r.Context(), r.PostFormValue("name"), r.PostFormValue("plan"))
		switch {
		case apierrors.IsAlreadyExists(err):
			http.Error(w, "the name is taken", http.StatusConflict)
		case errors.Is(err, errRequest):
			http.Error(w, err.Error(), http.StatusBadRequest)
		case err != nil:
			http.Error(w, "sign-up failed: "+err.Error(), http.StatusBadGateway)
		default:
			w.Header().Set("Content-Type", "application/yaml")
			w.WriteHeader(http.StatusCreated)
			_, _ = w.Write(kubeconfig)
		}
	})
	return mux
}

// SignUp creates a tenant with the quota of a plan and the API of the product, and returns a kubeconfig for its
// administrator. If a step fails, the tenant is deleted, so that the customer can try again.
func (p *Platform) SignUp(ctx context.Context, name, plan string) (_ []byte, err error) {
	switch {
	case !dnsLabel.MatchString(name) || name == provider:
		return nil, fmt.Errorf("%w: the name must have only lower case letters, digits and hyphens, at most 63", errRequest)
	case Plans[plan] == nil:
		return nil, fmt.Errorf("%w: the plan must be small or large", errRequest)
	}
	server, err := dynamic.NewForConfig(p.Config)
	if err != nil {
		return nil, err
	}
	// The provider's export is for all tenants with the label customer.
	tenant := object("espalier.dev/v1alpha1", "Tenant", name, map[string]string{"customer": "true", "plan": plan}, Plans[plan])
	if _, err := server.Resource(tenants).Create(ctx, tenant, metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, server.Resource(tenants).Delete(context.WithoutCancel(ctx), name, metav1.DeleteOptions{}))
		}
	}()
	token, err := p.administrator(ctx, name)
	if err != nil {
		return nil, err
	}
	if err := p.bind(ctx, name); err != nil {
		return nil, err
	}
	return p.kubeconfig(name, token)
}

// administrator creates a service account that may do everything in its tenant and nothing elsewhere, and returns a token.
func (p *Platform) administrator(ctx context.Context, tenant string) (string, error) {
	client, err := kubernetes.NewForConfig(p.in(tenant))
	if err != nil {
		return "", err
	}
	accounts := client.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "customer"}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return "", err
	}
	_, err = client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "customer"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: account.Name}},
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	day := int64(24 * 60 * 60)
	review := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &day}}
	review, err = accounts.CreateToken(ctx, account.Name, review, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return review.Status.Token, nil
}

// bind gives a tenant the API of the product, and lets the product read the objects and write their status.
func (p *Platform) bind(ctx context.Context, tenant string) error {
	client, err := dynamic.NewForConfig(p.in(tenant))
	if err != nil {
		return err
	}
	binding := object("apis.espalier.dev/v1alpha1", "APIBinding", "databases", nil, map[string]any{
		"export": map[string]any{"tenant": provider, "name": "databases"},
		"accept": []any{
			map[string]any{"resources": []any{"databases.example.com"}, "verbs": []any{"get", "list", "watch"}},
			map[string]any{"resources": []any{"databases.example.com/status"}, "verbs": []any{"get", "update", "patch"}},
		},
	})
	err = retry(ctx, func() error {
		_, err := client.Resource(bindings).Create(ctx, binding, metav1.CreateOptions{})
		return err
	}, apierrors.IsNotFound)
	if err != nil {
		return err
	}
	notReady := errors.New("the APIBinding is not ready")
	return retry(ctx, func() error {
		binding, err := client.Resource(bindings).Get(ctx, binding.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !ready(binding) {
			return notReady
		}
		return nil
	}, func(err error) bool { return errors.Is(err, notReady) })
}

func ready(binding *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(binding.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return c["status"] == "True"
		}
	}
	return false
}

func (p *Platform) kubeconfig(tenant, token string) ([]byte, error) {
	own := p.in(tenant)
	if err := rest.LoadTLSFiles(own); err != nil {
		return nil, err
	}
	config := clientcmdapi.NewConfig()
	config.CurrentContext = tenant
	config.Clusters[tenant] = &clientcmdapi.Cluster{Server: own.Host, CertificateAuthorityData: own.CAData}
	config.AuthInfos[tenant] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts[tenant] = &clientcmdapi.Context{Cluster: tenant, AuthInfo: tenant, Namespace: "default"}
	return clientcmd.Write(*config)
}
