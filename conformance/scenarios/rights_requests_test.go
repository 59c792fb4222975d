package scenarios

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// A rightsCaller sends requests as a user.
type rightsCaller struct {
	rightsUser
	client *http.Client
	base   string
}

// newRightsCaller returns a user with a certificate, with a token if it is a service account that is there, or impersonated.
func newRightsCaller(t *testing.T, s *launch.Server, u rightsUser, i int) rightsCaller {
	t.Helper()
	// The server adds this group to every authenticated user.
	said := slices.DeleteFunc(slices.Clone(u.groups), func(g string) bool { return g == "system:authenticated" })
	var config *rest.Config
	parts := strings.Split(u.name, ":")
	switch {
	case len(parts) == 4 && parts[3] == "robot":
		config = bearing(s, rightsToken(t, s, parts[2], parts[3]))
	case i%2 == 0 && len(parts) == 1:
		var err error
		if config, err = s.Client(u.name, said...); err != nil {
			t.Fatal(err)
		}
	default:
		config = rest.CopyConfig(s.Config)
		config.Impersonate = rest.ImpersonationConfig{UserName: u.name, Groups: said}
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return rightsCaller{u, client, s.URL}
}

// rightsToken makes a service account and a token for it.
func rightsToken(t *testing.T, s *launch.Server, namespace, name string) string {
	t.Helper()
	accounts := "/api/v1/namespaces/" + namespace + "/serviceaccounts"
	c := dial(t, s)
	post(t, c, accounts, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	answer, err := c.Expect(t.Context(), http.StatusCreated, http.MethodPost, accounts+"/"+name+"/token", []byte(`{"spec":{"expirationSeconds":3600}}`))
	if err != nil {
		t.Fatal(err)
	}
	var made authenticationv1.TokenRequest
	decode(t, answer, &made)
	return made.Status.Token
}

// A rightsAttempt is a question as a request.
type rightsAttempt struct {
	rightsQuestion
	caller             rightsCaller
	method, path, body string
	kind               string // of the body
	plain              bool   // whether what is asked for is there
	allowed            bool   // as it should be
}

var rightsMethods = map[string]string{
	"get": http.MethodGet, "list": http.MethodGet, "watch": http.MethodGet, "create": http.MethodPost, "update": http.MethodPut,
	"patch": http.MethodPatch, "delete": http.MethodDelete, "deletecollection": http.MethodDelete, "post": http.MethodPost, "put": http.MethodPut,
}

// attempt makes a request that asks nearly what q asks; the attempt's own question is what it asks. Nothing is written. The request need
// not make sense otherwise: rights come first.
func (r *rightsServer) attempt(c rightsCaller, q rightsQuestion) (rightsAttempt, bool) {
	method, ok := rightsMethods[q.verb]
	if !ok || (q.path == "") != slices.Contains(rightsVerbs, q.verb) && q.verb != "get" {
		return rightsAttempt{}, false // no request has this verb
	}
	if q.path != "" {
		return rightsAttempt{rightsQuestion: q, caller: c, method: method, path: q.path, body: "{}", kind: jsonType}, !strings.HasPrefix(q.path, "/api")
	}
	at := slices.IndexFunc(rightsResources, func(of rightsResource) bool { return of.group == q.group && of.plural == q.resource })
	if at < 0 || q.subresource == "*" || q.name == "*" {
		return rightsAttempt{}, false
	}
	of := rightsResources[at]
	if of.plural == "namespaces" && q.subresource != "" && !slices.Contains(of.subresources, q.subresource) {
		return rightsAttempt{}, false // the path would be that of something in the namespace
	}
	query := url.Values{}
	if method != http.MethodGet {
		query.Set("dryRun", "All")
	}
	r.name(&q)
	if of.plural == "namespaces" {
		if q.namespace = q.name; q.name == "" && q.verb == "create" || q.verb == "list" || q.verb == "watch" {
			q.namespace = ""
		}
	}
	in := q.namespace
	if of.plural == "namespaces" {
		in = "" // the name says it
	}
	path := of.path(in)
	switch {
	case q.verb == "list" || q.verb == "watch":
		if q.name != "" {
			query.Set("fieldSelector", "metadata.name="+q.name)
		}
		if q.verb == "watch" {
			query.Set("watch", "1")
			query.Set("timeoutSeconds", "1")
		}
	case q.name != "":
		path += "/" + q.name
		if q.subresource != "" {
			path += "/" + q.subresource
		}
	}
	a := rightsAttempt{rightsQuestion: q, caller: c, method: method, path: path + "?" + query.Encode(), kind: jsonType}
	a.plain = of.kind != "" && q.subresource == "" && of.namespaced == (in != "") && (q.verb == "get" || q.verb == "list") && in != "elsewhere"
	switch {
	case method == http.MethodPatch:
		a.kind, a.body = "application/merge-patch+json", `{"metadata":{"labels":{"a":"b"}}}`
	case of.kind == "":
		a.body = "{}"
	case method == http.MethodPost && q.subresource == "token":
		a.body = "{}"
	case method == http.MethodPost:
		a.body = of.object("new")
	case method == http.MethodPut:
		a.body = of.object(q.name)
	}
	return a, true
}

// name gives a question a name where its request must have one, and takes it away where it cannot.
func (r *rightsServer) name(q *rightsQuestion) {
	switch q.verb {
	case "list", "watch":
		q.subresource = ""
	case "deletecollection":
		q.name, q.subresource = "", ""
	case "create":
		if q.subresource == "" && r.d.oneIn(2) {
			q.name = ""
		}
	}
	if q.name == "" && (q.subresource != "" || q.verb == "get" || q.verb == "delete") {
		q.name = rightsPick(r.d, rightsNames)
	}
}

// tryAll sends the requests of a round as the users concerned.
func (r *rightsServer) tryAll(callers []rightsCaller) {
	r.t.Helper()
	var attempts []rightsAttempt
	yes := 0
	for len(attempts) < rightsRequests {
		c := rightsPick(r.d, callers)
		if a, ok := r.attempt(c, r.d.question(r.model, c.rightsUser)); ok {
			if a.allowed = r.model.allows(a.rightsQuestion); a.allowed {
				yes++
			}
			attempts = append(attempts, a)
		}
	}
	rightsSpread(make([]struct{}, rightsWorkers), attempts, func(_ struct{}, a rightsAttempt) {
		want := a.allowed
		status, answer, err := a.send(r.t.Context())
		refusal := `User \"` + a.user + `\" cannot ` + a.verb + ` ` // in JSON
		switch {
		case err != nil:
			r.t.Errorf("round %d: %s %s (%v): %v", r.round, a.method, a.path, a.rightsQuestion, err)
		case status == http.StatusUnauthorized || status == http.StatusTooManyRequests || status >= 500,
			want != (status != http.StatusForbidden),
			want && a.plain && status != http.StatusOK,
			!want && !strings.Contains(answer, refusal):
			r.t.Errorf("round %d: %s %s (%v): %d, and it is allowed: %v: %.300s", r.round, a.method, a.path, a.rightsQuestion, status, want, answer)
		}
	})
	if share := yes * 100 / len(attempts); share < 10 || share > 90 {
		r.t.Errorf("round %d: %d%% of the requests are allowed: they say little", r.round, share)
	}
}

// send sends the request. Of a watch that is granted it reads nothing.
func (a rightsAttempt) send(ctx context.Context) (int, string, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, a.method, a.caller.base+a.path, strings.NewReader(a.body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Content-Type", a.kind)
	req.Header.Set("Accept", jsonType)
	resp, err := a.caller.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if a.verb == "watch" && resp.StatusCode == http.StatusOK {
		return resp.StatusCode, "", nil
	}
	answer, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(answer), err
}
