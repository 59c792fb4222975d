package customresourcedefinition_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	crds "github.com/espalier-dev/espalier/server/apis/customresourcedefinition"
	"github.com/espalier-dev/espalier/server/restmappingtest"
)

// crons is a CRD with versions in this order: name, flags, properties of the spec.
func crons(annotations string, versions ...string) string {
	return `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"crons.example.com","annotations":{` + annotations + `}},
"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"crons","singular":"cron","kind":"Cron"},"versions":[` + strings.Join(versions, ",") + `]}}`
}

const stored, served = `"served":true,"storage":true`, `"served":true,"storage":false`

func version(name, flags, properties string) string {
	return fmt.Sprintf(`{"name":%q,%s,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%s}}}}}}`, name, flags, properties)
}

const (
	both  = `"size":{"type":"integer"},"color":{"type":"string"}`
	size  = `"size":{"type":"integer"}`
	small = `"size":{"type":"integer","maximum":2},"color":{"type":"string"}`
)

// planServer is a server with the CRD crons.
type planServer struct {
	*restmappingtest.Server
}

func startCrons(t *testing.T, o restmappingtest.Options, crd string) *planServer {
	t.Helper()
	s := &planServer{restmappingtest.Start(t, o)}
	if code, body, _ := s.do(t, "POST", "", "application/json", crd); code != http.StatusCreated {
		t.Fatalf("%d %s", code, body)
	}
	restmappingtest.Eventually(t, "crons are served", func() bool {
		e := s.Catalog.Get("crons.example.com")
		return e != nil && e.Established
	})
	return s
}

// do sends a request about CRDs.
func (s *planServer) do(t *testing.T, method, path, kind, body string) (int, string, []string) {
	t.Helper()
	return s.send(t, method, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"+path, kind, body)
}

func (s *planServer) send(t *testing.T, method, path, kind, body string) (int, string, []string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.Config.Host+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data), resp.Header.Values("Warning")
}

// fill creates objects called name0, name1 and so on.
func (s *planServer) fill(t *testing.T, version, name string, n int, spec string) {
	t.Helper()
	for i := range n {
		restmappingtest.Eventually(t, "an object is created", func() bool { // this server answers before it knows a change of the CRD
			code, body, _ := s.send(t, "POST", "/apis/example.com/"+version+"/namespaces/default/crons", "application/json",
				fmt.Sprintf(`{"apiVersion":"example.com/%s","kind":"Cron","metadata":{"name":"%s%d"},"spec":%s}`, version, name, i, spec))
			if code != http.StatusCreated && code != http.StatusServiceUnavailable {
				t.Fatalf("%d %s", code, body)
			}
			return code == http.StatusCreated
		})
	}
}

// plan sends a plan, and expects its status to be 200.
func (s *planServer) plan(t *testing.T, query, crd string) *crds.Plan {
	t.Helper()
	code, body, _ := s.do(t, "POST", "/crons.example.com/plan?"+query, "application/json", crd)
	p := &crds.Plan{}
	if err := json.Unmarshal([]byte(body), p); err != nil || code != http.StatusOK || p.Kind != "Plan" || p.APIVersion != "plan.espalier.dev/v1alpha1" {
		t.Fatalf("%d %s %v", code, body, err)
	}
	return p
}

// put replaces the CRD and returns the status and the message.
func (s *planServer) put(t *testing.T, query, crd string) (int, string, []string) {
	t.Helper()
	_, current, _ := s.do(t, "GET", "/crons.example.com", "", "")
	var live metav1.PartialObjectMetadata
	if err := json.Unmarshal([]byte(current), &live); err != nil {
		t.Fatal(err)
	}
	crd = strings.Replace(crd, `"metadata":{`, fmt.Sprintf(`"metadata":{"resourceVersion":%q,`, live.ResourceVersion), 1)
	return s.do(t, "PUT", "/crons.example.com"+query, "application/json", crd)
}

func TestPlan(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "a", 3, `{"size":1,"color":"red"}`)
	s.fill(t, "v1", "b", 2, `{"size":5}`)

	p := s.plan(t, "", crons("", version("v1", stored, size)))
	if p.CRD != "crons.example.com" || p.Generation != 1 || p.Total != 5 || p.Continue != "" || p.Refused != nil || len(p.Digest) != 64 ||
		p.ID != fmt.Sprintf("g1-r%s-%s", p.Revision, p.Digest[:16]) {
		t.Errorf("%+v", p)
	}
	sum := &p.Summary
	if sum.Objects != 5 || sum.Losing != 3 || sum.Affected != 3 || sum.Counts["LosesFields"] != 3 || len(sum.Listed) != 3 ||
		len(sum.Groups) != 1 || sum.Groups[0].Field != "spec.color" || sum.Groups[0].Example[0] != "default/a0" {
		t.Errorf("%+v", sum)
	}
	// A value that ratcheting allows is refused only if the object is created again.
	sum = &s.plan(t, "list=1", crons("", version("v1", stored, small))).Summary
	if sum.Losing != 0 || sum.Breaking != 2 || sum.Counts["RefusedOnCreate"] != 2 || sum.Counts["RefusedOnUpdate"] != 0 || len(sum.Listed) != 1 {
		t.Errorf("%+v", sum)
	}
	// Nothing was stored.
	if _, body, _ := s.do(t, "GET", "/crons.example.com", "", ""); !strings.Contains(body, `"color"`) || !strings.Contains(body, `"generation":1`) {
		t.Error(body)
	}
}

func TestPlanPages(t *testing.T) { // not parallel: it compacts the etcd of all tests
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "a", 5, `{"color":"red"}`)
	s.fill(t, "v1", "b", 2, `{"size":5}`)
	now := crons("", version("v1", stored, size))
	first := s.plan(t, "limit=3", now)
	if first.Summary.Objects != 3 || first.Continue == "" || first.Total != 7 {
		t.Fatalf("%+v", first)
	}
	// All pages are of one revision.
	s.fill(t, "v1", "z", 1, `{"color":"red"}`)
	objects, losing, pages := first.Summary.Objects, first.Summary.Losing, 1
	for p := first; p.Continue != ""; pages++ {
		p = s.plan(t, "limit=2&continue="+url.QueryEscape(p.Continue), now)
		objects, losing = objects+p.Summary.Objects, losing+p.Summary.Losing
		if p.ID != first.ID || p.Total != 7 || pages > 4 {
			t.Fatalf("%+v", p)
		}
	}
	if objects != 7 || losing != 5 || pages != 3 {
		t.Errorf("%d objects, %d losing, %d pages", objects, losing, pages)
	}
	path, token := "/crons.example.com/plan?continue=", url.QueryEscape(first.Continue)
	for _, c := range []struct {
		name, token, crd string
		code             int
		text             string
	}{
		{"another spec", token, crons("", version("v1", stored, small)), 400, "another spec"},
		{"other rules", token, crons(`"conversion.espalier.dev/rules":"x"`, version("v1", stored, size)), 400, "another spec"},
		{"no token", "abc", now, 400, "start again"},
	} {
		if code, body, _ := s.do(t, "POST", path+c.token, "application/json", c.crd); code != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s: %d %s", c.name, code, body)
		}
	}
	if _, err := s.Backend.Client().Compact(t.Context(), revisionOf(t, s)); err != nil {
		t.Fatal(err)
	}
	if code, body, _ := s.do(t, "POST", path+token, "application/json", now); code != http.StatusGone || !strings.Contains(body, "start again") {
		t.Errorf("compacted: %d %s", code, body)
	}
	if code, body, _ := s.put(t, "", now); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	if code, body, _ := s.do(t, "POST", path+token, "application/json", now); code != http.StatusGone || !strings.Contains(body, "has changed") {
		t.Errorf("changed: %d %s", code, body)
	}
}

// revisionOf is the newest revision of etcd.
func revisionOf(t *testing.T, s *planServer) int64 {
	t.Helper()
	answer, err := s.Backend.Client().Get(t.Context(), "x", clientv3.WithCountOnly())
	if err != nil {
		t.Fatal(err)
	}
	return answer.Header.Revision
}

func TestPlanRequests(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	now := crons("", version("v1", stored, size))
	for _, c := range []struct {
		method, path, kind, body string
		code                     int
		text                     string
	}{
		{"POST", "/nones.example.com/plan", "application/json", strings.ReplaceAll(now, "crons.", "nones."), 404, "not found"},
		{"POST", "/crons.example.com/plan", "application/json", strings.ReplaceAll(now, "crons.", "nones."), 400, "does not match the name on the URL"},
		{"POST", "/crons.example.com/plan?limit=-1", "application/json", now, 400, "limit is"},
		{"POST", "/crons.example.com/plan?list=1001", "application/json", now, 400, "from 0 to 1000"},
		{"POST", "/crons.example.com/plan?list=0&limit=0", "application/json", now, 200, `"objects":0`},
		{"POST", "/crons.example.com/plan", "application/json", `{`, 400, ""},
		{"POST", "/crons.example.com/plan", "application/json", `{"apiVersion":"v1","kind":"Pod"}`, 400, ""},
		{"POST", "/crons.example.com/plan", "text/plain", now, 415, ""},
		{"GET", "/crons.example.com/plan", "application/json", "", 405, ""},
		{"PUT", "/crons.example.com/plan", "application/json", now, 405, ""},
	} {
		if code, body, _ := s.do(t, c.method, c.path, c.kind, c.body); code != c.code || !strings.Contains(body, c.text) {
			t.Errorf("%s %s %s: %d %s", c.method, c.path, c.body, code, body)
		}
	}
	yaml := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: crons.example.com}\nspec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: crons, singular: cron, kind: Cron}\n" +
		"  versions: [" + version("v1", stored, size) + "]\n"
	code, body, _ := s.do(t, "POST", "/crons.example.com/plan", "application/yaml", yaml)
	p := &crds.Plan{}
	if err := json.Unmarshal([]byte(body), p); err != nil || code != 200 {
		t.Fatalf("%d %s", code, body)
	}
	if same := s.plan(t, "", now); same.Digest != p.Digest {
		t.Errorf("the same CRD in YAML has another digest: %s", body)
	}
}

// A CRD that the server refuses is planned as far as possible.
func TestPlanOfRefusedCRD(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "a", 1, `{"color":"red"}`)
	p := s.plan(t, "", crons("", version("v2", stored, size)))
	if len(p.Refused) == 0 || !strings.Contains(strings.Join(p.Refused, " "), "status.storedVersions[0]") || p.Summary.Counts["VersionGone"] != 1 {
		t.Errorf("%+v", p)
	}
	p = s.plan(t, "", crons("", version("v1", stored, `"size":{"type":"number","pattern":"("}`)))
	if len(p.Refused) == 0 {
		t.Errorf("%+v", p)
	}
}

func TestPlanOfTwoVersions(t *testing.T) {
	t.Parallel()
	old := crons("", version("v1", stored, both), version("v2", served, both))
	s := startCrons(t, restmappingtest.Options{}, old)
	s.fill(t, "v1", "a", 2, `{"size":1,"color":"red"}`)
	// The new storage version has no color: what is converted to it loses it.
	p := s.plan(t, "", crons("", version("v1", served, both), version("v2", stored, size)))
	if sum := &p.Summary; sum.Losing != 2 || sum.Counts["LosesInConversion"] != 2 || sum.Counts["LosesFields"] != 0 || !slices.Equal(sum.Listed[0].LostConverting, []string{"spec.color"}) {
		t.Errorf("%+v", sum)
	}
	p = s.plan(t, "", crons("", version("v1", served, both), version("v2", stored, both)))
	if sum := &p.Summary; sum.Losing != 0 || sum.Versions["v1"] != 2 {
		t.Errorf("%+v", sum)
	}
	// Objects that are stored in both versions.
	if code, body, _ := s.put(t, "", crons("", version("v1", served, both), version("v2", stored, both))); code != http.StatusOK {
		t.Fatalf("%d %s", code, body)
	}
	s.fill(t, "v2", "b", 1, `{"color":"red"}`)
	p = s.plan(t, "", crons("", version("v2", stored, both)))
	if sum := &p.Summary; sum.Counts["VersionGone"] != 2 || sum.Losing != 2 || sum.Versions["v2"] != 1 || len(p.Refused) != 1 {
		t.Errorf("%+v", p)
	}
}

// Bytes that are no objects are a part of the plan, and do not stop it.
func TestPlanOfUnreadableObjects(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "b", 1, `{"color":"red"}`)
	for name, value := range map[string]string{"default/a": "{", "default/c": "", "odd\xff": "{}"} {
		if _, err := s.Backend.Client().Put(t.Context(), s.Backend.Key("/example.com/crons")+"/"+name, value); err != nil {
			t.Fatal(err)
		}
	}
	now := crons("", version("v1", stored, size))
	p := s.plan(t, "limit=3", now)
	if sum := &p.Summary; sum.Losing != 1 || sum.Counts["UnreadableToday"] != 2 || sum.Listed[0].Name != "a" || sum.Listed[0].Namespace != "default" {
		t.Errorf("%+v", sum)
	}
	if p = s.plan(t, "continue="+p.Continue, now); p.Summary.Counts["UnreadableToday"] != 1 {
		t.Errorf("%+v", p)
	}
}

func TestDryRunWarns(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	s.fill(t, "v1", "a", 2, `{"color":"red"}`)
	code, body, warnings := s.put(t, "?dryRun=All", crons("", version("v1", stored, size)))
	if code != http.StatusOK || len(warnings) != 1 || !strings.Contains(warnings[0], "2 of 2 objects lose data") {
		t.Errorf("%d %s %q", code, body, warnings)
	}
	if _, _, warnings := s.put(t, "?dryRun=All", crons("", version("v1", stored, both+`,"new":{"type":"string"}`))); len(warnings) != 1 || !strings.Contains(warnings[0], "all 2 objects stay as they are") {
		t.Errorf("%q", warnings)
	}
	// A change of metadata does nothing to objects, and a real update is not delayed.
	if _, _, warnings := s.put(t, "?dryRun=All", crons(`"a":"b"`, version("v1", stored, both))); len(warnings) != 0 {
		t.Errorf("%q", warnings)
	}
	if code, _, warnings := s.put(t, "", crons("", version("v1", stored, size))); code != http.StatusOK || len(warnings) != 0 {
		t.Errorf("%d %q", code, warnings)
	}
}

func TestChangesThatLoseDataNeedAPlan(t *testing.T) { // not parallel: it compacts the etcd of all tests
	for name, c := range map[string]struct {
		options restmappingtest.Options
		old     string
	}{
		"flag":       {restmappingtest.Options{RequirePlan: true}, crons("", version("v1", stored, both))},
		"annotation": {restmappingtest.Options{}, crons(`"espalier.dev/require-plan":"true"`, version("v1", stored, both))},
	} {
		t.Run(name, func(t *testing.T) {
			s := startCrons(t, c.options, c.old)
			now := crons("", version("v1", stored, size))
			with := func(id string) string {
				return crons(`"espalier.dev/approved-plan":"`+id+`"`, version("v1", stored, size))
			}
			refused := func(crd, text string) {
				t.Helper()
				if code, body, _ := s.put(t, "", crd); code != http.StatusConflict || !strings.Contains(body, text) || !strings.Contains(body, `"reason":"PlanRequired"`) || !strings.Contains(body, "espalier plan -f FILE") {
					t.Fatalf("%d %s", code, body)
				}
			}
			s.fill(t, "v1", "a", 2, `{"color":"red"}`)
			refused(now, "2 of 2 objects lose data; no plan was approved")
			if code, _, warnings := s.put(t, "?dryRun=All", now); code != http.StatusConflict || len(warnings) != 1 {
				t.Errorf("a dry run gives %d, %q", code, warnings)
			}
			p := s.plan(t, "", now)
			refused(with("yes"), "is not the id of a plan")
			refused(with(strings.Replace(p.ID, "g1", "g2", 1)), "generation 2 of the CRD, which has generation 1")
			refused(with(p.ID[:len(p.ID)-16]+"0123456789abcdef"), "another spec")
			refused(with(fmt.Sprintf("g1-r%d-%s", revisionOf(t, s)+1000, p.Digest[:16])), "etcd has no revision")
			// What was written after the plan is not approved, unless it loses nothing.
			s.fill(t, "v1", "b", 1, `{"color":"red"}`)
			refused(with(p.ID), "1 of 1 object loses data")
			p = s.plan(t, "", now)
			s.fill(t, "v1", "c", 1, `{"size":1}`)
			if _, err := s.Backend.Client().Compact(t.Context(), revisionOf(t, s)); err != nil {
				t.Fatal(err)
			}
			if code, body, _ := s.put(t, "", with(p.ID)); code != http.StatusOK {
				t.Errorf("%d %s", code, body)
			}
		})
	}
}

// Where no plan is required, one that approves the change approves no more than it says.
func TestApprovedPlansAreChecked(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons("", version("v1", stored, both)))
	now := func(id string) string {
		return crons(`"espalier.dev/approved-plan":"`+id+`"`, version("v1", stored, size))
	}
	s.fill(t, "v1", "a", 2, `{"color":"red"}`)
	p := s.plan(t, "", crons("", version("v1", stored, size)))
	s.fill(t, "v1", "b", 1, `{"color":"red"}`)
	if code, body, _ := s.put(t, "", now(p.ID)); code != http.StatusConflict || !strings.Contains(body, "1 of 1 object loses data") {
		t.Errorf("an object was written after the plan: %d %s", code, body)
	}
	p = s.plan(t, "", crons("", version("v1", stored, size)))
	if code, body, _ := s.put(t, "", now(p.ID)); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
}

func TestOtherWaysToChangeAGuardedCRD(t *testing.T) {
	t.Parallel()
	s := startCrons(t, restmappingtest.Options{}, crons(`"espalier.dev/require-plan":"true"`, version("v1", stored, both)))
	s.fill(t, "v1", "a", 1, `{"color":"red"}`)
	const merge, jsonPatch, apply = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	loses := `{"spec":{"versions":[` + version("v1", stored, size) + `]}}`
	for _, c := range []struct{ kind, query, body string }{
		{merge, "", loses},
		{merge, "", `{"metadata":{"annotations":{"espalier.dev/require-plan":null}},` + loses[1:]},
		{jsonPatch, "", `[{"op":"remove","path":"/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/color"}]`},
		{apply, "?fieldManager=me&force=true", crons("", version("v1", stored, size))},
	} {
		if code, body, _ := s.do(t, "PATCH", "/crons.example.com"+c.query, c.kind, c.body); code != http.StatusConflict || !strings.Contains(body, "PlanRequired") {
			t.Errorf("%s %s: %d %s", c.kind, c.body, code, body)
		}
	}
	// A change that proves to be harmless, one that no object minds, and one of the status.
	for _, c := range []struct{ path, body string }{
		{"", `{"spec":{"versions":[` + version("v1", stored, both+`,"more":{"type":"string"}`) + `]}}`},
		{"", `{"spec":{"versions":[` + version("v1", stored, both) + `]}}`},
		{"", `{"metadata":{"labels":{"a":"b"}}}`},
		{"/status", `{"status":{"conditions":[]}}`},
	} {
		if code, body, _ := s.do(t, "PATCH", "/crons.example.com"+c.path, merge, c.body); code != http.StatusOK {
			t.Errorf("%s: %d %s", c.body, code, body)
		}
	}
	// The approval may come before the change, in a request of its own.
	p := s.plan(t, "", crons("", version("v1", stored, size)))
	for _, body := range []string{`{"metadata":{"annotations":{"espalier.dev/approved-plan":"` + p.ID + `"}}}`, loses} {
		if code, answer, _ := s.do(t, "PATCH", "/crons.example.com", merge, body); code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, code, answer)
		}
	}
	// It is no approval of the next one, and does not stand in the way of what loses nothing.
	if code, body, _ := s.do(t, "PATCH", "/crons.example.com", merge, `{"spec":{"versions":[`+version("v1", stored, both)+`]}}`); code != http.StatusOK {
		t.Errorf("%d %s", code, body)
	}
	s.fill(t, "v1", "b", 1, `{"color":"red"}`)
	if code, body, _ := s.do(t, "PATCH", "/crons.example.com", merge, loses); code != http.StatusConflict || !strings.Contains(body, "does not approve it") {
		t.Errorf("%d %s", code, body)
	}
	// The guard can be switched off, in a request of its own.
	for _, body := range []string{`{"metadata":{"annotations":{"espalier.dev/require-plan":null}}}`, loses} {
		if code, answer, _ := s.do(t, "PATCH", "/crons.example.com", merge, body); code != http.StatusOK {
			t.Errorf("%s: %d %s", body, code, answer)
		}
	}
}

func FuzzPlanToken(f *testing.F) {
	f.Add([]byte("eyJ1IjoiIn0"))
	f.Add([]byte(""))
	f.Fuzz(func(t *testing.T, token []byte) {
		p, err := crds.ParsePosition(string(token))
		if err != nil {
			return
		}
		again, err := crds.ParsePosition(p.String())
		if err != nil || again.String() != p.String() || !bytes.Equal(again.After, p.After) {
			t.Errorf("%+v, %+v, %v", p, again, err)
		}
	})
}
