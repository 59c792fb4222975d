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
