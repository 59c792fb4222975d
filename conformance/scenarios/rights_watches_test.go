package scenarios

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// watches opens watches of the trespassers' own in all forms, and changes everything around: they see their own alone. Watches of others
// are refused.
func (q *quarter) watches() {
	before := q.admin.listing(hazardGroup + "/pots?limit=1").Metadata.ResourceVersion
	ctx, cancel := context.WithTimeout(q.admin.t.Context(), time.Minute)
	defer cancel()
	var all []*rightsWatch
	for _, x := range []*trespasser{q.potter, q.clerk} {
		group, plural, _ := strings.Cut(x.own, "/namespaces/team/")
		for _, query := range []string{"", "&resourceVersion=0", "&resourceVersion=" + before, "&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "&fieldSelector=metadata.namespace%3Dteam"} {
			all = append(all, x.watch(ctx, x.own+"?watch=1"+query, true))
		}
		for _, query := range []string{"&fieldSelector=metadata.namespace%3Dteam-2", "&fieldSelector=metadata.namespace!%3Dteam", "&labelSelector=a%3Db"} {
			all = append(all, x.watch(ctx, x.own+"?watch=1"+query, false))
		}
		for _, path := range []string{
			group + "/" + plural + "?watch=1", group + "/" + plural + "?watch=1&fieldSelector=metadata.namespace%3Dteam", group + "/namespaces/team-2/" + plural + "?watch=1", group + "/namespaces/team2/" + plural + "?watch=true",
			group + "/namespaces/tea/" + plural + "?watch", group + "/watch/" + plural, group + "/watch/namespaces/team-2/" + plural, group + "/namespaces/team-2/" + plural + "/one?watch=1",
			group + "/namespaces/team-2/" + plural + "?watch=1&watch=0", group + "/namespaces/team/secrets?watch=1", hazardGroup + "/namespaces/team/potsherds?watch=1", siblingGroup + "/namespaces/team/pots?watch=1",
		} {
			x.denied(http.MethodGet, path+strings.Repeat("&timeoutSeconds=1", strings.Count(path, "?")), "", "")
		}
	}
	q.stir()
	for _, w := range all {
		w.wait()
	}
}

// stir changes objects of others, and at last those that the watches wait for.
func (q *quarter) stir() {
	a := q.admin
	change := func(collection, version, kind, word string) {
		a.made(collection, markedObject(version, kind, "passing", word))
		contentType, body := rightsBody(http.MethodPatch, version, kind, "passing")
		if status, _, answer := a.send(http.MethodPatch, collection+"/passing", contentType, strings.Replace(body, "patched", word+"-again", 1)); status != http.StatusOK {
			a.t.Fatalf("PATCH %s/passing: %d: %s", collection, status, answer)
		}
		if status, _, answer := a.send(http.MethodDelete, collection+"/passing", "", ""); status != http.StatusOK {
			a.t.Fatalf("DELETE %s/passing: %d: %s", collection, status, answer)
		}
	}
	for _, ns := range []string{"team-2", "team2", "tea"} {
		change(hazardGroup+"/namespaces/"+ns+"/pots", "hazards.example.com/v1", "Pot", secret)
		change("/api/v1/namespaces/"+ns+"/configmaps", "v1", "ConfigMap", secret)
	}
	change(hazardGroup+"/namespaces/team/potsherds", "hazards.example.com/v1", "Potsherd", neighbour)
	change(siblingGroup+"/namespaces/team/pots", "hazards.example.community/v1", "Pot", neighbour)
	change("/api/v1/namespaces/team/secrets", "v1", "Secret", neighbour)
	a.made(hazardGroup+"/namespaces/team/pots", markedObject("hazards.example.com/v1", "Pot", "zz-last", "plain"))
	a.made("/api/v1/namespaces/team/configmaps", markedObject("v1", "ConfigMap", "zz-last", "plain"))
}

// A rightsWatch is a watch that has been opened.
type rightsWatch struct {
	x     *trespasser
	path  string
	shows bool // whether it has anything to show
	last  chan struct{}
	done  chan struct{}
	end   context.CancelFunc
	lines []string
}

// watch opens a watch, and returns when the server has begun to answer.
func (x *trespasser) watch(ctx context.Context, path string, shows bool) *rightsWatch {
	x.t.Helper()
	ctx, end := context.WithCancel(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, x.base+path, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	resp, err := x.client.Do(req)
	if err != nil {
		x.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		x.t.Fatalf("%s: GET %s: %s", x.name, path, resp.Status)
	}
	w := &rightsWatch{x: x, path: path, shows: shows, last: make(chan struct{}), done: make(chan struct{}), end: end}
	go func() {
		defer close(w.done)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			w.lines = append(w.lines, lines.Text())
			if strings.Contains(lines.Text(), `"name":"zz-last"`) {
				close(w.last)
				return
			}
		}
	}()
	return w
}

// wait ends the watch when it has shown the last object, and looks at what it has shown. One that shows nothing is over with the others,
// which come before it.
func (w *rightsWatch) wait() {
	w.x.t.Helper()
	if w.shows {
		select {
		case <-w.last:
		case <-w.done:
		case <-time.After(30 * time.Second):
		}
		select {
		case <-w.last:
		default:
			w.x.t.Errorf("%s: GET %s has not shown the last object", w.x.name, w.path)
		}
	}
	w.end()
	<-w.done
	for _, line := range w.lines {
		w.x.sees("GET "+w.path, http.StatusOK, line)
		if !w.shows || strings.Contains(line, `"name":"passing"`) || !strings.Contains(line, fmt.Sprintf(`"kind":%q`, w.x.kind)) {
			w.x.t.Errorf("%s: GET %s shows %.300s", w.x.name, w.path, line)
		}
	}
}

// selectors asks for more than a name that is allowed, through the query: rights for one name are good for lists that select this name.
func (q *quarter) selectors() {
	x := q.keeper
	const kilns = hazardGroup + "/kilns"
	for _, query := range []string{
		"", "?watch=1&timeoutSeconds=1", "?fieldSelector=metadata.name%3Dtwo", "?fieldSelector=metadata.name!%3Dtwo", "?fieldSelector=metadata.name%3Done-more", "?labelSelector=metadata.name%3Done",
		"?fieldSelector=metadata.name%3Dtwo&fieldSelector=metadata.name%3Done", "?fieldselector=metadata.name%3Done", "?fieldSelector=metadata.name%3D", "?fieldSelector=metadata.name", "?fieldSelector=metadata.name%3D..%2fone",
		"?fieldSelector=metadata.name%3Done%00", "?name=one", "?fieldSelector=", "?fieldSelector=metadata.name%3D*", "?limit=1",
	} {
		for _, accept := range []string{jsonType, "application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"} {
			status, _, answer := x.ask(http.MethodGet, kilns+query, accept, "", "")
			if status != http.StatusForbidden && status != http.StatusBadRequest {
				x.t.Errorf("%s: GET %s: %d: %.300s", x.name, kilns+query, status, answer)
			}
			x.sees("GET "+kilns+query, status, answer)
		}
	}
	for _, query := range []string{
		"?fieldSelector=metadata.name%3Done", "?fieldSelector=metadata.name%3Done&fieldSelector=metadata.name%3Dtwo", "?fieldSelector=metadata.name%3Done,metadata.name%3Dtwo", "?fieldSelector=metadata.name%3D%3Done",
		"?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1", "?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1&resourceVersion=1", "?fieldSelector=metadata.name%3Done&watch=1&timeoutSeconds=1&resourceVersion=0",
		"?fieldSelector=metadata.name%3Done&limit=1&continue=" + q.admin.listing(kilns+"?limit=1").Metadata.Continue, "?fieldSelector=metadata.name%3Done&resourceVersion=0",
	} {
		if status, answer := x.blind(http.MethodGet, kilns+query, "", ""); status == http.StatusForbidden {
			x.t.Errorf("%s: GET %s: %d: %.300s", x.name, kilns+query, status, answer)
		}
	}
	for _, path := range []string{"/two", "/one-more", "/one/status", "/one/scale", "/on", "/One"} {
		for _, method := range rightsAllMethods {
			contentType, body := rightsBody(method, "hazards.example.com/v1", "Kiln", "one")
			x.denied(method, kilns+path, contentType, body)
		}
	}
	// Many are deleted by no name, whatever is selected.
	x.denied(http.MethodDelete, kilns+"?fieldSelector=metadata.name%3Done", "", "")
	x.denied(http.MethodDelete, kilns, "", "")
}

// borrowed sends names that belong to another user, in headers and bodies.
func (q *quarter) borrowed() {
	for _, x := range []*trespasser{q.potter, q.clerk, q.mayor} {
		for _, headers := range [][]string{
			{"Impersonate-User", "admin", "Impersonate-Group", "system:masters"}, {"Impersonate-User", "clerk"}, {"Impersonate-Group", "system:masters"}, {"Impersonate-Uid", "1"}, {"Impersonate-User", ""},
			{"Impersonate-User", x.name, "Impersonate-Extra-A", "b"}, {"Impersonate-User", "system:serviceaccount:team-2:default"}, {"X-Remote-User", "admin", "X-Remote-Group", "system:masters"},
			{"X-Http-Method-Override", "GET"}, {"X-Original-Url", x.own}, {"X-Forwarded-Prefix", x.own}, {"Authorization", "Bearer system:masters"}, {"Authorization", "Basic YWRtaW46YWRtaW4="},
		} {
			path := strings.Replace(x.own, "/team/", "/team-2/", 1)
			status, answer := x.dressed(path, headers)
			if status != http.StatusForbidden && status != http.StatusUnauthorized && status != http.StatusInternalServerError && status != http.StatusBadRequest {
				x.t.Errorf("%s: GET %s with %q: %d: %.300s", x.name, path, headers, status, answer)
			}
			x.sees("GET "+path, status, answer)
		}
	}
	const pots = hazardGroup + "/namespaces/team/pots"
	elsewhere := strings.Replace(hazard("Pot", "one", `{}`), `"name":`, `"namespace":"team-2","name":`, 1)
	q.potter.refused(http.MethodPut, pots+"/one", jsonType, elsewhere)
	q.potter.refused(http.MethodPost, pots, jsonType, strings.Replace(elsewhere, `"one"`, `"smuggled"`, 1))
	q.potter.refused(http.MethodPut, pots+"/one", jsonType, hazard("Pot", "two", `{}`))
	q.potter.refused(http.MethodPut, pots+"/one", jsonType, hazard("Potsherd", "one", `{}`))
	q.potter.refused(http.MethodPatch, pots+"/one", "application/merge-patch+json", `{"metadata":{"namespace":"team-2"}}`)
	q.potter.refused(http.MethodPatch, pots+"/one", jsonPatchType, `[{"op":"replace","path":"/metadata/namespace","value":"team-2"}]`)
	q.potter.refused(http.MethodPatch, pots+"/one?fieldManager=x&force=true", "application/apply-patch+yaml", elsewhere)
	q.potter.refused(http.MethodPatch, pots+"/one?fieldManager=x&force=true", "application/apply-patch+yaml", hazard("Kiln", "one", `{}`))
	q.clerk.refused(http.MethodPost, "/api/v1/namespaces/team/configmaps", jsonType, strings.Replace(markedObject("v1", "ConfigMap", "smuggled", "x"), `"name":`, `"namespace":"team-2","name":`, 1))
	q.clerk.refused(http.MethodPost, "/api/v1/namespaces/team/configmaps", jsonType, markedObject("v1", "Secret", "smuggled", "x"))
}

// dressed gets a path with further headers.
func (x *trespasser) dressed(path string, headers []string) (int, string) {
	x.t.Helper()
	a := *x.attacker
	client := *a.client
	client.Transport = withHeaders{headers, client.Transport}
	a.client = &client
	status, _, answer := a.send(http.MethodGet, path, "", "")
	return status, answer
}

type withHeaders struct {
	headers []string
	next    http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w withHeaders) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	for i := 0; i < len(w.headers); i += 2 {
		req.Header.Set(w.headers[i], w.headers[i+1])
	}
	return w.next.RoundTrip(req)
}

// deletion deletes all that is one's own, and nothing else goes: the test compares what etcd has.
func (q *quarter) deletion() {
	for _, x := range []*trespasser{q.potter, q.clerk} {
		plural := strings.Replace(x.own, "/namespaces/team", "", 1)
		for _, path := range []string{plural, strings.Replace(x.own, "/team/", "/team-2/", 1), strings.Replace(x.own, "/team/", "/tea/", 1), hazardGroup + "/namespaces/team/potsherds", "/api/v1/namespaces/team", "/api/v1/namespaces/team/secrets"} {
			x.denied(http.MethodDelete, path, "", "")
			x.denied(http.MethodDelete, path+"?fieldSelector=metadata.namespace%3Dteam", "", "")
		}
		before := len(x.listing(x.own).Items)
		if status, _, answer := x.send(http.MethodDelete, x.own+"?fieldSelector=metadata.namespace%3Dteam-2", "", ""); status != http.StatusOK {
			x.t.Errorf("%s: deleting those of another namespace: %d: %s", x.name, status, answer)
		}
		if n := len(x.listing(x.own).Items); n == 0 || n != before {
			x.t.Errorf("%s: %d are left of %d that were not selected", x.name, n, before)
		}
		if status, _, answer := x.send(http.MethodDelete, x.own, "", ""); status != http.StatusOK {
			x.t.Errorf("%s: deleting all: %d: %s", x.name, status, answer)
		}
		if n := len(x.listing(x.own).Items); n != 0 {
			x.t.Errorf("%s: %d are left of all", x.name, n)
		}
	}
}
