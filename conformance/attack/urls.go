package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// urls are attempts to reach with one right what another right is needed for, by the form of the URL or of the object.
var urls = []Attack{
	{ID: "C1-dotted-get", What: "read an object of another group by a dotted resource name", Run: dotted(http.MethodGet, "/one", "", "")},
	{ID: "C1-dotted-list", What: "list objects of another group by a dotted resource name", Run: dotted(http.MethodGet, "", "", "")},
	{ID: "C1-dotted-create", What: "create an object of another group by a dotted resource name", Run: dotted(http.MethodPost, "", "application/json",
		`{"apiVersion":"acme.%[1]s.example.io/v1","kind":"Challenge","metadata":{"name":"two"}}`)},
	{ID: "C1-dotted-patch", What: "patch an object of another group by a dotted resource name", Run: dotted(http.MethodPatch, "/one", "application/merge-patch+json",
		`{"metadata":{"labels":{"a":"b"}}}`)},
	{ID: "C1-dotted-delete", What: "delete an object of another group by a dotted resource name", Run: dotted(http.MethodDelete, "/one", "", "")},
	{ID: "C1-dotted-audit", What: "read an object past the audit policy of its group, by a dotted resource name", Run: dottedPastAudit},
	{ID: "C3-post-crd", What: "create a CRD of a name that one may not create, by a POST to the path of one that one may", Run: postToCRD},
	{ID: "C3-post-object", What: "create a custom resource of another name than the authorized one, by a POST to an item", Run: postToItem},
	{ID: "C8-status-delete", What: "delete a CRD and its objects with rights on its status alone", Run: deleteByStatus},
	{ID: "C9-foreground", What: "keep an object in another namespace from being deleted, by an owner reference with its UID", Run: blockFromElsewhere},
}

// challenges creates a CRD of the group acme.<word>.example.io and an object called one. The word is new.
func challenges(ctx context.Context, s *Site) (word, namespace string, err error) {
	word = s.Name("w")
	if namespace, err = s.Namespace(ctx); err != nil {
		return "", "", err
	}
	if err := s.CRD(ctx, crdManifest("challenges", "Challenge", "acme."+word+".example.io")); err != nil {
		return "", "", err
	}
	_, err = s.admin.Must(ctx, http.MethodPost, fmt.Sprintf("/apis/acme.%s.example.io/v1/namespaces/%s/challenges", word, namespace), "application/json",
		fmt.Sprintf(`{"apiVersion":"acme.%s.example.io/v1","kind":"Challenge","metadata":{"name":"one"}}`, word))
	return word, namespace, err
}

func crdManifest(plural, kind, group string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%[1]s.%[3]s"},"spec":{"group":%[3]q,"scope":"Namespaced",`+
		`"names":{"plural":%[1]q,"kind":%[2]q},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, plural, kind, group)
}

// dotted asks for challenges.acme of a group on which the user has all rights.
func dotted(method, item, contentType, body string) func(context.Context, *Site) (Result, error) {
	return func(ctx context.Context, s *Site) (Result, error) {
		word, namespace, err := challenges(ctx, s)
		if err != nil {
			return Result{}, err
		}
		user, err := s.UserWith(ctx, "issuer", "", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{word + ".example.io"}, Resources: []string{"*"}})
		if err != nil {
			return Result{}, err
		}
		if strings.Contains(body, "%[1]s") {
			body = fmt.Sprintf(body, word)
		}
		code, text, err := user.Do(ctx, method, fmt.Sprintf("/apis/%s.example.io/v1/namespaces/%s/challenges.acme%s", word, namespace, item), contentType, body)
		if err != nil {
			return Result{}, err
		}
		if code < 300 {
			return Succeeded("%d: %.60s", code, text), nil
		}
		return Refused("%d", code), nil
	}
}

// dottedPastAudit looks whether the audit log knows of the object that was read.
func dottedPastAudit(ctx context.Context, s *Site) (Result, error) {
	dir, err := os.MkdirTemp("", "attack-audit")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	policy, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	// The names of an attack are the site's: the first word of another site is always the same.
	text := `{"apiVersion":"audit.k8s.io/v1","kind":"Policy","rules":[{"level":"Metadata","resources":[{"group":"acme.w-1.example.io"}]},{"level":"None"}]}`
	if err := os.WriteFile(policy, []byte(text), 0o600); err != nil {
		return Result{}, err
	}
	s, err = s.Another(ctx, "--audit-policy-file="+policy, "--audit-log-path="+log)
	if err != nil {
		return Result{}, err
	}
	defer s.Close()
	word, namespace, err := challenges(ctx, s)
	if err != nil {
		return Result{}, err
	}
	if word != "w-1" {
		return Result{}, fmt.Errorf("the group is acme.%s.example.io, and the policy is about another", word)
	}
	code, _, err := s.admin.Do(ctx, http.MethodGet, fmt.Sprintf("/apis/%s.example.io/v1/namespaces/%s/challenges.acme/one", word, namespace), "", "")
	if err != nil {
		return Result{}, err
	}
	if code != http.StatusOK {
		return Refused("%d", code), nil
	}
	time.Sleep(time.Second) // the log is written in batches
	written, err := os.ReadFile(log)
	if err != nil {
		return Result{}, err
	}
	if strings.Contains(string(written), `"verb":"get"`) {
		return Refused("recorded"), nil
	}
	return Succeeded("200, not recorded"), nil
}

// postToCRD has the right to create bars.<group> and tries foos.<group>.
func postToCRD(ctx context.Context, s *Site) (Result, error) {
	group := s.Name("g") + ".example.io"
	user, err := s.UserWith(ctx, "creator", "", rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"apiextensions.k8s.io"},
		Resources: []string{"customresourcedefinitions"}, ResourceNames: []string{"bars." + group}})
	if err != nil {
		return Result{}, err
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	code, _, err := user.Do(ctx, http.MethodPost, path+"/bars."+group, "application/json", crdManifest("foos", "Foo", group))
	if err != nil {
		return Result{}, err
	}
	return s.unlessThere(ctx, path+"/foos."+group, code)
}

// postToItem is the same for custom resources.
func postToItem(ctx context.Context, s *Site) (Result, error) {
	word, namespace, err := challenges(ctx, s)
	if err != nil {
		return Result{}, err
	}
	group := "acme." + word + ".example.io"
	user, err := s.UserWith(ctx, "creator", namespace, rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{group},
		Resources: []string{"challenges"}, ResourceNames: []string{"mine"}})
	if err != nil {
		return Result{}, err
	}
	path := fmt.Sprintf("/apis/%s/v1/namespaces/%s/challenges", group, namespace)
	code, _, err := user.Do(ctx, http.MethodPost, path+"/mine", "application/json",
		fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Challenge","metadata":{"name":"theirs"}}`, group))
	if err != nil {
		return Result{}, err
	}
	return s.unlessThere(ctx, path+"/theirs", code)
}

// unlessThere is Refused with the code of an attempt, unless the object that it was to create exists.
func (s *Site) unlessThere(ctx context.Context, path string, code int) (Result, error) {
	found, _, err := s.admin.Do(ctx, http.MethodGet, path, "", "")
	if err != nil {
		return Result{}, err
	}
	if found == http.StatusOK {
		return Succeeded("%d, created", code), nil
	}
	return Refused("%d", code), nil
}

// deleteByStatus writes what has the garbage collector delete the CRD.
func deleteByStatus(ctx context.Context, s *Site) (Result, error) {
	word, _, err := challenges(ctx, s)
	if err != nil {
		return Result{}, err
	}
	crd := "challenges.acme." + word + ".example.io"
	user, err := s.UserWith(ctx, "reporter", "", rbacv1.PolicyRule{Verbs: []string{"get", "update", "patch"}, APIGroups: []string{"apiextensions.k8s.io"},
		Resources: []string{"customresourcedefinitions/status"}})
	if err != nil {
		return Result{}, err
	}
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + crd
	code, _, err := user.Do(ctx, http.MethodPatch, path+"/status", "application/merge-patch+json", `{"metadata":{"annotations":{"espalier.dev/allow-deletion":"true"},`+
		`"ownerReferences":[{"apiVersion":"v1","kind":"Namespace","name":"none","uid":"11111111-2222-3333-4444-555555555555"}]}}`)
	if err != nil {
		return Result{}, err
	}
	found, text, err := s.admin.Do(ctx, http.MethodGet, path, "", "")
	switch {
	case err != nil:
		return Result{}, err
	case found == http.StatusNotFound:
		return Succeeded("%d, deleted", code), nil
	case strings.Contains(text, "11111111-2222-3333-4444-555555555555") || strings.Contains(text, `"espalier.dev/allow-deletion":"true"`):
		return Succeeded("%d, owner reference written", code), nil
	}
	return Refused("%d, metadata unchanged", code), nil
}

// blockFromElsewhere has an object with a finalizer claim to depend on one in another namespace.
func blockFromElsewhere(ctx context.Context, s *Site) (Result, error) {
	if s.IsKubernetes() {
		return Absent("the garbage collector is another program"), nil
	}
	word, victims, err := challenges(ctx, s)
	if err != nil {
		return Result{}, err
	}
	own, err := s.Namespace(ctx)
	if err != nil {
		return Result{}, err
	}
	user, err := s.UserWith(ctx, "neighbour", own, rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	if err != nil {
		return Result{}, err
	}
	group := "acme." + word + ".example.io"
	path := fmt.Sprintf("/apis/%s/v1/namespaces/%s/challenges/one", group, victims)
	text, err := s.admin.Must(ctx, http.MethodGet, path, "", "")
	if err != nil {
		return Result{}, err
	}
	var victim struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(text), &victim); err != nil {
		return Result{}, err
	}
	code, _, err := user.Do(ctx, http.MethodPost, "/api/v1/namespaces/"+own+"/configmaps", "application/json", fmt.Sprintf(
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"blocker","finalizers":["example.io/mine"],"ownerReferences":[{"apiVersion":"%s/v1","kind":"Challenge","name":"one","uid":%q,"blockOwnerDeletion":true}]}}`,
		group, victim.Metadata.UID))
	if err != nil {
		return Result{}, err
	}
	if _, err := s.admin.Must(ctx, http.MethodDelete, path+"?propagationPolicy=Foreground", "", ""); err != nil {
		return Result{}, err
	}
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if left, _, err := s.admin.Do(ctx, http.MethodGet, path, "", ""); err != nil || left == http.StatusNotFound {
			return Refused("%d, and deleted", code), err
		}
	}
	return Succeeded("%d, not deleted after 15 s", code), nil
}
