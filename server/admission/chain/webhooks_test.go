package chain

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

const things = `
spec:
  group: test.dev
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.replicas, statusReplicasPath: .status.replicas}}
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              size: {type: integer}
              replicas: {type: integer}
              name: {type: string}
              ratio: {type: number}
              inner:
                type: object
                properties:
                  mode: {type: string, default: fast}
                  note: {type: string}
          status: {type: object, properties: {replicas: {type: integer}}}
  - name: v2
    served: true
    storage: false
    schema: *schema
`

const path = "/apis/test.dev/v1/namespaces/default/things"

func thing(name, spec string) string {
	return `{"apiVersion":"test.dev/v1","kind":"Thing","metadata":{"name":"` + name + `"},"spec":` + spec + `}`
}

func startThings(t testing.TB, change ...func(*Options)) *env {
	t.Helper()
	e := start(t, change...)
	e.define(things)
	return e
}

func TestWhatWebhooksAddIsNormalized(t *testing.T) {
	e := startThings(t)
	if !e.chain.Idle() {
		t.Fatal("nothing is configured, and the chain is not idle")
	}
	h := hooked(t, patches(`[{"op":"add","path":"/spec/unspecified","value":{"x":1}},{"op":"add","path":"/spec/inner","value":{"note":"n","alien":true}},{"op":"add","path":"/metadata/labels","value":{"by":"hook"}}]`))
	e.mutating("adds", h)
	if e.chain.Idle() {
		t.Fatal("a webhook is configured, and the chain is idle")
	}
	made := e.Do("POST", path, thing("a", `{"size":3,"ratio":1.5}`)).Is(201).
		Has("spec", map[string]any{"inner": map[string]any{"mode": "fast", "note": "n"}, "ratio": 1.5, "size": 3}).Has("metadata.labels.by", "hook").Has("metadata.generation", 1)
	warnings := strings.Join(made.Warnings, "\n")
	for _, field := range []string{"spec.unspecified", "spec.inner.alien"} {
		if !strings.Contains(warnings, field) {
			t.Errorf("nobody is told that %s is not stored: %q", field, warnings)
		}
	}
	e.Do("GET", path+"/a", "").Is(200).Has("spec", made.At("spec"))
	annotations := *e.audited.Load()
	if a := annotations["mutation.webhook.admission.k8s.io/round_0_index_0"]; !strings.Contains(a, `"mutated":true`) {
		t.Errorf("the audit annotations are %v", annotations)
	}
}

func TestWebhooksSeeTheObject(t *testing.T) {
	e := startThings(t)
	stored := e.Do("POST", path, thing("a", `{"size":9007199254740993,"ratio":1.0,"name":"<ü>"}`)).Is(201)
	h := hooked(t, nil)
	e.validating("looks", h)
	updated := e.Patch("merge", path+"/a", `{"spec":{"size":4}}`).Is(200)
	seen := h.last(t)
	if !reflect.DeepEqual(seen["oldObject"], stored.Object) {
		t.Errorf("the old object is\n%v\nnot\n%v", seen["oldObject"], stored.Object)
	}
	now := seen["object"].(map[string]any)
	if !reflect.DeepEqual(now["spec"], updated.At("spec")) || now["kind"] != "Thing" || now["apiVersion"] != "test.dev/v1" {
		t.Errorf("the object is %v", now)
	}
	e.Do("DELETE", path+"/a", "").Is(200)
	if seen := h.last(t); seen["operation"] != "DELETE" || seen["object"] != nil || seen["oldObject"].(map[string]any)["kind"] != "Thing" {
		t.Errorf("on delete: %v", seen)
	}
	if n := h.calls(); n != 2 {
		t.Errorf("the webhook has been called %d times", n)
	}
}

func TestValidatingWebhookSpeaks(t *testing.T) {
	e := startThings(t)
	e.validating("no", hooked(t, func(_, response map[string]any) {
		response["allowed"] = false
		response["status"] = map[string]any{"message": "not today", "code": 403}
		response["warnings"] = []string{"mind the gap"}
		response["auditAnnotations"] = map[string]string{"why": "weather"}
	}))
	a := e.Do("POST", path, thing("a", `{}`)).Is(403).Mentions(`admission webhook "no.test.dev" denied the request: not today`)
	if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "mind the gap") {
		t.Errorf("the warnings are %q", a.Warnings)
	}
	if got := (*e.audited.Load())["no.test.dev/why"]; got != "weather" {
		t.Errorf("the audit annotations are %v", *e.audited.Load())
	}
	e.Do("GET", path+"/a", "").Is(404)
}

func TestDeadWebhook(t *testing.T) {
	e := startThings(t)
	dead := hooked(t, nil)
	dead.Close()
	e.mutating("dead", dead, func(w *admissionregistration.MutatingWebhook) {
		w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"strict": "yes"}}
	})
	e.mutating("ignored", dead, func(w *admissionregistration.MutatingWebhook) { w.FailurePolicy = new(admissionregistration.Ignore) })
	e.Do("POST", path, thing("a", `{"size":1}`)).Is(201).Has("spec.size", 1)
	e.Do("POST", path, strings.Replace(thing("b", `{}`), `"name":"b"`, `"name":"b","labels":{"strict":"yes"}`, 1)).Is(500).Mentions("failed calling webhook")
}

// References to services are stored, with a warning that says what to write
// instead; calls fail. Admission and conversion do the same.
func TestServices(t *testing.T) {
	e := startThings(t)
	const service = `{"service":{"namespace":"default","name":"kubernetes","port":443}}`
	warning := func(at string) string {
		return at + ".service: this server does not route requests to Services, so every call of this webhook fails; set " + at + ".url to an https URL at which this server reaches the webhook"
	}
	for kind, plural := range map[string]string{"MutatingWebhookConfiguration": "mutatingwebhookconfigurations", "ValidatingWebhookConfiguration": "validatingwebhookconfigurations"} {
		body := `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"` + kind + `","metadata":{"name":"service"},"webhooks":[{"name":"service.test.dev","clientConfig":` + service + `,
			"admissionReviewVersions":["v1"],"sideEffects":"None","rules":[{"apiGroups":["test.dev"],"apiVersions":["v1"],"operations":["CREATE"],"resources":["things"]}]}]}`
		e.Do("POST", "/apis/admissionregistration.k8s.io/v1/"+plural, body).Is(201).Warns(warning("webhooks[0].clientConfig"))
	}
	apitest.Eventually(t, func() bool { return !e.chain.Idle() })
	e.Do("POST", path, thing("a", `{}`)).Is(500).Mentions("this server does not route requests to Services, so it cannot call default/kubernetes at port 443")
	e.Do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"boxes.test.dev"},
		"spec":{"group":"test.dev","scope":"Cluster","names":{"plural":"boxes","kind":"Box"},
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":`+service+`}},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}},{"name":"v2","served":true,"storage":false,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`).
		Is(201).Warns(warning("spec.conversion.webhook.clientConfig"))
}

func TestLyingWebhooks(t *testing.T) {
	e := startThings(t)
	huge := strings.Repeat("x", 8<<20)
	for name, c := range map[string]struct {
		respond func(request, response map[string]any)
		code    int
		says    string
	}{
		"namespace": {patches(`[{"op":"replace","path":"/metadata/namespace","value":"kube-system"}]`), 400, "the namespace of the provided object does not match the namespace sent on the request"},
		"kind":      {patches(`[{"op":"replace","path":"/kind","value":"Other"}]`), 500, "its kind was changed to test.dev/v1, Kind=Other"},
		"group":     {patches(`[{"op":"replace","path":"/apiVersion","value":"v1"}]`), 500, "its kind was changed to /v1, Kind=Thing"},
		"version":   {patches(`[{"op":"replace","path":"/apiVersion","value":"test.dev/v9"}]`), 500, "is invalid"},
		"metadata":  {patches(`[{"op":"replace","path":"/metadata","value":[1]}]`), 500, "metadata is not an object"},
		"labels":    {patches(`[{"op":"add","path":"/metadata/labels","value":7}]`), 500, "metadata.labels is not an object"},
		"spec":      {patches(`[{"op":"replace","path":"/spec","value":"text"}]`), 422, `spec in body must be of type object`},
		"list":      {patches(`[{"op":"replace","path":"","value":[]}]`), 500, ""},
		"response":  {func(_, response map[string]any) { response["uid"] = "other" }, 500, "expected response.uid="},
		"huge":      {func(_, response map[string]any) { response["warnings"] = []string{huge} }, 500, "the answer of the webhook is longer than"},
		"version 2": {patches(`[{"op":"replace","path":"/apiVersion","value":"test.dev/v2"}]`), 201, ""},
	} {
		t.Run(name, func(t *testing.T) {
			e := *e
			e.TB = t
			id := strings.ReplaceAll(name, " ", "-")
			h := hooked(t, c.respond)
			e.mutating(id, h, func(w *admissionregistration.MutatingWebhook) {
				w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"lie": id}}
			})
			body := strings.Replace(thing(id, `{"size":1}`), `"name":`, `"labels":{"lie":"`+id+`"},"name":`, 1)
			// The plugin has a cache of webhooks of its own, which may be later than the chain's.
			apitest.Eventually(t, func() bool {
				e.Do("POST", path+"?dryRun=All", body)
				h.mu.Lock()
				defer h.mu.Unlock()
				return len(h.reviews) > 0
			})
			a := e.Do("POST", path, body).Is(c.code)
			if c.says != "" {
				a.Mentions(c.says)
			}
			if c.code != 201 {
				e.Do("GET", path+"/"+id, "").Is(404)
			} else {
				e.Do("GET", path+"/"+id, "").Is(200).Has("apiVersion", "test.dev/v1")
			}
		})
	}
}

// Clients and webhooks may set the name of a new object, but not its uid. Neither
// changes later.
func TestWebhooksAndIdentity(t *testing.T) {
	e := startThings(t)
	e.mutating("names", hooked(t, func(request, response map[string]any) {
		if request["operation"] == "CREATE" {
			patches(`[{"op":"add","path":"/metadata/uid","value":"mine"}]`)(request, response)
		} else {
			patches(`[{"op":"replace","path":"/metadata/uid","value":"mine"}]`)(request, response)
		}
	}))
	made := e.Do("POST", path, thing("a", `{}`)).Is(201)
	if uid, _ := made.At("metadata.uid").(string); uid == "mine" || uid == "" {
		t.Errorf("the uid is %q", uid)
	}
	e.Patch("merge", path+"/a", `{"spec":{"size":1}}`).Is(422).Mentions("metadata.uid: Invalid value: \"mine\": field is immutable")
	e.Do("GET", path+"/a", "").Is(200).Has("metadata.uid", made.At("metadata.uid")).Has("metadata.generation", 1)
}

// Webhooks that others than the operator may configure are called without the operator's
// credentials.
func TestWebhooksWithoutCredentials(t *testing.T) {
	dir := t.TempDir()
	kubeconfig, file := filepath.Join(dir, "kubeconfig"), filepath.Join(dir, "admission.yaml")
	must(t, os.WriteFile(kubeconfig, []byte("apiVersion: v1\nkind: Config\nusers: [{name: '*', user: {token: secret}}]\n"), 0o600))
	must(t, os.WriteFile(file, []byte(`apiVersion: apiserver.config.k8s.io/v1
kind: AdmissionConfiguration
plugins:
- name: MutatingAdmissionWebhook
  configuration: {apiVersion: apiserver.config.k8s.io/v1, kind: WebhookAdmissionConfiguration, kubeConfigFile: `+kubeconfig+`}
`), 0o600))
	for anonymous, want := range map[bool]string{false: "Bearer secret", true: ""} {
		e := startThings(t, func(o *Options) { o.Flags, o.Anonymous = NewFlags(), anonymous; o.Flags.ConfigFile = file })
		h := hooked(t, nil)
		e.mutating("one", h)
		e.Do("POST", path, thing("a", `{}`)).Is(201)
		if got := h.headers[0].Get("Authorization"); got != want {
			t.Errorf("anonymous %t: called with %q", anonymous, got)
		}
	}
}

func TestWebhookThatIsNoWebhook(t *testing.T) {
	e := startThings(t)
	h := &hook{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))}
	t.Cleanup(h.Close)
	e.mutating("html", h)
	e.Do("POST", path, thing("a", `{}`)).Is(500).Mentions("failed calling webhook")
}

// The answer of a service that is not a webhook goes to the log only: users could read with it
// what only the server reaches.
func TestErrorsOfWebhooksAreConcealed(t *testing.T) {
	e := startThings(t)
	h := &hook{Server: httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "internal dashboard", http.StatusForbidden)
	}))}
	t.Cleanup(h.Close)
	e.mutating("dashboard", h)
	a := e.Do("POST", path, thing("a", `{}`)).Is(500).Mentions("failed calling webhook")
	if strings.Contains(string(a.Body), "internal dashboard") {
		t.Errorf("%s", a.Body)
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	e := startThings(t)
	target := hooked(t, nil)
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		h := &hook{}
		h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			h.headers = append(h.headers, req.Header)
			http.Redirect(w, req, target.URL, code)
		}))
		t.Cleanup(h.Close)
		name := http.StatusText(code)
		name = strings.ToLower(strings.ReplaceAll(name, " ", "-"))
		e.validating(name, h, func(w *admissionregistration.ValidatingWebhook) {
			w.ObjectSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"by": name}}
		})
		e.Do("POST", path, strings.Replace(thing("a", `{}`), `"name":`, `"labels":{"by":"`+name+`"},"name":`, 1)).Is(500).
			Mentions("which is not followed")
		if len(h.headers) != 1 || h.headers[0].Get("Authorization") != "" {
			t.Errorf("%d: the headers are %v", code, h.headers)
		}
	}
	if n := target.calls(); n != 0 {
		t.Errorf("the target of redirects has been called %d times", n)
	}
}

func TestSlowWebhook(t *testing.T) {
	t.Parallel()
	e := startThings(t)
	release := make(chan struct{})
	h := hooked(t, func(_, _ map[string]any) { <-release })
	t.Cleanup(func() { close(release) }) // before the webhook is closed
	e.mutating("slow", h, func(w *admissionregistration.MutatingWebhook) {
		w.TimeoutSeconds = new(int32(1))
	})
	begin := time.Now()
	e.Do("POST", path, thing("a", `{}`)).Is(500).Mentions("context deadline exceeded")
	if d := time.Since(begin); d >= 10*time.Second { // the default
		t.Errorf("a timeout of 1 s took %v", d)
	}
	e.mutating("slower", h)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	begin = time.Now()
	err := e.chain.Admit(ctx, attributes(thing("b", `{}`), ""), newScope())
	if d := time.Since(begin); err == nil || d >= 10*time.Second {
		t.Errorf("the caller has 300 ms; after %v: %v", d, err)
	}
}

func TestEquivalentVersions(t *testing.T) {
	e := startThings(t)
	h := hooked(t, patches(`[{"op":"add","path":"/spec/name","value":"from v2"},{"op":"add","path":"/spec/unknown","value":1}]`))
	e.mutating("second", h, func(w *admissionregistration.MutatingWebhook) {
		w.Rules = []admissionregistration.RuleWithOperations{about("v2", "things")}
	})
	e.Do("POST", path, thing("a", `{"size":1}`)).Is(201).Has("apiVersion", "test.dev/v1").Has("spec", map[string]any{"name": "from v2", "size": 1})
	if seen := h.last(t); seen["object"].(map[string]any)["apiVersion"] != "test.dev/v2" {
		t.Errorf("the webhook has seen %v", seen["object"])
	}
}

func TestReinvocation(t *testing.T) {
	e := startThings(t)
	first := hooked(t, func(request, response map[string]any) {
		spec := request["object"].(map[string]any)["spec"].(map[string]any)
		if inner, _ := spec["inner"].(map[string]any); inner["mode"] == "fast" && spec["name"] == nil {
			patches(`[{"op":"add","path":"/spec/name","value":"seen"}]`)(request, response)
		}
	})
	e.mutating("a", first, func(w *admissionregistration.MutatingWebhook) {
		w.ReinvocationPolicy = new(admissionregistration.IfNeededReinvocationPolicy)
	})
	e.mutating("b", hooked(t, patches(`[{"op":"add","path":"/spec/inner","value":{"note":"x"}}]`)))
	e.Do("POST", path, thing("a", `{}`)).Is(201).Has("spec", map[string]any{"inner": map[string]any{"mode": "fast", "note": "x"}, "name": "seen"})
	if n := first.calls(); n != 2 {
		t.Errorf("the first webhook has been called %d times", n)
	}
}

func TestScalePassesWebhooks(t *testing.T) {
	e := startThings(t)
	e.Do("POST", path, thing("a", `{"replicas":1}`)).Is(201)
	h := hooked(t, patches(`[{"op":"replace","path":"/spec/replicas","value":5}]`))
	e.mutating("scales", h, func(w *admissionregistration.MutatingWebhook) {
		w.Rules = []admissionregistration.RuleWithOperations{about("v1", "things/scale")}
	})
	e.Patch("merge", path+"/a/scale", `{"spec":{"replicas":3}}`).Is(200).Has("spec.replicas", 5)
	if seen := h.last(t)["object"].(map[string]any); seen["kind"] != "Scale" {
		t.Errorf("the webhook has seen %v", seen)
	}
	e.Do("GET", path+"/a", "").Is(200).Has("spec.replicas", 5)
}

func TestDefinitionsPassWebhooks(t *testing.T) {
	e := start(t)
	h := hooked(t, patches(`[{"op":"add","path":"/spec/unknown","value":1},{"op":"add","path":"/spec/names/shortNames","value":["wd"]}]`))
	e.mutating("definitions", h)
	text, err := json.Marshal(map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "widgets.test.dev"},
		"spec": map[string]any{"group": "test.dev", "scope": "Cluster", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object"}}}}},
	})
	must(t, err)
	made := e.Do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", string(text)).Is(201).
		Has("spec.names.shortNames", []string{"wd"}).Has("spec.names.singular", "widget")
	if made.At("spec.unknown") != nil {
		t.Errorf("what the webhook has added is stored: %s", made.Body)
	}
	if seen := h.last(t)["object"].(map[string]any); seen["kind"] != "CustomResourceDefinition" {
		t.Errorf("the webhook has seen %v", seen)
	}
}
