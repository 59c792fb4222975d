package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/espalier-dev/espalier/server"
)

// Without a policy the log has who changed what, who saw secrets and who was denied:
// never contents, and nothing of what clients do all the time.
func TestAuditByDefault(t *testing.T) {
	log := filepath.Join(t.TempDir(), "logs", "audit.log")
	r := start(t, func(o *server.Options) {
		o.RecordAudit()
		if o.Audit.LogOptions.Path != "-" {
			t.Errorf("the audit log is %q", o.Audit.LogOptions.Path)
		}
		o.Audit.LogOptions.Path = log
	})
	client, err := kubernetes.NewForConfig(r.config(t))
	if err != nil {
		t.Fatal(err)
	}
	secrets := client.CoreV1().Secrets("default")
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "door"}, StringData: map[string]string{"word": "sesame"}}
	if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := secrets.Get(t.Context(), "door", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	nobody, stranger := r.member(t, "nobodies"), r.stranger(t)
	for _, path := range []string{"/api/v1/namespaces/default/configmaps?limit=7", "/metrics", "/livez"} {
		get(t, nobody, r.url+path)
		get(t, stranger, r.url+path)
	}
	pretend(t, nobody, r.url+"/api/v1/namespaces/default/endpoints")
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("sesame")) || bytes.Contains(text, []byte("c2VzYW1l")) {
		t.Errorf("the log has contents:\n%s", text)
	}
	var got []string
	for line := range bytes.Lines(text) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if e.Level != auditv1.LevelMetadata || e.Stage != auditv1.StageResponseComplete || e.AuditID == "" || len(e.SourceIPs) != 1 || e.UserAgent == "" || e.RequestReceivedTimestamp.IsZero() {
			t.Errorf("an event lacks something: %s", line)
		}
		path, _, _ := strings.Cut(e.RequestURI, "fieldManager")
		got = append(got, strings.Join([]string{e.User.Username, e.Verb, path, http.StatusText(int(e.ResponseStatus.Code)), e.ResponseStatus.Message}, " "))
	}
	want := []string{
		"alice create /api/v1/namespaces/default/secrets Created ",
		"alice get /api/v1/namespaces/default/secrets/door OK ",
		`alice list /api/v1/namespaces/default/configmaps?limit=7 Forbidden User "alice" cannot list resource "configmaps" in API group ""`,
		`alice get /metrics Forbidden User "alice" cannot get path "/metrics"`,
		`alice list /api/v1/namespaces/default/endpoints Forbidden User "alice" cannot impersonate resource "users" in API group ""`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nand should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// What clients write all the time is not in the log. What only looks like it is: other
// resources of the group of reviews, who takes signs of life away, and who touches the
// leases by which the server's own parts take turns.
func TestAuditExemptsLittle(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	r := start(t, func(o *server.Options) {
		o.RecordAudit()
		o.Audit.LogOptions.Path = log
	})
	admin := r.member(t, "system:masters")
	const leases, events, reviews = "/apis/coordination.k8s.io/v1/namespaces/%s/leases", "/api/v1/namespaces/default/events", "/apis/authorization.k8s.io/v1/"
	lease := `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"mine"}}`
	ours, theirs := fmt.Sprintf(leases, "kube-system"), fmt.Sprintf(leases, "default")
	var want []string
	for _, one := range []struct {
		method, path, body string
		recorded           bool
	}{
		{http.MethodPost, theirs, lease, false},
		{http.MethodDelete, theirs + "/mine", "", true},
		{http.MethodPost, ours, lease, true},
		{http.MethodDelete, ours + "/mine", "", true},
		{http.MethodGet, ours, "", false},
		{http.MethodPost, events, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"e"},"involvedObject":{"namespace":"default"}}`, false},
		{http.MethodDelete, events, "", true},
		{http.MethodDelete, "/apis/events.k8s.io/v1/namespaces/default/events", "", true},
		{http.MethodPost, reviews + "selfsubjectaccessreviews", `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"nonResourceAttributes":{"verb":"get","path":"/"}}}`, false},
		{http.MethodPost, reviews + "widgets", "{}", true},
	} {
		req, err := http.NewRequestWithContext(t.Context(), one.method, r.url+one.path, strings.NewReader(one.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := admin.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= 300 && !strings.HasSuffix(one.path, "widgets") {
			t.Errorf("%s %s: %s", one.method, one.path, resp.Status)
		}
		if one.recorded {
			want = append(want, one.path)
		}
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range bytes.Lines(text) {
		var e auditv1.Event
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		got = append(got, e.RequestURI)
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the log has\n%s\nand should have\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// pretend sends a request that impersonates another user.
func pretend(t *testing.T, client *http.Client, url string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Impersonate-User", "bob")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusForbidden {
		t.Errorf("got %s", resp.Status)
	}
}

// The guide shows the policy as it is.
func TestGuideShowsTheAuditPolicy(t *testing.T) {
	policy, err := os.ReadFile("audit-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join("..", "docs", "guides", "production.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(guide, append([]byte("```yaml title=audit.yaml\n"), policy...)) {
		t.Error("docs/guides/production.md shows another policy than audit-policy.yaml")
	}
}
