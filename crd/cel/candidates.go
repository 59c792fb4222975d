package cel

import (
	"math"
	"slices"
	"strings"

	"github.com/espalier-dev/espalier/internal/evidence"
	"github.com/espalier-dev/espalier/internal/plan"
	"github.com/espalier-dev/espalier/internal/syntax"
)

// estimated is an expression whose cost is estimated for other bounds.
type estimated struct {
	r     *inspected
	e     *expression
	times bool // the number of evaluations counts
	size  int  // of the text
	trial trial
	loops map[*loop]uint64
	now   uint64 // the total with the bounds that are set
}

// total estimates with the bounds that are set.
func (p *estimated) total() uint64 {
	cost, err := p.e.cost(p.r.scope, &p.trial)
	if err != nil {
		return 0 // it has been estimated before
	}
	if !p.times {
		return cost
	}
	return multiply(cost, p.evaluations())
}

// evaluations returns how often the rule is evaluated, with the bounds that are set.
func (p *estimated) evaluations() uint64 {
	n := uint64(1)
	for l := p.r.loops; l != nil; l = l.parent {
		most, ok := occurrences(l.schema)
		if set, has := p.loops[l]; has {
			most, ok = set, true
		}
		if !ok {
			return p.r.times // by size, as without the bound
		}
		n = multiply(n, most)
	}
	return n
}

// candidate is a schema without a bound that costs depend on.
type candidate struct {
	Bound
	size evidence.Size
	uses []use
}

// use is how an expression depends on a candidate.
type use struct {
	p    *estimated
	key  string // of what the expression looks at
	loop *loop  // around the rule; key is empty then
}

// set sets the bound; 0 takes it back.
func (c *candidate) set(value uint64) {
	c.Value = value
	for _, u := range c.uses {
		switch {
		case u.loop != nil && value == 0:
			delete(u.p.loops, u.loop)
		case u.loop != nil:
			u.p.loops[u.loop] = value
		case value == 0:
			delete(u.p.trial.bounds, u.key)
		default:
			u.p.trial.bounds[u.key] = c.elements(value)
		}
	}
}

// elements returns the estimation's idea of a bound: strings count in bytes.
func (c *candidate) elements(value uint64) int64 {
	if c.Keyword == "maxLength" {
		return int64(value) * 4
	}
	return int64(value)
}

// maxCandidates is how many missing bounds are considered.
const maxCandidates = 24

// maxEffort bounds the search in one schema: the length of all expressions that are
// estimated. Hostile schemas can have any number of expensive rules.
const maxEffort = 1 << 20

// boundSearch looks for the smallest set of bounds with which expressions keep limits.
type boundSearch struct {
	rules      []*estimated
	rest       uint64 // what the other expressions of the schema cost
	perRule    uint64
	all        uint64
	candidates []*candidate
	effort     *int
	tight      bool // bounds that nothing speaks for may be small
}

// add adds an expression and what it depends on.
func (s *boundSearch) add(p *estimated) {
	p.trial, p.loops = trial{bounds: map[string]int64{}}, map[*loop]uint64{}
	s.rules = append(s.rules, p)
	if p.times && !p.r.bounded {
		for l := p.r.loops; l != nil; l = l.parent {
			if keyword := lacking(l.schema); keyword != "" {
				s.candidate(Bound{Keyword: keyword, Path: l.field, Pointer: l.pointer}, l.schema, use{p: p, loop: l})
			}
		}
	}
	seen := map[string]bool{}
	p.trial.asked = func(key string, at place) {
		if seen[key] {
			return
		}
		seen[key] = true
		if keyword := unboundedBy(at.node); keyword != "" {
			// What the schema does not specify, such as the name in metadata,
			// cannot get a bound.
			if written := p.r.follow(key); written != nil {
				field, pointer := p.r.locate(key)
				s.candidate(Bound{Keyword: keyword, Path: field, Pointer: pointer}, written, use{p: p, key: key})
			}
		}
	}
	p.now = p.total()
	p.trial.asked = nil
}

func (s *boundSearch) candidate(b Bound, schema *syntax.Schema, u use) {
	i := slices.IndexFunc(s.candidates, func(c *candidate) bool { return c.Pointer == b.Pointer })
	if i < 0 {
		if len(s.candidates) == maxCandidates {
			return
		}
		i = len(s.candidates)
		b.Offset = schema.Offset
		c := &candidate{Bound: b, size: evidence.Of(b.Keyword, fieldName(b.Pointer), schema)}
		c.Why = c.size.Why
		s.candidates = append(s.candidates, c)
	}
	s.candidates[i].uses = append(s.candidates[i].uses, u)
}

// fieldName returns the property that a pointer to a schema leads to or through.
func fieldName(pointer string) string {
	name := ""
	tokens := strings.Split(pointer, "/")
	for i := 1; i < len(tokens); i++ {
		if tokens[i] == "properties" && i+1 < len(tokens) {
			i++
			name = tokens[i]
		}
	}
	return name
}

// excess says how far the expressions are from keeping the limits, 0 if they keep them.
// It counts factors, because each bound is a factor.
func (s *boundSearch) excess() float64 {
	over := 0.0
	sum := s.rest
	for _, p := range s.rules {
		over += max(0, math.Log2(float64(p.now)/float64(s.perRule)))
		if sum += p.now; sum < p.now {
			sum = math.MaxUint64
		}
	}
	return over + max(0, math.Log2(float64(sum)/float64(s.all)))
}

// put sets a bound and estimates what depends on it.
func (s *boundSearch) put(c *candidate, value uint64) {
	c.set(value)
	for i, u := range c.uses {
		if i > 0 && c.uses[i-1].p == u.p {
			continue
		}
		u.p.now = u.p.total()
		*s.effort -= u.p.size
	}
}

// with returns the excess with one more bound.
func (s *boundSearch) with(c *candidate, value uint64) float64 {
	before := c.Value
	s.put(c, value)
	over := s.excess()
	s.put(c, before)
	return over
}

// find returns the smallest set of bounds that keeps the limits, none if no set does.
func (s *boundSearch) find() []*candidate {
	list := s.greedy()
	if list == nil && !s.tight {
		s.tight = true
		list = s.greedy()
	}
	if list == nil {
		return nil
	}
	for i := 0; i < len(list) && len(list) > 1; {
		if s.with(list[i], 0) > 0 {
			i++
			continue
		}
		s.put(list[i], 0)
		list = slices.Delete(list, i, i+1)
	}
	if fewer := s.fewer(list); fewer != nil {
		list = fewer
	}
	s.raise(list)
	return list
}

// least returns the smallest bound to propose.
func (s *boundSearch) least(c *candidate) uint64 {
	if s.tight {
		return c.size.Tight
	}
	return c.size.Least
}

// greedy adds the most effective bound until the limits are kept. Lists in lists count
// only once all of them are bounded; if no bound helps alone, it adds all.
func (s *boundSearch) greedy() []*candidate {
	var list []*candidate
	for over := s.excess(); over > 0; {
		var best *candidate
		least := over
		for _, c := range s.candidates {
			if *s.effort < 0 {
				return nil
			}
			if c.Value != 0 {
				continue
			}
			if x := s.with(c, s.least(c)); x < least || best != nil && x == least && c.size.Known && !best.size.Known {
				best, least = c, x
			}
		}
		if best == nil {
			return s.everything(list)
		}
		s.put(best, s.least(best))
		list = append(list, best)
		over = least
	}
	return list
}

// everything adds all bounds to a set. It returns nil if even that does not keep the
// limits.
func (s *boundSearch) everything(list []*candidate) []*candidate {
	for _, c := range s.candidates {
		if c.Value == 0 {
			s.put(c, s.least(c))
			list = append(list, c)
		}
	}
	if s.excess() == 0 {
		return list
	}
	for _, c := range list {
		s.put(c, 0)
	}
	return nil
}

// fewer looks for a smaller set than one that was found: one bound, or two.
func (s *boundSearch) fewer(list []*candidate) []*candidate {
	if len(list) < 2 {
		return nil
	}
	for _, c := range list {
		s.put(c, 0)
	}
	for i, a := range s.candidates {
		if s.with(a, s.least(a)) == 0 {
			s.put(a, s.least(a))
			return []*candidate{a}
		}
		if len(list) < 3 {
			continue
		}
		s.put(a, s.least(a))
		for _, b := range s.candidates[i+1:] {
			if *s.effort < 0 {
				break
			}
			if s.with(b, s.least(b)) == 0 {
				s.put(b, s.least(b))
				return []*candidate{a, b}
			}
		}
		s.put(a, 0)
	}
	for _, c := range list {
		s.put(c, s.least(c))
	}
	return nil
}

// raise makes bounds as generous as the limits allow, all of them alike. It is easy to
// lower a bound that has no use, and hard to raise one that objects are refused by.
func (s *boundSearch) raise(list []*candidate) {
	for more := true; more; {
		more = false
		for _, c := range list {
			if next := min(c.Value*2, c.size.Most); next > c.Value && *s.effort > 0 && s.with(c, next) == 0 {
				s.put(c, next)
				more = true
			}
		}
	}
}

// missingBounds finds the bounds that would reduce the cost of an expression.
func missingBounds(p *estimated, effort *int) []Bound {
	s := &boundSearch{perRule: MaxRuleCost, all: math.MaxUint64, effort: effort}
	s.add(p)
	if *effort < 0 {
		return nil
	}
	switch {
	case p.now > MaxRuleCost:
	case p.now > MaxRuleCost/2:
		s.perRule = MaxRuleCost / 2 // one more condition would be too much
	default:
		if c := s.halving(p); c != nil {
			c.Total = p.now
			return []Bound{c.Bound}
		}
		return nil
	}
	list := s.find()
	return s.inOrder(list, func() uint64 { return p.now })
}

// halving returns the bound that reduces a cost within the limit most, if it halves it.
func (s *boundSearch) halving(p *estimated) *candidate {
	before := p.now
	var best *candidate
	least := before / 2
	for _, c := range s.candidates {
		s.put(c, c.size.Most)
		if p.now < least {
			best, least = c, p.now
		}
		s.put(c, 0)
	}
	if best != nil {
		s.put(best, best.size.Most)
	}
	return best
}

// inOrder returns the bounds of a set, each with the total of those up to it.
func (s *boundSearch) inOrder(list []*candidate, total func() uint64) []Bound {
	values := make([]uint64, len(list))
	for i, c := range list {
		values[i] = c.Value
		s.put(c, 0)
	}
	bounds := make([]Bound, 0, len(list))
	for i, c := range list {
		s.put(c, values[i])
		c.Total = total()
		bounds = append(bounds, c.Bound)
	}
	return bounds
}

// follow returns what is written in the schema of r about what an expression looks at,
// nil if nothing is.
func (r *inspected) follow(key string) *syntax.Schema {
	s := r.schema
	for part := range strings.SplitSeq(key, "\x00") {
		switch {
		case key == "" || s == nil:
		case part == "@items" || part == "@values":
			if a := s.AdditionalProperties; s.Type == "object" && a != nil {
				s = a.Schema
			} else {
				s = s.ItemSchema()
			}
		default:
			name, _ := unescape(part)
			s = s.Property(name)
		}
	}
	return s
}

// lacking returns the keyword that would bound the elements of a list or map.
func lacking(s *syntax.Schema) string {
	switch {
	case s.Type == "array" && s.MaxItems == nil:
		return "maxItems"
	case s.Type == "object" && s.AdditionalProperties != nil && s.MaxProperties == nil:
		return "maxProperties"
	}
	return ""
}

// unboundedBy returns the keyword that would bound what is in values of n, ""
// if there is a bound or nothing in them.
func unboundedBy(n *plan.Node) string {
	keyword, op := "", plan.MaxLength
	switch {
	case n.Flags&plan.IntOrString != 0:
		keyword = "maxLength"
	case n.Type == plan.Array:
		keyword, op = "maxItems", plan.MaxItems
	case n.Type == plan.Object && n.Additional != nil:
		keyword, op = "maxProperties", plan.MaxProperties
	case n.Type == plan.String && maxString(n) == maxText:
		keyword = "maxLength"
	}
	if keyword == "" || assertion(n, op) != nil {
		return ""
	}
	return keyword
}

// locate returns the field path and the pointer of what an expression of r looks
// at.
func (r *inspected) locate(key string) (field, pointer string) {
	f, p := []byte(r.field), []byte(r.pointer)
	n := r.scope.sizes.seen(r.declared, r.resource)
	for _, part := range strings.Split(key, "\x00") {
		if key == "" {
			break
		}
		if len(f) > 0 {
			f = append(f, '.')
		}
		keyword, name := "properties", ""
		switch {
		case part == "@items" || part == "@values":
			keyword = "items"
			if n.Type == plan.Object {
				keyword = "additionalProperties"
			}
			n = elements(n)
		default:
			name, _ = unescape(part)
			n = fieldCalled(n, part)
		}
		f, p = append(f, keyword...), syntax.AppendToken(p, keyword)
		if name != "" {
			f, p = append(append(append(f, '['), name...), ']'), syntax.AppendToken(p, name)
		}
		if n == nil {
			break
		}
		n = r.scope.sizes.seen(n, isEmbedded(n))
	}
	return string(f), string(p)
}
