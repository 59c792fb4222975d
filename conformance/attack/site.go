package attack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A Site is a server under attack.
type Site struct {
	Server *launch.Server
	spec   launch.Spec
	admin  *Client // a member of system:masters
	names  atomic.Int64
	closed []func() // what ends with the site, the last first
}

// Open starts a server on an etcd that runs already.
func Open(ctx context.Context, spec launch.Spec) (*Site, error) {
	server, err := launch.StartServer(ctx, spec)
	if err != nil {
		return nil, err
	}
	s := &Site{Server: server, spec: spec, closed: []func(){server.Stop}}
	if s.admin, err = newClient(server.Config); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Another starts a server of the same kind with further flags, on keys of its own.
func (s *Site) Another(ctx context.Context, flags ...string) (*Site, error) {
	spec := s.spec
	spec.Prefix = fmt.Sprintf("%s-%s", spec.Prefix, s.Name("another"))
	spec.Flags = append(append([]string(nil), spec.Flags...), flags...)
	return Open(ctx, spec)
}

// Close stops the server.
func (s *Site) Close() {
	for i := len(s.closed) - 1; i >= 0; i-- {
		s.closed[i]()
	}
	s.closed = nil
}

// IsKubernetes reports whether the server is kube-apiserver.
func (s *Site) IsKubernetes() bool { return s.spec.Kind == launch.Kubernetes }

// User returns a client with a certificate and no rights of its own.
func (s *Site) User(name string, groups ...string) (*Client, error) {
	config, err := s.Server.Client(name, groups...)
	if err != nil {
		return nil, err
	}
	return newClient(config)
}

// Name returns a name that no other attack has.
func (s *Site) Name(prefix string) string { return fmt.Sprintf("%s-%d", prefix, s.names.Add(1)) }

// Namespace creates a namespace.
func (s *Site) Namespace(ctx context.Context) (string, error) {
	name := s.Name("ns")
	_, err := s.admin.Must(ctx, http.MethodPost, "/api/v1/namespaces", "application/json",
		fmt.Sprintf(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":%q}}`, name))
	return name, err
}

// UserWith returns a new user whose rights in a namespace, or everywhere if it is empty, are in force.
func (s *Site) UserWith(ctx context.Context, prefix, namespace string, rules ...rbacv1.PolicyRule) (*Client, error) {
	name := s.Name(prefix)
	if err := s.grant(ctx, name, namespace, rules); err != nil {
		return nil, err
	}
	return s.User(name)
}

// grant gives a user rights, and waits until they are in force.
func (s *Site) grant(ctx context.Context, user, namespace string, rules []rbacv1.PolicyRule) error {
	role, path := "ClusterRole", "/apis/rbac.authorization.k8s.io/v1/"
	if namespace != "" {
		role, path = "Role", path+"namespaces/"+namespace+"/"
	}
	meta := metav1.ObjectMeta{Name: s.Name("granted"), Namespace: namespace}
	binding := map[string]any{
		"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": role + "Binding", "metadata": meta,
		"roleRef":  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role, Name: meta.Name},
		"subjects": []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	granted := map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": role, "metadata": meta, "rules": rules}
	resource := map[string]string{"Role": "roles", "ClusterRole": "clusterroles"}[role]
	for _, x := range []struct {
		resource string
		object   map[string]any
	}{{resource, granted}, {resource[:len(resource)-1] + "bindings", binding}} {
		body, err := json.Marshal(x.object)
		if err != nil {
			return err
		}
		if _, err := s.admin.Must(ctx, http.MethodPost, path+x.resource, "application/json", string(body)); err != nil {
			return err
		}
	}
	for _, rule := range rules {
		if err := s.inForce(ctx, user, namespace, rule); err != nil {
			return err
		}
	}
	return nil
}

// inForce waits until a user has the first right of a rule.
func (s *Site) inForce(ctx context.Context, user, namespace string, rule rbacv1.PolicyRule) error {
	spec := map[string]any{"user": user}
	if len(rule.NonResourceURLs) > 0 {
		spec["nonResourceAttributes"] = map[string]any{"verb": rule.Verbs[0], "path": rule.NonResourceURLs[0]}
	} else {
		attributes := map[string]any{"verb": rule.Verbs[0], "group": rule.APIGroups[0], "resource": rule.Resources[0], "namespace": namespace}
		if len(rule.ResourceNames) > 0 {
			attributes["name"] = rule.ResourceNames[0]
		}
		spec["resourceAttributes"] = attributes
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec})
	if err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		text, err := s.admin.Must(ctx, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json", string(body))
		if err != nil {
			return false, err
		}
		var review struct{ Status struct{ Allowed bool } }
		err = json.Unmarshal([]byte(text), &review)
		return review.Status.Allowed, err
	})
}

// CRD creates a CustomResourceDefinition, in YAML or JSON, and waits until its first version is served.
func (s *Site) CRD(ctx context.Context, manifest string) error {
	body, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		return err
	}
	var crd struct {
		Spec struct {
			Group    string
			Names    struct{ Plural string }
			Versions []struct{ Name string }
		}
	}
	if err := json.Unmarshal(body, &crd); err != nil {
		return err
	}
	if len(crd.Spec.Versions) == 0 {
		return errors.New("the CRD has no versions")
	}
	if _, err := s.admin.Must(ctx, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json", string(body)); err != nil {
		return err
	}
	path := fmt.Sprintf("/apis/%s/%s/%s?limit=1", crd.Spec.Group, crd.Spec.Versions[0].Name, crd.Spec.Names.Plural)
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		code, _, err := s.admin.Do(ctx, http.MethodGet, path, "", "")
		return code == http.StatusOK, err
	})
}

// Webhook starts a TLS server that ends with the site, and returns its URL and the CA that signed its certificate.
func (s *Site) Webhook(handler http.Handler) (url string, ca []byte, err error) {
	server, ca, err := launch.StartWebhook(handler)
	if err != nil {
		return "", nil, err
	}
	s.closed = append(s.closed, server.Close)
	return server.URL, ca, nil
}
