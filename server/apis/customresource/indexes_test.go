package customresource

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/espalier-dev/espalier/server/catalog"
	"github.com/espalier-dev/espalier/server/endpoints/apitest"
)

const cratesYAML = `
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crates, kind: Crate}
  versions:
  - name: v1
    served: true
    storage: true
    selectableFields: [{jsonPath: .spec.to}, {jsonPath: .spec.weight}]
    schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {to: {type: string}, weight: {type: integer}}}}}}
`

// TestIndexedSelectors: lists and watches with selectors that indexes are declared for give what they give without.
func TestIndexedSelectors(t *testing.T) {
	const crates = "/apis/example.com/v1/namespaces/n/crates"
	declared := func(indexes string) func(map[string]any) {
		return func(d map[string]any) {
			d["metadata"].(map[string]any)["annotations"] = map[string]any{catalog.IndexesAnnotation: indexes}
		}
	}
	e := start(t)
	e.define(cratesYAML)
	crate := func(i, to, weight int, team string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":"c%02d","labels":{"team":%q}},"spec":{"to":"t%d","weight":%d}}`, i, team, to, weight)
	}
	for i := range 20 {
		e.Do("POST", crates, crate(i, i%3, i%2, fmt.Sprintf("team%d", i%4))).Is(http.StatusCreated)
	}
	names := func(selectors string) string {
		var l struct {
			Items []struct{ Metadata struct{ Name string } }
		}
		if err := json.Unmarshal(e.Do("GET", crates+"?"+selectors, "").Is(http.StatusOK).Body, &l); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, i := range l.Items {
			names = append(names, i.Metadata.Name)
		}
		return strings.Join(names, " ")
	}
	selectors := []string{
		"", "labelSelector=team%3Dteam1", "fieldSelector=spec.to%3Dt2", "fieldSelector=spec.to%3Dt2,spec.weight%3D1", "fieldSelector=spec.to!%3Dt2",
		"labelSelector=team%3Dteam1&fieldSelector=spec.to%3Dt1", "labelSelector=team%3Dnone", "labelSelector=team+in+(team1,team2)",
		"fieldSelector=metadata.name%3Dc07",
	}
	all := func() (got []string) {
		for _, s := range selectors {
			got = append(got, names(s))
		}
		return got
	}
	plain := all()
	for _, indexes := range []string{"label:team", "field:spec.to", "label:team, field:spec.weight, field:spec.to", "nonsense"} {
		e.define(cratesYAML, declared(indexes))
		for round := range 3 { // the first ones fill the watch cache
			if got := all(); !slices.Equal(got, plain) {
				t.Errorf("%s, round %d: %q, want %q", indexes, round, got, plain)
			}
		}
	}

	// Objects that begin and end to be selected, by the indexed field and by others.
	e.define(cratesYAML, declared("field:spec.to"))
	at := e.Do("GET", crates, "").Is(http.StatusOK).At("metadata.resourceVersion").(string)
	var watches []*apitest.Events
	for _, s := range selectors[:6] {
		watches = append(watches, e.Watch(crates+"?watch=1&resourceVersion="+at+"&"+s))
	}
	e.Do("POST", crates, crate(30, 2, 1, "team1")).Is(http.StatusCreated)
	e.Patch("merge", crates+"/c30", crate(30, 1, 1, "team1")).Is(http.StatusOK)
	e.Patch("merge", crates+"/c30", crate(30, 2, 0, "team2")).Is(http.StatusOK)
	e.Do("DELETE", crates+"/c30", "").Is(http.StatusOK)
	for i, want := range []string{
		"ADDED MODIFIED MODIFIED DELETED", "ADDED MODIFIED DELETED", "ADDED DELETED ADDED DELETED", "ADDED DELETED", "ADDED DELETED", "ADDED DELETED",
	} {
		var got []string
		for range strings.Fields(want) {
			event, _ := watches[i].Next()
			got = append(got, fmt.Sprint(event.At("type")))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("a watch with %q gets %s, want %s", selectors[i], got, want)
		}
	}
}

// TestIndexedArrays: objects are selected by the values of an array if an index is declared for it, and
// not otherwise.
func TestIndexedArrays(t *testing.T) {
	const crates = "/apis/example.com/v1/namespaces/n/crates"
	e := start(t)
	tagged := strings.Replace(cratesYAML, "weight: {type: integer}", "weight: {type: integer}, tags: {type: array, maxItems: 5, items: {type: string}}, sizes: {type: array, maxItems: 3, items: {type: integer}}", 1)
	declared := func(d map[string]any) {
		d["metadata"].(map[string]any)["annotations"] = map[string]any{catalog.IndexesAnnotation: "field:spec.tags[], field:spec.sizes[]"}
	}
	e.define(tagged)
	crate := func(name, tags string) string {
		return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Crate","metadata":{"name":%q},"spec":{"tags":%s,"sizes":[%d]}}`, name, tags, len(tags))
	}
	for name, tags := range map[string]string{"a": `["red","big"]`, "b": `["red","red"]`, "c": `[]`, "d": `["re","d","a]=,b"]`} {
		e.Do("POST", crates, crate(name, tags)).Is(http.StatusCreated)
	}
	if text := string(e.Do("GET", crates+"?fieldSelector=spec.tags%3Dred", "").Is(http.StatusBadRequest).Body); !strings.Contains(text, "field label not supported: spec.tags") {
		t.Error(text)
	}
	e.define(tagged, declared)
	for round := range 3 {
		for selector, want := range map[string]string{
			"spec.tags%3Dred": "a b", "spec.tags%3D%3Dbig,spec.tags%3Dred": "a", "spec.tags!%3Dred": "c d", "spec.tags%3D": "", "spec.tags%3Da%5D%5C%3D%5C,b": "d",
			"spec.sizes%3D13": "a b", "spec.tags%3Dred,spec.sizes%3D14": "", "spec.tags%3Dred,metadata.name%3Db": "b",
		} {
			var l struct {
				Items []struct{ Metadata struct{ Name string } }
			}
			if err := json.Unmarshal(e.Do("GET", crates+"?fieldSelector="+selector, "").Is(http.StatusOK).Body, &l); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, i := range l.Items {
				names = append(names, i.Metadata.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("round %d: %s selects %q, want %q", round, selector, got, want)
			}
		}
	}
	e.Do("GET", crates+"?fieldSelector=spec.tags%5Bred%5D%3Dtrue", "").Is(http.StatusBadRequest)

	at := e.Do("GET", crates, "").Is(http.StatusOK).At("metadata.resourceVersion").(string)
	red, big := e.Watch(crates+"?watch=1&fieldSelector=spec.tags%3Dred&resourceVersion="+at), e.Watch(crates+"?watch=1&fieldSelector=spec.tags%3Dbig&resourceVersion="+at)
	e.Patch("merge", crates+"/c", `{"spec":{"tags":["big","red"]}}`).Is(http.StatusOK)
	e.Patch("merge", crates+"/c", `{"spec":{"tags":["small","red"]}}`).Is(http.StatusOK)
	e.Do("DELETE", crates+"/c", "").Is(http.StatusOK)
	for watch, want := range map[*apitest.Events]string{red: "ADDED MODIFIED DELETED", big: "ADDED DELETED"} {
		for _, one := range strings.Fields(want) {
			if event, _ := watch.Next(); event.At("type") != one {
				t.Errorf("got %v, want %s of %s", event.At("type"), one, want)
			}
		}
	}
}
