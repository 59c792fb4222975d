package store

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/cacher/delegator"
	"k8s.io/apiserver/pkg/storage/cacher/metrics"
)

// Sort asks a list for the order of an index instead of that of the keys, and for a range of its
// values. Objects that the index does not have are left out: those without the label.
type Sort struct {
	Index      Index
	Descending bool
	// From leaves out what comes before a value, and Before a value and what comes after. Both go by
	// ascending values, whatever the order of the list is. Nil leaves out nothing.
	From, Before *string
}

type sortKey struct{}

// WithSort has the lists of a context be sorted. Only lists of resources with watch caches and the
// index can be.
func WithSort(ctx context.Context, s *Sort) context.Context {
	return context.WithValue(ctx, sortKey{}, s)
}

func sortOf(ctx context.Context) *Sort {
	s, _ := ctx.Value(sortKey{}).(*Sort)
	return s
}

// sorted serves a sorted list from the lister. Nothing else can: etcd has no order but that of keys.
func (l *onDemandCacher) sorted(ctx context.Context, a *active, key string, s *Sort, opts storage.ListOptions, list runtime.Object) error {
	if !a.cacher.Ready() || !delegator.ConsistentReadSupported() || !a.lister.filled() {
		return apierrors.NewTooManyRequests("a sorted list needs the watch cache, which is not filled yet; send the request again", freshRetry)
	}
	prefix, err := storage.PrepareKey(l.spec.ResourcePrefix, key, true)
	if err != nil {
		return err
	}
	after, err := s.position(opts, prefix)
	if err != nil {
		return err
	}
	v, err := l.sortedView(ctx, a, after, opts)
	if errors.Is(err, errNotListed) {
		return s.expired(after, prefix)
	}
	if err != nil {
		return err
	}
	i := v.index(s.Index)
	if i == nil {
		return l.spec.replaced() // the declaration is another one now
	}
	found, visited, more := i.sorted(s, after.last(), prefix, opts.Predicate.Limit, &opts.Predicate)
	entries := make([]*entry, len(found))
	for n, one := range found {
		entries[n] = one.entry
	}
	if err := setItems(list, entries); err != nil {
		return err
	}
	next := ""
	if more {
		a.lister.keep(v)
		last := found[len(found)-1]
		next = s.token(place{Revision: int64(v.revision), Value: last.value, Key: strings.TrimPrefix(last.entry.key, prefix)}) //nolint:gosec // revisions are positive
	}
	metrics.RecordListCacheMetrics(l.spec.Resource, i.String(), visited, len(found))
	return l.Versioner().UpdateList(list, v.revision, next, nil)
}

// sortedView finds the state that a sorted list is of.
func (l *onDemandCacher) sortedView(ctx context.Context, a *active, after *place, opts storage.ListOptions) (*view, error) {
	if after != nil && after.Revision > 0 {
		return l.exact(ctx, a, uint64(after.Revision))
	}
	if after == nil && opts.ResourceVersion != "" {
		revision, err := l.Versioner().ParseResourceVersion(opts.ResourceVersion)
		if err != nil {
			return nil, err
		}
		if isExact(opts) {
			return l.exact(ctx, a, revision)
		}
		return a.lister.fresh(ctx, a.feed, revision)
	}
	revision, err := l.backend.barrier.revision(ctx, l.backend, l.spec.Resource)
	if err != nil {
		return nil, err
	}
	return a.lister.fresh(ctx, a.feed, revision)
}

// A place is where a page of a sorted list ended. A list that goes on at revision -1 does so with the
// newest state.
type place struct {
	Sort       Index
	Descending bool   `json:",omitempty"`
	Revision   int64  `json:"rv"`
	Value      string `json:"value"`
	Key        string `json:"key"` // without the prefix of the list
	from       string // the whole key
}

// last is the last object before the page; nil if it is the first page.
func (p *place) last() *indexed {
	if p == nil {
		return nil
	}
	return &indexed{p.Value, &entry{key: p.from}}
}

// token is the continue token of a place.
func (s *Sort) token(p place) string {
	p.Sort, p.Descending = s.Index, s.Descending
	text, _ := json.Marshal(p) // texts and numbers
	return base64.RawURLEncoding.EncodeToString(text)
}

// position reads the options of a sorted list, and returns where its page begins; nil for the first one.
func (s *Sort) position(opts storage.ListOptions, prefix string) (*place, error) {
	token := opts.Predicate.Continue
	if token == "" {
		_, _, err := storage.ValidateListOptions(prefix, storage.APIObjectVersioner{}, opts)
		return nil, err
	}
	if opts.ResourceVersion != "" && opts.ResourceVersion != "0" {
		return nil, apierrors.NewBadRequest("specifying resource version is not allowed when using continue")
	}
	text, err := base64.RawURLEncoding.DecodeString(token)
	var p place
	if err == nil {
		read := json.NewDecoder(bytes.NewReader(text))
		read.DisallowUnknownFields()
		err = read.Decode(&p)
	}
	if err != nil || p.Sort != s.Index || p.Descending != s.Descending || p.Revision < -1 || p.Revision == 0 {
		return nil, apierrors.NewBadRequest("the continue token is not one of a list with this sortBy; begin without it")
	}
	p.from = prefix + p.Key
	return &p, nil
}

// expired is the error for a page whose state is gone. The token in it goes on with the newest state.
func (s *Sort) expired(after *place, prefix string) error {
	status := apierrors.NewResourceExpired("the state that the sorted list was read from is gone; begin without the continue token, " +
		"or go on with the token of this answer, which misses objects whose value has changed meanwhile")
	if after != nil {
		status.ErrStatus.Continue = s.token(place{Revision: -1, Value: after.Value, Key: strings.TrimPrefix(after.from, prefix)})
	}
	return status
}

// index finds an index.
func (c *contents) index(of Index) *index {
	for n := range c.indexes {
		if c.indexes[n].Index == of {
			return &c.indexes[n]
		}
	}
	return nil
}

// sorted returns the objects after one, below a prefix, that a predicate selects, and reports whether there
// are more.
func (i *index) sorted(s *Sort, after *indexed, prefix string, limit int64, p *storage.SelectionPredicate) (found []indexed, visited int, more bool) {
	all := p.Empty()
	for one := range i.between(s, after) {
		visited++
		if !strings.HasPrefix(one.entry.key, prefix) || !all && !p.MatchesObjectAttributes(one.entry.labels, one.entry.fields) {
			continue
		}
		if limit > 0 && int64(len(found)) >= limit {
			return found, visited, true
		}
		found = append(found, one)
	}
	return found, visited, false
}

// between goes through the range that a list is of, in its order.
func (i *index) between(s *Sort, after *indexed) iter.Seq[indexed] {
	below := func(one indexed, value *string) bool {
		return i.compare(one, indexed{*value, &entry{}}) < 0
	}
	return func(yield func(indexed) bool) {
		var values iter.Seq[indexed]
		switch {
		case s.Descending && after != nil:
			values = i.tree.Before(*after)
		case s.Descending && s.Before != nil:
			values = i.tree.Before(indexed{*s.Before, &entry{}})
		case s.Descending:
			values = i.tree.Back()
		case after != nil:
			values = i.tree.From(indexed{after.value, &entry{key: after.entry.key + "\x00"}})
		case s.From != nil:
			values = i.tree.From(indexed{*s.From, &entry{}})
		default:
			values = i.tree.From(indexed{"", &entry{}})
		}
		for one := range values {
			// A client may write a token that begins before the range.
			early := !s.Descending && s.From != nil && below(one, s.From) || s.Descending && s.Before != nil && !below(one, s.Before)
			over := s.Descending && s.From != nil && below(one, s.From) || !s.Descending && s.Before != nil && !below(one, s.Before)
			if over || !early && !yield(one) {
				return
			}
		}
	}
}

// byNumber is the order of an index of integers.
func byNumber(a, b indexed) int {
	return cmp.Or(compareIntegers(a.value, b.value), byValue(a, b))
}

// compareIntegers compares texts that are whole numbers, of any size. No text is less than each number, and
// what is no number is greater.
func compareIntegers(a, b string) int {
	if order := cmp.Compare(integerClass(a), integerClass(b)); order != 0 || integerClass(a) != 1 {
		return order
	}
	aDigits, aNegative := strings.CutPrefix(a, "-")
	bDigits, bNegative := strings.CutPrefix(b, "-")
	switch {
	case aNegative && bNegative:
		return cmp.Or(cmp.Compare(len(bDigits), len(aDigits)), strings.Compare(bDigits, aDigits))
	case aNegative:
		return -1
	case bNegative:
		return 1
	}
	return cmp.Or(cmp.Compare(len(aDigits), len(bDigits)), strings.Compare(aDigits, bDigits))
}

func integerClass(text string) int {
	switch {
	case text == "":
		return 0
	case IsInteger(text):
		return 1
	}
	return 2
}

// IsInteger reports whether a text is a whole number as JSON has it.
func IsInteger(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789") == "" && (digits[0] != '0' || len(digits) == 1)
}
