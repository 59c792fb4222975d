package scenarios

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A desk is a webhook that knows whose tokens are whose.
type desk struct {
	*httptest.Server
	asked atomic.Int64
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{}
	d.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.asked.Add(1)
		var review authenticationv1.TokenReview
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil || review.APIVersion != "authentication.k8s.io/v1" {
			t.Errorf("the webhook is asked in %q: %v", review.APIVersion, err)
		}
		review.Status = authenticationv1.TokenReviewStatus{}
		if name, ok := strings.CutPrefix(review.Spec.Token, "badge-of-"); ok {
			review.Status.Authenticated = true
			review.Status.User = authenticationv1.UserInfo{Username: name, UID: "9", Groups: []string{"visitors"}, Extra: map[string]authenticationv1.ExtraValue{"floor": {"3"}}}
		}
		w.Header().Set("Content-Type", jsonType)
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(d.Close)
	return d
}

// kubeconfig says where the webhook is.
func (d *desk) kubeconfig() string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Config
clusters: [{name: desk, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: server, user: {}}]
contexts: [{name: desk, context: {cluster: desk, user: server}}]
current-context: desk
`, d.URL+"/who", base64.StdEncoding.EncodeToString(certificateOf(d.Server)))
}

// A file has the tokens of some; a webhook is asked about the others.
func TestTokenFileAndWebhook(t *testing.T) {
	needsDiscovery(t)
	d := newDesk(t)
	file := write(t, "tokens.csv", "first-token,carol,7,\"staff,cooks\"\nsecond-token,dan,8\n")
	s := serve(t, against, prefix(), "--token-auth-file="+file,
		"--authentication-token-webhook-config-file="+write(t, "webhook.yaml", d.kubeconfig()), "--authentication-token-webhook-version=v1")
	admin, stranger := newKubectl(t, s), newStranger(t, s)
	admin.ok("create", "rolebinding", "staff", "--clusterrole=edit", "--group=staff")
	admin.ok("create", "rolebinding", "visitors", "--clusterrole=view", "--group=visitors")

	carol := kubectlAs(t, s, bearing(s, "first-token"))
	carol.says([]string{"carol", "[staff cooks system:authenticated]", "7"}, "auth", "whoami")
	carol.succeeds("configmap/menu created", "create", "configmap", "menu")
	kubectlAs(t, s, bearing(s, "second-token")).fails([]string{`User "dan" cannot list resource "configmaps" in API group "" in the namespace "default"`}, "get", "configmaps")
	if n := d.asked.Load(); n != 0 {
		t.Errorf("the webhook is asked %d times about tokens of the file", n)
	}
	eve := kubectlAs(t, s, bearing(s, "badge-of-eve"))
	eve.says([]string{"eve", "[visitors system:authenticated]", "Extra: floor", "[3]"}, "auth", "whoami")
	eve.says([]string{"menu"}, "get", "configmaps")
	eve.fails([]string{`configmaps "menu" is forbidden: User "eve" cannot delete resource "configmaps"`}, "delete", "configmap", "menu")
	if d.asked.Load() != 1 {
		t.Errorf("the webhook is asked %d times about one token", d.asked.Load())
	}
	for _, token := range []string{"third-token", "first-toke", "first-token,carol", "badge"} {
		stranger.refused(fmt.Sprintf("the token %q", token), token)
	}
	kubectlAs(t, s, bearing(s, "third-token")).fails([]string{loggedOut}, "get", "configmaps")
	// A token in the file can be exchanged while the server runs.
	swapFile(t, file, "other-token,carol,7,staff\n")
	eventually(t, soon, "the new token counts", func() bool {
		_, name := stranger.as("other-token")
		return name == "carol"
	})
	stranger.refused("the former token", "first-token")
}

// Requests without credentials are told whether the server is alive, and nothing else.
func TestAnonymous(t *testing.T) {
	needsDiscovery(t)
	s := serve(t, against, prefix())
	stranger := newStranger(t, s)
	for _, path := range []string{"/livez", "/readyz", "/healthz"} {
		if code, answer := stranger.ask(http.MethodGet, path, ""); code != http.StatusOK || answer != "ok" {
			t.Errorf("%s: %d: %s", path, code, answer)
		}
		// Wrong credentials are refused even where none are needed.
		for _, wrong := range []string{"Bearer nonsense", "Bearer a.b.c"} {
			if code, answer := stranger.ask(http.MethodGet, path, "", "Authorization", wrong); code != http.StatusUnauthorized || !strings.Contains(answer, `"reason":"Unauthorized"`) {
				t.Errorf("%s with %q: %d: %s", path, wrong, code, answer)
			}
		}
		if code, answer := stranger.ask(http.MethodGet, path, "", "Impersonate-User", "admin", "Impersonate-Group", "system:masters"); code != http.StatusForbidden {
			t.Errorf("%s as another user: %d: %s", path, code, answer)
		}
		if code, answer := stranger.ask(http.MethodPost, path, "{}"); code != http.StatusForbidden {
			t.Errorf("POST %s: %d: %s", path, code, answer)
		}
	}
	for _, path := range []string{
		"/", "/api", "/apis", "/api/v1", "/version", "/metrics", "/openapi/v2", "/openapi/v3", "/debug/pprof/", "/configz", "/statusz", "/nothing",
		"/livez/", "/livez/ping", "/readyz/etcd", "/readyz?verbose", "/livez/../api", "//livez", "/healthz/x",
		"/.well-known/openid-configuration", "/openid/v1/jwks", "/api/v1/namespaces", "/api/v1/namespaces/default/secrets", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
	} {
		code, answer := stranger.ask(http.MethodGet, path, "")
		if path == "/readyz?verbose" { // the path alone counts, as upstream has it
			if code != http.StatusOK {
				t.Errorf("%s: %d: %s", path, code, answer)
			}
			continue
		}
		if code != http.StatusUnauthorized || strings.Contains(answer, "anonymous") {
			t.Errorf("%s: %d: %.300s", path, code, answer)
		}
	}
	for _, resource := range []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"} {
		if code, answer := stranger.ask(http.MethodPost, "/apis/authorization.k8s.io/v1/"+resource, "{}"); code != http.StatusUnauthorized {
			t.Errorf("%s: %d: %s", resource, code, answer)
		}
	}
	stranger.refused("no token", "")
	// A certificate of another CA is no certificate.
	signer, err := launch.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	pair, err := signer.Client("admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	impostor := bearing(s, "")
	impostor.CertData, impostor.KeyData = pair.Cert, pair.Key
	kubectlAs(t, s, impostor).fails([]string{loggedOut}, "get", "namespaces")
}
