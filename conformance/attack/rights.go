package attack

import (
	"context"
	"fmt"
	"net/http"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// rights are attempts to have more of them.
var rights = []Attack{{
	ID: "escalate", What: "create a ClusterRole with rights that its author does not have",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.asAuthor(ctx, "clusterroles", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":%q},"rules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}`)
	},
}, {
	ID: "bind", What: "bind oneself to cluster-admin",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.asAuthor(ctx, "clusterrolebindings", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":%q},`+
			`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"mallory"}]}`)
	},
}, {
	ID: "impersonate", What: "act as system:masters without the right to impersonate",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		user, err := s.User(s.Name("mallory"))
		if err != nil {
			return Result{}, err
		}
		return denied(user.Do(ctx, http.MethodGet, secrets, "", "", "Impersonate-User", "admin", "Impersonate-Group", "system:masters"))
	},
}, {
	ID: "path-traversal", What: "read a Secret of another namespace through the name of a ConfigMap",
	Run: traverse,
}}

// asAuthor creates an RBAC object as a user who may create them.
func (s *Site) asAuthor(ctx context.Context, resource, object string) (Result, error) {
	user, err := s.UserWith(ctx, "author", "", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{rbacv1.GroupName}, Resources: []string{resource}})
	if err != nil {
		return Result{}, err
	}
	return denied(user.Do(ctx, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/"+resource, "application/json", fmt.Sprintf(object, s.Name("stolen"))))
}

// foreignCertificate is a client of system:masters by a CA that the server does not know.
func (s *Site) foreignCertificate() (*Client, error) {
	signer, err := launch.NewCA()
	if err != nil {
		return nil, err
	}
	pair, err := signer.Client("admin", "system:masters")
	if err != nil {
		return nil, err
	}
	return newClient(&rest.Config{Host: s.Server.URL, QPS: -1, TLSClientConfig: rest.TLSClientConfig{CAData: s.Server.Config.CAData, CertData: pair.Cert, KeyData: pair.Key}})
}

// traverse tries names that lead out of what a role on ConfigMaps of one namespace reaches.
func traverse(ctx context.Context, s *Site) (Result, error) {
	own, err := s.Namespace(ctx)
	if err != nil {
		return Result{}, err
	}
	other, err := s.Namespace(ctx)
	if err != nil {
		return Result{}, err
	}
	if _, err := s.admin.Must(ctx, http.MethodPost, "/api/v1/namespaces/"+other+"/secrets", "application/json",
		`{"apiVersion":"v1","kind":"Secret","metadata":{"name":"one"},"stringData":{"key":"value"}}`); err != nil {
		return Result{}, err
	}
	user, err := s.UserWith(ctx, "reader", own, rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	if err != nil {
		return Result{}, err
	}
	base, worst := "/api/v1/namespaces/"+own+"/configmaps/", 0
	for _, way := range []string{
		"../../" + other + "/secrets/one", "..%2f..%2f" + other + "%2fsecrets%2fone", "%2e%2e/%2e%2e/" + other + "/secrets/one",
		"..%2F..%2Fsecrets%2F" + other + "%2Fone", "%252e%252e%252f" + other, "..", "%2e%2e", "one%2f..%2f..%2fsecrets",
	} {
		code, text, err := user.Do(ctx, http.MethodGet, base+way, "", "")
		if err != nil {
			return Result{}, err
		}
		if code == http.StatusOK {
			return Succeeded("%s: %.80s", way, text), nil
		}
		worst = max(worst, code)
	}
	if worst >= http.StatusInternalServerError {
		return Result{}, fmt.Errorf("a name was answered with %d", worst)
	}
	return Refused("at most %d", worst), nil
}
