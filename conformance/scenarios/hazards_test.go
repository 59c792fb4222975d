package scenarios

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/espalier-dev/espalier/conformance/launch"
)

// patience is how long any of the requests below may take, on a server that the race detector slows down.
const patience = 10 * time.Second

const (
	jsonType      = "application/json"
	yamlType      = "application/yaml"
	jsonPatchType = "application/json-patch+json"
	hazardGroup   = "/apis/hazards.example.com/v1"
)

// An attacker sends requests as they are: paths are not cleaned, redirects not followed.
type attacker struct {
	t      *testing.T
	client *http.Client
	base   string
}

func newAttacker(t *testing.T, s *launch.Server) *attacker {
	t.Helper()
	c, err := rest.HTTPClientFor(s.Config)
	if err != nil {
		t.Fatal(err)
	}
	raw := *c
	raw.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &attacker{t, &raw, s.URL}
}

// with returns the attacker for a subtest.
func (a *attacker) with(t *testing.T) *attacker { return &attacker{t, a.client, a.base} }

// send sends a request, which must be answered in time.
func (a *attacker) send(method, path, contentType, body string) (int, http.Header, string) {
	a.t.Helper()
	return a.ask(method, path, jsonType, contentType, body)
}

// table gets what kubectl would print.
func (a *attacker) table(path string) (int, string) {
	a.t.Helper()
	status, _, answer := a.ask(http.MethodGet, path, "application/json;as=Table;v=v1;g=meta.k8s.io", "", "")
	return status, answer
}

func (a *attacker) ask(method, path, accept, contentType, body string) (int, http.Header, string) {
	a.t.Helper()
	ctx, cancel := context.WithTimeout(a.t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, bytes.NewReader([]byte(body)))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	began := time.Now()
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatalf("%s %.200s: %v", method, path, err)
	}
	if took := time.Since(began); took > time.Second {
		a.t.Logf("%s %.100s of %d bytes, %.60s: %d after %v", method, path, len(body), body, resp.StatusCode, took)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatalf("%s %.200s: %v", method, path, err)
	}
	return resp.StatusCode, resp.Header, string(answer)
}

// refused sends what must be refused as the client's fault.
func (a *attacker) refused(method, path, contentType, body string) {
	a.t.Helper()
	if status, _, answer := a.send(method, path, contentType, body); status < 400 || status > 499 {
		a.t.Errorf("%s %.200s: %d, where a client's error is due: %.500s", method, path, status, answer)
	}
}

// made sends what must be created.
func (a *attacker) made(path, body string) {
	a.t.Helper()
	if status, _, answer := a.send(http.MethodPost, path, jsonType, body); status != http.StatusCreated {
		a.t.Fatalf("POST %s: %d: %.500s", path, status, answer)
	}
}

// hazardCRD is a CRD of a kind with a status and a scale, whose spec may hold anything.
func hazardCRD(plural, kind, scope, columns string) string {
	return fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"%s.hazards.example.com"},
"spec":{"group":"hazards.example.com","scope":%q,"names":{"plural":%q,"kind":%q},"versions":[{"name":"v1","served":true,"storage":true,
"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},"additionalPrinterColumns":[%s],
"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
"properties":{"list":{"type":"array","items":{"type":"integer"}},"replicas":{"type":"integer"},"number":{"type":"number"},"integer":{"type":"integer"},"text":{"type":"string"}}},
"status":{"type":"object","properties":{"replicas":{"type":"integer"}}}}}}}]}}`, plural, scope, plural, kind, columns)
}

func hazard(kind, name, spec string) string {
	return fmt.Sprintf(`{"apiVersion":"hazards.example.com/v1","kind":%q,"metadata":{"name":%q},"spec":%s}`, kind, name, spec)
}

// define makes a CRD and waits until it is served.
func (a *attacker) define(plural, kind, scope, columns string) {
	a.t.Helper()
	a.made(crdsPath, hazardCRD(plural, kind, scope, columns))
	eventually(a.t, 30*time.Second, plural+" are served", func() bool {
		status, _, _ := a.send(http.MethodGet, hazardGroup+"/"+plural, "", "")
		return status == http.StatusOK
	})
}

// secret is in every object that a request must not show.
const secret = "sesame"

// TestHazards sends what has broken other servers. One server takes it all, and must be ready after each.
func TestHazards(t *testing.T) {
	a := newAttacker(t, alike(t, against, prefix()))
	a.define("pots", "Pot", "Namespaced", "")
	a.define("potsherds", "Potsherd", "Namespaced", "")
	a.define("kilns", "Kiln", "Cluster", "")
	a.made(hazardGroup+"/namespaces/default/pots", hazard("Pot", "one", `{"list":[1,2,3],"replicas":1}`))
	a.made(hazardGroup+"/namespaces/default/pots", hazard("Pot", "two", `{}`))
	a.made(hazardGroup+"/namespaces/default/potsherds", hazard("Potsherd", "one", `{"text":"`+secret+`"}`))
	a.made(hazardGroup+"/namespaces/default/potsherds", hazard("Potsherd", "two", `{"text":"`+secret+`"}`))
	a.made(hazardGroup+"/namespaces/default-2/pots", hazard("Pot", "other", `{"text":"`+secret+`"}`))
	a.made(hazardGroup+"/kilns", hazard("Kiln", "one", `{"text":"`+secret+`","replicas":1}`))
	for _, c := range []struct {
		name     string
		run      func(*attacker)
		upstream string // why upstream's server is not immune
	}{
		{name: "scope", run: (*attacker).wrongScope},
		{name: "paths", run: (*attacker).foreignPaths},
		{name: "continue tokens", run: (*attacker).foreignTokens},
		{name: "json-patch", run: (*attacker).patchBombs},
		{name: "YAML", run: (*attacker).yamlBombs},
		{name: "nesting in bodies", run: (*attacker).deepBodies},
		{name: "content types", run: (*attacker).contentTypes, upstream: "it panics on objects in protobuf"},
		{name: "nesting in schemas", run: (*attacker).deepSchemas, upstream: "it needs time that grows with the square of the depth"},
		{name: "printer columns", run: (*attacker).columnBombs},
	} {
		t.Run(c.name, func(t *testing.T) {
			if against == launch.Upstream && c.upstream != "" {
				t.Skip("upstream's server: " + c.upstream)
			}
			b := a.with(t)
			c.run(b)
			if status, _, answer := b.send(http.MethodGet, "/healthz", "", ""); status != http.StatusOK {
				t.Errorf("the server is not healthy after that: %d: %s", status, answer)
			}
		})
	}
}

// wrongScope asks for objects of a cluster in a namespace, and the other way round: not found, whatever the verb (CVE-2019-11247).
func (a *attacker) wrongScope() {
	bodies := map[string]struct{ contentType, body string }{
		http.MethodPost:  {jsonType, hazard("Kiln", "new", `{}`)},
		http.MethodPut:   {jsonType, hazard("Kiln", "one", `{}`)},
		http.MethodPatch: {"application/merge-patch+json", `{"spec":{"text":"x"}}`},
	}
	for _, base := range []string{hazardGroup + "/namespaces/default/kilns", hazardGroup + "/namespaces/kube-system/kilns", hazardGroup + "/pots"} {
		for _, rest := range []string{"", "?watch=1&timeoutSeconds=1", "/one", "/one/status", "/one/scale"} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete} {
				if method == http.MethodGet && base == hazardGroup+"/pots" && !strings.HasPrefix(rest, "/") {
					continue // all namespaces: that is allowed
				}
				b := bodies[method]
				status, _, answer := a.send(method, base+rest, b.contentType, b.body)
				if status != http.StatusNotFound && status != http.StatusMethodNotAllowed || strings.Contains(answer, secret) {
					a.t.Errorf("%s %s: %d: %.300s", method, base+rest, status, answer)
				}
			}
		}
	}
	if status, _, answer := a.send(http.MethodGet, hazardGroup+"/kilns/one", "", ""); status != http.StatusOK || !strings.Contains(answer, secret) {
		a.t.Errorf("the kiln has not survived: %d: %s", status, answer)
	}
}

// foreignPaths tries to leave the keys of a resource through the names in a path (CVE-2022-3162).
func (a *attacker) foreignPaths() {
	ways := []string{"..", ".", "", "%2e%2e", "%2E.", "..%2f..%2fpotsherds%2fdefault%2fone", "%2e%2e%2fpotsherds%2fdefault%2fone", "..%2fdefault-2%2fother", "-2%2fother",
		"../../potsherds/default/one", "one%2f..%2f..%2fdefault-2%2fother", "herds%2fdefault%2fone", "%00", "one%00", "..%5c..%5cpotsherds", "%c0%ae%c0%ae%c0%af", "one%2f", "%2fone", "/one", "//one"}
	for _, way := range ways {
		for _, path := range []string{
			hazardGroup + "/namespaces/default/pots/" + way,
			hazardGroup + "/namespaces/default/pots/" + way + "/status",
			hazardGroup + "/namespaces/default/pots/" + way + "/scale",
			hazardGroup + "/namespaces/" + way + "/pots",
			hazardGroup + "/namespaces/" + way + "/pots/one",
			hazardGroup + "/namespaces/" + way + "/pots?limit=1",
			hazardGroup + "/namespaces/default/" + way,
			hazardGroup + "/kilns/" + way,
		} {
			status, _, answer := a.send(http.MethodGet, path, "", "")
			// What a cleaned path means is its own business, if it is asked for openly. etcd's storage refuses `..` in keys with a 500, as upstream's does.
			asked := strings.Contains(path, "/potsherds/") || strings.HasSuffix(path, "//one")
			if status >= 500 && !strings.Contains(answer, `"message":"invalid key: `) || strings.Contains(answer, secret) && !asked && !strings.HasPrefix(path, hazardGroup+"/kilns") && !strings.HasPrefix(path, hazardGroup+"/namespaces//pots") {
				a.t.Errorf("GET %s: %d: %.300s", path, status, answer)
			}
		}
		for _, method := range []string{http.MethodDelete, http.MethodPut} {
			path := hazardGroup + "/namespaces/default/pots/" + way
			if strings.Contains(way, "/") || way == "" || way == "." || way == ".." {
				continue // another path openly
			}
			status, _, answer := a.send(method, path, jsonType, hazard("Pot", "one", `{}`))
			if status < 300 || status >= 500 {
				a.t.Errorf("%s %s: %d: %.300s", method, path, status, answer)
			}
		}
	}
	for _, name := range []string{"..", ".", "", "a/b", "../../potsherds/default/new", "a%2fb", "a\\u0000b", "A B", strings.Repeat("a", 300)} {
		a.refused(http.MethodPost, hazardGroup+"/namespaces/default/pots", jsonType, strings.ReplaceAll(hazard("Pot", "NAME", `{}`), "NAME", name))
	}
	for path, want := range map[string]string{"/namespaces/default/potsherds/one": secret, "/namespaces/default-2/pots/other": secret, "/namespaces/default/pots/one": "Pot"} {
		if status, _, answer := a.send(http.MethodGet, hazardGroup+path, "", ""); status != http.StatusOK || !strings.Contains(answer, want) {
			a.t.Errorf("%s has not survived: %d: %s", path, status, answer)
		}
	}
}

// foreignTokens continues lists with the tokens of other lists, and with invented ones. The names of pots and potsherds, and of their namespaces, begin alike.
func (a *attacker) foreignTokens() {
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	var tokens []string
	var list struct {
		Metadata struct{ ResourceVersion, Continue string }
	}
	for _, path := range []string{"/potsherds?limit=1", "/namespaces/default/potsherds?limit=1", "/kilns?limit=1", "/pots?limit=1", "/namespaces/default/pots?limit=1"} {
		_, _, answer := a.send(http.MethodGet, hazardGroup+path, "", "")
		decode(a.t, []byte(answer), &list)
		tokens = append(tokens, list.Metadata.Continue)
	}
	for _, start := range []string{"", "/", "..", "../", "../potsherds/", "../../potsherds/default/one", "./../default-2/", "-2/", "-2/other", "herds/default/", "default/../../potsherds/", "default-2/other",
		"\\u0000", "one\\u0000", "//", "/one", "%2e%2e/", "..\\u0000/", "kilns/", "../kilns/one"} {
		for _, rv := range []string{list.Metadata.ResourceVersion, "-1", "0", "-2", "1"} {
			tokens = append(tokens, token(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%s,"start":"%s"}`, rv, start)))
		}
	}
	tokens = append(tokens, "x", "%", token("{}"), token("null"), token(`{"v":"meta.k8s.io/v2","rv":1,"start":"a"}`), strings.Repeat("A", 100_000))
	// Twice, and more: the first comes from etcd, later ones from a cache.
	for round := range 3 {
		if round == 2 { // the future: a cache waits for it, for a while
			tokens = []string{token(`{"v":"meta.k8s.io/v1","rv":9223372036854775807,"start":"/one"}`)}
		}
		for _, tk := range tokens {
			path := hazardGroup + "/namespaces/default/pots?limit=5&continue=" + url.QueryEscape(tk)
			status, _, answer := a.send(http.MethodGet, path, "", "")
			if status >= 500 && status != http.StatusGatewayTimeout || strings.Contains(answer, secret) || strings.Contains(answer, `"kind":"Potsherd"`) {
				raw, _ := base64.RawURLEncoding.DecodeString(tk)
				a.t.Errorf("round %d: a list that continues at %q: %d: %.300s", round, raw, status, answer)
			}
		}
	}
}

// patchBombs are small patches with large effects (CVE-2019-1002100).
func (a *attacker) patchBombs() {
	const path = hazardGroup + "/namespaces/default/pots/one"
	repeat := func(op string, n int) string { return "[" + strings.Repeat(op+",", n-1) + op + "]" }
	a.refused(http.MethodPatch, path, jsonPatchType, repeat(`{"op":"test","path":"/kind","value":"Pot"}`, 10_001))
	if status, _, answer := a.send(http.MethodPatch, path, jsonPatchType, repeat(`{"op":"test","path":"/kind","value":"Pot"}`, 10_000)); status != http.StatusOK {
		a.t.Errorf("10,000 operations: %d: %.300s", status, answer)
	}
	a.refused(http.MethodPatch, path, jsonPatchType, `[{"op":"add","path":"/spec/a","value":{"x":"`+strings.Repeat("x", 100_000)+`"}},`+repeat(`{"op":"copy","from":"/spec/a","path":"/spec/a/b"}`, 40)[1:])
	a.refused(http.MethodPatch, path, jsonPatchType, repeat(`{"op":"copy","from":"/spec/list","path":"/spec/list/-"}`, 64))
	var doubling []string
	for i := range 64 {
		doubling = append(doubling, fmt.Sprintf(`{"op":"copy","from":"/spec","path":"/spec/k%d"}`, i))
	}
	a.refused(http.MethodPatch, path, jsonPatchType, "["+strings.Join(doubling, ",")+"]")
	for _, index := range []string{"1000000000", "9223372036854775807", "99999999999999999999", "-9223372036854775808", "1e3", "4294967296"} {
		for _, op := range []string{"add", "replace", "remove"} {
			a.refused(http.MethodPatch, path, jsonPatchType, fmt.Sprintf(`[{"op":%q,"path":"/spec/list/%s","value":1}]`, op, index))
		}
	}
	a.refused(http.MethodPatch, path, jsonPatchType, `[{"op":"add","path":"/spec/`+strings.Repeat("a/", 50_000)+`","value":1}]`)
	a.refused(http.MethodPatch, path, "application/merge-patch+json", `{"spec":`+strings.Repeat(`{"a":`, 100_000)+"1"+strings.Repeat("}", 100_000)+"}")
	for name, patch := range yamlBombs {
		status, _, answer := a.send(http.MethodPatch, path+"?fieldManager=x", "application/apply-patch+yaml", patch)
		if status < 400 || status > 499 {
			a.t.Errorf("apply of %s: %d: %.300s", name, status, answer)
		}
	}
}
