package scenarios

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// waysOut are names that would lead elsewhere, if the server took them for a path. They start where the names of pots and config maps in
// the namespace team are.
var waysOut = []string{
	"%2e%2e", "%2E.", "..%2fteam-2%2fone", "%2e%2e%2fteam-2%2fone", "..%2Fteam-2%2Fone", "-2%2fone", "..%2f..%2fpotsherds%2fteam%2fone", "..%2f..%2fsecrets%2fteam%2fone",
	"one%2f..%2f..%2fteam-2%2fone", "herds%2fteam%2fone", "%252e%252e%252fteam-2%252fone", "one%2f", "%2fone", "%00", "one%00", "one%3fx=1", "one%23", "..%5cteam-2%5cone",
	"%c0%ae%c0%ae%c0%afteam-2", "..;%2fteam-2%2fone", ".%2fone", "one%2fstatus", "one%2f..%2ftwo",
}

// openWays are ways through segments of the path itself.
var openWays = []string{
	"..", ".", "", "/", "//", "/one", "//one", "../../team-2/pots/one", "../../team-2/configmaps/one", "./one", "one/", "one//", "one//status", "one/../two", "..//..//team-2//pots",
	"one/status/", "one/status/x", "one/scale/../../..", "one/x", "../potsherds/one", "../secrets/one",
}

// paths tries to leave what is allowed through the names in a path (CVE-2022-3162).
func (q *quarter) paths() {
	for _, x := range []*trespasser{q.potter, q.clerk, q.mayor} {
		group, plural, _ := strings.Cut(x.own, "/namespaces/team/")
		for _, way := range slices.Concat(waysOut, openWays) {
			for _, path := range []string{
				x.own + "/" + way,
				x.own + "/" + way + "/status",
				group + "/namespaces/" + way + "/" + plural,
				group + "/namespaces/" + way + "/" + plural + "/one",
				group + "/namespaces/team/" + way,
				group + "/namespaces/team" + way + "/" + plural,
				group + "//namespaces/team/" + way + plural,
			} {
				x.blind(http.MethodGet, path, "", "")
			}
		}
		for _, way := range waysOut {
			for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodDelete} {
				contentType, body := rightsBody(method, "", "", "one")
				x.blind(method, x.own+"/"+way, contentType, body)
				x.blind(method, group+"/namespaces/team%2f..%2fteam-2/"+plural+"/one", contentType, body)
				x.blind(method, group+"/namespaces/"+way+"/"+plural+"/one", contentType, body)
			}
		}
		// The other spellings of what is not theirs.
		for _, path := range []string{
			group + "/namespaces/team-2/" + plural, group + "/namespaces/team%2d2/" + plural, group + "/namespaces/TEAM-2/" + plural, group + "/namespaces/team-2/" + plural + "/one",
			group + "/namespaces/%74eam-2/" + plural + "/one", group + "/namespaces/team-2/" + plural + "/", group + "/namespaces/*/" + plural, group + "/namespaces/%2a/" + plural,
			group + "/" + plural, group + "/namespaces//" + plural, group + "/watch/" + plural, group + "/watch/namespaces/team-2/" + plural, group + "/proxy/namespaces/team-2/" + plural,
			siblingGroup + "/namespaces/team-2/pots", "/api/v1/secrets", "/api/v1/namespaces/team-2", "/api/v1/namespaces/team-2/secrets/one",
		} {
			for _, form := range []string{path, "/" + path, strings.Replace(path, "/v1/", "//v1/", 1), strings.Replace(path, "/v1/", "/./v1/", 1), strings.Replace(path, "/v1/", "/../apis/hazards.example.com/v1/", 1), strings.Replace(path, "/v1/", "%2fv1/", 1)} {
				if status, answer := x.blind(http.MethodGet, form, "", ""); status == http.StatusOK {
					x.t.Errorf("%s: GET %s: %d: %.300s", x.name, form, status, answer)
				}
			}
		}
	}
}

// siblings reads lists whose keys in etcd begin like those of other lists, and of another server on the same etcd.
func (q *quarter) siblings() {
	t := q.admin.t
	c := etcdClient(t)
	for _, key := range []string{"/hazards.example.com/pots/team/", "/configmaps/team/"} {
		got, err := c.Get(t.Context(), q.prefix+key+"one")
		if err != nil || len(got.Kvs) != 1 {
			t.Fatalf("%s is not in etcd: %v", key, err)
		}
		if _, err := c.Put(t.Context(), q.prefix+"x"+key+"alien", string(got.Kvs[0].Value)); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"one", "one-more", "two"}
	for _, x := range []*trespasser{q.potter, q.clerk} {
		for _, query := range []string{"?limit=1", "?limit=2", "?limit=500", "?resourceVersion=0", "?limit=1&resourceVersion=0"} {
			var names []string
			next := ""
			for range 10 {
				l := x.listing(x.own + query + next)
				for _, item := range l.Items {
					names = append(names, item.Metadata.Namespace+"/"+item.Metadata.Name)
				}
				if l.Metadata.Continue == "" {
					break
				}
				query, next = strings.TrimSuffix(query, "&resourceVersion=0"), "&continue="+url.QueryEscape(l.Metadata.Continue)
			}
			names = slices.DeleteFunc(names, func(name string) bool { return name == "team/kube-root-ca.crt" })
			for i := range names {
				names[i] = strings.TrimPrefix(names[i], "team/")
			}
			if !slices.Equal(names, want) {
				t.Errorf("%s: a list with %s has %q, not %q", x.name, query, names, want)
			}
		}
	}
}

// tokens continues lists of one's own with tokens of other lists, and with made ones.
func (q *quarter) tokens() {
	token := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	var tokens []string
	version := ""
	for _, path := range []string{
		hazardGroup + "/pots", hazardGroup + "/namespaces/team-2/pots", hazardGroup + "/namespaces/tea/pots", hazardGroup + "/potsherds", hazardGroup + "/namespaces/team/potsherds", hazardGroup + "/kilns",
		siblingGroup + "/pots", "/api/v1/configmaps", "/api/v1/namespaces/team-2/configmaps", "/api/v1/namespaces/team/secrets", "/api/v1/namespaces", rbacPath + "/clusterroles",
		hazardGroup + "/namespaces/team/pots", "/api/v1/namespaces/team/configmaps",
	} {
		for _, query := range []string{"?limit=1", "?limit=2", "?limit=1&resourceVersion=0"} {
			l := q.admin.listing(path + query)
			version = l.Metadata.ResourceVersion
			if l.Metadata.Continue != "" {
				tokens = append(tokens, l.Metadata.Continue)
			}
		}
	}
	if len(tokens) < 20 {
		q.admin.t.Fatalf("the administrator has got %d tokens", len(tokens))
	}
	for _, start := range []string{"", "/", "..", "../", "../team-2/", "../../secrets/team/one", "-2/", "-2/one", "2/one", "herds/team/", "team-2/one", "team/../../team-2/one", "\\u0000", "one\\u0000", "//", "../tea/one", "../../potsherds/team/one"} {
		for _, rv := range []string{version, "-1", "1", "0"} {
			tokens = append(tokens, token(fmt.Sprintf(`{"v":"meta.k8s.io/v1","rv":%s,"start":"%s"}`, rv, start)))
		}
	}
	for _, x := range []*trespasser{q.potter, q.clerk} {
		for _, tk := range tokens {
			for _, query := range []string{"?limit=5&continue=", "?resourceVersion=0&continue="} {
				status, answer := x.blind(http.MethodGet, x.own+query+url.QueryEscape(tk), "", "")
				switch status {
				case http.StatusOK:
					x.onlyOwn(fmt.Sprintf("a list that continues with %s", tk), answer)
				case http.StatusBadRequest, http.StatusGone:
				default:
					x.t.Errorf("%s: a list that continues with %s: %d: %.300s", x.name, tk, status, answer)
				}
			}
		}
		// A token is no right.
		foreign := strings.Replace(x.own, "/team/", "/team-2/", 1)
		for _, tk := range tokens[:20] {
			x.denied(http.MethodGet, foreign+"?limit=5&continue="+url.QueryEscape(tk), "", "")
			x.denied(http.MethodGet, strings.Replace(x.own, "/namespaces/team", "", 1)+"?limit=5&continue="+url.QueryEscape(tk), "", "")
		}
	}
}

// versions asks for other times.
func (q *quarter) versions() {
	now := q.admin.listing(hazardGroup + "/pots?limit=1").Metadata.ResourceVersion
	q.potter.blind(http.MethodGet, q.potter.own+"?resourceVersion=9223372036854775807", "", "") // the server waits for it, for a while
	for _, x := range []*trespasser{q.potter, q.clerk} {
		plural := strings.Replace(x.own, "/namespaces/team", "", 1)
		for _, rv := range []string{"", "0", "1", "2", "-1", "x", now, "1e3", "%00"} {
			for _, match := range []string{"", "Exact", "NotOlderThan", "Newest"} {
				query := "?resourceVersion=" + rv
				if match != "" {
					query += "&resourceVersionMatch=" + match
				}
				if status, answer := x.blind(http.MethodGet, x.own+query, "", ""); status == http.StatusOK {
					x.onlyOwn("a list with "+query, answer)
				}
				x.blind(http.MethodGet, x.own+"/one"+query, "", "")
				x.denied(http.MethodGet, plural+query, "", "")
				x.denied(http.MethodGet, strings.Replace(x.own, "/team/", "/team-2/", 1)+query, "", "")
				x.denied(http.MethodGet, strings.Replace(x.own, "/team/", "/team-2/", 1)+"/one"+query, "", "")
				x.denied(http.MethodGet, plural+query+"&watch=1&timeoutSeconds=1&sendInitialEvents=true", "", "")
			}
		}
	}
}
