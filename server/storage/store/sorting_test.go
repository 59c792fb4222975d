package store

import (
	"cmp"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/storage"
)

// TestCompareIntegers: the order is that of the numbers, of any size; what is no number is after them, and nothing before.
func TestCompareIntegers(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	number := func() string {
		text := fmt.Sprint(random.Uint64() >> random.IntN(64))
		if random.IntN(9) == 0 {
			text += fmt.Sprintf("%020d", random.Uint64())
		}
		if random.IntN(2) == 0 {
			text = "-" + text
		}
		n, _ := new(big.Int).SetString(text, 10)
		return n.String()
	}
	for range 100_000 {
		a, b := number(), number()
		if random.IntN(10) == 0 {
			b = a
		}
		x, _ := new(big.Int).SetString(a, 10)
		y, _ := new(big.Int).SetString(b, 10)
		if got := compareIntegers(a, b); cmp.Compare(got, 0) != x.Cmp(y) {
			t.Fatalf("%s and %s: %d", a, b, got)
		}
		for other, want := range map[string]int{"": 1, "x": -1, "01": -1, "-": -1, "1.5": -1} {
			if got := compareIntegers(a, other); got != want || compareIntegers(other, a) != -want {
				t.Fatalf("%s and %q: %d", a, other, got)
			}
		}
	}
}

// TestSortedPageVisitsItself: a page of a sorted list costs what it has, at every place, whatever there is beside it.
func TestSortedPageVisitsItself(t *testing.T) {
	const n, limit = 20_000, 50
	by := Index{Field: "spec.weight", Integer: true}
	c := newContents([]Index{by})
	for i := range n {
		c.set(&entry{key: fmt.Sprintf("/g/r/%06d", i), labels: labels.Set{}, fields: fields.Set{by.Field: fmt.Sprint(i * 7919 % n)}})
	}
	i := c.index(by)
	for _, s := range []*Sort{{Index: by}, {Index: by, Descending: true}} {
		var after *indexed
		for page := range n / limit {
			found, visited, more := i.sorted(s, after, "/g/r/", limit, &storage.SelectionPredicate{})
			if len(found) != limit || visited > limit+1 || more != (page < n/limit-1) {
				t.Fatalf("page %d has %d objects, %d were visited; more %v", page, len(found), visited, more)
			}
			for k, one := range found {
				want := page*limit + k
				if s.Descending {
					want = n - 1 - want
				}
				if one.value != fmt.Sprint(want) {
					t.Fatalf("page %d begins with %s, not %d", page, one.value, want)
				}
			}
			after = &found[limit-1]
		}
	}
}

// FuzzSortToken: a continue token that a client has made up ends in an error or in a place of the list.
func FuzzSortToken(f *testing.F) {
	s := &Sort{Index: Index{Field: "spec.weight", Integer: true}}
	f.Add(s.token(place{Revision: 7, Value: "1", Key: "n/a"}))
	f.Add("e30")
	f.Fuzz(func(t *testing.T, token string) {
		p, err := s.position(storage.ListOptions{Predicate: storage.SelectionPredicate{Continue: token}}, "/g/r/")
		if err != nil || token == "" {
			return
		}
		if last := p.last(); last.entry.key[:5] != "/g/r/" || p.Sort != s.Index {
			t.Errorf("%+v", p)
		}
	})
}
