package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// owners are attempts to delete objects, or to keep them, by owner references.
var owners = []Attack{{
	ID: "owner-block", What: "hold up the deletion of a Secret by a ConfigMap that claims to depend on it",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.withOwners(ctx, func(o *ownerless) (int, string, error) {
			return o.user.Do(ctx, http.MethodPost, o.path("configmaps"), "application/json", fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"leech",`+
				`"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"one","uid":%q,"blockOwnerDeletion":true}]}}`, o.secret))
		})
	},
}, {
	ID: "owner-delete", What: "delete a ConfigMap that one may only update, by a reference to an owner that does not exist",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.withOwners(ctx, func(o *ownerless) (int, string, error) {
			code, text, err := o.user.Do(ctx, http.MethodPatch, o.path("configmaps")+"/one", "application/merge-patch+json",
				`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Secret","name":"gone","uid":"00000000-0000-0000-0000-000000000000"}]}}`)
			if err != nil || code != http.StatusOK || o.site.IsKubernetes() {
				return code, text, err // the garbage collector of Kubernetes is another program, which does not run here
			}
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
				left, _, err := o.site.admin.Do(ctx, http.MethodGet, o.path("configmaps")+"/one", "", "")
				if err != nil || left == http.StatusNotFound {
					return code, text, err
				}
			}
			return 0, "", fmt.Errorf("the reference was accepted and the object is still there")
		})
	},
}}

// ownerless is a user who may create and update ConfigMaps in a namespace, and nothing else.
type ownerless struct {
	site           *Site
	user           *Client
	namespace      string
	secret, config string // the UIDs of a Secret and a ConfigMap called one
}

func (o *ownerless) path(resource string) string {
	return "/api/v1/namespaces/" + o.namespace + "/" + resource
}

// withOwners attempts a request as such a user. kube-apiserver gets the admission plugin that it does not have by default.
func (s *Site) withOwners(ctx context.Context, try func(*ownerless) (int, string, error)) (Result, error) {
	if s.IsKubernetes() {
		guarded, err := s.Another(ctx, "--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
		if err != nil {
			return Result{}, err
		}
		defer guarded.Close()
		s = guarded
	}
	o := &ownerless{site: s}
	var err error
	if o.namespace, err = s.Namespace(ctx); err != nil {
		return Result{}, err
	}
	for kind, uid := range map[string]*string{"Secret": &o.secret, "ConfigMap": &o.config} {
		resource := map[string]string{"Secret": "secrets", "ConfigMap": "configmaps"}[kind]
		text, err := s.admin.Must(ctx, http.MethodPost, o.path(resource), "application/json", fmt.Sprintf(`{"apiVersion":"v1","kind":%q,"metadata":{"name":"one"}}`, kind))
		if err != nil {
			return Result{}, err
		}
		var object struct{ Metadata struct{ UID string } }
		if err := json.Unmarshal([]byte(text), &object); err != nil {
			return Result{}, err
		}
		*uid = object.Metadata.UID
	}
	o.user, err = s.UserWith(ctx, "editor", o.namespace, rbacv1.PolicyRule{Verbs: []string{"create", "get", "update", "patch"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	if err != nil {
		return Result{}, err
	}
	return denied(try(o))
}
