package cel

import (
	"cmp"
	"math"
	"slices"
	"strconv"
)

// Remedy is a set of bounds with which the rules of a schema keep the limits.
type Remedy struct {
	// Before is what all expressions may cost, and Over how many of them are over
	// MaxRuleCost.
	Before uint64
	Over   int
	// Bounds is the smallest set of bounds that was found with which no expression is over
	// its limit, nor all together. It is empty if there is none: values that are real
	// cost more, and rules have to be simpler. The Total of a bound is that of all
	// expressions.
	Bounds []Bound
	After  uint64 // what all expressions may cost then
}

// maxEstimated is how many expensive expressions a search takes into account.
const maxEstimated = 128

// Remedies returns the bounds that a schema needs for its rules to keep the limits, nil
// if they keep them. It has estimated the schema with the bounds in it.
func Remedies(schema []byte, o CheckOptions) (*Remedy, error) {
	remedy := &Remedy{}
	effort := maxEffort
	search := &boundSearch{perRule: MaxRuleCost, all: MaxSchemaCost, effort: &effort}
	var expensive []*estimated
	_, err := inspect(schema, o, func(r *inspected) {
		for _, p := range r.estimates() {
			remedy.count(p.now)
			if p.now >= expensiveTotal {
				expensive = append(expensive, p)
			} else {
				search.rest += p.now
			}
		}
	}, func() {
		if remedy.kept() || len(expensive) > maxEstimated {
			return
		}
		slices.SortStableFunc(expensive, func(a, b *estimated) int { return cmp.Compare(b.now, a.now) })
		for _, p := range expensive {
			search.add(p)
		}
		remedy.Bounds = search.inOrder(search.find(), search.sum)
	})
	if err != nil || remedy.kept() {
		return nil, err
	}
	if len(remedy.Bounds) == 0 {
		remedy.After = remedy.Before
		return remedy, nil
	}
	after, err := costOfAll(bounded(schema, remedy.Bounds), o)
	if err != nil {
		return nil, err
	}
	if remedy.After = after.Before; !after.kept() {
		remedy.Bounds, remedy.After = nil, remedy.Before
	}
	return remedy, nil
}

// estimates returns the expressions of a rule.
func (r *inspected) estimates() []*estimated {
	if r.test == nil || r.problem != nil {
		return nil
	}
	list := []*estimated{{r: r, e: r.test, times: true, size: len(r.rule.Rule), now: r.total()}}
	if r.message != nil && r.messageProblem == nil {
		list = append(list, &estimated{r: r, e: r.message, size: len(r.rule.MessageExpression), now: r.messageCost})
	}
	return list
}

func (r *Remedy) count(total uint64) {
	if r.Before += total; r.Before < total {
		r.Before = math.MaxUint64
	}
	if total > MaxRuleCost {
		r.Over++
	}
}

// kept reports whether the limits were kept before.
func (r *Remedy) kept() bool { return r.Over == 0 && r.Before <= MaxSchemaCost }

func costOfAll(schema []byte, o CheckOptions) (*Remedy, error) {
	r := &Remedy{}
	_, err := inspect(schema, o, func(i *inspected) {
		for _, p := range i.estimates() {
			r.count(p.now)
		}
	}, nil)
	return r, err
}

// sum returns what all expressions cost with the bounds that are set.
func (s *boundSearch) sum() uint64 {
	sum := s.rest
	for _, p := range s.rules {
		if sum += p.now; sum < p.now {
			return math.MaxUint64
		}
	}
	return sum
}

// bounded returns a schema with bounds. Those are schemas with a type, so that each has
// members.
func bounded(schema []byte, bounds []Bound) []byte {
	list := slices.SortedFunc(slices.Values(bounds), func(a, b Bound) int { return cmp.Compare(a.Offset, b.Offset) })
	var out []byte
	at := 0
	for _, b := range list {
		out = append(out, schema[at:b.Offset+1]...)
		out = append(strconv.AppendQuote(out, b.Keyword), ':')
		out = append(strconv.AppendUint(out, b.Value, 10), ',')
		at = b.Offset + 1
	}
	return append(out, schema[at:]...)
}
