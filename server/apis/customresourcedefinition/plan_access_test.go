package customresourcedefinition_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	crds "github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

// A version in which objects are stored stays, also if it is not served and status.storedVersions no
// longer names it: clients can change that list, and often do.
func TestRemovalOfVersionsThatAreNotServed(t *testing.T) {
	t.Parallel()
	hidden := `"served":false,"storage":false`
	s := startCrons(t, restmappingtest.Options{RequirePlan: true}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "a", 1, `{"color":"red"}`)
	with := `{"spec":{"versions":[` + version("v1", hidden, both) + "," + version("v2", stored, both) + `]}}`
	if code, body, _ := s.do(t, "PATCH", "/crons.example.com", "application/merge-patch+json", with); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	if code, body, _ := s.do(t, "PATCH", "/crons.example.com/status", "application/merge-patch+json", `{"status":{"storedVersions":["v2"]}}`); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	// A patch, because the server itself changes the status meanwhile.
	without := `{"spec":{"versions":[` + version("v2", stored, both) + `]}}`
	if code, body, _ := s.do(t, "PATCH", "/crons.example.com", "application/merge-patch+json", without); code != http.StatusConflict || !strings.Contains(body, "PlanRequired") {
		t.Errorf("%d %s", code, body)
	}
}

// The guard does not depend on how a change is written.
func TestFormsOfChanges(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{RequirePlan: true}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "a", 1, `{"color":"red"}`)
	const merge, strategic = "application/merge-patch+json", "application/strategic-merge-patch+json"
	loses := `{"spec":{"versions":[` + version("v1", stored, size) + `]}}`
	beta := `{"spec":{"validation":{"openAPIV3Schema":{"properties":{"spec":{"properties":{"color":null}}}}}}}`
	for _, c := range []struct{ method, version, kind, body string }{
		{"PATCH", "v1", strategic, loses},
		{"PATCH", "v1", "application/json-patch+json", `[{"op":"replace","path":"/spec/versions","value":[` + version("v1", stored, size) + `]}]`},
		{"PATCH", "v1beta1", merge, beta},
		{"PATCH", "v1", "application/apply-patch+yaml", crons("", version("v1", stored, size))},
	} {
		query := ""
		if strings.Contains(c.kind, "apply") {
			query = "?fieldManager=me&force=true"
		}
		code, body, _ := s.send(t, c.method, "/apis/apiextensions.k8s.io/"+c.version+"/customresourcedefinitions/crons.example.com"+query, c.kind, c.body)
		if code != http.StatusConflict || !strings.Contains(body, "PlanRequired") {
			t.Errorf("%s %s: %d %s", c.version, c.kind, code, body)
		}
	}
}

// A manifest that was approved for one server goes to the next one with its annotations. There its
// plan is of another CRD, even if generation, spec and revision fit.
func TestApprovalOfAnotherServer(t *testing.T) {
	t.Parallel()
	old, now := crons("", version("v1", stored, both)), version("v1", stored, size)
	first := startCrons(t, restmappingtest.Options{RequirePlan: true}, old)
	second := startCrons(t, restmappingtest.Options{RequirePlan: true}, old)
	second.fill(t, "v1", "a", 1, `{"color":"red"}`)
	p := first.plan(t, "", crons("", now)) // the two have one etcd, and so this revision is after the object
	approved := crons(`"espalier.dev/approved-plan":"`+p.ID+`"`, now)
	if code, body, _ := second.put(t, "", approved); code != http.StatusConflict || !strings.Contains(body, "of another CRD") {
		t.Errorf("%d %s", code, body)
	}
	if code, body, _ := first.put(t, "", approved); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}

// A plan shows values, and can send objects to a webhook.
func TestRightsToPlan(t *testing.T) {
	t.Parallel()
	var called atomic.Bool
	hook := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	defer hook.Close()
	var denied atomic.Value
	denied.Store("")
	rights := authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if text := a.GetVerb() + " " + a.GetAPIGroup() + "/" + a.GetResource() + " " + a.GetNamespace() + a.GetName(); text == denied.Load() {
			return authorizer.DecisionNoOpinion, "", nil
		}
		return authorizer.DecisionAllow, "", nil
	})
	s := startCrons(t, restmappingtest.Options{Authorizer: rights}, crons("", version("v1", stored, both), version("v2", served, both)))
	s.fill(t, "v1", "a", 1, `{"color":"secret"}`)
	flip := crons("", version("v1", served, both), version("v2", stored, size))
	with := func(url string) string {
		return strings.Replace(flip, `"versions"`, `"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"`+url+`"}}},"versions"`, 1)
	}
	for _, c := range []struct {
		name, denied, crd string
		code              int
	}{
		{"no list", "list example.com/crons ", flip, http.StatusForbidden},
		{"no update", "update apiextensions.k8s.io/customresourcedefinitions crons.example.com", flip, http.StatusOK},
		{"no update, and a webhook", "update apiextensions.k8s.io/customresourcedefinitions crons.example.com", with(hook.URL), http.StatusForbidden},
		{"a webhook that is refused", "", with("http://" + strings.TrimPrefix(hook.URL, "https://")), http.StatusOK},
	} {
		denied.Store(c.denied)
		code, body, _ := s.do(t, "POST", "/crons.example.com/plan", "application/json", c.crd)
		if code != c.code || called.Load() || code != http.StatusOK && strings.Contains(body, "secret") {
			t.Errorf("%s: %d %s", c.name, code, body)
		}
	}
}

func TestPlansAtATime(t *testing.T) {
	begin := crds.NewPlans()
	var ends []func()
	for range 2 {
		end, err := begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := begin(ctx); !apierrors.IsTooManyRequests(err) {
		t.Error(err)
	}
	ends[0]()
	if _, err := begin(t.Context()); err != nil {
		t.Error(err)
	}
}
