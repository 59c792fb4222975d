package scenarios

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
)

const auditPolicy = `
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- {level: None, users: ["system:apiserver"]}
- level: Metadata
  resources: [{group: "", resources: [secrets]}]
- level: Request
  resources: [{group: harbour.example.com}]
- level: RequestResponse
`

// A journal is the server's audit log.
type journal struct {
	t    *testing.T
	path string
}

// events are those of the log so far.
func (j journal) events() (events []auditv1.Event) {
	j.t.Helper()
	file, err := os.Open(j.path)
	if err != nil {
		j.t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var event auditv1.Event
		decode(j.t, lines.Bytes(), &event)
		events = append(events, event)
	}
	if err := lines.Err(); err != nil {
		j.t.Fatal(err)
	}
	return events
}

// find waits for an event about something: "alice create boats team-a/swan 201".
func (j journal) find(want string) (found auditv1.Event) {
	j.t.Helper()
	var all []string
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { // an event may be written after the answer
		all = nil
		for _, e := range j.events() {
			if e.ObjectRef == nil || e.ResponseStatus == nil {
				continue
			}
			text := fmt.Sprintf("%s %s %s %s/%s %d", e.User.Username, e.Verb, e.ObjectRef.Resource, e.ObjectRef.Namespace, e.ObjectRef.Name, e.ResponseStatus.Code)
			if text == want {
				return e
			}
			all = append(all, text)
		}
	}
	j.t.Fatalf("no event %q among\n%s", want, strings.Join(all, "\n"))
	return found
}

// The audit log says who did what, as whom, whether they might and why; of secrets it has no more than that they were there.
func TestAudit(t *testing.T) {
	needsDiscovery(t)
	j := journal{t, filepath.Join(t.TempDir(), "audit.log")}
	s := serve(t, against, prefix(), "--audit-policy-file="+write(t, "policy.yaml", auditPolicy), "--audit-log-path="+j.path)
	admin, alice := newKubectl(t, s), person(t, s, "alice", "developers")
	admin.install("boats.yaml", boats)
	if out, code := admin.feed(fleetRoles, "apply", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	admin.ok("create", "namespace", "team-a")
	admin.ok("create", "rolebinding", "alice", "--clusterrole=edit", "--user=alice", "-n", "team-a")
	alice.succeeds("No resources found", "get", "boats", "-n", "team-a")
	secretsInJournal(t, j, alice)

	// A custom resource, with an unknown field.
	body := strings.Replace(boatIn("team-a", "swan", "alice"), `"owner"`, `"sail":"torn","owner"`, 1)
	if out, code := alice.feed(body, "create", "--validate=warn", "-f", "-"); code != 0 {
		t.Fatal(out)
	}
	e := j.find("alice create boats team-a/swan 201")
	if e.Level != auditv1.LevelRequest || e.RequestObject == nil || e.ResponseObject != nil || !strings.Contains(string(e.RequestObject.Raw), `"owner":"alice"`) {
		t.Errorf("the boat at level %s: %v", e.Level, e)
	}
	if e.Annotations["espalier.dev/pruned-fields"] != "spec.sail" || e.Annotations["authorization.k8s.io/decision"] != "allow" ||
		e.Annotations["authorization.k8s.io/reason"] != `RBAC: allowed by RoleBinding "alice/team-a" of ClusterRole "edit" to User "alice"` {
		t.Errorf("annotations of the boat: %q", e.Annotations)
	}
	if e.ImpersonatedUser != nil || strings.Join(e.User.Groups, ",") != "developers,system:authenticated" || e.ObjectRef.APIGroup != "harbour.example.com" || e.ObjectRef.APIVersion != "v1" ||
		!strings.HasPrefix(e.UserAgent, "kubectl") || len(e.SourceIPs) == 0 || e.AuditID == "" || e.Stage != auditv1.StageResponseComplete {
		t.Errorf("the boat's event: %+v", e)
	}

	// A user without the right.
	alice.fails([]string{"Forbidden"}, "get", "configmap", "none", "-n", "default")
	e = j.find("alice get configmaps default/none 403")
	if e.Annotations["authorization.k8s.io/decision"] != "forbid" || e.ResponseStatus.Reason != "Forbidden" {
		t.Errorf("a refusal: %q, %v", e.Annotations, e.ResponseStatus)
	}
	// A user who impersonates another one.
	admin.ok("create", "configmap", "plan", "--from-literal=where=north", "-n", "team-a", "--as=alice", "--as-group=developers")
	e = j.find("admin create configmaps team-a/plan 201")
	if e.ImpersonatedUser == nil || e.ImpersonatedUser.Username != "alice" || strings.Join(e.ImpersonatedUser.Groups, ",") != "developers,system:authenticated" {
		t.Errorf("impersonated is %+v", e.ImpersonatedUser)
	}
	if e.Level != auditv1.LevelRequestResponse || e.RequestObject == nil || e.ResponseObject == nil || !strings.Contains(string(e.ResponseObject.Raw), `"where":"north"`) ||
		!strings.Contains(e.Annotations["authorization.k8s.io/reason"], `to User "alice"`) {
		t.Errorf("the config map's event: %+v", e)
	}
	// An invalid token.
	newStranger(t, s).refused("an invalid token", "nonsense")
	e = j.find(" create selfsubjectreviews / 401")
	if e.ResponseStatus.Reason != "Unauthorized" {
		t.Errorf("a stranger's event: %+v", e)
	}
}

// secretsInJournal lets alice do everything with a secret that one can do, and looks for its content.
func secretsInJournal(t *testing.T, j journal, alice *kubectl) {
	t.Helper()
	words := []string{"open-sesame", "close-sesame"}
	alice.ok("create", "secret", "generic", "cave", "--from-literal=word="+words[0], "-n", "team-a")
	alice.ok("get", "secrets", "-n", "team-a", "-o", "yaml")
	alice.ok("patch", "secret", "cave", "-p", `{"stringData":{"word":"`+words[1]+`"}}`, "-n", "team-a")
	alice.ok("delete", "secret", "cave", "-n", "team-a")
	for _, want := range []string{"create secrets team-a/cave 201", "list secrets team-a/ 200", "patch secrets team-a/cave 200", "delete secrets team-a/cave 200"} {
		e := j.find("alice " + want)
		if e.Level != auditv1.LevelMetadata || e.RequestObject != nil || e.ResponseObject != nil {
			t.Errorf("%s at level %s: %v, %v", want, e.Level, e.RequestObject, e.ResponseObject)
		}
	}
	log := readFile(t, j.path)
	for _, word := range words {
		if containsAny(log, word, base64.StdEncoding.EncodeToString([]byte(word))) {
			t.Errorf("the log has the secret %q", word)
		}
	}
}
