package store_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/storage"

	"github.com/espalier-dev/espalier/internal/object"
	"github.com/espalier-dev/espalier/server/storage/store"
)

// answer is what a list says, or why there is none.
type answer struct {
	items     []string
	next      string
	remaining string
	revision  string
	failure   string
}

func answerOf(t *testing.T, st storage.Interface, key string, opts storage.ListOptions) answer {
	t.Helper()
	l := &object.List{}
	if err := st.GetList(t.Context(), key, opts, l); err != nil {
		reason := string(apierrors.ReasonForError(err))
		if reason == "" {
			reason = err.Error()
		}
		return answer{failure: reason}
	}
	a := answer{next: l.Continue, revision: l.ResourceVersion, remaining: "unknown"}
	if l.RemainingItemCount != nil {
		a.remaining = fmt.Sprint(*l.RemainingItemCount)
	}
	for i := range l.Items {
		a.items = append(a.items, string(l.Items[i].JSON())+" at "+l.Items[i].GetResourceVersion())
	}
	return a
}

// token encodes a continue token as a client may forge one.
func token(revision int64, start string) string {
	data, err := json.Marshal(map[string]any{"v": "meta.k8s.io/v1", "rv": revision, "start": start})
	if err != nil {
		panic(err)
	}
	return base64.RawURLEncoding.EncodeToString(data)
}

// TestListsEqualThoseOfEtcd asks a cache, a cache with indexes and etcd for the same lists of objects that
// do not change, also with tokens of other lists and forged ones. The answers are the same: objects,
// tokens, numbers, revisions and errors.
func TestListsEqualThoseOfEtcd(t *testing.T) {
	t.Parallel()
	b := open(t)
	bare, indexed := spec("v1"), spec("v1")
	bare.Cached = false
	indexed.Indexes = []store.Index{{Label: "parity"}, {Label: "none"}, {Field: "metadata.name"}, {Field: "spec.none"}}
	direct, cached, withIndexes := open1(t, b, bare), open1(t, b, spec("v1")), open1(t, b, indexed)
	h := &historian{}
	random := rand.New(rand.NewPCG(5, 9))
	for range 60 {
		if err := h.write(t.Context(), cached, random); err != nil {
			t.Fatal(err)
		}
	}
	for _, st := range []storage.Interface{cached, withIndexes} { // there are caches, with a past
		list(t, st, "")
		list(t, st, "")
	}
	for range 300 {
		if err := h.write(t.Context(), cached, random); err != nil {
			t.Fatal(err)
		}
	}
	newest := h.events[len(h.events)-1].revision
	old := h.events[70+random.IntN(100)].revision
	selectors := []string{
		"", "", "", "parity=1", "parity!=1", "parity in (0,1)", "parity in (1)", "parity", "!parity", "parity=", "none=x", "!none",
		"parity=1,parity=0", "field:metadata.name=n07", "field:metadata.name!=n07", "field:metadata.name=n07,metadata.namespace=ns", "field:spec.none=", "field:spec.none=x",
	}
	starts := []string{"ns/n10", "ns-b/n05\x00", "n20", "n", "zz", "/ns/n3", "ns", "ns/", "../ns", "..", "a/../b", ".", "\x00", "\xff", "\u00ff", strings.Repeat("n", 4000)}
	tokens := []string{"!", "bm90IGpzb24", "e30", token(0, "ns/n1"), token(newest, "")}
	newestState := map[string]bool{} // tokens that go on with the newest state
	for _, start := range starts {
		tokens = append(tokens, token(newest, start), token(-1, start), token(-5, start), token(old, start))
		newestState[token(-1, start)], newestState[token(-5, start)] = true, true
	}
	var given []string
	failures, pages := 0, 0
	for n := range 700 {
		opts := storage.ListOptions{Recursive: true, Predicate: predicate()}
		selector := selectors[random.IntN(len(selectors))]
		if selector != "" {
			opts.Predicate = predicate(selector)
		}
		opts.Predicate.Limit = []int64{0, 1, 2, 7, 40, 1000, 1 << 62}[random.IntN(7)]
		of := prefix
		if random.IntN(2) == 0 {
			of += "/" + []string{"ns", "ns-b", "ns.c", "nt", "absent", "n"}[random.IntN(6)]
		}
		exact := false
		at := fmt.Sprint(h.events[len(h.events)-1-random.IntN(20)].revision)
		switch random.IntN(8) {
		case 0:
			opts.ResourceVersion, opts.ResourceVersionMatch, exact = at, metav1.ResourceVersionMatchExact, true
		case 1:
			opts.ResourceVersion, opts.ResourceVersionMatch = at, metav1.ResourceVersionMatchNotOlderThan
		case 2:
			opts.ResourceVersion, exact = at, opts.Predicate.Limit > 0
		case 3, 4:
			opts.Predicate.Continue = tokens[random.IntN(len(tokens))]
			exact = !newestState[opts.Predicate.Continue]
		case 5, 6:
			if len(given) > 0 {
				opts.Predicate.Continue, exact = given[random.IntN(len(given))], true
			}
		case 7:
			opts.ResourceVersion = []string{"", "x", "-1", "18446744073709551616"}[random.IntN(4)]
		}
		what := fmt.Sprintf("query %d: %s selector %q limit %d at %q %s continue %.60q", n, of, selector, opts.Predicate.Limit, opts.ResourceVersion, opts.ResourceVersionMatch, opts.Predicate.Continue)
		want := answerOf(t, direct, of, opts)
		if want.failure != "" {
			failures++
		}
		if want.next != "" {
			given = append(given, want.next)
			pages++
		}
		for who, st := range map[string]storage.Interface{"cache": cached, "cache with indexes": withIndexes} {
			got, want := answerOf(t, st, of, opts), want
			if !exact && got.revision != "" && want.revision != "" { // others write to this etcd
				got.revision, want.revision = "", ""
				got.next, want.next = fmt.Sprint(got.next != ""), fmt.Sprint(want.next != "")
			}
			if st == withIndexes && selector != "" {
				got.next, want.next = "", "" // an index knows that nothing follows
			}
			if !slices.Equal(got.items, want.items) {
				t.Fatalf("%s: %s: %d objects %.100q\nwant %d %.100q (%s)", who, what, len(got.items), got.items, len(want.items), want.items, want.failure+got.failure)
			}
			got.items, want.items = nil, nil
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%s: %s: %+v\nwant %+v", who, what, got, want)
			}
		}
	}
	if failures < 50 || pages < 50 || failures > 400 {
		t.Errorf("%d failures and %d pages: the queries do not try much", failures, pages)
	}
}
