package server_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/espalier-dev/espalier/server"
	"github.com/espalier-dev/espalier/server/auth/authentication/certtest"
	"github.com/espalier-dev/espalier/server/etcdtest"
)

// hook is a webhook of an AuthorizationConfiguration.
func hook(name, kubeconfig, policy, condition string) string {
	text := fmt.Sprintf(`- type: Webhook
  name: %s
  webhook:
    timeout: 3s
    authorizedTTL: 1s
    unauthorizedTTL: 1s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: %s
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %s}
`, name, policy, kubeconfig)
	if condition != "" {
		text += "    matchConditions: [{expression: \"" + condition + "\"}]\n"
	}
	return text
}

const authorizers = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers:\n"

// nowhere is a kubeconfig of a webhook that does not answer.
func nowhere(t *testing.T) string {
	t.Helper()
	config := clientcmdapi.NewConfig()
	config.Clusters["webhook"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.Contexts["webhook"] = &clientcmdapi.Context{Cluster: "webhook"}
	config.CurrentContext = "webhook"
	content, err := clientcmd.Write(*config)
	if err != nil {
		t.Fatal(err)
	}
	return certtest.File(t, "nowhere.kubeconfig", content)
}

// Several webhooks are asked in their order, about what their conditions say. One that
// does not answer denies or has no opinion, as it is configured. A new file counts
// without a restart, and a wrong one does not.
func TestAuthorizationConfiguration(t *testing.T) {
	t.Parallel()
	var first, second atomic.Int64
	allowing, other := authorizationWebhook(t, &first), authorizationWebhook(t, &second)
	gone := nowhere(t)
	const onlyPaths, onlySecrets = "has(request.nonResourceAttributes)", "has(request.resourceAttributes) && request.resourceAttributes.resource == 'secrets'"
	rbac := "- {type: RBAC, name: rbac}\n"
	file := certtest.File(t, "authorization.yaml", []byte(authorizers+hook("closed", gone, "Deny", onlySecrets)+hook("paths", allowing, "NoOpinion", onlyPaths)+rbac+hook("rest", other, "NoOpinion", "")))
	r := start(t, func(o *server.Options) { o.Authorization.ConfigFile = file })
	somebody, master := r.member(t, "gardeners"), r.member(t, "system:masters")
	if code, body := get(t, somebody, r.url+"/metrics"); code != http.StatusOK || first.Load() != 1 || second.Load() != 0 {
		t.Errorf("what the first webhook allows: %d after %d and %d questions: %.200s", code, first.Load(), second.Load(), body)
	}
	if code, body := get(t, somebody, r.url+"/api/v1/namespaces"); code != http.StatusForbidden || first.Load() != 1 || second.Load() != 1 {
		t.Errorf("what nobody allows: %d after %d and %d questions: %s", code, first.Load(), second.Load(), body)
	}
	// As kube-apiserver answers: the decision of the webhook is unknown.
	if code, body := get(t, somebody, r.url+"/api/v1/secrets"); code != http.StatusInternalServerError || second.Load() != 1 {
		t.Errorf("what a webhook that does not answer denies: %d: %s", code, body)
	}
	if code, body := get(t, master, r.url+"/api/v1/secrets"); code != http.StatusOK {
		t.Errorf("an administrator: %d: %s", code, body)
	}
	if code, _ := get(t, r.stranger(t), r.url+"/livez"); code != http.StatusOK {
		t.Errorf("/livez for a stranger: %d", code)
	}
	for _, wrong := range []string{
		"nonsense",
		authorizers + "- {type: AlwaysAllow, name: alwaysallow}\n" + rbac,
		authorizers + hook("paths", allowing, "NoOpinion", ""), // RBAC is gone
		authorizers + rbac + hook("paths", "/nowhere/at/all", "NoOpinion", ""),
	} {
		put(t, file, wrong)
	}
	if code, _ := get(t, somebody, r.url+"/metrics"); code != http.StatusOK {
		t.Errorf("after wrong files: %d", code)
	}
	put(t, file, authorizers+rbac)
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		code, _ := get(t, somebody, r.url+"/metrics")
		if code == http.StatusForbidden {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the new file does not count: %d", code)
		}
	}
}

// A webhook call that fails, and denies on failure, is in the audit log though no policy
// asks for it. The client does not learn the address of the webhook.
func TestRefusalsByErrorAreRecorded(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "audit.log")
	const onlyMaps = "has(request.resourceAttributes) && request.resourceAttributes.resource == 'configmaps'"
	file := certtest.File(t, "authorization.yaml", []byte(authorizers+hook("closed", nowhere(t), "Deny", onlyMaps)+"- {type: RBAC, name: rbac}\n"))
	r := start(t, func(o *server.Options) {
		o.Authorization.ConfigFile = file
		o.RecordAudit()
		o.Audit.LogOptions.Path = log
	})
	somebody := r.member(t, "gardeners")
	code, body := get(t, somebody, r.url+"/api/v1/configmaps")
	if code != http.StatusInternalServerError || strings.Contains(body, "127.0.0.1:1") || !strings.Contains(body, "closed") {
		t.Errorf("%d: %s", code, body)
	}
	review := `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","spec":{"resourceAttributes":{"verb":"list","resource":"configmaps"}}}`
	resp, err := somebody.Post(r.url+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", "application/json", strings.NewReader(review))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusCreated || strings.Contains(string(answer), "127.0.0.1:1") || !strings.Contains(string(answer), "closed") {
		t.Errorf("a review: %s: %v: %s", resp.Status, err, answer)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(text), "\n"); lines != 1 || !strings.Contains(string(text), `"requestURI":"/api/v1/configmaps"`) || !strings.Contains(string(text), `"code":500`) {
		t.Errorf("the log has\n%s", text)
	}
}

// What a configuration names may appear later than the configuration itself.
func TestAuthorizationReloadIsRetried(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	content, err := os.ReadFile(authorizationWebhook(t, &asked))
	if err != nil {
		t.Fatal(err)
	}
	later := filepath.Join(t.TempDir(), "later.kubeconfig")
	const rbac = "- {type: RBAC, name: rbac}\n"
	file := certtest.File(t, "authorization.yaml", []byte(authorizers+rbac))
	log := etcdtest.Capture(t)
	r := start(t, func(o *server.Options) { o.Authorization.ConfigFile = file })
	put(t, file, authorizers+rbac+hook("late", later, "NoOpinion", ""))
	until := func(what string, done func() bool) {
		t.Helper()
		for deadline := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal(what)
			}
		}
	}
	until("the new file is not read", func() bool {
		return strings.Contains(log.String(), "Failed to reload the authorization configuration")
	})
	put(t, later, string(content))
	somebody := r.member(t, "gardeners")
	until("the file is not read again", func() bool {
		code, _ := get(t, somebody, r.url+"/metrics")
		return code == http.StatusOK
	})
}

// put replaces a file.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// What is wrong with the file is said before the server starts.
func TestAuthorizationConfigurationIsValidated(t *testing.T) {
	var asked atomic.Int64
	kubeconfig := authorizationWebhook(t, &asked)
	good := hook("one", kubeconfig, "Deny", "")
	for _, test := range []struct{ text, want string }{
		{authorizers + good, ""},
		{authorizers, "at least one authorization mode must be defined"},
		{"kind: Nothing", "give an AuthorizationConfiguration of apiserver.config.k8s.io/v1"},
		{authorizers + good + good, `authorizers[1].name: Duplicate value: "one"`},
		{authorizers + "- {type: Node, name: node}", `authorizers[0].type: Unsupported value: "Node": supported values: "RBAC", "Webhook"`},
		{authorizers + "- {type: AlwaysAllow, name: alwaysallow}", "bind the group system:authenticated to the ClusterRole cluster-admin"},
		{authorizers + "- {type: RBAC, name: roles}", "expected name rbac for authorizer RBAC instead of roles"},
		{authorizers + strings.Replace(good, "failurePolicy: Deny", "failurePolicy: Maybe", 1), "failurePolicy"},
		{authorizers + hook("one", kubeconfig, "Deny", "request.nothing"), "undefined field 'nothing'"},
		{authorizers + strings.Replace(good, "{type: KubeConfigFile, kubeConfigFile: "+kubeconfig+"}", "{type: InClusterConfig}", 1), "give a KubeConfigFile"},
		{authorizers + hook("one", "/nowhere/at/all", "Deny", ""), "/nowhere/at/all"},
	} {
		o := server.NewOptions()
		o.Authorization.ConfigFile = certtest.File(t, "authorization.yaml", []byte(test.text))
		err := o.Validate()
		said := ""
		for line := range strings.Lines(fmt.Sprint(err)) {
			if strings.HasPrefix(line, "--authorization-config") {
				said += line
			}
		}
		if (test.want == "") != (said == "") || !strings.Contains(said, test.want) {
			t.Errorf("%s\nsays %q, not %q", test.text, said, test.want)
		}
	}
}
