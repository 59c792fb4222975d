package customresource

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

const (
	boxesIn     = "/apis/example.com/v1/namespaces/mine/boxes"
	alphaIn     = "/apis/example.com/v1alpha1/namespaces/mine/boxes"
	alphaOthers = "/apis/example.com/v1alpha1/namespaces/others/boxes"
	allAlpha    = "/apis/example.com/v1alpha1/boxes"
	refusal     = `the object must convert to version v1alpha1 by the rules of its CRD, otherwise lists in this version fail: ` +
		`converting "mine/big" from v1 to v1alpha1 failed: its annotations would have `
)

// namespacedRules is the CRD of rulesYAML in namespaces.
func namespacedRules() string {
	return strings.Replace(rulesWith("move: {from: spec.size, to: spec.width}"), "scope: Cluster", "scope: Namespaced", 1)
}

// boxWith returns a box whose level, which v1alpha1 does not have, has a length.
func boxWith(name string, length int) string {
	return box(name, `"width":1,"level":"`+strings.Repeat("x", length)+`"`)
}

// listsOf checks that lists of all users in v1alpha1 have so many objects.
func (e *env) listsOf(n int) {
	e.TB.Helper()
	for _, path := range []string{allAlpha, allAlpha + "?resourceVersion=0", alphaIn} {
		if items := e.Do("GET", path, "").Is(http.StatusOK).At("items").([]any); len(items) != n {
			e.TB.Errorf("%s has %d objects, not %d", path, len(items), n)
		}
	}
	e.Do("GET", alphaOthers+"?resourceVersion=0", "").Is(http.StatusOK)
}

const tooLong = 300 << 10

// A user who may write in one namespace wrote an object that does not convert into another version. Then lists in this
// version failed, for all users, in all namespaces.
func TestUnconvertibleObjectsAreRefused(t *testing.T) {
	e := start(t)
	e.define(namespacedRules())
	e.Do("POST", boxesIn, boxWith("small", 10)).Is(http.StatusCreated)
	e.Do("POST", boxesIn, boxWith("big", tooLong)).Is(http.StatusUnprocessableEntity).Mentions(refusal)
	e.listsOf(1)

	e.Do("POST", boxesIn, boxWith("big", 10)).Is(http.StatusCreated)
	long := `{"spec":{"level":"` + strings.Repeat("x", tooLong) + `"}}`
	e.Patch("merge", boxesIn+"/big", long).Is(http.StatusUnprocessableEntity).Mentions(refusal)
	e.Patch("apply", boxesIn+"/big?fieldManager=a&force=true", boxWith("big", tooLong)).Is(http.StatusUnprocessableEntity).Mentions(refusal)
	// Other annotations count, too: what is preserved is added to them.
	note := strings.Repeat("x", 256<<10-30)
	e.Patch("merge", boxesIn+"/big", `{"metadata":{"annotations":{"example.com/note":"`+note+`"}}}`).Is(http.StatusUnprocessableEntity).Mentions(refusal)

	// In the other version the object cannot be stored at all.
	alpha := strings.NewReplacer("v1", "v1alpha1", "level", "legacy", "width", "size").Replace(boxWith("big", tooLong))
	e.Do("POST", alphaIn, strings.Replace(alpha, `"big"`, `"bigger"`, 1)).Is(http.StatusUnprocessableEntity).
		Mentions(`must convert to version v1 `).Mentions(`converting "mine/bigger" from v1alpha1 to v1 failed`)
	e.listsOf(2)
}

// Objects that could not be converted before, because the rules were others, can be changed, corrected and deleted in
// their stored version.
func TestUnconvertibleObjectsCanBeCorrected(t *testing.T) {
	e := start(t)
	e.define(namespacedRules())
	const metadata = `"metadata":{"name":"big","namespace":"mine","uid":"1","creationTimestamp":"2026-01-01T00:00:00Z"}`
	for _, correct := range []func(){
		func() { e.Patch("merge", boxesIn+"/big", `{"spec":{"level":"low"}}`).Is(http.StatusOK) },
		func() { e.Do("DELETE", boxesIn+"/big", "").Is(http.StatusOK) },
	} {
		stored := strings.Replace(boxWith("big", tooLong), `"metadata":{"name":"big"}`, metadata, 1)
		if _, err := e.etcd.Put(context.Background(), e.prefix+"/example.com/boxes/mine/big", stored); err != nil {
			t.Fatal(err)
		}
		e.Do("GET", allAlpha, "").Is(http.StatusInternalServerError).Mentions(`converting "mine/big" from v1 to v1alpha1 failed`)
		e.Do("GET", boxesIn+"/big", "").Is(http.StatusOK)
		e.Patch("merge", boxesIn+"/big", `{"metadata":{"labels":{"a":"b"}},"spec":{"width":2}}`).Is(http.StatusOK).Has("spec.width", 2)
		correct()
		e.Do("GET", allAlpha, "").Is(http.StatusOK)
	}
}
