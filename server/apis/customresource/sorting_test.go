package customresource

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/catalog"
)

// TestSortedLists: a sorted list has what a sort of all objects has, in pages of any size, with ranges, selectors
// and namespaces. Objects that are written between two pages change nothing.
func TestSortedLists(t *testing.T) {
	e := start(t)
	e.define(cratesYAML, func(d map[string]any) {
		d["metadata"].(map[string]any)["annotations"] = map[string]any{catalog.IndexesAnnotation: "label:team, field:spec.to, field:spec.weight"}
	})
	const all = "/apis/example.com/v1/crates"
	type crate struct {
		ns, name, team, to string
		weight             int
		heavy              bool // it has a weight
	}
	random := rand.New(rand.NewPCG(1, 1))
	var crates []crate
	for i := range 60 {
		c := crate{fmt.Sprintf("n%d", i%3), fmt.Sprintf("c%02d", random.IntN(100_000)), "", fmt.Sprintf("t%d", random.IntN(12)), random.IntN(300) - 100, i%7 != 0}
		text := fmt.Sprintf(`"to":%q`, c.to)
		if c.heavy {
			text += fmt.Sprintf(`,"weight":%d`, c.weight)
		}
		labels := "{}"
		if i%4 != 0 {
			c.team = fmt.Sprintf("team%d", random.IntN(3))
			labels = fmt.Sprintf(`{"team":%q}`, c.team)
		}
		e.Do("POST", "/apis/example.com/v1/namespaces/"+c.ns+"/crates",
			fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":%q,"labels":%s},"spec":{%s}}`, c.name, labels, text)).Is(http.StatusCreated)
		crates = append(crates, c)
	}
	list := func(path string, query url.Values) (names []string, next string) {
		t.Helper()
		var l struct {
			Metadata struct{ Continue string }
			Items    []struct {
				Metadata struct{ Namespace, Name string }
			}
		}
		if err := json.Unmarshal(e.Do("GET", path+"?"+query.Encode(), "").Is(http.StatusOK).Body, &l); err != nil {
			t.Fatal(err)
		}
		for _, i := range l.Items {
			names = append(names, i.Metadata.Namespace+"/"+i.Metadata.Name)
		}
		return names, l.Metadata.Continue
	}
	orders := map[string]func(a, b crate) int{
		"label:team":    func(a, b crate) int { return strings.Compare(a.team, b.team) },
		"field:spec.to": func(a, b crate) int { return strings.Compare(a.to, b.to) },
		"field:spec.weight": func(a, b crate) int {
			switch {
			case !a.heavy && !b.heavy:
				return 0
			case !a.heavy:
				return -1
			case !b.heavy:
				return 1
			}
			return a.weight - b.weight
		},
	}
	ranges := map[string][2]string{"label:team": {"team1", "team2"}, "field:spec.to": {"t1", "t5"}, "field:spec.weight": {"-20", "99"}}
	inside := map[string]func(c crate, from, before bool) bool{
		"label:team": func(c crate, from, before bool) bool {
			return (!from || c.team >= "team1") && (!before || c.team < "team2")
		},
		"field:spec.to": func(c crate, from, before bool) bool { return (!from || c.to >= "t1") && (!before || c.to < "t5") },
		"field:spec.weight": func(c crate, from, before bool) bool {
			return (!from || c.heavy && c.weight >= -20) && (!before || !c.heavy || c.weight < 99)
		},
	}
	for i := range 200 {
		by := []string{"label:team", "field:spec.to", "field:spec.weight"}[i%3]
		query, path := url.Values{"sortBy": {by}}, all
		descending, from, before, within, selected := random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(2) == 0, random.IntN(3) == 0, random.IntN(3) == 0
		var want []crate
		for _, c := range crates {
			if (by != "label:team" || c.team != "") && inside[by](c, from, before) && (!within || c.ns == "n1") && (!selected || c.to == "t3") {
				want = append(want, c)
			}
		}
		slices.SortFunc(want, func(a, b crate) int {
			if order := orders[by](a, b); order != 0 {
				return order
			}
			return strings.Compare(a.ns+"/"+a.name, b.ns+"/"+b.name)
		})
		if descending {
			query.Set("sortBy", "-"+by)
			slices.Reverse(want)
		}
		if from {
			query.Set("sortFrom", ranges[by][0])
		}
		if before {
			query.Set("sortBefore", ranges[by][1])
		}
		if within {
			path = "/apis/example.com/v1/namespaces/n1/crates"
		}
		if selected {
			query.Set("fieldSelector", "spec.to=t3")
		}
		if n := random.IntN(12); n > 0 {
			query.Set("limit", strconv.Itoa(n))
		}
		var got []string
		for pages := 0; ; pages++ {
			names, next := list(path, query)
			if got = append(got, names...); next == "" {
				break
			}
			if query.Set("continue", next); pages == 0 && i%5 == 0 { // at other places of all orders
				e.Do("POST", "/apis/example.com/v1/namespaces/n1/crates", fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":"new-%d","labels":{"team":"team1"}},"spec":{"to":"t3","weight":50}}`, i)).Is(http.StatusCreated)
			}
		}
		if i%5 == 0 {
			e.Do("DELETE", fmt.Sprintf("/apis/example.com/v1/namespaces/n1/crates/new-%d", i), "")
		}
		var names []string
		for _, c := range want {
			names = append(names, c.ns+"/"+c.name)
		}
		if !slices.Equal(got, names) {
			t.Fatalf("%s?%s\n got %v\nwant %v", path, query.Encode(), got, names)
		}
	}
}

// TestSortIsRefused: what cannot be sorted is said so, and not answered in another order.
func TestSortIsRefused(t *testing.T) {
	e := start(t)
	e.define(strings.Replace(cratesYAML, "weight: {type: integer}", "weight: {type: integer}, tags: {type: array, maxItems: 3, items: {type: string}}", 1), func(d map[string]any) {
		d["metadata"].(map[string]any)["annotations"] = map[string]any{catalog.IndexesAnnotation: "field:spec.weight, field:spec.tags[]"}
	})
	const crates = "/apis/example.com/v1/namespaces/n/crates"
	for i := range 3 {
		e.Do("POST", crates, fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":"c%d"},"spec":{"weight":%d}}`, i, i)).Is(http.StatusCreated)
	}
	for query, want := range map[string]string{
		"sortBy=field:spec.to":     "there are: field:spec.weight",
		"sortBy=":                  "is no index",
		"sortBy=field:spec.tags[]": "is no index",
		"sortBy=field:spec.weight&sortBy=field:spec.to": "give it once",
		"sortFrom=1":                                          "need sortBy",
		"sortBy=field:spec.weight&sortFrom=1.5":               "whole number",
		"sortBy=field:spec.weight&sortBefore=":                "whole number",
		"sortBy=field:spec.weight&continue=e30":               "continue token",
		"sortBy=field:spec.weight&continue=%21":               "continue token",
		"sortBy=field:spec.weight&watch=true":                 "sorts lists only",
		"sortBy=field:spec.weight&limit=1&resourceVersion=-1": "resource version",
	} {
		if body := string(e.Do("GET", crates+"?"+query, "").Is(http.StatusBadRequest).Body); !strings.Contains(body, want) {
			t.Errorf("%s: %s", query, body)
		}
	}
	e.Do("DELETE", crates+"?sortBy=field:spec.weight&limit=1", "").Is(http.StatusBadRequest)
	// A token belongs to one order.
	var l struct{ Metadata struct{ Continue string } }
	if err := json.Unmarshal(e.Do("GET", crates+"?sortBy=field:spec.weight&limit=1", "").Is(http.StatusOK).Body, &l); err != nil || l.Metadata.Continue == "" {
		t.Fatalf("%v: %+v", err, l)
	}
	e.Do("GET", crates+"?sortBy=-field:spec.weight&limit=1&continue="+l.Metadata.Continue, "").Is(http.StatusBadRequest)
	e.Do("GET", crates+"?limit=1&continue="+l.Metadata.Continue, "").Is(http.StatusBadRequest)
	// Where the state is gone, the answer has a token for the newest one.
	text, err := base64.RawURLEncoding.DecodeString(l.Metadata.Continue)
	if err != nil {
		t.Fatal(err)
	}
	old := base64.RawURLEncoding.EncodeToString(regexp.MustCompile(`"rv":\d+`).ReplaceAll(text, []byte(`"rv":1`)))
	if err := json.Unmarshal(e.Do("GET", crates+"?sortBy=field:spec.weight&limit=1&continue="+old, "").Is(http.StatusGone).Body, &l); err != nil {
		t.Fatal(err)
	}
	e.Do("GET", crates+"?sortBy=field:spec.weight&limit=1&continue="+l.Metadata.Continue, "").Is(http.StatusOK).Has("items.0.metadata.name", "c1")
}
