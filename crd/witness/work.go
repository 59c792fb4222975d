package witness

// What a search may take.
const (
	perFocus  = 600 // candidates for one change
	perGlance = 60
	maxNodes  = 16_000 // values in an object
	maxCount  = 4_000  // items of a list
	few       = 32     // items, with which a list of any number is small
	// maxWork bounds all searches of a pair: it counts values that are made, and parts of
	// schemas that values are checked against. It takes a few seconds.
	maxWork = 6 << 20
)

// What a rule, an error and a pattern take, in values, and how many bytes and names take as much as
// one value.
const (
	ruleWork  = 12
	errorWork = 8
	// a pattern, for each text that is tried
	patternWork = 32
	textShare   = 16
	nameShare   = 8
)

// spend counts work.
func (p *Pair) spend(n int) { p.work -= n }

// exhausted reports whether the budget of the pair is used up.
func (p *Pair) exhausted() bool { return p.work <= 0 }

func (s *search) over() bool { return s.left <= 0 || s.exhausted() }

// check estimates what it takes to check a value against a schema, and counts the values
// in it. Only what the value has matters: most of a large schema is about other fields.
func (s *side) check(v any, q *schema) (work, values int) {
	values = 1
	switch v := v.(type) {
	case object:
		for name, x := range v {
			var child *schema
			if q != nil {
				if child = q.Property(name); child == nil && q.AdditionalProperties != nil {
					child = q.AdditionalProperties.Schema
				}
			}
			w, n := s.check(x, child)
			work, values = work+w, values+n
		}
	case list:
		var child *schema
		if q != nil {
			child = q.ItemSchema()
		}
		for _, x := range v {
			w, n := s.check(x, child)
			work, values = work+w, values+n
		}
	case literal:
		work = len(v) / textShare
	}
	if q == nil {
		return work + 1, values
	}
	return work + s.weigh(q) + len(q.Validations)*values, values
}

// weigh estimates what a schema without those of fields and items takes, for one value.
func (s *side) weigh(q *schema) int {
	n, ok := s.weights[q]
	if !ok {
		n = 1 + len(q.Required)/nameShare + len(q.Enum)/nameShare + len(q.Validations)*ruleWork
		for _, branches := range [][]*schema{q.AllOf, q.AnyOf, q.OneOf, {q.Not}} {
			for _, b := range branches {
				n += s.whole(b)
			}
		}
		s.weights[q] = n
	}
	return n
}

// whole estimates what a schema takes for values that have all its fields. Branches of
// anyOf and the like are small.
func (s *side) whole(q *schema) int {
	if q == nil {
		return 0
	}
	n := s.weigh(q) + s.whole(q.ItemSchema())
	for _, p := range q.Properties {
		n += s.whole(p.Schema)
	}
	if a := q.AdditionalProperties; a != nil {
		n += s.whole(a.Schema)
	}
	return n
}
