package conversion

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/espalier-dev/espalier/internal/jsondoc"
)

// pairing relates the fields of two versions: first by rules, then by their paths.
type pairing struct {
	sides  [2]*side
	groups []*group
	report func(format string, args ...any) // of what is wrong with a rule
}

// group is fields of both versions that are calculated from each other.
type group struct {
	fields [2][]*field
	to     [2]transform // to[i] calculates the fields of side i
	// constant says that one side has no fields: the other has values anyway.
	constant bool
}

// name identifies the group among those of a version. It does not depend on the order of the rules.
func (g *group) name(side int) string {
	if len(g.fields[side]) == 0 {
		return ""
	}
	return g.fields[side][0].path()
}

// context returns the field that the fields of a side are reached from.
func (g *group) context(side int) *field {
	if len(g.fields[side]) == 0 {
		return nil
	}
	return g.fields[side][0].context()
}

// holder returns the nearest object with a mate that holds the fields of a side, within their context; nil if there is
// none.
func (g *group) holder(side int) *field {
	if g.constant || len(g.fields[0]) == 0 || len(g.fields[1]) == 0 {
		return nil
	}
	for up := g.fields[side][0].parent; up != nil && up.parent != nil && up.parent.kind == object; up = up.parent {
		if up.mate != nil {
			if up.mate.context() != g.context(1-side) {
				return nil
			}
			return up
		}
	}
	return nil
}

// rule applies a rule.
func (p *pairing) rule(r *rule) error {
	set := 0
	var err error
	apply := func(is bool, f func() error) {
		if is {
			set++
			err = f()
		}
	}
	apply(r.Move != nil, func() error { return p.move(r.Move) })
	apply(r.Wrap != nil, func() error { return p.wrap(r.Wrap.From, r.Wrap.To, 0) })
	apply(r.Unwrap != nil, func() error { return p.wrap(r.Unwrap.To, r.Unwrap.From, 1) })
	apply(r.Split != nil, func() error { return p.split(r.Split.From, r.Split.To, r.Split.Separator, 0) })
	apply(r.Join != nil, func() error { return p.split(r.Join.To, r.Join.From, r.Join.Separator, 1) })
	apply(r.ListToMap != nil, func() error { return p.listToMap(r.ListToMap, 0) })
	apply(r.MapToList != nil, func() error { return p.listToMap(r.MapToList, 1) })
	apply(r.Enum != nil, func() error { return p.enum(r.Enum) })
	apply(r.Constant != nil, func() error { return p.constant(r.Constant) })
	apply(r.CEL != nil, func() error { return p.cel(r.CEL) })
	if set != 1 {
		return fmt.Errorf("a rule must have exactly one of move, wrap, unwrap, split, join, listToMap, mapToList, enum, constant, cel; this one has %d", set)
	}
	return err
}

// claim resolves a path for a rule, which decides what becomes of the field.
func (p *pairing) claim(side int, path string) (*field, error) {
	f, err := p.sides[side].resolve(path)
	if err != nil {
		return nil, err
	}
	if f.explicit {
		return nil, fmt.Errorf("another rule converts %s of %s already", f.path(), p.sides[side].version)
	}
	f.explicit = true
	return f, nil
}

func (p *pairing) claimAll(side int, paths []string) ([]*field, error) {
	if len(paths) > maxParts {
		return nil, fmt.Errorf("there are %d paths, more than the limit of %d", len(paths), maxParts)
	}
	all := make([]*field, len(paths))
	for i, path := range paths {
		f, err := p.claim(side, path)
		if err != nil {
			return nil, err
		}
		if all[i] = f; f.context() != all[0].context() {
			return nil, fmt.Errorf("%s and %s must be in the same item", all[0].path(), f.path())
		}
	}
	return all, nil
}

// claimPair resolves a path of each version.
func (p *pairing) claimPair(from, to string) (a, b *field, err error) {
	if a, err = p.claim(0, from); err == nil {
		b, err = p.claim(1, to)
	}
	return a, b, err
}

func (p *pairing) pair(a, b *field) {
	a.fate, b.fate = carried, carried
	a.mate, b.mate = b, a
}

func (p *pairing) add(g *group) {
	for side := range g.fields {
		for i, f := range g.fields[side] {
			f.fate, f.group, f.index = grouped, g, i
		}
	}
	p.groups = append(p.groups, g)
}

func (p *pairing) move(r *moveRule) error {
	a, b, err := p.claimPair(r.From, r.To)
	if err != nil {
		return err
	}
	if alike(a, b) {
		p.pair(a, b)
		return nil
	}
	// An annotation and a number, or a string that becomes one.
	forth, back := coercion(a, b), coercion(b, a)
	if forth == nil || back == nil {
		return fmt.Errorf("%s is %s and %s is %s: use wrap or unwrap for a list of one, or cel", a.path(), a.describe(), b.path(), b.describe())
	}
	p.add(&group{fields: [2][]*field{{a}, {b}}, to: [2]transform{back, forth}})
	return nil
}

// wrap relates a value of one side to a list of one value of the other.
func (p *pairing) wrap(single, plural string, side int) error {
	one, err := p.claim(side, single)
	if err != nil {
		return err
	}
	many, err := p.claim(1-side, plural)
	if err != nil {
		return err
	}
	if many.kind != list {
		return fmt.Errorf("%s of %s must be a list, but is %s", many.path(), p.sides[1-side].version, many.describe())
	}
	if !identical(one, many.item) {
		return fmt.Errorf("the items of %s must be what %s is (%s), but are %s", many.path(), one.path(), one.describe(), many.item.describe())
	}
	g := &group{}
	g.fields[side], g.fields[1-side] = []*field{one}, []*field{many}
	g.to[side], g.to[1-side] = unwrapper{}, wrapper{}
	p.add(g)
	return nil
}

// split relates a string of one side to its parts on the other.
func (p *pairing) split(whole string, parts []string, separator string, side int) error {
	if separator == "" {
		return fmt.Errorf("split and join need a separator")
	}
	if len(parts) < 2 {
		return fmt.Errorf("split and join need at least two parts")
	}
	text, err := p.claim(side, whole)
	if err != nil {
		return err
	}
	fields, err := p.claimAll(1-side, parts)
	if err != nil {
		return err
	}
	if text.scalar() != "string" {
		return fmt.Errorf("%s must be a string, but is %s", text.path(), text.describe())
	}
	s := splitter{separator: separator, numbers: make([]bool, len(fields))}
	for i, f := range fields {
		switch f.scalar() {
		case "string":
		case "integer":
			s.numbers[i] = true
		default:
			return fmt.Errorf("%s must be a string or an integer, but is %s", f.path(), f.describe())
		}
	}
	g := &group{}
	g.fields[side], g.fields[1-side] = []*field{text}, fields
	g.to[1-side], g.to[side] = s, joiner(s)
	p.add(g)
	return nil
}

func (p *pairing) enum(r *enumRule) error {
	to := r.To
	if to == "" {
		to = r.From
	}
	a, b, err := p.claimPair(r.From, to)
	if err != nil {
		return err
	}
	if len(r.Values) == 0 || len(r.Values) > maxEnum {
		return fmt.Errorf("enum must have between 1 and %d values, but has %d", maxEnum, len(r.Values))
	}
	if a.scalar() == "" || b.scalar() == "" {
		return fmt.Errorf("enum is for strings, numbers and booleans, but %s is %s and %s is %s", a.path(), a.describe(), b.path(), b.describe())
	}
	forth, back := enumeration{}, enumeration{}
	for _, v := range r.Values {
		x, err := scalarJSON(v.From, a)
		if err != nil {
			return err
		}
		y, err := scalarJSON(v.To, b)
		if err != nil {
			return err
		}
		if _, twice := forth[x]; twice {
			return fmt.Errorf("enum has the value %s twice", x)
		}
		forth[x] = y
		if _, known := back[y]; !known {
			back[y] = x
		}
	}
	p.add(&group{fields: [2][]*field{{a}, {b}}, to: [2]transform{back, forth}})
	return nil
}

// scalarJSON returns a value of an enum as canonical JSON. Keys of YAML maps are strings: "1" is a number where
// the field is one.
func scalarJSON(v any, f *field) (string, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	if s, isText := v.(string); isText && f.scalar() != "string" {
		raw = []byte(s)
	}
	doc, err := jsondoc.Parse(raw, jsondoc.Limits{MaxDepth: 1})
	if err != nil {
		return "", fmt.Errorf("enum value %s is not %s, as %s is", raw, f.describe(), f.path())
	}
	defer doc.Release()
	if !f.kinds().Has(doc.Kind(jsondoc.Root)) || doc.Kind(jsondoc.Root) == jsondoc.Null {
		if f.scalar() == "string" {
			return "", fmt.Errorf("enum value %s is not a string, as %s is: YAML reads words such as On and numbers as something else, write them in quotes", raw, f.path())
		}
		return "", fmt.Errorf("enum value %s is not %s, as %s is", raw, f.describe(), f.path())
	}
	return string(doc.AppendCanonical(nil, jsondoc.Root)), nil
}

func (p *pairing) constant(r *constantRule) error {
	side := slices.IndexFunc(p.sides[:], func(s *side) bool { return s.version == r.In })
	if side < 0 {
		return fmt.Errorf("constant: in must be %s or %s, not %q", p.sides[0].version, p.sides[1].version, r.In)
	}
	f, err := p.claim(side, r.Path)
	if err != nil {
		return err
	}
	doc, err := jsondoc.Parse(r.Value, jsondoc.Limits{MaxDepth: maxPathParts})
	if err != nil {
		return fmt.Errorf("constant needs a value: %w", err)
	}
	defer doc.Release()
	if !f.kinds().Has(doc.Kind(jsondoc.Root)) {
		return fmt.Errorf("the value of %s must be %s, but is %s", f.path(), f.describe(), doc.Kind(jsondoc.Root))
	}
	if f.in != "" || f.entry() {
		return fmt.Errorf("constant cannot set %s", f.path())
	}
	g := &group{constant: true}
	g.fields[side] = []*field{f}
	g.to[side] = constant(doc.AppendCanonical(nil, jsondoc.Root))
	p.add(g)
	return nil
}

// describe says what a field is, in errors.
func (f *field) describe() string {
	switch {
	case f.kind == list:
		return "a list"
	case f.kind == mapping:
		return "a map"
	case f.kind == object:
		return "an object"
	case f.schema == nil:
		return "any value"
	case f.schema.IntOrString:
		return "an integer or a string"
	}
	switch f.schema.Type {
	case "integer":
		return "an integer"
	case "":
		return "any value"
	}
	return "a " + f.schema.Type
}
