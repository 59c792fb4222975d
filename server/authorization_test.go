package server_test

import (
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
)

// authorizationWebhook allows every user to read /metrics and has no opinion about other
// requests.
func authorizationWebhook(t *testing.T, asked *atomic.Int64) (kubeconfig string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		asked.Add(1)
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		path := review.Spec.NonResourceAttributes
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: path != nil && path.Path == "/metrics" && path.Verb == "get", Reason: "the webhook says so"}
		review.TypeMeta = metav1.TypeMeta{APIVersion: "authorization.k8s.io/v1", Kind: "SubjectAccessReview"}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(s.Close)
	config := clientcmdapi.NewConfig()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	config.Clusters["webhook"] = &clientcmdapi.Cluster{Server: s.URL, CertificateAuthorityData: authority}
	config.Contexts["webhook"] = &clientcmdapi.Context{Cluster: "webhook"}
	config.CurrentContext = "webhook"
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return certtest.File(t, "webhook.kubeconfig", content)
}

// Roles are asked first, and the webhook about what they do not allow; what
// neither allows is denied. A webhook that is gone denies nothing that roles allow.
func TestAuthorizationWebhook(t *testing.T) {
	var asked atomic.Int64
	file := authorizationWebhook(t, &asked)
	r := start(t, func(o *server.Options) {
		o.Authorization.Modes, o.Authorization.WebhookConfigFile = []string{"RBAC", "Webhook"}, file
	})
	somebody := r.member(t, "gardeners")
	if code, body := get(t, somebody, r.url+"/version"); code != http.StatusOK || asked.Load() != 0 {
		t.Errorf("what a role allows: %d, with %d questions to the webhook: %s", code, asked.Load(), body)
	}
	if code, body := get(t, somebody, r.url+"/metrics"); code != http.StatusOK || asked.Load() != 1 {
		t.Errorf("what the webhook allows: %d after %d questions: %.200s", code, asked.Load(), body)
	}
	if code, body := get(t, somebody, r.url+"/api/v1/namespaces"); code != http.StatusForbidden {
		t.Errorf("what nobody allows: %d %s", code, body)
	}
	before := asked.Load()
	if code, _ := get(t, r.member(t, "system:masters"), r.url+"/api/v1/namespaces"); code != http.StatusOK || asked.Load() != before {
		t.Errorf("an administrator: %d, with %d questions", code, asked.Load()-before)
	}
}
