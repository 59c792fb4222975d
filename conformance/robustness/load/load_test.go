package load

import (
	"encoding/json"
	"net/http"
	"reflect"
	"testing"

	"github.com/espalier-dev/espalier/conformance/robustness/history"
)

// What a client knows of a write is what the answer says: nothing else means that nothing was written.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		code int
		data string
		want history.Outcome
	}{
		{0, ``, history.Unknown},
		{http.StatusOK, `{}`, history.Done},
		{http.StatusCreated, `{}`, history.Done},
		{http.StatusConflict, `{"reason":"AlreadyExists"}`, history.Refused},
		{http.StatusTooManyRequests, `{}`, history.Refused},
		{http.StatusInternalServerError, `{}`, history.Unknown},
		{http.StatusServiceUnavailable, `{"reason":"ServiceUnavailable"}`, history.Unknown},
		{http.StatusServiceUnavailable, `{"details":{"causes":[{"reason":"NothingWritten"}]}}`, history.Refused},
		{http.StatusGatewayTimeout, `{"details":{"causes":[{"reason":"OutcomeUnknown"}]}}`, history.Unknown},
		{http.StatusGatewayTimeout, `{"details":{"causes":[{"reason":"NothingWritten"}]}}`, history.Unknown},
		{http.StatusBadGateway, `no JSON`, history.Unknown},
	} {
		a := Answer{Code: c.code, Data: []byte(c.data)}
		a.explain()
		if got := a.Outcome(); got != c.want {
			t.Errorf("%d %s: %s instead of %s", c.code, c.data, got, c.want)
		}
	}
}

// An object is read as it was written.
func TestItem(t *testing.T) {
	want := history.Item{
		Resource: Things, Name: "ns/a", UID: "u", Revision: 7, Log: []string{"1.1", "2.3"}, Marks: map[string]string{"first": "1.2"},
		Schema: 12, APIVersion: Group + "/v1", Finalizers: []string{finalizer}, Owners: []string{"o"}, Labels: map[string]string{"pool": "bulk"},
	}
	var o map[string]any
	if err := json.Unmarshal(body(&want, []history.Item{{Name: "ns/owner", UID: "o"}}), &o); err != nil {
		t.Fatal(err)
	}
	spec := o["spec"].(map[string]any)
	spec["p3"], spec["p12"] = "d", "d"
	got, err := ItemOf(Things, encode(o))
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\ninstead of\n%+v", got, want)
	}
	if it, err := ItemOf(Things, []byte(`{"metadata":{"name":"a","deletionTimestamp":"2026-01-01T00:00:00Z"}}`)); err != nil || !it.Deleting || it.Schema != -1 || it.Name != "a" {
		t.Errorf("%+v, %v", it, err)
	}
	if _, err := ItemOf(Things, []byte(`{`)); err == nil {
		t.Error("half an object is none")
	}
}

// The log says how many objects a namespace had, and what was written into one that was gone.
func TestComplete(t *testing.T) {
	r := &run{ns: "run1", rec: newRecord(1), limited: true, goneAt: 30}
	write := func(revision int64, key string, created, deleted bool) history.Write {
		return history.Write{Revision: revision, Key: key, Created: created, Deleted: deleted}
	}
	r.rec.h.Writes = []history.Write{
		write(10, "crates/run1-quota/a", true, false), write(11, "crates/run1-quota/b", true, false), write(12, "crates/run1-quota/a", false, false),
		write(13, "crates/run1-quota/b", false, true), write(20, "crates/run1-gone/a", true, false), write(29, "crates/run1-gone/a", false, true),
		write(31, "crates/run1-gone/b", true, false), write(32, "things/run1/a", true, false),
	}
	r.complete()
	want := []history.Quota{{Hard: quotaHard, Count: 1, Revision: 10}, {Hard: quotaHard, Count: 2, Revision: 11}, {Hard: quotaHard, Count: 1, Revision: 13}}
	if !reflect.DeepEqual(r.rec.h.Quotas, want) {
		t.Errorf("%+v", r.rec.h.Quotas)
	}
	if len(r.rec.findings) != 1 || r.rec.findings[0].Checker != "namespace" {
		t.Errorf("%+v", r.rec.findings)
	}
}

// What an engine's watch has not shown is found by reading its log again, up to the end of the run.
func TestLacking(t *testing.T) {
	log := func(revisions ...int64) (out []history.Write) {
		for _, r := range revisions {
			out = append(out, history.Write{Revision: r})
		}
		return out
	}
	if got := lacking(log(3, 7, 9), log(3, 5, 7, 9, 11), 10); !reflect.DeepEqual(got, log(5)) {
		t.Errorf("%+v", got)
	}
	if got := lacking(log(3, 4, 5), log(5), 10); len(got) > 0 {
		t.Errorf("what is compacted counts as not shown: %+v", got)
	}
}

// A leader's token is in the ID of its write.
func TestToken(t *testing.T) {
	for id, want := range map[string]int64{"5:candidate1:140.3": 5, "140.3": 0, "12:x:1.1": 12} {
		if got := tokenOf(&history.Item{Log: []string{"1:a:1.1", id}}); got != want {
			t.Errorf("%s: %d", id, got)
		}
	}
	if tokenOf(&history.Item{}) != 0 {
		t.Error("no client has written")
	}
}
